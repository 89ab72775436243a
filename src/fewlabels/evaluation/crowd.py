"""Metrics of thousands of annotators at once: one sparse product for all confusion matrices.

The state of annotator j in draw d is sum_i 1{j calls i class l} W_d[i, k] over the items that j
votes on: with votes as a matrix (M K, n) and label weights (n, K D), their product. Draws, weights
and pseudo-observations are those of each annotator alone (`draws`), and so are the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from fewlabels.evaluation.draws import LabelWeights, Make
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import Progress, spans
from fewlabels.kernels.interval_draws import point_value
from fewlabels.metrics.base import Metric
from fewlabels.metrics.confusion import Confusion
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

_NUMBERS = 2**20
"""Cells of confusion matrices, and label weights, that are held at a time."""


def judged_together(
    predictions: Predictions, posterior: LabelPosterior, metrics: Mapping[str, Metric]
) -> bool:
    """Whether `Crowd` gives these metrics of a population: of sparse votes, by drawn labels."""
    return (
        predictions.is_sparse
        and predictions.multiplicity is None
        and posterior.means is None
        and posterior.observed is None
        and posterior.label_spread is None
        and all(isinstance(metric.statistic, Confusion) for metric in metrics.values())
    )


@dataclass(frozen=True, eq=False)
class Crowd:
    """Annotators who vote on some of the items of sparse votes.

    Attributes
    ----------
    rows
        The items, ascending, (n,).
    columns
        The annotators, (M,).
    n_draws
        How many interval draws there are.
    """

    predictions: Predictions
    posterior: LabelPosterior
    metrics: Mapping[str, Metric]
    rows: Ints
    columns: Ints
    n_draws: int
    progress: Progress

    @cached_property
    def weights(self) -> LabelWeights:
        """Label weights of all the items."""
        return LabelWeights.of(self.predictions, self.posterior, self.rows, self.n_draws)

    @cached_property
    def said(self) -> scipy.sparse.csr_matrix:
        """Which annotator calls which item which class, (M K, n) of ones."""
        ballots = self.predictions.ballots[self.rows][:, self.columns].tocoo()
        k = self.predictions.n_classes
        row = ballots.col.astype(np.int64) * k + ballots.data - 1
        shape = (len(self.columns) * k, len(self.rows))
        return scipy.sparse.csr_matrix((np.ones(len(row)), (row, ballots.row)), shape)

    @cached_property
    def sizes(self) -> Floats:
        """How many items each annotator votes on, and the weight of one of them, (2, M)."""
        m = len(self.columns)
        mass = np.stack([np.ones(len(self.rows)), self.weights.mass, self.weights.mass**2], axis=1)
        size, total, square = (self.said @ mass).reshape(m, -1, 3).sum(axis=1).T
        return np.stack([size, square / np.where(total > 0, total, 1.0)])

    def values(self) -> dict[str, Floats]:
        """Point estimates (M,) of every metric."""
        size, make = self.weights.of_values()
        return {
            n: point_value(e, only_mean=False) for n, e in self._over(np.arange(size), make).items()
        }

    def draws(self) -> dict[str, Floats]:
        """Interval draws (D, M) of every metric."""
        drawn = self.weights.unseen

        def place(state: Floats, index: Ints) -> None:
            # Of what has not been seen: an item of a random prediction and class weights.
            unit = self.sizes[1]
            for d, draw in enumerate(index):
                state[drawn.predicted[draw], :, :, d] += drawn.mass[draw][:, None] * unit

        def make(index: Ints, block: slice) -> Floats:
            labels, rows = self.weights.labels_and_rows(index, block)
            weights = np.zeros((len(labels), self.predictions.n_classes, len(index)))
            np.put_along_axis(weights, labels[:, None, :], rows[:, None, :], axis=1)
            return weights

        # Draws of the same parameters side by side: P(label) of all items is looked up once.
        parameters = np.arange(self.n_draws) % self.weights.n_interval_parameters
        return self._over(np.argsort(parameters, kind="stable"), make, place)

    def _over(
        self, order: Ints, make: Make, place: Callable[[Floats, Ints], None] | None = None
    ) -> dict[str, Floats]:
        """Metrics (D, M) of the label weights of draws 0 .. D - 1, made in an order."""
        size = len(order)
        m, k, n = len(self.columns), self.predictions.n_classes, len(self.rows)
        out = {name: np.full((size, m), np.nan) for name in self.metrics}
        width = max(min(_NUMBERS // max(m * k * k, 1), size), 1)
        blocks = spans(n, max(_NUMBERS // (k * width), 1))
        parts = [self.said[:, block] for block in blocks] if len(blocks) > 1 else [self.said]
        for part in spans(size, width):
            index = order[part]
            state = np.zeros((m * k, k * len(index)))
            for own, block in zip(parts, blocks, strict=True):
                state += own @ make(index, block).reshape(own.shape[1], -1)
            cells = np.ascontiguousarray(state.reshape(m, k, k, len(index)).transpose(1, 2, 0, 3))
            if place is not None:
                place(cells, index)
            flat = cells.reshape(k, k, -1)
            for name, metric in self.metrics.items():
                out[name][index] = metric.finish(flat).reshape(m, -1).T
            self.progress(part.stop, size)
        return out
