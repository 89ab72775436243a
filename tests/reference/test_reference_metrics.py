"""Metrics of fully labeled data against scikit-learn and naive loops, to 1e-12."""

from __future__ import annotations

import functools
import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference_naive import ALIASES, METRICS, equal_width_ece, metric, quantile_ece
from reference_questions import estimates_of, values

import fewlabels as fl
from worlds import World, world

WEIGHTED = tuple(m for m in METRICS if m != "ece_quantile")


def the_world(classes: int, ties: bool) -> World:
    return world(n=460, models=3, classes=classes, labeled=400, seed=1, strength=1.2, ties=ties)


def the_weight(classes: int) -> np.ndarray:
    return np.random.default_rng(classes).gamma(1.0, size=460)


@functools.cache
def labeled_estimates(classes: int, ties: bool, weighted: bool) -> fl.Estimates:
    weight = the_weight(classes) if weighted else None
    metrics = [*(WEIGHTED if weighted else METRICS), *ALIASES]
    return estimates_of(
        the_world(classes, ties).predictions(weight=weight), method="labeled", metrics=metrics
    )


@pytest.mark.product(2)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("ties", [False, True], ids=["continuous", "ties"])
@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("name", [*METRICS, *ALIASES])
def test_labeled_value_is_the_plain_metric(name, classes, ties, weighted):
    if weighted and name == "ece_quantile":
        pytest.skip("the weighted quantile rule is not in the contract")
    w = the_world(classes, ties)
    weight = the_weight(classes) if weighted else np.ones(460)
    known = w.shown >= 0
    estimates = labeled_estimates(classes, ties, weighted)
    for j, model in enumerate(w.models):
        P, y = w.P[known, j], w.truth[known]
        wanted = [metric(name, P, y, weight[known])]
        if ties and name in ("ece", "top_label_ece"):
            # tenths lie on edges of the 15 bins, and the contract does not say which side is closed
            binary = classes == 2 and name == "ece"
            p = P[:, 1] if binary else P.max(axis=1)
            hit = (y == 1) if binary else (P.argmax(axis=1) == y)
            wanted.append(equal_width_ece(p, hit.astype(float), weight[known], closed="left"))
        row = estimates.get(model, name)
        assert min(abs(row.value - v) for v in wanted) < 1e-12, (row.value, wanted)


def test_ties_away_from_bin_edges():
    w = the_world(2, True)
    p = w.P[:, :, 1] * 0.98 + 0.005
    known = w.shown >= 0
    estimates = estimates_of(
        fl.Predictions(p, w.shown, models=w.models),
        method="labeled",
        metrics=["ece", "top_label_ece"],
    )
    for j, model in enumerate(w.models):
        P = np.stack([1 - p[known, j], p[known, j]], axis=1)
        for name in ("ece", "top_label_ece"):
            assert abs(estimates.get(model, name).value - metric(name, P, w.truth[known])) < 1e-12


def test_exact_zeros_and_ones():
    rng = np.random.default_rng(0)
    p = rng.choice([0.0, 1e-300, 0.3, 0.7, 1.0], size=(120, 2))
    y = rng.integers(0, 2, 120)
    estimates = estimates_of(
        fl.Predictions(p, y, models=["a", "b"]), method="labeled", metrics=METRICS
    )
    for j, model in enumerate("ab"):
        P = np.stack([1 - p[:, j], p[:, j]], axis=1)
        for name in METRICS:
            assert abs(estimates.get(model, name).value - metric(name, P, y)) < 1e-12, name


def test_quantile_bins_when_quantiles_coincide():
    p = np.repeat([0.1, 0.2, 0.9], [70, 20, 30])[:, None]
    y = np.random.default_rng(3).integers(0, 2, 120)
    got = (
        estimates_of(fl.Predictions(p, y), method="labeled", metrics=["ece_quantile"]).rows[0].value
    )
    assert abs(got - quantile_ece(p[:, 0], y.astype(float))) < 1e-12


@pytest.mark.parametrize(
    "name", ["accuracy", "precision", "recall", "specificity", "f1", "balanced_accuracy"]
)
@pytest.mark.parametrize("classes", [2, 3])
def test_votes_win_over_the_argmax(name, classes):
    w = the_world(classes, False)
    votes = np.random.default_rng(5).integers(0, classes, size=w.P.shape[:2])
    known = w.shown >= 0
    estimates = estimates_of(w.predictions(votes=votes), method="labeled", metrics=[name])
    for j, model in enumerate(w.models):
        wanted = metric(name, w.P[known, j], w.truth[known], hard=votes[known, j])
        assert abs(estimates.get(model, name).value - wanted) < 1e-12


@pytest.mark.parametrize("name", ["roc_auc", "brier", "log_loss", "ece", "average_precision"])
def test_votes_do_not_touch_metrics_of_probabilities(name):
    w = the_world(2, False)
    votes = np.random.default_rng(5).integers(0, 2, size=w.P.shape[:2])
    a = estimates_of(w.predictions(votes=votes), method="labeled", metrics=[name])
    b = estimates_of(w.predictions(), method="labeled", metrics=[name])
    assert np.array_equal(values(a, w.models, (name,)), values(b, w.models, (name,)))


@pytest.mark.parametrize("classes", [2, 3])
def test_a_missing_prediction_is_left_out_of_the_metric(classes):
    w = the_world(classes, False)
    P = w.P.copy()
    gone = np.random.default_rng(9).random(P.shape[:2]) < 0.3
    P[gone] = np.nan
    known = w.shown >= 0
    estimates = estimates_of(
        fl.Predictions(P, w.shown, models=w.models), method="labeled", metrics=METRICS
    )
    for j, model in enumerate(w.models):
        rows = known & ~gone[:, j]
        for name in METRICS:
            wanted = metric(name, w.P[rows, j], w.truth[rows])
            assert abs(estimates.get(model, name).value - wanted) < 1e-12, name


