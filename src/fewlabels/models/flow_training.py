"""Training of the flow and its latent mixture: the flow by Adam, the mixture by EM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fewlabels.kernels.arrays import Array, Floats
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.real_nvp import BLOCK, RealNVP, Trace, Weights
from fewlabels.models.latent_mixture import Expectation, LatentMixture, MixturePrior, Moments

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


@dataclass(frozen=True, eq=False)
class Items:
    """Scores (d, n), what is known of the labels (K, n), and how often each item counts (n,)."""

    scores: Array
    evidence: Floats
    weight: Floats

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
        """First the flow with the mixture as it is, then both.

        Steps that lead to a likelihood that is not finite, or far below what it was, are undone.
        """
        options = self.options
        best, stopped, failed, taken = -np.inf, False, None, 0
        good = mixture
        adam = Adam(self.parameters, decay=options.weight_decay, clip=CLIP)
        # What overflows is found by the likelihood that comes of it.
        with np.errstate(over="ignore", invalid="ignore"):
            for epochs, learn in ((options.flow_epochs, False), (options.joint_epochs, True)):
                watch = _Watch(self, options.patience)
                for epoch in range(epochs):
                    value, moments = self._epoch(mixture, learn)
                    failed = _failure(value, best, self.flow.n_dimensions)
                    if failed:
                        break
                    best, good = max(best, value), mixture
                    np.copyto(self._good, self.parameters)
                    if watch.struck(mixture):
                        stopped = True
                        break
                    if moments is not None:
                        mixture = self.prior.update(moments, mixture.means)
                    adam.ascend(self._gradient, self._rate(epoch / epochs if learn else 0.0))
                    taken += 1
                if failed:
                    break
                mixture = watch.restore(mixture)
            value = mean_log_likelihood(self.flow, self.parameters, mixture, self.items)
            failed = failed or _failure(value, best, self.flow.n_dimensions)
            if failed:
                np.copyto(self.parameters, self._good)
                mixture = good
                value = mean_log_likelihood(self.flow, self.parameters, mixture, self.items)
        return Trained(self.parameters, mixture, taken, value, stopped, failed)

    def _rate(self, progress: float) -> float:
        """Cosine annealing over the second stage, to a hundredth."""
        lowest = 0.01
        falling = lowest + (1 - lowest) * 0.5 * (1 + np.cos(np.pi * progress))
        return self.options.learning_rate * float(falling)

    def _epoch(self, mixture: LatentMixture, learn: bool) -> tuple[float, Moments | None]:
        """Mean log-likelihood, the moments for EM, and the gradient of the flow (`_gradient`)."""
        x = self._with_noise()
        total = self.items.weight.sum()
        value, moments = 0.0, None
        self._gradient[...] = 0
        for block in self._blocks:
            m = block.stop - block.start
            trace, step, by_z = self._traces[m], self._steps[m], self._by_z[m]
            weight = self.items.weight[block] / total
            z, log_det = trace.forward(self._weights, x[:, block])
            found = step.run(mixture, z, self.items.evidence[:, block], weight)
            value += float(weight @ (found + log_det))
            if learn:
                part = step.moments()
                moments = part if moments is None else moments + part
            step.gradient(by_z)
            trace.backward(self._weights, by_z, weight.astype(self.flow.dtype), self._slots)
            self._gradient += self._part
        if moments is not None:
            moments = Moments(moments.counts * total, moments.sums * total, moments.scatter * total)
        return value, moments

    def _with_noise(self) -> Array:
        """Scores with fresh noise: the density is that of the scores, smoothed by a Gaussian."""
        if not self.options.noise:
            return self.items.scores
        self.rng.standard_normal(out=self._noisy, dtype=self.flow.dtype)
        self._noisy *= self.flow.dtype(self.options.noise)
        self._noisy += self.items.scores
        return self._noisy


class _Watch:
    """Keeps the parameters with the best held-out likelihood of one stage."""

    def __init__(self, training: Training, patience: int) -> None:
        self.training, self.patience = training, patience
        self.best, self.waited = -np.inf, 0
        self.parameters: Array | None = None
        self.mixture: LatentMixture | None = None

    def struck(self, mixture: LatentMixture) -> bool:
        """Whether patience has run out."""
        held_out, training = self.training.held_out, self.training
        if held_out is None:
            return False
        value = mean_log_likelihood(training.flow, training.parameters, mixture, held_out)
        if value > self.best:
            self.best, self.waited, self.mixture = value, 0, mixture
            self.parameters = training.parameters.copy()
            return False
        self.waited += 1
        return self.waited >= self.patience

    def restore(self, mixture: LatentMixture) -> LatentMixture:
        """Take the flow back to the best epoch; returns the mixture of that time."""
        if self.parameters is None or self.mixture is None:
            return mixture
        np.copyto(self.training.parameters, self.parameters)
        return self.mixture


def latent_blocks(
    flow: RealNVP, weights: tuple[Weights, ...], scores: Array
) -> Iterator[tuple[slice, Array, Array]]:
    """Blocks of items with their latent scores (d, n) and log |det| (n,)."""
    for block in spans(scores.shape[1], BLOCK):
        trace = Trace(flow, block.stop - block.start, keep=False)
        z, log_det = trace.forward(weights, scores[:, block])
        yield block, z, log_det


def mean_log_likelihood(
    flow: RealNVP, parameters: Array, mixture: LatentMixture, items: Items
) -> float:
    """Weighted mean over items of log sum_k exp(evidence_k) share_k p(scores | k)."""
    d, weight = flow.n_dimensions, items.weight / items.weight.sum()
    value = 0.0
    for block, z, log_det in latent_blocks(flow, flow.views(parameters), items.scores):
        step = Expectation(len(items.evidence), d, z.shape[1], flow.dtype)
        found = step.run(mixture, z, items.evidence[:, block], weight[block])
        value += float(weight[block] @ (found + log_det))
    return value


def _failure(value: float, best: float, d: int) -> str | None:
    if not np.isfinite(value):
        return "the likelihood is no longer a finite number"
    if value < best - 10 - d:
        return f"the likelihood fell from {best:.3g} to {value:.3g} per item"
    return None


# --- ascent of the flow's parameters ------------------------------------------------------


class Adam:
    """State of the optimiser for one flat vector of parameters, updated in place.

    Source: Kingma, Ba (2015), algorithm 1; decoupled weight decay, Loshchilov, Hutter (2019).

    Parameters
    ----------
    decay
        Share of every parameter that is taken away per step, relative to the learning rate.
    clip
        Largest norm of a gradient; longer ones are shortened to it.
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
