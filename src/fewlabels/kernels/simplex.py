"""Probabilities, their logarithms, and pools of several classifiers'."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Bools, Floats, Ints

CLIP = 1e-6
"""Probabilities are clipped to [1e-6, 1 - 1e-6] before logarithms: real ones contain 0 and 1."""


def softmax(logits: Floats, axis: int = 1, out: Floats | None = None) -> Floats:
    """Softmax along `axis`; -inf means probability 0."""
    shifted = np.subtract(logits, logits.max(axis=axis, keepdims=True), out=out)
    np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=axis, keepdims=True)
    return shifted


def logsumexp(logits: Floats, axis: int = 1) -> Floats:
    """Log of the sum of exponentials along `axis`."""
    top = logits.max(axis=axis, keepdims=True)
    total: Floats = np.log(np.exp(logits - top).sum(axis=axis)) + np.squeeze(top, axis=axis)
    return total


def two_classes(one: Floats) -> Floats:
    """P(class) (n, 2, D) of two classes by the probability of the second, (n, D)."""
    out = np.empty((len(one), 2, one.shape[1]))
    np.subtract(1, one, out=out[:, 0])
    out[:, 1] = one
    return out


def clip(p: Floats) -> Floats:
    """Clip to [1e-6, 1 - 1e-6] and renormalise over the last axis."""
    clipped = np.clip(p, CLIP, 1 - CLIP)
    clipped /= clipped.sum(axis=-1, keepdims=True)
    return clipped


def centred_log(p: Floats) -> Floats:
    """Log p minus its mean over the classes (last axis)."""
    log = np.log(p)
    log -= log.mean(axis=-1, keepdims=True)
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

    Searched by its logarithm (Brent 1973); the nearer end where it does not cross zero between.
    """
    from scipy.optimize import brentq  # slow to load, and few need it

    def of_log(x: float) -> float:
        return rising(math.exp(x))

    if of_log(low) >= 0:
        return math.exp(low)
    if of_log(high) <= 0:
        return math.exp(high)
    return math.exp(brentq(of_log, low, high, xtol=1e-13))


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
    """Clipped probabilities' centred logs, (n, M, K); NaN where a classifier says nothing."""
    if p.shape[2] != 2:
        return centred_log(clip(p))
    # Sums over two classes are written out: numpy's over a short axis take most of the time.
    log = np.log(np.clip(p, CLIP, 1 - CLIP))
    half = log[:, :, 1] - log[:, :, 0]
    half /= 2
    log[:, :, 1] = half
    np.negative(half, out=log[:, :, 0])
    return log


def raw_pool(c: Floats) -> Pool:
    """The pool that takes every classifier at its word; the log pool as confident as the linear."""
    u, v = _pools(c)
    some = _some(c)
    confidence = softmax(u[some]).max(axis=1).mean()
    return Pool(np.ones(c.shape[1]), 1.0, _scale_to(v[some], confidence))


def calibrated_pool(c: Floats) -> Pool:
    """The pool of classifiers tempered towards their mean, both pools as confident as the mean.

    Temperature t_j maximises sum_ik q_ik log softmax_k(t c_ijk), q the mean classifier: those that
    say 0 or 1 whatever they know (trees, naive Bayes) do not dominate.
    """
    some = _some(c)
    c = c[some]
    q = softmax(_pools(c)[0])
    temperatures = np.array([_temperature(c[:, j], q) for j in range(c.shape[1])])
    u, v = _pools(c * temperatures[:, None])
    confidence = q.max(axis=1).mean()
    return Pool(temperatures, _scale_to(u, confidence), _scale_to(v, confidence))


def _temperature(c: Floats, q: Floats) -> float:
    given = ~np.isnan(c[:, 0])
    c, q = c[given], q[given]
    if not len(c) or not c.any():
        return 1.0

    def slope(t: float) -> float:
        return float((c * (softmax(t * c) - q)).sum())

    return crossing(slope, -8.0, 10.0)


def _some(c: Floats) -> Bools:
    """Items with a prediction, (n,)."""
    return np.asarray(~np.isnan(c[:, :, 0]).all(axis=1))