@pytest.mark.parametrize("classes", [2, 3])
def test_probability_metrics_of_votes_are_not_applicable(classes):
    w = the_world(classes, False)
    needs = [
        "roc_auc",
        "average_precision",
        "ece",
        "ece_quantile",
        "top_label_ece",
        "brier",
        "log_loss",
    ]
    estimates = estimates_of(
        fl.Predictions(votes=w.P.argmax(axis=2), labels=w.shown, models=w.models),
        method="labeled",
        metrics=["accuracy", *needs],
    )
    known = w.shown >= 0
    for j, model in enumerate(w.models):
        wanted = metric("accuracy", w.P[known, j], w.truth[known])
        assert abs(estimates.get(model, "accuracy").value - wanted) < 1e-12
        for name in needs:
            row = estimates.get(model, name)
            assert row.status == fl.Status.NOT_APPLICABLE, name
            assert math.isnan(row.value), name
    for row in estimates.to_dict()["estimates"]:
        if row["metric"] in needs:
            assert (row["value"], row["low"], row["high"]) == (None, None, None)
            assert row["status"] == "not-applicable"
    json.dumps(estimates.to_dict(), allow_nan=False)


def test_one_model_with_votes_only_beside_one_with_probabilities():
    w = the_world(2, False)
    P = w.P[:, :2].copy()
    votes = np.full((len(P), 2), -1)
    votes[:, 1] = P[:, 1].argmax(axis=1)
    P[:, 1] = np.nan
    estimates = estimates_of(
        fl.Predictions(P, w.shown, votes=votes, models=["a", "b"]),
        method="labeled",
        metrics=["accuracy", "roc_auc"],
    )
    known = w.shown >= 0
    assert estimates.get("a", "roc_auc").status != fl.Status.NOT_APPLICABLE
    assert estimates.get("b", "roc_auc").status == fl.Status.NOT_APPLICABLE
    wanted = metric("accuracy", w.P[known, 1], w.truth[known])
    assert abs(estimates.get("b", "accuracy").value - wanted) < 1e-12


def test_a_metric_without_the_classes_it_needs_is_undefined():
    w = the_world(2, False)
    shown = np.where((w.shown == 0) & (np.arange(460) < 60), 0, -1)
    estimates = estimates_of(
        w.predictions(labels=shown), method="labeled", metrics=["accuracy", "roc_auc", "recall"]
    )
    for model in w.models:
        for name in ("roc_auc", "recall"):
            row = estimates.get(model, name)
            assert math.isnan(row.value), name
            assert row.status == fl.Status.UNDEFINED, name
        assert estimates.get(model, "accuracy").status == fl.Status.FEW_LABELS
    for row in estimates.to_dict()["estimates"]:
        if row["metric"] != "accuracy":
            assert row["value"] is None
            assert row["status"] == "undefined"


def test_precision_without_a_positive_prediction_is_undefined():
    P = np.random.default_rng(0).uniform(0, 0.4, size=(40, 1))
    y = np.arange(40) % 2
    rows = estimates_of(fl.Predictions(P, y), method="labeled", metrics=["precision", "recall"])
    assert rows.get("model0", "precision").status == fl.Status.UNDEFINED
    assert math.isnan(rows.get("model0", "precision").value)
    assert rows.get("model0", "recall").value == 0


scores = st.lists(st.integers(0, 10), min_size=6, max_size=40)


@settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(data=st.data(), p=scores)
def test_any_small_sample_with_heavy_ties(data, p):
    """Labels of both classes, integer weights: the value equals the naive one, weights included."""
    n = len(p)
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    y[:2] = [0, 1]
    weight = np.array(data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)), dtype=float)
    P = np.stack([1 - np.array(p) / 11, np.array(p) / 11], axis=1)
    names = (
        "accuracy",
        "recall",
        "specificity",
        "roc_auc",
        "average_precision",
        "brier",
        "log_loss",
        "ece",
    )
    estimates = estimates_of(
        fl.Predictions(P[:, 1:], y, weight=weight), method="labeled", metrics=names
    )
    for name in names:
        assert abs(estimates.get("model0", name).value - metric(name, P, y, weight)) < 1e-12, name


@pytest.mark.product
@pytest.mark.parametrize("method", ["labeled", "tempered-ensemble", "ensemble", "ssme-kde"])
@pytest.mark.parametrize("classes", [2, 3])
def test_with_all_labels_known_every_method_is_the_plain_metric(method, classes):
    w = world(n=150, models=2, classes=classes, labeled=150, seed=4, ties=True)
    names = tuple(m for m in METRICS if m not in ("ece", "top_label_ece"))
    estimates = estimates_of(w.predictions(), method=method, metrics=names)
    wanted = [[metric(name, w.P[:, j], w.truth) for name in names] for j in range(2)]
    np.testing.assert_allclose(values(estimates, w.models, names), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", ["tempered-ensemble", "ensemble", "ssme-kde"])
def test_missing_predictions_with_all_labels_known(method):
    w = world(n=120, models=3, classes=3, labeled=120, seed=6)
    P = w.P.copy()
    gone = np.random.default_rng(2).random(P.shape[:2]) < 0.3
    P[gone] = np.nan
    names = ("accuracy", "brier", "roc_auc", "f1")
    estimates = estimates_of(
        fl.Predictions(P, w.truth, models=w.models), method=method, metrics=[*names]
    )
    for j, model in enumerate(w.models):
        rows = ~gone[:, j]
        for name in names:
            wanted = metric(name, w.P[rows, j], w.truth[rows])
            assert abs(estimates.get(model, name).value - wanted) < 1e-12, name
