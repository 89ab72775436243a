"""Weak supervision with inferred dependencies reduces to Dawid-Skene (SSME paper, appendix D.3).

A weak-supervision label model (Ratner et al. 2016, Bach et al. 2017) is a log-linear density over
the true class y and the votes v of the sources,

    p(y, v) = exp( a_y + sum_j b_j[y, v_j] + sum_{(i,j) in C} c_ij[v_i, v_j] ) / Z,

whose set of dependencies C is inferred first. Where C is empty, the exponent is a sum over sources
given y, so p(v | y) is a product of one K x K table per source: the density of Dawid and Skene,
with p(y) and the tables as exp(.) normalised. The two then have one likelihood, hence the same
maxima and the same posteriors. So the claim has two parts, each tested here:

1. with C empty, what `dawid-skene` finds is a maximum of the log-linear model's marginal
   likelihood, which is written out below with its partition function summed by brute force, and
   the posteriors agree;
2. the inference of C (Varma et al. 2019: the inverse covariance of the votes is sparse plus low
   rank; the sparse part's off-diagonal entries are the dependencies) finds none where the sources
   are independent given the class, and does find a planted one, so "none" is not for lack of power.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

import fewlabels as fl
from dependencies import dependencies
from fewlabels.methods.votes.dawid_skene import DawidSkene

K = 2
RIGHT = np.array([0.9, 0.8, 0.75, 0.7])
MANY = np.repeat(RIGHT, 2)


def independent_votes(
    n: int, seed: int, right_rates: np.ndarray = RIGHT
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(int)
    right = rng.random((n, len(right_rates))) < right_rates
    return np.where(right, truth[:, None], 1 - truth[:, None]), truth


def joint(theta: np.ndarray, m: int) -> np.ndarray:
    """log p(y, v) over all classes and vote combinations, (K, K^m): Z by brute force, C empty."""
    a, b = theta[:K], theta[K:].reshape(m, K, K)
    combinations = np.array(list(itertools.product(range(K), repeat=m)))
    energy = np.array(
        [[a[y] + sum(b[j, y, v[j]] for j in range(m)) for v in combinations] for y in range(K)]
    )
    return energy - np.log(np.exp(energy).sum())


def negative_likelihood(theta: np.ndarray, counts: np.ndarray, m: int) -> float:
    """Of unlabeled votes: counts of every vote combination, (K^m,)."""
    marginal = np.exp(joint(theta, m)).sum(axis=0)
    return -float(counts @ np.log(marginal)) / counts.sum()


def test_without_dependencies_the_label_model_is_dawid_skene():
    votes, _ = independent_votes(3000, seed=0)
    m = votes.shape[1]
    which = votes @ (K ** np.arange(m)[::-1])
    counts = np.bincount(which, minlength=K**m).astype(float)

    exact = DawidSkene(iterations=5000, tolerance=1e-13)
    posterior = exact.infer(fl.Predictions(votes=votes, classes=[0, 1]), 0)
    theirs = minimize(
        negative_likelihood,
        x0=np.concatenate([np.zeros(K), np.tile(np.eye(K).ravel(), m)]),
        args=(counts, m),
        method="BFGS",
        options={"gtol": 1e-7, "maxiter": 2000},
    ).x

    log_p = joint(theirs, m)
    of_combination = np.exp(log_p - np.logaddexp(*log_p)).T
    np.testing.assert_allclose(posterior.marginals(), of_combination[which], atol=2e-4)
    rates = np.exp(log_p).reshape(K, *[K] * m)
    for j, model in enumerate(posterior.diagnostics["error_rate"]):
        axes = tuple(i + 1 for i in range(m) if i != j)
        table = rates.sum(axis=axes)  # (y, v_j)
        assert posterior.diagnostics["error_rate"][model] == pytest.approx(
            1 - np.trace(table), abs=2e-4
        )


@pytest.mark.parametrize("seed", range(5))
def test_no_dependencies_are_inferred_among_independent_sources(seed):
    votes, _ = independent_votes(4000, seed, MANY)
    assert dependencies(votes) == set()


@pytest.mark.parametrize("seed", range(5))
def test_a_planted_dependency_is_inferred(seed):
    votes, _ = independent_votes(4000, seed, MANY)
    rng = np.random.default_rng(seed + 100)
    votes[:, 3] = np.where(rng.random(4000) < 0.8, votes[:, 2], votes[:, 3])
    assert dependencies(votes) == {(2, 3)}
