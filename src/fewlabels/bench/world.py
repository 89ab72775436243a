"""What a benchmark runs on: items whose labels are all known, and classifiers for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from fewlabels.bench.results import DatasetFacts
from fewlabels.evaluation.groups import all_and_groups
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.metrics.base import HardLabels
from fewlabels.metrics.plans import Chosen, finish_labels, prepare, view_of
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
    found = finish_labels(plans, chosen, HardLabels(predictions.labels[:, None]))
    return np.stack([found[name][0] for name in chosen], axis=1)
