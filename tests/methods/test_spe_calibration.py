"""Simulation-based calibration of the two-class sampler (Talts et al. 2018).

Parameters from the prior, data from the parameters, draws from the posterior: the rank of the true
parameter among the draws is uniform, whatever the ladder of samplers did on the way.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chi2

from fewlabels.methods.spe.families import FAMILIES
from fewlabels.methods.spe.mixture import ClassDensity, ScoreMixture, score_data
from fewlabels.methods.spe.sampling import (
    Target,
    find_modes,
    importance_ladder,
    run_chains,
)

pytestmark = pytest.mark.slow

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
            mixture.positive.draw_prior(1, rng)[0],
            mixture.negative.draw_prior(1, rng)[0],
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


@pytest.mark.parametrize("names", [("normal", "gamma"), ("normal", "normal")])
def test_ranks_are_uniform(names):
    mixture = ScoreMixture(*(ClassDensity(FAMILIES[name]) for name in names))
    size = 300
    ranks = np.array([one_rank(mixture, names, seed) for seed in range(size)])
    for k in range(mixture.size):
        count = np.bincount(ranks[:, k] * BINS // (DRAWS + 1), minlength=BINS)
        statistic = ((count - size / BINS) ** 2).sum() / (size / BINS)
        assert chi2.sf(statistic, BINS - 1) > 1e-3, (k, count)
