"""Sequential Monte Carlo: draws from a posterior, and its evidence, without a starting point."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats

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


def sample(
    log_likelihood: Callable[[Floats], Floats],
    dimension: int,
    rng: np.random.Generator,
    *,
    particles: int = 800,
    moves: int = 3,
) -> Cloud:
    """Draw from N(0, I) times a likelihood, which is raised from power 0 to 1 in stages.

    Each stage takes the largest power that leaves half of the particles' effective sample size,
    resamples systematically, and moves every particle by random-walk Metropolis steps with the
    cloud's own covariance. Source: Del Moral, Doucet, Jasra (2006), section 3.3; adaptive
    temperatures: Jasra, Stephens, Doucet, Tsagaris (2011).

    Parameters
    ----------
    log_likelihood
        Of points (N, p), finite, shape (N,).
    """
    points = rng.standard_normal((particles, dimension))
    value = log_likelihood(points)
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
        root = _proposal_root(points, weight)
        chosen = _systematic(weight, rng)
        points, value = points[chosen], value[chosen]
        taken = 0
        for _ in range(moves):
            taken += _move(points, value, log_likelihood, root, power, rng)
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


def _proposal_root(points: Floats, weight: Floats) -> Floats:
    """Cholesky root of the cloud's covariance, scaled for random-walk moves (2.38^2 / p)."""
    p = points.shape[1]
    centred = points - weight @ points
    covariance = centred.T @ (centred * weight[:, None]) + _JITTER * np.eye(p)
    root: Floats = np.linalg.cholesky(covariance) * (2.38 / np.sqrt(p))
    return root


def _systematic(weight: Floats, rng: np.random.Generator) -> np.ndarray:
    """Indices drawn in proportion to the weights, as nearly as whole numbers allow."""
    places = (np.arange(len(weight)) + rng.random()) / len(weight)
    return np.minimum(np.searchsorted(np.cumsum(weight), places), len(weight) - 1)


def _move(
    points: Floats,
    value: Floats,
    log_likelihood: Callable[[Floats], Floats],
    root: Floats,
    power: float,
    rng: np.random.Generator,
) -> int:
    """One Metropolis step of every particle, in place; how many moved."""
    proposed = points + rng.standard_normal(points.shape) @ root.T
    found = log_likelihood(proposed)
    gain = power * (found - value) - 0.5 * ((proposed**2).sum(axis=1) - (points**2).sum(axis=1))
    take = np.log(rng.random(len(points))) < gain
    points[take], value[take] = proposed[take], found[take]
    return int(take.sum())
