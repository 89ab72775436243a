"""Class frequencies of items whose labels are unknown, P(score | class) being that of others.

With p the frequencies where labels are known and q those sought, w = q / p are the class weights:
P_q(class | score) is proportional to w(class) P_p(class | score).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear

from fewlabels.kernels.arrays import Floats, Ints

_WARM_UP = 5
_TOLERANCE = 1e-9


def likeliest_frequencies(
    probabilities: Floats,
    source: Floats,
    item_weights: Floats,
    *,
    pseudo: float = 1.0,
    iterations: int = 200,
) -> Floats:
    """Frequencies q (K, D) that maximise sum_i v_i log sum_k (q_k / p_k) P(k | s_i).

    Parameters
    ----------
    probabilities
        P(class | score) under the source frequencies, per item, class and draw, (n, K, D).
    source
        The source frequencies p, positive, (K, D).
    item_weights
        Weights v of the items, (n, D).
    pseudo
        Items of each class added beforehand (a Dirichlet prior), so that no class vanishes.

    Notes
    -----
    The likelihood is that of Saerens, Latinne, Decaestecker (2002), whose EM step (their equation
    2.9) starts; it is concave in q, so Newton's steps on the simplex, taken where they go uphill
    inside it, end where EM would, in tens of steps instead of thousands. Draws do not meet.
    """
    ratio = probabilities / source
    k = len(source)
    q = source / source.sum(axis=0)
    if not len(ratio):
        return q
    total = item_weights.sum(axis=0) + k * pseudo
    value = _log_likelihood(ratio, item_weights, q, pseudo)
    for number in range(iterations):
        share = ratio / np.einsum("nkd,kd->nd", ratio, q)[:, None, :]
        weighted = share * item_weights[:, None, :]
        gradient = weighted.sum(axis=0) + pseudo / q
        following = q * gradient / total
        if number >= _WARM_UP:
            newton = q + _newton_step(share, weighted, gradient, q, pseudo)
            inside = (newton > 0).all(axis=0)
            tried = np.where(inside, newton, following)
            reached = _log_likelihood(ratio, item_weights, tried, pseudo)
            following = np.where(reached >= value, tried, following)
        moved = np.abs(following - q).max()
        q = following / following.sum(axis=0)
        value = _log_likelihood(ratio, item_weights, q, pseudo)
        if moved < _TOLERANCE:
            break
    return q


def _log_likelihood(ratio: Floats, item_weights: Floats, q: Floats, pseudo: float) -> Floats:
    mixture = np.einsum("nkd,kd->nd", ratio, q)
    out: Floats = (item_weights * np.log(mixture)).sum(axis=0) + pseudo * np.log(q).sum(axis=0)
    return out


def _newton_step(
    share: Floats, weighted: Floats, gradient: Floats, q: Floats, pseudo: float
) -> Floats:
    """Step (K, D) to the top of the parabola on the plane where frequencies sum to 1."""
    k, d = q.shape
    system = np.zeros((d, k + 1, k + 1))
    # As batched products: the einsum of three axes would run without BLAS.
    system[:, :k, :k] = weighted.transpose(2, 1, 0) @ share.transpose(2, 0, 1)
    system[:, range(k), range(k)] += (pseudo / q**2).T
    system[:, :k, k] = system[:, k, :k] = 1.0
    right = np.zeros((d, k + 1))
    right[:, :k] = gradient.T
    step: Floats = np.linalg.solve(system, right[:, :, None])[:, :k, 0].T
    return step


def bias_correction(
    probabilities: Floats, labels: Ints, noise: Floats, *, spread: float, iterations: int = 30
) -> Floats:
    """Factors c (K, D) by which c(class) P(class | score) is calibrated for labeled items.

    The intercepts log c of a logistic regression of the labels with offset log P, under a normal
    prior around 0; each draw takes its mode plus the noise of its Gaussian (Laplace)
    approximation. Source: the bias term of Alexandari, Kundaje, Shrikumar (2020), section 3.2.

    Parameters
    ----------
    probabilities
        P(class | score) of the labeled items, (n, K, D).
    labels
        Their classes, (n,).
    noise
        Standard normal numbers, (K, D); zeros give the mode.
    spread
        Standard deviation of the prior of log c.
    """
    _, k, d = probabilities.shape
    log_c = np.zeros((k, d))
    counts = np.bincount(labels, minlength=k)[:, None]
    precision = np.eye(k) / spread**2
    for _ in range(iterations):
        p = probabilities * np.exp(log_c)
        p /= p.sum(axis=1, keepdims=True)
        total = p.sum(axis=0)
        gradient = counts - total - log_c / spread**2
        hessian = precision - p.transpose(2, 1, 0) @ p.transpose(2, 0, 1)
        hessian[:, range(k), range(k)] += total.T
        step = np.linalg.solve(hessian, gradient.T[:, :, None])[:, :, 0].T
        # The softmax's curvature is at most 1/2 a unit: steps of one unit cannot overshoot twice.
        log_c += step / np.maximum(np.abs(step).max(axis=0), 1.0)
        if np.abs(step).max() < 1e-9:
            break
    root = np.linalg.cholesky(hessian)
    log_c += np.linalg.solve(root.transpose(0, 2, 1), noise.T[:, :, None])[:, :, 0].T
    return np.exp(log_c - log_c.mean(axis=0))


def black_box_weights(
    predicted: Ints, labels: Ints, target: Ints, n_classes: int, *, ridge: float = 0.0
) -> Floats:
    """Class weights w (K,) that turn the confusion matrix into the target's predictions.

    With C the joint frequencies of prediction and label where labels are known, and m those of
    the predictions elsewhere: minimise |C w - m|^2 + ridge |w - 1|^2 over w >= 0. Without a ridge
    it is BBSE, Lipton, Wang, Smola (2018), equation 2, where C is invertible and w >= 0; with one,
    RLLS, Azizzadenesheli et al. (2019), section 2.1. A class that no label has keeps weight 1.

    Parameters
    ----------
    predicted, labels
        Hard predictions and classes of the items with labels, (n,).
    target
        Hard predictions of the items without, (u,).
    """
    cells = np.bincount(predicted * n_classes + labels, minlength=n_classes**2)
    joint = cells.reshape(n_classes, n_classes) / max(len(labels), 1)
    shares = np.bincount(target, minlength=n_classes) / max(len(target), 1)
    gap = shares - joint.sum(axis=1)
    there = joint.any(axis=0)
    design = np.concatenate([joint[:, there], np.sqrt(ridge) * np.eye(int(there.sum()))])
    out = np.ones(n_classes)
    if there.any():
        goal = np.concatenate([gap, np.zeros(int(there.sum()))])
        out[there] += lsq_linear(design, goal, bounds=(-1.0, np.inf), method="bvls").x
    return np.maximum(out, 0.0)
