"""Probabilities that classifiers err together, from agreement rates of all subsets.

Source: Platanios, Blum and Mitchell (2014), section 3: the e_A, the probability that all of the
classifiers in A err, that come nearest to independence and give the agreement rates that were
observed.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.optimize import minimize

from fewlabels.kernels.arrays import Array, Bools, Floats

START = 0.25


class JointErrors(NamedTuple):
    """e_A of every subset (S,), singles first, and whether the solver found a feasible minimum."""

    values: Floats
    converged: bool


@cache
def subsets(m: int, order: int) -> tuple[tuple[int, ...], ...]:
    """Subsets of m classifiers of 1 to `order` members, smaller ones first."""
    return tuple(a for size in range(1, order + 1) for a in combinations(range(m), size))


def agreement_rates(votes: Array, weights: Floats, order: int) -> Floats:
    """How often all of each even subset agree, (E,): votes (n, M) of 0 and 1, -1 = missing.

    Over the items where all of the subset vote; NaN where there are none. The rates of odd subsets
    follow from those of the even ones.
    """
    out = []
    for a in _even(votes.shape[1], order):
        part = votes[:, a]
        given = (part >= 0).all(axis=1)
        agree = given & (part == part[:, :1]).all(axis=1)
        total = weights[given].sum()
        out.append(weights[agree].sum() / total if total > 0 else np.nan)
    return np.array(out)


def _even(m: int, order: int) -> list[tuple[int, ...]]:
    return [a for a in subsets(m, order) if len(a) % 2 == 0]


@cache
def _equalities(m: int, order: int) -> tuple[Floats, Floats]:
    """Matrix (E, S) and constants (E,): matrix @ e + constants are the agreement rates.

    a_A = P(none errs) + P(all err), the first by inclusion and exclusion.
    """
    place = {a: s for s, a in enumerate(subsets(m, order))}
    even = _even(m, order)
    matrix = np.zeros((len(even), len(place)))
    for row, a in enumerate(even):
        for size in range(1, len(a)):
            for part in combinations(a, size):
                matrix[row, place[part]] = (-1.0) ** size
        matrix[row, place[a]] = 2.0
    return matrix, np.ones(len(even))


@cache
def _inclusions(m: int, order: int) -> scipy.sparse.csr_matrix:
    """Rows (I, S) that are not negative: e_{A without i} - e_A."""
    place = {a: s for s, a in enumerate(subsets(m, order))}
    rows = [
        (place[a[:i] + a[i + 1 :]], s)
        for a, s in place.items()
        if len(a) > 1
        for i in range(len(a))
    ]
    larger, smaller = np.array(rows).T
    at = np.arange(len(rows))
    return scipy.sparse.csr_matrix(
        (np.r_[np.ones(len(rows)), -np.ones(len(rows))], (np.r_[at, at], np.r_[larger, smaller])),
        shape=(len(rows), len(place)),
    )


@cache
def _membership(m: int, order: int) -> Bools:
    """Which classifier is in which subset, (S, M)."""
    return np.array([[i in a for i in range(m)] for a in subsets(m, order)])


def _dependence(e: Floats, member: Bools) -> tuple[float, Floats]:
    """Sum over subsets A of two and more of (e_A - prod e_i)^2, and its gradient."""
    m = member.shape[1]
    factors = np.where(member, e[:m], 1.0)
    gap = e - factors.prod(axis=1)
    gap[:m] = 0.0
    # The product without classifier i, from both ends: some e_i may be 0.
    left = np.cumprod(np.c_[np.ones(len(e)), factors[:, :-1]], axis=1)
    right = np.cumprod(np.c_[np.ones(len(e)), factors[:, :0:-1]], axis=1)[:, ::-1]
    slope = 2 * gap
    slope[:m] = -2 * (gap[:, None] * left * right * member).sum(axis=0)
    return float((gap**2).sum()), slope


def nearest_to_independence(
    rates: Floats, m: int, order: int, start: Floats | None = None
) -> JointErrors:
    """Minimise sum (e_A - prod_{i in A} e_i)^2 under the agreement rates (E,), NaN = not observed.

    Constraints: a_A of every even subset, e_A <= e_{A without i}, 0 <= e <= 1/2. Solver: sequential
    least-squares programming; 2^M variables, so for few classifiers.
    """
    member = _membership(m, order)
    matrix, constant = _equalities(m, order)
    seen = ~np.isnan(rates)
    equal, target = matrix[seen], (rates - constant)[seen]
    inside = _inclusions(m, order).toarray()
    scale = 100.0  # the loss is of the order 1e-3: the solver stops at absolute changes

    def loss(e: Floats) -> tuple[float, Floats]:
        value, slope = _dependence(e, member)
        return scale * value, scale * slope

    found = minimize(
        loss,
        np.full(len(member), START) if start is None else start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 0.5)] * len(member),
        constraints=[
            {"type": "eq", "fun": lambda e: equal @ e - target, "jac": lambda _: equal},
            {"type": "ineq", "fun": lambda e: inside @ e, "jac": lambda _: inside},
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    feasible = bool(seen.any()) and float(np.abs(equal @ found.x - target).max()) < 1e-6
    return JointErrors(found.x, feasible and bool(found.success))
