"""Sums of label histograms: they add, by unit as over blocks, and weights of one are none."""

from __future__ import annotations

import numpy as np
import pytest

from fewlabels.annotations.label_histograms import (
    Annotated,
    Scheme,
    histogram_sums,
    read_cells,
    sums_by_unit,
)
from fewlabels.annotations.statistics import n_outcomes, outcomes


def data(n=500, k=4, weight=None, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    y = rng.multinomial(rng.integers(0, 5, n), p)
    p[rng.random(n) < 0.1] = np.nan
    return Annotated(y, p, None, weight)


SCHEMES = [Scheme(), Scheme(bins=4, residual=True), Scheme(dispersion=True, agreement=True)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_sums_add(scheme):
    everything = data()
    whole = histogram_sums(everything, scheme)
    halves = [
        histogram_sums(everything.take(slice(*ends)), scheme) for ends in ((0, 200), (200, 500))
    ]
    for a, b, c in zip(whole, *halves, strict=True):
        np.testing.assert_allclose(a, b + c, atol=1e-10)
    order = np.random.default_rng(1).permutation(500)
    by_unit = sums_by_unit(everything, scheme, order, 37)
    for a, b in zip(whole, by_unit, strict=True):
        assert len(b) == 37
        np.testing.assert_allclose(a[0], b.sum(axis=0), atol=1e-10)
    one = histogram_sums(everything.take(order[: 500 // 37]), scheme)
    for a, b in zip(one, by_unit, strict=True):
        np.testing.assert_allclose(a[0], b[0], atol=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_of_one_are_none(scheme):
    plain, weighted = (
        histogram_sums(data(), scheme),
        histogram_sums(data(weight=np.ones(500)), scheme),
    )
    for a, b in zip(plain, weighted, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)


def test_one_item_has_no_variance_whatever_its_weight():
    rng = np.random.default_rng(0)
    for weight in rng.lognormal(0, 5, 50):
        item = Annotated(np.array([[3, 1]]), np.array([[0.7, 0.3]]), None, np.array([weight]))
        cells = read_cells(histogram_sums(item, Scheme()).cells)
        assert np.isnan(cells.unbiased).all()


def test_outcomes():
    for order, classes in ((1, 2), (3, 2), (2, 5), (4, 3)):
        found = outcomes(order, classes)
        assert len(found) == len(np.unique(found, axis=0)) == n_outcomes(order, classes)
        assert (found.sum(axis=1) == order).all()
        assert (found >= 0).all()
