"""The permutation test's statistics by hand, sizes, bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import energy_distance, ks_2samp

import fewlabels as fl
from fewlabels.shifts.sampling_test import (
    Sizes,
    compared,
    distances,
    energy_distances,
    kolmogorov_smirnov,
    max_adjusted,
    mean_differences,
    p_value,
    random_subsets,
    standard_deviations,
)


def test_energy_distance_is_that_of_scipy_in_one_dimension() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    subsets = np.stack([rng.choice(40, 9, replace=False) for _ in range(5)])
    found = energy_distances(distances(x[:, None]), subsets)
    for subset, value in zip(subsets, found, strict=True):
        rest = np.setdiff1d(np.arange(40), subset)
        # Of distribution functions, scipy's; its square is ours halved.
        assert value == pytest.approx(energy_distance(x[subset], x[rest]) ** 2, abs=1e-9)


@pytest.mark.parametrize("size", [3, 30])  # distances gathered, and multiplied
def test_energy_distance_by_hand(size: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 3))
    subset = rng.choice(40, size, replace=False)
    inside, outside = x[subset], np.delete(x, subset, axis=0)
    by_hand = (
        2 * cdist(inside, outside).mean()
        - cdist(inside, inside).mean()
        - cdist(outside, outside).mean()
    )
    assert energy_distances(distances(x), subset[None])[0] == pytest.approx(by_hand, abs=1e-9)


def test_energy_distance_of_nothing_and_of_everything_is_zero() -> None:
    pairwise = distances(np.arange(4.0)[:, None])
    for size in (0, 4):
        subsets = random_subsets(np.random.default_rng(0), 4, size, 3)
        assert (energy_distances(pairwise, subsets) == 0).all()


def test_random_subsets_are_uniform() -> None:
    subsets = random_subsets(np.random.default_rng(0), 6, 2, 6000)
    assert (np.sort(subsets, axis=1)[:, 0] != np.sort(subsets, axis=1)[:, 1]).all()
    counts = np.unique(np.sort(subsets, axis=1), axis=0, return_counts=True)[1]
    assert len(counts) == 15
    # Each of the 15 pairs 400 times, within 4.5 standard deviations.
    assert np.abs(counts - 400).max() < 4.5 * np.sqrt(400)


def test_mean_differences_leave_out_what_is_missing() -> None:
    values = np.array([[1.0, np.nan], [2.0, np.nan], [4.0, 5.0], [np.nan, 3.0]])
    found = mean_differences(values, np.array([[0, 3], [2, 3]]))
    np.testing.assert_allclose(found[:, 0], [1 - 3, 4 - 1.5])
    assert found[0, 1] == pytest.approx(3 - 5)
    assert np.isnan(found[1, 1])  # nobody outside has a value
    np.testing.assert_allclose(standard_deviations(values)[1], 1.0)


def test_p_values_count_ties_and_never_vanish() -> None:
    assert p_value(2.0, np.array([1.0, 2.0, 3.0])) == 0.75
    assert p_value(9.0, np.zeros(99)) == 0.01
    adjusted = max_adjusted(np.array([9.0, np.nan]), np.ones((99, 2)))
    np.testing.assert_allclose(adjusted, [0.01, 1.0])


def test_kolmogorov_smirnov_is_that_of_scipy() -> None:
    rng = np.random.default_rng(2)
    x, inside = rng.normal(size=50).round(1), rng.random(50) < 0.3
    found = kolmogorov_smirnov(np.r_[x, np.nan], np.r_[inside, True])
    assert found == pytest.approx(ks_2samp(x[inside], x[~inside]).statistic)
    assert np.isnan(kolmogorov_smirnov(x, np.zeros(50, dtype=bool)))


def test_of_many_classifiers_those_with_most_predictions_are_looked_at() -> None:
    rng = np.random.default_rng(0)
    votes = rng.integers(-1, 2, size=(40, 300))
    votes[:, ::3] = np.maximum(votes[:, ::3], 0)
    items = fl.Predictions(votes=votes, labels=np.where(np.arange(40) < 20, votes[:, 0], -1))
    few, n_labeled = compared(items, Sizes(20, 20, 99, cells=40 * 2 * 100))
    assert n_labeled == 20
    assert few.models == items.models[::3]
