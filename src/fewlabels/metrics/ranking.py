"""Metrics of rankings: AUC and average precision, one class against the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fewlabels.kernels import ranking
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.weighting import Weighting
from fewlabels.metrics.base import Metric, Plan, ScoreView, Statistic

_AT_ONCE = 2**19
"""Sums held at a time, of as many classes as fit."""


@dataclass(frozen=True, eq=False)
class _RankingPlan(Plan):
    """Weight of each class and of all by place in the ranking for it: state (2, places, 1, D).

    `place` (n, C) is that of each item for each class, counted from the first of the class. Places
    of a class follow those of the one before, its groups one after the other, each from the highest
    score down: `ends` (C, G + 1) is where a class starts and where its groups end. `several`
    (places,) marks places with more than one score. If `whole`, of all items at once or of groups,
    each class is digested when it is summed, so that only its sums are held.
    """

    place: Array
    classes: Sequence[int]
    ends: Ints
    several: Bools
    whole: bool

    @property
    def cells(self) -> int:
        """Two values of each place; of groups, or where items are few, of each ranking."""
        return self.digest_cells if self.whole else 2 * len(self.several)

    @property
    def digest_cells(self) -> int:
        """Two values of each class and group."""
        return 2 * self.ends[:, 1:].size

    def state(self, weights: Weighting, block: slice | None = None) -> Floats:
        return self.measured(weights) if self.whole else self.add(None, weights, block)

    def add(self, sums: Floats | None, weights: Weighting, block: slice | None = None) -> Floats:
        if self.whole:
            return super().add(sums, weights, block)
        place = self.place if block is None else self.place[block]
        state = np.zeros((2, len(self.several), 1, weights.size)) if sums is None else sums
        for some in self._blocks(weights.size):
            hits, total = state[:, self._places(some), 0]
            self._add(weights, some, place, hits, total)
        return state

    def measured(self, weights: Weighting) -> Floats:
        values = np.empty((2, *self.ends[:, 1:].shape, weights.size))
        cells, alike = weights.cells, weights.total.shape[1] == 1 and weights.pseudo is None
        for some in self._blocks(weights.size):
            within = self._places(some)
            size = within.stop - within.start
            hits = np.zeros((size, weights.size))
            total = np.zeros((size, 1 if alike else weights.size))
            self._add(weights, some, self.place, hits, total)
            values[:, some] = self._areas(hits, total, some, cells)
        return values

    def digest(self, state: Floats) -> Floats:
        if self.whole:
            return state
        values = np.empty((2, len(self.classes), state.shape[-1]))
        for some in self._blocks(state.shape[-1]):
            hits, total = state[:, self._places(some)]
            values[:, some] = self._areas(hits, total, some, state.size)[:, :, 0]
        return values

    def _blocks(self, size: int) -> list[slice]:
        """Classes that are summed together."""
        largest = int((self.ends[:, -1] - self.ends[:, 0]).max())
        return spans(len(self.classes), max(_AT_ONCE // max(largest * size, 1), 1))

    def _places(self, some: slice) -> slice:
        return slice(int(self.ends[some.start, 0]), int(self.ends[some.stop - 1, -1]))

    def _add(
        self, weights: Weighting, some: slice, place: Array, hits: Floats, total: Floats
    ) -> None:
        """Add the weight of some classes and of all by place: (places, D), or (places, 1)."""
        first, starts = self.classes[some.start], self.ends[some, 0] - self.ends[some.start, 0]
        at = place[:, some] + starts.astype(np.int32)
        weights.add_by_place(at, first, hits, total)
        if weights.pseudo is not None:
            item, draw, _, mass, total_mass = weights.pseudo
            hits[at[item], draw[:, None]] += mass[:, first : first + at.shape[1]]
            total[at[item], draw[:, None]] += total_mass[:, None]

    def _areas(self, hits: Floats, total: Floats, some: slice, cells: int) -> Floats:
        """Areas of some classes by group, (2, classes, G, D)."""
        within, ends = self._places(some), self.ends[some]
        several = self.several[within]
        bounds = np.append(ends[:, :-1], within.stop) - within.start
        out = ranking.group_areas(hits, total, bounds, several, cells)
        return out.reshape(2, *ends[:, 1:].shape, -1)


@dataclass(frozen=True)
class Ranking(Statistic):
    """AUC and average precision of each class against the rest, (2, classes, D).

    Two classes: the positive one is ranked. More: each. Exact if requested, and for groups; else by
    places of the highest scores and bins of logits.
    """

    def prepare(self, view: ScoreView) -> Plan:
        """Rank the items by the score of each class."""
        classes, columns = _columns(view)
        exact = view.exact or view.group is not None
        coding: Callable[[Floats], tuple[Ints, int]] = ranking.dense_codes
        if not exact:
            top, bins = ranking.n_places(len(classes))
            others: Callable[[Floats], tuple[Ints, int]] = partial(ranking.logit_codes, bins=bins)
            if view.probabilities is None:
                others = partial(ranking.quantile_codes, bins=bins, times=view.times)
            coding = partial(ranking.top_codes, code_others=others, top=top)
        place = np.empty((view.n_items, len(classes)), dtype=np.int32)
        ends = np.zeros((len(classes), view.n_groups + 1), dtype=np.int64)
        several, stop = [], 0
        for row, column in enumerate(columns.T):
            codes, size = coding(column)
            if view.group is not None:  # the first group's are the highest
                codes, size = ranking.dense_codes(codes - view.group * size)
            place[:, row], count = ranking.places(codes, size)
            group = np.zeros(count, dtype=np.int64)
            if view.group is not None:
                group[place[:, row]] = view.group
            ends[row] = stop + np.searchsorted(group, np.arange(view.n_groups + 1))
            stop += count
            one = np.zeros(count, dtype=bool)
            several.append(one if exact else ranking.holds_several(column, place[:, row], count))
        return _RankingPlan(place, classes, ends, np.concatenate(several), whole=exact)

    def fixed(self, view: ScoreView, bins: int) -> Statistic:
        """Bins in logit for probabilities; for other scores, between those of a sample."""
        if view.probabilities is not None:
            return _BinnedRanking(bins, None)
        assert view.scores is not None
        return _BinnedRanking(bins, ranking.quantile_steps(view.scores, bins))


@dataclass(frozen=True, eq=False)
class _BinnedRanking(Statistic):
    """A ranking by given bins: `steps` are those of scores that are no probabilities.

    Which bins hold several scores is not known, so all are assumed to.
    """

    bins: int
    steps: tuple[Floats, Ints] | None

    def prepare(self, view: ScoreView) -> Plan:
        """Find the bin of each item."""
        classes, columns = _columns(view)
        place = np.stack([self.bins - 1 - self._codes(column) for column in columns.T], axis=1)
        ends = np.arange(len(classes))[:, None] * self.bins + np.array([0, self.bins])
        several = np.ones(len(classes) * self.bins, dtype=bool)
        return _RankingPlan(place.astype(np.int32), classes, ends, several, whole=False)

    def _codes(self, column: Floats) -> Ints:
        if self.steps is None:
            return ranking.logit_codes(column, self.bins)[0]
        return ranking.codes_at(self.steps, column)


def _columns(view: ScoreView) -> tuple[Sequence[int], Floats]:
    """Classes that are ranked, and what by, (n, classes)."""
    p = view.probabilities
    if p is None:
        assert view.scores is not None
        return [1], view.scores[:, None]
    return ([1], p[:, 1:]) if view.n_classes == 2 else (range(view.n_classes), p)


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
