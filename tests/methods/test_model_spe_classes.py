"""SPE with more than two classes: what it must keep to, and worlds whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import fewlabels as fl
from fewlabels.methods.spe.classes import (
    NormalDraws,
    NormalPrior,
    _wishart_root,
    gibbs,
    quadratic_basis,
)
from fewlabels.methods.spe.spe import SPE


def world(
    n_classes: int = 3, n: int = 1000, known: int = 60, separation: float = 3.0, seed: int = 0
) -> tuple[fl.Predictions, np.ndarray]:
    """One classifier whose log-ratios are normal in each class, not calibrated; and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_classes, n, p=rng.dirichlet(np.full(n_classes, 5.0)))
    z = separation * np.eye(n_classes)[truth]
    z = z + rng.normal(size=(n, n_classes)) * (1 + 0.3 * np.arange(n_classes))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    labels = np.where(np.arange(n) < known, truth, -1)
    return fl.Predictions(p[:, None], labels, models=["m"]), truth


@pytest.mark.parametrize(
    ("n_classes", "n", "separation"), [(3, 200, 3), (3, 3000, 2), (10, 800, 5)]
)
def test_labels_are_found(n_classes, n, separation):
    predictions, truth = world(n_classes, n, separation=separation)
    found = SPE().infer(predictions, 0)
    hit = found.marginals().argmax(axis=1) == truth
    own = predictions.hard[:, 0] == truth
    assert hit.mean() > own.mean() - 0.03
    np.testing.assert_allclose(found.marginals().sum(axis=1), 1)
    np.testing.assert_array_equal(found.marginals()[:60].argmax(axis=1), truth[:60])
    shares = found.of(0).diagnostics["prevalence"]
    np.testing.assert_allclose(shares, np.bincount(truth, minlength=n_classes) / n, atol=0.08)


def test_accuracy_is_nearer_than_the_labels_alone():
    errors = []
    for seed in range(6):
        predictions, truth = world(n=300, known=20, seed=seed)
        own = predictions.hard[:, 0] == truth
        found = fl.estimate(predictions, SPE(), "accuracy", confidence_level=None).rows[0].value
        errors.append([abs(found - own.mean()), abs(own[:20].mean() - own.mean())])
    spe, labels = np.mean(errors, axis=0)
    assert spe < 0.5 * labels


def test_order_of_items_and_classes_do_not_show():
    predictions, _ = world(n=400)
    order = np.random.default_rng(1).permutation(400)
    straight, shuffled = (SPE().infer(p, 0) for p in (predictions, predictions.take(order)))
    np.testing.assert_allclose(straight.marginals()[order], shuffled.marginals(), atol=1e-9)
    swap = np.array([2, 0, 1])
    turned = fl.Predictions(
        predictions.probabilities[:, :, swap],
        np.where(predictions.labeled, np.argsort(swap)[predictions.labels], -1),
    )
    other = SPE().infer(turned, 0).marginals()
    assert np.abs(straight.marginals()[:, swap] - other).mean() < 0.01


def test_without_labels_it_says_so():
    predictions, truth = world(known=0)
    found = SPE().infer(predictions, 0)
    assert found.status in ("assumption", "not-converged")
    assert found.warnings[0].startswith("assumption: no labels")
    assert (found.marginals().argmax(axis=1) == truth).mean() > 0.75


def test_missing_predictions_have_the_prevalence():
    predictions, _ = world(n=500)
    p = predictions.probabilities.copy()
    p[400:] = np.nan
    found = SPE().infer(fl.Predictions(p, predictions.labels), 0).of(0)
    assert np.ptp(found.marginals()[400:], axis=0).max() < 1e-12
    np.testing.assert_allclose(found.marginals()[400], found.diagnostics["prevalence"], atol=1e-9)


