"""Importance sampling: proposals, weights and their effective size, Pareto k, resampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.simplex import logsumexp, softmax

LogDensity = Callable[[Floats], Floats]
"""Unnormalised log density of points (M, q): (M,)."""


def effective_size(weights: Floats, times: Floats | float = 1.0) -> float:
    """How many of equal weight these are worth: (sum w)^2 / sum w^2 (Kish 1965); 0 without weight.

    Each counts `times`.
    """
    squares = float((times * weights**2).sum())
    return float((times * weights).sum()) ** 2 / squares if squares > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Proposal:
    """A mixture of multivariate Student's t: centres (C, q), roots (C, q, q), weights (C,).

    A root R has covariance R R' (times freedom / (freedom - 2)); infinite freedom is normal.
    """

    centres: Floats
    roots: Floats
    weights: Floats
    freedom: float = np.inf

    @classmethod
    def of(cls, centre: Floats, root: Floats, freedom: float = np.inf) -> Proposal:
        """One component."""
        return cls(centre[None], root[None], np.ones(1), freedom)

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """Points, (size, q); every component gives its share of them, to within one."""
        edges = np.round(np.cumsum(self.weights) / self.weights.sum() * size).astype(int)
        which = np.searchsorted(edges, np.arange(size), side="right")
        z = rng.standard_normal((size, self.centres.shape[1]))
        if np.isfinite(self.freedom):
            z /= np.sqrt(rng.chisquare(self.freedom, (size, 1)) / self.freedom)
        for c in range(len(self.centres)):
            z[which == c] = self.centres[c] + z[which == c] @ self.roots[c].T
        return z

    def log_density(self, theta: Floats) -> Floats:
        """Log density of points, (M,)."""
        q, shares = theta.shape[1], np.log(self.weights / self.weights.sum())
        parts = np.empty((len(self.centres), len(theta)))
        for c, (centre, root) in enumerate(zip(self.centres, self.roots, strict=True)):
            z = np.linalg.solve(root, (theta - centre).T)
            square = (z**2).sum(axis=0)
            half = np.linalg.slogdet(root)[1]
            if np.isfinite(self.freedom):
                v = self.freedom
                constant = gammaln((v + q) / 2) - gammaln(v / 2) - 0.5 * q * np.log(v * np.pi)
                parts[c] = constant - half - (v + q) / 2 * np.log1p(square / v)
            else:
                parts[c] = -0.5 * q * np.log(2 * np.pi) - half - 0.5 * square
            parts[c] += shares[c]
        return logsumexp(parts, axis=0)


@dataclass(frozen=True, eq=False)
class ImportanceSample:
    """Points (M, q) and the log of target over proposal density there, (M,)."""

    points: Floats
    log_weights: Floats

    @classmethod
    def draw(
        cls, target: LogDensity, proposal: Proposal, size: int, rng: np.random.Generator
    ) -> ImportanceSample:
        """Draw from a proposal and weigh."""
        points = proposal.draw(size, rng)
        return cls(points, target(points) - proposal.log_density(points))

    @cached_property
    def weights(self) -> Floats:
        """Self-normalised weights, (M,); all zero where no point has any density."""
        if not np.isfinite(self.log_weights).any():
            return np.zeros(len(self.log_weights))
        return softmax(self.log_weights, axis=0)

    @cached_property
    def effective_size(self) -> float:
        """1 / sum of squared weights: how many equal draws they are worth."""
        total = float((self.weights**2).sum())
        return 1 / total if total > 0 else 0.0

    @cached_property
    def pareto_k(self) -> float:
        """Shape of the weights' tail: beyond .7 the estimates cannot be relied on."""
        return pareto_shape(self.log_weights)

    @cached_property
    def log_evidence(self) -> float:
        """Log of the target's integral."""
        if not np.isfinite(self.log_weights).any():
            return -np.inf
        return float(logsumexp(self.log_weights, axis=0) - np.log(len(self.log_weights)))

    def resample(self, size: int, rng: np.random.Generator) -> Ints:
        """Indices of equally weighted points, (size,), by systematic resampling."""
        return systematic(self.weights, size, rng)

    def moments(self) -> tuple[Floats, Floats]:
        """Weighted mean (q,) and covariance (q, q)."""
        mean = self.weights @ self.points
        away = self.points - mean
        return mean, (away * self.weights[:, None]).T @ away


class AdaptivePool:
    """Points of several proposals, weighed against the mixture of all of them.

    Source: Cornuet, Marin, Mira, Robert (2012), Adaptive multiple importance sampling: a point
    that one proposal would hardly draw does not weigh much if another one does.
    """

    def __init__(self, target: LogDensity) -> None:
        self._target = target
        self._proposals: list[Proposal] = []
        self._points: list[Floats] = []
        self._heights: list[Floats] = []

    def add(self, proposal: Proposal, points: Floats) -> None:
        """Add points (M, q) drawn from a proposal."""
        self._proposals.append(proposal)
        self._points.append(points)
        self._heights.append(self._target(points))

    @property
    def sample(self) -> ImportanceSample:
        """All points so far."""
        points = np.concatenate(self._points)
        parts = np.stack([proposal.log_density(points) for proposal in self._proposals])
        sizes = np.array([len(p) for p in self._points], dtype=np.float64)
        parts += np.log(sizes / sizes.sum())[:, None]
        return ImportanceSample(points, np.concatenate(self._heights) - logsumexp(parts, axis=0))


def pareto_shape(log_weights: Floats) -> float:
    """Shape k of a generalised Pareto distribution fitted to the largest weights.

    Source: Vehtari, Simpson, Gelman, Yao, Gabry (2024), Pareto smoothed importance sampling,
    section 3; the fit is Zhang and Stephens (2009), with their weak prior centred at .5.
    """
    size = len(log_weights)
    length = int(np.ceil(min(0.2 * size, 3 * np.sqrt(size))))
    if length < 5 or not np.isfinite(log_weights).any():
        return np.inf
    log_weights = log_weights - log_weights.max()
    ordered = np.sort(log_weights)
    cutoff = max(ordered[-length - 1], np.log(np.finfo(float).tiny))
    tail = np.exp(ordered[ordered > cutoff]) - np.exp(cutoff)
    if len(tail) <= 4:
        return np.inf
    if tail[-1] - tail[0] <= 1e-12 * tail[-1]:
        return -np.inf
    return _fit_pareto(tail)


def _fit_pareto(tail: Floats) -> float:
    """Zhang and Stephens' estimate of the shape from ascending excesses (n,)."""
    n = len(tail)
    count = 30 + int(np.sqrt(n))
    b = 1 - np.sqrt(count / (np.arange(1, count + 1) - 0.5))
    b /= 3 * tail[int(n / 4 + 0.5) - 1]
    b += 1 / tail[-1]
    k = np.log1p(-b[:, None] * tail).mean(axis=1)
    profile = n * (np.log(-b / k) - k - 1)
    weights = softmax(profile, axis=0)
    weights = np.where(weights >= 10 * np.finfo(float).eps, weights, 0)
    best = float((b * weights).sum() / weights.sum())
    shape = float(np.log1p(-best * tail).mean())
    return (n * shape + 10 * 0.5) / (n + 10)


def systematic(weights: Floats, size: int, rng: np.random.Generator) -> Ints:
    """Places (size,) in proportion to weights (m,), as nearly as whole numbers allow, ascending.

    One uniform number for all of them: less Monte Carlo error than drawing each.
    """
    edges = np.cumsum(weights)
    places = (np.arange(size) + rng.random()) / size * edges[-1]
    return np.minimum(np.searchsorted(edges, places), len(edges) - 1)
