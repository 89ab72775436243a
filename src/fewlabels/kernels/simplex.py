"""Probabilities, their logarithms, and pools of several classifiers'."""

from __future__ import annotations

import numpy as np

from fewlabels.kernels.arrays import Floats

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
