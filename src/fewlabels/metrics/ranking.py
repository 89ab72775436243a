"""Metrics of rankings: AUC and average precision, one class against the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
        p = view.probabilities
        if p is None:
            assert view.scores is not None
            binned: Callable[[Floats], tuple[Ints, int]] = ranking.quantile_codes
            columns, classes = [view.scores], [1]
        else:
            binned = ranking.logit_codes
            classes = [1] if view.n_classes == 2 else list(range(view.n_classes))
            columns = [p[:, k] for k in classes]
        coded = [(ranking.dense_codes if view.exact else binned)(column) for column in columns]
        size = max(size for _, size in coded)
        indicators = [Indicator(codes, size) for codes, _ in coded]
        return _RankingPlan(indicators, classes, size, not view.exact)


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
