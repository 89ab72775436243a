"""Sums of Gaussian kernels over support points, for many weightings at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans

CACHE_BYTES = 1.3e9
_DOUBLE_BYTES = 1.5e8
_ROWS = 256
_FEW = 64
"""Rows of a block where few are expected: those that single precision does not serve."""

POINTS = 1000
"""Support points at a time: 256 x 1000 kernels fit the cache of a core. A power of two would not
do: rows of one page's length fall on the same lines of the cache, which costs twice the time."""

SINGLE_REACH = 1e4
"""Largest |x|^2 / 2 of a query, from the centre, up to which single precision serves: exponents of
kernels that count are then right to about 1e-3."""

WEAK = 1e-25
"""Sums below this, in units of the largest weight, are computed anew, in units of the largest
kernel: single precision ends at 1e-38."""


@dataclass(eq=False)
class KernelSums:
    """exp(-|x_i - z_j|^2 / 2) of query rows x (n, d) and support rows z (m, d), times weights.

    Every query's sums are divided by its largest kernel, a factor that is the same for all
    weightings: nothing underflows, however narrow the kernels, and ratios between weightings
    (all that a posterior needs) are unchanged.

    `own` (n,) gives each query's own place in the support, or -1; with `leave_out` that kernel
    is left out. Exponents are computed in double precision (the released code's bandwidth puts
    |z|^2 / 2 at 4e5, where single precision is wrong even for a point and itself).

    A matrix that fits in `CACHE_BYTES` is kept, in double precision where it is small, else in
    single precision (relative error 1e-7); otherwise it is computed anew for each product.
    """

    queries: Floats
    support: Floats
    own: Ints
    leave_out: bool = False
    keep: bool = True
    _matrix: Array | None = field(default=None, init=False)
    _left: Floats = field(init=False)
    _right: Floats = field(init=False)

    def __post_init__(self) -> None:
        # One matrix product gives the exponent: [x, -|x|^2/2, 1] . [z, 1, -|z|^2/2].
        centre = self.support.mean(axis=0)
        self._left = _augment(self.queries - centre, first=True)
        self._right = np.ascontiguousarray(_augment(self.support - centre, first=False).T)
        n, m = len(self.queries), len(self.support)
        if self.keep and 4 * n * m <= CACHE_BYTES:
            self._matrix = np.empty(
                (n, m), np.float64 if 8 * n * m <= _DOUBLE_BYTES else np.float32
            )
            for _ in map_blocks(self._fill, spans(n, _ROWS)):
                pass

    def times(self, weights: Floats) -> Floats:
        """Sums over the support: (n, ...) for weights (m, ...)."""
        flat = weights.reshape(len(weights), -1)
        out = np.empty((len(self.queries), flat.shape[1]))
        cast = flat if self._matrix is None else flat.astype(self._matrix.dtype)
        rows = _ROWS if self._matrix is None else 4 * _ROWS

        def multiply(block: slice) -> None:
            kernel = self.block(block) if self._matrix is None else self._matrix[block]
            out[block] = kernel @ cast

        for _ in map_blocks(multiply, spans(len(out), rows)):
            pass
        return out.reshape(len(out), *weights.shape[1:])

    def block(self, rows: slice) -> Floats:
        """Kernels of some of the queries, each row divided by its largest: (b, m)."""
        exponent = self._left[rows] @ self._right
        own = self.own[rows]
        mine = np.flatnonzero(own >= 0)
        # A point's distance to itself is zero, whatever the rounding of the product says.
        exponent[mine, own[mine]] = -np.inf if self.leave_out else 0.0
        top = exponent.max(axis=1, keepdims=True)
        exponent -= np.where(np.isfinite(top), top, 0.0)
        return np.exp(exponent, out=exponent)

    def self_share(self, rows: Ints) -> tuple[float, float]:
        """Median over `rows` of a point's own share of its density, and of effective neighbours.

        Effective neighbours are (sum of kernels)^2 / sum of squared kernels.
        """
        whole = KernelSums(self.queries[rows], self.support, self.own[rows], keep=False)

        def measure(block: slice) -> Floats:
            kernel = whole.block(block)
            total = kernel.sum(axis=1)
            own = np.take_along_axis(kernel, whole.own[block][:, None], axis=1)[:, 0]
            return np.stack([own / total, total**2 / (kernel**2).sum(axis=1)])

        parts = list(map_blocks(measure, spans(len(rows), _ROWS)))
        if not parts:
            return float("nan"), float("nan")
        share, neighbours = np.median(np.concatenate(parts, axis=1), axis=1)
        return float(share), float(neighbours)

    def _fill(self, rows: slice) -> None:
        assert self._matrix is not None
        self._matrix[rows] = self.block(rows)


