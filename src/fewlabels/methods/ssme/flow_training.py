"""Training of the flow and its latent mixture: the flow by Adam, the mixture by EM."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewlabels.kernels.arrays import Array, Floats, UInts
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.simplex import logsumexp, softmax
from fewlabels.methods.ssme.real_nvp import BLOCK, RealNVP, Trace

# --- the latent mixture -----------------------------------------------------------------------
#
# The Gaussians of the classes in the flow's latent space: densities, E-step, M-step. As in the
# flow, items are columns: latent z is (d, n), and what is per class and item is (K, n).

FLOOR = 1e-6
"""Least variance of a class in any direction where covariances have no prior."""

SHRINK = 0.1
"""Share of the identity (times the mean variance) in the prior covariance: it is never singular."""


@dataclass(frozen=True, eq=False)
class LatentMixture:
    """Normal distributions N(means_k, covariances_k) of K classes with their shares.

    Means are (K, d), covariances (K, d, d), shares (K,).
    """

    means: Floats
    covariances: Floats
    shares: Floats

    @cached_property
    def precisions(self) -> Floats:
        """Inverse covariances, (K, d, d)."""
        return np.linalg.inv(self.covariances).astype(np.float64, copy=False)

    @cached_property
    def log_factors(self) -> Floats:
        """Log of share times normalising factor of each density, (K,)."""
        d = self.means.shape[1]
        diagonal = np.diagonal(np.linalg.cholesky(self.covariances), axis1=1, axis2=2)
        half = np.log(diagonal).sum(axis=1)
        with np.errstate(divide="ignore"):
            return np.log(self.shares) - half - 0.5 * d * np.log(2 * np.pi)


class Expectation:
    """E-step of a block of n items, in memory that is allocated once."""

    def __init__(self, n_classes: int, d: int, n: int, dtype: type[np.floating]) -> None:
        self.dtype = dtype
        self.deviation, self.pulled, self._product = (
            np.empty((n_classes, d, n), dtype) for _ in range(3)
        )
        self.responsibilities: Floats = np.empty((n_classes, n))
        self.weighted: Floats = np.empty((n_classes, n))

    def log_joint(self, mixture: LatentMixture, z: Array) -> Floats:
        """Log of share times density of each class at z (d, n): (K, n)."""
        np.subtract(z, mixture.means.astype(self.dtype)[:, :, None], out=self.deviation)
        np.matmul(mixture.precisions.astype(self.dtype), self.deviation, out=self.pulled)
        np.multiply(self.deviation, self.pulled, out=self._product)
        distance = self._product.sum(axis=1, dtype=self.dtype).astype(np.float64)
        return mixture.log_factors[:, None] - 0.5 * distance

    def run(self, mixture: LatentMixture, z: Array, evidence: Floats, weight: Floats) -> Floats:
        """Log-likelihood of each item, (n,), given z (d, n) and what is known of labels (K, n).

        `responsibilities` (K, n) are then up to date, and `weighted` are these times the weights
        (n,).
        """
        joint = self.log_joint(mixture, z)
        joint += evidence
        value = logsumexp(joint, axis=0)
        softmax(joint, axis=0, out=self.responsibilities)
        np.multiply(self.responsibilities, weight, out=self.weighted)
        return value

    def gradient(self, out: Array) -> None:
        """Derivative of the weighted log-likelihood by z, (d, n), of the last `run`."""
        np.multiply(self.pulled, self.weighted.astype(self.dtype)[:, None, :], out=self._product)
        self._product.sum(axis=0, out=out)
        np.negative(out, out=out)

    def moments(self) -> Moments:
        """Weighted moments of each class about the mixture's means, of the last `run`."""
        share = self.weighted.astype(self.dtype)
        np.multiply(self.deviation, share[:, None, :], out=self._product)
        scatter = np.matmul(self._product, self.deviation.transpose(0, 2, 1))
        return Moments(
            self.weighted.sum(axis=1),
            self._product.sum(axis=2).astype(np.float64),
            scatter.astype(np.float64),
        )


