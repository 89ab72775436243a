"""Rows in clusters: how far they go together, and how many independent rows they are worth.

Rows i and j of n have correlation R_ij = sum of rho_c over the clusterings c that put them in one
cluster (R_ii = 1; crossed clusters are several clusterings). With weights v they are worth

    n_eff = (sum v)^2 / v'Rv                                                    (Kish 1965, with R),

and a row's likelihood counts to the power 1 / sum_j R_ij: m copies of an item count as one, and
uncorrelated rows count in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, gammaln, ndtri, stdtrit

from fewlabels.kernels.arrays import Floats, Ints, UInts
from fewlabels.kernels.multinomial import fit_map
from fewlabels.kernels.simplex import centred_logs, softmax

_PRIOR = 0.5, 1.0
"""Beta prior of a correlation between rows of a cluster: mostly small, a third on average."""

_ONE_LABEL = 0.25
"""Squares added for what has not been seen: those of one label of two classes."""

_MOST_LOG, _MOST_OFFSETS = 4.0, 300
_OFFSET_SD, _SLOPE_SD = 3.0, 1.0

_GRID = expit(np.linspace(-12.0, 12.0, 481))


def pooled_words(votes: Floats) -> Floats:
    """Pooled log-odds of each class over all classifiers, (n, K): of probabilities or scores.

    The mean of centred logs of probabilities (n, M, K), or half of that of standardised scores
    (n, M); 0 without a prediction.
    """
    if votes.ndim == 3:
        words = np.clip(centred_logs(votes), -_MOST_LOG, _MOST_LOG)
    else:
        there = ~np.isnan(votes)
        count = np.maximum(there.sum(axis=0), 1)
        away = np.where(there, votes - np.where(there, votes, 0.0).sum(axis=0) / count, np.nan)
        scale = np.sqrt(np.where(there, away**2, 0.0).sum(axis=0) / count)
        z = away / np.where(scale > 0, scale, 1.0)
        words = np.stack([-z / 2, z / 2], axis=2)
    there = ~np.isnan(words)
    mean: Floats = np.where(there, words, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    return mean


def unexplained(
    words: Floats, evidence: Floats, clusters: Sequence[UInts]
) -> tuple[Floats, Floats]:
    """Residuals (n, K) of what is known of labels in a logistic regression on `words` (n, K, F).

    Also (n, 1) their product with the regression's logits, scaled to root mean square 1: rows of a
    cluster may all be too positive, or all be wrong whichever the class. `evidence` (n, K) is a
    log-likelihood. A cluster counts as one label, lest what its rows share be explained away.
    """
    n, k, f = words.shape
    offsets = k <= _MOST_OFFSETS
    mean = np.r_[np.zeros(k * offsets), np.ones(f)]
    precision = np.r_[np.full(k * offsets, _OFFSET_SD**-2.0), np.full(f, _SLOPE_SD**-2.0)]
    once = powers(clusters, [1.0] * len(clusters), np.zeros(n, dtype=np.int64))
    coefficients = fit_map(
        words, evidence, mean, precision, offsets=offsets, power=once
    ).coefficients
    logits = words @ coefficients[k * offsets :] + (coefficients[:k] if offsets else 0.0)
    left = softmax(evidence) - softmax(logits)
    logits -= logits.mean(axis=1, keepdims=True)
    size = np.sqrt((logits**2).mean()) if logits.any() else 1.0
    return left, (left * logits).sum(axis=1, keepdims=True) / size


def intraclass_correlation(residuals: Floats, cluster: UInts) -> float:
    """Posterior mean of rho, from residuals (n, K) of rows and the keys of their clusters, (n,).

    A cluster of m rows has a mean of variance s^2 (1 + (m - 1) rho) / m, and its rows vary around
    it by s^2 (1 - rho), as if residuals were normal; s^2 has a scale-free prior. If every row is a
    cluster of its own, the result is the prior's mean. rho is not negative.
    """
    n, (a, b) = len(residuals), _PRIOR
    if not n:
        return a / (a + b)
    _, place, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
    away = residuals - residuals.mean(axis=0)
    sums = np.stack([np.bincount(place, column, len(sizes)) for column in away.T], axis=1)
    between = (sums**2).sum(axis=1) / sizes
    within = max(float((away**2).sum() - between.sum()), 0.0)
    # Clusters of one size are alike, whatever their number.
    size, which = np.unique(sizes, return_inverse=True)
    number, between = np.bincount(which), np.bincount(which, between)
    one = _ONE_LABEL / n
    height = a * np.log(_GRID) + b * np.log1p(-_GRID)
    wide = 1 + (size - 1) * _GRID[:, None]
    squares = ((between + one * number) / wide).sum(axis=1)
    squares += (within + one * (n - len(sizes))) / (1 - _GRID)
    height -= 0.5 * (np.log(wide) @ number + (n - len(sizes)) * np.log1p(-_GRID))
    height -= 0.5 * n * np.log(squares)
    return float(softmax(height, axis=0) @ _GRID)


class Worth(NamedTuple):
    """Effective number of rows, n_eff: how many independent rows of equal weight they are worth.

    Also the degrees of freedom of an estimate of their variance from the clusters (Satterthwaite's:
    with one clustering of equal clusters, their number less one), the share of v'Rv that is the
    rows' `own`, and the number of clusterings.
    """

    rows: float
    freedom: float
    own: float = 1.0
    clusterings: int = 1

    @property
    def widening(self) -> float:
        """Factor of the variance, which clusters show less well than n_eff independent rows.

        f(G) / f(n_eff), with f(x) = (t / z)^2 (x + 1) / (x - 1) and freedom G - 1: the Bayesian
        bootstrap of x values has the variance (x - 1) / (x + 1) s^2 / x, and intervals of a mean
        are Student's. What few independent rows need, pseudo-observations provide.
        """
        return max(_few_rows_factor(self.freedom + 1) / _few_rows_factor(self.rows), 1.0)

    @property
    def exponent(self) -> float:
        """The g of row weights, products of Exp(1)^g / Gamma(1 + g) over a row's clusters.

        A factor has the squared coefficient of variation s = Gamma(1 + 2g) / Gamma(1 + g)^2 - 1.
        With C clusterings the variance of a sum is (1 + s)^C - 1 times the part of the rows by
        themselves (2^C - 1 times too much with g = 1; Owen 2007), and s times the rest; normalising
        over G clusters multiplies it by (G + 1) / (G + s).
        """
        steps = np.linspace(0.1, 3.0, 581)
        spread = np.exp(gammaln(1 + 2 * steps) - 2 * gammaln(1 + steps)) - 1
        sums = self.own * ((1 + spread) ** self.clusterings - 1) + (1 - self.own) * spread
        s, g = float(np.interp(self.widening, sums, spread)), max(self.freedom + 1, 2.0)
        return float(np.interp(s * g / max(g + 1 - s, 0.5), spread, steps))


def worth(
    weights: Floats, clusters: Sequence[UInts], correlation: Sequence[float], times: Floats
) -> Worth:
    """`Worth` of rows by weights (n,), keys of clusters, and `times` (n,) that each one counts."""
    total, squared_mass = float((times * weights).sum()), float((times * weights**2).sum())
    if not squared_mass:
        return Worth(0.0, 0.0)
    spread, freedom = squared_mass, 0.0
    for keys, rho in zip(clusters, correlation, strict=True):
        _, place = np.unique(keys, return_inverse=True)
        squares = float((np.bincount(place, times * weights) ** 2).sum())
        spread += rho * (squares - squared_mass)
        component = squared_mass / len(correlation) + rho * (squares - squared_mass)
        freedom += component**2 / max(total**2 / squares - 1, 1e-9)
    rows = total**2 / spread
    freedom = spread**2 / freedom if freedom else rows - 1
    return Worth(rows, freedom, squared_mass / spread, max(len(correlation), 1))


def powers(clusters: Sequence[UInts], correlation: Sequence[float], kind: Ints) -> Floats:
    """Power of each row's likelihood, (n,), given the other rows of its `kind` (n,)."""
    out = np.ones(len(kind))
    for keys, rho in zip(clusters, correlation, strict=True):
        both = np.stack([keys, kind.astype(np.uint64)], axis=1)
        _, place, size = np.unique(both, axis=0, return_inverse=True, return_counts=True)
        out += rho * (size[place.ravel()] - 1)
    return 1 / out


@cache
def _few_rows_factor(rows: float) -> float:
    """f(x): see `Worth.widening`."""
    freedom = max(rows - 1, 1.0)
    ratio = stdtrit(freedom, 0.95) / ndtri(0.95)
    return float(ratio**2 * (freedom + 2) / freedom)
