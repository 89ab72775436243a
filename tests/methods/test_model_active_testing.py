"""Active testing: LURE weights, an oracle that is asked once, and no bias."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.models import ActiveTesting, Ensemble


def world(n: int, seed: int = 0) -> tuple[fl.Predictions, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(int)
    p = 1 / (1 + np.exp(-2 * (1.5 * (truth[:, None] - 0.4) + rng.normal(size=(n, 2)))))
    return fl.Predictions(p), truth


def test_asking_for_everything_leaves_nothing_open():
    predictions, truth = world(60)
    assert predictions.probabilities is not None
    method = ActiveTesting(oracle=lambda rows: truth[rows], budget=500)
    found = fl.estimate(predictions, method, "accuracy", estimand="sample")
    right = (predictions.probabilities.argmax(axis=2) == truth[:, None]).mean(axis=0)
    for row, value in zip(found.rows, right, strict=True):
        assert row.value == pytest.approx(value)
        assert row.low == row.high == row.value
    assert len(found.diagnostics["asked"]) == 60
    assert found.diagnostics["effective_labels"] == pytest.approx(60)


def test_suggested_items_are_the_doubtful_ones():
    assert ActiveTesting().surrogate == Ensemble()
    predictions, _ = world(2000)
    assert predictions.probabilities is not None
    found = fl.estimate(predictions, ActiveTesting(budget=50), "accuracy")
    pool = predictions.probabilities.mean(axis=1)
    doubt = 1 - np.take_along_axis(
        pool, predictions.probabilities.argmax(axis=2), axis=1
    ).mean(axis=1)  # fmt: skip
    assert doubt[found.diagnostics["label_next"]].mean() > 1.3 * doubt.mean()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda rows: np.zeros(3), "was asked for the labels of 20 items"),
        (lambda rows: np.full(len(rows), 2), "no class index from 0 to 1"),
        (lambda rows: np.full(len(rows), 0.5), "no class index"),
        (lambda rows: np.full(len(rows), np.nan), "no class index"),
        (lambda rows: np.full(len(rows), "a"), "no class index"),
        (lambda rows: np.full(len(rows), -1), "no class index"),
    ],
)
def test_bad_oracles(answer, said):
    predictions, _ = world(50)
    with pytest.raises(fl.InputError, match=said):
        fl.estimate(predictions, ActiveTesting(oracle=answer))
