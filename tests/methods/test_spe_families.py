"""Families of score densities against scipy.stats, deep tails, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fewlabels.methods.spe.families import (
    FAMILIES,
    Points,
    Prior,
    log_gamma_tail,
    log_less,
    log_student_tail,
)
from spe_priors import draw

U = {
    "normal": (0.3, -1.6),
    "student-t": (0.3, -1.6, 1.4),
    "gamma": (-0.9, -1.6),
    "log-normal": (-1.0, -0.7),
    "gumbel-right": (0.3, -1.6),
    "gumbel-left": (0.6, -1.6),
    "gompertz": (-2.3, -1.2),
    "weibull-min": (0.7, -0.7),
    "frechet": (0.9, -1.2),
}


def frozen(name: str, u: tuple[float, ...]):
    """The same distribution in scipy, without truncation."""
    e = np.exp(u)
    return {
        "normal": lambda: stats.norm(u[0], e[1]),
        "student-t": lambda: stats.t(1 + e[-1], u[0], e[1]),
        "gamma": lambda: stats.gamma((e[0] / e[1]) ** 2, scale=e[1] ** 2 / e[0]),
        "log-normal": lambda: stats.lognorm(e[1], scale=e[0]),
        "gumbel-right": lambda: stats.gumbel_r(u[0], e[1]),
        "gumbel-left": lambda: stats.gumbel_l(u[0], e[1]),
        "gompertz": lambda: stats.gompertz(e[0], scale=e[1]),
        "weibull-min": lambda: stats.weibull_min(e[0], scale=e[1]),
        "frechet": lambda: stats.invweibull(e[0], scale=e[1]),
    }[name]()


@pytest.mark.parametrize("name", FAMILIES)
def test_density_and_survival_are_scipys(name):
    x = np.linspace(0.01, 1.5, 60)
    rng = np.random.default_rng(0)
    u = np.array(U[name]) + 0.3 * rng.normal(size=(8, len(U[name])))
    family = FAMILIES[name]
    density, tail = family.log_density(Points(x), u), family.log_tail(x, u)
    for d, row in enumerate(u):
        scipys = frozen(name, tuple(row))
        expected = scipys.logpdf(x)
        seen = np.isfinite(expected)  # scipy's underflows sooner
        np.testing.assert_allclose(density[seen, d], expected[seen], rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(tail[:, d], scipys.logsf(x), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("truncation", ["left", "unit"])
@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_are_the_derivatives(name, truncation):
    family = FAMILIES[name]
    rng = np.random.default_rng(1)
    points, weights = Points(rng.random(20) + 0.01), rng.random((20, 3))
    u = np.array(U[name]) + 0.2 * rng.normal(size=(3, len(U[name])))

    def value(at):
        mass = family.log_mass(at, truncation)
        return (weights * family.log_density(points, at)).sum(axis=0) - mass

    found = family.pull(points, u, weights) - family.log_mass_gradient(u, truncation)
    prior = family.log_prior(u)[1]
    for k in range(family.size):
        h = np.zeros(family.size)
        h[k] = 1e-4
        np.testing.assert_allclose(found[:, k], _derivative(value, u, h), rtol=1e-8, atol=1e-8)
        slope = _derivative(lambda at: family.log_prior(at)[0], u, h)
        np.testing.assert_allclose(prior[:, k], slope, rtol=1e-8, atol=1e-8)


def _derivative(function, u, h):
    near = function(u + h) - function(u - h)
    far = function(u + 2 * h) - function(u - 2 * h)
    return (8 * near - far) / (12 * h.max())


@pytest.mark.parametrize("truncation", ["left", "unit"])
@pytest.mark.parametrize("name", FAMILIES)
def test_hopeless_parameters_give_numbers(name, truncation):
    """Anywhere within the bounds densities are finite or -inf, tails are in [-inf, 0]."""
    rng = np.random.default_rng(2)
    family = FAMILIES[name]
    u = rng.uniform(-25, 25, size=(300, family.size))
    x = np.array([1e-6, 0.3, 1.0, 5.0])
    assert not np.isnan(family.log_density(Points(x), u) - family.log_mass(u, truncation)).any()
    tail = family.log_survival(x, u, truncation)
    assert not np.isnan(tail).any()
    assert (tail <= 0).all()


def test_deep_tails_do_not_underflow():
    # Mills' ratio, the power law of t, and x^(k-1) e^-x / Gamma(k) far out.
    normal = FAMILIES["normal"].log_tail(np.array([100.0]), np.array([[0.0, 0.0]]))[0, 0]
    assert normal == pytest.approx(-5000 - np.log(100 * np.sqrt(2 * np.pi)), rel=1e-6)
    far = log_student_tail(np.array([1e8, 1e9]), np.array([50.0, 50.0]))
    assert far[0] - far[1] == pytest.approx(50 * np.log(10), rel=1e-12)
    assert far[0] < np.log(1e-300)
    gamma = log_gamma_tail(np.array([1e5]), np.array([3.0]))[0]
    assert gamma == pytest.approx(2 * np.log(1e5) - 1e5 - np.log(2) + np.log1p(2e-5), rel=1e-12)
    right = FAMILIES["gumbel-right"].log_tail(np.array([1000.0]), np.array([[0.0, 0.0]]))
    assert right[0, 0] == pytest.approx(-1000)


@pytest.mark.parametrize("freedom", [2.0, 30.0, 1e3, 1e6])
def test_continued_fractions_meet_the_library(freedom):
    from fewlabels.methods.spe import families as spe_families

    z = np.array([10.0, 20.0, 37.0])
    expected = stats.t.logsf(z, freedom)
    found = spe_families._deep_student(z, np.full(3, freedom))
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    x = freedom + np.array([5.0, 20.0, 30.0]) * np.sqrt(freedom) + 1
    found = spe_families._deep_gamma(x, np.full(3, freedom))
    np.testing.assert_allclose(found, stats.gamma.logsf(x, freedom), rtol=1e-10)


def test_difference_of_logarithms():
    a, b = np.log([0.5, 0.5, 0.5]), np.log([0.1, 0.5 - 1e-12, 1e-300])
    np.testing.assert_allclose(np.exp(log_less(a, b)), [0.4, 1e-12, 0.5], rtol=1e-3)
    assert log_less(np.zeros(1), np.zeros(1))[0] == -np.inf


@pytest.mark.parametrize(
    "prior",
    [
        Prior("normal", 0.5, 0.5),
        Prior("gamma", 2, 8, "log"),
        Prior("gamma", 2, 0.1, "one-plus"),
        Prior("normal", 0.5, 0.5, "log"),
    ],
)
def test_prior_draws_have_the_prior_density(prior):
    u = draw(prior, 20_000, np.random.default_rng(0))
    grid = np.linspace(-12, 6, 20_001)
    density = np.exp(prior.log_density(grid)[0])
    cumulative = np.cumsum(density) / density.sum()
    ranks = np.interp(u, grid, cumulative)
    assert stats.kstest(ranks, "uniform").pvalue > 0.01


@pytest.mark.parametrize("name", FAMILIES)
def test_moments_are_about_those_asked_for(name):
    u = FAMILIES[name].from_moments(0.5, 0.12)
    scipys = frozen(name, tuple(u))
    assert scipys.mean() == pytest.approx(0.5, abs=0.05)
    assert scipys.std() == pytest.approx(0.12, rel=0.25)
