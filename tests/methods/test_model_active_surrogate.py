"""Active surrogate estimators: rounds of questions, and a surrogate that is believed."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.methods.baselines.active_testing import _disagreement
from fewlabels.models import ActiveSurrogate, TemperedEnsemble
from fewlabels.posterior import LabelPosterior


class Drawn:
    """Parameter draws that are given, (D, n, K)."""

    def __init__(self, q: np.ndarray) -> None:
        self.q, self.size = q, len(q)

    def block(self, index: np.ndarray, rows: np.ndarray | slice) -> np.ndarray:
        return self.q[index][:, rows].transpose(1, 2, 0)


def world(n: int, seed: int = 0) -> tuple[fl.Predictions, np.ndarray]:
    """Two classifiers that are five times as sure as they should be."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(int)
    p = 1 / (1 + np.exp(-14 * (1.5 * (truth[:, None] - 0.4) + rng.normal(size=(n, 2)))))
    return fl.Predictions(p), truth


def asked_of(n: int, **settings: int) -> tuple[list[np.ndarray], fl.Estimates, np.ndarray]:
    predictions, truth = world(n)
    questions: list[np.ndarray] = []

    def oracle(rows: np.ndarray) -> np.ndarray:
        questions.append(rows)
        return truth[rows]

    model = ActiveSurrogate(oracle=oracle, **settings)
    return questions, fl.estimate(predictions, model, ["accuracy", "roc_auc"]), truth


def test_asks_in_rounds_and_never_twice():
    questions, found, _ = asked_of(500, budget=32, rounds=5)
    assert [len(rows) for rows in questions] == [7, 7, 6, 6, 6]
    assert len(np.unique(np.concatenate(questions))) == 32
    assert found.diagnostics["asked"] == np.concatenate(questions).tolist()


def test_is_its_surrogate_with_the_labels_that_it_asked_for():
    predictions, _ = world(500)
    questions, found, truth = asked_of(500, budget=30)
    labels = np.full(500, -1)
    rows = np.concatenate(questions)
    labels[rows] = truth[rows]
    alone = TemperedEnsemble().infer(predictions.with_labels(labels), 0)
    # Its draws differ by their seed; the mean of 200 of them hardly does.
    np.testing.assert_allclose(found.posterior.marginals(), alone.marginals(), atol=0.03)


def test_disagreement_is_the_formula():
    """Two draws: what leaves the loss open counts, by what each classifier predicts."""
    q = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]])  # (draws, items, classes)
    p = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]]])  # (items, models, classes)
    predictions = fl.Predictions(p)
    posterior = LabelPosterior(None, Drawn(q), predictions.keys)
    mean = q.mean(axis=0)[0]
    gap = (q[:, 0] * np.log(q[:, 0])).mean(axis=0) - mean * np.log(mean)
    # The first classifier predicts class 0, and errs where the class is 1; the second, the reverse.
    found = _disagreement(posterior, predictions, np.arange(2))
    assert found == pytest.approx([gap.sum() / 2, 0.0], abs=1e-9)


def test_without_an_oracle_it_is_its_surrogate():
    predictions, _ = world(400)
    found = fl.estimate(predictions, ActiveSurrogate(budget=15), "accuracy")
    assert len(set(found.diagnostics["label_next"])) == 15
    assert "no oracle to ask" in found.warnings[-1]


@pytest.mark.slow
def test_learns_what_labels_teach():
    """The classifiers are over-confident: with labels the accuracy is nearer than without."""
    errors = []
    for seed in range(6):
        predictions, truth = world(1500, seed)
        assert predictions.probabilities is not None
        right = (predictions.probabilities.argmax(axis=2) == truth[:, None]).mean(axis=0)
        for budget in (1, 200):
            model = ActiveSurrogate(oracle=lambda rows, t=truth: t[rows], budget=budget)
            rows = fl.estimate(predictions, model, "accuracy", random_state=seed).rows
            errors.append(np.abs([r.value for r in rows] - right).mean())
    few, many = np.reshape(errors, (6, 2)).T
    assert many.mean() < 0.75 * few.mean()
