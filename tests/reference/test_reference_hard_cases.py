"""What every baseline must do with awkward data, and when all labels are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_baselines_cases import (
    CASES,
    hold_to_the_contract,
    one_class,
    one_label,
    three_items,
    votes_only,
)
from reference_baselines_naive import (
    as_probabilities,
    soft_accuracy,
)
from reference_baselines_worlds import (
    MEANS,
    PI_3,
    crowd,
    marginals,
)
from reference_naive import metric
from reference_worlds import world

import fewlabels as fl

MEANS_ONLY = {"autoeval", "active-testing"}
ADDED = (
    "ssme-kde-marginal", "dawid-skene", "majority-vote", "pseudo-label", "bayesian-calibration",
    "autoeval", "active-testing",
)  # fmt: skip
NAMES = ("accuracy", "error_rate", "brier", "log_loss", "roc_auc", "average_precision", "ece", "f1")


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("method", ADDED)
def test_all_labels_known_is_the_metric_itself(method, classes):
    if method == "bayesian-calibration" and classes > 2:
        pytest.skip("two classes only")
    w = world(n=60, models=2, classes=classes, labeled=60, seed=81, strength=1.0)
    estimates = fl.estimate(
        fl.Predictions(w.P, w.truth), method=method, metrics=[*NAMES], estimand="sample"
    )
    for row in estimates.rows:
        if method in MEANS_ONLY and row.metric not in MEANS:
            continue
        wanted = metric(row.metric, w.P[:, int(row.model[-1])], w.truth)
        assert (row.low, row.value, row.high) == pytest.approx([wanted] * 3, abs=1e-9), tuple(row)


@pytest.mark.parametrize("method", ADDED)
def test_the_same_seed_gives_the_same_bits_in_any_order(method):
    w = world(n=80, models=2, labeled=20, seed=82)
    order = np.random.default_rng(0).permutation(80)

    def rows(P, shown):
        estimates = fl.estimate(
            fl.Predictions(P, shown), method=method, metrics=["accuracy", "brier"], random_state=4
        )
        return np.array([r[3:6] for r in estimates.rows])

    first = rows(w.P, w.shown)
    assert np.array_equal(first, rows(w.P, w.shown))
    np.testing.assert_allclose(first, rows(w.P[order], w.shown[order]), rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["dawid-skene", "majority-vote", "pseudo-label"])
def test_values_are_those_of_the_marginals(method):
    """The direct expectation over labels (ssme.md section 1): parameters are one estimate."""
    w = world(n=100, models=3, classes=3, labeled=25, seed=83)
    estimates = fl.estimate(w.predictions(), method=method, metrics=["accuracy"], estimand="sample")
    Q = estimates.posterior.marginals()
    for j, name in enumerate(w.models):
        wanted = soft_accuracy(Q, w.P[:, j].argmax(axis=1))
        assert estimates.get(name, "accuracy").value == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("method", ["dawid-skene", "majority-vote", "pseudo-label"])
def test_values_weigh_the_items_as_they_were_sampled(method):
    w = world(n=100, models=2, labeled=25, seed=80)
    weight = np.random.default_rng(0).gamma(1.0, size=100)
    estimates = fl.estimate(
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


@pytest.mark.parametrize("case", [one_class, one_label, three_items], ids=lambda c: c.__name__)
@pytest.mark.parametrize("method", ADDED)
def test_few_labels_are_admitted(method, case, rng):
    estimates = hold_to_the_contract(case(rng), method)
    assert estimates is not None
    allowed = {"few-labels", "assumption", "not-converged", "not-applicable"}
    assert {str(r.status) for r in estimates.rows} <= allowed
    assert any(str(r.status) != "not-applicable" for r in estimates.rows)


@pytest.mark.parametrize("method", ADDED)
def test_a_group_without_labels_keeps_its_rows(method):
    w = world(n=80, models=2, labeled=20, seed=95)
    group = np.where(w.shown >= 0, "seen", np.where(np.arange(80) % 2, "seen", "unseen"))
    estimates = hold_to_the_contract(w.predictions(groups={"g": group}), method, by="g")
    rows = [r for r in estimates.rows if r.group == "g=unseen" and r.metric != "ece"]
    assert len(rows) == 2 * 3
    for row in rows:
        assert math.isfinite(row.value), tuple(row)
        assert row.status in (fl.Status.FEW_LABELS, fl.Status.ASSUMPTION), tuple(row)
        assert row.high - row.low > 1e-3


@pytest.mark.parametrize("method", ADDED)
def test_no_labels_at_all_is_refused_or_admitted(method):
    w = world(n=80, models=3, labeled=0, seed=96)
    estimates = hold_to_the_contract(w.predictions(labels=None), method)
    if estimates is not None:
        for row in estimates.rows:
            assert str(row.status) in (
                "few-labels", "assumption", "not-applicable", "not-converged", "undefined",
            ), tuple(row)  # fmt: skip


@pytest.mark.parametrize("method", ADDED)
@pytest.mark.parametrize("classes", [2, 3])
def test_identical_classifiers_get_identical_rows(method, classes):
    if method == "bayesian-calibration" and classes > 2:
        pytest.skip("two classes only")
    w = world(n=90, models=1, classes=classes, labeled=25, seed=97)
    predictions = fl.Predictions(np.repeat(w.P, 2, axis=1), w.shown)
    estimates = fl.estimate(predictions, method=method, metrics=["accuracy", "brier"])
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


@pytest.mark.parametrize("method", [m for m in ADDED if m != "bayesian-calibration"])
def test_classes_relabelled_relabel_the_posterior(method):
    """Votes know no order of the classes; log-ratios have a reference class (section 1)."""
    if method in ("ssme-kde-marginal", "pseudo-label") or method in MEANS_ONLY:
        pytest.skip("log-ratios depend on the reference class; means have no posterior")
    _, votes, _, shown = crowd(80, PI_3, 20, seed=10)
    turn = np.array([2, 0, 1])
    a = marginals(
        fl.models.METHODS[method].make(), fl.Predictions(as_probabilities(votes, 3), shown)
    )
    turned = fl.Predictions(as_probabilities(turn[votes], 3), np.where(shown < 0, -1, turn[shown]))
    b = marginals(fl.models.METHODS[method].make(), turned)
    np.testing.assert_allclose(a, b[:, turn], rtol=0, atol=1e-9)
