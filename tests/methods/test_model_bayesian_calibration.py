"""Bayesian calibration: its posterior against quadrature, and what is particular to it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import fewlabels as fl
from fewlabels.methods.baselines.bayesian_calibration import (
    BayesianCalibration,
    log_posterior,
    log_scores,
    logits,
    slope_and_curvature,
)

SDS = np.array([0.43, 0.43, 2.14])


def sharpened(
    n: int = 2000, known: int = 100, temper: float = 2.0, seed: int = 0
) -> tuple[fl.Predictions, np.ndarray]:
    """Two classifiers, one calibrated, one sharper by `temper`; and the true P(y=1)."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(-0.5, 1.5, size=n)
    q = 1 / (1 + np.exp(-logit))
    truth = rng.random(n) < q
    p = 1 / (1 + np.exp(-logit[:, None] * [1.0, temper]))
    labels = np.where(np.arange(n) < known, truth, -1)
    return fl.Predictions(p, labels, models=["calibrated", "sharp"]), q


def labeled_scores(n: int = 30, soft: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    s = rng.random(n)
    y = (rng.random(n) < s).astype(int)
    evidence = np.where(y[:, None] == np.arange(2), 0.0, -2.0 if soft else -np.inf)
    return log_scores(s), evidence


@pytest.mark.parametrize("soft", [False, True])
def test_gradient_and_hessian_are_the_derivatives(soft):
    x, evidence = labeled_scores(soft=soft)
    theta = np.array([0.3, -0.4, 0.7])
    gradient, hessian = slope_and_curvature(theta, x, evidence, np.ones(len(x)), SDS)
    np.testing.assert_allclose(
        gradient,
        approx_fprime(
            theta, lambda t: log_posterior(t[None], x, evidence, np.ones(len(x)), SDS)[0]
        ),
        rtol=1e-4,
    )
    numeric = approx_fprime(
        theta, lambda t: slope_and_curvature(t, x, evidence, np.ones(len(x)), SDS)[0]
    )
    np.testing.assert_allclose(hessian, numeric, rtol=1e-4, atol=1e-5)


def test_identity_is_where_the_prior_stands():
    s = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(
        logits(np.zeros((1, 3)), log_scores(s))[:, 0], np.log(s / (1 - s)), atol=1e-12
    )


def test_missing_scores_get_the_share_of_the_class():
    predictions, _ = sharpened(n=400)
    p = predictions.probabilities.copy()
    p[300:, 0] = np.nan
    posterior = BayesianCalibration().infer(fl.Predictions(p, predictions.labels), 0).of(0)
    block = posterior.parameters.block(np.arange(5), slice(None))
    np.testing.assert_array_equal(block[300:], np.tile(block[300], (100, 1, 1)))
    np.testing.assert_allclose(
        posterior.marginals()[300, 1], posterior.marginals()[:300, 1].mean(), atol=0.05
    )


def test_annotators_teach_like_labels():
    predictions, _ = sharpened(n=600, known=200)
    histogram = np.zeros((600, 2))
    histogram[np.arange(200), predictions.labels[:200]] = 30
    told = fl.Predictions(predictions.probabilities, histogram=histogram)
    settings = BayesianCalibration(n_draws=2000, proposals=10_000)
    labeled, annotated = (settings.infer(x, 0).marginals() for x in (predictions, told))
    np.testing.assert_allclose(annotated, labeled, atol=0.01)


def test_few_effective_draws_are_a_status():
    predictions, _ = sharpened()
    posterior = BayesianCalibration(proposals=50).infer(predictions, 0)
    assert posterior.status == "not-converged"
    assert posterior.warnings[0].startswith("not-converged: fewer than 100 effective draws")
