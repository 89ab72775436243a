"""The status of an estimate, and the reason for it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fewlabels.checks.class_words import alphabetical
from fewlabels.errors import Status, gravest_first, listed
from fewlabels.estimates import Estimate, GroupSize
from fewlabels.evaluation.groups import GROUP_DRAWS, Group
from fewlabels.kernels.arrays import Ints
from fewlabels.metrics.base import Metric
from fewlabels.metrics.confusion import Graded
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

FEW = 5
"""Fewer labels than this are few whatever the metric."""

FEW_IN_GROUP = 10
"""With fewer labels a group cannot contradict what is known of the others, as labels can elsewhere
(guard.LEAST); methods that use more than the labels take the group to be like the others."""

FEW_OF_A_CLASS = 2
"""Fewer labels of a class than this are few for a metric that rests on every class."""

FEW_ANNOTATED = 20
"""Fewer items than this are few for losses against label histograms."""


class Verdict(NamedTuple):
    """A status and, where it is not ok, the reason; `of_model` if it is this classifier's own."""

    status: Status
    reason: str | None = None
    of_model: bool = False


class Reasons:
    """Reasons in the order in which they came up, each once, with the classifiers concerned."""

    def __init__(self) -> None:
        self._models: dict[str, dict[str, None]] = {}

    def add(self, reason: str, model: str | None = None) -> None:
        """Note a reason, and the classifier it is about."""
        models = self._models.setdefault(reason, {})
        if model is not None:
            models[model] = None

    def sentences(self) -> list[str]:
        """One sentence per reason, the gravest first."""
        return gravest_first(
            f"{reason} ({listed(models, 5)})" if models else reason
            for reason, models in self._models.items()
        )


def judge(
    predictions: Predictions, posterior: LabelPosterior, group: Group, metric: Metric, model: str,
    value: float, looked_up: dict[tuple[bool, str, int], Verdict | None],
) -> Verdict:  # fmt: skip
    """The status of one estimate, the first that applies.

    In the order not-applicable, undefined, not-converged, few-labels, assumption, ok;
    `contradicted` is set afterwards (`guard.Guard.marked`). `looked_up` caches verdicts on the
    group's labels, which its other estimates share.
    """
    j = predictions.place[model]
    posterior = posterior.of(j)
    if not predictions.gives(metric.needs)[j]:
        return Verdict(
            Status.NOT_APPLICABLE,
            f"not-applicable: {metric.name} needs {_NEEDS[metric.needs]}, which some do not give",
            of_model=True,
        )
    if posterior.means is not None and metric.per_item is None:
        return Verdict(
            Status.NOT_APPLICABLE,
            "not-applicable: the method estimates only metrics that are means over items "
            "(accuracy, error_rate, brier, log_loss)",
        )
    if not math.isfinite(value):
        why = "the labeled items do not define it (no label, or a class is missing)"
        if posterior.infers:
            why = (
                "these items do not define it (a class is absent or never predicted; there is no "
                "prediction; or a function raised an error or gave no finite number)"
            )
        reason = f"undefined: {metric.name}{_where(group)}: {why}"
        return Verdict(Status.UNDEFINED, reason, of_model=True)
    if posterior.status is Status.NOT_CONVERGED:
        return Verdict(posterior.status)  # the posterior's own warnings say why
    labels_only = not posterior.infers
    key = (metric.every_class, metric.needs if labels_only else "", j if labels_only else -1)
    if key not in looked_up:
        item, label = predictions.named
        seen = np.ones(len(item), dtype=bool)
        if labels_only:
            seen = np.isin(item, predictions.given_by(metric.needs, j))
        few = _few(item[seen], label[seen], predictions, group, metric, labels_only=labels_only)
        reason = f"few-labels: {few}"
        verdict = Verdict(Status.FEW_LABELS, reason, of_model=not seen.all()) if few else None
        looked_up[key] = verdict
    verdict = looked_up[key] or Verdict(posterior.status)
    graded = isinstance(metric.statistic, Graded) and verdict.status is Status.OK
    return Verdict(Status.ASSUMPTION) if graded and alphabetical(predictions.classes) else verdict


