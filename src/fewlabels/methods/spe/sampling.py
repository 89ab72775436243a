"""Draws from the posterior of one score mixture: modes, and a sequence of samplers.

Importance sampling comes first, as it is fast and its weights show whether it worked (effective
sample size, Pareto k). If a sampler failed, the next one follows: the paper's normal with
independent coordinates; Student's t with the mode's full covariance; a mixture of these over the
local modes, fitted to the sample so far; Hamiltonian Monte Carlo started there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize

from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.kernels.hmc import hamiltonian_monte_carlo
from fewlabels.kernels.importance import AdaptivePool, ImportanceSample, LogDensity, Proposal
from fewlabels.methods.spe.mixture import BOUND, ScoreData, ScoreMixture, starting_points

Sampler = Literal["laplace", "diagonal", "full", "mixture", "hmc"]

RELIABLE = (0.7, 0.05)
"""Requirements of importance weights: Pareto k at most .7, effective size 5% of the draws."""

GOOD = (0.5, 0.2)
"""Requirements to take a sample as it is. Worse ones are reliable for a mean, but their tails are
thin: 12 to 14% of true parameters were in the outer 10% of their draws."""

_MOVES = 12
"""Metropolis steps of the draws of such a sample, which leave a correct one unchanged in
distribution."""

_FREEDOM = 5.0
_DEPTH = 15.0
"""Local modes further below the highest, in log density, are ignored."""

_PILOT = 4
_ROUNDS, _PLACES = 4, 8
_CHAINS, _WARMUP, _LENGTH = 16, 80, 120
_MOST_R_HAT = 1.1


@dataclass(frozen=True, eq=False)
class Target:
    """The posterior of one score mixture."""

    mixture: ScoreMixture
    data: ScoreData
    ordered: bool
    """Whether the positive class must have the higher mean score: labels do not say which is."""

    def log_density(self, theta: Floats) -> Floats:
        """Unnormalised log posterior, (D,)."""
        return self._within(theta, self.mixture.log_posterior(theta, self.data))

    def gradient(self, theta: Floats) -> tuple[Floats, Floats]:
        """The same with its gradient (D, q), for chains: it is -inf beyond the support."""
        value, slope = self.mixture.value_and_gradient(theta, self.data)
        value = np.where((np.abs(theta) <= BOUND).all(axis=1) & np.isfinite(value), value, -np.inf)
        return self._within(theta, value), slope

    def smooth(self, theta: Floats) -> tuple[Floats, Floats]:
        """Log posterior and gradient without the order of the classes, for the ascent."""
        value, slope = self.mixture.value_and_gradient(theta, self.data)
        bad = ~(np.isfinite(value) & np.isfinite(slope).all(axis=1))
        return np.where(bad, -1e200, value), np.where(bad[:, None], 0.0, slope)

    def _within(self, theta: Floats, value: Floats) -> Floats:
        if not self.ordered:
            return value
        some = np.flatnonzero(np.isfinite(value))
        value[some[~self.mixture.in_order(theta[some])]] = -np.inf
        return value


@dataclass(frozen=True, eq=False)
class Modes:
    """The highest mode (q,) first, other local modes after it: (C, q), log densities (C,)."""

    points: Floats
    values: Floats
    log_likelihood: float
    converged: bool


@dataclass(frozen=True, eq=False)
class Sampled:
    """What a sampler came to: an importance sample, or draws of equal weight (D, q)."""

    target: Target
    modes: Modes
    sample: ImportanceSample
    sampler: Sampler
    trusted: bool
    pareto_k: dict[str, float] = field(default_factory=dict)
    chains: Floats | None = None
    r_hat: float | None = None

    @property
    def log_evidence(self) -> float:
        """Log of the integral of likelihood times prior, by importance sampling."""
        return self.sample.log_evidence

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """Equally weighted draws, (size, q)."""
        if self.chains is not None:
            return self.chains[rng.choice(len(self.chains), size, replace=size > len(self.chains))]
        points = self.sample.points[self.sample.resample(size, rng)]
        if self.sampler != "mixture" or not len(points):
            return points
        return moved(self.target.log_density, points, self.root(), rng)

    def root(self) -> Floats:
        """Root (q, q) of the sample's covariance."""
        curvature = laplace_root(self.target.smooth, self.modes.points[0])
        return _root(self.sample.moments()[1], curvature)


