"""The agreement-anchored tempered ensemble against an independent reading of its four points."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.stats
from reference_agreement_naive import NaiveAgreement, interval
from reference_naive import soft_metric
from reference_questions import estimates_of

import fewlabels as fl
from fewlabels.posterior import LabelPosterior
from worlds import World, world

SEEDS = 6
DRAWS = 200  # the library's, per fit
REFERENCE = 1500


def _changed(w: World, change) -> World:
    P = w.P.copy()
    change(P)
    return World(P, w.truth, w.shown)


def _one_class() -> World:
    w = world(n=150, models=3, labeled=40, seed=7)
    return World(w.P, w.truth, np.where(w.shown == 0, 0, -1))


def _missing(classes: int) -> World:
    w = world(n=150, models=4, classes=classes, labeled=30, seed=8)
    gone = np.random.default_rng(1).random(w.P.shape[:2]) < np.array([0.0, 0.1, 0.3, 0.6])
    return _changed(w, lambda P: P.__setitem__(gone, np.nan))


def _empty() -> World:
    """Four items without any prediction, two of them labeled, and a classifier without any."""
    w = world(n=150, models=4, labeled=25, seed=21)
    rows = [*np.flatnonzero(w.shown >= 0)[:2], *np.flatnonzero(w.shown < 0)[:2]]

    def change(P: np.ndarray) -> None:
        P[rows] = np.nan
        P[:, 3] = np.nan

    return _changed(w, change)


def _disjoint() -> World:
    def change(P: np.ndarray) -> None:
        P[:75, 0] = np.nan
        P[75:, 1] = np.nan

    return _changed(world(n=150, models=2, labeled=25, seed=22), change)


def _saturated() -> World:
    def change(P: np.ndarray) -> None:
        P[:, 0] = np.round(P[:, 0])
        P[:, 1] = np.clip(np.round(P[:, 1], 1), 0, 1)

    return _changed(world(n=150, models=3, labeled=30, seed=12), change)


def _copies(classes: int) -> World:
    w = world(n=150, models=1, classes=classes, labeled=30, seed=13)
    return World(np.repeat(w.P, 3, axis=1), w.truth, w.shown)


def _third(change, classes: int = 2) -> World:
    """The third of three classifiers, changed: (n, K) -> (n, K)."""
    w = world(n=150, models=3, classes=classes, labeled=25, seed=21)
    return _changed(w, lambda P: P.__setitem__((slice(None), 2), change(P[:, 2])))


CASES = {
    "two-classes": lambda: world(n=150, models=3, labeled=20, seed=1),
    "many-labels": lambda: world(n=200, models=3, labeled=120, seed=2),
    "all-labels-but-few": lambda: world(n=100, models=3, labeled=95, seed=24),
    "three-classes": lambda: world(n=150, models=3, classes=3, labeled=30, seed=4),
    "five-classes-two-classifiers": lambda: world(n=120, models=2, classes=5, labeled=25, seed=5),
    "ten-classes-five-classifiers": lambda: world(
        n=100, models=5, classes=10, labeled=25, seed=15, strength=3.0
    ),
    "one-classifier": lambda: world(n=150, models=1, labeled=20, seed=6),
    "one-classifier-three-classes": lambda: world(n=150, models=1, classes=3, labeled=20, seed=6),
    "no-labels": lambda: world(n=150, models=3, labeled=0, seed=7),
    "one-class-labeled": _one_class,
    "missing-predictions": lambda: _missing(2),
    "missing-predictions-three-classes": lambda: _missing(3),
    "items-and-classifiers-without-predictions": _empty,
    "no-item-in-common": _disjoint,
    "zeros-and-ones": _saturated,
    "only-zeros-and-ones": lambda: _changed(
        world(n=150, models=3, labeled=25, seed=21), lambda P: P.__setitem__(..., np.round(P))
    ),
    "copies": lambda: _copies(2),
    "copies-three-classes": lambda: _copies(3),
    "says-nothing": lambda: _third(lambda p: np.full_like(p, 0.5)),
    "says-nothing-three-classes": lambda: _third(lambda p: np.full_like(p, 1 / 3), 3),
    "says-the-same": lambda: _third(lambda p: np.broadcast_to([0.3, 0.7], p.shape)),
    "underconfident": lambda: _third(lambda p: 0.5 + 0.01 * (p - 0.5)),
    "opposed": lambda: _third(lambda p: p[:, ::-1]),
}
# The best temperature of an opposed classifier is negative; whether it may be is left open.
WEIGHTS_WITHIN = {"opposed": 2e-3}


@functools.cache
def case(name: str) -> World:
    return CASES[name]()


@functools.cache
def naive(name: str) -> NaiveAgreement:
    return NaiveAgreement(case(name).P, case(name).shown)


@functools.cache
def reference_draws(name: str) -> np.ndarray:
    return np.array(list(naive(name).draws(REFERENCE, np.random.default_rng(99))))


def infer(w: World, seed: int = 0) -> LabelPosterior:
    return fl.models.AgreementEnsemble().infer(w.predictions(), np.random.default_rng(seed))


@functools.cache
def posterior(name: str, seed: int = 0) -> LabelPosterior:
    return infer(case(name), seed)


def posteriors(name: str) -> list[LabelPosterior]:
    return [posterior(name, seed) for seed in range(SEEDS)]


FEW = {
    "two-classes", "three-classes", "no-labels", "one-class-labeled",
    "missing-predictions-three-classes", "items-and-classifiers-without-predictions",
}  # fmt: skip
drawn = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in FEW else pytest.mark.slow) for n in CASES]
)


@pytest.mark.parametrize("name", CASES)
def test_evidence_agreement_and_anchor_are_exact(name):
    """No Monte Carlo here: 16 modes, their evidence, the agreement and the slope it asks for."""
    said = posterior(name).diagnostics
    np.testing.assert_allclose(said["agreement"], naive(name).agreement, rtol=1e-12)
    np.testing.assert_allclose(said["anchor"], naive(name).anchors[0], rtol=1e-6)
    np.testing.assert_allclose(
        said["component_weights"],
        naive(name).component_weights,
        rtol=0,
        atol=WEIGHTS_WITHIN.get(name, 1e-6),
    )


@drawn
def test_marginals_are_the_posterior_mean(name):
    """Mean over the seeds of 200 draws against 1500 draws of the reference, z-scores per entry."""
    reference = reference_draws(name)
    got = np.mean([p.marginals() for p in posteriors(name)], axis=0)
    se = reference.std(axis=0) * np.sqrt(1 / (SEEDS * DRAWS) + 1 / REFERENCE)
    z = (got - reference.mean(axis=0)) / np.maximum(se, 1e-9)
    # entries are driven by a handful of parameters, so the number of comparisons is small
    assert np.abs(z).max() < 5, np.abs(z).max()


@drawn
def test_one_fit_is_within_the_error_of_two_hundred_draws(name):
    reference = reference_draws(name)
    se = reference.std(axis=0) * np.sqrt(1 / DRAWS + 1 / REFERENCE)
    z = (posterior(name).marginals() - reference.mean(axis=0)) / np.maximum(se, 1e-9)
    assert np.abs(z).max() < 5, np.abs(z).max()


@drawn
def test_parameter_draws_have_the_spread_of_the_mixture(name):
    """Kolmogorov-Smirnov per item, between draws of the library and of the reference."""
    items = np.flatnonzero(case(name).shown < 0)[:12]
    reference = reference_draws(name)[:, items, -1]
    ours = np.concatenate(
        [
            Q[:, items, -1]
            for each in posteriors(name)
            for _, Q in each.soft_draws(DRAWS, np.random.default_rng(0))
        ]
    )
    assert len(ours) == SEEDS * DRAWS
    smallest = min(
        scipy.stats.ks_2samp(ours[:, i], reference[:, i]).pvalue for i in range(len(items))
    )
    assert smallest > 1e-4 / len(items), smallest


# values and intervals


@functools.cache
def estimates(name: str, metrics: tuple[str, ...]) -> tuple[fl.Estimates, ...]:
    return tuple(
        estimates_of(
            case(name).predictions(),
            method="agreement-ensemble",
            metrics=[*metrics],
            confidence_level=0.9,
            random_state=seed,
        )
        for seed in range(SEEDS)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "metrics"),
    [
        ("two-classes", ("accuracy", "roc_auc", "average_precision", "ece")),
        ("three-classes", ("accuracy", "roc_auc", "brier", "log_loss")),
    ],
)
def test_point_estimate_is_the_average_of_mean_and_median(name, metrics):
    size = 60
    draws = reference_draws(name)[:size]
    for metric in metrics:
        each = np.array([soft_metric(metric, case(name).P[:, 0], Q) for Q in draws])
        wanted = (each.mean() + np.median(each)) / 2
        got = np.mean([e.get("a", metric).value for e in estimates(name, metrics)])
        # (mean + median)/2 of a near-normal sample has variance about 1.15 sd^2 / size
        se = each.std() * np.sqrt(1.15 * (1 / (SEEDS * DRAWS) + 1 / size))
        assert abs(got - wanted) / max(se, 1e-12) < 4.5, (metric, got, wanted, se)


def _sampled(Q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.random((len(Q), 1)) > Q.cumsum(axis=1)[:, :-1]).sum(axis=1)


def _accuracy(P: np.ndarray, Q: np.ndarray, w: np.ndarray) -> float:
    return float(np.average(Q[np.arange(len(P)), P.argmax(axis=1)], weights=w))


def _accuracy_and_one(P, Q, w, rng: np.random.Generator) -> float:
    """With the pseudo-item of every population interval: class and prediction unknown."""
    K = P.shape[1]
    right, wrong = rng.gamma(1 / K), rng.gamma(1 - 1 / K)
    return (_accuracy(P, Q, w) * w.sum() + right) / (w.sum() + right + wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two-classes", "ten-classes-five-classifiers", "no-labels"])
def test_intervals_of_accuracy_are_quantiles_stretched_about_the_point(name):
    """Labels and weights do not shift a mean; what the pseudo-item shifts stays."""
    P = case(name).P[:, 0]
    n, K = P.shape
    rng = np.random.default_rng(5)
    ends = []
    for _ in range(10):
        m, h = np.empty(400), np.empty(400)
        for i, Q in enumerate(naive(name).draws(400, rng)):
            labels, w = np.eye(K)[_sampled(Q, rng)], rng.exponential(size=n)
            m[i] = _accuracy(P, Q, np.ones(n))
            h[i] = _accuracy_and_one(P, labels, w, rng)
        ends.append(interval(h, m, 0.0, 0.9, (0, 1)))
    metrics = {"two-classes": ("accuracy", "roc_auc", "average_precision", "ece")}
    rows = [e.get("a", "accuracy") for e in estimates(name, metrics.get(name, ("accuracy",)))]
    got = np.array([[r.value, r.low, r.high] for r in rows]).mean(axis=0)
    se = np.std(ends, axis=0, ddof=1) * np.sqrt(1 / SEEDS + 1 / len(ends))
    z = (got - np.mean(ends, axis=0)) / np.maximum(se, 1e-9)
    assert np.abs(z).max() < 4.5, (got, np.mean(ends, axis=0), z)


# the prior, and invariances


def test_without_labels_the_weights_are_the_prior_s():
    deviations = np.array([0.40, 0.25, 0.20, 0.15])
    wanted = np.concatenate([0.5 * s * deviations for s in (0.7, 0.3, 0.7, 0.3)])
    got = posterior("no-labels").diagnostics["component_weights"]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_copies_are_anchored_at_the_largest_slope(classes):
    w = world(n=150, models=1, classes=classes, labeled=0, seed=13)
    said = infer(World(np.repeat(w.P, 2, axis=1), w.truth, w.shown)).diagnostics
    assert said["agreement"] == 1
    assert said["anchor"] <= 6 ** (1 - 1 / classes) * (1 + 1e-9)
    assert said["anchor"] > 2


def test_a_single_classifier_is_anchored_at_one():
    assert posterior("one-classifier").diagnostics["anchor"] == 1
    assert np.isnan(posterior("one-classifier").diagnostics["agreement"])


MOVED = ("two-classes", "three-classes", "missing-predictions-three-classes", "zeros-and-ones")


def same_posterior(name: str, weights: np.ndarray, marginals: np.ndarray) -> None:
    """Equal weights, and marginals within the error of two times 200 draws."""
    said = posterior(name).diagnostics["component_weights"]
    np.testing.assert_allclose(weights, said, rtol=0, atol=1e-6)
    sd = reference_draws(name).std(axis=0)
    gap = np.abs(marginals - posterior(name).marginals())
    assert (gap / np.maximum(sd * np.sqrt(2 / DRAWS), 1e-9)).max() < 5


@pytest.mark.parametrize("name", MOVED)
def test_order_of_classifiers_does_not_matter(name):
    w = case(name)
    moved = infer(World(w.P[:, ::-1], w.truth, w.shown))
    assert moved.diagnostics["agreement"] == posterior(name).diagnostics["agreement"]
    same_posterior(name, moved.diagnostics["component_weights"], moved.marginals())


@pytest.mark.parametrize("name", MOVED)
def test_names_of_classes_do_not_matter(name):
    w = case(name)
    K = w.P.shape[2]
    to = np.roll(np.arange(K), 1)  # class k is called to[k]
    P = np.empty_like(w.P)
    P[:, :, to] = w.P
    moved = infer(World(P, to[w.truth], np.where(w.shown >= 0, to[w.shown], -1)))
    if name == "zeros-and-ones":  # ties at .5 take the first class, whichever that is
        assert moved.diagnostics["agreement"] == pytest.approx(naive(name).agreement, abs=0.1)
    else:
        same_posterior(name, moved.diagnostics["component_weights"], moved.marginals()[:, to])


def test_a_classifier_without_predictions_changes_nothing():
    w = case("two-classes")
    P = np.concatenate([w.P, np.full_like(w.P[:, :1], np.nan)], axis=1)
    more = infer(World(P, w.truth, w.shown))
    np.testing.assert_allclose(more.marginals(), posterior("two-classes").marginals())


def test_labels_move_the_accuracy_towards_the_truth():
    """Under-confident classifiers; the averaged classifier misses by far more."""
    w = world(n=150, models=5, labeled=60, seed=3)
    w = World(w.P * 0.3 + 0.35, w.truth, w.shown)
    truth = (w.P[:, 0].argmax(axis=1) == w.truth).mean()
    ours, plain = (
        estimates_of(w.predictions(), method=method, metrics=["accuracy"])
        .get("a", "accuracy")
        .value
        for method in ("agreement-ensemble", "ensemble")
    )
    assert abs(ours - truth) < 0.5 * abs(plain - truth)
