"""Two-class score mixtures: gradients, evidence, weights, components, and the order of classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from fewlabels.kernels.blocks import using_workers
from fewlabels.methods.spe.families import FAMILIES, Points
from fewlabels.methods.spe.mixture import BOUND, ClassDensity, ScoreData, ScoreMixture
from spe_priors import draw_density


def mixture_of(one="normal", zero="gamma", components=1, truncation="left") -> ScoreMixture:
    return ScoreMixture(
        ClassDensity(FAMILIES[one], components, truncation),
        ClassDensity(FAMILIES[zero], components, truncation),
    )


def data_of(x, y, weight=None, odds=None) -> ScoreData:
    weight = np.ones(len(x)) if weight is None else weight
    odds = np.zeros(len(x)) if odds is None else odds
    parts = [(Points(x[y == k]), weight[y == k]) for k in (1, 0, -1)]
    return ScoreData(*parts[0], *parts[1], *parts[2], odds[y == -1])


def some(n=60, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.random(n) * 0.97 + 0.02, rng.integers(-1, 2, n)
    return x, y, rng.random(n) + 0.5, rng.normal(size=n)


def around(mixture: ScoreMixture, size=3, spread=0.2, seed=0):
    middle = [mixture.positive.from_moments(0.6, 0.2), mixture.negative.from_moments(0.3, 0.15)]
    rng = np.random.default_rng(seed)
    return np.concatenate([*middle, [-0.4]]) + spread * rng.normal(size=(size, mixture.size))


@pytest.mark.parametrize("components", [1, 2])
@pytest.mark.parametrize("truncation", ["left", "unit"])
def test_gradient_is_the_derivative(components, truncation):
    names = [*FAMILIES]
    for one, zero in zip(names, names[1:] + names[:1], strict=True):
        mixture = mixture_of(one, zero, components, truncation)
        theta, data = around(mixture), data_of(*some())
        value, gradient = mixture.value_and_gradient(theta, data)
        np.testing.assert_allclose(value, mixture.log_posterior(theta, data), rtol=1e-12)
        for k in range(mixture.size):
            h = np.zeros(mixture.size)
            h[k] = 1e-4
            near, far = (
                mixture.log_posterior(theta + m * h, data)
                - mixture.log_posterior(theta - m * h, data)
                for m in (1, 2)
            )
            numeric = (8 * near - far) / 12e-4
            np.testing.assert_allclose(gradient[:, k], numeric, rtol=1e-6, atol=1e-5)


def test_evidence_tends_to_a_label():
    x, y, weight, _ = some()
    mixture = mixture_of()
    theta = around(mixture)
    known = mixture.log_likelihood(theta, data_of(x, y, weight))
    told = y.copy()
    told[y == 1] = -1
    odds = np.where(y == 1, 40.0, 0.0)
    # The evidence for a class counts against e^0 for the other: the scale leaves a constant.
    soft = mixture.log_likelihood(theta, data_of(x, told, weight, odds))
    constant = (weight * odds).sum()
    np.testing.assert_allclose(soft - constant, known, rtol=1e-9)


def test_workers_do_not_show():
    x, y, weight, odds = some(12_000)
    mixture = mixture_of()
    theta, data = around(mixture, 2000), data_of(x, y, weight, odds)
    found = []
    for count in (1, 3):
        with using_workers(count):
            found.append(mixture.log_posterior(theta, data))
    np.testing.assert_array_equal(*found)


def test_survival_with_components_is_the_mixed_tail():
    density = ClassDensity(FAMILIES["gamma"], 2)
    u = np.array([[-0.5, -1.5, -1.2, -2.0, 0.8]])
    area = quad(
        lambda x: float(np.exp(density.log_density(Points(np.array([x])), u))[0, 0]), 0.4, np.inf
    )[0]
    assert np.exp(density.log_survival(np.array([0.4]), u))[0, 0] == pytest.approx(area, abs=1e-8)
    assert density.size == 5


def test_two_equal_components_are_one():
    x = np.linspace(0.05, 1, 30)
    one, two = ClassDensity(FAMILIES["normal"]), ClassDensity(FAMILIES["normal"], 2)
    u = np.array([[0.4, -1.5]])
    twice = np.array([[0.4, -1.5, 0.4, -1.5, 0.7]])
    np.testing.assert_allclose(
        two.log_density(Points(x), twice), one.log_density(Points(x), u), rtol=1e-12
    )
    np.testing.assert_allclose(two.log_survival(x, twice), one.log_survival(x, u), rtol=1e-12)


@pytest.mark.parametrize("components", [1, 3])
def test_prior_draws_have_the_prior_density(components):
    """E[1 / prior density times another density] = 1: the density is normalised and the draws'."""
    density = ClassDensity(FAMILIES["log-normal"], components)
    u = draw_density(density, 40_000, np.random.default_rng(0))
    other = np.mean(u, axis=0), 0.5 * np.std(u, axis=0)
    log_other = (-0.5 * ((u - other[0]) / other[1]) ** 2 - np.log(other[1])).sum(axis=1)
    log_other -= 0.5 * density.size * np.log(2 * np.pi)
    ratio = np.exp(log_other - density.log_prior(u)[0])
    assert ratio.mean() == pytest.approx(1, abs=5 * ratio.std() / 200)