def moved(target: LogDensity, points: Floats, root: Floats, rng: np.random.Generator) -> Floats:
    """Points (D, q) after `_MOVES` steps each of random-walk Metropolis.

    Resample-move (Gilks, Berzuini 2001): steps leave the target as it is, part copies of one
    point, and reach the ends that few proposals did. The length of a step varies, as no one length
    suits the middle and the ends.
    """
    at, value = points.copy(), target(points)
    q = points.shape[1]
    for _ in range(_MOVES):
        length = 2.38 / np.sqrt(q) * np.exp(rng.normal(0.0, 0.7, (len(at), 1)))
        trial = at + length * (rng.standard_normal(at.shape) @ root.T)
        reached = target(trial)
        with np.errstate(invalid="ignore"):
            taken = np.log(rng.random(len(at))) < reached - value
        at[taken], value[taken] = trial[taken], reached[taken]
    return at


def find_modes(target: Target) -> Modes:
    """Climb from every start; the highest point is then maximised by L-BFGS-B."""
    starts = starting_points(target.mixture, target.data)
    points, values = climb(target.smooth, starts, bound=BOUND, iterations=60)
    allowed = np.isfinite(target.log_density(points))
    if not allowed.any():
        # Every summit has the classes the wrong way round; the starts that have not must do.
        points, values = starts, target.smooth(starts)[0]
    inside = np.isfinite(target.log_density(points))
    if inside.any():
        points, values = points[inside], values[inside]
    order = np.argsort(-values, kind="stable")
    points, values = points[order], values[order]
    best = summit(target.smooth, points[0], bound=BOUND)
    if best.value > values[0] and np.isfinite(target.log_density(best.point[None])[0]):
        points[0], values[0] = best.point, best.value
    # Points that are not the same mode as a higher one, nor far below the first.
    distinct = [0]
    for i in range(1, len(points)):
        apart = all(np.abs(points[i] - points[j]).max() > 0.25 for j in distinct)
        if apart and values[i] > values[0] - _DEPTH:
            distinct.append(i)
    likelihood = float(target.mixture.log_likelihood(points[:1], target.data)[0])
    converged = best.converged and bool(allowed.any())
    return Modes(points[distinct], values[distinct], likelihood, converged)


def unsampled(target: Target, modes: Modes) -> Sampled:
    """The mode alone, with Laplace's approximation to the evidence: a sample of one point."""
    root = laplace_root(target.smooth, modes.points[0])
    log_volume = 0.5 * len(root) * np.log(2 * np.pi) + np.linalg.slogdet(root)[1]
    sample = ImportanceSample(modes.points[:1], modes.values[:1] + log_volume)
    return Sampled(target, modes, sample, "laplace", False)


