"""The prior of error rates, learned from the rates: hierarchical shrinkage over classifiers.

Row q of the rates of every unit is Dirichlet: concentration a / (C - 1) on every wrong vote, b on
the right one. Its mean error m = a / (a + b) and strength s = a + b are drawn given the rates, on a
grid: logit m ~ N(logit(1/11), 1) and log s ~ N(log 11, 1), centred at the Beta(1, 10) that is the
prior where nothing is learned. The prior of hard items stays Beta(3, 4): too few tell of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logit

from fewlabels.kernels.arrays import Floats

EASY, HARD = (1.0, 10.0), (3.0, 4.0)
"""Counts (errors, hits) that the prior of items as they come is centred at; those of hard ones."""

_MEANS = np.linspace(0.02, 0.6, 30)
"""Mean errors; of single rates below one half, or right and wrong could trade places."""

_MOST_SINGLE = 0.45
_STRENGTHS = np.geomspace(2.0, 60.0, 15)


class _Grid(NamedTuple):
    """Counts of a wrong vote and of the right one, log of the Dirichlet's constant, log prior."""

    wrong: Floats
    right: Floats
    constant: Floats
    prior: Floats


@lru_cache(maxsize=32)
def _grid(n_wrong: int, most: float) -> _Grid:
    mean, strength = np.meshgrid(_MEANS[most > _MEANS], _STRENGTHS, indexing="ij")
    wrong, right = (mean * strength / n_wrong).ravel(), ((1 - mean) * strength).ravel()
    constant = gammaln(strength).ravel() - n_wrong * gammaln(wrong) - gammaln(right)
    a, b = EASY
    off = (logit(mean) - logit(a / (a + b))) ** 2 + np.log(strength / (a + b)) ** 2
    return _Grid(wrong, right, constant, -0.5 * off.ravel())


def draw_rates_prior(prior: Floats, rates: Floats, rng: np.random.Generator) -> None:
    """Draw the prior (Q, C) anew, in place, given rates (A, Q, C) drawn from it.

    One rate per unit: Q = 1, errors first. Else row q is of class q, hard items follow.
    """
    for q, grid, log_p in _rows(prior, np.log(rates).sum(axis=0), len(rates)):
        cumulative = np.exp(log_p - log_p.max()).cumsum()
        _set(prior, q, grid, int(np.searchsorted(cumulative, rng.random() * cumulative[-1])))


def fit_rates_prior(prior: Floats, logs: Floats) -> None:
    """The likeliest prior (Q, C), in place, by expected logs (A, Q, C) of the rates."""
    for q, grid, log_p in _rows(prior, logs.sum(axis=0), len(logs)):
        _set(prior, q, grid, int(np.argmax(log_p)))


def _rows(prior: Floats, logs: Floats, n_units: int) -> Iterator[tuple[int, _Grid, Floats]]:
    """Log P(prior | rates) over the grid, row by row, from sums of logs of the rates (Q, C)."""
    n_rows, n_columns = prior.shape
    for q in range(min(n_rows, n_columns)):
        grid = _grid(n_columns - 1, _MOST_SINGLE if n_rows == 1 else 1.0)
        hits = logs[q, q if n_rows > 1 else 1]
        log_p = n_units * grid.constant + grid.prior
        yield q, grid, log_p + (grid.wrong - 1) * (logs[q].sum() - hits) + (grid.right - 1) * hits


def _set(prior: Floats, q: int, grid: _Grid, cell: int) -> None:
    prior[q] = grid.wrong[cell]
    prior[q, q if len(prior) > 1 else 1] = grid.right[cell]
