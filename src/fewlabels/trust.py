"""How far an estimate can be trusted: its status, and the words behind it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fewlabels.errors import Status
from fewlabels.groups import Group
from fewlabels.metrics.base import Metric
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.wording import listed

FEW = 5
"""Fewer labels than this are few whatever the metric."""


class Verdict(NamedTuple):
    """A status and, where it is not ok, the reason; `of_model` if it is this classifier's own."""

    status: Status
    reason: str | None = None
    of_model: bool = False


class Reasons:
    """Reasons in the order they came up, each once, with the classifiers they are about."""

    def __init__(self) -> None:
        self._models: dict[str, dict[str, None]] = {}

    def add(self, reason: str, model: str | None = None) -> None:
        """Note a reason, and the classifier it is about."""
        models = self._models.setdefault(reason, {})
        if model is not None:
            models[model] = None

    def sentences(self) -> list[str]:
        """One sentence per reason."""
        return [
            f"{reason} ({listed(models, 5)})" if models else reason
            for reason, models in self._models.items()
        ]


def judge(
    predictions: Predictions,
    posterior: LabelPosterior,
    group: Group,
    metric: Metric,
    model: str,
    value: float,
) -> Verdict:
    """The status of one estimate: the first that applies, from what says most about it.

    not-applicable, undefined, not-converged, few-labels, assumption, ok.
    """
    if not _applies(predictions, metric, model):
        return Verdict(
            Status.NOT_APPLICABLE,
            f"not-applicable: {metric.name} needs {_NEEDS[metric.needs]}, which some do not give",
            of_model=True,
        )
    if math.isnan(value):
        return Verdict(
            Status.UNDEFINED,
            f"undefined: {metric.name}{_where(group)}: {_why(posterior)}",
            of_model=True,
        )
    if posterior.status is Status.NOT_CONVERGED:
        return Verdict(posterior.status)  # the posterior's own warnings say why
    few = _few(predictions, group, metric, labels_only=posterior.support is not None)
    if few:
        return Verdict(Status.FEW_LABELS, f"few-labels: {few}")
    return Verdict(posterior.status)


def partly_undefined(metric: Metric, group: Group, count: int, size: int) -> str:
    """Say in how many draws a metric was undefined."""
    return f"{metric.name}{_where(group)} was undefined in {count} of {size} draws"


_NEEDS = {
    "hard": "hard predictions or probabilities",
    "probabilities": "probabilities",
    "ranking": "probabilities or scores",
}


def _applies(predictions: Predictions, metric: Metric, model: str) -> bool:
    j = predictions.models.index(model)
    if metric.needs == "hard":
        return bool((predictions.hard[:, j] >= 0).any())
    has_scores = predictions.scores is not None and not np.isnan(predictions.scores[:, j]).all()
    has_probabilities = bool(predictions.has_probabilities[:, j].any())
    return has_probabilities or (metric.needs == "ranking" and has_scores)


def _why(posterior: LabelPosterior) -> str:
    if posterior.support is not None:
        return "the labeled items do not define it (no label, or a class is missing)"
    return "these items do not define it (a class is never predicted, or there is no prediction)"


def _few(
    predictions: Predictions, group: Group, metric: Metric, *, labels_only: bool
) -> str | None:
    """Why the labels are few for this estimate, or None. No label at all is an assumption."""
    if not predictions.n_labeled:
        return None
    labels = predictions.labels[group.rows]
    labels = labels[labels >= 0]
    if not len(labels):
        borrowed = "; the labels of all items stand in" if labels_only else ""
        return f"no labeled item{_where(group)}{borrowed}"
    if not labels_only:
        # The model learns from all labels; a group borrows from the others.
        labels = predictions.labels[predictions.labeled]
    count = np.bincount(labels, minlength=predictions.n_classes)
    where = _where(group) if labels_only else ""
    if len(labels) < FEW:
        return f"only {len(labels)} labeled items{where}"
    if np.count_nonzero(count) == 1:
        return f"all labeled items{where} are of class {predictions.classes[int(count.argmax())]}"
    if metric.every_class and not count.all():
        absent = [str(c) for c, size in zip(predictions.classes, count, strict=True) if not size]
        return f"no labeled item{where} of class {', '.join(absent)}"
    return None


def _where(group: Group) -> str:
    return "" if group.name is None else f" in group {group.name}"