def importance_ladder(
    target: Target, modes: Modes, size: int, first: Sampler, rng: np.random.Generator
) -> Sampled:
    """Increasingly careful importance samples, until the weights are reliable; else the best."""
    k: dict[str, float] = {}
    mode = modes.points[0]
    if first == "diagonal":
        scales = slice_scales(target.log_density, mode)
        proposal = Proposal.of(mode, np.diag(scales))
        # It fails more often than not, and a quarter of the draws shows that as well.
        pilot = ImportanceSample.draw(target.log_density, proposal, -(-size // _PILOT), rng)
        k["diagonal"] = pilot.pareto_k
        if is_even(pilot, GOOD):
            sample = ImportanceSample.draw(target.log_density, proposal, size, rng)
            k["diagonal"] = sample.pareto_k
            if is_even(sample, GOOD):
                return Sampled(target, modes, sample, "diagonal", True, k)
    roots = [laplace_root(target.smooth, point) for point in modes.points]
    proposal = Proposal.of(mode, roots[0], _FREEDOM)
    full = ImportanceSample.draw(target.log_density, proposal, size, rng)
    k["full"] = full.pareto_k
    if is_even(full, GOOD):
        return Sampled(target, modes, full, "full", True, k)
    pool = AdaptivePool(target.log_density)
    pool.add(proposal, full.points)
    estimate = pool.sample
    for _ in range(_ROUNDS):
        proposal = _mixture(modes, roots, estimate, rng)
        pool.add(proposal, proposal.draw(size, rng))
        estimate = pool.sample
        if is_even(estimate, GOOD):
            break
    k["mixture"] = estimate.pareto_k
    return Sampled(target, modes, estimate, "mixture", is_even(estimate, RELIABLE), k)


def run_chains(estimate: Sampled, rng: np.random.Generator) -> Sampled:
    """Hamiltonian Monte Carlo from the draws of an unreliable importance sample."""
    sample = estimate.sample
    if not np.isfinite(sample.log_weights).any():
        return estimate
    start = sample.points[sample.resample(_CHAINS, rng)]
    chains = hamiltonian_monte_carlo(
        estimate.target.gradient, start, estimate.root(), rng, warmup=_WARMUP, size=_LENGTH
    )
    r_hat = float(chains.r_hat.max())
    draws = chains.draws.reshape(-1, start.shape[1])
    return replace(estimate, sampler="hmc", trusted=r_hat <= _MOST_R_HAT, chains=draws, r_hat=r_hat)


def is_even(sample: ImportanceSample, limits: tuple[float, float]) -> bool:
    """Whether the weights meet the requirements, `RELIABLE` or `GOOD`."""
    most_k, least_share = limits
    enough = sample.effective_size >= least_share * len(sample.points)
    return bool(enough and sample.pareto_k <= most_k)


def _mixture(
    modes: Modes, roots: list[Floats], sample: ImportanceSample, rng: np.random.Generator
) -> Proposal:
    """Every local mode with its curvature, the moments of the sample, and places it points to.

    The largest weights are cut to the mean weight times the root of the sample's size (Ionides
    2008), so that a single point does not pass for a distribution.
    """
    if not np.isfinite(sample.log_evidence):
        return Proposal(modes.points, np.stack(roots) * 2, np.ones(len(roots)), _FREEDOM)
    most = np.log(len(sample.points)) / 2 + sample.log_evidence
    cut = ImportanceSample(sample.points, np.minimum(sample.log_weights, most))
    mean, covariance = cut.moments()
    root = _root(covariance, roots[0])
    places = sample.points[cut.resample(_PLACES, rng)]
    heights = np.exp(np.maximum(modes.values - modes.values[0], -3.0))
    return Proposal(
        np.concatenate([mean[None], modes.points, places]),
        np.stack([1.2 * root, *roots, *[0.7 * root] * _PLACES]),
        np.concatenate([[1.0], heights / heights.sum(), np.full(_PLACES, 2.0 / _PLACES)]),
        _FREEDOM,
    )


def _root(covariance: Floats, fallback: Floats) -> Floats:
    """Cholesky factor, of the covariance with a little of the fallback's in it."""
    floor = 0.02 * fallback @ fallback.T
    try:
        root: Floats = np.linalg.cholesky(covariance + floor).astype(np.float64)
    except np.linalg.LinAlgError:
        return fallback
    return root


# --- ascent to a mode -------------------------------------------------------------------------


Gradient = Callable[[Floats], tuple[Floats, Floats]]
"""Values (S,) and gradients (S, q) of points (S, q)."""

_LONGEST = 1.0
_HALVINGS = 12


class Summit(NamedTuple):
    """A maximum (q,), its value, and whether the search ended there by itself."""

    point: Floats
    value: float
    converged: bool


def climb(
    target: Gradient, starts: Floats, *, bound: float, iterations: int
) -> tuple[Floats, Floats]:
    """Points (S, q) after steps of BFGS from every start, and their values (S,).

    All starts move in step, so that one evaluation serves all: where an evaluation costs little
    more for ten points than for one, this is several times faster than one search after another.
    """
    at = np.clip(starts, -bound, bound)
    value, slope = target(at)
    inverse = (
        np.tile(np.eye(at.shape[1]), (len(at), 1, 1))
        / (1 + np.abs(slope).max(axis=1))[:, None, None]
    )
    going = np.isfinite(value)
    for _ in range(iterations):
        if not going.any():
            break
        direction = np.einsum("sij,sj->si", inverse, slope)
        uphill = (direction * slope).sum(axis=1)
        direction = np.where((uphill > 0)[:, None], direction, slope)
        direction *= np.minimum(1, _LONGEST / np.maximum(np.abs(direction).max(axis=1), 1e-300))[
            :, None
        ]
        uphill = (direction * slope).sum(axis=1)
        size = np.where(going, 1.0, 0.0)
        for _ in range(_HALVINGS):
            trial = np.clip(at + size[:, None] * direction, -bound, bound)
            reached, after = target(trial)
            good = ~going | (reached >= value + 1e-4 * size * uphill)
            if good.all():
                break
            size = np.where(good, size, size / 3)
        moved = good & going & np.isfinite(reached)
        inverse = _updated(inverse, trial - at, slope - after, moved)
        gain = np.where(moved, reached - value, 0.0)
        at = np.where(moved[:, None], trial, at)
        slope = np.where(moved[:, None], after, slope)
        value = np.where(moved, reached, value)
        going = moved & (gain > 1e-4)
    return at, value


def _updated(inverse: Floats, step: Floats, change: Floats, moved: Bools) -> Floats:
    """BFGS update of inverse Hessians (S, q, q) of what is minimised."""
    along = (step * change).sum(axis=1)
    usable = moved & (along > 1e-12)
    rho = 1 / np.where(usable, along, 1.0)
    pushed = np.einsum("sij,sj->si", inverse, change)
    bend = (change * pushed).sum(axis=1)
    outer = step[:, :, None] * step[:, None, :]
    cross = pushed[:, :, None] * step[:, None, :]
    new = (
        inverse
        + (rho + rho**2 * bend)[:, None, None] * outer
        - rho[:, None, None] * (cross + cross.transpose(0, 2, 1))
    )
    return np.where(usable[:, None, None], new, inverse)


def summit(target: Gradient, start: Floats, *, bound: float) -> Summit:
    """The maximum that L-BFGS-B finds from one start (q,) within [-bound, bound]."""

    def descend(point: Floats) -> tuple[float, Floats]:
        value, slope = target(point[None])
        return -float(value[0]), -slope[0]

    optimum = minimize(
        descend,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-bound, bound)] * len(start),
        options={"maxiter": 500, "ftol": 1e-12, "gtol": 1e-5},
    )
    # A line search that can gain no more digits ends "abnormally" at a maximum all the same.
    flat = bool(np.abs(optimum.jac).max() < 1e-2 * (1 + abs(optimum.fun)) ** 0.5)
    return Summit(optimum.x, -float(optimum.fun), bool(optimum.success) or flat)


