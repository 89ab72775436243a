"""Bins of scores, and sums of label weights over them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse

from fewlabels.kernels.arrays import Array, Floats, Ints

EQUAL_WIDTH_BINS = 15
QUANTILE_BINS = 10
_KEEP = 50_000


def equal_width(p: Floats, bins: int = EQUAL_WIDTH_BINS) -> Ints:
    """Bin of each probability: [a, b), the last one closed; shape (n,)."""
    return np.digitize(p, np.linspace(0, 1, bins + 1)[1:-1])


def quantile_edges(p: Floats, bins: int = QUANTILE_BINS) -> Floats:
    """Edges between quantiles, (bins + 1,)."""
    out: Floats = np.quantile(p, np.linspace(0, 1, bins + 1))
    return out


def between(edges: Floats, p: Floats) -> Ints:
    """Bin of each probability between edges: (a, b], the first closed; beyond them the end bins."""
    return np.clip(np.searchsorted(edges, p, side="left") - 1, 0, len(edges) - 2)


def by_quantiles(p: Floats, bins: int = QUANTILE_BINS, times: Floats | None = None) -> Ints:
    """Bin of each probability between the sample's own quantiles: (a, b], the first closed.

    Every probability is there as often as `times` (n,) says, or once.
    """
    if times is None:
        return between(quantile_edges(p, bins), p)
    return between(_quantiles(p, times, np.linspace(0, 1, bins + 1)), p)


def _quantiles(values: Floats, times: Floats, at: Floats) -> Floats:
    """As `numpy.quantile`, of values that are each there so many times, without repeating them."""
    order = np.argsort(values)
    ends = np.cumsum(times[order])
    place = at * (ends[-1] - 1)
    below = np.floor(place)
    low, high = (
        values[order][np.minimum(np.searchsorted(ends, i, side="right"), len(ends) - 1)]
        for i in (below, below + 1)
    )
    out: Floats = low + (high - low) * (place - below)
    return out


@dataclass(eq=False)
class Indicator:
    """Items by code: sums of label weights over the items of each code.

    codes (n,) lie below `size`; `values`, where given, multiply each item's weight.
    """

    codes: Ints
    size: int
    values: Floats | None = None
    _whole: scipy.sparse.csc_matrix | None = field(default=None, init=False, repr=False)

    def sums(self, weights: Floats, rows: slice | None = None) -> Floats:
        """Sum weights (b, ...) of the items in `rows` (all of them: None) by code: (size, ...)."""
        width = math.prod(weights.shape[1:])
        if self.size == 1 and self.values is None:
            return weights.sum(axis=0)[None]
        if width == 1:
            codes = self.codes if rows is None else self.codes[rows]
            times = self._values_times(weights.ravel(), rows)
            out = np.bincount(codes, times, minlength=self.size).astype(np.float64)
            return out.reshape(self.size, *weights.shape[1:])
        flat: Array = self._matrix(rows) @ weights.reshape(len(weights), width)
        return flat.reshape(self.size, *weights.shape[1:])

    def _values_times(self, weights: Floats, rows: slice | None) -> Floats:
        if self.values is None:
            return weights
        return weights * (self.values if rows is None else self.values[rows])

    def part(self, block: slice | None) -> Indicator:
        """The items of a block; all of them: None."""
        if block is None or (block.start == 0 and block.stop >= len(self.codes)):
            return self
        values = None if self.values is None else self.values[block]
        return Indicator(self.codes[block], self.size, values)

    def _matrix(self, rows: slice | None) -> scipy.sparse.csc_matrix:
        everything = rows is None or (rows.start == 0 and rows.stop >= len(self.codes))
        if everything and self._whole is not None:
            return self._whole
        chosen = slice(None) if rows is None else rows
        codes = self.codes[chosen]
        data = np.ones(len(codes)) if self.values is None else self.values[chosen]
        # A column per item, with one entry: nothing needs sorting, as it would by rows.
        matrix = scipy.sparse.csc_matrix(
            (data, codes, np.arange(len(codes) + 1)), shape=(self.size, len(codes))
        )
        if everything and len(codes) <= _KEEP:
            self._whole = matrix
        return matrix
