"""What every baseline must do with awkward data, and when all labels are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_baselines_cases import (
    CASES,
    hold_to_the_contract,
    votes_only,
)
from reference_baselines_naive import soft_accuracy
from reference_naive import metric
from reference_questions import MEANS, estimates_of

import fewlabels as fl
from worlds import world

MEANS_ONLY = {"autoeval", "active-testing"}
ADDED = (
    "ssme-kde-marginal", "dawid-skene", "majority-vote", "pseudo-label", "bayesian-calibration",
    "autoeval", "active-testing",
)  # fmt: skip
NAMES = ("accuracy", "error_rate", "brier", "log_loss", "roc_auc", "average_precision", "ece", "f1")


@pytest.mark.product
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("method", ADDED)
def test_all_labels_known_is_the_metric_itself(method, classes):
    if method == "bayesian-calibration" and classes > 2:
        pytest.skip("two classes only")
    w = world(n=60, models=2, classes=classes, labeled=60, seed=81, strength=1.0)
    estimates = estimates_of(
        fl.Predictions(w.P, w.truth), method=method, metrics=[*NAMES], estimand="sample"
    )
    for row in estimates.rows:
        if method in MEANS_ONLY and row.metric not in MEANS:
            continue
        wanted = metric(row.metric, w.P[:, int(row.model[-1])], w.truth)
        assert (row.low, row.value, row.high) == pytest.approx([wanted] * 3, abs=1e-9), tuple(row)


@pytest.mark.parametrize("method", ["dawid-skene", "majority-vote", "pseudo-label"])
def test_values_are_those_of_the_marginals(method):
    """The direct expectation over labels (ssme.md section 1): parameters are one estimate."""
    w = world(n=100, models=3, classes=3, labeled=25, seed=83)
    estimates = estimates_of(
        w.predictions(), method=method, metrics=["accuracy"], estimand="sample"
    )
    Q = estimates.posterior.marginals()
    for j, name in enumerate(w.models):
        wanted = soft_accuracy(Q, w.P[:, j].argmax(axis=1))
        assert estimates.get(name, "accuracy").value == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("method", ["dawid-skene", "majority-vote", "pseudo-label"])
def test_values_weigh_the_items_as_they_were_sampled(method):
    w = world(n=100, models=2, labeled=25, seed=80)
    weight = np.random.default_rng(0).gamma(1.0, size=100)
    estimates = estimates_of(
        w.predictions(weight=weight), method=method, metrics=["accuracy"], estimand="sample"
    )
    Q = estimates.posterior.marginals()
    right = [
        np.average(Q[np.arange(100), w.P[:, j].argmax(axis=1)], weights=weight) for j in (0, 1)
    ]
    got = [estimates.get(m, "accuracy").value for m in w.models]
    np.testing.assert_allclose(got, right, rtol=0, atol=1e-9)


# A method may refuse what it cannot use; nothing else.
MAY_REFUSE = {
    ("bayesian-calibration", "absent_class"),
    ("bayesian-calibration", "votes_only"),
    ("pseudo-label", "votes_only"),
    ("ssme-kde-marginal", "votes_only"),
    ("autoeval", "votes_only"),
    ("active-testing", "votes_only"),
}


@pytest.mark.product
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
@pytest.mark.parametrize("method", ADDED)
def test_hard_cases(method, case, rng):
    predictions = case(rng)
    estimates = hold_to_the_contract(predictions, method)
    if (method, case.__name__) in MAY_REFUSE:
        return
    assert estimates is not None
    for row in estimates.rows:
        if method in MEANS_ONLY and row.metric == "ece":
            assert row.status == fl.Status.NOT_APPLICABLE
            continue
        if case is votes_only and row.metric != "accuracy":
            continue
        assert math.isfinite(row.value), tuple(row)
        if row.metric == "accuracy":
            assert row.high - row.low > 1e-3, tuple(row)


@pytest.mark.product
@pytest.mark.parametrize("method", ADDED)
@pytest.mark.parametrize("classes", [2, 3])
def test_identical_classifiers_get_identical_rows(method, classes):
    if method == "bayesian-calibration" and classes > 2:
        pytest.skip("two classes only")
    w = world(n=90, models=1, classes=classes, labeled=25, seed=97)
    predictions = fl.Predictions(np.repeat(w.P, 2, axis=1), w.shown)
    estimates = estimates_of(predictions, method=method, metrics=["accuracy", "brier"])
    for name in ("accuracy", "brier"):
        one, two = (estimates.get(f"model{j}", name) for j in (0, 1))
        if method in ("ssme-kde-marginal", "bayesian-calibration"):
            # fitted apart, each with random draws of its own
            assert np.abs(np.subtract(one[3:6], two[3:6])).max() < 0.3 * (one.high - one.low)
        else:
            np.testing.assert_allclose(one[3:6], two[3:6], rtol=0, atol=1e-9)
        gap = estimates.difference("model0", "model1", name)
        assert gap.low <= 0 <= gap.high
        assert gap.high - gap.low < one.high - one.low
