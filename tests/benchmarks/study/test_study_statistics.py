"""Interval score, standard errors and ratios against direct formulas."""

from __future__ import annotations

import numpy as np
import pytest

from study.statistics import coverage, interval_score, mean, over_clusters, ratio


def _score(low: float, high: float, truth: float, level: float) -> float:
    alpha = 1 - level
    score = high - low
    if truth < low:
        score += 2 / alpha * (low - truth)
    if truth > high:
        score += 2 / alpha * (truth - high)
    return score


def test_the_interval_score_is_the_formula() -> None:
    rng = np.random.default_rng(0)
    ends = np.sort(rng.random((50, 2)), axis=1)
    truth = rng.random(50)
    for level in (0.5, 0.9):
        wanted = [_score(*pair, t, level) for pair, t in zip(ends.tolist(), truth, strict=True)]
        np.testing.assert_allclose(interval_score(*ends.T, truth, level), wanted)


def test_the_interval_score_is_proper() -> None:
    """Of all intervals the central quantiles have the lowest expected score."""
    truth = np.random.default_rng(1).normal(size=20_000)
    best = np.quantile(truth, [0.05, 0.95])
    mean_score = interval_score(*best, truth, 0.9).mean()
    for shift in (-0.3, 0.3):
        assert interval_score(best[0] + shift, best[1] + shift, truth, 0.9).mean() > mean_score
        assert interval_score(best[0] - shift, best[1] + shift, truth, 0.9).mean() > mean_score


def test_the_mean_leaves_out_runs_without_a_value() -> None:
    x = np.array([1.0, 2.0, 4.0, 9.0])
    found = mean(np.append(x, np.nan))
    assert found.value == pytest.approx(4.0)
    assert found.se == pytest.approx(x.std(ddof=1) / 2)
    assert found.n == 4
    assert mean(np.array([np.nan])).n == 0


def test_the_standard_error_of_a_ratio_is_that_of_the_delta_method() -> None:
    """By the covariance: var(a) - 2 r cov(a, b) + r^2 var(b), over mean(b)^2 R."""
    rng = np.random.default_rng(2)
    b = rng.gamma(3, size=40)
    a = 0.7 * b + rng.gamma(1, size=40)
    r = a.mean() / b.mean()
    s = np.cov(a, b)
    variance = s[0, 0] - 2 * r * s[0, 1] + r**2 * s[1, 1]
    found = ratio(np.append(a, np.nan), np.append(b, 1.0))
    assert found.value == pytest.approx(r)
    assert found.se == pytest.approx(np.sqrt(variance / 40) / b.mean())
    assert found.n == 40


def test_the_standard_error_of_a_ratio_is_that_of_its_repetitions() -> None:
    rng = np.random.default_rng(3)
    repeated = []
    for _ in range(2000):
        b = rng.gamma(3, size=100)
        repeated.append(ratio(b * rng.gamma(5, 0.2, size=100), b))
    spread = np.std([r.value for r in repeated])
    assert np.mean([r.se for r in repeated]) == pytest.approx(spread, rel=0.1)


def test_pairing_takes_out_what_is_common() -> None:
    rng = np.random.default_rng(4)
    b = rng.gamma(3, size=200)
    assert ratio(0.8 * b, b).se == pytest.approx(0, abs=1e-12)
    assert ratio(0.8 * b, rng.permutation(b)).se > 0.02


def test_ratios_of_nothing() -> None:
    zero = np.zeros(3)
    assert ratio(zero, zero).value == 1
    assert ratio(zero + 1, zero).value == np.inf
    assert ratio(np.array([np.nan]), np.ones(1)).n == 0


def test_agreement_of_all_runs_is_no_certainty() -> None:
    few, many = coverage(np.ones(5)), coverage(np.ones(200))
    assert few.value == many.value == 1
    assert few.value - 2 * few.se < 0.94 < many.value - 2 * many.se
    mixed = (np.arange(1000) < 900).astype(float)
    assert coverage(mixed).se == pytest.approx(np.sqrt(0.9 * 0.1 / 1000), rel=0.02)


def test_cells_of_one_set_fall_together() -> None:
    """Cells that are all alike within a set have the standard error of a mean over the sets."""
    sets = np.repeat(np.arange(40), 10)
    x = (sets % 2).astype(float)
    found = over_clusters(x.tolist(), [f"s{k}" for k in sets], lambda v: float(v.mean()))
    assert found.value == 0.5
    assert found.se == pytest.approx(0.5 / np.sqrt(40), rel=0.15)
    assert found.n == 400
