"""What a sceptical statistician tries: coverage, coherence between answers, and odd data."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from functools import cache

import numpy as np
import pytest
import scipy.stats
from reference_naive import METRICS, NaiveTempered, metric, soft_metric
from reference_questions import estimates_of

import fewlabels as fl
from worlds import world

METHODS = ("labeled", "tempered-ensemble", "ensemble", "ssme-kde")


def bounds(estimates: fl.Estimates) -> np.ndarray:
    """Value, low, high of every row."""
    return np.array([row[3:6] for row in estimates.rows])


# coherence


@pytest.mark.parametrize("method", METHODS)
def test_accuracy_and_error_rate_mirror_each_other(method):
    w = world(n=150, models=2, labeled=25, seed=1)
    rows = bounds(estimates_of(w.predictions(), method=method, metrics=["accuracy", "error_rate"]))
    right, wrong = rows[0::2], rows[1::2]
    np.testing.assert_allclose(right, 1 - wrong[:, [0, 2, 1]], rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_an_answer_does_not_depend_on_what_else_is_asked(method):
    w = world(n=150, models=2, labeled=25, seed=1)
    p = w.predictions(groups={"g": np.arange(150) % 3, "all": np.repeat("x", 150)})
    alone = bounds(estimates_of(p, method=method, metrics=["brier"]))
    beside = fl.estimate(p, method=method, metrics=["accuracy", "brier", "auc"], by=["g", "all"])
    for model, row in zip("ab", alone, strict=True):
        for group in (None, "all=x"):
            np.testing.assert_allclose(
                beside.get(model, "brier", group)[3:6], row, rtol=0, atol=1e-12
            )


def test_labeled_ignores_the_predictions_for_unlabeled_items():
    w = world(n=150, models=2, labeled=25, seed=1)
    P = w.P.copy()
    P[w.shown < 0] = P[w.shown < 0][::-1]
    a = estimates_of(w.predictions(), method="labeled", metrics=[*METRICS])
    b = estimates_of(fl.Predictions(P, w.shown), method="labeled", metrics=[*METRICS])
    np.testing.assert_array_equal(bounds(a), bounds(b))


@pytest.mark.parametrize("method", ["labeled", "ensemble"])
def test_an_item_of_weight_zero_is_as_good_as_absent(method):
    w = world(n=150, models=2, labeled=40, seed=2)
    weight = np.r_[np.ones(120), np.zeros(30)]
    metrics = ["accuracy", "auc", "ece", "brier"]
    a = bounds(estimates_of(w.predictions(weight=weight), method=method, metrics=metrics))
    b = bounds(
        estimates_of(fl.Predictions(w.P[:120], w.shown[:120]), method=method, metrics=metrics)
    )
    np.testing.assert_allclose(a[:, 0], b[:, 0], rtol=0, atol=1e-12)
    width = (a[:, 2] - a[:, 1]) / (b[:, 2] - b[:, 1])
    assert (np.abs(width - 1) < 0.2).all(), width


def test_a_few_heavy_items_count_as_few():
    """Weights 1 for 5 labeled items, 1e-4 for 45: the interval is that of 5 labels, not of 50."""
    y = np.arange(50) % 2
    P = np.where(y == 1, 0.8, 0.2)[:, None]
    weight = np.r_[np.ones(5), np.full(45, 1e-4)]
    heavy = estimates_of(
        fl.Predictions(P, y, weight=weight), method="labeled", metrics=["accuracy"]
    )
    five = estimates_of(fl.Predictions(P[:5], y[:5]), method="labeled", metrics=["accuracy"])
    fifty = estimates_of(fl.Predictions(P, y), method="labeled", metrics=["accuracy"])
    assert heavy.rows[0].low < 0.5 * (five.rows[0].low + fifty.rows[0].low)


@pytest.mark.slow
def test_one_core_or_two_the_same_bits():
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores and a way to give one up")
    program = (
        "import sys, os, numpy as np, fewlabels as fl\n"
        "if sys.argv[1] == '1': os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "r = np.random.default_rng(0); y = r.integers(0, 2, 3000)\n"
        "p = 1 / (1 + np.exp(-(2 * y - 1)[:, None] - r.normal(size=(3000, 4))))\n"
        "q = fl.Predictions(p, np.where(np.arange(3000) < 60, y, -1))\n"
        "for m in ('labeled', 'tempered-ensemble', 'ensemble', 'ssme-kde'):\n"
        "    e = fl.estimate(q, method=m, metrics=['accuracy', 'auc', 'auprc', 'ece'])\n"
        "    print(np.array([x[3:6] for x in e.rows]).tobytes().hex())\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program, cores], capture_output=True, text=True, check=True
        ).stdout
        for cores in "12"
    ]
    assert outputs[0] == outputs[1]


# coverage


@pytest.mark.slow
@pytest.mark.parametrize("labeled", [10, 40])
def test_tempered_intervals_cover_in_a_world_drawn_from_the_prior(labeled):
    """Labels drawn from the model itself: 80% intervals of both estimands cover 80%, or more."""
    rng = np.random.default_rng(labeled)
    names = ("accuracy", "brier", "roc_auc", "ece")
    big = world(n=3000, models=3, labeled=0, seed=77, strength=1.5)
    hits: dict[tuple[str, str], list[float]] = defaultdict(list)
    for r, Q in enumerate(NaiveTempered(big.P, big.shown).draws(80, rng)):
        truth = (rng.random(3000) < Q[:, 1]).astype(int)
        rows = rng.choice(3000, 250, replace=False)
        shown = np.where(np.arange(250) < labeled, truth[rows], -1)
        for estimand in ("population", "sample"):
            estimates = estimates_of(
                fl.Predictions(big.P[rows], shown),
                metrics=[*names],
                estimand=estimand,
                confidence_level=0.8,
                random_state=r,
            )
            for name in names:
                row = estimates.get("model1", name)
                if estimand == "population":
                    true = soft_metric(name, big.P[:, 1], Q)
                else:
                    true = metric(name, big.P[rows, 1], truth[rows])
                hits[estimand, name].append(row.low <= true <= row.high)
    for key, hit in hits.items():
        assert np.mean(hit) > 0.8 - 3.5 * np.sqrt(0.8 * 0.2 / len(hit)), (key, np.mean(hit))


@pytest.fixture(scope="module")
def labeled_only():
    """Hits of 90% intervals of `labeled`, and of Jeffreys' where the metric is a proportion."""
    big = world(n=40000, models=1, labeled=0, seed=7, strength=1.5)
    P, hard = big.P[:, 0], big.P[:, 0].argmax(axis=1)
    names = ("accuracy", "precision", "recall", "specificity", "roc_auc", "brier", "ece")
    out = {}
    for prevalence, n in ((0.5, 20), (0.1, 20), (0.5, 100), (0.1, 100)):
        rng = np.random.default_rng([int(10 * prevalence), n])
        share = np.where(big.truth == 1, prevalence, 1 - prevalence)
        weight = share / np.bincount(big.truth)[big.truth]
        true = {name: metric(name, P, big.truth, weight) for name in names}
        hits = defaultdict(list)
        for r in range(150):
            rows = rng.choice(len(P), n, p=weight / weight.sum())
            y, says = big.truth[rows], hard[rows]
            estimates = estimates_of(
                fl.Predictions(P[rows][:, None], y),
                method="labeled",
                metrics=[*names],
                confidence_level=0.9,
                random_state=r,
            )
            among = {
                "accuracy": np.ones(n, bool),
                "precision": says == 1,
                "recall": y == 1,
                "specificity": y == 0,
            }
            for row in estimates.rows:
                if np.isnan(row.value):
                    continue
                hits[row.metric].append(row.low <= true[row.metric] <= row.high)
                if row.metric in among:
                    m = among[row.metric].sum()
                    k = (among[row.metric] & (y == says)).sum()
                    low, high = scipy.stats.beta(k + 0.5, m - k + 0.5).ppf([0.05, 0.95])
                    hits["Jeffreys " + row.metric].append(low <= true[row.metric] <= high)
        out[prevalence, n] = {name: np.array(h, dtype=float) for name, h in hits.items()}
    return out


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("prevalence", [0.5, 0.1])
@pytest.mark.parametrize("name", ["accuracy", "precision", "recall", "specificity"])
def test_proportions_cover_as_well_as_jeffreys(labeled_only, name, prevalence, n):
    """The same samples, paired: no worse than Jeffreys on the items that the metric is about."""
    hits = labeled_only[prevalence, n]
    worse = hits["Jeffreys " + name] - hits[name]
    se = np.sqrt(worse.var(ddof=1) / len(worse))
    assert worse.mean() <= 3.5 * se, (hits[name].mean(), hits["Jeffreys " + name].mean())


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("prevalence", [0.5, 0.1])
@pytest.mark.parametrize("name", ["roc_auc", "brier", "ece"])
def test_labeled_intervals_cover(labeled_only, name, prevalence, n):
    """At most four standard errors below 90%; the plug-in ECE of few items is biased upwards."""
    hits = labeled_only[prevalence, n][name]
    assert hits.mean() > 0.9 - 4 * np.sqrt(0.09 / len(hits)), hits.mean()


