"""A few parameter draws of which all the others are nearly combinations.

What a draw says of an item, P(label | draw), is a smooth function of its parameters. So a few draws
are computed for every row of a stream, and what the others add to their best combination of these
is measured on a sample: the combination is a control variate for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.posterior import LabelPosterior, ParameterDraws

CHOSEN_BY = 3_000
"""Probabilities of a draw, one per row and class, by which draws are chosen."""

EVERY = slice(None)
_NEGLIGIBLE = 1e-7


class _Draws(NamedTuple):
    """Draws of one kind: where they start among all columns, and how many there are."""

    parameters: ParameterDraws
    start: int
    size: int


@dataclass(frozen=True, eq=False)
class Basis:
    """Which draws are computed for every row, and how the others combine them.

    Columns are, in this order, the marginals (one, where values come from them) or the draws for
    values, and the draws for intervals unless they are the same. `chosen` (R,) are the columns that
    are computed; coefficients (R, columns) give each column as their combination, and sum to one,
    so that probabilities still do. `error` is the standard deviation, over items, of what
    combinations leave out of an item's probability (root mean square over draws).
    """

    chosen: Ints
    coefficients: Floats
    n_values: int
    n_interval: int
    shared: bool
    error: float

    @staticmethod
    def of(posterior: LabelPosterior, rows: Ints, most: float) -> Basis:
        """Choose by items in no particular order: pivoted QR of differences from a middle draw."""
        n_values, n_interval, shared = _sizes(posterior)
        n_columns = n_values if shared else n_values + n_interval
        if n_columns <= most:
            every = np.arange(n_columns)
            return Basis(every, np.eye(n_columns), n_values, n_interval, shared, 0.0)
        every = np.arange(n_columns)
        frame = Basis(every, np.empty((0, 0)), n_values, n_interval, shared, 0.0)
        table = frame.soft(posterior, rows[::2]).reshape(-1, len(every))
        chosen, coefficients = _combinations(table, int(most))
        held_out = frame.soft(posterior, rows[1::2])
        rest = held_out - held_out[:, :, chosen] @ coefficients
        error = float(np.sqrt((rest.std(axis=0) ** 2).mean())) if rest.size else 0.0
        return Basis(chosen, coefficients, n_values, n_interval, shared, error)

    @property
    def complete(self) -> bool:
        """Whether every draw is computed for every row."""
        return len(self.chosen) == self.n_columns

    @property
    def n_columns(self) -> int:
        """How many columns there are in all."""
        return self.n_values if self.shared else self.n_values + self.n_interval

    @property
    def of_values(self) -> slice:
        """The columns that values come from."""
        return slice(0, self.n_values)

    @property
    def of_intervals(self) -> slice:
        """The columns that intervals come from."""
        return self.of_values if self.shared else slice(self.n_values, self.n_columns)

    def soft(self, posterior: LabelPosterior, rows: Ints | slice = EVERY) -> Floats:
        """P(label) of the computed columns, (n, K, R), of items under a posterior of this kind."""
        return self.columns(posterior, self.chosen, rows)

    def columns(
        self, posterior: LabelPosterior, which: Ints, rows: Ints | slice = slice(None)
    ) -> Floats:
        """P(label) of any columns, (n, K, len(which)), which must ascend."""
        values, rest = which[which < self.n_values], which[which >= self.n_values]
        both = (posterior.value_draws, values), (posterior.interval_draws, rest - self.n_values)
        parts = [draws.block(index, rows) for draws, index in both if len(index)]
        n, k = parts[0].shape[:2]
        # Class by class in memory: states are sums over the items of one class after the other.
        out = np.empty((k, n, len(which))).transpose(1, 0, 2)
        start = 0
        for part in parts:
            out[:, :, start : start + part.shape[2]] = part
            start += part.shape[2]
        return out


def _sizes(posterior: LabelPosterior) -> tuple[int, int, bool]:
    values, intervals = posterior.value_draws, posterior.interval_draws
    return values.size, intervals.size, values is intervals


def _combinations(table: Floats, most: int) -> tuple[Ints, Floats]:
    """Columns (R,) of a table (n, c), and weights (R, c) that sum to one, of all in terms of these.

    They are sought among the draws, not averages of them: only draws can be computed for a row.
    """
    n_columns = table.shape[1]
    if n_columns <= 2:
        return np.arange(n_columns), np.eye(n_columns)
    middle = int(np.argmin(((table - table.mean(axis=1, keepdims=True)) ** 2).sum(axis=0)))
    gap = table - table[:, middle : middle + 1]
    r, pivot = scipy.linalg.qr(gap, mode="r", pivoting=True)
    size = np.abs(np.diag(r))
    rank = int(np.count_nonzero(size[: most - 1] > _NEGLIGIBLE * max(np.sqrt(len(table)), 1.0)))
    weights = np.zeros((rank, n_columns))
    if rank:
        solved = scipy.linalg.solve_triangular(r[:rank, :rank], r[:rank])
        weights[:, pivot] = solved
        weights[:, pivot[:rank]] = np.eye(rank)
    chosen = np.concatenate([[middle], pivot[:rank]])
    every = np.concatenate([1 - weights.sum(axis=0, keepdims=True), weights])
    order = np.argsort(chosen)
    return chosen[order], every[order]
