"""Differences that a method may be wrong about, and what the labels say of them.

A method's draws say how sure it is of a difference if it is right about how classifiers deviate
from one another. That it is not is allowed for: the difference of two has a discrepancy beside, of
variance v / 50, with v the variance of one item's part in the difference. So what a method makes of
items without a label is worth 50 labels at most. Classifiers that say the same of every item have
v = 0 and stay tied.

The labels say how large the discrepancies are here. Let e be the errors of the method's values,
less what all classifiers share; S the covariance of its draws; r the residuals of the labeled
items, an observation of e of covariance R. The method has seen the labels: S is what they left of
an A with S^-1 = A^-1 + R^-1. With the discrepancies' covariance G, A becomes A + G, and

    covariance = ((A + G)^-1 + R^-1)^-1,    shift = R (A + G + R)^-1 G R^-1 r.

With G = 0 nothing changes; with much of it values are rectified by the labels. In no direction is
the variance larger than both S and R.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import helmert

from fewlabels.kernels.arrays import Floats, Ints

WORTH = 50
"""How many labels a method's word on a difference is worth at most.

Chosen among 25, 35, 50, 70, 100 and 200 on 366 sets of scikit-learn's learners
(`benchmarks/study/families.py`), 249 of normal scores with random common factors and calibration,
and 150 in which one classifier errs independently of the others, which err alike: with 20 to 200
labels and learned-ensemble, 90% intervals of differences in accuracy, Brier score and AUC miss 1%
to 8% in the first two and 4% to 13% in the third, where without the allowance they miss 8% to 26%.
Smaller numbers widen without need. None of these sets is reported on.
"""

_FEWEST, _WIDE = 20, 1e4


class Residuals(NamedTuple):
    """Metrics of the labeled items minus what a method expects of them.

    Values (M,), NaN where it is not known, and their covariance (M, M). `draws` (D, M) are the
    method's where those of the metric are partly the labels': a difference hears the labels by its
    discrepancy.
    """

    value: Floats
    covariance: Floats
    draws: Floats


def with_discrepancy(
    values: Floats, draws: Floats, variance: Floats, residuals: Residuals | None, seed: int
) -> tuple[Floats, Floats]:
    """Values (M,) and draws (D, M) whose differences allow for the method's being wrong.

    Differences alone have a meaning: what all share is not touched.

    Parameters
    ----------
    variance
        Variance of one item's part in each difference, (M, M); where it is NaN the largest counts.
    residuals
        None: no label says anything.
    seed
        Of the discrepancies' draws.
    """
    there = np.flatnonzero(np.isfinite(values) & np.isfinite(draws).any(axis=0))
    known = np.isfinite(variance[np.ix_(there, there)])
    whole = draws[np.isfinite(draws[:, there]).all(axis=1)]
    first = there.copy()  # of each the first one that is no different
    for i, j in enumerate(there):
        alike = there[:i][variance[there[:i], j] == 0]
        alike = alike[(whole[:, alike] == whole[:, [j]]).all(axis=0)]
        first[i] = alike[0] if len(alike) else j
    chosen = np.unique(first)
    if len(chosen) < 2 or len(whole) < _FEWEST or not known[~np.eye(len(there), dtype=bool)].any():
        return values, draws
    v = variance[np.ix_(chosen, chosen)]
    v = np.where(np.isfinite(v), v, np.nanmax(variance[np.ix_(there, there)]))
    contrasts: Floats = helmert(len(chosen))
    spread = contrasts @ np.cov(whole[:, chosen].T) @ contrasts.T
    # v is a squared distance, so that this is a covariance (Schoenberg 1935), to rounding.
    square = -contrasts @ v @ contrasts.T / (2 * WORTH)
    size, axes = np.linalg.eigh((square + square.T) / 2)
    discrepancy: Floats = axes * np.maximum(size, 0.0) @ axes.T
    shift, extra = np.zeros(len(spread)), discrepancy
    if residuals is not None and np.isfinite(residuals.value[chosen]).any():
        observed, noise = _observed(residuals, chosen, v)
        shift, extra = _updated(
            spread, discrepancy, contrasts @ observed, contrasts @ noise @ contrasts.T
        )
    size, root = np.linalg.eigh(extra)
    normal = np.random.default_rng(seed).standard_normal((len(draws), len(size)))
    normal -= normal.mean(axis=0)
    added = normal * np.sqrt(np.maximum(size, 0.0)) @ root.T @ contrasts
    moved, spread_out = values.copy(), draws.copy()
    place = np.searchsorted(chosen, first)
    moved[there] = values[first] + (shift @ contrasts)[place]
    spread_out[:, there] = draws[:, first] + (shift @ contrasts + added)[:, place]
    return moved, spread_out


def _observed(residuals: Residuals, chosen: Ints, v: Floats) -> tuple[Floats, Floats]:
    """Residuals and their covariance; where one is not known it is 0, and says next to nothing."""
    value = residuals.value[chosen]
    covariance = residuals.covariance[np.ix_(chosen, chosen)]
    blind = ~np.isfinite(value) | ~np.isfinite(np.diag(covariance))
    covariance = np.where(np.isfinite(covariance) & ~blind & ~blind[:, None], covariance, 0.0)
    covariance[blind, blind] = _WIDE * v.max()
    return np.where(blind, 0.0, value), covariance


def _updated(
    spread: Floats, discrepancy: Floats, residual: Floats, noise: Floats
) -> tuple[Floats, Floats]:
    """How far errors are shifted, and what is added to their covariance, in units of the noise.

    With R = L L' and W^2 = 1 - L^-1 S L'^-1, which is (1 + L^-1 A L'^-1)^-1, no inverse of a
    singular matrix is taken. W is 0 where the method knows less than the labels say.
    """
    noise = noise + np.eye(len(noise)) * 1e-12 * max(float(np.trace(noise)), 1e-300)
    root = np.linalg.cholesky(noise)
    inverse = np.linalg.inv(root)
    size, axes = np.linalg.eigh(inverse @ spread @ inverse.T)
    left = axes * np.sqrt(np.clip(1 - size, 0.0, 1.0)) @ axes.T
    scaled = inverse @ discrepancy @ inverse.T
    eye = np.eye(len(left))
    share = np.linalg.inv(eye + left @ scaled @ left)
    shift: Floats = root @ left @ share @ left @ scaled @ inverse @ residual
    extra: Floats = root @ left @ (eye - share) @ left @ root.T
    return shift, (extra + extra.T) / 2
