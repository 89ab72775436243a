"""Statistics of several labels of an item: disagreement, unanimity, majority strength, one's own.

Mimori, Sasada, Matsui, Sato (2021): a symmetric statistic phi of n labels is estimated without bias
by its U-statistic, and scored like a class probability; (15), (16).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from fewlabels.annotations.label_statistics import (
    Products,
    by_profile,
    dirichlet_multinomial,
    expectation,
    largest_at_most,
    largest_moments,
    largest_twice,
    n_outcomes,
    outcomes,
    product_statistic,
    unanimous,
    unanimous_twice,
    without_replacement,
)
from fewlabels.checks.arguments import label_counts, probability_rows
from fewlabels.errors import InputError, UsageError, unknown
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans

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

        def of_block(rows: slice) -> Floats:
            return self._expected(p[rows], None if alpha is None else alpha[rows])

        return np.concatenate(list(map_blocks(of_block, spans(len(p), _ROWS))))

    def moments(self, counts: Array) -> Moments:
        """What the losses need of each item's counts (n, K)."""

        def of_block(rows: slice) -> Moments:
            return self._moments(counts[rows])

        parts = map_blocks(of_block, spans(len(counts), _ROWS))
        return Moments(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    @abstractmethod
    def _moments(self, counts: Array) -> Moments:
        """The moments of a block of items."""

    @abstractmethod
    def _expected(self, p: Floats, alpha: Floats | None) -> Floats:
        """The expectation (n,) from probabilities (n, K) and concentrations (n,)."""


def concentrations(value: Any, n: int) -> Floats:
    """Concentrations alpha0 above 0, (n,); NaN is let through.

    Raises
    ------
    InputError
        If they are not.
    """
    try:
        alpha = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"`concentration` must be numbers; got {error}") from None
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
        _check_order(self.order, 1)
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
        found = expectation(lambda b: without_replacement(rows[b], m), len(rows), states, values)
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
        return Moments(found[which, 0], found[which, 1], product[which])

    def _expected(self, p: Floats, alpha: Floats | None) -> Floats:
        states, phi = self._values(p.shape[1])

        def products(rows: slice) -> Products:
            part = None if alpha is None else alpha[rows]
            return dirichlet_multinomial(p[rows], part, self.order)

        return expectation(products, len(p), states, phi[:, None])[:, 0]

    @cached_property
    def _known(self) -> dict[int, tuple[Ints, Floats]]:
        return {}

    def _values(self, classes: int) -> tuple[Ints, Floats]:
        """All counts of `order` labels, (S, K), and the function there, (S,)."""
        if classes not in self._known:
            size = n_outcomes(self.order, classes)
            if size > _MOST_OUTCOMES:
                raise UsageError(
                    f"statistic {self.name!r} of {self.order} labels has {size:,} outcomes for "
                    f"{classes} classes, more than {_MOST_OUTCOMES:,}; take fewer labels, or merge "
                    "classes"
                )
            states = outcomes(self.order, classes)
            self._known[classes] = states, self._checked(self.function(states), size)
        return self._known[classes]

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
    return _Unanimity(_check_order(order, 2), f"unanimity_{order}")


def majority_strength(order: int) -> LabelStatistic:
    """Share of the most frequent class among `order` labels; named `majority_strength_<order>`.

    Raises
    ------
    UsageError
        If the order is none.
    """
    return _MajorityStrength(_check_order(order, 2), f"majority_strength_{order}")


def _check_order(order: Any, least: int) -> int:
    if not isinstance(order, Integral) or isinstance(order, bool) or not least <= int(order) <= 50:
        raise UsageError(f"`order` must be a whole number from {least} to 50; got {order!r}")
    return int(order)


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
    found = re.fullmatch(r"([a-z_]+)_(\d{1,4})", name) if isinstance(name, str) else None
    if found is None or found[1] not in _FAMILIES:
        known = [DISAGREEMENT.name, *(f"{family}_3" for family in _FAMILIES)]
        raise UsageError(unknown("statistic", name, known))
    return _FAMILIES[found[1]](int(found[2]))
