"""Multinomial logistic regression with a Gaussian prior: posterior mode, curvature, evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.simplex import along, logsumexp, softmax
from fewlabels.kernels.votes import distinct_columns

_AT_ONCE, _CACHED, _HELD = 2**20, 2**16, 2**24
"""Numbers worked on at a time; logits of candidates, which stay in the processor's cache; features
of a batch that are kept in memory: more are gathered anew."""

_PART = 2**20
"""Features of a part of the items: pieces of this size reuse memory, larger ones are requested from
the system every time."""


class Mode(NamedTuple):
    """Posterior mode (p,), negative Hessian there (p, p), log evidence (Laplace), convergence."""

    coefficients: Floats
    hessian: Floats
    log_evidence: float
    converged: bool


def fit_map(
    design: Floats, evidence: Floats, mean: Floats, precision: Floats, *, offsets: bool = False,
    power: Floats | None = None, iterations: int = 100,
) -> Mode:  # fmt: skip
    """Maximise sum_i w_i log sum_k exp(evidence_ik) softmax_k(x_i beta) + log N(beta) by Newton.

    `design` (n, K, p) holds the features x of each item and class, `evidence` (n, K) the
    log-likelihood of what is known of each label (one-hot for a known one), and `power` (n,) the
    powers w (None: 1). The Gaussian prior has `mean` and `precision` (p,); with `offsets` each
    class has a constant of its own, these K come first, and both are (K + p,).

    With known labels the objective is concave, and damped Newton finds its one maximum. With soft
    evidence it need not be: the Hessian is then lifted until it is positive definite.
    """
    every = np.arange(design.shape[2])[None]
    by_class = np.empty((1, 0), dtype=np.int64)
    if offsets:
        design = np.concatenate([design, np.ones((*design.shape[:2], 1))], axis=2)
        by_class = np.full((1, 1), design.shape[2] - 1)
    problem = (design, evidence, every, by_class, mean[None], precision[None])
    return next(fit_maps(*problem, power=power, iterations=iterations))


def fit_maps(
    features: Floats, evidence: Floats, columns: Ints, by_class: Ints, means: Floats,
    precisions: Floats, *, power: Floats | None = None, iterations: int = 100,
) -> Iterator[Mode]:  # fmt: skip
    """`fit_map` of several regressions on some of the features (n, K, F), in order.

    The features `columns` (B, p) have one coefficient each, the features `by_class` (B, c) one for
    every class: logit_ik = sum_c u_ck phi_ikc + sum_p b_p x_ikp. Means and precisions are
    (B, c K + p), those by class first. Classes that have no coefficients of their own, and equal
    features and evidence, are merged into one that counts as often. Columns for classes are never
    laid out, and many items go in blocks, so memory is that of the features and of a Hessian. All
    regressions of a batch take their Newton steps together.
    """
    n, k, _ = features.shape
    each = k * (columns.shape[1] + by_class.shape[1])
    # Features times the roots of the powers: products of two of them, which slopes are sums of,
    # have the powers then, and logits are divided by the roots.
    root = np.ones(n) if power is None else np.sqrt(power)
    size = n * each + means.shape[1] ** 2

    def run(some: slice) -> list[Mode]:
        both = np.concatenate([columns[some], by_class[some]], axis=1)
        used, place = np.unique(both, return_inverse=True)
        place = place.reshape(both.shape)
        # Sums over few features are slow.
        planes, log_evidence = np.ascontiguousarray(features.transpose(2, 0, 1)[used]), evidence
        sizes = np.ones(k)
        if not by_class.shape[1]:
            alike = distinct_columns(np.concatenate([planes.reshape(-1, k), evidence]))
            planes, log_evidence = planes[:, :, alike.first], evidence[:, alike.first]
            sizes = np.bincount(alike.of_item).astype(np.float64)
        planes *= root[:, None]
        priors = _Known.from_evidence(log_evidence, root, np.log(sizes))
        cells = max(each * len(sizes) // k, 1)
        blocks = spans(n, max(_PART // cells, 1)) if size > _AT_ONCE else [slice(0, n)]
        p = columns.shape[1]
        pieces = [
            _Block(planes[:, b], place[:, :p], place[:, p:], priors.for_rows(b)) for b in blocks
        ]
        problem = _Regressions(pieces, means[some], precisions[some], n * cells <= _HELD)
        return list(_newton(problem, iterations))

    for modes in map_blocks(run, spans(len(means), max(_AT_ONCE // max(size, 1), 1))):
        yield from modes


def log_posterior(
    x: Floats, phi: Floats, evidence: Floats, mean: Floats, precision: Floats, beta: Floats,
    power: Floats,
) -> Floats:  # fmt: skip
    """What is maximised, at each of several coefficients (D, c K + p): (D,), less a constant.

    x (n, K, p) are the features of one coefficient, phi (n, K, c) those by class, and items count
    to a power (n,).
    """
    n, k, _ = x.shape
    size, labels = k * phi.shape[2], _Known.from_evidence(evidence, power, np.zeros(k)).labels
    out = -0.5 * (precision * (beta - mean) ** 2).sum(axis=1)
    # Items last: sums over a few classes take long where these are.
    single, by_class = x.transpose(2, 1, 0).reshape(-1, k * n), phi.transpose(2, 1, 0)
    for some in spans(len(beta), max(_CACHED // max(n * k, 1), 1)):
        logits = (beta[some, size:] @ single).reshape(-1, k, n)
        for c, class_terms in enumerate(by_class):
            logits += class_terms * beta[some, c * k : (c + 1) * k, None]
        likelihood = (
            logsumexp(logits + evidence.T) if labels is None else logits[:, labels, np.arange(n)]
        )
        out[some] += ((likelihood - logsumexp(logits)) * power).sum(axis=1)
    return out


class _Known(NamedTuple):
    """Evidence (n, K), the labels (n,) if all of it is known labels, and roots of powers (n,).

    Also logs (K,) of how many classes each stands for.
    """

    evidence: Floats
    labels: Ints | None
    root: Floats
    log_sizes: Floats

    @staticmethod
    def from_evidence(evidence: Floats, root: Floats, log_sizes: Floats) -> _Known:
        certain = (evidence == 0).sum(axis=1) == 1
        known_only = certain.all() and ((evidence == 0) | np.isneginf(evidence)).all()
        return _Known(evidence, evidence.argmax(axis=1) if known_only else None, root, log_sizes)

    def for_rows(self, rows: slice) -> _Known:
        labels = None if self.labels is None else self.labels[rows]
        return _Known(self.evidence[rows], labels, self.root[rows], self.log_sizes)


class _Block:
    """Some items of B regressions, of features (F, n, K) times roots of powers.

    x is (B, p, n, K) and phi (B, c, n, K).
    """

    def __init__(self, features: Floats, columns: Ints, by_class: Ints, known: _Known) -> None:
        self.features, self.columns, self.by_class, self.known = features, columns, by_class, known
        self._held: tuple[Floats, Floats] | None = None

    def of(self, rows: Ints) -> _Block:
        out = _Block(self.features, self.columns[rows], self.by_class[rows], self.known)
        if self._held is not None:
            x, phi = self._held
            out._held = (x[rows], phi[rows])
        return out

    def gathered(self, *, hold: bool) -> tuple[Floats, Floats]:
        """X and phi; gathered anew every time unless they may be held."""
        if self._held is not None:
            return self._held
        x, phi = self.features[self.columns], self.features[self.by_class]
        if hold:
            self._held = (x, phi)
        return x, phi

    def fit(self, beta: Floats, *, hold: bool) -> tuple[Floats, Floats]:
        """Log-likelihoods (B,) at coefficients (B, c K + p), and logits (B, n, K)."""
        x, phi = self.gathered(hold=hold)
        b, p, n, k = x.shape
        size = k * phi.shape[1]
        logits = (beta[:, None, size:] @ x.reshape(b, p, n * k)).reshape(b, n, k)
        for c in range(phi.shape[1]):
            logits += phi[:, c] * beta[:, None, c * k : (c + 1) * k]
        logits /= self.known.root[:, None]
        logits += self.known.log_sizes
        if self.known.labels is None:
            likelihood = logsumexp(logits + self.known.evidence, axis=2)
        else:
            likelihood = logits[:, np.arange(n), self.known.labels]
        gain = (likelihood - logsumexp(logits, axis=2)) * self.known.root**2
        return gain.sum(axis=1), logits

    def slopes(self, logits: Floats, *, hold: bool) -> tuple[Floats, Floats]:
        """Gradients (B, c K + p) and negative Hessians of the log-likelihoods."""
        x, phi = self.gathered(hold=hold)
        b, p, n, k = x.shape
        model = softmax(logits, axis=2)
        hessian = _spread(x, phi, model)
        gap = np.negative(model, out=model)
        if self.known.labels is None:
            posterior = softmax(logits + self.known.evidence, axis=2)
            hessian -= _spread(x, phi, posterior)
            gap += posterior
        else:
            gap[:, np.arange(n), self.known.labels] += 1
        gap *= self.known.root[:, None]
        class_slopes = [(gap * phi[:, c]).sum(axis=1) for c in range(phi.shape[1])]
        slope_gradient = (x.reshape(b, p, n * k) @ gap.reshape(b, n * k, 1))[:, :, 0]
        return np.concatenate([*class_slopes, slope_gradient], axis=1), hessian


def _spread(x: Floats, phi: Floats, weights: Floats) -> Floats:
    """Sum over items of the covariance of the design's rows under weights (B, n, K).

    With g_c = w phi_c, the blocks by class are diag(sum_i g_c phi_d) - g_c' g_d.
    """
    b, p, n, k = x.shape
    size = k * phi.shape[1]
    out = np.empty((b, size + p, size + p))
    weighted = x * weights[:, None]
    mean = along(np.add, weighted, 3)[..., 0]  # (B, p, n)
    within = weighted.reshape(b, p, n * k) @ x.reshape(b, p, n * k).swapaxes(1, 2)
    out[:, size:, size:] = within - mean @ mean.swapaxes(1, 2)
    every, by_class = np.arange(k), [weights * phi[:, c] for c in range(phi.shape[1])]
    for c, g in enumerate(by_class):
        span = slice(c * k, (c + 1) * k)
        for d, other in enumerate(by_class[: c + 1]):
            block = -(g.swapaxes(1, 2) @ other)
            block[:, every, every] += (g * phi[:, d]).sum(axis=1)
            out[:, span, d * k : (d + 1) * k] = block
            out[:, d * k : (d + 1) * k, span] = block.swapaxes(1, 2)
        across = np.einsum("bnk,bpnk->bkp", g, x) - (mean @ g).swapaxes(1, 2)
        out[:, span, size:] = across
        out[:, size:, span] = across.swapaxes(1, 2)
    return out


class _Regressions(NamedTuple):
    """B regressions by parts of the items, with prior means and precisions (B, c K + p)."""

    blocks: list[_Block]
    mean: Floats
    precision: Floats
    hold: bool

    def of(self, rows: Ints) -> _Regressions:
        blocks = [block.of(rows) for block in self.blocks]
        return self._replace(blocks=blocks, mean=self.mean[rows], precision=self.precision[rows])

    def values(self, beta: Floats) -> tuple[Floats, list[Floats]]:
        """Objectives (B,) at coefficients (B, c K + p), and logits (B, n, K) of every part."""
        value = -0.5 * (self.precision * (beta - self.mean) ** 2).sum(axis=1)
        logits = []
        for block in self.blocks:
            fit, block_fit = block.fit(beta, hold=self.hold)
            value = value + fit
            logits.append(block_fit)
        return value, logits

    def slopes(self, beta: Floats, logits: list[Floats]) -> tuple[Floats, Floats]:
        """Gradients (B, c K + p) and negative Hessians (B, c K + p, c K + p)."""
        gradient = -self.precision * (beta - self.mean)
        hessian = np.zeros((*beta.shape, beta.shape[1]))
        every = np.arange(beta.shape[1])
        hessian[:, every, every] = self.precision
        for block, block_logits in zip(self.blocks, logits, strict=True):
            slope, bend = block.slopes(block_logits, hold=self.hold)
            gradient += slope
            hessian += bend
        return gradient, hessian


def _newton(problem: _Regressions, iterations: int) -> Iterator[Mode]:
    beta = problem.mean.copy()
    value, logits = problem.values(beta)
    gradient, hessian = problem.slopes(beta, logits)
    active, converged = np.arange(len(beta)), np.zeros(len(beta), dtype=bool)
    for _ in range(iterations):
        lifted = _positive_definite(hessian[active], problem.precision[active])
        step = np.linalg.solve(lifted, gradient[active][:, :, None])[:, :, 0]
        decrement = (gradient[active] * step).sum(axis=1)
        done = decrement < 1e-12
        converged[active[done]] = True
        active, step, decrement = active[~done], step[~done], decrement[~done]
        if not len(active):
            break
        some = problem if len(active) == len(beta) else problem.of(active)
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
    hessian = _positive_definite(hessian, problem.precision)
    evidence = value + 0.5 * np.log(problem.precision).sum(axis=1)
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