def test_nothing_right_among_three_is_no_proof_of_zero():
    """Precision 0 of 3, 90%: Jeffreys' interval reaches .44; half of that is the least."""
    y = np.r_[np.zeros(18), np.ones(2)].astype(int)
    p = np.r_[np.full(3, 0.8), np.full(17, 0.2)][:, None]
    rows = [
        estimates_of(
            fl.Predictions(p, y),
            method="labeled",
            metrics=["precision"],
            confidence_level=0.9,
            random_state=r,
        ).rows[0]
        for r in range(4)
    ]
    assert rows[0].value == 0
    assert np.mean([row.high for row in rows]) > 0.5 * scipy.stats.beta(0.5, 3.5).ppf(0.95)


def test_the_ece_interval_of_a_calibrated_classifier_reaches_down():
    """Labels drawn from the classifier's own probabilities: the population ECE is exactly 0.

    The plug-in value is about .2 at n = 20; an interval that starts above .1 denies the truth.
    """
    rng = np.random.default_rng(8)
    lows = []
    for r in range(20):
        p = rng.random(20)
        y = (rng.random(20) < p).astype(int)
        predictions = fl.Predictions(p[:, None], y)
        row = estimates_of(predictions, method="labeled", metrics=["ece"], random_state=r).rows[0]
        lows.append(row.low)
    assert np.median(lows) < 0.05, lows


