"""Multinomial logistic regression with a Gaussian prior: posterior mode, curvature, evidence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.simplex import logsumexp, softmax


class Mode(NamedTuple):
    """Posterior mode (p,), negative Hessian there (p, p), log evidence (Laplace), convergence."""

    coefficients: Floats
    hessian: Floats
    log_evidence: float
    converged: bool


def fit_map(
    design: Floats, evidence: Floats, mean: Floats, precision: Floats, *, iterations: int = 100
) -> Mode:
    """Maximise sum_i log sum_k exp(evidence_ik) softmax_k(design_i beta) + log N(beta) by Newton.

    Parameters
    ----------
    design
        Features of each item and class, shape (n, K, p).
    evidence
        Log-likelihood of what is known of each label, shape (n, K): one-hot for a known label.
    mean, precision
        Gaussian prior of the coefficients, both (p,).

    Notes
    -----
    With known labels the objective is concave, and damped Newton finds its one maximum. With
    soft evidence it need not be: the Hessian is then lifted until it is positive definite.
    """
    beta = mean.copy()
    value, gradient, hessian = _objective(beta, design, evidence, mean, precision)
    converged = False
    for _ in range(iterations):
        step = np.linalg.solve(_positive_definite(hessian, precision), gradient)
        decrement = float(gradient @ step)
        if decrement < 1e-12:
            converged = True
            break
        size = 1.0
        while True:
            trial = _objective(beta + size * step, design, evidence, mean, precision)
            if trial[0] >= value + 1e-4 * size * decrement or size < 1e-8:
                break
            size /= 2
        beta = beta + size * step
        value, gradient, hessian = trial
    hessian = _positive_definite(hessian, precision)
    log_evidence = value + 0.5 * np.log(precision).sum() - 0.5 * np.linalg.slogdet(hessian)[1]
    return Mode(beta, hessian, float(log_evidence), converged)


def _objective(
    beta: Floats, design: Floats, evidence: Floats, mean: Floats, precision: Floats
) -> tuple[float, Floats, Floats]:
    deviation = beta - mean
    logits = design @ beta
    joint = logits + evidence
    value = float(
        (logsumexp(joint) - logsumexp(logits)).sum() - 0.5 * deviation @ (precision * deviation)
    )
    model, known = softmax(logits), softmax(joint)
    gradient = np.tensordot(known - model, design, axes=2) - precision * deviation
    hessian = _spread(design, model) - _spread(design, known) + np.diag(precision)
    return value, gradient, hessian


def _spread(design: Floats, p: Floats) -> Floats:
    """Sum over items of the covariance of the design's rows under p: (p, p)."""
    mean = np.einsum("nk,nkp->np", p, design)
    weighted = (design * p[:, :, None]).reshape(-1, design.shape[2])
    result: Floats = weighted.T @ design.reshape(-1, design.shape[2]) - mean.T @ mean
    return result


def _positive_definite(hessian: Floats, precision: Floats) -> Floats:
    """The Hessian itself where it is positive definite; else its eigenvalues are lifted."""
    try:
        np.linalg.cholesky(hessian)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(hessian)
        floor = 0.1 * precision.min()
        lifted: Floats = (vectors * np.maximum(values, floor)) @ vectors.T
        return lifted
    return hessian
