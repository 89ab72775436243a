"""Hamiltonian Monte Carlo for many chains at once, and whether they agree.

Source: Neal (2011), MCMC using Hamiltonian dynamics; the step size is adapted by dual averaging
(Hoffman, Gelman 2014, algorithm 5), with one step size for all chains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

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
    retained, accepted = np.empty((size, *start.shape)), 0.0
    for t in range(warmup + size):
        step = adapt.step if t < warmup else adapt.final
        z, value, slope, rate = _transition(whitened, z, value, slope, step, rng)
        if t < warmup:
            adapt.update(float(rate.mean()))
        else:
            retained[t - warmup] = z @ root.T
            accepted += float(rate.mean()) / size
    return Chains(retained, accepted, adapt.final)


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
        """Adapt to the mean acceptance of the chains in one transition."""
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
    negative, and pairs never rise (Geyer 1992).
    """
    halves = _halves(draws)
    t, chains, _ = halves.shape
    within = halves.var(axis=0, ddof=1).mean(axis=0)
    total = (t - 1) / t * within + halves.mean(axis=0).var(axis=0, ddof=1)
    length = next_fast_len(2 * t, real=True)
    spectrum = np.abs(rfft(halves - halves.mean(axis=0), length, axis=0)) ** 2
    autocovariance = irfft(spectrum, length, axis=0)[:t].mean(axis=1) / t
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1 - (within - autocovariance) / total
    rho[0] = 1.0
    size = 2 * max((t - 1) // 2, 1)
    even, odd = rho[:size:2], rho[1:size:2]
    pairs = np.minimum.accumulate(even + odd)
    counts = np.logical_and.accumulate(pairs > 0, axis=0)
    counts[-1] = False
    # Of the pair after the last that counts, half of what is positive.
    after = np.take_along_axis(even, counts.sum(axis=0)[None], axis=0)[0]
    tau = 2 * np.where(counts, pairs, 0.0).sum(axis=0) - 1 + np.maximum(after, 0.0)
    tau = np.maximum(tau, 1 / np.log10(max(t * chains, 10)))
    return np.asarray(t * chains / np.where(total > 0, tau, 1.0))


def rank_r_hat(draws: Floats) -> Floats:
    """The larger split R-hat (q,) of ranks and of ranks of the distances from the median.

    Source: Vehtari, Gelman, Simpson, Carpenter, Buerkner (2021), Rank-normalization, folding, and
    localization, section 3.2; draws (T, C, q).
    """
    far = np.abs(draws - np.median(draws, axis=(0, 1)))
    return np.maximum(split_r_hat(_normal_scores(draws)), split_r_hat(_normal_scores(far)))


def bulk_size(draws: Floats) -> Floats:
    """Effective number of draws (T, C, q) of ranks, (q,). Source: as of `rank_r_hat`."""
    return effective_size(_normal_scores(draws))


def tail_size(draws: Floats) -> Floats:
    """Effective number of draws (T, C, q) of the 5% and 95% quantiles, the lesser, (q,)."""
    low, high = np.quantile(draws, [0.05, 0.95], axis=(0, 1))
    sizes = [effective_size((draws <= end).astype(np.float64)) for end in (low, high)]
    return np.minimum(*sizes)


def _normal_scores(draws: Floats) -> Floats:
    """Normal quantiles of the ranks over the halves of all chains, (T, C, q)."""
    from scipy.stats import rankdata  # slow to load

    half = len(draws) // 2
    retained = np.concatenate([draws[:half], draws[-half:]]).reshape(-1, draws.shape[2])
    out = ndtri((rankdata(retained, axis=0) - 0.375) / (len(retained) + 0.25))
    return np.asarray(out).reshape(2 * half, *draws.shape[1:])


def _halves(draws: Floats) -> Floats:
    """Both halves of every chain as chains, (T/2, 2C, q)."""
    half = len(draws) // 2
    return np.concatenate([draws[:half], draws[-half:]], axis=1)
