"""Bins of scores, and sums of label weights over them."""

from __future__ import annotations

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


def by_quantiles(p: Floats, bins: int = QUANTILE_BINS) -> Ints:
    """Bin of each probability between the sample's own quantiles: (a, b], the first closed."""
    edges = np.quantile(p, np.linspace(0, 1, bins + 1))
    return np.clip(np.searchsorted(edges, p, side="left") - 1, 0, bins - 1)


@dataclass(eq=False)
class Indicator:
    """Items by code: sums of label weights over the items of each code.

    codes (n,) lie below `size`; `values`, where given, multiply each item's weight.
    """

    codes: Ints
    size: int
    values: Floats | None = None
    _whole: scipy.sparse.csr_matrix | None = field(default=None, init=False, repr=False)

    def sums(self, weights: Floats, rows: slice | None = None) -> Floats:
        """Sum weights (b, ...) of the items in `rows` (all of them: None) by code: (size, ...)."""
        flat: Array = self._matrix(rows) @ weights.reshape(len(weights), -1)
        return flat.reshape(self.size, *weights.shape[1:])

    def totals(self) -> Floats:
        """Sums of weights of one, (size,)."""
        out: Floats = np.bincount(self.codes, self.values, minlength=self.size).astype(np.float64)
        return out

    def _matrix(self, rows: slice | None) -> scipy.sparse.csr_matrix:
        everything = rows is None or (rows.start == 0 and rows.stop >= len(self.codes))
        if everything and self._whole is not None:
            return self._whole
        part = slice(None) if rows is None else rows
        codes = self.codes[part]
        data = np.ones(len(codes)) if self.values is None else self.values[part]
        matrix = scipy.sparse.csr_matrix(
            (data, (codes, np.arange(len(codes)))), shape=(self.size, len(codes))
        )
        if everything and len(codes) <= _KEEP:
            self._whole = matrix
        return matrix
