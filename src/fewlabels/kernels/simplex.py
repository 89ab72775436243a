"""Probabilities, their logarithms, and pools of several classifiers'."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Array, Bools, Floats, Ints

CLIP = 1e-6
"""Probabilities are clipped to [1e-6, 1 - 1e-6] before logarithms: real ones contain 0 and 1."""


def along(fold: np.ufunc, x: Array, axis: int) -> Array:
    """`fold.reduce` along an axis that is kept; slice by slice if it is short: a fifth of the time.

    Of 8 numbers or more numpy adds some first: other bits, which must not depend on the number of
    rows.
    """
    if x.size < 1000 or not 0 < x.shape[axis] < 8 or math.prod(x.shape[axis + 1 :]) > 32:
        return np.asarray(fold.reduce(x, axis=axis, keepdims=True))
    slices = x.swapaxes(0, axis)
    out = slices[0].copy("K")
    for block in slices[1:]:
        fold(out, block, out=out)
    return out[None].swapaxes(0, axis)


def softmax(logits: Floats, axis: int = 1, out: Floats | None = None) -> Floats:
    """Softmax along `axis`; -inf means probability 0."""
    shifted = np.subtract(logits, along(np.maximum, logits, axis), out=out)
    np.exp(shifted, out=shifted)
    shifted /= along(np.add, shifted, axis)
    return shifted


def logsumexp(logits: Floats, axis: int = 1) -> Floats:
    """Log of the sum of exponentials along `axis`."""
    top = along(np.maximum, logits, axis)
    gap = logits - top
    return np.squeeze(np.log(along(np.add, np.exp(gap, out=gap), axis)) + top, axis=axis)


def two_classes(one: Floats) -> Floats:
    """P(class) (n, 2, D) of two classes by the probability of the second, (n, D)."""
    out = np.empty((len(one), 2, one.shape[1]))
    np.subtract(1, one, out=out[:, 0])
    out[:, 1] = one
    return out


def clip(p: Floats) -> Floats:
    """Clip to [1e-6, 1 - 1e-6] and renormalise over the last axis."""
    clipped = np.clip(p, CLIP, 1 - CLIP)
    clipped /= along(np.add, clipped, clipped.ndim - 1)
    return clipped


def centred_log(p: Floats) -> Floats:
    """Log p minus its mean over the classes (last axis)."""
    log = np.log(p)
    log -= along(np.add, log, log.ndim - 1) / log.shape[-1]
    return log


def mean_probability(p: Floats) -> Floats:
    """Mean probability of all classifiers on all items, (n, M, K) -> (K,)."""
    some = ~np.isnan(p[:, :, 0])
    out: Floats = p[some].mean(axis=0) if some.any() else np.full(p.shape[2], 1 / p.shape[2])
    return out


def linear_pool(p: Floats, empty: Floats) -> Floats:
    """Mean probability of the classifiers present, (n, M, K) -> (n, K).

    Items without any prediction get `empty`, (K,).
    """
    present = ~np.isnan(p[:, :, 0])
    count = present.sum(axis=1)
    total = np.where(present[:, :, None], p, 0.0).sum(axis=1)
    pool = total / np.maximum(count, 1)[:, None]
    pool[count == 0] = empty
    return pool


def filled(p: Floats, average: Floats) -> Floats:
    """Probabilities (n, M, K), a missing prediction replaced by the others' mean there.

    Items without any prediction get `average`, (K,). The means are clipped, as logarithms follow.
    """
    missing = np.isnan(p[:, :, 0])
    if not missing.any():
        return p
    return np.where(missing[:, :, None], clip(linear_pool(p, average))[:, None, :], p)


def additive_log_ratio(p: Floats, reference: int = -1) -> Floats:
    """Log p_k / p_reference for the other classes, classifiers side by side: (n, M(K-1)).

    Source: SSME section 4 (the last class is the denominator).
    """
    log = np.log(p)
    ratio = np.delete(log, reference, axis=2) - log[:, :, [reference]]
    return ratio.reshape(len(p), -1)


def crossing(rising: Callable[[float], float], low: float, high: float) -> float:
    """The positive t at which a rising function is 0, between exp(low) and exp(high).

    Searched by its logarithm (Brent 1973), from t = 1 in growing steps; the nearer end where it
    does not cross zero between.
    """
    from scipy.optimize import brentq  # slow to load, and few need it

    log_rising = cache(lambda x: rising(math.exp(x)))
    under, over, step = 0.0, 0.0, 0.5
    while over < high and log_rising(over) < 0:
        under, over, step = over, min(over + step, high), 2 * step
    while under > low and log_rising(under) >= 0:
        under, over, step = max(under - step, low), under, 2 * step
    if log_rising(under) >= 0 or log_rising(over) <= 0:
        return math.exp(under if log_rising(under) >= 0 else over)
    return math.exp(brentq(log_rising, under, over, xtol=1e-13))


_ANCHORS = (0.2, 6.0)


class Pool(NamedTuple):
    """Constants of one pool: temperature of each classifier's logs (M,), scales of u and v."""

    temperatures: Floats
    linear_scale: float
    log_scale: float

    def features(self, c: Floats) -> tuple[Floats, Floats]:
        """Index f = (u + v) / 2 and gap g = (u - v) / 2 of centred logs (n, M, K), both (n, K).

        u is the linear pool, v the log pool; items without any prediction have 0.
        """
        u, v = _pools(c * self.temperatures[:, None])
        u *= self.linear_scale
        v *= self.log_scale
        return (u + v) / 2, (u - v) / 2


