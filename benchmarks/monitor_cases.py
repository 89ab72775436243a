"""Classifiers over time whose labels are all known, and what else monitors them.

Simulated drifts, and dated data; labels of a period alone, a CUSUM of labels, NannyML.

CBPE (Confidence-based Performance Estimation) calibrates probabilities on the reference and takes
them at their word. DLE (Direct Loss Estimation) predicts a loss of a regression from features; here
the loss is |label - predicted class|, 1 for a mistake, and the feature is P(class 1), so that
1 - its mean absolute error is accuracy. Both alert outside of the reference's mean ± 3 standard
deviations over its periods, NannyML's default. It needs `pip install --group monitors`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import binomtest

import fewlabels as fl
from curves_data import stream

Floats, Ints, Rng = np.ndarray, np.ndarray, np.random.Generator
PERIODS, LEAGUES = 30, ("nba", "mlb", "nfl", "nhl", "wnba")
_POPULATION = 20_000
_COMPLAINTS = 8.0
"""How much sooner users' complaints label an item that the classifier has wrong."""


class Case(NamedTuple):
    """Items of some periods and of the reference before them, with all labels.

    The group `period` of each is its number or first day, and periods come in order; `rank` (n,) is
    the place of an item among those of its period in the order of labeling. `fall` (T, M) is how
    far accuracy is below that of the reference: in the population where items are simulated.
    """

    items: fl.Predictions
    reference: fl.Predictions
    rank: Ints
    fall: Floats
    every: int | str = 1


class Setting(NamedTuple):
    """What a world is drawn to be: items a period, periods of the reference, and its classifier.

    Scores are offset + slope (apart x + odds), x = ± apart / 2 and a noise of the family, with
    probabilities in steps; a share `mistakes` of items is wrong for sure. `at` is the period of a
    change, `size` says how large it is. If it is `hidden`, scores of less evidence are as sure as
    before.
    """

    n: int
    before: int
    odds: float
    apart: float
    family: str
    step: float
    offset: float
    slope: float
    at: int
    size: float
    hidden: bool = False
    mistakes: float = 0.0


FAMILIES: Mapping[str, Callable[[Floats, Floats, Rng], Floats]] = {
    "normal": lambda y, x, rng: x + rng.normal(size=len(y)),
    "heavy tails": lambda y, x, rng: x + 0.7 * rng.standard_t(3, len(y)),
    "uneven": lambda y, x, rng: x + (1 + 0.6 * y) * rng.normal(size=len(y)),
    "easy and hard": lambda y, x, rng: (
        x * np.where(rng.random(len(y)) < 0.3, 0.2, 1.2) + rng.normal(size=len(y))
    ),
}
"""Evidence of an item of class y whose mean is x."""

DRIFTS: Mapping[str, Callable[[Setting, int], Setting]] = {
    "none": lambda s, t: s,
    "label shift": lambda s, t: s._replace(odds=s.odds + 1.5 * s.size * np.sin(t / 5)),
    "calibration": lambda s, t: s._replace(
        offset=s.offset + 1.5 * s.size * np.sin(t / 8),
        slope=s.slope * (1 + 0.4 * s.size * (np.cos(t / 6) - 1)),
    ),
    "sudden fall": lambda s, t: _weaker(s, 1 - 0.6 * s.size * (t >= s.at)),
    "slow fall": lambda s, t: _weaker(s, 1 - 0.6 * s.size * t / PERIODS),
    "new mistakes": lambda s, t: s._replace(mistakes=0.2 * s.size * (t >= s.at)),
    "complaints": lambda s, t: s,
}
"""What a classifier and its items are in period t, from 1."""


def _weaker(s: Setting, left: float) -> Setting:
    """So much of the evidence is left."""
    return s._replace(apart=s.apart * left, slope=s.slope / left if s.hidden else s.slope)


def setting(rng: Rng) -> Setting:
    """A world."""
    return Setting(
        n=int(np.exp(rng.uniform(np.log(300), np.log(1_500)))), before=int(rng.integers(4, 11)),
        odds=rng.uniform(-2.2, 0.2), apart=rng.uniform(1.2, 3.0),
        family=str(rng.choice([*FAMILIES])), step=float(rng.choice([0, 0, 0.05])),
        offset=rng.normal(0, 0.5), slope=np.exp(rng.normal(0, 0.3)),
        at=int(rng.integers(8, PERIODS - 6)), size=rng.uniform(0.5, 1.0),
    )  # fmt: skip


