"""Statistics of several labels of an item: disagreement, unanimity, majority strength, one's own.

Mimori, Sasada, Matsui, Sato (2021): a symmetric statistic phi of n labels is estimated without bias
by its U-statistic, and scored like a class probability; (15), (16).

A statistic of order m is a function of the counts of m labels. Counts, multinomials and
Dirichlet-multinomials alike give the counts s of m labels a probability that is a product over
classes, prod_k T_k(s_k) / norm: for counts y and draws without replacement T_k(j) = C(y_k, j).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from fewlabels.checks.arguments import label_counts, numbers, probability_rows, whole
from fewlabels.errors import InputError, UsageError, unknown
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
    """Distinct rows of counts up to the order of classes, (p, k), and that of each item, (n,).

    Statistics that treat classes alike are computed for these alone; classes without labels are
    left out.
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

    def block_mean(block: slice) -> Floats:
        products = make(block)
        weight = np.ones((len(products.norm), len(states)))
        for k in range(states.shape[1]):
            weight *= products.table[:, k, states[:, k]]
        return (weight @ values) / products.norm[:, None]

    return np.concatenate(list(map_blocks(block_mean, spans(n, rows))))


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
        chosen = np.flatnonzero((states <= u).all(axis=1))
        inside = states[chosen]
        weight = np.ones(len(chosen))
        for k in np.flatnonzero(u):
            weight *= binomials(np.array(u[k]), order)[inside[:, k]]
        rest = [place[int(code)] for code in (u - inside).astype(object) @ base]
        out[i] = (weight * phi[chosen] * phi[rest]).sum() / norm
    return out


_MOST_ORDER = 50
_MOST_OUTCOMES = 200_000
_MOST_HALVES = 20_000_000
_ROWS = 16_384


class Moments(NamedTuple):
    """Of each item, over sets of `order` of its labels: means of phi, phi^2, and phi(A) phi(B).

    All (n,). A and B are disjoint sets; NaN where an item has too few labels.
    """

    mean: Floats
    square: Floats
    product: Floats


class LabelStatistic(ABC):
    """A function of the counts of `order` labels, with values within `bounds`."""

    order: int
    name: str
    bounds: tuple[float, float]

    def observed(self, histogram: Any) -> Floats:
        """The U-statistic of each item, (n,), from counts (n, K); NaN with fewer labels.

        Raises
        ------
        InputError
            If the counts are not whole numbers from 0.
        """
        return self.moments(label_counts(histogram)).mean

    def expected(self, probabilities: Any, concentration: Any = None) -> Floats:
        """The expectation of each item, (n,), from probabilities (n, K); NaN for rows of NaN.

        Parameters
        ----------
        concentration
            alpha0 > 0, shape (n,) or one number: labels are Dirichlet-multinomial(alpha0 p), which
            agree more than independent ones. None (or infinity): multinomial.

        Raises
        ------
        InputError
            If the probabilities or concentrations are none.
        """
        p = probability_rows(probabilities)
        alpha = None if concentration is None else concentrations(concentration, len(p))

        def block_mean(rows: slice) -> Floats:
            return self._expected(p[rows], None if alpha is None else alpha[rows])

        return np.concatenate(list(map_blocks(block_mean, spans(len(p), _ROWS))))

    def moments(self, counts: Array) -> Moments:
        """What the losses need of each item's counts (n, K)."""
        blocks = map_blocks(lambda rows: self._moments(counts[rows]), spans(len(counts), _ROWS))
        return Moments(*(np.concatenate(arrays) for arrays in zip(*blocks, strict=True)))

    @abstractmethod
    def _moments(self, counts: Array) -> Moments:
        """The moments of a block of items."""

    @abstractmethod
    def _expected(self, p: Floats, alpha: Floats | None) -> Floats:
        """The expectation (n,) from probabilities (n, K) and concentrations (n,)."""


