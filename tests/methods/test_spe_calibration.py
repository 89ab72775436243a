"""Simulation-based calibration of the two-class sampler (Talts et al. 2018).

Parameters from the prior, data from the parameters, draws from the posterior: the rank of the true
parameter among the draws is uniform, whatever the ladder of samplers did on the way.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chi2, norm

from fewlabels.methods.spe.families import FAMILIES
from fewlabels.methods.spe.mixture import ClassDensity, ScoreMixture, score_data
from fewlabels.methods.spe.sampling import (
    Target,
    find_modes,
    importance_ladder,
    moved,
    run_chains,
)
from spe_priors import draw_density

DRAWS, BINS = 99, 10


def scores_of(family: str, u: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draws from a family; the normal is truncated at 0 by its quantile function."""
    if family == "gamma":
        mean, sd = np.exp(u)
        return rng.gamma((mean / sd) ** 2, sd**2 / mean, size)
    from scipy.stats import truncnorm

    sd = np.exp(u[1])
    return truncnorm.rvs(-u[0] / sd, np.inf, u[0], sd, size, random_state=rng)


def one_rank(mixture, names, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    theta = np.concatenate(
        [
            draw_density(mixture.positive, 1, rng)[0],
            draw_density(mixture.negative, 1, rng)[0],
            [np.log(v := rng.random()) - np.log1p(-v)],
        ]
    )
    n, known = 60, 20
    truth = rng.random(n) < expit(theta[-1])
    one, zero = mixture.split(theta[None])[:2]
    x = np.where(
        truth,
        scores_of(names[0], one[0], n, rng),
        scores_of(names[1], zero[0], n, rng),
    )
    # Gamma scores of a tiny shape underflow; a higher floor would be data of another model.
    x = np.maximum(x, 1e-300)
    evidence = np.zeros((n, 2))
    first = truth[:known]
    evidence[:known][first, 0] = evidence[:known][~first, 1] = -np.inf
    data = score_data(x, evidence, np.ones(n), np.arange(n, dtype=np.uint64))
    target = Target(mixture, data, ordered=False)
    found = importance_ladder(target, find_modes(target), 2000, "diagonal", rng)
    if not found.trusted:
        found = run_chains(found, rng)
    draws = found.draw(DRAWS, rng)
    # Resampled points repeat: ties with one another do not touch the rank of the truth.
    return (draws < theta).sum(axis=0)


SIZE = 2000
"""Data sets; the share of 10% has a standard error of .7%, and 14% is six of these away."""

OUTER = 5
"""Ranks at each end, of 100: the outer tenth."""


def furthest(ranks: np.ndarray) -> float:
    """Largest distance from uniform of the outer tenth of ranks (sets, parameters), and of bins.

    In standard errors, and as the normal quantile of a chi-square p-value.
    """
    n = len(ranks)
    outer = ((ranks < OUTER) | (ranks > DRAWS - OUTER)).mean(axis=0)
    z = np.abs(outer - 2 * OUTER / (DRAWS + 1)) / np.sqrt(0.1 * 0.9 / n)
    binned = [np.bincount(r * BINS // (DRAWS + 1), minlength=BINS) for r in ranks.T]
    chi = [((count - n / BINS) ** 2).sum() / (n / BINS) for count in binned]
    return float(max(*z, *norm.isf(chi2.sf(chi, BINS - 1) / 2)))


LIMIT = 3.9
"""Of some twenty distances once in two hundred times by chance (Bonferroni)."""


@pytest.mark.slow
@pytest.mark.parametrize("names", [("normal", "gamma"), ("normal", "normal")])
def test_ranks_are_uniform(names):
    mixture = ScoreMixture(*(ClassDensity(FAMILIES[name]) for name in names))
    ranks = np.array([one_rank(mixture, names, seed) for seed in range(SIZE)])
    assert furthest(ranks) < LIMIT


@pytest.mark.parametrize(
    ("spread", "shift", "seen"), [(1.0, 0.0, False), (0.9, 0.0, True), (1.0, 0.15, True)]
)
def test_a_planted_fault_is_seen(spread, shift, seen):
    """Draws a tenth too narrow put 14% of the truths into the outer tenth of ranks."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(SIZE, 5))
    draws = rng.normal(shift, spread, (DRAWS, SIZE, 5))
    assert (furthest((draws < truth).sum(axis=0)) > LIMIT) is seen


def test_moves_mend_a_sample_that_is_too_narrow():
    rng = np.random.default_rng(1)

    def target(theta):
        return -0.5 * (theta**2).sum(axis=1)

    narrow, right = (scale * rng.normal(size=(4000, 3)) for scale in (0.8, 1.0))
    assert moved(target, narrow, np.eye(3), rng).std(axis=0) == pytest.approx(1.0, abs=0.06)
    assert moved(target, right, np.eye(3), rng).std(axis=0) == pytest.approx(1.0, abs=0.04)
    copies = moved(target, np.zeros((4000, 3)), np.eye(3), rng)
    assert copies.std(axis=0).min() > 0.75
