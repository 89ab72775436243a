"""The benchmark of `compare`: classifiers as far apart as they are said to be, and the test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import compare_power as recipe
from runs import read_lines


@pytest.mark.parametrize("kind", recipe.KINDS)
@pytest.mark.parametrize("points", recipe.POINTS)
def test_the_first_two_differ_by_so_many_points(kind, points):
    sample = recipe.draw(kind, points, 100_000, np.random.default_rng(0))
    served = sample.predictions(0).select_models(("m1", "m2"))
    right = (served.hard == sample.truth[:, None]).mean(axis=0)
    # Where a classifier favours a class too much both of the first two stay as they were.
    assert right[0] - right[1] == pytest.approx(points / 100, abs=0.004)
    assert ("m1" in sample.votes) == (kind in ("votes", "mixed"))


def test_mcnemar_is_the_sign_test_of_items_on_which_one_is_right():
    first, second = np.array([1, 1, 1, 1, 0, 1, 0]) > 0, np.array([0, 0, 0, 0, 1, 1, 0]) > 0
    assert recipe.mcnemar(first, second) == pytest.approx(2 * binom.cdf(1, 5, 0.5))
    assert recipe.mcnemar(first, first) == 1


def test_a_cell_and_the_page():
    cell = recipe.run_cell({"kind": "votes", "points": 5, "n_labeled": 50, "runs": 2})
    assert 0 <= cell["compare_wrong"] <= cell["compare"] <= 1
    stored = read_lines(recipe.RESULTS)
    assert recipe.blocks(stored)["power"] in recipe.PAGE.read_text()
    equal = [c["compare"] for c in stored if not c["points"]]
    assert np.mean(equal) <= 0.12
