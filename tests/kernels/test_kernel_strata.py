"""Means of labels drawn by stratum, their variances and allocations, against values by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fewlabels.kernels.strata import (
    allocation,
    stratified_mean,
    variance_strata,
    whole_numbers,
)


def test_mean_variance_and_design_effect_by_hand():
    """Two strata of shares .8 and .2: 1 1 0 1 and 0 1.

    Means 3/4 and 1/2; s^2 = 1/4 and 1/2; variance .64 (1/4) / 4 + .04 (1/2) / 2 = .05. The mean of
    squares is .8 (3/4) + .2 (1/2) = .7, so S^2 = .7 - .49 + .05 = .26, over 6 labels .0433.
    """
    values = np.array([1.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    strata = np.array([0, 0, 0, 0, 1, 1])
    found = stratified_mean(values, strata, np.array([0.8, 0.2]))
    assert found.mean == pytest.approx(0.7, abs=1e-12)
    assert found.variance == pytest.approx(0.05, abs=1e-12)
    assert found.design_effect == pytest.approx(0.05 / (0.26 / 6), abs=1e-12)


def test_proportional_strata_that_differ_in_nothing_have_no_effect():
    """Each stratum's variance is n / (n - 1) of that with its mean: of many labels 1."""
    rng = np.random.default_rng(0)
    values, strata = rng.normal(size=40_000), np.repeat([0, 1], 20_000)
    found = stratified_mean(values, strata, np.array([0.5, 0.5]))
    assert found.design_effect == pytest.approx(1, abs=0.01)
    assert found.variance == pytest.approx(values.var(ddof=1) / 40_000, rel=0.01)


def test_a_stratum_without_labels_has_no_share():
    values, strata = np.array([1.0, 0.0, 1.0, 1.0]), np.array([0, 0, 2, 2])
    found = stratified_mean(values, strata, np.array([0.3, 0.4, 0.3]))
    assert found.mean == pytest.approx(0.75)


def test_strata_of_one_label_are_joined():
    assert variance_strata(np.array([0, 0, 1, 2, 3, 3, 3])).tolist() == [0, 0, 1, 1, 3, 3, 3]
    assert variance_strata(np.array([0, 0, 1, 3, 3, 3])).tolist() == [0, 0, 0, 3, 3, 3]
    assert variance_strata(np.array([0, 0, 1, 1])).tolist() == [0, 0, 1, 1]
    assert variance_strata(np.array([4])).tolist() == [4]


def test_the_cities_of_cochran():
    """Table 5.1: 16 and 48 cities, S^2 53,843 and 5,581, 24 of them: 12.21 and 11.79."""
    sizes = np.array([16.0, 48.0])
    effort = sizes * np.sqrt([53_843, 5_581])
    found = allocation(effort, 24, np.zeros(2), sizes)
    assert found == pytest.approx(24 * effort / effort.sum(), abs=1e-8)
    assert np.round(found, 2).tolist() == [12.21, 11.79]
    assert whole_numbers(found).tolist() == [12, 12]
    # Of 44 the first would need 22.4 of its 16 cities: all of these, and 28 of the others.
    assert allocation(effort, 44, np.zeros(2), sizes) == pytest.approx([16, 28], abs=1e-8)
    # With 18 of the second labeled already none is added there.
    assert allocation(effort, 24, np.array([0.0, 18.0]), sizes) == pytest.approx([6, 18])
    assert allocation(effort, 99, np.zeros(2), sizes) == pytest.approx(sizes)


@pytest.mark.parametrize("seed", range(5))
def test_no_other_allocation_has_less_variance(seed):
    rng = np.random.default_rng(seed)
    sizes, spread = rng.integers(50, 500, 4).astype(float), rng.random(4)
    best = allocation(sizes * spread, 40, np.zeros(4), sizes)
    assert best.sum() == pytest.approx(40)

    def variance(n):
        return (sizes**2 * spread**2 / n).sum()

    for _ in range(50):
        other = np.maximum(best + rng.normal(0, 1, 4), 0.5)
        assert variance(other * 40 / other.sum()) >= variance(best) - 1e-9


def test_strata_without_spread_are_filled_only_where_they_must():
    found = allocation(np.array([0.0, 30.0]), 10, np.array([2.0, 2.0]), np.array([50.0, 50.0]))
    assert found == pytest.approx([2, 8])
    assert allocation(np.zeros(2), 10, np.zeros(2), np.array([4.0, 50.0])).sum() == pytest.approx(
        10
    )
