"""Many classifiers and classes: sums of a few at a time say the same, and no square is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fewlabels as fl
from fewlabels.evaluation import draws, evaluator, guard
from fewlabels.methods.ensembles import informants


def world(models: int, n: int = 300, classes: int = 2, labels: int = 40) -> fl.Predictions:
    """Classifiers of one skill, each with an error of its own."""
    rng = np.random.default_rng(7)
    truth = rng.integers(classes, size=n)
    z = rng.normal(size=(n, models, classes))
    z[np.arange(n), :, truth] += 2
    p = np.exp(z)
    return fl.Predictions(
        p / p.sum(axis=2, keepdims=True), np.where(np.arange(n) < labels, truth, -1)
    )


def rows(predictions: fl.Predictions) -> list[tuple[object, ...]]:
    """Every estimate."""
    metrics = ["accuracy", "ece", "roc_auc", "brier"]
    return [tuple(row) for row in fl.estimate(predictions, metrics=metrics).rows]


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_draws_in_smaller_chunks_say_the_same(
    monkeypatch: pytest.MonkeyPatch, classes: int
) -> None:
    """Of many classifiers fewer draws go together, for the sums of all are held."""
    predictions = world(5, classes=classes)
    at_once, chunks = rows(predictions), list[int]()
    made = draws.LabelWeights.chunks

    def spy(self: draws.LabelWeights, *asked: Any, **more: Any) -> list[np.ndarray]:
        found = made(self, *asked, **more)
        chunks.append(max(map(len, found)))
        return found

    monkeypatch.setattr(draws, "_STATE", 400)
    monkeypatch.setattr(draws.LabelWeights, "chunks", spy)
    for row, other in zip(rows(predictions), at_once, strict=True):
        np.testing.assert_allclose(row[3:6], other[3:6], rtol=1e-12, err_msg=str(row[:3]))
    assert min(chunks) < 20


@pytest.mark.slow
def test_of_many_classifiers_the_guard_makes_no_square(monkeypatch: pytest.MonkeyPatch) -> None:
    def square(draws: np.ndarray) -> np.ndarray:
        raise AssertionError("a covariance of all pairs")

    monkeypatch.setattr(guard, "_covariance", square)
    fl.estimate(world(31, n=60), metrics="accuracy")
    with pytest.raises(AssertionError, match="all pairs"):
        fl.estimate(world(3, n=60), metrics="accuracy")


def test_the_factor_of_many_classifiers_needs_no_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    predictions = world(6)
    expected = fl.estimate(predictions, metrics="accuracy")
    monkeypatch.setattr(informants, "MOST_PAIRS", 3)
    found = fl.estimate(predictions, metrics="accuracy")
    values = [np.array([row.value for row in e.rows]) for e in (expected, found)]
    np.testing.assert_allclose(values[1], values[0], atol=1e-6)


def test_shares_of_hundreds_of_classes_are_no_percentages(tmp_path: Path) -> None:
    k = 250  # 100 is within half a unit for each class of 1
    p = np.random.default_rng(0).dirichlet(np.ones(k), size=4)
    table = pa.table({f"p__m__{c}": p[:, c] for c in range(k)})
    pq.write_table(table, tmp_path / "a.parquet")
    read = fl.read_predictions(tmp_path / "a.parquet").probabilities
    assert read is not None
    np.testing.assert_allclose(read[:, 0], p, rtol=1e-12)


def test_voters_measured_in_one_pass_or_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Voters of few items each, with labels: each is judged by the shares of its own draws."""
    rng = np.random.default_rng(3)
    truth, skill = rng.integers(2, size=300), np.linspace(0.55, 0.95, 40)
    right = rng.random((300, 40)) < skill
    votes = np.where(right, truth[:, None], 1 - truth[:, None])
    votes = np.where(rng.random(votes.shape) < 0.15, votes, -1)
    predictions = fl.Predictions(
        votes=votes, labels=np.where(np.arange(300) < 60, truth, -1), classes=["no", "yes"]
    )

    def found() -> np.ndarray:
        estimates = fl.estimate(predictions, "learned-ensemble", ["accuracy"])
        return np.array([row[3:6] for row in estimates.rows])

    together = found()
    monkeypatch.setattr(evaluator, "MANY", 1_000)
    np.testing.assert_allclose(together[:, 0], found()[:, 0], atol=1e-6)
    assert np.abs(together[:, 0] - right.mean(axis=0)).mean() < 0.1
