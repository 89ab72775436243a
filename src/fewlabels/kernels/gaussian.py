"""Sums of Gaussian kernels over support points, for many weightings at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans

CACHE_BYTES = 1.3e9
_DOUBLE_BYTES = 1.5e8
_ROWS = 256


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


def _augment(x: Floats, *, first: bool) -> Floats:
    half = -0.5 * (x**2).sum(axis=1, keepdims=True)
    one = np.ones_like(half)
    return np.concatenate([x, half, one] if first else [x, one, half], axis=1)
