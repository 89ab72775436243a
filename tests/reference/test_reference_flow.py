"""SSME-NF (ssme.md section 1): known worlds, limits and awkward data; never its inner numbers.

Networks are smaller and epochs fewer than the paper's, except where a test is marked slow.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_baselines_cases import CASES, hold_to_the_contract, votes_only
from reference_baselines_naive import gaussian_posterior, soft_accuracy
from reference_naive import metric
from scipy.special import expit

import fewlabels as fl
from worlds import bananas, world


def flow(**options) -> fl.models.LabelModel:
    quick = {"n_couplings": 4, "hidden": 16, "flow_epochs": 30, "joint_epochs": 30, "replicates": 4}
    return fl.models.SSMEFlow(**(quick | options))


def marginals(model, predictions: fl.Predictions, seed: int = 0) -> np.ndarray:
    return model.infer(predictions, np.random.default_rng(seed)).marginals()


def test_the_papers_settings_are_the_defaults():
    """Ten couplings of three layers, 128 wide; 300 epochs, then 700; lambda 1."""
    model = fl.models.SSMEFlow()
    assert (model.n_couplings, model.hidden) == (10, 128)
    assert (model.flow_epochs, model.joint_epochs) == (300, 700)
    assert model.unlabeled_weight == 1
    assert isinstance(fl.models.METHODS["ssme-flow"].make(), fl.models.SSMEFlow)
    assert fl.models.METHODS["ssme-flow"].make() == model


@pytest.mark.parametrize("classes", [2, 3])
def test_all_labels_known_is_the_metric_itself(classes):
    w = world(n=50, models=2, classes=classes, labeled=50, seed=3, strength=1.0)
    names = ["accuracy", "brier", "log_loss", "roc_auc", "average_precision", "ece", "f1"]
    estimates = fl.estimate(w.predictions(), method=flow(), metrics=names, estimand="sample")
    for row in estimates.rows:
        wanted = metric(row.metric, w.P[:, w.models.index(row.model)], w.truth)
        assert (row.low, row.value, row.high) == pytest.approx([wanted] * 3, abs=1e-9), tuple(row)


def test_values_are_those_of_the_marginals():
    w = world(n=100, models=2, labeled=20, seed=4)
    estimates = fl.estimate(w.predictions(), method=flow(), metrics=["accuracy"], estimand="sample")
    Q = estimates.posterior.marginals()
    for j, name in enumerate(w.models):
        wanted = soft_accuracy(Q, w.P[:, j].argmax(axis=1))
        assert estimates.get(name, "accuracy").value == pytest.approx(wanted, abs=1e-9)


# worlds


def found(model, seed: int, n: int = 300) -> tuple[float, float]:
    """Share of unlabeled items that the flow, and the averaged classifier, put rightly."""
    p, truth = bananas(n, np.random.default_rng(seed))
    shown = np.where(np.arange(n) < 10, truth, -1)
    Q = marginals(model, fl.Predictions(p, shown))
    hidden = shown < 0
    mean = (p.mean(axis=1) > 0.5).astype(int)
    return ((Q.argmax(axis=1) == truth)[hidden]).mean(), (mean == truth)[hidden].mean()


TRAINED = {
    "n_couplings": 6, "hidden": 64, "flow_epochs": 50, "joint_epochs": 400,
    "learning_rate": 2e-3, "noise": 0.1,
}  # fmt: skip


@pytest.mark.slow
def test_two_bananas_and_ten_labels():
    right, averaged = found(flow(**TRAINED), seed=0)
    assert averaged < 0.9
    assert right > 0.97


@pytest.mark.slow
def test_two_bananas_as_trained_in_the_paper():
    """In most worlds: the likelihood of a flexible flow has other optima, which cut a crescent."""
    each = [found(fl.models.SSMEFlow(replicates=4), seed) for seed in (1, 2, 3)]
    assert max(averaged for _, averaged in each) < 0.9
    assert np.median([right for right, _ in each]) > 0.95


@pytest.mark.slow
def test_accuracy_on_bananas_is_nearer_than_the_averaged_classifiers():
    p, truth = bananas(300, np.random.default_rng(5))
    shown = np.where(np.arange(300) < 10, truth, -1)
    errors = []
    for method in (flow(**TRAINED), "ensemble"):
        estimates = fl.estimate(
            fl.Predictions(p, shown), method=method, metrics=["accuracy"], estimand="sample",
            confidence_level=None,
        )  # fmt: skip
        true = [((p[:, j] > 0.5) == truth).mean() for j in (0, 1)]
        errors.append(np.abs([r.value for r in estimates.rows] - np.array(true)).mean())
    assert errors[0] < 0.03 < 0.06 < errors[1]


@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_one_classifier_is_a_mixture_of_gaussians(shift):
    """d = 1, half labeled, two Gaussians of log-ratios: their posterior is known in closed form.

    A shift makes the classifier itself wrong about where even odds are.
    """
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 2, 600)
    s = np.where(truth == 1, 1.5, -1.5) + rng.normal(0, 1, 600)
    shown = np.where(np.arange(600) < 300, truth, -1)
    p = expit(s + shift)
    Q = marginals(
        flow(joint_epochs=200, flow_epochs=50, noise=0.05), fl.Predictions(p[:, None], shown)
    )
    wanted = gaussian_posterior(s, np.array([-1.5, 1.5]), 1.0, np.array([0.5, 0.5]))
    gap = np.abs(Q - wanted)[shown < 0, 1]
    assert gap.mean() < 0.03
    assert gap.max() < 0.15


@pytest.mark.slow
def test_ninety_dimensions():
    """Ten classifiers of ten classes: d = M(K - 1) = 90, and only 150 items."""
    w = world(n=150, models=10, classes=10, labeled=30, seed=7, strength=3.0)
    estimates = hold_to_the_contract(w.predictions(), flow())
    Q = estimates.posterior.marginals()
    hidden = w.shown < 0
    averaged = (w.P.mean(axis=1).argmax(axis=1) == w.truth)[hidden].mean()
    assert (Q.argmax(axis=1) == w.truth)[hidden].mean() > averaged - 0.15


def test_labels_pull_the_posterior():
    """The averaged classifier is the wrong way round; many labels say so."""
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 2, 300)
    s = np.where(truth == 1, -2.0, 2.0)[:, None] + rng.normal(0, 0.7, (300, 2))
    shown = np.where(np.arange(300) < 150, truth, -1)
    Q = marginals(flow(flow_epochs=30, joint_epochs=150), fl.Predictions(expit(s), shown))
    hidden = shown < 0
    assert (Q.argmax(axis=1) == truth)[hidden].mean() > 0.95


# awkward data


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_hard_cases(case, rng):
    estimates = hold_to_the_contract(case(rng), flow())
    if case is votes_only:
        return
    assert estimates is not None
    for row in estimates.rows:
        assert math.isfinite(row.value), tuple(row)
        if row.metric == "accuracy":
            assert row.high - row.low > 1e-3, tuple(row)


def test_saturated_scores_that_agree_are_believed():
    """Exact 0 and 1 everywhere, all classifiers right: two points in score space."""
    truth = np.arange(80) % 2
    shown = np.where(np.arange(80) < 12, truth, -1)
    p = np.repeat(truth[:, None].astype(float), 3, axis=1)
    Q = marginals(flow(), fl.Predictions(p, shown))
    np.testing.assert_allclose(Q[:, 1], truth, rtol=0, atol=0.02)
