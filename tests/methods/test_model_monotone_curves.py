"""monotone-curves: what its prior believes, what its labels change, and when it says so."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.models import MonotoneCurves


def world(seed: int, n: int, known: int, slope: float = 2.0) -> fl.Predictions:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    truth = rng.random(n) < 1 / (1 + np.exp(-slope * (scores - 0.5)))
    return fl.Predictions(scores=scores[:, None], labels=np.where(np.arange(n) < known, truth, -1))


def chance(predictions: fl.Predictions, **settings) -> np.ndarray:
    return MonotoneCurves(**settings).infer(predictions, 0).marginals()[:, 1]


def test_labels_narrow_the_curve_around_the_truth():
    width = []
    for known in (10, 100, 1000):
        post = MonotoneCurves().infer(world(0, 2000, known), 0)
        drawn = post.parameters.block(np.arange(400), np.arange(1000, 2000))[:, 1]
        width.append(np.subtract(*np.quantile(drawn, [0.95, 0.05], axis=1)).mean())
    assert width[0] > 2 * width[1] > 3 * width[2]


@pytest.mark.slow
def test_many_labels_give_the_truth():
    data = world(1, 4000, 3000)
    scores = data.scores[3000:, 0]
    truth = 1 / (1 + np.exp(-2 * (scores - 0.5)))
    assert np.abs(chance(data)[3000:] - truth).mean() < 0.03


@pytest.mark.slow
def test_pooled_labels_cost_no_precision():
    few, many = chance(world(2, 3000, 200)), chance(world(2, 3000, 201))
    assert np.abs(few - many)[201:].mean() < 0.03


def test_a_zero_moved_by_mistake_is_doubted():
    """A threshold off by two standard deviations is found by 50 labels, not believed."""
    data = world(3, 2000, 50)
    moved = fl.Predictions(scores=data.scores + 2.0, labels=data.labels)
    assert np.abs(chance(data) - chance(moved)).mean() < 0.06


def test_scores_of_one_sign_have_no_zero():
    data = world(4, 1000, 20)
    positive = fl.Predictions(scores=data.scores - data.scores.min() + 1, labels=data.labels)
    said = MonotoneCurves().infer(positive, 0).diagnostics["curve_weights"]
    assert not any(name.startswith("natural") for name in said)


@pytest.mark.slow
def test_scores_that_say_nothing_are_found_out():
    rng = np.random.default_rng(5)
    data = fl.Predictions(
        scores=rng.normal(size=(500, 1)),
        labels=np.where(np.arange(500) < 200, np.arange(500) % 2, -1),
    )
    post = MonotoneCurves().infer(data, 0)
    assert np.abs(post.marginals()[200:, 1] - 0.5).max() < 0.25
    reverse = world(6, 500, 200)
    reverse = fl.Predictions(scores=-reverse.scores, labels=reverse.labels)
    assert any("in reverse" in text for text in MonotoneCurves().infer(reverse, 0).warnings)


def test_constant_scores_have_one_probability():
    data = fl.Predictions(scores=np.ones((50, 1)), labels=[0, 1, 1] + [-1] * 47)
    post = MonotoneCurves().infer(data, 0)
    assert np.ptp(post.marginals()[3:, 1]) < 1e-12
    assert any("all scores are equal" in text for text in post.warnings)


def test_a_histogram_of_many_votes_is_a_label():
    data = world(8, 400, 30)
    votes = np.zeros((400, 2))
    votes[np.arange(30), data.labels[:30]] = 40
    soft = fl.Predictions(scores=data.scores, histogram=votes)
    assert np.abs(chance(data) - chance(soft))[30:].mean() < 0.03


def test_missing_scores_get_the_share_of_positives():
    data = world(9, 1000, 100)
    scores = data.scores.copy()
    scores[990:] = np.nan
    found = chance(fl.Predictions(scores=scores, labels=data.labels))
    np.testing.assert_allclose(found[990:], found[990])
    assert found[990] == pytest.approx(found[:990].mean(), abs=0.02)


def test_three_classes():
    rng = np.random.default_rng(10)
    truth = rng.integers(3, size=1500)
    logits = rng.normal(size=(1500, 3)) + 2.0 * np.eye(3)[truth]
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    data = fl.Predictions(p[:, None, :], np.where(np.arange(1500) < 60, truth, -1))
    post = MonotoneCurves().infer(data, 0)
    rows = post.marginals()
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    sharper = np.exp(2 * logits) / np.exp(2 * logits).sum(axis=1, keepdims=True)
    assert np.abs(rows - sharper)[60:].mean() < 0.08
    found = fl.estimate(data, method="monotone-curves", metrics=["accuracy"]).rows[0]
    assert found.low <= (p.argmax(axis=1) == truth).mean() <= found.high


@pytest.mark.slow
def test_interpolation_between_knots_is_exact_enough():
    """With more scores than knots the curve is taken on straight lines between them."""
    rng = np.random.default_rng(11)
    scores = np.concatenate([rng.normal(size=5_000), rng.standard_cauchy(500)])
    labels = np.full(len(scores), -1)
    labels[:30] = scores[:30] > 0.3
    fitted = MonotoneCurves().fit(
        fl.Predictions(scores=scores[:, None], labels=labels), np.random.default_rng(0)
    )
    curves = next(iter(fitted.fitted.values())).curves[0]
    index = np.arange(curves.size)
    places = curves.scale.places(scores)
    exact = np.concatenate([d.curve.probabilities(places)[0] for d in curves.kinds], axis=1)
    assert np.abs(curves.probabilities(scores, index)[0] - exact[:, curves.order]).max() < 0.01


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"prior": "flat"}, "`prior` must be one of learned, plain; got 'flat'"),
        ({"zero": 0}, "`zero` must be one of auto, natural, unknown; got 0"),
        ({"particles": 0}, "`particles` must be a whole number"),
        ({"n_draws": 1.5}, "`n_draws` must be a whole number"),
    ],
)
def test_settings_that_cannot_be(settings, words):
    with pytest.raises(fl.errors.UsageError, match=words):
        MonotoneCurves(**settings)