def test_beyond_the_bounds_the_posterior_is_zero():
    mixture, data = mixture_of(), data_of(*some())
    theta = around(mixture, 2)
    theta[1, 0] = BOUND + 1
    found = mixture.log_posterior(theta, data)
    assert np.isfinite(found[0])
    assert found[1] == -np.inf


def test_order_of_the_classes():
    mixture = mixture_of("normal", "normal")
    theta = np.array([[0.7, -2, 0.3, -2, 0], [0.3, -2, 0.7, -2, 0]], dtype=float)
    assert mixture.in_order(theta).tolist() == [True, False]
    assert mixture.positive.mean(theta[:, :2]) == pytest.approx([0.7, 0.3], abs=0.01)


def test_item_likelihood_adds_up():
    x, y, _, _ = some()
    mixture = mixture_of("gompertz", "student-t")
    theta = around(mixture)
    odds = np.where(y == 1, np.inf, np.where(y == 0, -np.inf, 0.0))
    each = mixture.item_log_likelihood(Points(x), theta, odds)
    np.testing.assert_allclose(
        each.sum(axis=0), mixture.log_likelihood(theta, data_of(x, y)), rtol=1e-11
    )


@pytest.mark.parametrize("prevalence", [(1.0, 1.0), (2.0, 7.0), (0.5, 3.0)])
def test_the_prior_of_the_prevalence_is_a_beta_density(prevalence):
    from scipy.stats import beta

    normal = ClassDensity(FAMILIES["normal"])
    mixture = ScoreMixture(normal, normal, prevalence)
    theta = np.column_stack([np.full((5, 4), 0.1), np.linspace(-3, 3, 5)])
    share = 1 / (1 + np.exp(-theta[:, -1]))
    flat = ScoreMixture(normal, normal).log_prior(theta)[0] - np.log(share * (1 - share))
    value, slope = mixture.log_prior(theta)
    expected = flat + beta.logpdf(share, *prevalence) + np.log(share * (1 - share))
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-12)
    step = 1e-6 * np.eye(5)[-1]
    numeric = (mixture.log_prior(theta + step)[0] - mixture.log_prior(theta - step)[0]) / 2e-6
    np.testing.assert_allclose(slope[:, -1], numeric, atol=1e-8)


def test_location_and_spread_may_be_given():
    for name in ("normal", "student-t", "gamma", "gumbel-left"):
        own = FAMILIES[name].prior_with((0.2, 0.1), (3.0, 30.0))
        assert own[0][1:3] == (0.2, 0.1)
        assert own[1][1:3] == (3.0, 30.0)
        assert own[0].link == FAMILIES[name].prior[0].link
        assert len(own) == FAMILIES[name].size
    assert FAMILIES["gompertz"].prior_with((0.2, 0.1), None) == FAMILIES["gompertz"].prior
