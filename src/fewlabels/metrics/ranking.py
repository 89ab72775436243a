"""Metrics of rankings: AUC and average precision, one class against the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fewlabels.kernels import ranking
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.binning import Indicator
from fewlabels.metrics.base import HardLabels, Metric, Plan, ScorePlan, ScoreView, Statistic


@dataclass(frozen=True, eq=False)
class _RankingPlan(ScorePlan):
    """Items by score, per class that is ranked; all codes below `size`. See `Ranking`."""

    codes: Sequence[Indicator]
    classes: Sequence[int]
    size: int
    interpolate: bool

    def state(self, weights: Floats, rows: slice | None = None) -> Floats:
        state = np.empty((2, len(self.classes), self.size, weights.shape[2]))
        total = weights.sum(axis=1)
        for row, (k, codes) in enumerate(zip(self.classes, self.codes, strict=True)):
            state[0, row] = own = codes.sums(np.ascontiguousarray(weights[:, k]), rows)
            # Subtraction can leave -1e-17 where there is nothing.
            np.maximum(codes.sums(total, rows) - own, 0.0, out=state[1, row])
        return state

    def soft_state(self, weights: Floats, mass: Floats) -> Floats:
        state = np.empty((2, len(self.classes), self.size, weights.shape[2]))
        for row, (k, codes) in enumerate(zip(self.classes, self.codes, strict=True)):
            state[0, row] = own = codes.sums(np.ascontiguousarray(weights[:, k]))
            np.maximum(codes.sums(mass[:, None]) - own, 0.0, out=state[1, row])
        return state

    def digest(self, state: Floats) -> Floats:
        values = np.empty((2, len(self.classes), state.shape[-1]))
        for row, (own, other) in enumerate(zip(*state, strict=True)):
            values[0, row] = ranking.auc(own, other)
            values[1, row] = ranking.average_precision(own, other, interpolate=self.interpolate)
        return values

    def of_labels(self, labels: HardLabels) -> Floats:
        values = np.empty((2, len(self.classes), labels.size))
        for row, (k, codes) in enumerate(zip(self.classes, self.codes, strict=True)):
            draw, item = labels.positives(k)
            values[:, row] = ranking.of_hard_labels(codes.codes, self.size, draw, item, labels.size)
        return values


@dataclass(frozen=True)
class Ranking(Statistic):
    """Weight of a class and of the rest at each score: state (2, classes, codes, D).

    Two classes: the positive one is ranked. More: each against the rest. The digest is AUC and
    average precision per class, (2, classes, D).
    """

    def prepare(self, view: ScoreView) -> Plan:
        """Rank the items by the score of each class."""
        codes_of: Callable[[Floats], tuple[Ints, int]] = ranking.logit_codes
        if view.exact:
            codes_of = ranking.dense_codes
        elif view.probabilities is None:
            codes_of = partial(ranking.quantile_codes, times=view.times)
        return _plan(view, codes_of, interpolate=not view.exact)

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
        return _plan(view, self._codes, interpolate=True)

    def _codes(self, column: Floats) -> tuple[Ints, int]:
        if self.steps is None:
            return ranking.logit_codes(column, self.bins)
        return ranking.codes_at(self.steps, column), self.bins


def _plan(
    view: ScoreView, codes_of: Callable[[Floats], tuple[Ints, int]], *, interpolate: bool
) -> Plan:
    """Items by the codes of their scores, class by class."""
    p = view.probabilities
    if p is None:
        assert view.scores is not None
        columns, classes = [view.scores], [1]
    else:
        classes = [1] if view.n_classes == 2 else list(range(view.n_classes))
        columns = [p[:, k] for k in classes]
    coded = [codes_of(column) for column in columns]
    size = max(size for _, size in coded)
    indicators = [Indicator(codes, size) for codes, _ in coded]
    return _RankingPlan(indicators, classes, size, interpolate)


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