def slice_scales(target: LogDensity, mode: Floats) -> Floats:
    """Standard deviation of each coordinate on the slice through a mode, (q,).

    A least-squares parabola through nine points within twice the width at which the density
    falls by half a unit.
    """
    q = len(mode)
    widths: Floats = np.exp2(np.arange(-12.0, 5.0))
    axes = np.eye(q)

    def slices(distance: Floats) -> Floats:
        """Log density at mode + distance (q, m) along each axis, (q, m)."""
        points = mode + distance[:, :, None] * axes[:, None, :]
        return target(points.reshape(-1, q)).reshape(distance.shape)

    top = target(mode[None])[0]
    if not np.isfinite(top):  # beyond the support there is no curvature to find
        return np.ones(q)
    away = np.tile(widths, (q, 1))
    drop = top - 0.5 * (slices(away) + slices(-away))
    reached = drop >= 0.5
    first = np.where(reached.any(axis=1), np.argmax(reached, axis=1), len(widths) - 1)
    rows = np.arange(q)
    after, before = drop[rows, first], drop[rows, np.maximum(first - 1, 0)]
    share = np.ones(q)
    usual = np.isfinite(after) & (after > before) & (before < 0.5) & (first > 0)
    share[usual] = (0.5 - before[usual]) / (after[usual] - before[usual])
    # Between two widths the fall grows about as the square of the distance.
    w = widths[first] * np.sqrt(0.25 + 0.75 * np.clip(share, 0, 1))
    t = np.linspace(-2, 2, 9)
    fall = slices(w[:, None] * t) - top
    usable = np.where(np.isfinite(fall), 1.0, 0.0)
    # Through the mode the parabola is a t + b t^2.
    design = np.column_stack([t, t**2])
    out: Floats = w.astype(np.float64)
    for k in range(q):
        weighted = design * usable[k, :, None]
        bend = np.linalg.lstsq(weighted, np.where(usable[k] > 0, fall[k], 0.0), None)[0][1]
        if bend < 0:
            out[k] = w[k] / np.sqrt(-2 * bend)
    return out


def laplace_root(gradient: Gradient, mode: Floats, *, floor: float = 0.05) -> Floats:
    """Root (q, q) of the inverse of the negative Hessian at a mode.

    Eigenvalues of the negative Hessian, in units of its diagonal, are at least `floor`: where the
    curvature is weaker, or the wrong way, a wider proposal would leave the region it stands for.
    """
    q, step = len(mode), 1e-4
    points = np.concatenate([mode + step * np.eye(q), mode - step * np.eye(q)])
    slopes = gradient(points)[1]
    hessian = -(slopes[:q] - slopes[q:]) / (2 * step)
    hessian = (hessian + hessian.T) / 2
    scale = 1 / np.sqrt(np.maximum(np.diag(hessian), floor))
    values, vectors = np.linalg.eigh(hessian * scale * scale[:, None])
    root: Floats = (scale[:, None] * vectors / np.sqrt(np.maximum(values, floor))).astype(
        np.float64
    )
    return root
