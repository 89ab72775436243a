"""Ensembles: golden values, weights that never underflow, mixtures of Dirichlets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import fewlabels as fl
from fewlabels.calibration import ensemble_disagreement, ensemble_mean, ensemble_posterior


@pytest.fixture
def members(rng):
    return rng.dirichlet(np.ones(3), (5, 7))


def test_golden(golden):
    case = golden["F_ensemble"]
    samples = np.swapaxes(case["mc"], 0, 1)
    found = 1 - ensemble_disagreement(samples)
    np.testing.assert_allclose(found, case["agreement_eq72"], rtol=1e-9)
    labels = np.eye(3)[case["y"]]
    found = ensemble_posterior(samples, labels)
    np.testing.assert_allclose(found, case["posterior_correct"], rtol=1e-9)
    assert np.abs(found - case["posterior_lh_calib_buggy_sum"]).max() > 0.01
    alpha = np.swapaxes(golden["G_mcalpha_eq73"]["mc_alpha"], 0, 1)
    total = alpha.sum(axis=2)
    found = 1 - ensemble_disagreement(alpha / total[:, :, None], total)
    np.testing.assert_allclose(found, golden["G_mcalpha_eq73"]["agreement"], rtol=1e-9)


def test_product_weights_one_by_one(rng, members):
    counts = rng.integers(0, 4, (7, 3))
    found = ensemble_posterior(members, counts)
    for i in range(7):
        w = [math.prod(f[i, k] ** counts[i, k] for k in range(3)) for f in members]
        np.testing.assert_allclose(found[i], np.average(members[:, i], axis=0, weights=w))


def test_dirichlet_members_one_by_one(rng, members):
    counts, alpha0 = rng.integers(0, 4, (7, 3)), rng.gamma(2, 2, (5, 7))
    found = ensemble_posterior(members, counts, alpha0)
    for i in range(7):
        a = alpha0[:, i, None] * members[:, i]
        n = counts[i].sum()
        log = stats.dirichlet_multinomial(a, n).logpmf(counts[i])
        means = (a + counts[i]) / (alpha0[:, i, None] + n)
        np.testing.assert_allclose(found[i], np.average(means, axis=0, weights=np.exp(log)))


def test_a_huge_concentration_is_none(rng, members):
    counts = rng.integers(0, 4, (7, 3))
    np.testing.assert_allclose(
        ensemble_posterior(members, counts, np.full(7, 1e14)), ensemble_posterior(members, counts)
    )
    np.testing.assert_allclose(
        ensemble_disagreement(members, np.full(7, 1e14)), ensemble_disagreement(members)
    )


def test_weights_do_not_underflow(members):
    counts = np.tile([4000, 3000, 3000], (7, 1))
    for alpha0 in (None, np.full(7, 5.0)):
        found = ensemble_posterior(members, counts, alpha0)
        np.testing.assert_allclose(found.sum(axis=1), 1)
    zero = np.array([[[1.0, 0.0]], [[1.0, 0.0]]])
    np.testing.assert_allclose(ensemble_posterior(zero, [[0, 2]]), [[1.0, 0.0]])


def test_without_labels_it_is_the_mean(members):
    mean = members.mean(axis=0)
    np.testing.assert_allclose(ensemble_mean(members), mean)
    nothing = np.zeros((7, 3))
    np.testing.assert_allclose(ensemble_posterior(members, nothing), mean)
    np.testing.assert_allclose(ensemble_posterior(members, nothing, np.ones(7)), mean)


def test_one_concentration_per_item_or_member(members):
    per_item = np.linspace(1, 5, 7)
    np.testing.assert_allclose(
        ensemble_disagreement(members, per_item),
        ensemble_disagreement(members, np.tile(per_item, (5, 1))),
    )


def test_bad_input_is_one_line(members):
    with pytest.raises(fl.InputError, match="`samples` must have 3 dimensions"):
        ensemble_mean(members[0])
    broken = members.copy()
    broken[2, 3] = 0.9
    with pytest.raises(fl.InputError, match=r"member 2 \(from 0\): .* item 3"):
        ensemble_disagreement(broken)
    with pytest.raises(fl.InputError, match="must be positive"):
        ensemble_disagreement(members, np.zeros(7))
    with pytest.raises(fl.InputError, match=r"got\s+shape \(3,\)"):
        ensemble_posterior(members, np.zeros((7, 3)), np.ones(3))
    with pytest.raises(fl.InputError, match="whole counts"):
        ensemble_posterior(members, np.full((7, 3), 0.5))
