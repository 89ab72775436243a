"""Sequential Monte Carlo: draws from a posterior, and its evidence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.importance import LogDensity, systematic

_JITTER = 1e-9
_HALVINGS = 40


class Cloud(NamedTuple):
    """Equally weighted draws (N, p), the log evidence, and how the sampler fared.

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

    Parameters
    ----------
    log_likelihood
        Of points (N, p), finite wherever the prior is, shape (N,).
    points
        Draws from the prior, (N, p).
    log_prior
        Log of its density, but for a constant; -inf outside of its support.
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