def reasons_of_many_groups(
    column: str, rows: Sequence[Estimate], sizes: Sequence[GroupSize]
) -> Iterator[str]:
    """Reasons for the statuses of a column's groups, with counts instead of names."""
    these = f"of the {len(sizes):,} groups of {column}"
    few = sum(size.n_labeled < FEW_IN_GROUP for size in sizes)
    contradicted = len({row.group for row in rows if row.status is Status.CONTRADICTED})
    undefined = sum(row.status is Status.UNDEFINED for row in rows)
    if few:
        yield f"few-labels: {few:,} {these} have fewer than {FEW_IN_GROUP} labeled items"
    if contradicted:
        yield (
            f"contradicted: in {contradicted:,} {these} the labels and the method disagree on a "
            "metric; get more labels"
        )
    if undefined:
        yield (
            f"undefined: {undefined:,} estimates {these}, whose items do not define them (a class "
            "is absent or never predicted)"
        )
    yield (
        f"the {len(sizes):,} groups of {column} are estimated from {GROUP_DRAWS} draws each; their "
        "differences are not compared"
    )


def judge_losses(value: float, size: int, labels: int, why: str, group: str | None) -> Verdict:
    """The status of a loss against label histograms: undefined, few-labels, ok.

    The loss takes items with at least `labels` labels, of which there are `size`; `why` says why it
    would be undefined.
    """
    where = "" if group is None else f" in group {group}"
    if not math.isfinite(value):
        return Verdict(Status.UNDEFINED, f"undefined: {why}{where}", of_model=True)
    if size >= FEW_ANNOTATED:
        return Verdict(Status.OK)
    with_labels = "a label" if labels == 1 else f"{labels} labels or more"
    reason = f"few-labels: only {size} item{'s' * (size > 1)} with {with_labels}{where}"
    return Verdict(Status.FEW_LABELS, reason, of_model=True)


def partly_undefined(metric: Metric, group: Group, count: int, size: int) -> str:
    """A note on the number of draws in which a metric was undefined."""
    return f"{metric.name}{_where(group)} was undefined in {count} of {size} draws"


_NEEDS = {
    "hard": "hard predictions or probabilities",
    "probabilities": "probabilities",
    "ranking": "probabilities or scores",
}


def _few(
    item: Ints, label: Ints, predictions: Predictions, group: Group, metric: Metric, *,
    labels_only: bool,
) -> str | None:  # fmt: skip
    """Why the labels are few for this estimate, or None. No label at all is an assumption."""
    if not len(item):
        return None
    classes, in_group = predictions.classes, np.zeros(predictions.n_items, dtype=bool)
    in_group[group.rows] = True
    inside = in_group[item]
    size = predictions.size_of(np.unique(item[inside]))
    if not size:
        borrowed = "; the labels of all items are used instead" if labels_only else ""
        return f"no labeled item{_where(group)}{borrowed}"
    if size < (FEW if group.name is None or labels_only else FEW_IN_GROUP):
        taken = "" if labels_only or size < FEW else "; the group is assumed to be like the others"
        return f"only {size} labeled item{'s' * (size > 1)}{_where(group)}{taken}"
    # Labels are worth what their items weigh, and copies of one as much as one. A
    # label model learns from all of them, but nothing then shows that it is wrong.
    worth = predictions.effective_size(np.unique(item[inside]))
    if worth < FEW:
        why = "clusters" if predictions.clusters else "weights"
        return f"{size} labeled items{_where(group)}, which count like {worth:.1f} by their {why}"
    # With more than the labels, the model learns from all of them; a group borrows from the others.
    counted = inside if labels_only else np.ones_like(inside)
    times = predictions.times[item[counted]]
    count = np.bincount(label[counted], times, minlength=len(classes))
    where = _where(group) if labels_only else ""
    if np.count_nonzero(count) == 1:
        return f"all labeled items{where} are of class {classes[int(count.argmax())]}"
    if metric.every_class and not count.all():
        absent = [c for c, size in zip(classes, count, strict=True) if not size]
        return f"no labeled item{where} of class {listed(absent)}"
    if metric.every_class and (count < FEW_OF_A_CLASS).any():
        scarce = [c for c, size in zip(classes, count, strict=True) if size < FEW_OF_A_CLASS]
        return f"a single labeled item{where} of class {listed(scarce)}"
    return None


def _where(group: Group) -> str:
    return "" if group.name is None else f" in group {group.name}"