def centred_logs(p: Floats) -> Floats:
    """Centred logs of clipped probabilities, (n, M, K); NaN where a classifier gives none."""
    p = np.clip(p, CLIP, 1 - CLIP)
    if p.shape[2] != 2:
        return centred_log(p)
    log = np.log(p)
    half = (log[:, :, 1] - log[:, :, 0]) / 2
    log[:, :, 1] = half
    np.negative(half, out=log[:, :, 0])
    return log


def raw_pool(c: Floats) -> Pool:
    """The pool of probabilities as given; the log pool is made as confident as the linear."""
    u, v = _pools(c)
    some = ~np.isnan(c[:, :, 0]).all(axis=1)
    confidence = softmax(u[some]).max(axis=1).mean()
    return Pool(np.ones(c.shape[1]), 1.0, _scale_to(v[some], confidence))


def calibrated_pool(c: Floats) -> Pool:
    """The pool of classifiers tempered towards their mean, both pools as confident as the mean.

    Temperature t_j maximises sum_ik q_ik log softmax_k(t c_ijk), q the mean classifier, so that
    overconfident classifiers, which mostly say 0 or 1 (trees, naive Bayes), do not dominate.
    """
    some = ~np.isnan(c[:, :, 0]).all(axis=1)
    c = c[some]
    q = softmax(_pools(c)[0])
    temperatures = np.array([_temperature(c[:, j], q) for j in range(c.shape[1])])
    u, v = _pools(c * temperatures[:, None])
    confidence = q.max(axis=1).mean()
    return Pool(temperatures, _scale_to(u, confidence), _scale_to(v, confidence))


def _temperature(c: Floats, q: Floats) -> float:
    provided = ~np.isnan(c[:, 0])
    c, q = c[provided], q[provided]
    if not len(c) or not c.any():
        return 1.0
    wanted = (c * q).sum()
    return crossing(lambda t: float((c * softmax(t * c)).sum() - wanted), -8.0, 10.0)


def _pools(c: Floats) -> tuple[Floats, Floats]:
    """Centred logs of the mean probability, and mean of the logs, of tempered logs (n, M, K)."""
    absent = np.isnan(c[:, :, 0])
    count = np.maximum(along(np.add, (~absent).astype(float), 1), 1)
    p = softmax(c, axis=2)
    if absent.any():
        p[absent], c = 0.0, np.where(absent[:, :, None], 0.0, c)
    u = centred_log(np.maximum(along(np.add, p, 1)[:, 0] / count, 1e-300))
    return u, along(np.add, c, 1)[:, 0] / count


def _scale_to(v: Floats, confidence: float) -> float:
    """Scale at which softmax(scale v) has this mean top probability."""
    if not v.any():
        return 1.0
    gap = v - along(np.maximum, v, 1)
    return crossing(lambda s: (1 / along(np.add, np.exp(s * gap), 1)).mean() - confidence, -7, 7)


def deviation_scales(c: Floats, index: Floats) -> Floats:
    """What brings each classifier's logs to the root mean square of the linear pool, (M,)."""
    count = np.maximum((~np.isnan(c)).sum(axis=(0, 2)), 1)
    rms = np.sqrt(np.nansum(c**2, axis=(0, 2)) / count)
    top = np.sqrt((index**2).mean())
    return np.divide(top, rms, out=np.zeros_like(rms), where=rms > 0)


def mean_agreement(votes: Ints, n_classes: int) -> float:
    """How often two classifiers agree, over pairs and items on which both have a vote (-1: none).

    NaN if no two classifiers vote on the same item.
    """
    counts = vote_counts(votes, n_classes)
    n_votes = counts.sum(axis=1)
    pairs = (n_votes * (n_votes - 1)).sum()
    return float((counts * (counts - 1)).sum() / pairs) if pairs else float("nan")


def distinct(votes: Ints) -> Bools:
    """Which classifiers differ from each one before them on some item that both vote on, (M,).

    Two without such an item are distinct.
    """
    first = np.ones(votes.shape[1], dtype=bool)
    for j in range(1, votes.shape[1]):
        both = (votes[:, :j] >= 0) & (votes[:, [j]] >= 0)
        alike = ~(both & (votes[:, :j] != votes[:, [j]])).any(axis=0)
        first[j] = not (alike & both.any(axis=0)).any()
    return first


def agreement_slope(index: Floats, votes: Ints, agreement: float) -> float:
    """Slope b at which softmax(b f) gives votes, on average, the probability of agreement.

    It is between exp(-2) and exp(2).
    """
    counts = vote_counts(votes, index.shape[1])
    share = counts / counts.sum()
    return crossing(lambda b: float((softmax(b * index) * share).sum() - agreement), -2.0, 2.0)


def agreement_anchor(index: Floats, votes: Ints) -> float:
    """Agreement slope, shrunk towards 1, more with fewer classes; 1 without common items."""
    agreement = mean_agreement(votes, index.shape[1])
    if np.isnan(agreement):
        return 1.0
    slope = agreement_slope(index, votes, agreement)
    anchor: float = np.clip(slope, *_ANCHORS) ** (1 - 1 / index.shape[1])
    return float(anchor)


def vote_counts(votes: Ints, n_classes: int) -> Floats:
    """How many classifiers say each class, (n, K)."""
    return np.stack([(votes == k).sum(axis=1) for k in range(n_classes)], axis=1).astype(float)