def scored(was: Setting, now: Setting, n: int, rng: Rng) -> tuple[Floats, Ints]:
    """P(class 1) of n new items by a classifier made for what was, and their labels."""
    y = (rng.random(n) < expit(now.odds)).astype(np.int64)
    x = FAMILIES[now.family](y, now.apart * (y - 0.5), rng)
    z = now.offset + now.slope * (was.apart * x + was.odds)
    sure = np.where(y == 1, -1, 1) * np.abs(rng.normal(2.5, 0.7, n))
    p = expit(np.where(rng.random(n) < now.mistakes, sure, z))
    return (np.round(p / now.step) * now.step if now.step else p), y


def simulated(kind: str, number: int) -> Case:
    """A world of a kind of drift."""
    rng = stream("monitor", kind, number)
    s = setting(rng)._replace(hidden=number % 2 == 1)
    times = range(1 - s.before, PERIODS + 1)
    states = [DRIFTS[kind](s, t) if t > 0 else s for t in times]
    drawn = [scored(s, state, s.n, rng) for state in states]
    p, y = (np.concatenate(part) for part in zip(*drawn, strict=True))
    hurry = np.where(((p > 0.5) != y) & (kind == "complaints"), _COMPLAINTS, 1.0)
    period = np.repeat(np.array([*times]), s.n)
    turn = rng.exponential(size=len(y)) / hurry
    big = [scored(s, state, _POPULATION, rng) for state in (s, *states[s.before :])]
    right = np.array([((p > 0.5) == y).mean() for p, y in big])
    return _case({"m": p}, y, period, 1, turn)._replace(fall=(right[0] - right[1:])[:, None])


def _case(p: Mapping[str, Floats], y: Ints, period: Floats, first: Any, turn: Floats) -> Case:
    """The rows from the first period on are monitored, those before are the reference."""
    every = fl.Predictions(dict(p), y, groups={"period": period})
    items, reference = every.take(period >= first), every.take(period < first)
    order = pd.Series(turn[period >= first]).groupby(items.groups["period"])
    right = pd.DataFrame(items.hard == items.labels[:, None]).groupby(items.groups["period"])
    before = (reference.hard == reference.labels[:, None]).mean(axis=0)
    fall = before - right.mean().to_numpy()
    return Case(items, reference, order.rank().to_numpy(int) - 1, fall)


def real(data: Path, name: str, number: int) -> Case:
    """A league by month, tweets by year, or comments in the order of their file.

    The reference is the first quarter of the games, the first year, or the first eight of 38 parts.
    """
    p, y, period, first = _read(data, name)
    turn = stream("monitor", name, number).random(len(y))
    return _case(p, y, period, first, turn)._replace(every="month" if name in LEAGUES else 1)