def test_components_and_saturated_scores():
    predictions, truth = world(n=500)
    hard = np.eye(3)[predictions.hard[:, 0]][:, None]
    found = SPE(components=2).infer(fl.Predictions(hard, predictions.labels), 0)
    assert np.isfinite(found.marginals()).all()
    assert (found.marginals().argmax(axis=1) == truth).mean() > 0.7


def test_heavy_tails_are_said():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=3000)
    z = 3 * np.eye(3)[truth] + rng.standard_t(3, size=(3000, 3))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    labels = np.where(np.arange(3000) < 60, truth, -1)
    found = SPE().infer(fl.Predictions(p[:, None], labels), 0)
    assert "do not follow the fitted normal densities" in " ".join(found.warnings)


# --- Gibbs sampling of normal mixtures: densities and conjugate posteriors


def prior_of(means, mean_items=2.0, covariance_items=5.0) -> NormalPrior:
    k, d = means.shape
    return NormalPrior(means, np.eye(d), mean_items, covariance_items, np.ones(k))


def test_coefficients_are_the_log_density():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(2, 3, 4, 4))
    precisions = root @ root.swapaxes(2, 3) + np.eye(4)
    means, log_weights = rng.normal(size=(2, 3, 4)), np.log(rng.dirichlet(np.ones(3), 2))
    draws = NormalDraws(log_weights, means, precisions)
    z = rng.normal(size=(10, 4))
    found = np.tensordot(quadratic_basis(z), draws.coefficients, axes=1)
    for d in range(2):
        for c in range(3):
            normal = stats.multivariate_normal(means[d, c], np.linalg.inv(precisions[d, c]))
            np.testing.assert_allclose(found[:, d, c], log_weights[d, c] + normal.logpdf(z))


def test_wishart_draws_have_their_moments():
    rng = np.random.default_rng(0)
    scatter = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 3.0]])
    root = _wishart_root(np.tile(scatter, (40_000, 1, 1)), np.full(40_000, 7.0), rng)
    draws = root @ root.swapaxes(1, 2)
    expected = stats.wishart(7, np.linalg.inv(scatter))
    np.testing.assert_allclose(draws.mean(axis=0), expected.mean(), atol=0.08)
    np.testing.assert_allclose(draws.var(axis=0), expected.var(), rtol=0.1, atol=0.05)


def test_known_assignments_give_the_conjugate_posterior():
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=3000)
    z = rng.normal(size=(3000, 2)) * [1.0, 2.0] + np.where(truth[:, None], 1.5, -1.5)
    evidence = np.where(truth[:, None] == np.arange(2), 0.0, -np.inf)
    start = np.where(np.isfinite(evidence), 1.0, 0.0)
    prior = prior_of(np.zeros((2, 2)))
    draws = gibbs(
        z, evidence, np.ones(3000), start, prior, rng, chains=2, warmup=5, size=300, thin=1
    )
    assert len(draws) == 600
    share = np.exp(draws.log_weights)
    assert share.mean(axis=0)[1] == pytest.approx(truth.mean(), abs=0.003)
    assert share.std(axis=0)[1] == pytest.approx(np.sqrt(0.25 / 3000), rel=0.15)
    np.testing.assert_allclose(
        draws.means.mean(axis=0), [z[truth == k].mean(axis=0) for k in (0, 1)], atol=0.02
    )
    np.testing.assert_allclose(
        np.linalg.inv(draws.precisions).mean(axis=0)[0], np.cov(z[truth == 0].T), atol=0.12
    )


def test_weights_count_items():
    rng = np.random.default_rng(2)
    z = rng.normal(size=(100, 2))
    evidence, start = np.zeros((100, 1)), np.ones((100, 1))
    prior = prior_of(np.zeros((1, 2)))
    once, thrice = (
        gibbs(z, evidence, np.full(100, w), start, prior, np.random.default_rng(0),
              chains=4, warmup=5, size=300, thin=1)
        for w in (1.0, 3.0)
    )  # fmt: skip
    ratio = once.means.var(axis=0) / thrice.means.var(axis=0)
    np.testing.assert_allclose(ratio, 3, rtol=0.25)
