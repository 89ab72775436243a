"""What confusion counts at cuts say of a classifier: its rates there, and its curves on a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fewlabels.kernels import ranking
from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.metrics.base import ratio
from fewlabels.questions.counts import Counts

GRID: Floats = (np.arange(100) + 0.5) / 100
"""Recall, or false-positive rate: (g + .5) / 100, g = 0 .. 99."""

_ROUNDING = 1e-12
"""Rates that are equal but for rounding are equal: a unit of the sampling weights must not show."""


class Rates(Mapping[str, Floats]):
    """Name -> rate (G, D) at G cuts in D draws; NaN where undefined.

    Computed when asked for, from the counts; `cost` is that of a false positive and of a false
    negative, per item.
    """

    def __init__(self, counts: Counts, cost: tuple[float, float]) -> None:
        self.tp, self.fp = counts.true_positives, counts.false_positives
        self.fn = np.maximum(counts.positives - self.tp, 0.0)
        self.tn = np.maximum(counts.negatives - self.fp, 0.0)
        self.cost = cost
        self._known: dict[str, Floats] = {}

    def __getitem__(self, name: str) -> Floats:
        if name not in self._known:
            rate = FORMULAS[name](self)
            # Weights in another unit differ in the last digits, and bounds are often fractions.
            self._known[name] = rate if name == "cost" else np.round(rate, 12)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(FORMULAS)

    def __len__(self) -> int:
        return len(FORMULAS)

    @property
    def total(self) -> Floats:
        """Weight of all items, (G, D)."""
        total: Floats = self.tp + self.fp + self.fn + self.tn
        return total


def _recall(r: Rates) -> Floats:
    return ratio(r.tp, r.tp + r.fn)


def _specificity(r: Rates) -> Floats:
    return ratio(r.tn, r.tn + r.fp)


FORMULAS: Mapping[str, Callable[[Rates], Floats]] = {
    "precision": lambda r: ratio(r.tp, r.tp + r.fp),
    "recall": _recall,
    "tpr": _recall,
    "specificity": _specificity,
    "tnr": _specificity,
    "fpr": lambda r: ratio(r.fp, r.tn + r.fp),
    "fnr": lambda r: ratio(r.fn, r.tp + r.fn),
    "f1": lambda r: ratio(2 * r.tp, 2 * r.tp + r.fp + r.fn),
    "accuracy": lambda r: ratio(r.tp + r.tn, r.total),
    "balanced_accuracy": lambda r: (r["recall"] + r["specificity"]) / 2,
    "npv": lambda r: ratio(r.tn, r.tn + r.fn),
    "predicted_positive_rate": lambda r: ratio(r.tp + r.fp, r.total),
    "prevalence": lambda r: ratio(r.tp + r.fn, r.total),
    "cost": lambda r: ratio(r.cost[0] * r.fp + r.cost[1] * r.fn, r.total),
}
"""Every rate that a condition may be about; all but `cost` lie between 0 and 1."""


Reading = tuple[Floats, Floats]


@dataclass(frozen=True)
class Kind:
    """A kind of curve.

    Attributes
    ----------
    axes
        Names of abscissa and ordinate.
    area
        Name of the metric that is the area under it.
    lacks
        Without which items it is undefined.
    read
        Ordinate at each place of the grid and the cut that it is of (D, 100), of counts; the cut
        is -1 above all cuts and G below them. What is undefined is anything.
    defined
        Whether it is defined for each draw, (D,).
    area_of
        The area (D,) of the counts in each step between cuts (G+1, D), from the lowest up.
    """

    axes: tuple[str, str]
    area: str
    lacks: str
    read: Callable[[Counts], Reading]
    defined: Callable[[Counts], Bools]
    area_of: Callable[[Floats, Floats, bool], Floats]

    def area_under(self, counts: Counts, *, exact: bool) -> Floats:
        """The area (D,), interpolated between cuts that are not every score; NaN = undefined."""
        own = np.diff(counts.true_positives, axis=0, prepend=0.0, append=counts.positives[None])
        rest = np.diff(counts.false_positives, axis=0, prepend=0.0, append=counts.negatives[None])
        # Differences of sums: rounding can leave -1e-16 where there is nothing.
        own, rest = np.maximum(own[::-1], 0.0), np.maximum(rest[::-1], 0.0)
        return np.where(self.defined(counts), self.area_of(own, rest, exact), np.nan)


def precision_at_recall(counts: Counts, grid: Floats = GRID) -> Reading:
    """Precision at the highest cut whose recall is at least that of the grid.

    Below all cuts, where a population's recall does not reach 1 on them, it is the prevalence.
    """
    precision, cut = np.zeros((2, len(counts.positives), len(grid)))
    for d, (tp, fp, p, n) in enumerate(_by_draw(counts)):
        if p > 0:
            at = np.searchsorted(tp / p, grid - _ROUNDING)
            own, rest = np.append(tp, p)[at], np.append(fp, n)[at]
            precision[d], cut[d] = own / (own + rest), at
    return precision, cut


def tpr_at_fpr(counts: Counts, grid: Floats = GRID) -> Reading:
    """True-positive rate on the straight lines between cuts, from (0, 0) to (1, 1).

    Where several cuts share a false-positive rate it is that of the lowest. The cut is the lowest
    one whose false-positive rate is not above the grid's.
    """
    tpr, cut = np.zeros((2, len(counts.positives), len(grid)))
    for d, (tp, fp, p, n) in enumerate(_by_draw(counts)):
        if p > 0 and n > 0:
            x = np.concatenate([[0.0], fp / n, [1.0]])
            y = np.concatenate([[0.0], tp / p, [1.0]])
            tpr[d] = np.interp(grid + _ROUNDING, x, y)
            cut[d] = np.searchsorted(x[:-1], grid + _ROUNDING, side="right") - 2
    return tpr, cut


def _by_draw(counts: Counts) -> Iterator[tuple[Floats, Floats, float, float]]:
    """Each draw's counts, which then lie side by side in memory."""
    tp, fp = (np.ascontiguousarray(part.T) for part in counts[:2])
    return zip(tp, fp, counts.positives, counts.negatives, strict=True)


KINDS = {
    "precision-recall": Kind(
        ("recall", "precision"),
        "average_precision",
        "positive",
        precision_at_recall,
        lambda counts: counts.positives > 0,
        lambda own, rest, exact: ranking.average_precision(own, rest, interpolate=not exact),
    ),
    "roc": Kind(
        ("fpr", "tpr"),
        "roc_auc",
        "positive or no negative",
        tpr_at_fpr,
        lambda counts: (counts.positives > 0) & (counts.negatives > 0),
        lambda own, rest, _: ranking.auc(own, rest),
    ),
}
