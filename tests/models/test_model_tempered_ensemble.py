"""Tempered ensemble: what is particular to it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

import fewlabels as fl
from fewlabels.kernels.simplex import softmax
from fewlabels.models import TemperedEnsemble


def calibrated(n: int, seed: int, temper: float = 1.0, known: int = 100) -> fl.Predictions:
    """Classifiers around one calibrated score, all made sharper by `temper`."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(-1, 1.5, size=n)
    truth = rng.random(n) < 1 / (1 + np.exp(-logit))
    told = temper * (logit[:, None] + 0.1 * rng.normal(size=(n, 3)))
    labels = np.where(np.arange(n) < known, truth, -1)
    return fl.Predictions(1 / (1 + np.exp(-told)), labels)


def test_labels_temper_the_ensemble():
    """Scores twice too sharp: with enough labels the posteriors find the calibrated score."""
    truth = 1 / (1 + np.exp(-np.random.default_rng(0).normal(-1, 1.5, size=4000)))
    gaps = {}
    for known in (0, 2000):
        predictions = calibrated(4000, 0, temper=2.0, known=known)
        found = TemperedEnsemble().infer(predictions, 0).marginals()[:, 1]
        gaps[known] = np.abs(found - truth)[2000:].mean()
    assert gaps[0] > 0.08
    assert gaps[2000] < 0.02


def test_without_labels_the_prior_speaks_and_says_so():
    posterior = TemperedEnsemble().infer(calibrated(500, 0, known=0), 0)
    assert posterior.status == "assumption"
    assert any("no labels" in w for w in posterior.warnings)
    assert posterior.diagnostics["component_weights"] == pytest.approx(
        [0.7, 0.12, 0.06, 0.06, 0.06]
    )


def test_soft_evidence_counts_as_labels():
    """A histogram of many agreeing annotators teaches what the label teaches."""
    predictions = calibrated(1500, 1, temper=2.0, known=800)
    rows = np.flatnonzero(predictions.labeled)
    histogram = np.zeros((1500, 2))
    histogram[rows, predictions.labels[rows]] = 30
    told = fl.Predictions(predictions.probabilities, histogram=histogram)
    labeled = TemperedEnsemble().infer(predictions, 0).marginals()[800:]
    annotated = TemperedEnsemble().infer(told, 0).marginals()[800:]
    np.testing.assert_allclose(annotated, labeled, atol=0.01)


def test_draws_follow_the_posterior_mean():
    posterior = TemperedEnsemble().infer(calibrated(300, 2), 0)
    parts = [w[:, None, None] * q for w, q in posterior.soft_draws(200, 0)]
    np.testing.assert_allclose(np.concatenate(parts).sum(axis=0), posterior.marginals(), atol=1e-10)
    hard = posterior.draws(2000, 1)
    gap = (hard == 1).mean(axis=0) - posterior.marginals()[:, 1]
    scale = np.sqrt(
        np.maximum(posterior.marginals()[:, 1] * posterior.marginals()[:, 0], 1e-9) / 2000
    )
    assert np.abs(gap / np.maximum(scale, 1e-3)).max() < 5


@pytest.mark.slow
def test_simulation_based_calibration():
    """Ranks of the true slope among its draws are uniform on data from the model's own prior."""
    from fewlabels.models.ensembles import PRIORS
    from fewlabels.models.informants import Informants
    from fewlabels.models.pooled_index import Feature, PooledIndex

    ranks = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        logit = rng.normal(-0.5, 2, size=200)[:, None] + 0.5 * rng.normal(size=(200, 3))
        p = 1 / (1 + np.exp(-logit))
        told = fl.Predictions(p)
        informants = Informants.of(told, every_kind=False)
        index = PooledIndex.of(informants, informants.said(told), ("raw",))
        wanted = [Feature("pool", "raw"), *(Feature("deviation", m) for m in told.models)]
        features = index.matrix(told, wanted)
        prior = PRIORS[rng.choice(5, p=[c.weight for c in PRIORS])]
        a = rng.normal(0, prior.sa / np.sqrt(2), size=2)
        b = rng.normal(prior.mb, prior.sb)
        w = rng.normal(0, prior.sw / np.sqrt(3), size=3) if prior.sw else np.zeros(3)
        q = softmax(a + b * features[:, :, 0] + features[:, :, 1:] @ w)
        truth = (rng.random(200) < q[:, 1]).astype(int)
        labels = np.where(np.arange(200) < 60, truth, -1)
        fitted = TemperedEnsemble(n_draws=99).fit(fl.Predictions(p, labels), rng)
        ranks.append(int((fitted.draws[:, 2] < b).sum()))
    counts = np.bincount(np.array(ranks) // 10, minlength=10)
    # Laplace's approximation is not exact; a p-value of 1e-3 would still show a wrong posterior.
    assert chisquare(counts).pvalue > 1e-3, counts
