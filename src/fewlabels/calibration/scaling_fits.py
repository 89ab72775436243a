"""Temperature, vector and matrix scaling: likelihoods of label counts and their derivatives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.simplex import softmax

LOG_TEMPERATURES = (-7.0, 7.0)
"""Log temperatures are sought in here: beyond, a softmax of logits is an argmax or flat."""

_BLOCK = 2**16
"""Numbers of a block of rows."""


class Labels(NamedTuple):
    """Weighted counts (n, K), scaled so that all of them sum to 1, and their row sums (n,)."""

    counts: Floats
    totals: Floats


class Temperature(NamedTuple):
    """A log temperature, whether it is a minimum inside the range, and evaluations spent."""

    log_temperature: float
    converged: bool
    n_iter: int


def labels_of(counts: Floats, weight: Floats) -> Labels:
    """Counts (n, K) of items with a weight (n,), ready for the likelihoods here."""
    weighted = counts * weight[:, None]
    weighted /= weighted.sum()
    return Labels(weighted, weighted.sum(axis=1))


def negative_log_likelihood(logits: Floats, labels: Labels) -> float:
    """Mean over all labels of -log softmax(logits), multinomial coefficients left out."""
    return sum(
        map_blocks(lambda rows: _residual(logits[rows].copy(), labels, rows), _blocks(logits))
    )


def _blocks(logits: Floats) -> list[slice]:
    """Blocks of rows that stay in the cache; always the same, whatever the number of threads."""
    return spans(len(logits), max(_BLOCK // logits.shape[1], 1))


def _residual(z: Floats, labels: Labels, rows: slice) -> float:
    """The loss of some rows of logits z, which are overwritten by its derivative in them."""
    totals, counts = labels.totals[rows], labels.counts[rows]
    z -= z.max(axis=1, keepdims=True)
    fit = float(np.einsum("nk,nk->", counts, z))
    np.exp(z, out=z)
    total = z.sum(axis=1)
    loss = float(totals @ np.log(total)) - fit
    z *= (totals / total)[:, None]
    z -= counts
    return loss


def temperature_loss(log_temperature: float, logits: Floats, labels: Labels) -> tuple[float, float]:
    """Negative log-likelihood of softmax(u / t), and its derivative in log t.

    Source: Guo et al. (2017), section 4.2.
    """
    sharpness = np.exp(-log_temperature)

    def part(rows: slice) -> tuple[float, float]:
        z = logits[rows] * sharpness
        loss = _residual(z, labels, rows)
        return loss, float(np.einsum("nk,nk->", z, logits[rows]))

    value, slope = map(sum, zip(*map_blocks(part, _blocks(logits)), strict=True))
    return value, -slope * float(sharpness)


def fit_temperature(logits: Floats, labels: Labels) -> Temperature:
    """The log temperature of least loss: the root of a derivative that changes sign once.

    The loss is convex in 1/t. Without a root in the range (no label is ever wrong, or predictions
    are worse than none) the nearer end is returned, not converged.
    """
    u = logits - logits.max(axis=1, keepdims=True)  # the same softmax; no overflow at a small t

    def slope(log_t: float) -> float:
        # In units of 1/t, so that the root-finder sees a monotone function, not one that dies out.
        return temperature_loss(log_t, u, labels)[1] * float(np.exp(log_t))

    low, high = LOG_TEMPERATURES
    at_low, at_high = slope(low), slope(high)
    if at_low >= 0 or at_high <= 0:
        flat = at_low >= 0 and at_high <= 0  # the same logit for all classes: any t will do
        return Temperature(0.0 if flat else low if at_low >= 0 else high, flat, 2)
    root, report = brentq(slope, low, high, xtol=1e-13, full_output=True)
    return Temperature(float(root), bool(report.converged), int(report.function_calls) + 2)


class Affine(NamedTuple):
    """Which coefficients of W u + b there are: all of W (matrix scaling) or its diagonal (vector).

    Penalties: `off_diagonal` times the mean square of the off-diagonal entries of W, `intercept`
    times that of b (ODIR: Kull et al. 2019, section 3; vector scaling has the second alone).
    """

    full: bool
    off_diagonal: float
    intercept: float


def apply_affine(weights: Floats, intercept: Floats, logits: Floats) -> Floats:
    """W u + b for every row u, with W (K, K) or its diagonal (K,)."""
    scaled = logits * weights if weights.ndim == 1 else logits @ weights.T
    scaled += intercept
    return scaled


def split_coefficients(theta: Floats, k: int) -> tuple[Floats, Floats]:
    """W, (K, K) or (K,), and b (K,) of a flat vector."""
    weights = theta[:-k]
    return weights.reshape(k, k) if len(weights) > k else weights, theta[-k:]


def identity(k: int, *, full: bool) -> Floats:
    """The flat coefficients that leave logits as they are."""
    weights = np.eye(k).ravel() if full else np.ones(k)
    return np.concatenate([weights, np.zeros(k)])


def affine_loss(
    theta: Floats, logits: Floats, labels: Labels, form: Affine
) -> tuple[float, Floats]:
    """Penalised negative log-likelihood of softmax(W u + b), and its gradient, both flat."""
    k = logits.shape[1]
    weights, intercept = split_coefficients(theta, k)

    def part(rows: slice) -> tuple[float, Floats]:
        u = logits[rows]
        z = apply_affine(weights, intercept, u)
        loss = _residual(z, labels, rows)
        by_weights = z.T @ u if form.full else np.einsum("nk,nk->k", z, u)
        return loss, np.concatenate([by_weights.ravel(), z.sum(axis=0)])

    value, slope = map(sum, zip(*map_blocks(part, _blocks(logits)), strict=True))
    bend = penalty_curvature(k, form)
    away = bend * theta
    if form.full:
        away[: k * k : k + 1] = 0.0
    return value + 0.5 * float(away @ theta), slope + away


def penalty_curvature(k: int, form: Affine) -> Floats:
    """Second derivatives of the penalties, flat."""
    intercept = np.full(k, 2 * form.intercept / k)
    if not form.full:
        return np.concatenate([np.zeros(k), intercept])
    off = np.full((k, k), 2 * form.off_diagonal / (k * (k - 1)))
    np.fill_diagonal(off, 0.0)
    return np.concatenate([off.ravel(), intercept])


def affine_hessian(theta: Floats, logits: Floats, labels: Labels, form: Affine) -> Floats:
    """Second derivatives of `affine_loss`, (P, P)."""
    k = logits.shape[1]
    weights, intercept = split_coefficients(theta, k)

    def part(rows: slice) -> Floats:
        u = logits[rows]
        inputs = np.column_stack([u, np.ones(len(u))]) if form.full else u
        p = softmax(apply_affine(weights, intercept, u))
        mass = labels.totals[rows, None] * p
        return _spread(p, mass, inputs, full=form.full)

    hessian: Floats = sum(map_blocks(part, _blocks(logits)), np.diag(penalty_curvature(k, form)))
    return hessian


def _spread(p: Floats, mass: Floats, inputs: Floats, *, full: bool) -> Floats:
    """Second derivatives of the likelihood of some rows, (P, P): sum N x x' (diag(p) - p p')."""
    k = p.shape[1]
    if not full:
        moved = np.hstack([p * inputs, p])
        out = -np.hstack([mass * inputs, mass]).T @ moved
        own = [mass * inputs**2, mass * inputs, mass]
        at = np.arange(k)
        for (a, b), part in zip(((0, 0), (0, k), (k, k)), own, strict=True):
            out[at + a, at + b] += part.sum(axis=0)
            if a != b:
                out[at + b, at + a] += part.sum(axis=0)
        return out
    each = (p[:, :, None] * inputs[:, None, :]).reshape(len(p), -1)
    weighted = (mass[:, :, None] * inputs[:, None, :]).reshape(len(p), -1)
    every = -weighted.T @ each
    place = np.arange(k * (k + 1)).reshape(k, k + 1)  # a row per class; its last input is constant
    for a in range(k):
        every[np.ix_(place[a], place[a])] += weighted[:, place[a]].T @ inputs
    order = np.concatenate([place[:, :k].ravel(), place[:, k]])
    ordered: Floats = every[np.ix_(order, order)]
    return ordered
