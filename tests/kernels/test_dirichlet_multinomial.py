"""The Dirichlet-multinomial against scipy, exact sums, finite differences and golden values."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, gammaln

from fewlabels.kernels import dirichlet_multinomial as dm


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def usual(y, p, log_alpha0):
    """The textbook form, which is fine for moderate concentrations."""
    a, n = np.exp(log_alpha0), y.sum(axis=1)
    ap = a[:, None] * p
    value = gammaln(a) - gammaln(a + n) + (gammaln(ap + y) - gammaln(ap)).sum(axis=1)
    rise = (ap * (digamma(ap + y) - digamma(ap))).sum(axis=1)
    return value, rise + a * (digamma(a) - digamma(a + n))


def test_golden(golden_folder):
    cases = json.loads((golden_folder / "golden_lh_calib.json").read_text())["H_dirmult"]
    for case in cases:
        y, p = np.array([case["y"]], float), np.array([case["f"]])
        value = dm.log_likelihood(y, p, np.log([case["alpha0"]]))
        np.testing.assert_allclose(-value, case["nll_nocoef"], rtol=1e-12)
        coefficient = gammaln(y.sum() + 1) - gammaln(y + 1).sum()
        np.testing.assert_allclose(-value - coefficient, case["nll"], rtol=1e-12)


@pytest.mark.parametrize("n", [2, 5, 31, 32, 33, 34, 60, 1000, 100_000])
def test_value_and_derivatives(rng, n):
    p = rng.dirichlet(np.ones(4), 60)
    y = rng.multinomial(n, p).astype(float)
    eta = rng.normal(0, 2, 60)
    found = dm.derivatives(dm.terms(y, p), eta)
    value, slope = usual(y, p, eta)
    np.testing.assert_allclose(found.value, value, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.slope, slope, rtol=1e-8, atol=1e-9 * n)
    h = 1e-4
    near = [dm.derivatives(dm.terms(y, p), eta + s * h).slope for s in (-1, 1)]
    np.testing.assert_allclose(
        found.curvature, (near[1] - near[0]) / (2 * h), rtol=1e-5, atol=1e-7 * n
    )


def test_it_is_scipys_distribution(rng):
    p, y = np.array([0.2, 0.5, 0.3]), np.array([2, 1, 4])
    coefficient = gammaln(y.sum() + 1) - gammaln(y + 1).sum()
    expected = stats.dirichlet_multinomial(3.0 * p, y.sum()).logpmf(y) - coefficient
    found = dm.log_likelihood(y[None].astype(float), p[None], np.log([3.0]))
    assert found[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("log_alpha0", [-250.0, -80.0, -20.0, 20.0, 40.0, 80.0, 250.0, 1e6, -1e6])
@pytest.mark.parametrize("counts", [(1, 1), (2, 0), (3, 2), (40, 3), (0, 300)])
def test_extreme_concentrations_against_exact_sums(log_alpha0, counts):
    """Limits known by hand: slopes of alpha0^(m-1) at 0, and of n^2 / alpha0 at infinity."""
    p, y = np.array([[0.3, 0.7]]), np.array([counts], float)
    found = dm.derivatives(dm.terms(y, p), np.array([log_alpha0]))
    alpha0 = Fraction(float(dm.concentration_of(np.array(log_alpha0))))
    slope = Fraction(0)
    for c, f in zip((*counts, sum(counts)), (0.3, 0.7, 1.0), strict=True):
        sign = -1 if f == 1.0 else 1
        slope -= sign * sum(j / (alpha0 * Fraction(f) + j) for j in range(1, c))
    assert found.slope[0] == pytest.approx(float(slope), rel=1e-9, abs=1e-12)
    if log_alpha0 >= 40:
        assert found.value[0] == pytest.approx(y[0] @ np.log(p[0]), rel=1e-12)
        assert abs(found.curvature[0]) < 1e-9
    if log_alpha0 <= -20:
        assert found.slope[0] == pytest.approx((y > 0).sum() - 1, abs=1e-6)
    assert np.isfinite(found).all()


def test_up_to_one_label_says_nothing_of_the_concentration():
    y = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 1]], float)
    p = np.array([[0.2, 0.3, 0.5]] * 3)
    found = dm.derivatives(dm.terms(y, p), np.array([-3.0, 2.0, 9.0]))
    np.testing.assert_allclose(found.value, [0.0, math.log(0.2), math.log(0.5)])
    assert not found.slope.any()
    assert not found.curvature.any()


def test_probabilities_of_zero_with_votes_are_finite():
    y, p = np.array([[2.0, 1.0]]), np.array([[0.0, 1.0]])
    found = dm.derivatives(dm.terms(y, p), np.zeros(1))
    assert np.isfinite(found).all()
    assert found.value[0] < -20


def test_probabilities_of_all_counts_sum_to_one():
    p, n = np.array([0.1, 0.6, 0.3]), 6
    y = np.array([(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)], float)
    for eta in (-5.0, 0.0, 7.0):
        value = dm.log_likelihood(y, np.tile(p, (len(y), 1)), np.full(len(y), eta))
        log_coefficient = gammaln(n + 1) - gammaln(y + 1).sum(axis=1)
        assert np.exp(value + log_coefficient).sum() == pytest.approx(1, abs=1e-12)


def test_disagreement_and_posterior_mean():
    p, a = np.array([[0.5, 0.3, 0.2]]), np.array([3.0])
    assert dm.disagreement(p)[0] == pytest.approx(0.62)
    assert dm.disagreement(p, a)[0] == pytest.approx(0.62 * 3 / 4)
    found = dm.posterior_mean(p, np.array([[1.0, 0, 1]]), a)
    np.testing.assert_allclose(found, [[2.5 / 5, 0.9 / 5, 1.6 / 5]])


def test_theorem_1_optima_by_moments(rng):
    """Q | f ~ Dir(a0 f): both risks of an alpha0 are least at a0, and equal the raw ones at 1."""
    p, a0 = np.array([0.5, 0.3, 0.2]), 3.0
    alpha = np.linspace(0.05, 20, 39_901)
    truth = dm.disagreement(p, np.array(a0))
    of_disagreement = (dm.disagreement(np.tile(p, (len(alpha), 1)), alpha) - truth) ** 2
    # Posterior after one label Y: Q - E[Q | Y] = (Q - f) - c (Y - f), c = 1 / (1 + alpha).
    c, v_label = 1 / (1 + alpha), 1 - (p**2).sum()
    v_q = v_label / (1 + a0)
    of_posterior = v_q - 2 * c * v_q + c**2 * v_label
    for risk, raw in (
        (of_disagreement, (dm.disagreement(p) - truth) ** 2),
        (of_posterior, v_q),
    ):
        assert alpha[risk.argmin()] == pytest.approx(3.0, abs=1e-3)
        assert alpha[np.flatnonzero(risk < raw)[0]] == pytest.approx(1.0, abs=2e-3)
    draws = rng.dirichlet(a0 * p, 200_000)
    assert truth == pytest.approx((1 - (draws**2).sum(axis=1)).mean(), abs=3e-3)