class SupportSums:
    """Weights (m, C) times exp(-|x_i - z_j|^2 / 2), summed over support rows z (m, d).

    For queries that are no support points, however many: what the support and its weights need is
    done once, and the pass is in single precision (relative error about 1e-6 of a sum). Every
    query's sums share a factor, as in `KernelSums`. A query far from the centre, or from all of the
    support, has its exponents in double precision and its sums divided by its largest kernel.

    All products are of full blocks, so that no sum depends on what else a query comes with.
    """

    def __init__(self, support: Floats, weights: Floats) -> None:
        # A point that weighs nothing must not set the scale of a query.
        used = weights.any(axis=1)
        if used.any():
            support, weights = support[used], weights[used]
        self._centre: Floats = support.mean(axis=0)
        self._columns = weights.shape[1]
        self._ones = np.ones(self._columns, np.float32)
        right = _augment(support - self._centre, first=False).T
        cast = (weights / (weights.max(initial=0.0) or 1.0)).astype(np.float32)
        self._blocks = [
            _Block(
                np.ascontiguousarray(right[:, b]),
                np.ascontiguousarray(right[:, b], np.float32),
                np.ascontiguousarray(cast[b]),
            )
            for b in spans(len(support), POINTS)
        ]

    def of(self, queries: Floats) -> Array:
        """Sums (n, C) of queries (n, d), in single precision, each row up to a factor of its own.

        This is the work of one thread.
        """
        left = _augment(queries - self._centre, first=True)
        out = np.empty((len(left), self._columns), np.float32)
        # Support points may be farther off: their kernels at a query within reach are nothing.
        far = -left[:, -2] > SINGLE_REACH
        near = np.flatnonzero(~far)
        if len(near) == len(out):
            out = self._near(left.astype(np.float32))[: len(near)]
        else:
            out[near] = self._near(left[near].astype(np.float32))[: len(near)]
        far[near[~(out[near] @ self._ones > WEAK)]] = True
        rows = np.flatnonzero(far)
        out[rows] = self._exact(left[rows])[: len(rows)]
        return out

    def _near(self, left: Array) -> Array:
        """Sums of queries that single precision serves, and of the padding."""
        left = _padded(left, _ROWS)
        out = np.zeros((len(left), self._columns), np.float32)
        kernels, part = _Memory(self._blocks, _ROWS, np.float32), np.empty_like(out[:_ROWS])
        for rows in spans(len(left), _ROWS):
            for block in self._blocks:
                kernel = kernels.of(block)
                np.matmul(left[rows], block.single, out=kernel)
                np.exp(kernel, out=kernel)
                out[rows] += np.matmul(kernel, block.weights, out=part)
        return out

    def _exact(self, left: Floats) -> Array:
        """Sums of any queries, with exponents in double precision, and of the padding."""
        left = _padded(left, _FEW)
        out = np.zeros((len(left), self._columns), np.float32)
        exponents = _Memory(self._blocks, _FEW, np.float64)
        kernels = _Memory(self._blocks, _FEW, np.float32)
        part = np.empty_like(out[:_FEW])
        for rows in spans(len(left), _FEW):
            top = np.full((_FEW, 1), -np.inf)
            for block in self._blocks:
                exponent, kernel = exponents.of(block), kernels.of(block)
                np.matmul(left[rows], block.double, out=exponent)
                higher = np.maximum(top, exponent.max(axis=1, keepdims=True))
                out[rows] *= np.exp(top - higher).astype(np.float32)
                top = higher
                np.subtract(exponent, top, out=kernel, casting="same_kind")
                np.exp(kernel, out=kernel)
                out[rows] += np.matmul(kernel, block.weights, out=part)
        return out


class _Block(NamedTuple):
    """Some support points, augmented (d + 2, p), in both precisions, and their weights (p, C)."""

    double: Floats
    single: Array
    weights: Array


class _Memory:
    """One (rows, p) array for every p that blocks have, used again and again."""

    def __init__(self, blocks: list[_Block], rows: int, dtype: type[np.floating]) -> None:
        sizes = {block.single.shape[1] for block in blocks}
        self._arrays = {p: np.empty((rows, p), dtype) for p in sizes}

    def of(self, block: _Block) -> Array:
        """The array for this block's kernels."""
        return self._arrays[block.single.shape[1]]


def _padded(left: Array, rows: int) -> Array:
    """Rows filled up with zeros to whole blocks of `rows`."""
    missing = -len(left) % rows
    return np.concatenate([left, np.zeros((missing, left.shape[1]), left.dtype)])


def _augment(x: Floats, *, first: bool) -> Floats:
    half = -0.5 * (x**2).sum(axis=1, keepdims=True)
    one = np.ones_like(half)
    return np.concatenate([x, half, one] if first else [x, one, half], axis=1)