def concentrations(value: Any, n: int) -> Floats:
    """Concentrations alpha0 above 0, (n,); NaN is let through."""
    alpha = numbers("concentration", value).astype(np.float64)
    if alpha.shape not in ((), (n,)):
        raise InputError(
            f"`concentration` must be one number or {n} of them, one per item; got shape "
            f"{alpha.shape}"
        )
    alpha = np.broadcast_to(alpha, n)
    if (alpha <= 0).any():
        i = int((alpha <= 0).argmax())
        raise InputError(
            f"`concentration` must be above 0; got {alpha[i]} for item {i} (from 0): pass alpha0, "
            "not its logarithm"
        )
    return alpha


@dataclass(frozen=True)
class _Unanimity(LabelStatistic):
    order: int
    name: str
    bounds: tuple[float, float] = (0.0, 1.0)

    def _moments(self, counts: Array) -> Moments:
        mean = unanimous(without_replacement(counts, self.order))
        return Moments(mean, mean, unanimous_twice(counts, self.order))

    def _expected(self, p: Floats, alpha: Floats | None) -> Floats:
        return unanimous(dirichlet_multinomial(p, alpha, self.order))


class _Disagreement(_Unanimity):
    def _moments(self, counts: Array) -> Moments:
        agree, _, both = super()._moments(counts)
        return Moments(1 - agree, 1 - agree, 1 - 2 * agree + both)

    def _expected(self, p: Floats, alpha: Floats | None) -> Floats:
        return 1 - super()._expected(p, alpha)


@dataclass(frozen=True)
class _MajorityStrength(LabelStatistic):
    order: int
    name: str
    bounds: tuple[float, float] = (0.0, 1.0)

    def _moments(self, counts: Array) -> Moments:
        profiles, which = by_profile(counts)
        m = self.order
        below = largest_at_most(without_replacement(profiles, m))
        mean, square = largest_moments(below)
        product = largest_twice(profiles, m)
        return Moments(mean[which] / m, square[which] / m**2, product[which] / m**2)

    def _expected(self, p: Floats, alpha: Floats | None) -> Floats:
        return largest_moments(largest_at_most(dirichlet_multinomial(p, alpha, self.order)))[0] / (
            self.order
        )