@dataclass(frozen=True, eq=False)
class Moments:
    """Counts (K,), sums (K, d) and scatter (K, d, d) of deviations from given means; they add."""

    counts: Floats
    sums: Floats
    scatter: Floats

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.counts + other.counts, self.sums + other.sums, self.scatter + other.scatter
        )


@dataclass(frozen=True, eq=False)
class MixturePrior:
    """Normal-inverse-Wishart prior of every class, and its M-step (the posterior mode).

    Each class has one pseudo-observation at `means[k]`, which holds a class without members, and
    `members` pseudo-observations of covariance `covariance`: with d dimensions and fewer than d
    members, a covariance of its own would be singular. One pseudo-observation is spread over the
    classes by `shares`.
    """

    means: Floats
    covariance: Floats
    shares: Floats
    members: float

    @classmethod
    def of_scores(
        cls, x: Floats, probabilities: Floats, weight: Floats, noise: float, members: float
    ) -> tuple[MixturePrior, LatentMixture]:
        """Prior, and mixture at the start: moments of x (d, n) under P(class) (n, K).

        The prior's covariance is the one within classes, pooled, a tenth of it spherical; `noise`
        is the standard deviation of what will be added to the scores.
        """
        w = probabilities * weight[:, None]
        counts = w.sum(axis=0)
        overall = (x @ weight) / weight.sum()
        means = ((x @ w).T + overall) / (counts + 1)[:, None]
        deviation = x[None] - means[:, :, None]
        share, identity = w.T[:, None, :], np.eye(len(x))
        scatter = np.matmul(deviation * share, deviation.transpose(0, 2, 1))
        # The constant is for scores without any spread, which leave nothing to divide by.
        scatter += counts[:, None, None] * (noise**2 + 1e-6) * identity
        pooled = scatter.sum(axis=0) / counts.sum()
        pooled = (1 - SHRINK) * pooled + SHRINK * np.trace(pooled) / len(x) * identity
        prior = cls(means, pooled, counts / counts.sum(), members)
        start = Moments(counts, (deviation * share).sum(axis=2), scatter)
        return prior, prior.update(start, means)

    def update(self, moments: Moments, around: Floats) -> LatentMixture:
        """Posterior mode given moments about the points `around` (K, d)."""
        counts = moments.counts
        # Sums about `around` become sums about the pseudo-observation and back: one formula for
        # both.
        shift = (moments.sums + (self.means - around)) / (counts + 1)[:, None]
        means = around + shift
        off = self.means - means
        scatter = (
            moments.scatter
            - moments.sums[:, :, None] * shift[:, None, :]
            - shift[:, :, None] * moments.sums[:, None, :]
            + counts[:, None, None] * shift[:, :, None] * shift[:, None, :]
            + off[:, :, None] * off[:, None, :]
        )
        total = scatter + self.members * self.covariance
        if not self.members:
            # Maximum likelihood; a class that has fewer members than dimensions needs a floor.
            total = total + FLOOR * (counts + 1)[:, None, None] * np.eye(total.shape[-1])
        covariances = total / np.maximum(counts + self.members, FLOOR)[:, None, None]
        shares = (counts + self.shares) / (counts.sum() + 1)
        return LatentMixture(means, covariances, shares)


# --- training ---------------------------------------------------------------------------------

LOWEST = 0.01
"""Share of the learning rate that the second stage ends with."""

CLIP = 100.0
"""Longest gradient of the mean log-likelihood; ordinary ones are a tenth of it or less."""


@dataclass(frozen=True)
class TrainingOptions:
    """What of the method's hyperparameters concerns training; see `SSMEFlow`."""

    flow_epochs: int
    joint_epochs: int
    learning_rate: float
    noise: float
    weight_decay: float
    patience: int
    joint: bool = True


