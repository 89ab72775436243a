"""Gibbs sampling of normal mixtures: densities, conjugate posteriors, and mixtures it must find."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fewlabels.methods.spe.classes import (
    NormalDraws,
    NormalPrior,
    _wishart_root,
    gibbs,
    quadratic_basis,
)


def prior_of(means, mean_items=2.0, covariance_items=5.0) -> NormalPrior:
    k, d = means.shape
    return NormalPrior(means, np.eye(d), mean_items, covariance_items, np.ones(k))


def test_coefficients_are_the_log_density():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(2, 3, 4, 4))
    precisions = root @ root.swapaxes(2, 3) + np.eye(4)
    means, log_weights = rng.normal(size=(2, 3, 4)), np.log(rng.dirichlet(np.ones(3), 2))
    draws = NormalDraws(log_weights, means, precisions)
    z = rng.normal(size=(10, 4))
    found = np.tensordot(quadratic_basis(z), draws.coefficients, axes=1)
    for d in range(2):
        for c in range(3):
            normal = stats.multivariate_normal(means[d, c], np.linalg.inv(precisions[d, c]))
            np.testing.assert_allclose(found[:, d, c], log_weights[d, c] + normal.logpdf(z))


def test_wishart_draws_have_their_moments():
    rng = np.random.default_rng(0)
    scatter = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 3.0]])
    root = _wishart_root(np.tile(scatter, (40_000, 1, 1)), np.full(40_000, 7.0), rng)
    draws = root @ root.swapaxes(1, 2)
    expected = stats.wishart(7, np.linalg.inv(scatter))
    np.testing.assert_allclose(draws.mean(axis=0), expected.mean(), atol=0.08)
    np.testing.assert_allclose(draws.var(axis=0), expected.var(), rtol=0.1, atol=0.05)


def test_known_assignments_give_the_conjugate_posterior():
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=3000)
    z = rng.normal(size=(3000, 2)) * [1.0, 2.0] + np.where(truth[:, None], 1.5, -1.5)
    evidence = np.where(truth[:, None] == np.arange(2), 0.0, -np.inf)
    start = np.where(np.isfinite(evidence), 1.0, 0.0)
    prior = prior_of(np.zeros((2, 2)))
    draws = gibbs(
        z, evidence, np.ones(3000), start, prior, rng, chains=2, warmup=5, size=300, thin=1
    )
    assert len(draws) == 600
    share = np.exp(draws.log_weights)
    assert share.mean(axis=0)[1] == pytest.approx(truth.mean(), abs=0.003)
    assert share.std(axis=0)[1] == pytest.approx(np.sqrt(0.25 / 3000), rel=0.15)
    np.testing.assert_allclose(
        draws.means.mean(axis=0), [z[truth == k].mean(axis=0) for k in (0, 1)], atol=0.02
    )
    np.testing.assert_allclose(
        np.linalg.inv(draws.precisions).mean(axis=0)[0], np.cov(z[truth == 0].T), atol=0.12
    )


def test_weights_count_items():
    rng = np.random.default_rng(2)
    z = rng.normal(size=(100, 2))
    evidence, start = np.zeros((100, 1)), np.ones((100, 1))
    prior = prior_of(np.zeros((1, 2)))
    once, thrice = (
        gibbs(z, evidence, np.full(100, w), start, prior, np.random.default_rng(0),
              chains=4, warmup=5, size=300, thin=1)
        for w in (1.0, 3.0)
    )  # fmt: skip
    ratio = once.means.var(axis=0) / thrice.means.var(axis=0)
    np.testing.assert_allclose(ratio, 3, rtol=0.25)
