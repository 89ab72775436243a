"""Intervals in worlds whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, binom

import fewlabels as fl

pytestmark = pytest.mark.slow


def covered(runs, level, world, method, metric, estimand="population"):
    """How many intervals hold the truth."""
    hits = 0
    for seed in range(runs):
        predictions, truth = world(seed)
        row = fl.estimate(
            predictions,
            method,
            metric,
            confidence_level=level,
            estimand=estimand,
            random_state=seed,
        ).rows[0]
        hits += row.low <= truth <= row.high
    return hits


def consistent(hits: int, runs: int, low: float, high: float) -> bool:
    """Whether a coverage between `low` and `high` explains the count (each side 1 in 1000)."""
    return binom.cdf(hits, runs, low) > 1e-3 and binom.sf(hits - 1, runs, high) > 1e-3


def coin(n: int, accuracy: float):
    """Labels agree with the classifier with a fixed probability."""

    def world(seed):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.02, 0.98, size=n)
        right = rng.random(n) < accuracy
        return fl.Predictions(p[:, None], np.where(right, p > 0.5, p <= 0.5).astype(int)), accuracy

    return world


@pytest.mark.parametrize(("n", "accuracy"), [(20, 0.95), (20, 0.8), (50, 0.9), (200, 0.97)])
def test_labeled_accuracy_covers_like_jeffreys(n, accuracy):
    """Jeffreys' interval does not cover exactly either: its own coverage is the yardstick."""
    hits = covered(400, 0.9, coin(n, accuracy), "labeled", "accuracy")
    k = np.arange(n + 1)
    low, high = beta.ppf([[0.05], [0.95]], k + 0.5, n - k + 0.5)
    inside = (np.where(k == 0, 0, low) <= accuracy) & (accuracy <= np.where(k == n, 1, high))
    jeffreys = binom.pmf(k, n, accuracy)[inside].sum()
    # 400 draws put the ends of an interval within one hit of Jeffreys' in most runs.
    assert consistent(hits, 400, jeffreys - 0.05, min(jeffreys + 0.05, 1))


def calibrated(known: int):
    """The averaged classifier is calibrated: the tempered ensemble's own belief."""

    def world(seed):
        rng = np.random.default_rng(seed)
        logit = rng.normal(-1, 2, size=1000)
        p = 1 / (1 + np.exp(-logit))
        truth = (rng.random(1000) < p).astype(int)
        labels = np.where(np.arange(1000) < known, truth, -1)
        many = 1 / (1 + np.exp(-rng.normal(-1, 2, size=400_000)))
        return fl.Predictions(p[:, None], labels), float(np.maximum(many, 1 - many).mean())

    return world


@pytest.mark.parametrize("known", [0, 20, 100])
def test_tempered_ensemble_covers_where_its_belief_holds(known):
    hits = covered(200, 0.9, calibrated(known), "tempered-ensemble", "accuracy")
    assert consistent(hits, 200, 0.9, 1.0)


def test_sample_estimand_covers_the_sample():
    def world(seed):
        rng = np.random.default_rng(seed)
        p = 1 / (1 + np.exp(-rng.normal(-1, 2, size=300)))
        truth = (rng.random(300) < p).astype(int)
        labels = np.where(np.arange(300) < 60, truth, -1)
        return fl.Predictions(p[:, None], labels), float(((p > 0.5) == truth).mean())

    hits = covered(200, 0.9, world, "tempered-ensemble", "accuracy", "sample")
    assert consistent(hits, 200, 0.87, 1.0)


@pytest.mark.parametrize("metric", ["roc_auc", "average_precision", "f1", "brier", "log_loss"])
def test_all_labels_known_covers_the_population(metric):
    """With every label known only sampling is left: the bootstrap's own job."""
    rng = np.random.default_rng(10**6)
    logit = rng.normal(-1, 2, size=400_000)
    p = 1 / (1 + np.exp(-logit))
    y = (rng.random(len(p)) < p).astype(int)
    everything = fl.Predictions(p[:, None], y)
    truth = fl.estimate(everything, "labeled", metric, confidence_level=None).rows[0].value

    def world(seed):
        rows = np.random.default_rng(seed).integers(len(p), size=400)
        return fl.Predictions(p[rows][:, None], y[rows]), truth

    hits = covered(300, 0.9, world, "labeled", metric)
    assert consistent(hits, 300, 0.86, 0.94), hits
