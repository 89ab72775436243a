"""Confusion matrices with intervals: each cell's share of the items, under the label posterior.

A cell is a metric like any other (`metrics.confusion.confusion_cells`), measured and guarded as the
estimates are; then values and each draw are divided by their sum, so that the cells of a draw are a
distribution. Shares of a label's row, and of a prediction's column, are ratios within a draw.
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
from fewlabels.evaluation.guard import Guard
from fewlabels.evaluation.status import judge
from fewlabels.kernels.arrays import Floats, Frozen
from fewlabels.kernels.interval_draws import interval
from fewlabels.metrics.base import ratio
from fewlabels.metrics.confusion import confusion_cells
from fewlabels.report.shown import Result, plain_values

MOST_CLASSES = 30
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

    _text, _row_fields, _text_columns = "render_confusion", Cell._fields, ("model",)

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
    """The confusion matrix of each classifier that gives classes, of all items or of a group.

    Raises
    ------
    UsageError
        If there is no such group, more than 30 classes, no classifier with classes, or the method
        knows means alone.
    """
    items, posterior, k = estimates.judged, estimates.judged_by, len(estimates.classes)
    if k > MOST_CLASSES:
        raise UsageError(
            f"a confusion matrix of {k:,} classes cannot be read (at most {MOST_CLASSES}): put "
            "rare classes together with --same RARE=other, or grades with --pass-from GRADE"
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
    metrics, level = confusion_cells(k), estimates.confidence_level
    bare = np.isnan(level)
    estimand: Estimand = "population" if estimates.estimand == "population" else "sample"
    evaluator = Evaluator(items, posterior, metrics, estimand, None if bare else level)
    random, where = NOT_RANDOM not in estimates.diagnostics, Group(group, rows)
    guard = Guard.from_evaluator(evaluator, estimates.method, random=random)
    every = evaluator.measure(rows)
    if guard is not None:
        every = guard.adjust(where, every, size.n_items).measured
    shares = np.stack([one.value for one in every.values()], -1).reshape(-1, k, k)
    draws = np.stack([one.draws for one in every.values()], -1).reshape(-1, len(gives), k, k)
    shares, draws = (ratio(x, x.sum(axis=(-2, -1), keepdims=True)) for x in (shares, draws))

    def ends(axis: int | None) -> tuple[Floats, Floats, Floats]:
        """Shares (M, K, K) of the sums over an axis, and their intervals; None: of all."""
        value, drawn = shares, draws
        if axis is not None:
            value, drawn = (ratio(x, x.sum(axis=axis, keepdims=True)) for x in (shares, draws))
        return value, *interval(value, drawn, level, (0.0, 1.0))

    columns = [*ends(None), *ends(-2), *ends(-1)]
    names = [plain_name(c) for c in estimates.classes]
    item, label = items.named
    inside = np.isin(item, rows)
    cells = []
    for j in np.flatnonzero(gives).tolist():
        called = items.hard_of(item[inside], j)
        there = called >= 0
        count, place = np.zeros((k, k)), (called[there], label[inside][there])
        np.add.at(count, place, items.times[item[inside]][there])
        metric, model = metrics["0,0"], items.models[j]
        verdict = judge(items, posterior, where, metric, model, float(shares[j, 0, 0]), {})
        cells += [
            Cell(
                str(verdict.status), model, names[b], names[a], int(count[a, b]),
                *(float(column[j, a, b]) for column in columns),
            )
            for b in range(k)
            for a in range(k)
        ]  # fmt: skip
    return ConfusionMatrices(
        tuple(cells), tuple(names), group, "all" if posterior.infers else "labeled",
        size.n_items, size.n_labeled, estimates.method, estimates.seed, level,
    )  # fmt: skip
