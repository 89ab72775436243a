"""What a benchmark runs on: items whose labels are all known, and classifiers for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np

from bench.cells import DatasetFacts
from bench.protocol import Protocol
from bench.splits import generator
from fewlabels.errors import InputError
from fewlabels.evaluation.evaluator import Estimand
from fewlabels.evaluation.groups import all_and_groups
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.simplex import additive_log_ratio, clip
from fewlabels.metrics.calibration import CALIBRATION_METRICS
from fewlabels.metrics.plans import Chosen, finish_labels, prepare, view_of
from fewlabels.metrics.registry import resolve
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

Trait = tuple[str, int, str, float]
"""Level, run (-1: all), name, value."""


class World(ABC):
    """A data set of a benchmark; every label is known.

    `labels` (n,) are class indices, `by` the columns to estimate by.
    """

    facts: DatasetFacts
    labels: Ints
    by: tuple[str, ...]

    @abstractmethod
    def levels(self) -> tuple[str, ...]:
        """Levels of what the protocol varies; ("",) where it varies nothing."""

    @abstractmethod
    def halves(self, run: int) -> tuple[Ints, Ints]:
        """Rows that a run draws from, and rows that its truth is computed on."""

    @abstractmethod
    def predictions(self, rows: Ints, level: str, run: int) -> Predictions:
        """What the classifiers of a level and run say of some rows, with all labels."""

    @abstractmethod
    def traits(self) -> list[Trait]:
        """What is known of the data set and its levels besides errors."""

    @abstractmethod
    def traits_of_run(self, level: str, run: int, truth: Predictions) -> list[Trait]:
        """The same of one run, where the classifiers are new in every run."""


def measured(predictions: Predictions, chosen: Chosen) -> Floats:
    """Metrics (M, metrics) by all labels; NaN where undefined.

    Each classifier counts on the items that it has predictions for.
    """
    if not predictions.n_items:
        return np.full((predictions.n_models, len(chosen)), np.nan)
    if predictions.has_probabilities.all():
        return _of_labels(predictions, range(predictions.n_models), chosen)
    parts = []
    for j in range(predictions.n_models):
        own = predictions.take(predictions.has_probabilities[:, j])
        nothing = np.full((1, len(chosen)), np.nan)
        parts.append(_of_labels(own, [j], chosen) if own.n_items else nothing)
    return np.concatenate(parts)


def measured_by_group(
    predictions: Predictions, chosen: Chosen, by: Sequence[str]
) -> tuple[list[str], Floats]:
    """Names of the groups, "" first for all items, and metrics (groups, M, metrics)."""
    groups = all_and_groups(predictions, by)
    values = [
        measured(predictions if g.name is None else predictions.take(g.rows), chosen)
        for g in groups
    ]
    return [g.name or "" for g in groups], np.stack(values)


def _of_labels(predictions: Predictions, models: Sequence[int], chosen: Chosen) -> Floats:
    # Not `metrics_of_labels`: its threads and chunks cost more than one small labeling does.
    rows = np.arange(predictions.n_items)
    plans = [prepare(view_of(predictions, rows, j), chosen, exact=True) for j in models]
    found = finish_labels(plans, chosen, predictions.labels[:, None], predictions.n_classes)
    return np.stack([found[name][0] for name in chosen], axis=1)


JOIN = "+"
"""Between the names of the classifiers of a subset."""


def levels_of(protocol: Protocol, models: tuple[str, ...], dataset: str) -> tuple[str, ...]:
    """Levels for a data set of these classifiers; ("",) where nothing is varied.

    Raises
    ------
    InputError
        If the data set has too few classifiers for a subset.
    """
    if protocol.factor == "subset":
        return tuple(JOIN.join(s) for s in _subsets(protocol, models, dataset))
    return protocol.levels if protocol.factor else ("",)


def _subsets(protocol: Protocol, models: tuple[str, ...], dataset: str) -> list[tuple[str, ...]]:
    size = protocol.subset_size
    if len(models) < size:
        have = f"{len(models)} classifier{'' if len(models) == 1 else 's'}"
        raise InputError(
            f"has {have}, and subsets need {size}: give it more, or a protocol of your own another "
            "`subset_size`"
        )
    if comb(len(models), size) <= protocol.subsets:
        return list(combinations(models, size))
    rng = generator("subsets", protocol.seed, dataset, size)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < protocol.subsets:
        found[tuple(sorted(rng.choice(len(models), size, replace=False).tolist()))] = None
    return [tuple(models[j] for j in places) for places in sorted(found)]


def truth_level(factor: str, level: str) -> str:
    """Labels drawn or expected change no truth, and a subset's is part of the whole set's."""
    return "" if factor in ("labels", "subset") else level


def estimand_of(protocol: Protocol, level: str) -> Estimand:
    """The paper's metrics of drawn labels are those of these very items."""
    drawn = protocol.estimand == "sample" if protocol.factor != "labels" else level == "drawn"
    return "sample" if drawn else "population"


