"""Symmetric statistics of labels: U-statistics of counts, expectations under label distributions.

A statistic of order m is a function of the counts of m labels. Counts, multinomials and
Dirichlet-multinomials alike give the counts s of m labels a probability that is a product over
classes, prod_k T_k(s_k) / norm: for counts y and draws without replacement T_k(j) = C(y_k, j).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans

_ENTRIES = 1 << 20

Phi = Callable[[Ints], Floats]


class Products(NamedTuple):
    """Probabilities of the counts s of m labels, prod_k table_k(s_k) / norm.

    `table` is (n, K, m + 1), `norm` (n,), NaN where there are fewer than m labels.
    """

    table: Floats
    norm: Floats

    @property
    def order(self) -> int:
        """How many labels, m."""
        return self.table.shape[2] - 1


def binomials(y: Array, order: int) -> Floats:
    """C(y, j) for j = 0 .. order, shape (..., order + 1)."""
    out = np.ones((*y.shape, order + 1))
    for j in range(order):
        out[..., j + 1] = out[..., j] * np.maximum(y - j, 0) / (j + 1)
    return out


def without_replacement(counts: Array, order: int) -> Products:
    """`order` of an item's labels, counts (n, K)."""
    norm = binomials(counts.sum(axis=1), order)[:, -1]
    return Products(binomials(counts, order), np.where(norm > 0, norm, np.nan))


def dirichlet_multinomial(
    probabilities: Floats, concentration: Floats | None, order: int
) -> Products:
    """`order` labels of the item's class: multinomial, or Dirichlet-multinomial(alpha0 p).

    Probabilities (n, K); concentration alpha0 (n,), infinity or None = multinomial. Both rising
    factorials are scaled by (1 + alpha0)^j, so that they neither overflow nor vanish.
    """
    a = np.full(len(probabilities), np.inf) if concentration is None else concentration
    step = 1 / (1 + a)
    with np.errstate(invalid="ignore"):
        rest = np.where(np.isinf(a), 1.0, a / (1 + a))
    table = np.ones((*probabilities.shape, order + 1))
    norm = np.ones(len(probabilities))
    for j in range(order):
        factor = probabilities * rest[:, None] + (j * step)[:, None]
        table[:, :, j + 1] = table[:, :, j] * factor / (j + 1)
        norm *= (rest + j * step) / (j + 1)
    return Products(table, norm)


def unanimous(products: Products) -> Floats:
    """P(all m labels agree), (n,)."""
    out: Floats = products.table[:, :, -1].sum(axis=1) / products.norm
    return out


def unanimous_twice(counts: Array, order: int) -> Floats:
    """P(each of two disjoint sets of m labels agrees within itself), (n,); NaN if n_i < 2 m."""
    size = counts.sum(axis=1)
    one = binomials(counts, order)[..., -1]
    again = binomials(np.maximum(counts - order, 0), order)[..., -1]
    pairs = one.sum(axis=1) ** 2 - (one**2).sum(axis=1) + (one * again).sum(axis=1)
    return pairs / _two_sets(size, order)


def _two_sets(size: Array, order: int) -> Floats:
    first = binomials(size, order)[..., -1]
    second = binomials(np.maximum(size - order, 0), order)[..., -1]
    return np.where(size >= 2 * order, first * second, np.nan)


def largest_at_most(products: Products) -> Floats:
    """P(no class has more than c of the m labels) for c = 0 .. m, (n, m + 1).

    The coefficient of x^m in prod_k sum_{j <= c} T_k(j) x^j.
    """
    n, k, _ = products.table.shape
    m = products.order
    out = np.ones((n, m + 1))
    out[:, 0] = 0.0
    for c in range(1, m):
        series = np.zeros((n, m + 1))
        series[:, 0] = 1.0
        for j in range(k):
            new = series.copy()  # T_k(0) = 1
            for i in range(1, c + 1):
                new[:, i:] += products.table[:, j, i, None] * series[:, : m + 1 - i]
            series = new
        out[:, c] = series[:, m] / products.norm
    out[np.isnan(products.norm)] = np.nan
    return out


def largest_moments(below: Floats) -> tuple[Floats, Floats]:
    """E max and E max^2 of the largest count from P(max <= c), (n, m + 1); each (n,)."""
    above = 1 - below[:, :-1]
    c = np.arange(above.shape[1])
    return above.sum(axis=1), (above * (2 * c + 1)).sum(axis=1)