# odd data: never a crash, a Python warning (they are errors here) or a number out of bounds


@cache
def _odd() -> dict[str, fl.Predictions]:
    w = world(n=60, models=2, labeled=15, seed=1)
    some = np.r_[0, 1, np.full(28, -1)]
    constant = w.P.copy()
    constant[:, 0] = 0.5
    skewed = w.P.copy()
    skewed[:, 0] = [0.3, 0.7]
    absent = w.P.copy()
    absent[:, 1] = np.nan
    bare = w.P.copy()
    bare[:10] = np.nan
    unlabeled = w.P.copy()
    unlabeled[w.shown >= 0, 0] = np.nan
    many = world(n=100, models=2, classes=20, labeled=30, seed=3)
    return {
        "a constant classifier": fl.Predictions(constant, w.shown),
        "a constant classifier of .7": fl.Predictions(skewed, w.shown),
        "all constant": fl.Predictions(np.full((30, 2), 0.5), some),
        "all zero": fl.Predictions(np.zeros((30, 2)), some),
        "all one": fl.Predictions(np.ones((30, 2)), some),
        "zeros and ones": fl.Predictions(np.round(w.P[:, :, 1]), w.shown),
        "tiny": fl.Predictions(w.P[:, :, 1] * 1e-300, w.shown),
        "a model without predictions": fl.Predictions(absent, w.shown),
        "items without predictions": fl.Predictions(bare, w.shown),
        "a model absent where labels are": fl.Predictions(unlabeled, w.shown),
        "one item": fl.Predictions([[0.7, 0.6]]),
        "one labeled item": fl.Predictions([[0.7, 0.6]], [1]),
        "two items": fl.Predictions([[0.7, 0.6], [0.2, 0.3]], [1, -1]),
        "identical items": fl.Predictions(
            np.full((50, 2), 0.8), np.r_[np.ones(5), np.full(45, -1)]
        ),
        "more models than labels": fl.Predictions(
            np.random.default_rng(0).random((80, 30)), np.r_[0, 1, 0, 1, np.full(76, -1)]
        ),
        "twenty classes": many.predictions(),
        "one heavy item": fl.Predictions(w.P, w.shown, weight=np.r_[1e6, np.ones(59)]),
        "labels weigh nothing": fl.Predictions(w.P, w.shown, weight=(w.shown < 0) * 1.0),
        "opinions instead of labels": fl.Predictions(w.P, histogram=np.eye(2)[w.truth] * 5),
        "always wrong": fl.Predictions(w.P[:, :, ::-1], w.shown),
    }


@pytest.mark.product
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", _odd())
def test_odd_data(name, method):
    predictions = _odd()[name]
    estimates = estimates_of(
        predictions, method=method, metrics=["accuracy", "roc_auc", "ece", "log_loss", "f1"]
    )
    for row in estimates.rows:
        if np.isnan(row.value):
            assert row.status in (fl.Status.UNDEFINED, fl.Status.NOT_APPLICABLE)
        else:
            assert row.low <= row.value <= row.high
            assert row.low >= 0
            assert row.high <= (np.inf if row.metric == "log_loss" else 1)
    marginals = estimates.posterior.marginals()
    assert np.isfinite(marginals).all()
    np.testing.assert_allclose(marginals.sum(axis=1), 1, atol=1e-9)


@pytest.mark.parametrize("method", ["tempered-ensemble", "ensemble", "ssme-kde"])
def test_the_auc_of_one_unlabeled_item_is_not_known_exactly(method):
    """One item alone has a soft AUC of 1/2 by ties with itself; its population has not."""
    w = world(n=60, models=2, labeled=15, seed=1)
    predictions = w.predictions(groups={"g": np.r_[[0], np.ones(59)].astype(int)})
    assert w.shown[0] < 0
    estimates = estimates_of(predictions, method=method, metrics=["roc_auc"], by="g")
    row = estimates.get("a", "roc_auc", "g=0")
    assert np.isnan(row.value) or row.high > row.low


@pytest.mark.parametrize("method", METHODS)
def test_one_unlabeled_item_leaves_a_doubt_about_the_sample(method):
    w = world(n=60, models=2, labeled=60, seed=1)
    doubtful = int(np.argmin(np.abs(w.P[:, :, 1].mean(axis=1) - 0.5)))
    shown = np.where(np.arange(60) == doubtful, -1, w.truth)
    estimates = estimates_of(
        w.predictions(labels=shown), method=method, metrics=["accuracy"], estimand="sample"
    )
    for row in estimates.rows:
        assert 0 < row.high - row.low <= 1 / 60 + 1e-12, row
