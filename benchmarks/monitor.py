"""How good is it now, with few labels or none: `fewlabels monitor` beside other ways.

    python -m benchmarks monitor all | simulated | real [--worlds 40] [--looked 8]

Simulated classifiers of seven kinds of drift over 30 periods, and dated data, of which 0, 5, 20 or
50 labels a period are shown. Estimates and 95% intervals of each period are judged by all labels of
its items. Alarms are judged by how far accuracy in the population has fallen below that of the
reference. In the first worlds of each kind, as many as `--looked` says, the command runs again as
of every third period, with what was there by then. NannyML sees the same reference, and needs
`pip install --group monitors`. The page is docs/benchmarks/monitor.md.

CBPE (Confidence-based Performance Estimation) calibrates probabilities on the reference and takes
them at their word. DLE (Direct Loss Estimation) predicts a loss of a regression from features; here
the loss is |label - predicted class|, 1 for a mistake, and the feature is P(class 1), so that
1 - its mean absolute error is accuracy. Both alert outside of the reference's mean ± 3 standard
deviations over its periods, NannyML's default.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import binomtest

import fewlabels as fl
from bench.world import mean_of, measured
from fewlabels.checks.conditions import NOT_RANDOM
from parts import SEED, Arguments, Part, Plan, Record, run_page, stream
from runs import averaged, grouped, number, share, where

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
RISE = 0.1
"""Rise of the error rate that the CUSUM looks for."""


def wilson(right: Floats, counts: Floats, level: float) -> Floats:
    """Ends (2, T) of Wilson's intervals of accuracy, from how many of the labels are right."""
    each = zip(right.tolist(), counts.tolist(), strict=True)
    return np.array([binomtest(k, n).proportion_ci(level, "wilson") for k, n in each]).T


def cusum(wrong: Floats, counts: Floats, before: float) -> Floats:
    """CUSUM (T,) of the log likelihood ratio of an error rate before + .1 (Page 1954)."""
    rate = min(max(before, 0.01), 0.85)
    odds = np.log((rate + RISE) / rate), np.log((1 - rate - RISE) / (1 - rate))
    walk = np.cumsum(wrong * odds[0] + (counts - wrong) * odds[1])
    return walk - np.minimum(np.minimum.accumulate(walk), 0)


@cache
def limit(labels: int) -> float:
    """What a CUSUM exceeds within a year in 5% of worlds without a drift, none of them reported."""
    most = []
    for k in range(TUNING):
        rng = stream("monitor", "tuning", k)
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


METRICS, LABELS, LEVEL = ("accuracy", "precision", "recall", "auc"), (0, 5, 20, 50), 0.95
SETS, RUNS = (*LEAGUES, "semeval", "civilcomments"), 2
SPAN, LOOK = 10, 3
"""Periods that a record sums up, and periods between two looks."""

FALL, HARMLESS = 0.05, 0.025
"""A fall of accuracy that is to be found, the tolerance, and one of which no alarm is due."""

OURS, HINDSIGHT = "fewlabels", "fewlabels, in hindsight"


Ways = dict[str, Floats]
"""Estimates of ways: arrays (value, low, high) of (T, M, metrics); or their alarms (T, M). NaN
where there was no look."""


def run(data: Path, kind: str, labels: int, world: int, looked: bool = False) -> list[Record]:
    """Errors and intervals by way, metric and span, and alarms by way, in one world."""
    case, truth, others = _world(data, kind, world)
    names = list(dict.fromkeys(case.items.groups["period"].tolist()))
    shown = case.items.with_labels(np.where(case.rank < labels, case.items.labels, -1))
    values, alarms, held = _ours(case, shown, names, looked)
    for part, found in (_labels(case, shown, labels), others):
        values, alarms = values | part, alarms | found
    found = [*_errors(values, truth, held), *_alarms(alarms, case.fall)]
    return [{"kind": kind, "labels": labels, "world": world} | one for one in found]


@lru_cache(maxsize=2)
def _world(data: Path, kind: str, world: int) -> tuple[Case, Floats, tuple[Ways, Ways]]:
    """A world, its true metrics by period (T, M, metrics), and what sees no labels of its periods.

    These are the same whatever the number of labels.
    """
    case = simulated(kind, world) if kind in DRIFTS else real(data, kind, world)
    truth = measured(case.items, METRICS, ("period",))[1][1:]  # not of all periods
    return case, truth, _nannyml(case)


