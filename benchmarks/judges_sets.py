"""Votes whose labels are all known, ways to ask for the accuracy of who votes, and what each says.

Annotators and LLM judges. A run draws up to 1,000 unlabeled items and 20, 50 or 100 labeled ones
(at most half of a set), and asks a way for the accuracy of every classifier. Only classifiers with
50 votes count (the ten busiest, where these are fewer), in the runs where two of their votes are on
labeled items: labels alone say nothing of the others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import ppi_py

import fewlabels as fl
from bench.splits import generator, seed_of
from fewlabels.errors import Status
from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.kernels.votes import vote_shares
from fewlabels.predictions import Predictions
from parts import SEED
from study.sets import truth_of as truths
from votes_crowd import CROWDS, read_crowd

N_LABELED, N_UNLABELED, LEVEL = (20, 50, 100), 1_000, 0.9
LEAST_VOTES, BUSIEST, LEAST_LABELS = 50, 10, 2


# --- the sets ---------------------------------------------------------------------------------


def _crowd(name: str) -> Callable[[Path], Predictions]:
    """Annotators, on the items with a gold label."""

    def read(data: Path) -> Predictions:
        crowd = read_crowd(data, name)
        return crowd.predictions.take(crowd.items).with_labels(crowd.gold)

    return read


def verdicts(data: Path, orders: tuple[str, ...] = ("order1",)) -> Predictions:
    """Verdicts in some orders of the two answers; the second is no independent judge."""
    frame = pd.read_parquet(data / "llm_judges" / "judgebench.parquet")
    columns = [c for c in frame if c.startswith("y__") and c.endswith(orders)]
    names = [c.removeprefix("y__").removesuffix("__order1") for c in columns]
    labels = frame["label"].to_numpy().astype(int)
    return Predictions(votes=frame[columns].to_numpy(), labels=labels, models=names)


def _panda(data: Path) -> Predictions:
    """Two judges; the label is what most of three people say, so these do not vote."""
    frame = pd.read_parquet(data / "llm_judges" / "pandalm.parquet")
    names = ["gpt35", "pandalm7b"]
    votes = frame[[f"y__{name}" for name in names]].to_numpy()
    labels = frame["majority"].to_numpy().astype(int)
    return Predictions(votes=votes, labels=labels, models=names, classes=(0, 1, 2))


class Source(NamedTuple):
    """The file that must be there, and how it is read."""

    file: str
    read: Callable[[Path], Predictions]


SETS: Mapping[str, Source] = {
    **{f"crowd: {name}": Source(f"crowd/{name}.gold.parquet", _crowd(name)) for name in CROWDS},
    "LLM judges: JudgeBench": Source("llm_judges/judgebench.parquet", verdicts),
    "LLM judges: PandaLM": Source("llm_judges/pandalm.parquet", _panda),
}
"""Of the crowd sets adultcontent2 has the votes of s5_adult, and adultcontent3 no gold labels."""


def truth_of(votes: Predictions) -> Floats:
    """Accuracy of each classifier on all items it votes on, (M,)."""
    return truths(votes, ["accuracy"])[:, 0]


def judged_of(votes: Predictions) -> tuple[str, ...]:
    """The classifiers that count: with `LEAST_VOTES`, else the `BUSIEST`."""
    busy = votes.has_hard.sum(axis=0)
    least = min(LEAST_VOTES, np.sort(busy)[-min(BUSIEST, len(busy))])
    return tuple(name for name, n in zip(votes.models, busy, strict=True) if n >= least)


def sizes_of(votes: Predictions) -> tuple[int, ...]:
    """Numbers of labels that leave half of the items without."""
    return tuple(n for n in N_LABELED if 2 * n <= votes.n_items)


def drawn(votes: Predictions, name: str, n_labeled: int, run: int) -> Predictions:
    """The items of a run; who votes on none of them is not there."""
    n = min(n_labeled + N_UNLABELED, votes.n_items)
    rng = generator("votes with labels", 1, name, n_labeled, run)
    items = votes.take(rng.choice(votes.n_items, n, replace=False))
    given = items.revealing(np.arange(n_labeled))
    there = given.has_hard.any(axis=0)
    return given.select_models([given.models[j] for j in np.flatnonzero(there)])


# --- the ways ---------------------------------------------------------------------------------


class Answer(NamedTuple):
    """Accuracy of each classifier and its interval, (M,); whether the way vouches for it."""

    value: Floats
    low: Floats
    high: Floats
    ok: Bools


Way = Callable[[Predictions, int], Answer]


def _method(name: str) -> Way:
    """One of fewlabels' methods."""

    def ask(given: Predictions, seed: int) -> Answer:
        found = fl.estimate(
            given, name, ["accuracy"], confidence_level=LEVEL, random_state=seed, workers=1
        )
        columns = (np.array([r[k] for r in found.rows], dtype=float) for k in (3, 4, 5))
        return Answer(*columns, np.array([r.status is Status.OK for r in found.rows]))

    return ask