@dataclass(frozen=True, eq=False)
class Items:
    """Scores (d, n), what is known of the labels (K, n), and how often each item counts (n,).

    And the keys of its clusters, (n,) each.
    """

    scores: Array
    evidence: Floats
    weight: Floats
    clusters: tuple[UInts, ...] = ()

    def take(self, rows: Array) -> Items:
        """Some of the items."""
        return Items(self.scores[:, rows], self.evidence[:, rows], self.weight[rows])


@dataclass(frozen=True, eq=False)
class Trained:
    """Parameters and mixture that training ends with, and what a person wants to know."""

    parameters: Array
    mixture: LatentMixture
    epochs: int
    log_likelihood: float
    stopped_early: bool
    failed: str | None


class Training:
    """One run: `items` are learned from, `held_out` (if any) decide when to stop."""

    def __init__(
        self, flow: RealNVP, prior: MixturePrior, options: TrainingOptions, items: Items,
        held_out: Items | None, rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.flow, self.prior, self.options = flow, prior, options
        self.items, self.held_out, self.rng = items, held_out, rng
        n_classes, (d, n) = len(items.evidence), items.scores.shape
        self._blocks = spans(n, BLOCK)
        lengths = {b.stop - b.start for b in self._blocks}
        self._traces = {m: Trace(flow, m) for m in lengths}
        self._steps = {m: Expectation(n_classes, d, m, flow.dtype) for m in lengths}
        self._noisy = np.empty((d, n), flow.dtype)
        self._by_z = {m: np.empty((d, m), flow.dtype) for m in lengths}
        self.parameters = flow.start(rng)
        self._gradient, self._part = (np.empty_like(self.parameters) for _ in range(2))
        self._weights, self._slots = flow.views(self.parameters), flow.views(self._part)
        self._good = self.parameters.copy()

    def run(self, mixture: LatentMixture) -> Trained:
        """First the flow with the mixture as it is, then both, to their best held-out likelihood.

        Steps that lead to a likelihood that is not finite, or far below what it was, are undone.
        """
        options = self.options
        best, stopped, failed, taken = -np.inf, False, None, 0
        good = mixture
        adam = Adam(self.parameters, decay=options.weight_decay, clip=CLIP)
        # What overflows is found by the likelihood that comes of it.
        with np.errstate(over="ignore", invalid="ignore"):
            for epochs, learn in ((options.flow_epochs, False), (options.joint_epochs, True)):
                top, waited, at_top = -np.inf, 0, None
                for epoch in range(epochs):
                    moves = options.joint or not learn
                    value, moments = self._epoch(mixture, learn, moves)
                    failed = _failure(value, best, self.flow.n_dimensions)
                    if failed:
                        break
                    best, good = max(best, value), mixture
                    np.copyto(self._good, self.parameters)
                    if self.held_out is not None:
                        held_out = mean_log_likelihood(
                            self.flow, self.parameters, mixture, self.held_out
                        )
                        waited += 1
                        if held_out > top:
                            top, waited, at_top = held_out, 0, (self.parameters.copy(), mixture)
                        if waited >= options.patience:
                            stopped = True
                            break
                    if moments is not None:
                        mixture = self.prior.update(moments, mixture.means)
                    if moves:
                        # Cosine annealing over the second stage, to a hundredth.
                        angle = np.pi * (epoch / epochs if learn else 0.0)
                        falling = LOWEST + (1 - LOWEST) * 0.5 * (1 + np.cos(angle))
                        adam.ascend(self._gradient, options.learning_rate * float(falling))
                    taken += 1
                if failed:
                    break
                if at_top is not None:
                    np.copyto(self.parameters, at_top[0])
                    mixture = at_top[1]
            value = mean_log_likelihood(self.flow, self.parameters, mixture, self.items)
            failed = failed or _failure(value, best, self.flow.n_dimensions)
            if failed:
                np.copyto(self.parameters, self._good)
                mixture = good
                value = mean_log_likelihood(self.flow, self.parameters, mixture, self.items)
        return Trained(self.parameters, mixture, taken, value, stopped, failed)

    def _epoch(
        self, mixture: LatentMixture, learn: bool, moves: bool = True
    ) -> tuple[float, Moments | None]:
        """Mean log-likelihood, the moments for EM, and the gradient of the flow (`_gradient`).

        The moments where the mixture is to `learn`, the gradient where the flow `moves`.
        """
        x = self.items.scores
        if self.options.noise:  # fresh: the density is that of the scores, smoothed by a Gaussian
            x = self._noisy
            self.rng.standard_normal(out=x, dtype=self.flow.dtype)
            x *= self.flow.dtype(self.options.noise)
            x += self.items.scores
        total = self.items.weight.sum()
        value, moments = 0.0, None
        self._gradient[...] = 0
        for block in self._blocks:
            m = block.stop - block.start
            trace, step, by_z = self._traces[m], self._steps[m], self._by_z[m]
            weight = self.items.weight[block] / total
            z, log_det = trace.forward(self._weights, x[:, block])
            log_p = step.run(mixture, z, self.items.evidence[:, block], weight)
            value += float(weight @ (log_p + log_det))
            if learn:
                part = step.moments()
                moments = part if moments is None else moments + part
            if not moves:
                continue
            step.gradient(by_z)
            trace.backward(self._weights, by_z, weight.astype(self.flow.dtype), self._slots)
            self._gradient += self._part
        if moments is not None:
            moments = Moments(moments.counts * total, moments.sums * total, moments.scatter * total)
        return value, moments


def mean_log_likelihood(
    flow: RealNVP, parameters: Array, mixture: LatentMixture, items: Items
) -> float:
    """Weighted mean over items of log sum_k exp(evidence_k) share_k p(scores | k)."""
    value, weight = 0.0, items.weight / items.weight.sum()
    z, log_det = flow.forward(parameters, items.scores)
    for block in spans(z.shape[1], BLOCK):
        step = Expectation(len(items.evidence), len(z), block.stop - block.start, flow.dtype)
        log_p = step.run(mixture, z[:, block], items.evidence[:, block], weight[block])
        value += float(weight[block] @ (log_p + log_det[block]))
    return value


def _failure(value: float, best: float, d: int) -> str | None:
    if not np.isfinite(value):
        return "the likelihood is no longer a finite number"
    if value < best - 10 - d:
        return f"the likelihood fell from {best:.3g} to {value:.3g} per item"
    return None


# --- ascent of the flow's parameters ----------------------------------------------------------
#
# Adam (Kingma and Ba 2015): steps scaled by running moments of the gradient.


class Adam:
    """State of the optimiser for one flat vector of parameters, updated in place.

    A step takes away a share `decay` of every parameter, relative to the learning rate; gradients
    longer than `clip` are shortened to it. Source: Kingma, Ba (2015), algorithm 1; decoupled weight
    decay, Loshchilov, Hutter (2019).
    """

    def __init__(
        self, parameters: Array, *, decay: float = 0.0, clip: float = np.inf,
        beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
    ) -> None:  # fmt: skip
        self.parameters = parameters
        self.decay, self.clip = decay, clip
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.mean, self.square, self._step = (np.zeros_like(parameters) for _ in range(3))
        self.taken = 0

    def ascend(self, gradient: Array, rate: float) -> float:
        """One step up the gradient, which is used up; returns its norm before clipping."""
        norm = float(np.sqrt(np.dot(gradient, gradient)))
        if norm > self.clip:
            gradient *= self.clip / norm
        self.taken += 1
        self.mean *= self.beta1
        np.multiply(gradient, 1 - self.beta1, out=self._step)
        self.mean += self._step
        gradient *= gradient
        gradient *= 1 - self.beta2
        self.square *= self.beta2
        self.square += gradient
        np.sqrt(self.square, out=self._step)
        unbiased = np.sqrt(1 - self.beta2**self.taken)
        self._step += self.epsilon * unbiased
        np.divide(self.mean, self._step, out=self._step)
        self._step *= rate * unbiased / (1 - self.beta1**self.taken)
        if self.decay:
            self.parameters *= 1 - rate * self.decay
        self.parameters += self._step
        return norm