@dataclass(frozen=True)
class Statistic(LabelStatistic):
    """A symmetric statistic of labels of one's own.

    Parameters
    ----------
    order
        Of how many labels, from 1.
    function
        Takes counts of `order` labels, an integer array of shape (S, K), and gives its values,
        shape (S,).
    name
        Name, as in `L_<name>`.
    bounds
        Smallest and largest value.

    Raises
    ------
    UsageError
        If an argument is not what is said here.

    Examples
    --------
    >>> import fewlabels as fl
    >>> malignant = fl.annotations.Statistic(2, lambda counts: counts[:, 1] >= 1, "any_malignant")
    >>> malignant.observed([[2, 1], [3, 0], [1, 0]]).round(3).tolist()
    [0.667, 0.0, nan]
    """

    order: int
    function: Callable[[Ints], Any]
    name: str
    bounds: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        whole("order", self.order, 1, _MOST_ORDER)
        if not callable(self.function):
            raise UsageError(f"`function` must take counts (S, K); got {self.function!r}")
        if not isinstance(self.name, str) or not self.name:
            raise UsageError(f"`name` must be a name; got {self.name!r}")
        try:
            low, high = (float(b) for b in self.bounds)
        except (TypeError, ValueError):
            low = high = np.nan
        if not -np.inf < low < high < np.inf:
            raise UsageError(f"`bounds` must be (smallest, largest); got {self.bounds!r}")

    def _moments(self, counts: Array) -> Moments:
        # The product takes all counts of 2 `order` labels: NaN where these are too many.
        rows, which = np.unique(counts.astype(np.int64), axis=0, return_inverse=True)
        which, m, k = which.reshape(-1), self.order, counts.shape[1]
        states, phi = self._values(k)
        values = np.stack([phi, phi**2], axis=1)
        means = expectation(lambda b: without_replacement(rows[b], m), len(rows), states, values)
        product = np.full(len(rows), np.nan)
        enough = np.flatnonzero(rows.sum(axis=1) >= 2 * m)
        if len(enough) and n_outcomes(2 * m, k) * len(states) <= _MOST_HALVES:
            larger = outcomes(2 * m, k)
            halves = product_statistic(phi, states, larger)
            product[enough] = expectation(
                lambda b: without_replacement(rows[enough[b]], 2 * m),
                len(enough),
                larger,
                halves[:, None],
            )[:, 0]
        return Moments(means[which, 0], means[which, 1], product[which])

    def _expected(self, p: Floats, alpha: Floats | None) -> Floats:
        states, phi = self._values(p.shape[1])

        def products(rows: slice) -> Products:
            concentration = None if alpha is None else alpha[rows]
            return dirichlet_multinomial(p[rows], concentration, self.order)

        return expectation(products, len(p), states, phi[:, None])[:, 0]

    @cached_property
    def _outcome_table(self) -> dict[int, tuple[Ints, Floats]]:
        return {}

    def _values(self, classes: int) -> tuple[Ints, Floats]:
        """All counts of `order` labels, (S, K), and the function there, (S,)."""
        if classes not in self._outcome_table:
            size = n_outcomes(self.order, classes)
            if size > _MOST_OUTCOMES:
                raise UsageError(
                    f"statistic {self.name!r} of {self.order} labels has {size:,} outcomes for "
                    f"{classes} classes, more than {_MOST_OUTCOMES:,}; take fewer labels, or merge "
                    "classes"
                )
            states = outcomes(self.order, classes)
            self._outcome_table[classes] = states, self._checked(self.function(states), size)
        return self._outcome_table[classes]

    def _checked(self, values: Any, size: int) -> Floats:
        phi = np.asarray(values, dtype=np.float64)
        if phi.shape != (size,):
            raise UsageError(
                f"the function of statistic {self.name!r} must give one value per row of counts, "
                f"shape ({size},); got {phi.shape}"
            )
        low, high = self.bounds
        outside = ~((phi >= low) & (phi <= high))
        if outside.any():
            raise UsageError(
                f"the function of statistic {self.name!r} must stay within {low:g} and {high:g}; "
                f"got {phi[outside][0]:g}: set `bounds`"
            )
        return phi


DISAGREEMENT = _Disagreement(2, "disagreement")
"""Whether two labels differ."""


def unanimity(order: int) -> LabelStatistic:
    """Whether `order` labels, two or more, are all the same; named `unanimity_<order>`.

    Raises
    ------
    UsageError
        If the order is none.
    """
    return _Unanimity(whole("order", order, 2, _MOST_ORDER), f"unanimity_{order}")


def majority_strength(order: int) -> LabelStatistic:
    """Share of the most frequent class among `order` labels; named `majority_strength_<order>`.

    Raises
    ------
    UsageError
        If the order is none.
    """
    return _MajorityStrength(whole("order", order, 2, _MOST_ORDER), f"majority_strength_{order}")


_FAMILIES = {"unanimity": unanimity, "majority_strength": majority_strength}


def statistic(name: Any) -> LabelStatistic:
    """A statistic by its name: disagreement, unanimity_<n>, majority_strength_<n>; or itself.

    Raises
    ------
    UsageError
        If there is none of the name.
    """
    if isinstance(name, LabelStatistic):
        return name
    if name == DISAGREEMENT.name:
        return DISAGREEMENT
    match = re.fullmatch(r"([a-z_]+)_(\d{1,4})", name) if isinstance(name, str) else None
    if match is None or match[1] not in _FAMILIES:
        registered = [DISAGREEMENT.name, *(f"{family}_3" for family in _FAMILIES)]
        raise UsageError(unknown("statistic", name, registered))
    return _FAMILIES[match[1]](int(match[2]))
