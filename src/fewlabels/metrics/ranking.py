"""Metrics of rankings: AUC and average precision, one class against the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import scipy.sparse

from fewlabels.kernels import ranking
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.binning import Indicator
from fewlabels.kernels.weighting import FEW_CLASSES, Weighting, in_every_draw
from fewlabels.metrics.base import Metric, Plan, ScoreView, Statistic

MOST_EXACT = 2**18
"""Items times classes that are ranked exactly, at most."""

MOST_LOGIT = 32
"""Of more classes bins are of ranks, of which 256 are enough, and not of logits."""

_BY_MEAN = 2**22
"""Items times classes from which on the row weights of lower ranks count by their mean."""


@dataclass(frozen=True, eq=False)
class _ExactPlan(Plan):
    """Items by group and falling score, per class that is ranked; values (2, classes, G, D)."""

    orders: Sequence[_Order]
    n_groups: int
    whole = True

    @property
    def cells(self) -> int:
        """Two values of each class and group."""
        return 2 * len(self.orders) * self.n_groups

    def state(self, weights: Weighting, block: slice | None = None) -> Floats:
        values = np.empty((2, len(self.orders), self.n_groups, weights.size))
        for row, order in enumerate(self.orders):
            own, total = order.ranked(weights)
            for g, (start, stop) in enumerate(pairwise(order.ends)):
                values[:, row, g] = ranking.areas(own[start:stop], total[start:stop])
        return values


@dataclass(frozen=True, eq=False)
class _Order:
    """Items by group and falling score of a class: (n,), and where runs of equal ones start.

    `ends` (G + 1) are where groups end, among the runs.
    """

    k: int
    items: Ints
    starts: Ints | None
    ends: list[int]
    place: Ints

    @staticmethod
    def of(k: int, score: Floats, group: Ints | None, n_groups: int) -> _Order:
        """The order of scores (n,)."""
        of = np.zeros(len(score), dtype=np.int64) if group is None else group
        items = np.lexsort((-score, of)) if n_groups > 1 else np.argsort(-score, kind="stable")
        ranked, groups = score[items], of[items]
        first = np.append(True, (ranked[1:] != ranked[:-1]) | (groups[1:] != groups[:-1]))
        starts = None if first.all() else np.flatnonzero(first)
        ends = np.searchsorted(groups[first], np.arange(n_groups + 1)).tolist()
        place = np.empty(len(items), dtype=np.int64)
        place[items] = first.cumsum() - 1
        return _Order(k, items, starts, ends, place)

    def ranked(self, weights: Weighting) -> tuple[Floats, Floats]:
        """Weight of the class and of all by run, highest first: (runs, D), or of all (runs, 1)."""
        there = weights.take(self.items)
        own, total = there.of_class(self.k), there.total
        if self.starts is not None:
            own, total = (np.add.reduceat(part, self.starts, axis=0) for part in (own, total))
        if weights.pseudo is not None:
            item, draw, _, mass, whole = weights.pseudo
            total = np.array(in_every_draw(total, weights.size)) if total.shape[1] == 1 else total
            own[self.place[item], draw] += mass[:, self.k]
            total[self.place[item], draw] += whole
        return own, total


@dataclass(frozen=True, eq=False)
class _BinsPlan(Plan):
    """Weight of each class and of all by bins of its scores: state (2, classes, bins, 1, D).

    codes (n, classes) lie below `size`; `several` (bins,) or (bins, classes) are bins of more than
    one score.
    """

    codes: Array
    classes: Sequence[int]
    size: int
    several: Bools

    @property
    def cells(self) -> int:
        """Bins of each class, twice."""
        return 2 * len(self.classes) * self.size

    def state(self, weights: Weighting, block: slice | None = None) -> Floats:
        codes = self.codes if block is None else self.codes[block]
        state = np.empty((2, len(self.classes), self.size, 1, weights.size))
        if len(self.classes) > FEW_CLASSES:
            state[0, :, :, 0] = weights.by_code(codes, self.size)
        by_mean = self.codes.size > _BY_MEAN and weights.total.shape[1] > 1
        if by_mean:
            state[1, :, :, 0] = self._totals_by_mean(codes, weights.total)
        for row, k in enumerate(self.classes):
            items = Indicator(codes[:, row], self.size)
            if len(self.classes) <= FEW_CLASSES:
                state[0, row, :, 0] = items.sums(weights.of_class(k))
            if not by_mean:
                state[1, row, :, 0] = items.sums(weights.total)
        if weights.pseudo is not None:
            item, draw, _, mass, total = weights.pseudo
            for row, k in enumerate(self.classes):
                state[0, row, codes[item, row], 0, draw] += mass[:, k]
                state[1, row, codes[item, row], 0, draw] += total
        return state

    def _totals_by_mean(self, codes: Array, rows: Floats) -> Floats:
        """Row weights by bin, (classes, bins, D), of the first ranks one by one.

        Of lower ones each item counts by the mean over the items.
        """
        n, k = codes.shape
        first = self.size - ranking.EXACT_RANKS
        cells = codes + np.arange(k, dtype=np.int64) * self.size
        count = np.bincount(cells.ravel(), minlength=k * self.size).reshape(k, self.size, 1)
        out: Floats = count * rows.mean(axis=0)
        item, row = np.nonzero(codes >= first)
        top = (codes[item, row].astype(np.int64) - first) + row * ranking.EXACT_RANKS
        shape = (k * ranking.EXACT_RANKS, n)
        matrix = scipy.sparse.csr_matrix((np.ones(len(item)), (top, item)), shape)
        out[:, first:] = (matrix @ rows).reshape(k, ranking.EXACT_RANKS, -1)
        return out

    def digest(self, state: Floats) -> Floats:
        values = np.empty((2, len(self.classes), state.shape[-1]))
        for row, (own, total) in enumerate(zip(*state, strict=True)):
            several = self.several if self.several.ndim == 1 else self.several[:, row]
            own, total = (part.reshape(self.size, -1)[::-1] for part in (own, total))
            values[:, row] = ranking.areas(own, total, several=several[::-1])
        return values


@dataclass(frozen=True)
class Ranking(Statistic):
    """AUC and average precision of each class against the rest, (2, classes, D).

    Two classes: the positive one is ranked. More: each. Exact where asked for; else by bins of
    logits, or of many classes by bins of ranks.
    """

    def prepare(self, view: ScoreView) -> Plan:
        """Rank the items by the score of each class."""
        classes, columns = _columns(view)
        if view.group is not None or (view.exact and columns.size <= MOST_EXACT):
            orders = [
                _Order.of(k, columns[:, row], view.group, view.n_groups)
                for row, k in enumerate(classes)
            ]
            return _ExactPlan(orders, view.n_groups)
        if len(classes) > MOST_LOGIT:
            codes, several = ranking.rank_codes(columns)
            return _BinsPlan(codes, classes, ranking.RANK_BINS, several)
        codes_of: Callable[[Floats], tuple[Ints, int]] = ranking.logit_codes
        if view.probabilities is None:
            codes_of = partial(ranking.quantile_codes, times=view.times)
        return _binned(columns, classes, codes_of, _of_several)

    def fixed(self, view: ScoreView, bins: int) -> Statistic:
        """Bins in logit for probabilities; for other scores, between those of a sample."""
        if view.probabilities is not None:
            return _BinnedRanking(bins, None)
        assert view.scores is not None
        return _BinnedRanking(bins, ranking.quantile_steps(view.scores, bins))


@dataclass(frozen=True, eq=False)
class _BinnedRanking(Statistic):
    """A ranking by bins that are given: `steps` are those of scores that are no probabilities."""

    bins: int
    steps: tuple[Floats, Ints] | None

    def prepare(self, view: ScoreView) -> Plan:
        """Find the bin of each item."""
        classes, columns = _columns(view)
        return _binned(columns, classes, self._codes)

    def _codes(self, column: Floats) -> tuple[Ints, int]:
        if self.steps is None:
            return ranking.logit_codes(column, self.bins)
        return ranking.codes_at(self.steps, column), self.bins


def _columns(view: ScoreView) -> tuple[Sequence[int], Floats]:
    """Classes that are ranked, and what by, (n, classes)."""
    p = view.probabilities
    if p is None:
        assert view.scores is not None
        return [1], view.scores[:, None]
    return ([1], p[:, 1:]) if view.n_classes == 2 else (range(view.n_classes), p)


def _binned(
    columns: Floats,
    classes: Sequence[int],
    codes_of: Callable[[Floats], tuple[Ints, int]],
    several_of: Callable[[Floats, Ints, int], Bools] | None = None,
) -> Plan:
    """A plan of bins; where it is not known which hold several scores, all are taken to."""
    coded = [codes_of(column) for column in columns.T]
    size = coded[0][1]
    several = np.ones(size, dtype=bool)
    if several_of is not None:
        each = [several_of(s, codes, size) for s, (codes, _) in zip(columns.T, coded, strict=True)]
        several = np.stack(each, axis=1)
    return _BinsPlan(np.stack([codes for codes, _ in coded], axis=1), classes, size, several)


def _of_several(scores: Floats, codes: Ints, size: int) -> Bools:
    """Which bins hold more than one score, (size,)."""
    _, first = np.unique(scores, return_index=True)
    out: Bools = np.bincount(codes[first], minlength=size) > 1
    return out


def _auc(state: Floats) -> Floats:
    result: Floats = state[0].mean(axis=0)
    return result


def _average_precision(state: Floats) -> Floats:
    result: Floats = state[1].mean(axis=0)
    return result


RANKING_METRICS = (
    Metric(
        "roc_auc",
        "chance that a positive item scores above a negative one; beyond two classes, the "
        "mean of each against the rest",
        1,
        (0.0, 1.0),
        "ranking",
        Ranking(),
        _auc,
        every_class=True,
    ),
    Metric(
        "average_precision",
        "mean precision over the positive items, down the ranking; beyond two classes, the "
        "mean of each against the rest",
        1,
        (0.0, 1.0),
        "ranking",
        Ranking(),
        _average_precision,
        every_class=True,
    ),
)
