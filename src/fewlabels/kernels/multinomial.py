"""Multinomial logistic regression with a Gaussian prior: posterior mode, curvature, evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.simplex import logsumexp, softmax

_AT_ONCE = 2**22


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
    every = np.arange(design.shape[2])[None]
    found = fit_maps(design, evidence, every, mean[None], precision[None], iterations=iterations)
    return next(found)


def fit_maps(
    design: Floats, evidence: Floats, columns: Ints, means: Floats, precisions: Floats,
    *, iterations: int = 100,
) -> Iterator[Mode]:  # fmt: skip
    """`fit_map` of several regressions on columns (B, p) of one design (n, K, P), in order.

    Means and precisions are (B, p). All take their Newton steps together.
    """
    n, k, _ = design.shape
    for some in spans(len(columns), max(_AT_ONCE // max(n * k * columns.shape[1], 1), 1)):
        chosen = np.ascontiguousarray(design[:, :, columns[some]].transpose(2, 0, 1, 3))
        yield from _newton(
            _Regressions(chosen, evidence, means[some], precisions[some]), iterations
        )


def log_posterior(
    design: Floats, evidence: Floats, mean: Floats, precision: Floats, beta: Floats
) -> Floats:
    """What `fit_map` maximises, at each of several coefficients (D, p): (D,), less a constant."""
    n, k, _ = design.shape
    out = -0.5 * (precision * (beta - mean) ** 2).sum(axis=1)
    for some in spans(len(beta), max(_AT_ONCE // max(n * k, 1), 1)):
        logits = np.einsum("nkp,dp->dnk", design, beta[some], optimize=True)
        fit = logsumexp(logits + evidence, axis=2) - logsumexp(logits, axis=2)
        out[some] += fit.sum(axis=1)
    return out


class _Regressions(NamedTuple):
    """Designs (B, n, K, p), evidence (n, K), prior means and precisions (B, p)."""

    design: Floats
    evidence: Floats
    mean: Floats
    precision: Floats

    def of(self, rows: Ints) -> _Regressions:
        return self._replace(
            design=self.design[rows], mean=self.mean[rows], precision=self.precision[rows]
        )

    def values(self, beta: Floats) -> tuple[Floats, Floats]:
        """Objectives (B,) at coefficients (B, p), and logits (B, n, K)."""
        b, n, k, p = self.design.shape
        logits = (self.design.reshape(b, n * k, p) @ beta[:, :, None]).reshape(b, n, k)
        fit = logsumexp(logits + self.evidence, axis=2) - logsumexp(logits, axis=2)
        prior = 0.5 * (self.precision * (beta - self.mean) ** 2).sum(axis=1)
        return fit.sum(axis=1) - prior, logits

    def slopes(self, beta: Floats, logits: Floats) -> tuple[Floats, Floats]:
        """Gradients (B, p) and negative Hessians (B, p, p)."""
        b, n, k, p = self.design.shape
        model, known = softmax(logits, axis=2), softmax(logits + self.evidence, axis=2)
        flat = self.design.reshape(b, n * k, p)
        gap = (known - model).reshape(b, 1, n * k)
        gradient = (gap @ flat)[:, 0] - self.precision * (beta - self.mean)
        hessian = self._spread(model)
        certain = (self.evidence == 0).sum(axis=1) == 1
        if not (certain.all() and np.isin(self.evidence, (0, -np.inf)).all()):
            hessian = hessian - self._spread(known)
        hessian[:, np.arange(p), np.arange(p)] += self.precision
        return gradient, hessian

    def _spread(self, weights: Floats) -> Floats:
        """Sum over items of the covariance of the design's rows under weights: (B, p, p)."""
        b, n, k, p = self.design.shape
        mean = np.einsum("bnk,bnkp->bnp", weights, self.design)
        weighted = (self.design * weights[..., None]).reshape(b, n * k, p)
        result: Floats = weighted.swapaxes(1, 2) @ self.design.reshape(b, n * k, p)
        return result - mean.swapaxes(1, 2) @ mean


def _newton(given: _Regressions, iterations: int) -> Iterator[Mode]:
    beta = given.mean.copy()
    value, logits = given.values(beta)
    gradient, hessian = given.slopes(beta, logits)
    active, converged = np.arange(len(beta)), np.zeros(len(beta), dtype=bool)
    for _ in range(iterations):
        lifted = _positive_definite(hessian[active], given.precision[active])
        step = np.linalg.solve(lifted, gradient[active][:, :, None])[:, :, 0]
        decrement = (gradient[active] * step).sum(axis=1)
        done = decrement < 1e-12
        converged[active[done]] = True
        active, step, decrement = active[~done], step[~done], decrement[~done]
        if not len(active):
            break
        some = given if len(active) == len(beta) else given.of(active)
        size = np.ones(len(active))
        while True:
            moved = beta[active] + size[:, None] * step
            reached, logits = some.values(moved)
            short = (reached < value[active] + 1e-4 * size * decrement) & (size >= 1e-8)
            if not short.any():
                break
            size[short] /= 2
        beta[active], value[active] = moved, reached
        gradient[active], hessian[active] = some.slopes(moved, logits)
    hessian = _positive_definite(hessian, given.precision)
    evidence = value + 0.5 * np.log(given.precision).sum(axis=1)
    evidence = evidence - 0.5 * np.linalg.slogdet(hessian)[1]
    for row in range(len(beta)):
        yield Mode(beta[row], hessian[row], float(evidence[row]), bool(converged[row]))


def _positive_definite(hessian: Floats, precision: Floats) -> Floats:
    """Hessians themselves where they are positive definite; else their eigenvalues are lifted."""
    try:
        np.linalg.cholesky(hessian)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(hessian)
        floor = 0.1 * precision.min(axis=1, keepdims=True)
        lifted: Floats = (vectors * np.maximum(values, floor)[:, None, :]) @ vectors.swapaxes(1, 2)
        plain = values.min(axis=1) > 0
        lifted[plain] = hessian[plain]
        return lifted
    return hessian
