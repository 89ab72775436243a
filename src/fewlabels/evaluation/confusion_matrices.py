"""Confusion matrices with intervals: each cell's share of the items, under the label posterior.

A cell's share of all items, of those with its label and of those with its prediction are metrics
like any other (`metrics.confusion.confusion_cells`), measured and guarded as the estimates are.
Where the guard has moved them, values and ends are scaled so that the values sum to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fewlabels import __version__
from fewlabels.checks.conditions import NOT_RANDOM
from fewlabels.errors import UsageError, plain_name, unknown
from fewlabels.estimates import Estimates
from fewlabels.evaluation.evaluator import Estimand, Evaluator
from fewlabels.evaluation.groups import Group
from fewlabels.evaluation.guard import Guard, guarded_rows
from fewlabels.evaluation.status import Reasons
from fewlabels.kernels.arrays import Frozen
from fewlabels.metrics.base import ratio
from fewlabels.metrics.confusion import confusion_cells
from fewlabels.report.shown import Result, plain_values

MOST_CLASSES = 20
"""With more classes a matrix cannot be read."""


class Cell(NamedTuple):
    """A cell: items with this label and prediction; each share with its interval.

    `labeled` counts labeled items; `value` is the share of all items, `of_label` of those with the
    label, `of_predicted` of those with the prediction.
    """

    status: str
    model: str
    label: Any
    predicted: Any
    labeled: int
    value: float
    low: float
    high: float
    of_label: float
    of_label_low: float
    of_label_high: float
    of_predicted: float
    of_predicted_low: float
    of_predicted_high: float


@dataclass(frozen=True, repr=False)
class ConfusionMatrices(Frozen, Result):
    """The confusion matrix of each classifier, `rows` by classifier, label and prediction.

    `counted` says what the shares are of: "all" items, or the "labeled" ones alone.
    """

    _page, _row_fields, _text_columns = "confusion", Cell._fields, ("model",)

    rows: tuple[Cell, ...]
    classes: tuple[Any, ...]
    group: str | None
    counted: str
    n_items: int
    n_labeled: int
    method: str
    seed: int
    confidence_level: float

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        facts = {n: v for n, v in vars(self).items() if n != "rows"}
        cells = [cell._asdict() for cell in self.rows]
        out: dict[str, Any] = plain_values({"fewlabels": __version__, **facts, "cells": cells})
        return out


def confusion_matrices(estimates: Estimates, group: str | None = None) -> ConfusionMatrices:
    """The confusion matrix of each classifier that gives classes, of all items or of a group."""
    items, posterior, k = estimates.judged, estimates.judged_by, len(estimates.classes)
    if k > MOST_CLASSES:
        raise UsageError(
            f"a confusion matrix of {k:,} classes cannot be read (at most {MOST_CLASSES}): put "
            "rare ones together with --same RARE=other"
        )
    if posterior.means is not None:
        raise UsageError(
            f"method {estimates.method!r} estimates one mean at a time and has no confusion "
            "matrix; take one that infers labels, such as 'auto' or 'labeled'"
        )
    gives = items.gives("hard")
    if not gives.any():
        raise UsageError(
            "a confusion matrix needs predicted classes, and there are scores alone; give a column "
            "of predicted classes, --hard NAME=COL"
        )
    rows = np.arange(items.n_items)
    if group is not None:
        groups = {name: r for column in estimates.group_rows.values() for name, r in column.items()}
        if group not in groups:
            raise UsageError(unknown("group", group, groups, "estimate `by` a column first"))
        rows = groups[group]
    size = next(one for one in estimates.groups if one.group == group)
    level = None if np.isnan(estimates.confidence_level) else estimates.confidence_level
    estimand: Estimand = "population" if estimates.estimand == "population" else "sample"
    evaluator = Evaluator(items, posterior, confusion_cells(k), estimand, level)
    random = NOT_RANDOM not in estimates.diagnostics
    guard = Guard.from_evaluator(evaluator, estimates.method, random=random)
    shares, _ = guarded_rows(
        evaluator, guard, Group(group, rows), evaluator.measure(rows), level, Reasons(),
        size.n_items,
    )  # fmt: skip
    # By classifier, prediction, label, what the share is of, and value or end: (M, K, K, 3, 3).
    found = np.array([(row.value, row.low, row.high) for row in shares])
    found = found.reshape(-1, k, k, 3, 3)
    for of, axes in enumerate(((1, 2), (1,), (2,))):
        total = found[..., of, :1].sum(axis=axes, keepdims=True)
        found[..., of, :] = np.minimum(ratio(found[..., of, :], total), 1.0)
    names = [plain_name(c) for c in estimates.classes]
    inside = np.isin(items.named[0], rows)
    item, label = (each[inside] for each in items.named)
    out = []
    for j in np.flatnonzero(gives).tolist():
        called, count = items.hard_of(item, j), np.zeros((k, k))
        there = called >= 0
        np.add.at(count, (called[there], label[there]), items.times[item[there]])
        status = str(shares[3 * k * k * j].status)
        out += [
            Cell(
                status, items.models[j], names[b], names[a], int(count[a, b]),
                *found[j, a, b].ravel().tolist(),
            )
            for b in range(k)
            for a in range(k)
        ]  # fmt: skip
    return ConfusionMatrices(
        tuple(out), tuple(names), group, "all" if posterior.infers else "labeled",
        size.n_items, size.n_labeled, estimates.method, estimates.seed, estimates.confidence_level,
    )  # fmt: skip
