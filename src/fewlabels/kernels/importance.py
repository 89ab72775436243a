"""Importance sampling: proposals, weights and their effective size, Pareto k, resampling.

Sequential Monte Carlo, which resamples stage by stage; and the weights of labels that were drawn
with known probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.simplex import logsumexp, softmax

LogDensity = Callable[[Floats], Floats]
"""Unnormalised log density of points (M, q): (M,)."""


def effective_size(weights: Floats, times: Floats | float = 1.0) -> float:
    """Effective number of weights, each counted `times`: (sum w)^2 / sum w^2 (Kish 1965).

    0 if all of them are 0.
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
        components = np.empty((len(self.centres), len(theta)))
        for c, (centre, root) in enumerate(zip(self.centres, self.roots, strict=True)):
            z = np.linalg.solve(root, (theta - centre).T)
            square = (z**2).sum(axis=0)
            half = np.linalg.slogdet(root)[1]
            if np.isfinite(self.freedom):
                v = self.freedom
                constant = gammaln((v + q) / 2) - gammaln(v / 2) - 0.5 * q * np.log(v * np.pi)
                components[c] = constant - half - (v + q) / 2 * np.log1p(square / v)
            else:
                components[c] = -0.5 * q * np.log(2 * np.pi) - half - 0.5 * square
            components[c] += shares[c]
        return logsumexp(components, axis=0)


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
        densities = np.stack([proposal.log_density(points) for proposal in self._proposals])
        sizes = np.array([len(p) for p in self._points], dtype=np.float64)
        densities += np.log(sizes / sizes.sum())[:, None]
        return ImportanceSample(
            points, np.concatenate(self._heights) - logsumexp(densities, axis=0)
        )


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


_OFFSET = (np.sqrt(5) - 1) / 2
"""Where counting begins: sums of simple fractions never meet it, so rounding decides nothing."""


def kept_places(weights: Floats) -> Ints:
    """Places (D,) of draws in proportion to weights (D,), as many as can where they are.

    Of weights with mean 1 a draw keeps its place with probability min(1, weight), evenly spread
    over the draws. The other places go to draws of a weight above 1, by what is above.
    """
    weights = weights * (len(weights) / weights.sum())
    kept = np.floor(np.cumsum(np.minimum(weights, 1)) + _OFFSET)
    out = np.arange(len(weights))
    free = np.flatnonzero(np.diff(kept, prepend=0.0) == 0)
    edges = np.cumsum(np.maximum(weights - 1, 0))
    if len(free) and edges[-1] > 0:
        out[free] = np.searchsorted(edges, (np.arange(len(free)) + _OFFSET) / len(free) * edges[-1])
    return out


# Sequential Monte Carlo: draws from a posterior, and its evidence.

_JITTER = 1e-9
_HALVINGS = 40


class Cloud(NamedTuple):
    """Equally weighted draws (N, p), the log evidence, and diagnostics of the sampler.

    `stages` is the number of temperatures, `acceptance` the share of moves taken at the last one.
    """

    points: Floats
    log_evidence: float
    stages: int
    acceptance: float


def standard_normal(points: Floats) -> Floats:
    """Log density of N(0, I) at points (N, p), but for a constant."""
    return -0.5 * np.square(points).sum(axis=1)


