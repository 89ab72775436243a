"""Intervals from draws: quantiles of those that are defined, in bounds, around the value."""

from __future__ import annotations

import numpy as np

from fewlabels.comparison.draws import paired_interval
from fewlabels.kernels.interval_draws import ends, interval

DRAWS = np.random.default_rng(0).normal(size=(400, 3))


def test_columns_are_as_each_alone_and_undefined_draws_are_left_out():
    gaps = DRAWS.copy()
    gaps[::7, 1] = np.nan
    gaps[:, 2] = np.nan
    low, high = ends(gaps, 0.9)
    for column, draws in enumerate((DRAWS[:, 0], gaps[~np.isnan(gaps[:, 1]), 1])):
        np.testing.assert_allclose((low[column], high[column]), np.quantile(draws, [0.05, 0.95]))
    assert np.isnan((low[2], high[2])).all()
    assert np.isnan(ends(DRAWS, float("nan"))).all()


def test_an_infinite_loss_counts_and_an_infinite_difference_says_nothing():
    losses = DRAWS[:, 0].copy()
    losses[:100] = np.inf
    assert ends(losses, 0.9)[1] == np.inf
    found = paired_interval(0.0, losses, 0.9)
    np.testing.assert_allclose(found[1:], np.quantile(losses[100:], [0.05, 0.95]))


def test_bounds_and_the_value():
    assert interval(5.0, DRAWS[:, 0], 0.9)[1] == 5.0
    low, high = interval(0.0, DRAWS[:, 0], 0.9, (-0.5, 0.5))
    assert (low, high) == (-0.5, 0.5)
    assert np.isnan(interval(np.nan, DRAWS[:, 0], 0.9)).all()
