"""Active testing: LURE weights, an oracle that is asked once, and no bias."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.methods.baselines.active_testing import _pick
from fewlabels.models import ActiveTesting, Ensemble


def world(n: int, seed: int = 0) -> tuple[fl.Predictions, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(int)
    p = 1 / (1 + np.exp(-2 * (1.5 * (truth[:, None] - 0.4) + rng.normal(size=(n, 2)))))
    return fl.Predictions(p), truth


def lure(loss: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Weights of items asked for in this order, as the paper's equation reads."""
    n, budget = len(loss), len(order)
    left, out = set(range(n)), []
    for m, item in enumerate(order, start=1):
        q = loss[item] / sum(loss[i] for i in left)
        out.append(1 + (n - budget) / (n - m) * (1 / ((n - m + 1) * q) - 1))
        left.remove(item)
    return np.array(out)


def test_weights_are_the_papers():
    rng = np.random.default_rng(0)
    loss = rng.uniform(0.01, 1, 40)
    picked, weights = _pick(rng.integers(2**63, size=40, dtype=np.uint64), loss, 12, 7)
    assert len(set(picked.tolist())) == 12
    np.testing.assert_allclose(weights, lure(loss, picked), rtol=1e-12)
    assert (weights > 0).all()


def test_items_are_drawn_in_proportion_to_their_loss():
    keys, loss = np.arange(5, dtype=np.uint64), np.array([1.0, 2.0, 3.0, 4.0, 10.0])
    picks = np.array([_pick(keys, loss, 2, salt)[0] for salt in range(4000)])
    first = np.bincount(picks[:, 0], minlength=5) / 4000
    np.testing.assert_allclose(first, loss / loss.sum(), atol=4 * np.sqrt(0.25 / 4000))
    # The second among those left: P(1 | 4 first) = 2 / 10.
    second = (picks[picks[:, 0] == 4, 1] == 1).mean()
    assert abs(second - 0.2) < 4 * np.sqrt(0.16 / 2000)


def test_the_estimate_is_unbiased_for_the_pool():
    """Mean over seeds is the error of the pool, though hard items are asked for most."""
    predictions, truth = world(150)
    assert predictions.probabilities is not None
    wrong = (predictions.probabilities.argmax(axis=2) != truth[:, None]).mean(axis=0)
    found = np.array(
        [
            [
                row.value
                for row in fl.estimate(
                    predictions, ActiveTesting(oracle=lambda rows: truth[rows], budget=15),
                    "error_rate", confidence_level=None, random_state=seed,
                ).rows
            ]
            for seed in range(400)
        ]
    )  # fmt: skip
    error = found.std(axis=0) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - wrong) < 4 * error).all()
    # Asking at random, the mean of 15 of 150 has this sd; asking well beats it.
    at_random = np.sqrt(wrong * (1 - wrong) / 15 * (135 / 149))
    assert (found.std(axis=0) < at_random).all()


def test_accuracy_is_one_minus_error():
    predictions, truth = world(200)
    method = ActiveTesting(oracle=lambda rows: truth[rows], budget=30)
    found = fl.estimate(predictions, method, ["accuracy", "error_rate"])
    for model in found.models:
        right, wrong = (found.get(model, m) for m in ("accuracy", "error_rate"))
        assert right.value == pytest.approx(1 - wrong.value)
        assert right.low == pytest.approx(1 - wrong.high)


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


def test_the_oracle_is_asked_once_for_items_without_a_label():
    predictions, truth = world(100)
    predictions = predictions.with_labels(np.where(np.arange(100) < 30, truth, -1))
    asked: list[np.ndarray] = []

    def oracle(rows: np.ndarray) -> np.ndarray:
        asked.append(rows)
        return truth[rows]

    found = fl.estimate(predictions, ActiveTesting(oracle=oracle, budget=10), "accuracy")
    assert len(asked) == 1
    assert len(set(asked[0].tolist())) == 10
    assert (asked[0] >= 30).all()
    assert found.diagnostics["asked"] == asked[0].tolist()
    marginals = found.posterior.marginals()
    assert (marginals[asked[0], truth[asked[0]]] == 1).all()


def test_without_an_oracle_the_labels_count_as_they_are():
    predictions, truth = world(300)
    predictions = predictions.with_labels(np.where(np.arange(300) < 40, truth, -1))
    found = fl.estimate(predictions, "active-testing", ["accuracy", "brier"])
    alone = fl.estimate(predictions, "labeled", ["accuracy", "brier"])
    for row, other in zip(found.rows, alone.rows, strict=True):
        assert row.value == pytest.approx(other.value)
        assert abs((row.high - row.low) / (other.high - other.low) - 1) < 0.25
    assert any("no oracle" in warning for warning in found.warnings)
    assert len(found.diagnostics["label_next"]) == 20
    assert min(found.diagnostics["label_next"]) >= 40


def test_suggested_items_are_the_doubtful_ones():
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


def test_bad_settings():
    with pytest.raises(fl.UsageError, match="`budget` must be"):
        ActiveTesting(budget=0)
    with pytest.raises(fl.UsageError, match="`uniform_share` must be"):
        ActiveTesting(uniform_share=0)
    with pytest.raises(fl.UsageError, match="`oracle` must be"):
        ActiveTesting(oracle=3)  # type: ignore[arg-type]
    assert ActiveTesting().surrogate == Ensemble()


@pytest.mark.slow
def test_coverage():
    """90% intervals for accuracy at 20 labels, asked for one pool after the other."""
    big, truth = world(200_000, seed=9)
    assert big.probabilities is not None
    p = big.probabilities[:, :, 1]
    right = ((p > 0.5) == truth[:, None]).mean(axis=0)
    rng, hits = np.random.default_rng(4), []
    for run in range(200):
        rows = rng.choice(len(truth), 1000, replace=False)
        method = ActiveTesting(oracle=lambda i, own=truth[rows]: own[i], budget=20)
        found = fl.estimate(
            fl.Predictions(p[rows]), method, "accuracy", confidence_level=0.9, random_state=run
        )
        hits += [row.low <= right[j] <= row.high for j, row in enumerate(found.rows)]
    assert 0.84 < np.mean(hits) < 0.97