def _shares(given: Predictions, seed: int) -> Floats:
    """How large a part of an item's votes each class has, (n, K)."""
    k = given.n_classes
    weights, empty = np.ones((given.n_models, 1)), np.full(k, 1 / k)
    return vote_shares(given.vote_counts, weights, empty)[:, :, 0]


def _by_votes(given: Predictions, seed: int) -> Floats:
    """P(class) of Dawid and Skene's model, which sees no label, (n, K)."""
    unlabeled = given.with_labels(np.full(given.n_items, -1))
    return fl.models.DawidSkene().infer(unlabeled, np.random.default_rng(seed)).marginals()


def _rectified(proxy: Callable[[Predictions, int], Floats]) -> Way:
    """ppi-python (PPI++), from a probability of each item's label that no label has touched."""

    def ask(given: Predictions, seed: int) -> Answer:
        p = proxy(given, seed)
        rows = [_rectified_one(given, p, j) for j in range(given.n_models)]
        return Answer(*np.array(rows).T, np.ones(given.n_models, dtype=bool))

    return ask


def _rectified_one(given: Predictions, p: Floats, j: int) -> tuple[float, float, float]:
    voted = given.has_hard[:, j]
    labeled, other = voted & given.labeled, voted & ~given.labeled
    if labeled.sum() < LEAST_LABELS:
        return float("nan"), float("nan"), float("nan")
    right = (given.hard[labeled, j] == given.labels[labeled]).astype(float)
    own = p[np.arange(given.n_items), np.maximum(given.hard[:, j], 0)]
    # A proxy that says the same of all items tells nothing, and its weight would be 0 / 0.
    known = labeled.sum() > 1 and other.any() and np.ptp(own[voted]) > 0
    proxies = (own[labeled], own[other]) if known else (np.zeros(len(right)), np.zeros(2))
    lam = None if known else 0.0
    value = ppi_py.ppi_mean_pointestimate(right, *proxies, lam=lam)
    low, high = ppi_py.ppi_mean_ci(right, *proxies, alpha=1 - LEVEL, lam=lam)
    return float(value[0]), float(low[0]), float(high[0])


WAYS: Mapping[str, Way] = {
    "auto": _method("auto"),
    "labels only": _method("labeled"),
    "ppi by shares of votes": _rectified(_shares),
    "ppi by Dawid-Skene": _rectified(_by_votes),
    "dawid-skene": _method("dawid-skene"),
}


# --- runs -------------------------------------------------------------------------------------


def beside(truth: float, value: float, low: float, high: float, ok: bool) -> dict[str, Any]:
    """Error, width and coverage of an estimate, and whether it is wrong and vouched for."""
    # Sums in another order may differ in the last bits.
    below, above = low > truth + 1e-9, high < truth - 1e-9
    return {
        "error": abs(value - truth), "width": high - low,
        "held": bool(low <= truth + 1e-9 and truth <= high + 1e-9),
        "wrong_ok": bool(ok and (below or above)),
    }  # fmt: skip


def asked(
    votes: Predictions, name: str, n_labeled: int, runs: Iterable[int], ways: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """What each way says in each run of the judges that count and have labels."""
    judged, truth = judged_of(votes), dict(zip(votes.models, truth_of(votes).tolist(), strict=True))
    for run in runs:
        given = drawn(votes, name, n_labeled, run)
        reached = (given.has_hard & given.labeled[:, None]).sum(axis=0) >= LEAST_LABELS
        who = [j for j, model in enumerate(given.models) if model in judged and reached[j]]
        for way in ways:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = WAYS[way](given, seed_of("judges", SEED, name, n_labeled, run))
            for j in who:
                judge = given.models[j]
                one = {"run": run, "way": way, "judge": judge, "truth": truth[judge]}
                yield one | beside(truth[judge], *(float(part[j]) for part in found))
