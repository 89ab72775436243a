"""AutoEval: PPI++ against the authors' package, and intervals that keep their promise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.models import AutoEval


def world(
    n: int, known: int, seed: int = 0, *, skill: float = 1.5
) -> tuple[fl.Predictions, np.ndarray]:
    """Two classifiers of the same signal, and the truth."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(int)
    signal = skill * (truth[:, None] - 0.4) + rng.normal(size=(n, 2))
    p = 1 / (1 + np.exp(-2 * signal))
    return fl.Predictions(p, np.where(np.arange(n) < known, truth, -1)), truth


def losses(predictions: fl.Predictions, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether classifier j is right on the labeled items, and the proxy of that on all items."""
    assert predictions.probabilities is not None
    hard = predictions.probabilities[:, j].argmax(axis=1)
    pool = predictions.probabilities.mean(axis=1)
    right = (hard == predictions.labels).astype(float)
    return right[predictions.labeled], np.take_along_axis(pool, hard[:, None], axis=1)[:, 0]


@pytest.mark.parametrize("known", [20, 100, 400])
@pytest.mark.parametrize("tuned", [True, False])
def test_equals_the_authors_package(known, tuned):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package's own, on import
        ppi = pytest.importorskip("ppi_py")
    predictions, _ = world(1500, known, seed=known)
    estimates = fl.estimate(
        predictions,
        AutoEval(proxy="ensemble", power_tuning=tuned),
        "accuracy",
        confidence_level=None,
    )
    for j, row in enumerate(estimates.rows):
        right, proxy = losses(predictions, j)
        theirs = ppi.ppi_mean_pointestimate(
            right[:, None], proxy[:known, None], proxy[known:, None], lam=None if tuned else 1
        )
        assert row.value == pytest.approx(float(np.squeeze(theirs)), abs=1e-12)


def test_by_hand():
    p = np.array([0.9, 0.8, 0.3, 0.6, 0.7, 0.2])
    predictions = fl.Predictions(p[:, None], np.array([1, 0, 0, -1, -1, -1]))
    value = fl.estimate(
        predictions, AutoEval(power_tuning=False), "accuracy", confidence_level=None
    )
    # Labels: right, wrong, right; proxies .9 .8 .7 there and .6 .7 .8 elsewhere.
    assert value.rows[0].value == pytest.approx(2 / 3 + 0.7 - 0.8)


def test_own_proxies_are_the_classifiers_own_confidence():
    predictions, _ = world(500, 50)
    assert predictions.probabilities is not None
    alone = predictions.select_models(["model0"])
    own = fl.estimate(predictions, "autoeval", "brier", confidence_level=None)
    shared = fl.estimate(alone, AutoEval(proxy="ensemble"), "brier", confidence_level=None)
    assert own.get("model0", "brier").value == pytest.approx(shared.get("model0", "brier").value)


def test_perfect_proxies_need_no_labels():
    """Proxies that are right beyond doubt make the estimate that of all items."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=400)
    good = np.clip(truth, 1e-9, 1 - 1e-9)
    weak = np.where(rng.random(400) < 0.7, good, 1 - good)
    # The pool of both is unsure where they differ, so take the good one as the other's proxy.
    predictions = fl.Predictions(
        np.stack([good, weak], axis=1), np.where(np.arange(400) < 100, truth, -1)
    )
    estimates = fl.estimate(predictions, AutoEval(proxy="own"), "accuracy", estimand="sample")
    row = estimates.get("model0", "accuracy")
    assert row.value == pytest.approx(1)
    # Twenty labels that agree do not make certain: what has not been seen keeps the width.
    assert row.low < 1


@pytest.mark.parametrize("estimand", ["population", "sample"])
def test_never_collapses_when_labels_agree(estimand):
    rng = np.random.default_rng(1)
    p = rng.uniform(0.6, 1, 300)
    labels = np.where(np.arange(300) < 20, 1, -1)
    row = fl.estimate(fl.Predictions(p[:, None], labels), "autoeval", "accuracy", estimand=estimand)
    found = row.rows[0]
    assert 0.7 < found.low < found.high <= 1
    assert found.high - found.low > 0.02


def test_all_labels_known_is_the_plain_mean():
    predictions, _ = world(200, 200)
    sample = fl.estimate(predictions, "autoeval", "accuracy", estimand="sample")
    population = fl.estimate(predictions, "autoeval", "accuracy")
    for j, (row, other) in enumerate(zip(sample.rows, population.rows, strict=True)):
        right, _ = losses(predictions, j)
        assert row.value == pytest.approx(right.mean(), abs=1e-12)
        assert row.low == pytest.approx(row.high, abs=1e-12)
        assert other.value == pytest.approx(right.mean(), abs=1e-12)
        assert other.low < other.value < other.high


def test_sampling_weights_are_those_of_repeated_items():
    predictions, _ = world(120, 60)
    assert predictions.probabilities is not None
    times = np.random.default_rng(3).integers(1, 4, 120)
    repeated = predictions.take(np.repeat(np.arange(120), times))
    weighted = fl.Predictions(predictions.probabilities, predictions.labels, weight=times)
    one, other = (
        fl.estimate(p, AutoEval(power_tuning=False), "accuracy", confidence_level=None)
        for p in (repeated, weighted)
    )
    for a, b in zip(one.rows, other.rows, strict=True):
        assert a.value == pytest.approx(b.value, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("known", [20, 100])
def test_coverage(known):
    """90% intervals of accuracy and Brier score, in a world whose truth is known."""
    big, truth = world(200_000, 200_000, seed=9)
    assert big.probabilities is not None
    p = big.probabilities[:, :, 1]
    right = ((p > 0.5) == truth[:, None]).mean(axis=0)
    rng = np.random.default_rng(4)
    hits = []
    for run in range(200):
        rows = rng.choice(len(truth), 1000, replace=False)
        labels = np.where(np.arange(1000) < known, truth[rows], -1)
        found = fl.estimate(
            fl.Predictions(p[rows], labels), "autoeval", "accuracy",
            confidence_level=0.9, random_state=run,
        )  # fmt: skip
        hits += [row.low <= right[j] <= row.high for j, row in enumerate(found.rows)]
    # 400 intervals, pairwise dependent: a standard error of at most 2.1 points.
    assert 0.84 < np.mean(hits) < 0.97


def test_bad_settings():
    with pytest.raises(fl.UsageError, match="`proxy` must be"):
        AutoEval(proxy="mine")  # type: ignore[arg-type]
