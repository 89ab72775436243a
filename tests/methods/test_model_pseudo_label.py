"""Pseudo-labels: what is particular to them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fewlabels as fl
from fewlabels.methods.baselines.pseudo_label import PseudoLabel


def world(n_classes: int = 2, n: int = 300, known: int = 40, seed: int = 0) -> fl.Predictions:
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n)
    logits = 2 * np.eye(n_classes)[truth][:, None, :] + rng.normal(size=(n, 3, n_classes))
    p = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return fl.Predictions(p, np.where(np.arange(n) < known, truth, -1))


def features(predictions: fl.Predictions, kind: str) -> np.ndarray:
    p = predictions.probabilities
    if kind == "probabilities":
        return (p[:, :, 1] if p.shape[2] == 2 else p).reshape(len(p), -1)
    p = np.clip(p, 1e-6, 1 - 1e-6)
    p = p / p.sum(axis=2, keepdims=True)
    return np.log(p[:, :, :-1] / p[:, :, -1:]).reshape(len(p), -1)


@pytest.mark.parametrize("kind", ["log-ratios", "probabilities"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_is_scikit_learns_regression(n_classes, kind):
    predictions = world(n_classes)
    x, known = features(predictions, kind), predictions.labeled
    regression = LogisticRegression().fit(x[known], predictions.labels[known])
    soft = PseudoLabel(soft=True, features=kind).infer(predictions, 0).marginals()
    np.testing.assert_allclose(soft[~known], regression.predict_proba(x[~known]), atol=1e-6)
    hard = PseudoLabel(soft=False, features=kind).infer(predictions, 0).marginals()
    assert (hard.max(axis=1) == 1).all()
    np.testing.assert_array_equal(hard[~known].argmax(axis=1), regression.predict(x[~known]))


def test_a_class_without_labels_is_never_predicted():
    predictions = world(3)
    some = predictions.with_labels(np.where(predictions.labels == 1, -1, predictions.labels))
    posterior = PseudoLabel(soft=True).infer(some, 0)
    assert (posterior.marginals()[:, 1] == 0).all()
    block = posterior.parameters.block(np.arange(3), slice(None))
    assert (block[:, 1] == 0).all()


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


def test_without_labels_it_says_what_to_do():
    with pytest.raises(fl.InputError, match="learns from labels, and there are none; label some"):
        PseudoLabel().infer(world(known=0), 0)


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


def test_refits_differ_and_are_probabilities():
    posterior = PseudoLabel(soft=True, replicates=6).infer(world(3), 0)
    block = posterior.parameters.block(np.arange(6), slice(None))
    assert block.shape == (300, 3, 6)
    np.testing.assert_allclose(block.sum(axis=1), 1)
    assert np.median(block[40:].std(axis=2)) > 1e-3
    assert (block[:40].max(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replicates": 0}, "`replicates` must be a whole number, at least 1; got 0"),
        ({"features": "votes"}, "`features` must be 'log-ratios' or 'probabilities'; got 'votes'"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(fl.UsageError, match=message):
        PseudoLabel(**options)