def largest_twice(counts: Array, order: int) -> Floats:
    """E max(A) max(B) over two disjoint sets of m labels, (n,); NaN if n_i < 2 m."""
    m, size = order, counts.sum(axis=1)
    once = largest_at_most(without_replacement(counts, m))
    norm = _two_sets(size, m)
    total = np.zeros(len(counts))
    for c in range(m):
        for d in range(m):
            both = _both_at_most(counts, m, c, d) / norm if c and d else 0.0
            total += 1 - once[:, c] - once[:, d] + both
    total[np.isnan(norm)] = np.nan
    return total


def _both_at_most(counts: Array, m: int, c: int, d: int) -> Floats:
    """Coefficient of x^m y^m in prod_k sum_{i <= c, j <= d} C(y_k, i) C(y_k - i, j) x^i y^j."""
    series = np.zeros((len(counts), m + 1, m + 1))
    series[:, 0, 0] = 1.0
    for k in range(counts.shape[1]):
        y = counts[:, k]
        first, new = binomials(y, c), np.zeros_like(series)
        for i in range(c + 1):
            factor = first[:, i, None] * binomials(np.maximum(y - i, 0), d)
            for j in range(d + 1):
                new[:, i:, j:] += factor[:, j, None, None] * series[:, : m + 1 - i, : m + 1 - j]
        series = new
    return series[:, m, m]


def by_profile(counts: Array) -> tuple[Ints, Ints]:
    """Distinct rows of counts but for the order of classes, (p, k), and each item's, (n,).

    Statistics that do not tell classes apart need be computed for these alone; classes without
    labels are left out.
    """
    sorted_rows = -np.sort(-counts.astype(np.int64), axis=1)
    width = max(int((sorted_rows > 0).sum(axis=1).max(initial=1)), 1)
    profiles, inverse = np.unique(sorted_rows[:, :width], axis=0, return_inverse=True)
    return profiles, inverse.reshape(-1)


def n_outcomes(order: int, classes: int) -> int:
    """How many counts of `order` labels there are."""
    out = 1
    for j in range(order):
        out = out * (classes + j) // (j + 1)
    return out


def outcomes(order: int, classes: int) -> Ints:
    """All counts of `order` labels, (S, K)."""
    bars = np.array(list(combinations(range(order + classes - 1), classes - 1)), dtype=np.int64)
    bars = bars.reshape(-1, classes - 1)
    edges = np.full((len(bars), 1), order + classes - 1)
    return np.diff(np.hstack([np.full_like(edges, -1), bars, edges]), axis=1) - 1


def expectation(make: Callable[[slice], Products], n: int, states: Ints, values: Floats) -> Floats:
    """E of values (S, v) over the counts `states` (S, K), (n, v); `make` gives rows' products."""
    rows = max(_ENTRIES // len(states), 1)

    def of_block(block: slice) -> Floats:
        products = make(block)
        weight = np.ones((len(products.norm), len(states)))
        for k in range(states.shape[1]):
            weight *= products.table[:, k, states[:, k]]
        return (weight @ values) / products.norm[:, None]

    return np.concatenate(list(map_blocks(of_block, spans(n, rows))))


def product_statistic(phi: Floats, states: Ints, larger: Ints) -> Floats:
    """Mean of phi(A) phi(B) over the halves A, B of 2 m labels, for their counts (S', K): (S',).

    `phi` (S,) are the statistic's values at the counts `states` (S, K) of m labels.
    """
    order = int(states[0].sum())
    base = (order + 1) ** np.arange(states.shape[1], dtype=object)
    place = {int(code): i for i, code in enumerate(states.astype(object) @ base)}
    out = np.empty(len(larger))
    norm = binomials(np.array(2.0 * order), order)[-1]
    for i, u in enumerate(larger):
        part = np.flatnonzero((states <= u).all(axis=1))
        inside = states[part]
        weight = np.ones(len(part))
        for k in np.flatnonzero(u):
            weight *= binomials(np.array(u[k]), order)[inside[:, k]]
        rest = [place[int(code)] for code in (u - inside).astype(object) @ base]
        out[i] = (weight * phi[part] * phi[rest]).sum() / norm
    return out
