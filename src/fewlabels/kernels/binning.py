"""Bins of scores, and sums of label weights over them."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from fewlabels.kernels.arrays import Array, Floats, Ints

EQUAL_WIDTH_BINS = 15
QUANTILE_BINS = 10


def equal_width(p: Floats, bins: int = EQUAL_WIDTH_BINS) -> Ints:
    """Bin of each probability: [a, b), the last one closed; shape (n,)."""
    return np.digitize(p, np.linspace(0, 1, bins + 1)[1:-1])


def by_quantiles(p: Floats, bins: int = QUANTILE_BINS) -> Ints:
    """Bin of each probability between the sample's own quantiles: (a, b], the first closed."""
    edges = np.quantile(p, np.linspace(0, 1, bins + 1))
    return np.clip(np.searchsorted(edges, p, side="left") - 1, 0, bins - 1)


def indicator(codes: Ints, size: int, values: Floats | None = None) -> scipy.sparse.csr_matrix:
    """Sparse (size, n) matrix with `values` (or ones) at (code of item, item)."""
    n = len(codes)
    data = np.ones(n) if values is None else values
    return scipy.sparse.csr_matrix((data, (codes, np.arange(n))), shape=(size, n))


def sums(matrix: scipy.sparse.csr_matrix, weights: Floats) -> Floats:
    """Sum weights (n, ...) over items by code: shape (size, ...)."""
    flat: Array = matrix @ weights.reshape(len(weights), -1)
    return flat.reshape(matrix.shape[0], *weights.shape[1:])
