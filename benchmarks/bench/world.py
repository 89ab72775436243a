"""What a benchmark runs on: items whose labels are all known, and classifiers for them; its cells.

A cell is the least that is computed, kept and resumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, NamedTuple
from typing import Protocol as Interface

import numpy as np

import fewlabels as fl
from bench.protocol import REFERENCE, Protocol
from bench.splits import generator
from fewlabels import InputError, Predictions

Array = np.ndarray
Body = dict[str, Any]
"""What a cell found: `rows` with the values of `ROW`, and `traits` (level, run, name, value).

`runs.run_jobs` puts its `seconds` beside them.
"""

ROW = ("run", "group", "model", "metric", "estimate", "low", "high", "status", "message")
FAILED = "failed"


@dataclass(frozen=True)
class DatasetFacts:
    """Sizes, classifiers and classes of a data set, and what to know of it.

    `n_half` is how many items a run draws from; `digest` is of all that results depend on.
    """

    name: str
    n_items: int
    n_half: int
    models: tuple[str, ...]
    classes: tuple[Any, ...]
    notes: tuple[str, ...]
    digest: str


class Cell(NamedTuple):
    """What is computed at once.

    kind is "estimates" (one method on one split), "truth" (the other half of a run), "curve" (all
    draws of one size of the labels-only curve) or "traits" (of a data set). What does not apply
    is "", 0, or -1 for the run.
    """

    kind: str
    dataset: str
    level: str = ""
    n_labeled: int = 0
    n_unlabeled: int = 0
    run: int = -1
    method: str = ""


Job = tuple[Cell, ...]
"""Cells that share a split, computed one after another by one worker."""


def failure(status: str, error: Exception, run: int) -> Body:
    """What a cell found that could not be computed: one row without a classifier."""
    kind = type(error)
    text = str(error) if kind.__module__.startswith("fewlabels") else f"{kind.__name__}: {error}"
    row = [run, "", "", "", *[np.nan] * 3, str(status), " ".join(text.split())[:300]]
    return {"rows": [row], "traits": []}


Trait = tuple[str, int, str, float]
"""Level, run (-1: all), name, value."""

JOIN = "+"
"""Between the names of the classifiers of a subset."""


class World(Interface):
    """A data set of a benchmark; every label is known.

    `labels` (n,) are class indices, `by` the columns to estimate by; `levels` are those of what the
    protocol varies, ("",) where it varies nothing.
    """

    facts: DatasetFacts
    labels: Array
    by: tuple[str, ...]
    levels: tuple[str, ...]

    def halves(self, run: int) -> tuple[Array, Array]:
        """Rows that a run draws from, and rows that its truth is computed on."""
        ...

    def predictions(self, rows: Array, level: str, run: int) -> Predictions:
        """What the classifiers of a level and run say of some rows, with all labels."""
        ...

    def traits(self) -> list[Trait]:
        """What is known of the data set and its levels besides errors."""
        ...

    def traits_of_run(self, level: str, run: int, truth: Predictions) -> list[Trait]:
        """The same of one run, where the classifiers are new in every run."""
        ...


def measured(
    items: Predictions, metrics: Sequence[str], by: Sequence[str] = ()
) -> tuple[list[str], Array]:
    """Names of the groups, "" first for all items, and metrics (groups, M, metrics) by all labels.

    With all labels the estimate from labels only is the metric itself.
    """
    found = fl.estimate(
        items, REFERENCE, list(metrics), by=list(by) or None, confidence_level=None,
        estimand="sample", workers=1,
    )  # fmt: skip
    groups = [group.group or "" for group in found.groups]
    values = np.array([row.value for row in found.rows], dtype=float)
    return groups, values.reshape(len(groups), items.n_models, len(metrics))


def levels_of(protocol: Protocol, models: tuple[str, ...], dataset: str) -> tuple[str, ...]:
    """Levels for a data set of these classifiers; ("",) where nothing is varied."""
    if protocol.factor != "subset":
        return protocol.levels if protocol.factor else ("",)
    size = protocol.subset_size
    if len(models) < size:
        raise InputError(f"has {len(models)} classifiers, and subsets need {size} (`subset_size`)")
    if comb(len(models), size) <= protocol.subsets:
        return tuple(map(JOIN.join, combinations(models, size)))
    rng = generator("subsets", protocol.seed, dataset, size)
    found: set[tuple[int, ...]] = set()
    while len(found) < protocol.subsets:
        found.add(tuple(sorted(rng.choice(len(models), size, replace=False).tolist())))
    return tuple(JOIN.join(models[j] for j in places) for places in sorted(found))


def truth_level(factor: str, level: str) -> str:
    """Labels drawn or expected change no truth, and a subset's is part of the whole set's."""
    return "" if factor in ("labels", "subset") else level


def varied(predictions: Predictions, factor: str, level: str) -> Predictions:
    """The predictions of a level."""
    if factor == "sharpness" and level and float(level) != 1:
        return predictions.with_probabilities(sharpen(predictions.probabilities, float(level)))
    if factor == "subset" and level:
        return predictions.select_models(level.split(JOIN))
    return predictions


def sharpen(p: Array, exponent: float) -> Array:
    """p^a / sum p^a over the last axis (SSME, D.4); a below 1 makes probabilities duller."""
    raised = (p / p.max(axis=-1, keepdims=True)) ** exponent
    return raised / np.sum(raised, axis=-1, keepdims=True)


def quality(predictions: Predictions) -> dict[str, float]:
    """Mean accuracy and mean calibration error over the classifiers, by all labels."""
    accuracy, ece = measured(predictions, ["accuracy", "ece"])[1][0].T
    return {"mean_accuracy": mean_of(accuracy), "mean_ece": mean_of(ece)}


def likeness(predictions: Predictions) -> dict[tuple[str, str], dict[str, float]]:
    """Of every pair of classifiers, how their scores and their mistakes go together.

    score_correlation: of their log-ratios; score_correlation_within_class: the same after each
    class's mean is taken off (what is left when the label is known); error_correlation: phi of
    being wrong; agreement: share of items with the same hard prediction. With more than two
    classes correlations are means over the log-ratios.
    """
    p = np.clip(predictions.probabilities, 1e-6, 1 - 1e-6)
    scores = np.log(p[..., :-1]) - np.log(p[..., -1:])
    wrong = (predictions.hard != predictions.labels[:, None]).astype(float)
    found = {}
    for a, b in combinations(range(predictions.n_models), 2):
        both = predictions.has_probabilities[:, [a, b]].all(axis=1)
        pair = [scores[both, j] for j in (a, b)]
        within = [own.copy() for own in pair]
        for k in range(predictions.n_classes):
            rows = predictions.labels[both] == k
            for own in within if rows.any() else ():
                own[rows] -= own[rows].mean(axis=0)
        agree = predictions.hard[both, a] == predictions.hard[both, b]
        found[predictions.models[a], predictions.models[b]] = {
            "score_correlation": _correlation(*pair),
            "score_correlation_within_class": _correlation(*within),
            "error_correlation": _correlation(wrong[both, a][:, None], wrong[both, b][:, None]),
            "agreement": mean_of(agree),
        }
    return found


def _correlation(a: Array, b: Array) -> float:
    """Mean over columns of Pearson's correlation; NaN where one side never changes."""
    if len(a) < 2:
        return float("nan")
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    scale = np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0))
    return mean_of((a * b).sum(axis=0)[scale > 0] / scale[scale > 0])


def mean_of(values: Array | Sequence[float]) -> float:
    """Mean of the numbers that are known; NaN of none."""
    known = np.asarray(values, dtype=float)
    known = known[~np.isnan(known)]
    return float(known.mean()) if len(known) else float("nan")
