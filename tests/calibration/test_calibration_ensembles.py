"""Ensembles: golden values, weights that never underflow, mixtures of Dirichlets."""

from __future__ import annotations

import numpy as np
import pytest

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


def test_a_huge_concentration_is_none(rng, members):
    counts = rng.integers(0, 4, (7, 3))
    np.testing.assert_allclose(
        ensemble_posterior(members, counts, np.full(7, 1e14)), ensemble_posterior(members, counts)
    )
    np.testing.assert_allclose(
        ensemble_disagreement(members, np.full(7, 1e14)), ensemble_disagreement(members)
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
