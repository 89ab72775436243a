"""Sequential Monte Carlo where the posterior and the evidence have a closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fewlabels.kernels.importance import Cloud, sequential_monte_carlo

RUNS = 12


class Regression:
    """y = X u + noise with u ~ N(0, I): everything is normal."""

    def __init__(self, dimension: int, size: int, noise: float, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(size, dimension))
        self.noise = noise
        self.y = self.X @ rng.normal(size=dimension) + noise * rng.normal(size=size)
        self.covariance = np.linalg.inv(np.eye(dimension) + self.X.T @ self.X / noise**2)
        self.mean = self.covariance @ self.X.T @ self.y / noise**2
        marginal = self.X @ self.X.T + noise**2 * np.eye(size)
        self.log_evidence = stats.multivariate_normal(np.zeros(size), marginal).logpdf(self.y)

    def log_likelihood(self, points: np.ndarray) -> np.ndarray:
        return stats.norm(points @ self.X.T, self.noise).logpdf(self.y).sum(axis=1)

    def clouds(self, particles: int) -> list[Cloud]:
        return [
            from_normal(self.log_likelihood, self.X.shape[1], [1, run], particles)
            for run in range(RUNS)
        ]


def from_normal(log_likelihood, dimension: int, seed, particles: int = 800) -> Cloud:
    """Draws by a likelihood, from N(0, I)."""
    rng = np.random.default_rng(seed)
    return sequential_monte_carlo(log_likelihood, rng.standard_normal((particles, dimension)), rng)


def off(values, truth) -> np.ndarray:
    """How far the mean over runs is from the truth, in standard errors."""
    values = np.asarray(values, dtype=float)
    return (values.mean(axis=0) - truth) / (values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def far(comparisons: int) -> float:
    """What t exceeds once in ten thousand, in any of so many comparisons."""
    return float(stats.t(RUNS - 1).isf(0.5e-4 / comparisons))


@pytest.mark.product
@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize(("size", "noise"), [(4, 1.5), (40, 0.3)], ids=["weak", "strong"])
def test_linear_regression(dimension, size, noise):
    exact = Regression(dimension, size, noise)
    clouds = exact.clouds(particles=600)
    # The evidence itself is unbiased, its logarithm is not.
    ratio = [np.exp(cloud.log_evidence - exact.log_evidence) for cloud in clouds]
    assert abs(off(ratio, 1.0)) < far(1)
    assert np.std(ratio) < 0.4
    means = [cloud.points.mean(axis=0) for cloud in clouds]
    assert np.abs(off(means, exact.mean)).max() < far(dimension)
    corner = np.tril_indices(dimension)
    seconds = [((c.points - exact.mean).T @ (c.points - exact.mean) / 600)[corner] for c in clouds]
    assert np.abs(off(seconds, exact.covariance[corner])).max() < far(len(corner[0]))
    # Estimates are as sharp as some 100 independent draws would make them, or sharper.
    sharp = np.sqrt(np.diag(exact.covariance) / 100)
    assert (np.std(means, axis=0) < sharp).all()


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_normal_likelihood(dimension):
    """Of u itself, seen with unlike errors far from the prior."""
    seen = np.linspace(1.5, 3.0, dimension)
    sd = np.geomspace(0.1, 1.0, dimension)
    clouds = [
        from_normal(
            lambda points: stats.norm(seen, sd).logpdf(points).sum(axis=1), dimension, [2, run]
        )
        for run in range(RUNS)
    ]
    log_evidence = stats.norm(0, np.sqrt(1 + sd**2)).logpdf(seen).sum()
    assert abs(off([np.exp(c.log_evidence - log_evidence) for c in clouds], 1.0)) < far(1)
    assert np.abs(off([c.points.mean(axis=0) for c in clouds], seen / (1 + sd**2))).max() < far(
        dimension
    )
    # Tails too: the share beyond the posterior's upper tenth.
    tenth = seen / (1 + sd**2) + stats.norm.isf(0.1) * sd / np.sqrt(1 + sd**2)
    share = [(c.points > tenth).mean(axis=0) for c in clouds]
    assert np.abs(off(share, 0.1)).max() < far(dimension)


def test_two_modes_keep_their_weights():
    """Which a chain from one starting point would not find."""

    def log_likelihood(points):
        x = points[:, 0]
        return np.logaddexp(
            np.log(0.25) + stats.norm(-2, 0.2).logpdf(x),
            np.log(0.75) + stats.norm(2, 0.2).logpdf(x),
        )

    share = [(from_normal(log_likelihood, 1, [3, run]).points > 0).mean() for run in range(RUNS)]
    assert abs(off(share, 0.75)) < far(1)


def test_a_constant_factor_moves_the_evidence_alone():
    exact = Regression(2, 10, 0.5)
    plain, more = (
        from_normal(lambda u, shift=shift: exact.log_likelihood(u) + shift, 2, [4])
        for shift in (0.0, -1024.0)
    )
    np.testing.assert_allclose(more.points, plain.points, atol=1e-9)
    assert more.log_evidence == pytest.approx(plain.log_evidence - 1024.0, abs=1e-8)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (2.0, 5.0)])
def test_another_prior_with_an_end(low, high):
    """A uniform prior on an interval, beyond which its density is nothing."""

    def log_prior(points):
        inside = (points[:, 0] >= low) & (points[:, 0] <= high)
        return np.where(inside, 0.0, -np.inf)

    def log_likelihood(points):
        return stats.norm(low, 0.1).logpdf(points[:, 0])

    clouds = []
    for run in range(RUNS):
        rng = np.random.default_rng([5, run])
        start = rng.uniform(low, high, (800, 1))
        clouds.append(sequential_monte_carlo(log_likelihood, start, rng, log_prior=log_prior))
    evidence = 0.5 / (high - low)
    assert abs(off([np.exp(c.log_evidence) / evidence for c in clouds], 1.0)) < far(1)
    mean = 0.1 * np.sqrt(2 / np.pi)
    assert abs(off([c.points.mean() - low for c in clouds], mean)) < far(1)
    assert all(c.points.min() >= low for c in clouds)
