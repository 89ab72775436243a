"""Multinomial logistic regression with a Gaussian prior: posterior mode, curvature, evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.simplex import logsumexp, softmax

_AT_ONCE = 2**22


class Mode(NamedTuple):
    """Posterior mode (p,), negative Hessian there (p, p), log evidence (Laplace), convergence."""

    coefficients: Floats
    hessian: Floats
    log_evidence: float
    converged: bool


def fit_map(
    design: Floats, evidence: Floats, mean: Floats, precision: Floats, *, offsets: bool = False,
    iterations: int = 100,
) -> Mode:  # fmt: skip
    """Maximise sum_i log sum_k exp(evidence_ik) softmax_k(design_i beta) + log N(beta) by Newton.

    Parameters
    ----------
    design
        Features of each item and class, shape (n, K, p).
    evidence
        Log-likelihood of what is known of each label, shape (n, K): one-hot for a known label.
    mean, precision
        Gaussian prior of the coefficients, both (p,); with `offsets` both (K + p,).
    offsets
        Whether each class has a constant of its own; the K constants come first.

    Notes
    -----
    With known labels the objective is concave, and damped Newton finds its one maximum. With
    soft evidence it need not be: the Hessian is then lifted until it is positive definite.
    """
    every = np.arange(design.shape[2])[None]
    by_class = np.empty((1, 0), dtype=np.int64)
    if offsets:
        design = with_constant(design)
        by_class = np.full((1, 1), design.shape[2] - 1)
    given = (design, evidence, every, by_class, mean[None], precision[None])
    return next(fit_maps(*given, iterations=iterations))


def with_constant(features: Floats) -> Floats:
    """Features (n, K, F) and a last one that is 1, whose coefficient by class is an offset."""
    return np.concatenate([features, np.ones((*features.shape[:2], 1))], axis=2)


def fit_maps(
    features: Floats, evidence: Floats, columns: Ints, by_class: Ints, means: Floats,
    precisions: Floats, *, iterations: int = 100,
) -> Iterator[Mode]:  # fmt: skip
    """`fit_map` of several regressions on some of the features (n, K, F), in order.

    The features `columns` (B, p) have one coefficient each, the features `by_class` (B, c) one for
    every class: logit_ik = sum_c u_ck phi_ikc + sum_p b_p x_ikp. Means and precisions are
    (B, c K + p), those by class first. Columns for classes are never laid out, so memory is that of
    the features and of a Hessian. All of a batch take their Newton steps together.
    """
    n, k, _ = features.shape
    size = n * k * (columns.shape[1] + by_class.shape[1]) + means.shape[1] ** 2

    def run(some: slice) -> list[Mode]:
        x = np.ascontiguousarray(features[:, :, columns[some]].transpose(2, 0, 1, 3))
        phi = np.ascontiguousarray(features[:, :, by_class[some]].transpose(2, 3, 0, 1))
        given = _Regressions(x, phi, _Known.of(evidence), means[some], precisions[some])
        return list(_newton(given, iterations))

    for modes in map_blocks(run, spans(len(means), max(_AT_ONCE // max(size, 1), 1))):
        yield from modes


def log_posterior(
    x: Floats, phi: Floats, evidence: Floats, mean: Floats, precision: Floats, beta: Floats
) -> Floats:
    """What is maximised, at each of several coefficients (D, c K + p): (D,), less a constant.

    x (n, K, p) are the features of one coefficient, phi (n, K, c) those by class.
    """
    n, k, _ = x.shape
    size = k * phi.shape[2]
    out = -0.5 * (precision * (beta - mean) ** 2).sum(axis=1)
    for some in spans(len(beta), max(_AT_ONCE // max(n * k, 1), 1)):
        logits = np.einsum("nkp,dp->dnk", x, beta[some, size:], optimize=True)
        for c in range(phi.shape[2]):
            logits += phi[:, :, c] * beta[some, None, c * k : (c + 1) * k]
        fit = logsumexp(logits + evidence, axis=2) - logsumexp(logits, axis=2)
        out[some] += fit.sum(axis=1)
    return out


class _Known(NamedTuple):
    """Evidence (n, K), and the labels (n,) where it is nothing but known labels."""

    evidence: Floats
    labels: Ints | None

    @staticmethod
    def of(evidence: Floats) -> _Known:
        certain = (evidence == 0).sum(axis=1) == 1
        known = certain.all() and np.isin(evidence, (0, -np.inf)).all()
        return _Known(evidence, evidence.argmax(axis=1) if known else None)


class _Regressions(NamedTuple):
    """Features x (B, n, K, p) and by class phi (B, c, n, K), evidence, prior means, precisions."""

    x: Floats
    phi: Floats
    known: _Known
    mean: Floats
    precision: Floats

    def of(self, rows: Ints) -> _Regressions:
        return self._replace(
            x=self.x[rows],
            phi=self.phi[rows],
            mean=self.mean[rows],
            precision=self.precision[rows],
        )

    def values(self, beta: Floats) -> tuple[Floats, Floats]:
        """Objectives (B,) at coefficients (B, c K + p), and logits (B, n, K)."""
        b, n, k, p = self.x.shape
        size = k * self.phi.shape[1]
        logits = (self.x.reshape(b, n * k, p) @ beta[:, size:, None]).reshape(b, n, k)
        for c in range(self.phi.shape[1]):
            logits += self.phi[:, c] * beta[:, None, c * k : (c + 1) * k]
        if self.known.labels is None:
            said = logsumexp(logits + self.known.evidence, axis=2)
        else:
            said = logits[:, np.arange(n), self.known.labels]
        fit = said - logsumexp(logits, axis=2)
        prior = 0.5 * (self.precision * (beta - self.mean) ** 2).sum(axis=1)
        return fit.sum(axis=1) - prior, logits

    def slopes(self, beta: Floats, logits: Floats) -> tuple[Floats, Floats]:
        """Gradients (B, c K + p) and negative Hessians (B, c K + p, c K + p)."""
        b, n, k, p = self.x.shape
        model = softmax(logits, axis=2)
        hessian = self._spread(model)
        gap = np.negative(model, out=model)
        if self.known.labels is None:
            known = softmax(logits + self.known.evidence, axis=2)
            hessian -= self._spread(known)
            gap += known
        else:
            gap[:, np.arange(n), self.known.labels] += 1
        of_classes = [(gap * self.phi[:, c]).sum(axis=1) for c in range(self.phi.shape[1])]
        of_slopes = (gap.reshape(b, 1, n * k) @ self.x.reshape(b, n * k, p))[:, 0]
        gradient = np.concatenate([*of_classes, of_slopes], axis=1)
        gradient -= self.precision * (beta - self.mean)
        every = np.arange(hessian.shape[1])
        hessian[:, every, every] += self.precision
        return gradient, hessian

    def _spread(self, weights: Floats) -> Floats:
        """Sum over items of the covariance of the design's rows under weights (B, n, K).

        With g_c = w phi_c, the blocks by class are diag(sum_i g_c phi_d) - g_c' g_d.
        """
        b, n, k, p = self.x.shape
        size = k * self.phi.shape[1]
        out = np.empty((b, size + p, size + p))
        mean = np.einsum("bnk,bnkp->bnp", weights, self.x)
        weighted = (self.x * weights[..., None]).reshape(b, n * k, p)
        within = weighted.swapaxes(1, 2) @ self.x.reshape(b, n * k, p)
        out[:, size:, size:] = within - mean.swapaxes(1, 2) @ mean
        every, parts = np.arange(k), [weights * self.phi[:, c] for c in range(self.phi.shape[1])]
        for c, g in enumerate(parts):
            own = slice(c * k, (c + 1) * k)
            for d, other in enumerate(parts[: c + 1]):
                block = -(g.swapaxes(1, 2) @ other)
                block[:, every, every] += (g * self.phi[:, d]).sum(axis=1)
                out[:, own, d * k : (d + 1) * k] = block
                out[:, d * k : (d + 1) * k, own] = block.swapaxes(1, 2)
            across = np.einsum("bnk,bnkp->bkp", g, self.x) - g.swapaxes(1, 2) @ mean
            out[:, own, size:] = across
            out[:, size:, own] = across.swapaxes(1, 2)
        return out


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
