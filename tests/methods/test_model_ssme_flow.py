"""SSME-NF: what is particular to it."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.methods.baselines.plain import Ensemble
from fewlabels.methods.ssme.flow import SSMEFlow
from fewlabels.methods.ssme.flow_training import (
    Items,
    LatentMixture,
    MixturePrior,
    Moments,
    Training,
    TrainingOptions,
    mean_log_likelihood,
)
from fewlabels.methods.ssme.real_nvp import RealNVP
from naive_flow import naive_flow

SMALL = {"n_couplings": 4, "hidden": 16, "flow_epochs": 40, "joint_epochs": 60}


def logistic(s: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-s))


def clusters(n: int = 300, known: int = 20, seed: int = 0) -> tuple[fl.Predictions, np.ndarray]:
    """Two classifiers, well separated classes."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(int)
    p = logistic(4 * (truth[:, None] - 0.5) + rng.normal(size=(n, 2)))
    return fl.Predictions(p, np.where(np.arange(n) < known, truth, -1)), truth


def saturated(n: int = 400, n_models: int = 10, k: int = 10) -> tuple[fl.Predictions, np.ndarray]:
    """Ten classifiers of ten classes, most of whose probabilities are exactly 0 or 1."""
    rng = np.random.default_rng(0)
    truth = rng.integers(k, size=n)
    logits = 6.0 * np.eye(k)[truth][:, None, :] + 3 * rng.normal(size=(n, n_models, k))
    p = np.exp(logits - logits.max(axis=2, keepdims=True))
    p /= p.sum(axis=2, keepdims=True)
    certain = p.max(axis=2) > 0.7
    p[certain] = np.eye(k)[p[certain].argmax(axis=1)]
    p[n // 2 :] = p[: n - n // 2]
    truth[n // 2 :] = truth[: n - n // 2]
    return fl.Predictions(p, np.where(np.arange(n) < 50, truth, -1)), truth


def mixture(k: int, d: int, seed: int = 0) -> LatentMixture:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(k, d, d))
    covariances = root @ root.transpose(0, 2, 1) / d + 0.3 * np.eye(d)
    return LatentMixture(rng.normal(size=(k, d)), covariances, rng.dirichlet(np.ones(k)))


def evidence_of_kinds(k: int, n: int) -> np.ndarray:
    """Known labels, labels of annotators, and none, by turns, (k, n)."""
    out = np.zeros((k, n))
    out[:, ::3] = -np.inf
    out[np.arange(0, n, 3) % k, np.arange(0, n, 3)] = 0
    out[:, 1::3] = np.log(np.random.default_rng(0).dirichlet(np.ones(k), len(out[0, 1::3]))).T
    return out


@pytest.mark.parametrize("d", [1, 2, 4])
def test_gradient_of_the_objective_is_that_of_automatic_differentiation(d):
    autograd = pytest.importorskip("autograd")
    anp = autograd.numpy
    k, n = 3, 7
    rng = np.random.default_rng(1)
    flow = RealNVP(d, 4, 6, np.float64)
    own = mixture(k, d)
    prior = MixturePrior(own.means, np.eye(d), own.shares, 1.0)
    items = Items(rng.normal(size=(d, n)), evidence_of_kinds(k, n), rng.random(n))
    options = TrainingOptions(1, 1, 0.01, 0.0, 0.0, 1)
    training = Training(flow, prior, options, items, None, rng)
    training.parameters += rng.normal(scale=0.3, size=flow.size)

    def loss(parameters):
        total = 0.0
        for i in range(n):
            z, log_det = naive_flow(anp, flow, parameters, items.scores[:, i])
            terms = []
            for c in range(k):
                if np.isneginf(items.evidence[c, i]):
                    continue
                off = z - own.means[c]
                distance = anp.dot(off, anp.dot(np.linalg.inv(own.covariances[c]), off))
                log_normal = -0.5 * (
                    distance + np.linalg.slogdet(2 * np.pi * own.covariances[c])[1]
                )
                terms.append(log_normal + np.log(own.shares[c]) + items.evidence[c, i])
            likelihood = anp.log(anp.sum(anp.exp(anp.array(terms)))) + log_det
            total = total + items.weight[i] * likelihood
        return total / items.weight.sum()

    value, _ = training._epoch(own, True)
    assert value == pytest.approx(loss(training.parameters), abs=1e-10)
    assert value == pytest.approx(
        mean_log_likelihood(flow, training.parameters, own, items), abs=1e-12
    )
    expected = autograd.grad(loss)(training.parameters)
    np.testing.assert_allclose(training._gradient, expected, rtol=1e-8, atol=1e-10)


def test_m_step_is_the_mode_under_the_prior():
    """A class's mean and covariance from its items, one pseudo-item and the prior's members."""
    rng = np.random.default_rng(0)
    z, weight = rng.normal(size=(2, 50)), rng.random((3, 50))
    prior = MixturePrior(rng.normal(size=(3, 2)), np.array([[2.0, 0.5], [0.5, 1.0]]),
                         np.array([0.2, 0.3, 0.5]), 4.0)  # fmt: skip
    around = rng.normal(size=(3, 2))
    off = z[None] - around[:, :, None]
    moments = Moments(
        weight.sum(axis=1),
        (weight[:, None] * off).sum(axis=2),
        np.einsum("kn,kin,kjn->kij", weight, off, off),
    )
    found = prior.update(moments, around)
    for k in range(3):
        points = np.vstack([z.T, prior.means[k]])
        w = np.r_[weight[k], 1]
        mean = np.average(points, axis=0, weights=w)
        scatter = ((points - mean).T * w) @ (points - mean) + 4 * prior.covariance
        np.testing.assert_allclose(found.means[k], mean)
        np.testing.assert_allclose(found.covariances[k], scatter / (weight[k].sum() + 4))
    assert found.shares.sum() == pytest.approx(1)


def test_recovers_a_gaussian_world():
    """Scores drawn from Gaussians per class: Bayes' rule gives the posterior exactly."""
    rng = np.random.default_rng(0)
    n, shares = 1500, np.array([0.6, 0.4])
    means = np.array([[-3.0, -0.5], [-1.0, 1.0]])
    covariances = np.array([[[0.5, 0.2], [0.2, 0.6]], [[0.4, -0.1], [-0.1, 0.5]]])
    truth = (rng.random(n) < shares[1]).astype(int)
    s = np.array([rng.multivariate_normal(means[k], covariances[k]) for k in truth])
    log = np.empty((n, 2))
    for k in range(2):
        off = s - means[k]
        log[:, k] = np.log(shares[k]) - 0.5 * np.linalg.slogdet(covariances[k])[1]
        log[:, k] -= 0.5 * np.einsum("ni,ij,nj->n", off, np.linalg.inv(covariances[k]), off)
    exact = logistic(log[:, 1] - log[:, 0])
    predictions = fl.Predictions(logistic(s), np.where(np.arange(n) < 30, truth, -1))
    unlabeled = ~predictions.labeled
    found = SSMEFlow(**SMALL).infer(predictions, 0).marginals()[:, 1]
    start = Ensemble().infer(predictions, 0).marginals()[:, 1]
    gap = [np.abs(p - exact)[unlabeled].mean() for p in (found, start)]
    assert gap[0] < 0.05 < 0.2 < gap[1]


def test_a_known_label_is_a_case_of_soft_evidence():
    """A histogram so large that it leaves no doubt trains the flow as a label does."""
    predictions, truth = clusters()
    histogram = np.zeros((300, 2))
    histogram[np.arange(20), truth[:20]] = 1e4
    options = {**SMALL, "flow_epochs": 5, "joint_epochs": 5, "noise": 0.0}
    hard = SSMEFlow(**options).infer(predictions, 0).marginals()
    soft = SSMEFlow(**options).infer(
        fl.Predictions(predictions.probabilities, histogram=histogram), 0
    )
    np.testing.assert_allclose(soft.marginals(), hard, atol=1e-4)


@pytest.mark.slow
def test_the_papers_size_is_stable():
    """A thousand epochs of the full flow: no collapse onto copies of rows, no class lost."""
    predictions, truth = saturated(n=1000)
    posterior = SSMEFlow().infer(predictions, 0)
    assert posterior.status == "ok"
    assert posterior.diagnostics["epochs"] == 1000
    assert posterior.diagnostics["smallest_class_share"] > 0.05
    assert (posterior.marginals().argmax(axis=1) == truth)[50:].mean() > 0.9


def test_the_papers_second_stage_is_em_alone():
    """Flow fixed, no prior of the covariances: every EM step raises the likelihood."""
    predictions, _ = clusters()

    def fitted(epochs: int):
        options = SMALL | {"joint_epochs": epochs, "noise": 0.0, "dtype": "float64"}
        model = SSMEFlow(**options, joint=False, covariance_prior=0.0)
        return model.fit(predictions, np.random.default_rng(0))

    few, more, most = (fitted(n).trained for n in (1, 10, 200))
    np.testing.assert_array_equal(few.parameters, most.parameters)
    assert few.log_likelihood < more.log_likelihood < most.log_likelihood + 1e-6
    both = SSMEFlow(**SMALL).fit(predictions, np.random.default_rng(0)).trained
    assert not np.array_equal(both.parameters, few.parameters)


def test_a_class_without_members_needs_no_prior():
    """Of 300 items none is of the third class: its covariance has its floor, and nothing breaks."""
    predictions, _ = clusters()
    p = np.concatenate([predictions.probabilities * 0.999, np.full((300, 2, 1), 0.001)], axis=2)
    model = SSMEFlow(**SMALL, joint=False, covariance_prior=0.0)
    found = model.infer(fl.Predictions(p, predictions.labels, classes=(0, 1, 2)), 0)
    assert np.isfinite(found.marginals()).all()


@pytest.mark.slow
def test_early_stopping_keeps_the_best_epoch():
    """With no noise and few items a flow learns them by heart; held-out items notice."""
    predictions, _ = clusters(n=150)
    options = {"noise": 0.0, "learning_rate": 5e-3, "flow_epochs": 150, "joint_epochs": 150}
    long = SSMEFlow(**options).infer(predictions, 0).diagnostics
    short = SSMEFlow(**options, validation_share=0.3, patience=10).infer(predictions, 0).diagnostics
    assert long["epochs"] == 300
    assert long["log_likelihood_held_out"] is None
    assert not long["stopped_early"]
    assert short["stopped_early"]
    assert short["epochs"] < 200
    assert short["log_likelihood"] < long["log_likelihood"]
    assert short["log_likelihood_held_out"] > short["log_likelihood_start"] - 0.5


@pytest.mark.parametrize("rate", [1e30, 300.0])
def test_failure_keeps_the_last_good_flow_and_says_so(rate):
    predictions, _ = clusters()
    posterior = SSMEFlow(**{**SMALL, "learning_rate": rate}).infer(predictions, 0)
    assert posterior.status == "not-converged"
    assert posterior.warnings[0].startswith("not-converged: the likelihood")
    assert np.isfinite(posterior.diagnostics["log_likelihood"])
    np.testing.assert_allclose(posterior.marginals().sum(axis=1), 1)


def test_support_stands_for_the_whole():
    predictions, truth = clusters(n=2000, known=100)
    part = SSMEFlow(**SMALL, max_support=600).infer(predictions, 0)
    assert part.diagnostics["support_points"] == 300
    whole = SSMEFlow(**SMALL).infer(predictions, 0)
    assert np.abs(whole.marginals() - part.marginals()).mean() < 0.03
    rows = np.flatnonzero(predictions.labeled)
    assert (part.marginals()[rows, truth[rows]] == 1).all()


def test_refits_with_equal_weights_stay_at_the_fit(monkeypatch):
    """EM without the noise of training would narrow every Gaussian, and sharpen every posterior."""
    predictions, _ = clusters(600)
    small = SMALL | {"joint_epochs": 200, "learning_rate": 1e-3}
    fitted = SSMEFlow(**small).fit(predictions, np.random.default_rng(0))
    monkeypatch.setattr(
        "fewlabels.methods.ssme.flow.shared_exponentials",
        lambda keys, streams, salt: np.ones((600, 1)),
    )
    (refit,) = fitted.refit(1)
    for now, before in zip(refit.covariances, fitted.trained.mixture.covariances, strict=True):
        change = np.linalg.slogdet(now)[1] - np.linalg.slogdet(before)[1]
        assert abs(change) < 0.2


def test_without_labels_there_is_nothing_to_learn_from_labels_alone():
    with pytest.raises(fl.InputError, match="learns from labels alone, and there are none"):
        SSMEFlow(unlabeled_weight=0).infer(clusters(known=0)[0], 0)
