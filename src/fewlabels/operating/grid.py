"""Curves on a grid of 100 places, from counts at cuts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fewlabels.kernels import ranking
from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.operating.points import Counts

GRID: Floats = (np.arange(100) + 0.5) / 100
"""Recall, or false-positive rate: (g + .5) / 100, g = 0 .. 99."""

_ROUNDING = 1e-12
"""Rates that are equal but for rounding are equal: a unit of the sampling weights must not show."""

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
    tp, fp = _columns(counts.true_positives), _columns(counts.false_positives)
    precision, cut = np.zeros((2, len(tp), len(grid)))
    for d, (p, n) in enumerate(zip(counts.positives, counts.negatives, strict=True)):
        if p > 0:
            at = np.searchsorted(tp[d] / p, grid - _ROUNDING)
            own, rest = np.append(tp[d], p)[at], np.append(fp[d], n)[at]
            precision[d], cut[d] = own / (own + rest), at
    return precision, cut


def tpr_at_fpr(counts: Counts, grid: Floats = GRID) -> Reading:
    """True-positive rate on the straight lines between cuts, from (0, 0) to (1, 1).

    Where several cuts share a false-positive rate it is that of the lowest. The cut is the lowest
    one whose false-positive rate is not above the grid's.
    """
    tp, fp = _columns(counts.true_positives), _columns(counts.false_positives)
    tpr, cut = np.zeros((2, len(tp), len(grid)))
    for d, (p, n) in enumerate(zip(counts.positives, counts.negatives, strict=True)):
        if p > 0 and n > 0:
            x = np.concatenate([[0.0], fp[d] / n, [1.0]])
            y = np.concatenate([[0.0], tp[d] / p, [1.0]])
            tpr[d] = np.interp(grid + _ROUNDING, x, y)
            cut[d] = np.searchsorted(x[:-1], grid + _ROUNDING, side="right") - 2
    return tpr, cut


def _columns(counts: Floats) -> Floats:
    """Draws first, so that each one's counts lie side by side."""
    return np.ascontiguousarray(counts.T)


def _average_precision(own: Floats, rest: Floats, exact: bool) -> Floats:
    return ranking.average_precision(own, rest, interpolate=not exact)


KINDS = {
    "precision-recall": Kind(
        ("recall", "precision"),
        "average_precision",
        "positive",
        precision_at_recall,
        lambda counts: counts.positives > 0,
        _average_precision,
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
