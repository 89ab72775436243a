"""Are some items a random sample of all? Statistics of subsets, and their permutation tests.

Under random sampling without replacement every subset of the labeled items' size was equally likely
to be them, so a statistic's rank among those of random subsets has a known distribution: the test
is exact for any statistic, dimension and number of items.
"""

from __future__ import annotations

import numpy as np

from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.blocks import one_blas_thread

_EQUAL = 1e-9
"""Statistics that differ by less, relatively, are ties: sums in another order."""

_GATHER = 5
"""Reading a distance by its index takes as long as multiplying so many rows' worth of them."""

_AT_ONCE = 2**22


def random_subsets(rng: np.random.Generator, n: int, size: int, count: int) -> Ints:
    """Random subsets of 0 .. n-1, one per row, shape (count, size)."""
    if size == 0 or n == 0:
        return np.empty((count, size), dtype=np.int64)
    height = max(_AT_ONCE // n, 1)
    parts = [
        rng.random((min(height, count - first), n), dtype=np.float32).argpartition(
            size - 1, axis=1
        )[:, :size]
        for first in range(0, count, height)
    ]
    return np.concatenate(parts)


def distances(points: Floats) -> Floats:
    """Euclidean distances between all pairs of points (n, d), shape (n, n).

    By a matrix product, five times as fast as pair by pair; distances below 1e-7 of the points'
    length drown in rounding, which no mean of distances notices.
    """
    square = np.einsum("nd,nd->n", points, points)
    with one_blas_thread():
        out: Floats = points @ points.T
    out *= -2
    out += square
    out += square[:, None]
    np.maximum(out, 0.0, out=out)
    np.fill_diagonal(out, 0.0)
    np.sqrt(out, out=out)
    return out


def energy_distances(pairwise: Floats, subsets: Ints) -> Floats:
    """Energy distance between the items of each subset (B, s) and the others, shape (B,).

    2 E|X - Y| - E|X - X'| - E|Y - Y'|, the means over all pairs; 0 for equal distributions, and for
    those only. Source: Székely & Rizzo (2004), "Testing for equal distributions in high dimension",
    equation 5 without its factor of the sizes, which no permutation changes.
    """
    n, size = len(pairwise), subsets.shape[1]
    if size in (0, n):
        return np.zeros(len(subsets))
    rows = pairwise.sum(axis=1)
    total = rows.sum()
    inside = _inside(pairwise, subsets)
    touched = rows[subsets].sum(axis=1)
    across = touched - inside
    outside = total - 2 * touched + inside
    others = n - size
    found: Floats = 2 * across / (size * others) - inside / size**2 - outside / others**2
    return found


def _inside(pairwise: Floats, subsets: Ints) -> Floats:
    """Sum of the distances within each subset, (B,)."""
    n, size = len(pairwise), subsets.shape[1]
    out = np.empty(len(subsets))
    few = size * _GATHER < n
    height = max(_AT_ONCE // (size * size if few else n), 1)
    for first in range(0, len(subsets), height):
        chosen = subsets[first : first + height]
        if few:
            each = pairwise[chosen[:, :, None], chosen[:, None, :]].sum(axis=(1, 2))
        else:
            marks = np.zeros((len(chosen), n))
            np.put_along_axis(marks, chosen, 1.0, axis=1)
            with one_blas_thread():
                each = np.einsum("bn,bn->b", marks @ pairwise, marks)
        out[first : first + height] = each
    return out


def mean_differences(values: Floats, subsets: Ints) -> Floats:
    """Mean inside each subset minus mean outside, of columns (n, t) with NaN for missing: (B, t).

    NaN where one of the two has no value at all.
    """
    given = ~np.isnan(values)
    known = np.where(given, values, 0.0)
    total, count = known.sum(axis=0), given.sum(axis=0)
    out = np.full((len(subsets), values.shape[1]), np.nan)
    # A column at a time: gathering (B, s, t) at once would leave the cache.
    for column in range(values.shape[1]):
        inside = known[:, column][subsets].sum(axis=1)
        sizes = given[:, column][subsets].sum(axis=1)
        rest = count[column] - sizes
        defined = (sizes > 0) & (rest > 0)
        out[defined, column] = (
            inside[defined] / sizes[defined] - (total[column] - inside[defined]) / rest[defined]
        )
    return out


def p_value(observed: float, drawn: Floats) -> float:
    """(1 + how many draws are at least as large) / (1 + draws): never below, exact on average.

    Source: Phipson & Smyth (2010), equation 2.
    """
    least = observed - _EQUAL * abs(observed)
    return float((1 + (drawn >= least).sum()) / (1 + len(drawn)))


def max_adjusted(observed: Floats, drawn: Floats) -> Floats:
    """P-values (t,) of statistics (t,) judged together against draws (B, t); larger is stranger.

    Each is compared with the largest of every draw, so that the chance that any of them is below
    alpha is at most alpha. Undefined draws (NaN) count as 0. Source: Westfall & Young (1993), maxT,
    single step.
    """
    top = np.nan_to_num(drawn).max(axis=1) if drawn.shape[1] else np.zeros(len(drawn))
    return np.array([p_value(float(value), top) for value in np.nan_to_num(observed)])


def standard_deviations(values: Floats) -> Floats:
    """Standard deviations of columns (n, t) over what is not NaN; 0 where nothing is, (t,)."""
    given = ~np.isnan(values)
    count = np.maximum(given.sum(axis=0), 1)
    known = np.where(given, values, 0.0)
    mean = known.sum(axis=0) / count
    square = np.where(given, values - mean, 0.0) ** 2
    out: Floats = np.sqrt(square.sum(axis=0) / count)
    return out


def kolmogorov_smirnov(values: Floats, inside: Bools) -> float:
    """Largest gap between the distribution functions inside and outside; NaN without values."""
    given = ~np.isnan(values)
    x, y = np.sort(values[given & inside]), np.sort(values[given & ~inside])
    if not len(x) or not len(y):
        return float("nan")
    places = np.concatenate([x, y])
    gap = np.searchsorted(x, places, side="right") / len(x)
    gap -= np.searchsorted(y, places, side="right") / len(y)
    return float(np.abs(gap).max())
