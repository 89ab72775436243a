"""Intervals: ordered, in bounds, never collapsed, nested; Jeffreys for `labeled`."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from reference_naive import METRICS
from reference_questions import estimates_of

import fewlabels as fl
from worlds import world

METHODS = ("labeled", "tempered-ensemble", "ensemble", "ssme-kde")
UPPER = {"log_loss": math.inf}


def check(row: fl.estimates.Estimate, classes: int = 2, *, width: bool = True) -> None:
    where = tuple(row)
    assert row.low <= row.value <= row.high, where
    assert row.low >= 0, where
    assert row.high <= UPPER.get(
        row.metric, 2.0 if row.metric == "brier" and classes > 2 else 1.0
    ), where
    if width:
        assert row.high - row.low > 1e-3, where


def perfect(n: int, labeled: int, classes: int = 2, models: int = 2) -> fl.Predictions:
    """Classifiers that are right wherever there is a label, and sure of it nowhere."""
    rng = np.random.default_rng(n + labeled)
    truth = np.arange(n) % classes
    P = rng.dirichlet(np.ones(classes), size=(n, models)) * 0.3
    P[np.arange(n), :, truth] += 0.7
    labels = np.where(np.arange(n) < labeled, truth, -1)
    return fl.Predictions(
        P, labels, groups={"side": np.where(np.arange(n) % 4 < 2, "left", "right")}
    )


@pytest.mark.product
@pytest.mark.parametrize("estimand", ["population", "sample"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("classes", [2, 3])
def test_twenty_labels_all_correct(method, classes, estimand):
    estimates = estimates_of(
        perfect(220, 20, classes), method=method, metrics=[*METRICS], by="side", estimand=estimand
    )
    for row in estimates.rows:
        if row.status != fl.Status.UNDEFINED:
            check(row, classes)
    assert all(math.isfinite(row.value) for row in estimates.rows)
    if method == "labeled":
        row = estimates.get("model0", "accuracy")
        assert row.value == 1
        # 20 of 20 right is no proof of more than about .86
        assert row.low < 0.95


@pytest.mark.parametrize("method", METHODS)
def test_all_twenty_items_labeled_and_correct(method):
    predictions = perfect(20, 20)
    population = estimates_of(
        predictions, method=method, metrics=["accuracy", "error_rate", "roc_auc", "brier", "ece"]
    )
    for row in population.rows:
        check(row)
    sample = estimates_of(
        predictions, method=method, metrics=[*METRICS], by="side", estimand="sample"
    )
    for row in sample.rows:
        assert row.low == row.value == row.high, tuple(row)


@pytest.mark.product
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_sample_with_all_labels_is_certain_for_every_metric(method, ties):
    for classes in (2, 3):
        w = world(n=60, models=2, classes=classes, labeled=60, seed=1, strength=1.0, ties=ties)
        weight = np.random.default_rng(0).gamma(2.0, size=60)
        estimates = estimates_of(
            w.predictions(weight=weight), method=method, metrics=[*METRICS], estimand="sample"
        )
        for row in estimates.rows:
            assert row.low == row.value == row.high, tuple(row)


@pytest.mark.product
@pytest.mark.parametrize("estimand", ["population", "sample"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_class_without_labels(method, classes, estimand):
    w = world(n=200, models=2, classes=classes, labeled=30, seed=2)
    shown = np.where(w.shown == classes - 1, -1, w.shown)
    estimates = estimates_of(
        w.predictions(labels=shown), method=method, metrics=[*METRICS], estimand=estimand
    )
    for row in estimates.rows:
        if math.isnan(row.value):
            assert row.status == fl.Status.UNDEFINED
            assert method == "labeled"
        else:
            check(row, classes)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
@pytest.mark.parametrize(
    ("right", "n"),
    [(1, 1), (0, 2), (0, 10), (5, 10), (9, 10), (20, 20), (17, 20), (10, 20), (80, 100), (99, 100)],
)
def test_labeled_accuracy_is_the_jeffreys_interval(right, n, level):
    """Quantiles of Beta(k + 1/2, n - k + 1/2), in units of the Monte Carlo error of a quantile."""
    y = np.arange(n) % 2
    says = np.where(np.arange(n) < right, y, 1 - y)
    P = np.where(says == 1, 0.8, 0.2)[:, None]
    estimates = estimates_of(
        fl.Predictions(P, y), method="labeled", metrics=["accuracy"], confidence_level=level
    )
    row = estimates.rows[0]
    size = len(estimates.draws["accuracy", None])
    beta = scipy.stats.beta(right + 0.5, n - right + 0.5)
    assert row.value == right / n
    for tail, got in (((1 - level) / 2, row.low), ((1 + level) / 2, row.high)):
        wanted = beta.ppf(tail)
        # widened, where the value itself lies outside the equal-tailed interval
        wanted = min(wanted, row.value) if tail < 0.5 else max(wanted, row.value)
        se = math.sqrt(tail * (1 - tail) / size) / beta.pdf(beta.ppf(tail))
        assert abs(got - wanted) < 4.5 * se, (got, wanted, se)


@pytest.mark.parametrize("method", METHODS)
def test_more_labels_make_narrower_intervals(method):
    full = world(n=1000, models=2, labeled=1000, seed=5)
    widths = []
    for labeled in (20, 200, 1000):
        shown = np.where(np.arange(1000) < labeled, full.truth, -1)
        row = estimates_of(
            full.predictions(labels=shown), method=method, metrics=["accuracy"]
        ).rows[0]
        widths.append(row.high - row.low)
    assert widths[2] < widths[0]
    if method in ("labeled", "tempered-ensemble"):
        assert widths[0] > widths[1] > widths[2]


@pytest.mark.parametrize("method", ["labeled", "tempered-ensemble", "ensemble"])
def test_with_all_labels_the_population_interval_is_the_binomial_one(method):
    """Nothing is left to infer but sampling: the Jeffreys interval, whatever the method."""
    w = world(n=300, models=1, labeled=300, seed=6)
    right = int((w.P[:, 0].argmax(axis=1) == w.truth).sum())
    row = estimates_of(w.predictions(), method=method, metrics=["accuracy"]).rows[0]
    low, high = scipy.stats.beta(right + 0.5, 300 - right + 0.5).ppf([0.025, 0.975])
    assert row.high - row.low == pytest.approx(high - low, rel=0.2)


@pytest.mark.parametrize("method", ["tempered-ensemble", "ensemble", "ssme-kde"])
def test_the_sample_is_known_better_than_the_population(method):
    w = world(n=60, models=2, labeled=50, seed=7)
    population = estimates_of(w.predictions(), method=method, metrics=["accuracy", "brier"])
    sample = estimates_of(
        w.predictions(), method=method, metrics=["accuracy", "brier"], estimand="sample"
    )
    for a, b in zip(population.rows, sample.rows, strict=True):
        assert b.high - b.low < 0.8 * (a.high - a.low), (a, b)


@pytest.mark.parametrize("method", METHODS)
def test_a_users_function_is_not_certain_after_twenty_right_answers(method):
    def share_right(y_true, y_proba):
        return float(np.mean((y_proba > 0.5) == y_true))

    for predictions in (perfect(220, 20), perfect(20, 20)):
        for row in estimates_of(predictions, method=method, metrics=[share_right]).rows:
            check(row)


@pytest.mark.product
@pytest.mark.parametrize("estimand", ["population", "sample"])
@pytest.mark.parametrize("method", METHODS)
def test_a_users_function_works_for_both_estimands(method, estimand):
    def share_right(y_true, y_proba):
        return float(np.mean((y_proba > 0.5) == y_true))

    w = world(n=80, models=2, labeled=30, seed=17)
    estimates = estimates_of(
        w.predictions(), method=method, metrics=[share_right, "accuracy"], estimand=estimand
    )
    for model in w.models:
        mine, theirs = (estimates.get(model, k) for k in ("share_right", "accuracy"))
        check(mine)
        width = theirs.high - theirs.low
        assert abs(mine.value - theirs.value) < 0.3 * width
        assert abs(mine.low - theirs.low) < 0.35 * width
        assert abs(mine.high - theirs.high) < 0.35 * width


@pytest.mark.parametrize("method", METHODS)
def test_a_users_function_is_certain_of_a_sample_with_all_labels(method):
    def share_right(y_true, y_proba):
        return float(np.mean((y_proba > 0.5) == y_true))

    w = world(n=60, models=2, labeled=60, seed=1)
    estimates = estimates_of(
        w.predictions(), method=method, metrics=[share_right], estimand="sample"
    )
    for row in estimates.rows:
        assert row.low == row.value == row.high, tuple(row)