def sequential_monte_carlo(
    log_likelihood: LogDensity,
    points: Floats,
    rng: np.random.Generator,
    *,
    log_prior: LogDensity = standard_normal,
    moves: int = 3,
) -> Cloud:
    """Draw from a prior times a likelihood, which is raised from power 0 to 1 in stages.

    Each stage takes the largest power that leaves half of the particles' effective sample size,
    resamples systematically, and moves every particle by random-walk Metropolis steps with the
    cloud's own covariance. The evidence is the prior's mean of the likelihood. Source: Del Moral,
    Doucet, Jasra (2006), section 3.3; adaptive temperatures: Jasra, Stephens, Doucet, Tsagaris
    (2011).

    `points` (N, p) are draws from the prior, and both functions map points to (N,). The log prior
    may lack a constant; it is -inf outside its support, inside which the log-likelihood is finite.
    """
    particles, dimension = points.shape
    value, height = log_likelihood(points), log_prior(points)
    power, log_evidence, stages, acceptance = 0.0, 0.0, 0, 1.0
    while power < 1:
        step = _next_step(value, 1 - power)
        log_weight = step * value
        top = log_weight.max()
        weight = np.exp(log_weight - top)
        log_evidence += float(np.log(weight.mean()) + top)
        weight /= weight.sum()
        # Rounding must not leave a last stage of no length.
        power = 1.0 if step >= (1 - power) * (1 - 1e-12) else power + step
        # Random-walk moves with the covariance of the weighted cloud, times 2.38^2 / p.
        centred = points - weight @ points
        covariance = centred.T @ (centred * weight[:, None]) + _JITTER * np.eye(dimension)
        root = np.linalg.cholesky(covariance) * (2.38 / np.sqrt(dimension))
        chosen = systematic(weight, len(weight), rng)
        points, value, height = points[chosen], value[chosen], height[chosen]
        taken = 0
        for _ in range(moves):
            proposed = points + rng.standard_normal(points.shape) @ root.T
            likelihood, prior = log_likelihood(proposed), log_prior(proposed)
            gain = power * (likelihood - value) + (prior - height)
            take = np.log(rng.random(particles)) < gain
            points[take], value[take], height[take] = proposed[take], likelihood[take], prior[take]
            taken += int(take.sum())
        acceptance = taken / (moves * particles) if moves else 1.0
        stages += 1
    return Cloud(points, log_evidence, stages, acceptance)


def _next_step(value: Floats, rest: float) -> float:
    """The largest step of the power, up to `rest`, that leaves half the effective sample size."""
    centred = value - value.max()

    def enough(step: float) -> bool:
        weight = np.exp(step * centred)
        return bool(weight.sum() ** 2 >= 0.5 * len(weight) * (weight**2).sum())

    if enough(rest):
        return rest
    low, high = 0.0, rest
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return max(low, rest * 2.0**-_HALVINGS)


# Weights of the levelled unbiased risk estimator (LURE): labels drawn with known probabilities.
#
# The m-th of M labeled items is drawn with probability q_m from the N - m + 1 that are left of N.
# With v_m = 1 + (N - M) / (N - m) (1 / ((N - m + 1) q_m) - 1) the mean of v_m times the loss is
# unbiased for the mean loss of the pool, whatever determines the probabilities (Farquhar, Gal,
# Rainforth 2021; Kossen, Farquhar, Gal, Rainforth 2021, equation 6). Where all that were left were
# equally likely, q_m = 1 / (N - m + 1), every weight is 1.


def lure_weights(
    q: Floats | Sequence[float],
    left: Ints | Sequence[int],
    pool: int | None = None,
    drawn: int | None = None,
) -> Floats:
    """Weight of each draw, (M,), for the mean over the pool.

    Parameters
    ----------
    q
        Probability with which each item was drawn among those left, (M,).
    left
        How many were left at that moment, the item included, (M,): N - m + 1.
    pool
        Items that there were before the first draw, N; the most that were left, unless given.
    drawn
        How many are drawn in all, M; as many as are given, unless said.

    Examples
    --------
    >>> lure_weights([1 / 4, 1 / 3], [4, 3]).tolist()
    [1.0, 1.0]
    """
    chance, there = np.asarray(q, dtype=float), np.asarray(left, dtype=np.int64)
    if not chance.size:
        return np.ones(0)
    n = int(there.max()) if pool is None else pool
    m = len(chance) if drawn is None else drawn
    # The last of all has weight 1: its factor is 0.
    after = np.maximum(there - 1, 1)
    out: Floats = 1 + max(n - m, 0) / after * (1 / (there * chance) - 1)
    return out