def gaps_by_item(posterior: LabelPosterior, predictions: Predictions) -> Floats:
    """Mean over items of |P(event) - its probability| of each classifier, (M,) (SSME, E.2).

    The event is that of `ece`: class 1 of two, of more that the predicted class is right. Where
    nothing is put into bins nothing cancels within one, so that it is at least the ECE of
    expected labels.
    """
    p, k = predictions.probabilities, predictions.n_classes
    out = np.full(predictions.n_models, np.nan)
    if p is None:
        return out
    for j in range(predictions.n_models):
        own = posterior.of(j)
        rows = np.flatnonzero(~np.isnan(p[:, j, 0]))
        rows = rows[own.speaks_of(rows)]
        event = np.ones(len(rows), np.int64) if k == 2 else p[rows, j].argmax(axis=1)
        gap = own.probabilities[rows, event] - p[rows, j, event]
        out[j] = np.abs(gap).mean() if len(rows) else np.nan
    return out


BINNED = frozenset(metric.name for metric in CALIBRATION_METRICS)
"""Metrics of which `gaps_by_item` is another estimate."""


def varied(predictions: Predictions, factor: str, level: str) -> Predictions:
    """The predictions of a level."""
    if factor == "sharpness" and level:
        return _sharpened(predictions, float(level))
    if factor == "subset" and level:
        return predictions.select_models(level.split(JOIN))
    return predictions


def _sharpened(predictions: Predictions, exponent: float) -> Predictions:
    p = predictions.probabilities
    if p is None or exponent == 1:
        return predictions
    return Predictions(
        sharpen(p, exponent),
        predictions.labels,
        groups=predictions.groups,
        models=predictions.models,
        classes=predictions.classes,
        positive=predictions.positive,
    )


def sharpen(p: Floats, exponent: float) -> Floats:
    """p^a / sum p^a over the last axis (SSME, D.4); a below 1 makes probabilities duller."""
    raised = (p / p.max(axis=-1, keepdims=True)) ** exponent
    out: Floats = raised / np.sum(raised, axis=-1, keepdims=True)
    return out


def quality(predictions: Predictions) -> dict[str, float]:
    """Mean accuracy and mean calibration error over the classifiers, by all labels."""
    accuracy, ece = _mean(measured(predictions, resolve(["accuracy", "ece"]))).tolist()
    return {"mean_accuracy": accuracy, "mean_ece": ece}


def likeness(predictions: Predictions) -> dict[tuple[str, str], dict[str, float]]:
    """Of every pair of classifiers, how their scores and their mistakes go together.

    score_correlation: of their log-ratios; score_correlation_within_class: the same after each
    class's mean is taken off (what is left when the label is known); error_correlation: phi of
    being wrong; agreement: share of items with the same hard prediction. With more than two
    classes correlations are means over the log-ratios.
    """
    p = predictions.probabilities
    assert p is not None
    present = predictions.has_probabilities
    wrong = (predictions.hard != predictions.labels[:, None]).astype(float)
    found = {}
    for a, b in combinations(range(predictions.n_models), 2):
        both = present[:, a] & present[:, b]
        scores = [additive_log_ratio(clip(p[both, j][:, None])) for j in (a, b)]
        labels = predictions.labels[both]
        within = [_within(s, [labels == k for k in range(predictions.n_classes)]) for s in scores]
        found[predictions.models[a], predictions.models[b]] = {
            "score_correlation": _correlation(*scores),
            "score_correlation_within_class": _correlation(*within),
            "error_correlation": _correlation(wrong[both, a][:, None], wrong[both, b][:, None]),
            "agreement": float(_mean(predictions.hard[both, a] == predictions.hard[both, b])),
        }
    return found


def _within(scores: Floats, members: list[Bools]) -> Floats:
    """Scores without the mean of their class."""
    out = scores.copy()
    for rows in members:
        if rows.any():
            out[rows] -= scores[rows].mean(axis=0)
    return out


def _correlation(a: Floats, b: Floats) -> float:
    """Mean over columns of Pearson's correlation; NaN where one side never changes."""
    if len(a) < 2:
        return float("nan")
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    scale = np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0))
    moves = scale > 0
    if not moves.any():
        return float("nan")
    return float(((a * b).sum(axis=0)[moves] / scale[moves]).mean())


def _mean(values: Floats | Bools) -> Floats:
    """Mean over the first axis of what is known."""
    values = np.asarray(values, dtype=float)
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    out: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return out
