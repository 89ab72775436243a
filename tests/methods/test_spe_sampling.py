"""Importance sampling, Pareto k and Hamiltonian Monte Carlo where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fewlabels.kernels.hmc import (
    bulk_size,
    effective_size,
    hamiltonian_monte_carlo,
    rank_r_hat,
    split_r_hat,
    tail_size,
)
from fewlabels.kernels.importance import AdaptivePool, ImportanceSample, Proposal, pareto_shape
from fewlabels.methods.spe.sampling import climb, laplace_root, slice_scales, summit

MEAN = np.array([1.0, -2.0, 0.5])
ROOT = np.array([[1.0, 0, 0], [0.8, 0.5, 0], [-0.3, 0.2, 2.0]])
COVARIANCE = ROOT @ ROOT.T
PRECISION = np.linalg.inv(COVARIANCE)


def normal(theta):
    away = theta - MEAN
    return -0.5 * np.einsum("ni,ij,nj->n", away, PRECISION, away)


def with_gradient(theta):
    return normal(theta), -(theta - MEAN) @ PRECISION


def importance(proposal, size=20_000, seed=0):
    return ImportanceSample.draw(normal, proposal, size, np.random.default_rng(seed))


@pytest.mark.parametrize("freedom", [5.0, np.inf])
def test_proposals_have_their_density(freedom):
    proposal = Proposal.of(MEAN, ROOT, freedom)
    theta = proposal.draw(50, np.random.default_rng(0))
    if np.isfinite(freedom):
        expected = stats.multivariate_t(MEAN, COVARIANCE, freedom).logpdf(theta)
    else:
        expected = stats.multivariate_normal(MEAN, COVARIANCE).logpdf(theta)
    np.testing.assert_allclose(proposal.log_density(theta), expected, rtol=1e-10)


def test_mixture_proposals_have_their_density():
    centres, roots = np.stack([MEAN, -MEAN]), np.stack([ROOT, 0.5 * ROOT])
    proposal = Proposal(centres, roots, np.array([1.0, 3.0]), 5.0)
    theta = proposal.draw(4000, np.random.default_rng(0))
    parts = [
        0.25 * stats.multivariate_t(MEAN, COVARIANCE, 5).pdf(theta),
        0.75 * stats.multivariate_t(-MEAN, 0.25 * COVARIANCE, 5).pdf(theta),
    ]
    np.testing.assert_allclose(proposal.log_density(theta), np.log(sum(parts)), rtol=1e-10)
    np.testing.assert_allclose(theta.mean(axis=0), -0.5 * MEAN, atol=0.12)


def test_moments_and_evidence_of_a_normal():
    found = importance(Proposal.of(MEAN + 0.3, ROOT, 5.0))
    mean, covariance = found.moments()
    np.testing.assert_allclose(mean, MEAN, atol=0.06)
    np.testing.assert_allclose(covariance, COVARIANCE, atol=0.15)
    exact = 0.5 * np.linalg.slogdet(2 * np.pi * COVARIANCE)[1]
    assert found.log_evidence == pytest.approx(exact, abs=0.02)
    assert found.pareto_k < 0.5
    assert 0.6 < found.effective_size / 20_000 < 1
    drawn = found.points[found.resample(5000, np.random.default_rng(1))]
    np.testing.assert_allclose(drawn.mean(axis=0), MEAN, atol=0.1)


def test_a_proposal_that_is_too_narrow_shows():
    assert importance(Proposal.of(MEAN, 0.4 * ROOT)).pareto_k > 0.7
    assert importance(Proposal.of(MEAN, ROOT)).pareto_k < 0.1


def test_a_target_without_density_is_no_error():
    nowhere = ImportanceSample(np.zeros((100, 2)), np.full(100, -np.inf))
    assert nowhere.effective_size == 0
    assert nowhere.log_evidence == -np.inf
    assert nowhere.pareto_k == np.inf


@pytest.mark.parametrize("scale", [0.5, 0.9, 1.3, 2.0, 3.0])
@pytest.mark.parametrize("size", [50, 2000])
@pytest.mark.filterwarnings("ignore")
def test_pareto_shape_is_arvizs(scale, size):
    arviz = pytest.importorskip("arviz")
    x = np.random.default_rng(0).standard_normal(size)
    log_weights = 0.5 * x**2 * (1 - 1 / scale**2)
    expected = float(arviz.psislw(log_weights)[1])
    assert pareto_shape(log_weights) == pytest.approx(expected, abs=1e-9)


def test_pooled_points_know_all_proposals():
    pool = AdaptivePool(normal)
    rng = np.random.default_rng(0)
    for proposal in (Proposal.of(MEAN, 0.3 * ROOT, 5.0), Proposal.of(MEAN, 1.2 * ROOT, 5.0)):
        pool.add(proposal, proposal.draw(5000, rng))
    found = pool.sample
    assert found.pareto_k < 0.5
    exact = 0.5 * np.linalg.slogdet(2 * np.pi * COVARIANCE)[1]
    assert found.log_evidence == pytest.approx(exact, abs=0.05)


def test_slices_of_a_normal_are_its_conditional_deviations():
    np.testing.assert_allclose(
        slice_scales(normal, MEAN), 1 / np.sqrt(np.diag(PRECISION)), rtol=1e-9
    )


def test_laplace_root_of_a_normal_is_its_covariance():
    root = laplace_root(with_gradient, MEAN, floor=1e-3)
    np.testing.assert_allclose(root @ root.T, COVARIANCE, rtol=1e-5, atol=1e-6)


def test_searches_find_the_mode():
    starts = np.random.default_rng(0).normal(size=(6, 3)) * 3
    points, values = climb(with_gradient, starts, bound=25, iterations=80)
    np.testing.assert_allclose(values, 0, atol=1e-3)
    np.testing.assert_allclose(points, np.tile(MEAN, (6, 1)), atol=0.1)
    found = summit(with_gradient, starts[0], bound=25)
    np.testing.assert_allclose(found.point, MEAN, atol=1e-4)
    assert found.converged
    assert found.value >= values.max() - 1e-9
    edge = summit(with_gradient, starts[0], bound=1.5)
    assert edge.point[1] == -1.5


def test_chains_draw_a_normal():
    rng = np.random.default_rng(0)
    start = MEAN + rng.normal(size=(32, 3)) @ ROOT.T
    chains = hamiltonian_monte_carlo(with_gradient, start, np.diag([1, 0.5, 2]), rng, size=300)
    draws = chains.draws.reshape(-1, 3)
    error = draws.std(axis=0) / np.sqrt(chains.effective_size)
    assert (np.abs(draws.mean(axis=0) - MEAN) < 4 * error).all()
    np.testing.assert_allclose(np.cov(draws.T), COVARIANCE, atol=0.35)
    assert chains.r_hat.max() < 1.03
    assert 0.6 < chains.acceptance < 0.99


def test_chains_stay_within_the_support():
    def half(theta):
        value, slope = with_gradient(theta)
        return np.where(theta[:, 0] > 1, value, -np.inf), slope

    rng = np.random.default_rng(1)
    start = np.tile(MEAN + np.array([0.5, 0.4, 0.0]), (16, 1))
    chains = hamiltonian_monte_carlo(half, start, ROOT, rng, size=400)
    assert (chains.draws[:, :, 0] > 1).all()
    # Half a normal: its mean is sqrt(2/pi) deviations off.
    assert chains.draws[:, :, 0].mean() == pytest.approx(1 + np.sqrt(2 / np.pi), abs=0.08)


@pytest.mark.filterwarnings("ignore")
def test_r_hat_and_effective_size_are_arvizs():
    arviz = pytest.importorskip("arviz")
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(400, 4, 2))
    draws = np.empty_like(noise)
    draws[0] = noise[0]
    for t in range(1, 400):
        draws[t] = 0.7 * draws[t - 1] + noise[t]
    data = arviz.convert_to_dataset(draws.transpose(1, 0, 2))
    np.testing.assert_allclose(split_r_hat(draws), arviz.rhat(data, method="split").x, rtol=1e-6)
    np.testing.assert_allclose(effective_size(draws), arviz.ess(data, method="mean").x)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", [40, 201, 400])
def test_rank_normalised_r_hat_and_sizes_are_arvizs(size):
    arviz = pytest.importorskip("arviz")
    rng = np.random.default_rng(size)
    memory = np.linspace(-0.5, 0.98, 12)
    draws = np.empty((size, 4, 12))
    now = rng.normal(size=(4, 12))
    for t in range(size):
        now = memory * now + rng.normal(size=(4, 12)) * np.sqrt(1 - memory**2)
        draws[t] = now
    draws[:, 0, 1] += 1.0  # a chain elsewhere
    draws[:, 0, 2] *= 3.0  # or wider, which only distances from the median show
    draws[:, :, 3] = rng.random((size, 4)) < 0.3  # ties
    draws[:, :, 4] = np.exp(3 * draws[:, :, 4])
    data = arviz.convert_to_dataset(draws.transpose(1, 0, 2))
    np.testing.assert_allclose(rank_r_hat(draws), arviz.rhat(data).x, rtol=1e-3)
    np.testing.assert_allclose(bulk_size(draws), arviz.ess(data, method="bulk").x, rtol=1e-6)
    np.testing.assert_allclose(tail_size(draws), arviz.ess(data, method="tail").x, rtol=1e-6)


def test_chains_that_do_not_move_do_not_agree():
    stuck = np.broadcast_to(np.arange(4.0)[None, :, None], (50, 4, 1))
    assert split_r_hat(stuck)[0] == np.inf
    assert split_r_hat(np.zeros((50, 4, 1)))[0] == 1
