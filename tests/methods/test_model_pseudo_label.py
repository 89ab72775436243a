"""Pseudo-labels: what is particular to them."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

import fewlabels as fl
from fewlabels.methods.baselines.plain import PseudoLabel


def world(n_classes: int = 2, n: int = 300, known: int = 40, seed: int = 0) -> fl.Predictions:
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n)
    logits = 2 * np.eye(n_classes)[truth][:, None, :] + rng.normal(size=(n, 3, n_classes))
    p = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return fl.Predictions(p, np.where(np.arange(n) < known, truth, -1))


def test_labels_of_one_class_make_everything_that_class():
    predictions = world()
    one = predictions.with_labels(np.where(predictions.labels == 1, 1, -1))
    posterior = PseudoLabel().infer(one, 0)
    assert (posterior.marginals()[:, 1] == 1).all()
    assert posterior.status == "assumption"
    assert posterior.warnings == (
        "assumption: all labels are of class 1, so every other item is taken to be of it too",
    )
    assert (posterior.parameters.block(np.arange(2), slice(None))[:, 1] == 1).all()


def test_a_fit_that_does_not_converge_is_a_status(monkeypatch):
    plain = LogisticRegression.__init__

    def impatient(self, **options):
        plain(self, max_iter=1, **options)

    monkeypatch.setattr(LogisticRegression, "__init__", impatient)
    posterior = PseudoLabel().infer(world(), 0)
    assert posterior.status == "not-converged"
    assert posterior.warnings[0].startswith("not-converged: the logistic regression")


def test_annotators_teach_like_labels():
    """A histogram of many agreeing annotators teaches what the label teaches."""
    predictions = world(known=80)
    rows = np.flatnonzero(predictions.labeled)
    histogram = np.zeros((300, 2))
    histogram[rows, predictions.labels[rows]] = 30
    told = fl.Predictions(predictions.probabilities, histogram=histogram)
    labeled = PseudoLabel(soft=True).infer(predictions, 0).marginals()
    annotated = PseudoLabel(soft=True).infer(told, 0).marginals()
    np.testing.assert_allclose(annotated, labeled, atol=1e-3)


def test_missing_predictions_are_the_mean_of_the_others():
    predictions = world()
    p = predictions.probabilities.copy()
    p[100:, 2] = np.nan
    filled = p.copy()
    filled[100:, 2] = p[100:, :2].mean(axis=1)
    found = [
        PseudoLabel(soft=True).infer(fl.Predictions(q, predictions.labels), 0).marginals()
        for q in (p, filled)
    ]
    np.testing.assert_allclose(*found, atol=1e-9)
