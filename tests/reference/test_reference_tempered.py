"""The tempered ensemble against an independent reading of its seven steps."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.stats
from reference_naive import NaiveTempered, soft_metric
from reference_questions import estimates_of

import fewlabels as fl
from fewlabels.posterior import LabelPosterior
from worlds import World, world

# A thousand draws of the reference take long: of cases that are alike one is quick.
pytestmark = pytest.mark.slow_with(
    "many-labels", "underconfident", "one-classifier", "one-class-labeled", "five-classes",
    "missing-predictions",
)  # fmt: skip
SEEDS = 10
DRAWS = 200


def _one_class(seed: int) -> World:
    w = world(n=150, models=3, labeled=40, seed=seed)
    return World(w.P, w.truth, np.where(w.shown == 0, 0, -1))


def _missing(classes: int) -> World:
    w = world(n=150, models=4, classes=classes, labeled=30, seed=8)
    P = w.P.copy()
    gone = np.random.default_rng(1).random(P.shape[:2]) < np.array([0.0, 0.1, 0.3, 0.6])
    P[gone] = np.nan
    return World(P, w.truth, w.shown)


def _saturated() -> World:
    w = world(n=150, models=3, labeled=30, seed=12)
    P = w.P.copy()
    P[:, 0] = np.round(P[:, 0])
    P[:, 1] = np.clip(np.round(P[:, 1], 1), 0, 1)
    return World(P, w.truth, w.shown)


CASES = {
    "two-classes": lambda: world(n=150, models=3, labeled=20, seed=1),
    "many-labels": lambda: world(n=200, models=3, labeled=120, seed=2),
    "underconfident": lambda: World(
        (w := world(n=150, models=5, labeled=60, seed=3)).P * 0.3 + 0.35, w.truth, w.shown
    ),
    "three-classes": lambda: world(n=150, models=3, classes=3, labeled=30, seed=4),
    "five-classes": lambda: world(n=120, models=2, classes=5, labeled=25, seed=5),
    "one-classifier": lambda: world(n=150, models=1, labeled=20, seed=6),
    "no-labels": lambda: world(n=150, models=3, labeled=0, seed=7),
    "one-class-labeled": lambda: _one_class(7),
    "missing-predictions": lambda: _missing(2),
    "missing-predictions-three-classes": lambda: _missing(3),
    "zeros-and-ones": _saturated,
}


@functools.cache
def case(name: str) -> World:
    return CASES[name]()


@functools.cache
def reference_draws(name: str) -> np.ndarray:
    w = case(name)
    naive = NaiveTempered(w.P, w.shown)
    return np.array(list(naive.draws(SEEDS * DRAWS, np.random.default_rng(99))))


@functools.cache
def posteriors(name: str) -> tuple[LabelPosterior, ...]:
    predictions = case(name).predictions()
    model = fl.models.TemperedEnsemble()
    return tuple(model.infer(predictions, np.random.default_rng(s)) for s in range(SEEDS))


@pytest.mark.parametrize("name", CASES)
def test_marginals_are_the_posterior_mean(name):
    """Mean over 10 seeds of 200 draws against 2000 draws of the reference: z-scores per entry."""
    reference = reference_draws(name)
    got = np.mean([p.marginals() for p in posteriors(name)], axis=0)
    sd = reference.std(axis=0)
    z = (got - reference.mean(axis=0)) / np.maximum(sd * np.sqrt(2 / len(reference)), 1e-9)
    # entries are driven by a handful of parameters, so the number of comparisons is small
    assert np.abs(z).max() < 5, np.abs(z).max()


@pytest.mark.parametrize("name", CASES)
def test_one_fit_is_within_the_error_of_two_hundred_draws(name):
    reference = reference_draws(name)
    sd = reference.std(axis=0)
    se = sd * np.sqrt(1 / DRAWS + 1 / len(reference))
    got = posteriors(name)[0].marginals()
    assert np.abs((got - reference.mean(axis=0)) / np.maximum(se, 1e-9)).max() < 5


@pytest.mark.parametrize("name", CASES)
def test_parameter_draws_have_the_spread_of_the_mixture(name):
    """Kolmogorov-Smirnov per item, between draws of the library and of the reference."""
    w = case(name)
    items = np.flatnonzero(w.shown < 0)[:12]
    reference = reference_draws(name)[:, items, -1]
    ours = np.concatenate(
        [
            Q[:, items, -1]
            for posterior in posteriors(name)
            for _, Q in posterior.soft_draws(DRAWS, np.random.default_rng(0))
        ]
    )
    smallest = min(
        scipy.stats.ks_2samp(ours[:, i], reference[:, i]).pvalue for i in range(len(items))
    )
    assert smallest > 1e-4 / len(items), smallest


RANKED = ("accuracy", "roc_auc", "average_precision", "ece", "ece_quantile")


@pytest.mark.parametrize(
    ("name", "metrics"),
    [
        ("two-classes", (*RANKED, "brier", "log_loss")),
        ("underconfident", RANKED),
        ("many-labels", RANKED),
        ("no-labels", RANKED),
        ("one-classifier", RANKED),
        ("three-classes", ("accuracy", "roc_auc", "brier", "log_loss", "balanced_accuracy")),
        ("zeros-and-ones", ("accuracy", "roc_auc", "average_precision")),
    ],
)
def test_point_estimate_is_the_average_of_mean_and_median(name, metrics):
    w = case(name)
    size = 60
    reference = reference_draws(name)[:size]
    estimates = [
        estimates_of(
            w.predictions(), method="tempered-ensemble", metrics=[*metrics], random_state=r
        )
        for r in range(3)
    ]
    for metric in metrics:
        each = np.array([soft_metric(metric, w.P[:, 0], Q) for Q in reference])
        wanted = (each.mean() + np.median(each)) / 2
        got = np.mean([e.get("a", metric).value for e in estimates])
        # (mean + median)/2 of a near-normal sample has variance about 1.15 sd^2 / size
        se = each.std() * np.sqrt(1.15 * (1 / (3 * DRAWS) + 1 / size))
        assert abs(got - wanted) / max(se, 1e-12) < 4.5, (metric, got, wanted, se)


@pytest.mark.parametrize("name", CASES)
def test_evidence_and_temperature_are_exact(name):
    """No Monte Carlo here: the MAP fits, their evidence, and s of the log pool."""
    w = case(name)
    naive = NaiveTempered(w.P, w.shown)
    said = posteriors(name)[0].diagnostics
    np.testing.assert_allclose(said["component_weights"], naive.component_weights, atol=1e-6)
    np.testing.assert_allclose(said["log_pool_scale"], naive.s, rtol=1e-6)


def test_without_labels_the_answer_is_the_prior():
    """The marginals barely leave the averaged classifier, and nobody calls that certain."""
    w = case("no-labels")
    got = posteriors("no-labels")[0].marginals()
    naive = NaiveTempered(w.P, w.shown)
    assert np.allclose(naive.component_weights, [0.70, 0.12, 0.06, 0.06, 0.06])
    assert np.abs(got - naive.mean).mean() < 0.05
    assert not (got == np.round(got)).all(axis=1).any()


def test_labels_move_the_temperature():
    """Under-confident classifiers: 60 labels pull the accuracy up towards the truth."""
    w = case("underconfident")
    truth = (w.P[:, 0].argmax(axis=1) == w.truth).mean()
    got = estimates_of(w.predictions(), method="tempered-ensemble", metrics=["accuracy"])
    plain = estimates_of(w.predictions(), method="ensemble", metrics=["accuracy"])
    assert abs(got.get("a", "accuracy").value - truth) < abs(
        plain.get("a", "accuracy").value - truth
    )


def test_model_order_does_not_matter():
    w = case("three-classes")
    a = fl.models.TemperedEnsemble().infer(w.predictions(), np.random.default_rng(0)).marginals()
    turned = World(w.P[:, ::-1], w.truth, w.shown)
    b = (
        fl.models.TemperedEnsemble()
        .infer(turned.predictions(), np.random.default_rng(0))
        .marginals()
    )
    sd = reference_draws("three-classes").std(axis=0)
    assert np.abs((a - b) / np.maximum(sd * np.sqrt(2 / DRAWS), 1e-9)).max() < 5
