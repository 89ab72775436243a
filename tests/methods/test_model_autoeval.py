"""AutoEval: PPI++ against the authors' package, and intervals that keep their promise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.kernels.counter_based import exponentials
from fewlabels.methods.baselines.autoeval import _Moments
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


def test_own_proxies_are_the_classifiers_own_confidence():
    predictions, _ = world(500, 50)
    assert predictions.probabilities is not None
    alone = predictions.select_models(["model0"])
    own = fl.estimate(predictions, "autoeval", "brier", confidence_level=None)
    shared = fl.estimate(alone, AutoEval(proxy="ensemble"), "brier", confidence_level=None)
    assert own.get("model0", "brier").value == pytest.approx(shared.get("model0", "brier").value)


def test_sample_and_population_agree_on_the_value():
    """Lambda is tuned for what is asked, and the shares of the items make up for the difference."""
    predictions, _ = world(1100, 100, skill=0.5)  # over-confident: lambda is not clipped at 1
    for metric in ("accuracy", "brier"):
        sample, population = (
            fl.estimate(predictions, "autoeval", metric, estimand=e, confidence_level=None)
            for e in ("sample", "population")
        )
        for a, b in zip(sample.rows, population.rows, strict=True):
            assert a.value == pytest.approx(b.value, abs=1e-12)


def test_sums_of_many_items_are_those_of_drawn_weights():
    rng = np.random.default_rng(0)
    x, weight = rng.uniform(size=(30_000, 1)), rng.uniform(0.5, 2, 30_000)
    keys = rng.integers(2**63, size=30_000).astype(np.uint64)
    drawn = _Moments.resampled(x, lambda d: exponentials(keys, d, 1) * weight[:, None], 300)
    gaussian = _Moments.resampled_many(x, weight, keys, 300, 1)
    for one, other in zip(drawn, gaussian, strict=True):
        assert other.shape == one.shape
        error = one.std() / np.sqrt(300)
        assert abs(one.mean() - other.mean()) < 5 * error
        assert other.std() == pytest.approx(one.std(), rel=0.2)
    again = np.corrcoef(drawn.total, drawn.mean[0])[0, 1]
    assert np.corrcoef(gaussian.total, gaussian.mean[0])[0, 1] == pytest.approx(again, abs=0.2)


def test_it_says_that_annotators_do_not_count():
    predictions, _ = world(200, 50)
    assert predictions.probabilities is not None
    counts = np.zeros((200, 2))
    counts[100:, 1] = 3
    told = fl.Predictions(predictions.probabilities, predictions.labels, histogram=counts)
    found, plain = (fl.estimate(p, "autoeval", "accuracy") for p in (told, predictions))
    for a, b in zip(found.rows, plain.rows, strict=True):
        assert a.value == pytest.approx(b.value, abs=1e-12)
    assert "autoeval does not use the histograms of annotators (h__ columns)" in found.warnings
