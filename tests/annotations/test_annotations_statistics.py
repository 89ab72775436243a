"""Statistics of several labels: U-statistics against all subsets, expectations, losses."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.annotations import (
    DISAGREEMENT,
    Statistic,
    evaluate_statistic,
    majority_strength,
    statistic,
    unanimity,
)
from fewlabels.errors import InputError, UsageError

K = 3
FUNCTIONS = {
    "disagreement": (2, lambda c: (c.max(axis=1) < 2) * 1.0),
    "unanimity_2": (2, lambda c: (c.max(axis=1) == 2) * 1.0),
    "unanimity_3": (3, lambda c: (c.max(axis=1) == 3) * 1.0),
    "majority_strength_2": (2, lambda c: c.max(axis=1) / 2),
    "majority_strength_3": (3, lambda c: c.max(axis=1) / 3),
}


def counts(n=14, seed=0):
    return np.random.default_rng(seed).integers(0, 4, (n, K))


def probabilities(n=14, seed=1):
    return np.random.default_rng(seed).dirichlet(np.ones(K), n)


def by_subsets(y, order, function):
    """Means of phi, phi^2 and phi(A) phi(B) over all sets of labels, and all disjoint pairs."""
    labels = np.repeat(np.arange(K), y)
    values = {
        s: float(function(np.bincount(labels[list(s)], minlength=K)[None])[0])
        for s in combinations(range(len(labels)), order)
    }
    if not values:
        return [math.nan] * 3
    phi = np.array(list(values.values()))
    pairs = [a * b for s, a in values.items() for t, b in values.items() if not {*s} & {*t}]
    return [phi.mean(), (phi**2).mean(), np.mean(pairs) if pairs else math.nan]


def test_statistics_that_tell_classes_apart():
    def any_of_class_2(c):
        return c[:, 2] > 0

    y = counts()
    expected = np.array([by_subsets(row, 3, any_of_class_2) for row in y])
    phi = Statistic(3, any_of_class_2, "any")
    np.testing.assert_allclose(np.stack(phi.moments(y), axis=1), expected, atol=1e-14)
    p = probabilities()
    np.testing.assert_allclose(phi.expected(p), 1 - (1 - p[:, 2]) ** 3, atol=1e-14)
    alpha = 2.5
    none = np.prod([(alpha * (1 - p[:, 2]) + j) / (alpha + j) for j in range(3)], axis=0)
    np.testing.assert_allclose(phi.expected(p, alpha), 1 - none, atol=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("concentration", [None, 1e-12, 0.7, 40.0, 1e13, np.inf])
def test_expectations_agree_with_all_outcomes(name, concentration):
    order, function = FUNCTIONS[name]
    p = probabilities()
    p[0] = [1, 0, 0]
    found = statistic(name).expected(p, concentration)
    every = Statistic(order, function, "mine").expected(p, concentration)
    np.testing.assert_allclose(found, every, atol=1e-13)
    sure = function(order * np.eye(K, dtype=int)[:1])[0]
    assert found[0] == pytest.approx(sure)
    if concentration == 1e-12:  # one label says all
        np.testing.assert_allclose(found, sure, atol=1e-9)


def test_many_classes_need_no_enumeration():
    y = np.zeros((3, 1000))
    y[0, 5], y[1, :6], y[2, [1, 2]] = 6, 1, [3, 3]
    np.testing.assert_allclose(majority_strength(3).observed(y), [1, 1 / 3, 0.7], atol=1e-12)
    np.testing.assert_allclose(unanimity(3).observed(y), [1, 0, 0.1], atol=1e-12)
    found = evaluate_statistic(majority_strength(3), y, [1, 1 / 3, 0.7])
    assert found["EL"] == pytest.approx((0 + 0 + by_product() - 0.49) / 3, abs=1e-12)


def by_product():
    """E max(A) max(B) / 9 of two halves of the labels 3 + 3."""
    values = [by_subsets(np.array([3, 3, 0]), 3, lambda c: c.max(axis=1) / 3)[2]]
    return values[0]


def test_rows_of_nan_have_no_expectation():
    p = probabilities()
    p[4] = np.nan
    for name in ("disagreement", "majority_strength_3", "unanimity_3"):
        assert np.flatnonzero(np.isnan(statistic(name).expected(p))).tolist() == [4]
    mine = Statistic(2, lambda c: c[:, 0] > 0, "mine")
    assert np.flatnonzero(np.isnan(mine.expected(p))).tolist() == [4]


def test_bounds_scale():
    y = counts(60, seed=9)
    enough = y.sum(axis=1) >= 2
    narrow = Statistic(2, lambda c: c.max(axis=1) / 2, "narrow")
    wide = Statistic(2, lambda c: 5 * c.max(axis=1) - 3, "wide", bounds=(-3, 7))
    q = np.random.default_rng(0).uniform(0.5, 1, 60)
    a = evaluate_statistic(narrow, y[enough], q[enough], confidence_level=0.9)
    b = evaluate_statistic(wide, y[enough], 10 * q[enough] - 3, confidence_level=0.9)
    for name in ("L", "CL", "CL_plugin", "EL"):
        assert b[name] == pytest.approx(100 * a[name])
        np.testing.assert_allclose(b["intervals"][name], 100 * np.array(a["intervals"][name]))
    assert b["CE"] == pytest.approx(10 * a["CE"])


def test_too_few_labels_for_the_epistemic_loss():
    y = [[1, 1, 0], [2, 0, 1]]
    found = evaluate_statistic("disagreement", y, [0.5, 0.5], confidence_level=0.9)
    assert math.isnan(found["EL"])
    assert math.isnan(found["intervals"]["EL"][0])
    with pytest.raises(InputError, match="no item has the 5 labels"):
        evaluate_statistic(unanimity(5), y, [0.5, 0.5])


def test_names():
    assert statistic("disagreement") is DISAGREEMENT
    assert statistic("unanimity_4") == unanimity(4)
    assert statistic("majority_strength_12").order == 12
    assert statistic(DISAGREEMENT) is DISAGREEMENT
    for bad in ("unanimty_3", "unanimity", "unanimity_1", None, 3):
        with pytest.raises(UsageError):
            statistic(bad)


def test_bad_statistics():
    def one(c):
        return np.ones(len(c))

    for arguments in ((0, one, "x"), (2, 3, "x"), (2, one, ""), (2, one, "x", (1, 0))):
        with pytest.raises(UsageError):
            Statistic(*arguments)
    with pytest.raises(UsageError, match="stay within 0 and 1; got 2"):
        Statistic(2, lambda c: c.max(axis=1), "x").observed(counts())
    with pytest.raises(UsageError, match="one value per row"):
        Statistic(2, lambda c: c, "x").observed(counts())
    with pytest.raises(UsageError, match="outcomes for 500 classes"):
        Statistic(3, one, "x").expected(np.full((1, 500), 1 / 500))
    with pytest.raises(InputError, match="above 0"):
        DISAGREEMENT.expected(probabilities(), 0.0)
    with pytest.raises(InputError, match="shape"):
        DISAGREEMENT.expected(probabilities(), np.ones(3))
    with pytest.raises(InputError, match="`predicted`"):
        evaluate_statistic("disagreement", counts(), np.full(14, 1.5))
    assert fl.annotations.Statistic is Statistic