def _pools(c: Floats) -> tuple[Floats, Floats]:
    """Centred logs of the mean probability, and mean of the logs, of tempered logs (n, M, K)."""
    k = c.shape[2]
    if k == 2:
        return _pools_of_two(c[:, :, 1])
    present = ~np.isnan(c[:, :, 0])
    u = centred_log(np.maximum(linear_pool(softmax(c, axis=2), np.full(k, 1 / k)), 1e-300))
    total = np.where(present[:, :, None], c, 0.0).sum(axis=1)
    return u, total / np.maximum(present.sum(axis=1), 1)[:, None]


def _pools_of_two(half: Floats) -> tuple[Floats, Floats]:
    """The same for two classes, of half the logits (n, M)."""
    absent = np.isnan(half)
    count = np.maximum(half.shape[1] - absent.sum(axis=1), 1)
    some = absent.any()
    said = np.where(absent, 0.0, half) if some else half
    # exp(-2 |h|) <= 1, so that neither of the two probabilities underflows in the other's shadow.
    small = np.exp(-2 * np.abs(said))
    large = 1 / (1 + small)
    small *= large
    one, other = np.where(said > 0, large, small), np.where(said > 0, small, large)
    if some:
        one[absent] = other[absent] = 0.0
    mean = [np.maximum(part.sum(axis=1) / count, 1e-300) for part in (one, other)]
    u = (np.log(mean[0]) - np.log(mean[1])) / 2
    u[absent.all(axis=1)] = 0.0
    v = said.sum(axis=1) / count
    return np.stack([-u, u], axis=1), np.stack([-v, v], axis=1)


def _scale_to(v: Floats, confidence: float) -> float:
    """Scale at which softmax(scale v) has this mean top probability."""
    if not v.any():
        return 1.0
    return crossing(lambda s: float(softmax(s * v).max(axis=1).mean() - confidence), -7.0, 7.0)


def deviation_scales(c: Floats, index: Floats) -> Floats:
    """What brings each classifier's logs to the root mean square of the linear pool, (M,)."""
    count = np.maximum((~np.isnan(c)).sum(axis=(0, 2)), 1)
    rms = np.sqrt(np.nansum(c**2, axis=(0, 2)) / count)
    top = np.sqrt((index**2).mean())
    return np.divide(top, rms, out=np.zeros_like(rms), where=rms > 0)


def mean_agreement(votes: Ints, n_classes: int) -> float:
    """How often two classifiers agree, over pairs and items on which both say something (-1: not).

    NaN where no two ever do.
    """
    said = vote_counts(votes, n_classes)
    of = said.sum(axis=1)
    pairs = (of * (of - 1)).sum()
    return float((said * (said - 1)).sum() / pairs) if pairs else float("nan")


def distinct(votes: Ints) -> Bools:
    """Which classifiers differ from each one before them on some item that both vote on, (M,).

    Two that never meet are distinct.
    """
    first = np.ones(votes.shape[1], dtype=bool)
    for j in range(1, votes.shape[1]):
        both = (votes[:, :j] >= 0) & (votes[:, [j]] >= 0)
        alike = ~(both & (votes[:, :j] != votes[:, [j]])).any(axis=0)
        first[j] = not (alike & both.any(axis=0)).any()
    return first


def agreement_slope(index: Floats, votes: Ints, agreement: float) -> float:
    """Slope b at which softmax(b f) gives votes, on average, the probability of agreement.

    Searched between exp(-2) and exp(2), where it stops.
    """
    said = vote_counts(votes, index.shape[1])
    share = said / said.sum()
    return crossing(lambda b: float((softmax(b * index) * share).sum() - agreement), -2.0, 2.0)


def agreement_anchor(index: Floats, votes: Ints) -> float:
    """Agreement slope, less trusted the fewer classes there are; 1 where no two meet."""
    agreement = mean_agreement(votes, index.shape[1])
    if np.isnan(agreement):
        return 1.0
    slope = agreement_slope(index, votes, agreement)
    anchor: float = np.clip(slope, *_ANCHORS) ** (1 - 1 / index.shape[1])
    return float(anchor)


def vote_counts(votes: Ints, n_classes: int) -> Floats:
    """How many classifiers say each class, (n, K)."""
    return np.stack([(votes == k).sum(axis=1) for k in range(n_classes)], axis=1).astype(float)
