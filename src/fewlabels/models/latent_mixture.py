"""The Gaussians of the classes in the flow's latent space: densities, E-step, M-step.

As in the flow, items are columns: latent z is (d, n), and what is per class and item is (K, n).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewlabels.kernels.arrays import Array, Floats
from fewlabels.kernels.simplex import logsumexp, softmax

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
        """Log-likelihood of each item, (n,), given what is known of the labels.

        Parameters
        ----------
        z
            Latent scores, (d, n).
        evidence
            Log-likelihood of what is known of each label, (K, n).
        weight
            How often each item counts, (n,).

        Notes
        -----
        `responsibilities` (K, n) are then up to date, and `weighted` are these times the weights.
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

    Each class has one pseudo-item at `means[k]`, which holds a class without members, and
    `members` pseudo-items of covariance `covariance`: with d dimensions and fewer than d members,
    a covariance of its own would be singular. One pseudo-item is spread over the classes by
    `shares`.
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
        # Sums about `around` become sums about the pseudo-item and back: one formula for both.
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
        covariances = total / (counts + self.members)[:, None, None]
        shares = (counts + self.shares) / (counts.sum() + 1)
        return LatentMixture(means, covariances, shares)
