"""Contestants as classifiers: win rates and strengths from verdicts on pairs of them.

A classifier's hard prediction of a comparison is that it wins itself. Verdicts are summed by pair
in the draws that metrics are made of. A pair is a group of the evaluation (`Entries.group`), so
that each has a pseudo-observation in every draw: one with few verdicts is not taken to be certain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from fewlabels.evaluation.draws import INTERVAL_SOFT, POPULATION, DrawKind, Entries, LabelWeights
from fewlabels.evaluation.evaluator import Evaluator, Measured
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.interval_draws import point_value
from fewlabels.kernels.pairwise import both_orders, groups_of_equals, strengths, win_rates
from fewlabels.kernels.weighting import Indicator, Weighting
from fewlabels.metrics.base import Metric
from fewlabels.metrics.confusion import Confusion

WIN_RATE, BRADLEY_TERRY, ELO, ORDER = "win_rate", "bradley_terry", "elo", "order"
_STRENGTH, _ORDER, _PRIOR = 3.0, 1.0, 0x0DE5
"""Standard deviations of normal priors, and their salt. 10 verdicts outweigh that of a strength 20
times; that of the order, in draws about one of its own, gives the first of equals 27 to 73%."""

_ANY = -np.inf, np.inf
PAIR_METRICS = {
    name: Metric(name, about, 1, (low, high), "hard", Confusion(), np.asarray)
    for name, about, low, high in (
        (WIN_RATE, "share won against the average opponent, a tie being half", 0.0, 1.0),
        (BRADLEY_TERRY, "log strength of Bradley and Terry, of mean 0; ties by Davidson", *_ANY),
        (ELO, "1000 + 400 / ln(10) times the log strength", *_ANY),
    )
}
"""Metrics of contestants; `PairEvaluator` finishes them from sums by pair."""


class _PairSums:
    """Label weights of each class by the ordered pair of an item, (P, K, D)."""

    def __init__(self, pair: Indicator, n_classes: int) -> None:
        self.pair = pair
        self.sums = np.zeros((pair.size, n_classes, 1))

    def add(self, weights: Weighting, block: slice | None = None) -> None:
        """Add a block of items with their pseudo-observations."""
        pair = self.pair.part(block)
        self.sums = self.sums + weights.by_class(pair).swapaxes(0, 1)
        if (near := weights.pseudo) is not None:
            np.add.at(self.sums.transpose(0, 2, 1), (pair.codes[near.item], near.draw), near.mass)


@dataclass(frozen=True, eq=False)
class PairEvaluator(Evaluator):
    """Computes `PAIR_METRICS` of every contestant under one label posterior.

    `first` and `second` (n,) are who is presented so in each comparison: places among the
    classifiers of `predictions`, who are the contestants.
    """

    first: Ints = field(kw_only=True)
    second: Ints = field(kw_only=True)

    def measure(self, rows: Ints) -> dict[str, Measured]:
        """Every metric of every contestant on some of the comparisons."""
        return {n: m for n, m in self.with_order(rows).items() if n in self.metrics}

    def with_order(self, rows: Ints) -> dict[str, Measured]:
        """The same, and `ORDER`: the log odds by which the first of two equals wins, (1,)."""
        self._prepare(self.posterior)
        rows = rows[self.predictions.weight[rows] > 0]
        pairs, sums = self._sums(rows[self.posterior.speaks_of(rows)])
        value, drawn = sums(None), sums(POPULATION)
        size, expected = self.predictions.n_models, value.mean(axis=2)
        order, codes = both_orders(expected, pairs), groups_of_equals(expected, pairs, size)
        # NaN where there is no common scale, or no order effect can be told.
        scale, told = (1.0 if known else np.nan for known in (not codes.any(), order))
        both, spread = (value, drawn), np.r_[np.full(size, _STRENGTH), np.inf, _ORDER][:, None]
        rng = np.random.default_rng([self.posterior.salt & (2**64 - 1), _PRIOR])
        centre = np.zeros((size + 2, self.n_draws))
        centre[-1] = _ORDER * rng.normal(size=self.n_draws)
        fits = [
            strengths(mass, pairs, size, order=order, spread=spread, centre=middle)
            for mass, middle in zip(both, (0 * centre[:, :1], centre), strict=True)
        ]
        logs = [fit.strength.T * scale for fit in fits]
        drawn_of = {
            WIN_RATE: [win_rates(mass, pairs, size).T for mass in both],
            BRADLEY_TERRY: logs,
            ELO: [1000 + 400 / np.log(10) * log for log in logs],
            ORDER: [fit.order[:, None] * told for fit in fits],
        }
        return {
            name: Measured.from_draws(point_value(values, only_mean=False), draws)
            for name, (values, draws) in drawn_of.items()
        }

    def expected_win_rates(self, rows: Ints) -> Floats:
        """Win rates (D, C) under each parameter draw that intervals use."""
        pairs, sums = self._sums(rows)
        return win_rates(sums(INTERVAL_SOFT), pairs, self.predictions.n_models).T

    def equals(self, rows: Ints) -> list[list[str]]:
        """Contestants who have both won and lost against each other, fewest first."""
        pairs, sums = self._sums(rows[self.posterior.speaks_of(rows)])
        codes = groups_of_equals(sums(None).mean(axis=2), pairs, self.predictions.n_models)
        names = np.array(self.predictions.models)
        return sorted((names[codes == code].tolist() for code in np.unique(codes)), key=len)

    def _sums(self, rows: Ints) -> tuple[Ints, partial[Floats]]:
        """The ordered pairs (2, P) among the rows, and what sums verdicts on them (P, K, D)."""
        both = np.column_stack([self.first, self.second])[rows]
        pairs, code = np.unique(both, axis=0, return_inverse=True)
        unordered, group = np.unique(np.sort(both, axis=1), axis=0, return_inverse=True)
        entries = Entries(group=group.reshape(-1), n_groups=len(unordered))
        weights = LabelWeights.from_rows(
            self.predictions, self.posterior, rows, self.n_draws, entries
        )
        pair = Indicator(code.reshape(-1), len(pairs))
        return pairs.T, partial(self._summed, weights, pair)

    def _summed(self, weights: LabelWeights, pair: Indicator, kind: DrawKind | None) -> Floats:
        size, k = self.n_draws, self.predictions.n_classes
        if kind is None:
            size, kind = weights.value_kind
        begin, cells = partial(_PairSums, pair, k), pair.size * k
        parts = weights.summed(size, [(kind, begin)], lambda sums, _: sums[0].sums, cells=cells)
        return np.concatenate(parts, axis=2)
