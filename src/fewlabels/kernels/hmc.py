"""Hamiltonian Monte Carlo for many chains at once, and whether they agree.

Source: Neal (2011), MCMC using Hamiltonian dynamics; the step size is adapted by dual averaging
(Hoffman, Gelman 2014, algorithm 5), with one step size for all chains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewlabels.kernels.arrays import Floats

Target = Callable[[Floats], tuple[Floats, Floats]]
"""Unnormalised log density (C,) of points (C, q), -inf outside its support, and gradient (C, q)."""

_TARGET_ACCEPTANCE = 0.8
_PATH = 1.6
"""Length of a path in posterior standard deviations: a quarter turn of a normal's orbit."""

_MOST_STEPS = 16


@dataclass(frozen=True, eq=False)
class Chains:
    """Draws (T, C, q) of C chains after warm-up."""

    draws: Floats
    acceptance: float
    step_size: float

    @cached_property
    def r_hat(self) -> Floats:
        """Split R-hat of each coordinate, (q,): 1 where halves of all chains agree."""
        return split_r_hat(self.draws)

    @cached_property
    def effective_size(self) -> Floats:
        """Effective number of draws of each coordinate, (q,)."""
        return effective_size(self.draws)


def hamiltonian_monte_carlo(
    target: Target,
    start: Floats,
    root: Floats,
    rng: np.random.Generator,
    *,
    warmup: int = 100,
    size: int = 100,
) -> Chains:
    """Run C chains from `start` (C, q) for `warmup` and then `size` transitions.

    `root` (q, q) is a root of the posterior's covariance as far as it is known: chains move in
    coordinates in which it is the identity.
    """
    inverse = np.linalg.inv(root)
    whitened = _Whitened(target, root)
    z = start @ inverse.T
    value, slope = whitened(z)
    adapt = _DualAveraging(0.5 / start.shape[1] ** 0.25)
    kept, accepted = np.empty((size, *start.shape)), 0.0
    for t in range(warmup + size):
        step = adapt.step if t < warmup else adapt.final
        z, value, slope, rate = _transition(whitened, z, value, slope, step, rng)
        if t < warmup:
            adapt.update(float(rate.mean()))
        else:
            kept[t - warmup] = z @ root.T
            accepted += float(rate.mean()) / size
    return Chains(kept, accepted, adapt.final)


@dataclass(frozen=True, eq=False)
class _Whitened:
    target: Target
    root: Floats

    def __call__(self, z: Floats) -> tuple[Floats, Floats]:
        value, slope = self.target(z @ self.root.T)
        return value, np.where(np.isfinite(value)[:, None], slope @ self.root, 0.0)


class _DualAveraging:
    """Step size whose acceptance comes to the target (Hoffman, Gelman 2014, section 3.2)."""

    def __init__(self, step: float) -> None:
        self.step = step
        self._centre = np.log(10 * step)
        self._error, self._log_mean, self._count = 0.0, np.log(step), 0

    @property
    def final(self) -> float:
        """Average step size, for after the warm-up."""
        return float(np.exp(self._log_mean))

    def update(self, acceptance: float) -> None:
        """Take note of the mean acceptance of the chains in one transition."""
        self._count += 1
        t = self._count
        self._error += (_TARGET_ACCEPTANCE - acceptance - self._error) / (t + 10)
        # Chains are many, so that one transition says much: faster forgetting than for one chain.
        log_step = self._centre - np.sqrt(t) / 0.1 * self._error
        self._log_mean += t**-0.75 * (log_step - self._log_mean)
        self.step = float(np.exp(min(log_step, np.log(_PATH))))


def _transition(
    target: Target, z: Floats, value: Floats, slope: Floats, step: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats]:
    """One leapfrog path of every chain, accepted or not; the rate of acceptance (C,) last."""
    momentum = rng.standard_normal(z.shape)
    before = value - 0.5 * (momentum**2).sum(axis=1)
    # A random number of steps: no orbit closes on itself.
    count = int(np.clip(np.ceil(rng.uniform(0.5, 1.5) * _PATH / step), 1, _MOST_STEPS))
    at, gradient, reached = z, slope, value
    for _ in range(count):
        momentum = momentum + 0.5 * step * gradient
        at = at + step * momentum
        reached, gradient = target(at)
        momentum = momentum + 0.5 * step * gradient
    with np.errstate(over="ignore"):
        gain = reached - 0.5 * (momentum**2).sum(axis=1) - before
    rate = np.exp(np.minimum(np.where(np.isfinite(gain), gain, -np.inf), 0.0))
    moved = rng.random(len(z)) < rate
    return (
        np.where(moved[:, None], at, z),
        np.where(moved, reached, value),
        np.where(moved[:, None], gradient, slope),
        rate,
    )


def split_r_hat(draws: Floats) -> Floats:
    """Potential scale reduction (q,) of chains (T, C, q), each cut in halves.

    Source: Gelman et al., Bayesian Data Analysis, third edition, section 11.4.
    """
    halves = _halves(draws)
    t = len(halves)
    within = halves.var(axis=0, ddof=1).mean(axis=0)
    between = t * halves.mean(axis=0).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt(((t - 1) / t * within + between / t) / within)
    return np.where(np.isfinite(ratio), ratio, np.where(between > 0, np.inf, 1.0))


def effective_size(draws: Floats) -> Floats:
    """Effective number of draws (q,) of chains (T, C, q): autocorrelations of halves, paired.

    Source: Gelman et al., Bayesian Data Analysis, section 11.5; the sum stops where a pair turns
    negative (Geyer 1992).
    """
    halves = _halves(draws)
    t, chains, q = halves.shape
    within = halves.var(axis=0, ddof=1).mean(axis=0)
    total = (t - 1) / t * within + halves.mean(axis=0).var(axis=0, ddof=1)
    centred = halves - halves.mean(axis=0)
    spectrum = np.abs(np.fft.rfft(centred, 2 * t, axis=0)) ** 2
    autocovariance = np.fft.irfft(spectrum, 2 * t, axis=0)[:t].mean(axis=1) / t
    out = np.empty(q)
    for k in range(q):
        if not total[k] > 0:
            out[k] = float(t * chains)
            continue
        rho = 1 - (within[k] - autocovariance[:, k]) / total[k]
        pairs = rho[: t - t % 2].reshape(-1, 2).sum(axis=1)
        negative = np.flatnonzero(pairs < 0)
        pairs = pairs[: negative[0]] if len(negative) else pairs
        tau = max(2 * pairs.sum() - 1, 1 / np.log10(max(t * chains, 10)))
        out[k] = t * chains / tau
    return out


def _halves(draws: Floats) -> Floats:
    """Both halves of every chain as chains, (T/2, 2C, q)."""
    half = len(draws) // 2
    return np.concatenate([draws[:half], draws[-half:]], axis=1)
