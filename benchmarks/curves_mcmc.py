"""Importance sampling beside Markov chains of the same posterior: agreement, and cost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from curves_data import Scores, draw, stream
from curves_spe import FREEDOM, PROPOSALS, WORLDS, draw_world, target_of
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.hmc import effective_size, hamiltonian_monte_carlo, split_r_hat
from fewlabels.kernels.importance import Proposal
from fewlabels.methods.spe.sampling import (
    Modes,
    Target,
    find_modes,
    importance_ladder,
    laplace_root,
)
from fewlabels.methods.spe.spe import SPE
from fewlabels.questions.counts import GRID
from parts import SEED, Arguments, Part, Plan, Record
from runs import number, table

_LABELED = 20
_REAL = ("magic_g_1 logreg", "spambase_1 linsvm")
_CHAINS = 16
_X = 1e-9 + 1.3 * np.linspace(0.0, 1.0, 600) ** 1.5


class Draws(NamedTuple):
    """Parameters (D, q) with weights (D,) that sum to 1; D = T x C where they are chains."""

    theta: Floats
    weights: Floats
    chains: int
    seconds: float
    note: str


def metropolis(
    target: Target,
    start: Floats,
    root: Floats,
    rng: np.random.Generator,
    *,
    warmup: int,
    size: int,
    thin: int = 1,
) -> Floats:
    """Random-walk Metropolis-Hastings of C chains from `start` (C, q): draws (T, C, q).

    Steps are normal with the covariance that `root` is a root of, scaled in the warm-up to an
    acceptance of .234 (Roberts, Gelman, Gilks 1997).
    """
    at, height = start, target.log_density(start)
    log_step = np.log(2.38 / np.sqrt(start.shape[1]))
    kept = np.empty((size // thin, *start.shape))
    for t in range(warmup + size):
        step = np.exp(log_step) * rng.standard_normal(at.shape) @ root.T
        reached = target.log_density(at + step)
        moved = np.log(rng.random(len(at))) < reached - height
        at = np.where(moved[:, None], at + step, at)
        height = np.where(moved, reached, height)
        if t < warmup:
            log_step += (moved.mean() - 0.234) / np.sqrt(1 + t / 10)
        elif (t - warmup + 1) % thin == 0:
            kept[(t - warmup) // thin] = at
    return kept


def starts_of(
    target: Target, modes: Modes, rng: np.random.Generator, count: int = _CHAINS
) -> tuple[Floats, Floats]:
    """Starts (C, q) about the highest mode, and a root of the covariance there."""
    root = laplace_root(target.smooth, modes.points[0])
    around = Proposal.of(modes.points[0], root, FREEDOM).draw(4 * count, rng)
    inside = around[np.isfinite(target.log_density(around))][:count]
    return inside, root


def importance(target: Target, rng: np.random.Generator) -> Draws:
    """The library's ladder of importance samplers."""
    started = time.perf_counter()
    found = importance_ladder(target, find_modes(target), PROPOSALS, "diagonal", rng)
    seconds = time.perf_counter() - started
    note = f"{found.sampler}, k = {number(found.sample.pareto_k, 2)}"
    return Draws(found.sample.points, found.sample.weights, 0, seconds, note)


def chains(
    kind: str, target: Target, rng: np.random.Generator, length: int, warmup: int = 0
) -> Draws:
    """Hamiltonian Monte Carlo, or Metropolis-Hastings with ten times as many transitions.

    The warm-up has half as many, or as many as are named.
    """
    started = time.perf_counter()
    start, root = starts_of(target, find_modes(target), rng)
    if kind == "hmc":
        drawn = hamiltonian_monte_carlo(
            target.gradient, start, root, rng, warmup=warmup or length // 2, size=length
        ).draws
    else:
        warmup, size = warmup or 5 * length, 10 * length
        drawn = metropolis(target, start, root, rng, warmup=warmup, size=size, thin=10)
    seconds = time.perf_counter() - started
    size = drawn.shape[0] * drawn.shape[1]
    note = f"R-hat {number(float(split_r_hat(drawn).max()), 3)}"
    return Draws(drawn.reshape(size, -1), np.full(size, 1 / size), drawn.shape[1], seconds, note)


def population_curves(target: Target, theta: Floats) -> Floats:
    """Precision of the population at each recall of the grid, (D, 100)."""
    one, zero = target.mixture.survival(_X, theta)
    share = expit(theta[:, -1])
    tp, fp = share * one, (1 - share) * zero
    precision = tp / np.maximum(tp + fp, np.finfo(float).tiny)
    # Recall falls as x grows, and interpolation wants it to rise.
    return np.stack(
        [np.interp(GRID, r[::-1], p[::-1]) for r, p in zip(one.T, precision.T, strict=True)]
    )