def _ours(
    case: Case, shown: fl.Predictions, names: list[Any], looked: bool
) -> tuple[Ways, Ways, Floats]:
    """What `monitor` says in hindsight, and looked at as time goes; where its status is ok."""
    size = (len(names), shown.n_models, len(METRICS))
    ask = partial(fl.monitor, time="period", every=case.every, reference=case.reference,
                  confidence_level=LEVEL, tolerance=FALL)  # fmt: skip
    found = ask(shown, metrics=METRICS)
    values, ok = np.full((3, *size), np.nan), np.zeros(size)
    places = {f"period={name}": t for t, name in enumerate(names)}
    for row in found.rows:
        if row.group in places:  # months without a game are none
            at = places[row.group], shown.models.index(row.model), METRICS.index(row.metric)
            values[:, *at], ok[at] = (row.value, row.low, row.high), row.status == "ok"
    there = [f"period={p.name}" in places for p in found.periods]
    falls = [found.falls["accuracy", model].alarm[there] for model in shown.models]
    estimates = {OURS: values}
    random = NOT_RANDOM not in found.diagnostics  # else nothing is an alarm
    alarms = {HINDSIGHT: (random & np.stack(falls, axis=1)).astype(float)}
    if looked:
        now, alarm = np.full((3, *size), np.nan), np.full(size[:2], np.nan)
        for t in range(LOOK - 1, len(names), LOOK):
            until = np.isin(shown.groups["period"], names[: t + 1])
            then = ask(shown.take(until), metrics="accuracy")
            last = then.periods[-1].name
            for m, model in enumerate(shown.models):
                row = then.get(model, "accuracy", last)
                now[:, t, m, 0] = row.value, row.low, row.high
                alarm[t, m] = any(change.model == model for change in then.alarms)
        estimates["fewlabels, as of then"], alarms[OURS] = now, alarm
    return estimates, alarms, ok


def _labels(case: Case, shown: fl.Predictions, labels: int) -> tuple[Ways, Ways]:
    """Metrics of the labels of each period alone, the reference's, and a CUSUM's alarms."""
    before = measured(case.reference, METRICS)[1][0]
    size = (3, len(case.fall), *before.shape)
    values = {"reference": np.full(size, np.nan)}
    values["reference"][0] = before
    if not labels:
        return values, {}
    known = shown.take(shown.labeled)
    period = known.groups["period"]
    right = pd.DataFrame(known.hard == known.labels[:, None]).groupby(period).sum().to_numpy()
    counts = pd.Series(period).groupby(period).size().to_numpy()
    alone, alarms = np.full(size, np.nan), np.zeros(right.shape)
    alone[0] = measured(known, METRICS, ("period",))[1][1:]
    for m in range(shown.n_models):
        alone[1:, :, m, 0] = wilson(right[:, m], counts, LEVEL)
        wrong = counts - right[:, m]
        alarms[:, m] = cusum(wrong, counts, 1 - before[m, 0]) > limit(labels)
    return values | {"labels only": alone}, {"CUSUM": alarms}


def _nannyml(case: Case) -> tuple[Ways, Ways]:
    """CBPE and DLE, which see no labels but the reference's."""
    values: Ways = {}
    alarms: Ways = {}
    for way, models in nannyml(case, METRICS).items() if has_nannyml() else ():
        *ends, alert = (np.stack(part, axis=1) for part in zip(*models, strict=True))
        alarms[way] = alert[..., 0]
        values[way] = np.full((3, *alert.shape[:2], len(METRICS)), np.nan)
        values[way][..., : alert.shape[2]] = ends  # DLE's is accuracy alone
    return values, alarms


