"""Labels drawn by stratum: means, their variances, design effects, and how many of each stratum.

With shares W_h of all items, and n_h labels of mean y_h and variance s_h^2 in stratum h
(Cochran 1977, chapter 5):

    mean       sum_h W_h y_h                                                    (5.1)
    variance   sum_h W_h^2 s_h^2 / n_h                                          (5.12, without fpc)
    effect     variance / (S^2 / n),  S^2 = sum_h W_h m_h - mean^2 + variance, m_h mean of squares
    Neyman     n_h = n N_h S_h / sum N_h S_h                                    (5.26)

Strata with one label show no variance: they are taken together, or with the smallest other one
(collapsed strata, section 5A.12).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints, UInts
from fewlabels.kernels.counter_based import gammas, shared_exponentials

_FEWEST_SHAPE = 0.05
"""Shape of the gamma weights of two rows of a stratum, one of which then has nearly all."""


class StratifiedMean(NamedTuple):
    """Mean, its variance, and the variance over that of as many labels drawn at random."""

    mean: float
    variance: float
    design_effect: float


def stratified_mean(values: Floats, strata: Ints, shares: Floats) -> StratifiedMean:
    """Of values (n,) of items of strata 0 .. H - 1, (n,), whose shares of all items are (H,).

    The shares are those of the strata with an item, made to sum to 1.
    """
    count = np.bincount(strata, minlength=len(shares))
    share = np.where(count > 0, shares, 0.0)
    weight = (share / share.sum())[strata] / count[strata]
    mean, variance, apart = float(weight @ values), 0.0, variance_strata(strata)
    for h in np.unique(apart):
        here = apart == h
        if here.sum() > 1:
            variance += float(weight[here].sum() ** 2 * values[here].var(ddof=1) / here.sum())
    alone = (float(weight @ values**2) - mean**2 + variance) / len(values)
    return StratifiedMean(mean, variance, variance / alone if alone > 0 else 1.0)


def variance_strata(strata: Ints) -> Ints:
    """The strata of items, (n,), of which each shows a variance: those of one item are joined."""
    count = np.bincount(strata)
    single = np.flatnonzero(count == 1)
    if not len(single):
        return strata
    others = np.flatnonzero(count > 1)
    together = single[0]
    if len(single) == 1 and len(others):
        together = others[count[others].argmin()]
    return np.where(np.isin(strata, single), together, strata)


def bootstrap_within(
    strata: Ints, keys: UInts, index: Ints, weight: Floats, times: Floats, salt: int,
    clusters: Sequence[UInts] = (),
) -> Floats:  # fmt: skip
    """Row weights (n, D) whose sums over every stratum are those of the sampling weights.

    Gamma(a) variables divided by the sum of n of them are Dirichlet: a mean varies by
    v / (n a + 1), v the variance of the n rows, which is unbiased, v / (n - 1), for
    a = (n - 2) / n. Rows of clusters have their clusters' weights, whatever n.
    """
    _, place, count = np.unique(strata, return_inverse=True, return_counts=True)
    if clusters:
        weights = shared_exponentials(clusters, index, salt)
    else:
        shape = np.maximum((count - 2) / count, _FEWEST_SHAPE)[place] * times
        weights = gammas(keys, index, shape[:, None], salt)
    weights = np.maximum(weights, np.finfo(float).tiny) * weight[:, None]
    sums = np.zeros((len(count), weights.shape[1]))
    np.add.at(sums, place, weights)
    out: Floats = weights * (np.bincount(place, weight * times)[:, None] / sums)[place]
    return out


def allocation(effort: Floats, size: float, least: Floats, most: Floats) -> Floats:
    """How many of each stratum, (H,), `size` in all, in proportion to `effort` within bounds.

    Neyman's, for efforts N_h S_h, where no bound is reached.
    """
    effort = np.where(effort > 0, effort, 1e-12 * max(float(effort.max(initial=0.0)), 1.0))
    size = float(np.clip(size, least.sum(), most.sum()))
    # The sum is piecewise linear in the factor, and bends where a bound is reached.
    bends = np.unique(np.concatenate([[0.0], least / effort, most / effort]))
    sums = np.clip(bends[:, None] * effort, least, most).sum(axis=1)
    out: Floats = np.clip(np.interp(size, sums, bends) * effort, least, most)
    return out


def whole_numbers(shares: Floats) -> Ints:
    """Whole numbers, (H,), of the same sum (to rounding): the largest remainders are rounded up."""
    down = np.floor(shares + 1e-9)
    left = round(float(shares.sum() - down.sum()))
    out = down.astype(np.int64)
    out[np.argsort(-(shares - down), kind="stable")[:left]] += 1
    return out