def summary(target: Target, draws: Draws) -> Record:
    """Posterior mean of curve and area, with standard errors, and the area's effective draws."""
    curves = np.empty((len(draws.theta), len(GRID)))
    for start in range(0, len(curves), 500):
        rows = slice(start, start + 500)
        curves[rows] = population_curves(target, draws.theta[rows])
    both = np.column_stack([curves, curves.mean(axis=1)])
    mean = draws.weights @ both
    variance = draws.weights @ (both - mean) ** 2
    if draws.chains:
        size = effective_size(both.reshape(-1, draws.chains, both.shape[1]))
        error = np.sqrt(variance / size)
    else:
        # The variance of a self-normalised estimate (Owen, Monte Carlo theory, 9.2).
        error = np.sqrt(draws.weights**2 @ (both - mean) ** 2)
    effective = float(variance[-1] / max(error[-1] ** 2, np.finfo(float).tiny))
    return {"mean": mean, "error": error, "effective": effective}


def mcmc_cells(plan: Plan) -> list[Arguments]:
    """Three synthetic posteriors, and two real ones."""
    worlds = [{"name": next(iter(WORLDS)), "trial": t} for t in plan.trials(3)]
    real = [{"name": name, "trial": 0} for name in plan.some(_REAL, 1)]
    return [cell | {"length": 100 if plan.quick else 500} for cell in [*worlds, *real]]


def mcmc_run(data: Path, name: str, trial: int, length: int) -> list[Record]:
    """Every sampler on one posterior."""
    rng = stream("mcmc", name, trial)
    if name in WORLDS:
        world = WORLDS[name]
        scores, pair = draw_world(world, rng), (world.positive[0], world.negative[0])
    else:
        scores = draw(data, name, trial)
        pair = likeliest_pair(scores)
    target = target_of(scores, _LABELED, pair)
    found = {
        "importance sampling": importance(target, rng),
        "HMC": chains("hmc", target, rng, length),
        "Metropolis-Hastings": chains("mh", target, rng, length),
    }
    return [
        {"posterior": f"{name}, {trial} ({'/'.join(pair)})", "sampler": sampler,
         "seconds": draws.seconds, "note": draws.note, **summary(target, draws)}
        for sampler, draws in found.items()
    ]  # fmt: skip


def likeliest_pair(scores: Scores) -> tuple[str, str]:
    """The pair of families that the paper would choose."""
    posterior = SPE(selection="likelihood").infer(scores.show(_LABELED), 0).of(0)
    one, zero = posterior.diagnostics["families"].split("/")
    return one, zero


def mcmc_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """Areas and costs, and how far the curves are from those of HMC."""
    header = ["posterior", "sampler", "area", "z", "largest gap", "largest z", "diagnosis",
              "seconds", "effective draws", "ms per effective draw"]  # fmt: skip
    rows = []
    for posterior, own in records.groupby("posterior", sort=False):
        by_sampler = {r["sampler"]: r for r in own.to_dict("records")}
        reference = by_sampler["HMC"]
        for sampler, r in by_sampler.items():
            gap = np.subtract(r["mean"], reference["mean"])
            z = gap / np.hypot(r["error"], reference["error"])
            against = ["-"] * 3
            if sampler != "HMC":
                curve = slice(0, len(GRID))
                against = [number(z[-1], 1), number(np.abs(gap[curve]).max(), 4),
                           number(np.abs(z[curve]).max(), 1)]  # fmt: skip
            area = f"{number(r['mean'][-1], 4)} ± {number(r['error'][-1], 4)}"
            cost = 1000 * r["seconds"] / r["effective"]
            rows.append([posterior, sampler, area, *against, r["note"], number(r["seconds"], 2),
                         f"{r['effective']:.0f}", number(cost, 2)])  # fmt: skip
    return {"mcmc": table(header, rows)}


MCMC = Part(
    mcmc_cells,
    mcmc_run,
    mcmc_blocks,
    f"one run of each, {_LABELED} labels, seed {SEED}; ± is the Monte Carlo standard error; z and "
    f"gaps are from HMC, {_CHAINS} chains of 500 after 250; Metropolis-Hastings has ten times as "
    "many transitions; seconds include the search for the mode",
    alone=True,
)