def _errors(values: Ways, truth: Floats, ok: Floats) -> Iterator[Record]:
    """Means over the periods of a span, of those in which the truth is defined."""
    for way, (value, low, high) in values.items():
        bounded = np.isfinite(low)
        held = (low <= truth + 1e-9) & (truth <= high + 1e-9)
        each = {"error": np.abs(value - truth), "width": high - low,
                "held": np.where(bounded, held, np.nan)}  # fmt: skip
        if way == OURS:
            each |= {"ok": ok, "held_ok": np.where(bounded & (ok > 0), held, np.nan)}
        for k, start in product(range(len(METRICS)), range(0, len(truth), SPAN)):
            part = np.s_[start : start + SPAN, :, k]
            defined = np.isfinite(truth[part]) & np.isfinite(value[part])
            if defined.any():
                means = {n: round(mean_of(a[part][defined]), 5) for n, a in each.items()}
                yield {"what": "estimate", "way": way, "metric": METRICS[k],
                       "span": start // SPAN, **means}  # fmt: skip


def _alarms(alarms: Ways, fall: Floats) -> Iterator[Record]:
    """False alarms where accuracy is about what it was, and the delay of the first that is due."""
    for (way, alarm), m in product(alarms.items(), range(fall.shape[1])):
        quiet = np.isfinite(alarm[:, m]) & (fall[:, m] < HARMLESS)
        fell = np.flatnonzero(fall[:, m] > FALL)
        record = {"what": "alarm", "way": way, "quiet": int(quiet.sum()),
                  "false": int(alarm[quiet, m].sum())}  # fmt: skip
        if len(fell):
            due = np.flatnonzero((alarm[:, m] == 1) & (np.arange(len(fall)) >= fell[0]))
            record |= {"found": len(due) > 0, "delay": int(due[0] - fell[0]) if len(due) else None}
        yield record


def blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """Coverage, errors and alarms, by kind and number of labels."""
    if not has_nannyml():
        print("NannyML is not there: pip install --group monitors", file=sys.stderr)

    def holds(own: pd.DataFrame) -> str:
        return f"{share('held')(own)} at {number(own['width'].mean(), 2)}" if len(own) else "-"

    by, name = ["kind", "labels"], plan.part
    estimates = records[records["what"] == "estimate"]
    ours = estimates[estimates["way"] == OURS]
    spans = {f"periods {SPAN * s + 1} to {SPAN * (s + 1)}": s for s in range(PERIODS // SPAN)}
    columns = {f"{m} holds": where("metric", m, share("held")) for m in METRICS}
    columns |= {title: where("span", s, share("held")) for title, s in spans.items()}
    columns |= {"status ok": share("ok"), "holds where ok": share("held_ok")}
    columns |= {f"{m}, width": where("metric", m, averaged("width")) for m in METRICS}
    out = {f"{name}-coverage": grouped(ours, by, columns)}
    ways = (OURS, "labels only", "CBPE", "DLE", "reference")
    errors = {way: where("way", way, averaged("error")) for way in ways}
    out[f"{name}-errors"] = grouped(estimates, [*by, "metric"], errors)
    ways = (OURS, "fewlabels, as of then", "labels only", "CBPE", "DLE")
    accuracy = estimates[estimates["metric"] == "accuracy"]
    out[f"{name}-intervals"] = grouped(accuracy, by, {w: where("way", w, holds) for w in ways})
    alarms = records[records["what"] == "alarm"]
    ways = (OURS, HINDSIGHT, "CUSUM", "CBPE", "DLE")
    out[f"{name}-alarms"] = grouped(alarms, by, {w: where("way", w, _alarmed) for w in ways})
    return out


def _alarmed(own: pd.DataFrame) -> str:
    """False alarms a year; of the falls, how many are found, and the median delay."""
    if not len(own):
        return "-"
    false = f"{YEAR * own['false'].sum() / max(own['quiet'].sum(), 1):.1f}"
    fell = own[own["found"].notna()] if "found" in own else own[:0]
    if not len(fell):
        return false
    delay = fell["delay"].astype(float).median()
    return f"{false}; {int(fell['found'].sum())} of {len(fell)}, {number(delay, 1)}"


def cells(plan: Plan) -> list[Arguments]:
    """A cell for each world and number of labels."""
    asked = plan.asked
    if plan.part == "real":
        runs = range(min(RUNS, asked["worlds"]))
        every = product(plan.some(SETS, -2), plan.some(LABELS, -2), runs)
        return [{"kind": k, "labels": n, "world": w} for k, n, w in every]
    return [
        {"kind": kind, "labels": n, "world": w, "looked": w < asked["looked"]}
        for w in plan.some(range(asked["worlds"])) for kind in DRIFTS for n in plan.some(LABELS, -2)
        if n or kind != "complaints"
    ]  # fmt: skip


_DESIGN = f"{LEVEL:.0%} intervals of these items, seed {SEED}"
PARTS = {
    "simulated": Part(cells, run, blocks, f"{PERIODS} periods a world, {_DESIGN}"),
    "real": Part(cells, run, blocks, f"{RUNS} choices of labels, {_DESIGN}"),
}


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=FutureWarning)
    run_page(__doc__, "monitor", PARTS, {"real"}, worlds=40, looked=8)