@cache
def _read(data: Path, name: str) -> tuple[dict[str, Floats], Ints, Floats, int | str]:
    """Probabilities by classifier, labels, periods, and the first that is monitored."""
    if name in LEAGUES:
        frame = pd.read_parquet(data / "sports_538" / "data.parquet")
        frame = frame[frame["domain"] == name].sort_values("time", kind="stable")
        month = pd.to_datetime(frame["time"]).dt.strftime("%Y-%m-01").to_numpy(object)
        first = min(month[month > month[len(month) // 4]])
        return {"fte": frame["p__fte__1"].to_numpy()}, frame["label"].to_numpy(), month, first
    if name == "semeval":
        frame = pd.read_parquet(data / "semeval_tweets" / "data.parquet")
        frame = frame.sort_values("year", kind="stable")
        p = {
            m: frame[[f"p__{m}__{c}" for c in ("negative", "neutral", "positive")]].to_numpy()
            for m in ("tfidf_svm", "feat_rf")
        }
        return p, frame["label"].to_numpy(), frame["year"].to_numpy(), 2014
    frame = pd.read_parquet(data / "ssme_civilcomments" / "data.parquet")
    p = {m: frame[f"p__{m}__1"].to_numpy(float) for m in ("ERM", "IRM")}
    part = np.arange(len(frame)) * (8 + PERIODS) // len(frame)
    return p, frame["label"].to_numpy(), part - 7, 1


YEAR, TUNING, FALSE = 52, 400, 0.05
FALL = 0.1
"""Rise of the error rate that the CUSUM looks for."""


def wilson(right: Floats, counts: Floats, level: float) -> Floats:
    """Ends (2, T) of Wilson's intervals of accuracy, from how many of the labels are right."""
    each = zip(right.tolist(), counts.tolist(), strict=True)
    return np.array([binomtest(k, n).proportion_ci(level, "wilson") for k, n in each]).T


def cusum(wrong: Floats, counts: Floats, before: float) -> Floats:
    """CUSUM (T,) of the log likelihood ratio of an error rate before + .1 (Page 1954)."""
    rate = min(max(before, 0.01), 0.85)
    odds = np.log((rate + FALL) / rate), np.log((1 - rate - FALL) / (1 - rate))
    walk = np.cumsum(wrong * odds[0] + (counts - wrong) * odds[1])
    return walk - np.minimum(np.minimum.accumulate(walk), 0)


@cache
def limit(labels: int) -> float:
    """What a CUSUM exceeds within a year in 5% of worlds without a drift, none of them reported."""
    most = []
    for number in range(TUNING):
        rng = stream("monitor", "tuning", number)
        s = setting(rng)
        p, y = scored(s, s, s.n * s.before, rng)
        now, truth = scored(s, s, YEAR * labels, rng)
        wrong = ((now > 0.5) != truth).reshape(YEAR, labels).sum(axis=1)
        before = float(((p > 0.5) != y).mean())
        most.append(cusum(wrong, np.full(YEAR, labels), before).max())
    return float(np.quantile(most, 1 - FALSE))


def has_nannyml() -> bool:
    """Whether NannyML is there."""
    return all(map(find_spec, ("nannyml", "statsmodels")))


def nannyml(case: Case, metrics: Sequence[str]) -> dict[str, list[tuple[Floats, ...]]]:
    """CBPE and DLE: for each classifier value, low, high and alert, (T, metrics) each."""
    os.environ["NML_DISABLE_USAGE_LOGGING"] = "1"  # it sends what is run to its makers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import nannyml as nml

        asked = [{"auc": "roc_auc"}.get(name, name) for name in metrics]
        several = case.items.n_classes > 2
        about = {"timestamp_column_name": "day", "chunk_period": "D", "y_true": "y", "y_pred": "h"}
        found: dict[str, list[tuple[Floats, ...]]] = {}
        for model in range(case.items.n_models):
            old = _frame(case.reference, model, "2000-01-01")
            new = _frame(case.items, model, "2001-01-01")
            cbpe = nml.CBPE(
                asked, {k: f"p{k}" for k in range(case.items.n_classes)} if several else "p1",
                problem_type=f"classification_{'multiclass' if several else 'binary'}", **about,
            )  # fmt: skip
            said = _values(cbpe.fit(old).estimate(new.drop(columns="y")), asked)
            found.setdefault("CBPE", []).append(said)
            if not several:
                dle = nml.DLE(["p1"], metrics=["mae"], hyperparameters={"verbose": -1}, **about)
                loss = _values(dle.fit(old).estimate(new.drop(columns="y")), ["mae"])
                found.setdefault("DLE", []).append((*(1 - loss[k] for k in (0, 2, 1)), loss[3]))
    return found


def _frame(items: fl.Predictions, model: int, start: str) -> pd.DataFrame:
    """A row for each item; periods are days in a row."""
    day = pd.factorize(items.groups["period"])[0]
    assert items.probabilities is not None
    frame = pd.DataFrame({f"p{k}": p for k, p in enumerate(items.probabilities[:, model].T)})
    dates = pd.Timestamp(start) + pd.to_timedelta(day, unit="D")
    return frame.assign(h=items.hard[:, model], y=items.labels, day=dates)


def _values(estimated: Any, metrics: Sequence[str]) -> tuple[Floats, ...]:
    found = estimated.filter(period="analysis").to_df()
    names = ("value", "lower_confidence_boundary", "upper_confidence_boundary", "alert")
    return tuple(np.stack([found[m, n].to_numpy(float) for m in metrics], axis=1) for n in names)
