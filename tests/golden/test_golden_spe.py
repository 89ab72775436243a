"""SPE's densities, survival functions, priors and likelihood against golden values (scipy's)."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import expit

from fewlabels.methods.spe.families import FAMILIES, SHORT_NAMES, Points
from fewlabels.methods.spe.mixture import ClassDensity, ScoreData, ScoreMixture


@pytest.fixture(scope="module")
def golden(golden_folder):
    return json.loads((golden_folder / "golden_spe.json").read_text())


def class_density(name: str) -> ClassDensity:
    return ClassDensity(FAMILIES[SHORT_NAMES[name]])


@pytest.mark.parametrize("name", SHORT_NAMES)
def test_family(golden, name):
    expected, scores = golden[name.replace("-", "_")], np.array(golden["s"])
    u, density = np.array([expected["u"]]), class_density(name)
    found = density.log_density(Points(scores), u)[:, 0]
    np.testing.assert_allclose(found, expected["logpdf"], rtol=1e-12)
    survival = np.exp(density.log_survival(scores, u)[:, 0])
    np.testing.assert_allclose(survival, expected["sf"], rtol=1e-12)
    prior = density.log_prior(u)[0][0]
    assert prior == pytest.approx(expected["logprior_with_jacobian"], rel=1e-12)


def test_mixture(golden):
    expected, scores = golden["mixture_n_g"], np.array(golden["s"])
    y, theta = np.array(expected["y"]), np.array([expected["theta"]])
    parts = []
    for label in (1, 0, -1):
        mine = scores[y == label]
        parts += [Points(mine), np.ones(len(mine))]
    data = ScoreData(*parts, np.zeros((y == -1).sum()))
    mixture = ScoreMixture(class_density("n"), class_density("g"))
    assert mixture.log_likelihood(theta, data)[0] == pytest.approx(expected["loglik"], rel=1e-12)
    assert mixture.log_posterior(theta, data)[0] == pytest.approx(expected["logpost"], rel=1e-12)
    gamma = expit(mixture.log_odds(Points(scores), theta)[:, 0])
    np.testing.assert_allclose(gamma, expected["gamma"], rtol=1e-12)
    recall, false_positives = (part[:, 0] for part in mixture.survival(scores, theta))
    np.testing.assert_allclose(recall, expected["population_recall"], rtol=1e-12)
    share = expit(theta[0, -1])
    precision = share * recall / (share * recall + (1 - share) * false_positives)
    np.testing.assert_allclose(precision, expected["population_precision"], rtol=1e-12)
