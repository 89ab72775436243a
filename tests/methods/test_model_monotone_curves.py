"""monotone-curves: what its prior believes, what its labels change, and when it says so."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import fewlabels as fl
from fewlabels.methods.curves.monotone_curves import Cloud, sequential_monte_carlo
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


def test_many_labels_give_the_truth():
    data = world(1, 4000, 3000)
    scores = data.scores[3000:, 0]
    truth = 1 / (1 + np.exp(-2 * (scores - 0.5)))
    assert np.abs(chance(data)[3000:] - truth).mean() < 0.03


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


def test_interpolation_between_knots_is_exact_enough():
    """With more scores than knots the curve is taken on straight lines between them."""
    rng = np.random.default_rng(11)
    scores = np.concatenate([rng.normal(size=20_000), rng.standard_cauchy(2_000)])
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


# --- Sequential Monte Carlo where the posterior and the evidence have a closed form.

RUNS = 12


class Regression:
    """y = X u + noise with u ~ N(0, I): everything is normal."""

    def __init__(self, dimension: int, size: int, noise: float, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(size, dimension))
        self.noise = noise
        self.y = self.X @ rng.normal(size=dimension) + noise * rng.normal(size=size)
        self.covariance = np.linalg.inv(np.eye(dimension) + self.X.T @ self.X / noise**2)
        self.mean = self.covariance @ self.X.T @ self.y / noise**2
        marginal = self.X @ self.X.T + noise**2 * np.eye(size)
        self.log_evidence = stats.multivariate_normal(np.zeros(size), marginal).logpdf(self.y)

    def log_likelihood(self, points: np.ndarray) -> np.ndarray:
        return stats.norm(points @ self.X.T, self.noise).logpdf(self.y).sum(axis=1)

    def clouds(self, **options) -> list[Cloud]:
        dimension = self.X.shape[1]
        return [
            sequential_monte_carlo(
                self.log_likelihood, dimension, np.random.default_rng([1, run]), **options
            )
            for run in range(RUNS)
        ]


def off(values, truth) -> np.ndarray:
    """How far the mean over runs is from the truth, in standard errors."""
    values = np.asarray(values, dtype=float)
    return (values.mean(axis=0) - truth) / (values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def far(comparisons: int) -> float:
    """What t exceeds once in ten thousand, in any of so many comparisons."""
    return float(stats.t(RUNS - 1).isf(0.5e-4 / comparisons))


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize(("size", "noise"), [(4, 1.5), (40, 0.3)], ids=["weak", "strong"])
def test_linear_regression(dimension, size, noise):
    exact = Regression(dimension, size, noise)
    clouds = exact.clouds(particles=600)
    # The evidence itself is unbiased, its logarithm is not.
    ratio = [np.exp(cloud.log_evidence - exact.log_evidence) for cloud in clouds]
    assert abs(off(ratio, 1.0)) < far(1)
    assert np.std(ratio) < 0.4
    means = [cloud.points.mean(axis=0) for cloud in clouds]
    assert np.abs(off(means, exact.mean)).max() < far(dimension)
    corner = np.tril_indices(dimension)
    seconds = [((c.points - exact.mean).T @ (c.points - exact.mean) / 600)[corner] for c in clouds]
    assert np.abs(off(seconds, exact.covariance[corner])).max() < far(len(corner[0]))
    # Estimates are as sharp as some 100 independent draws would make them, or sharper.
    sharp = np.sqrt(np.diag(exact.covariance) / 100)
    assert (np.std(means, axis=0) < sharp).all()


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_normal_likelihood(dimension):
    """Of u itself, seen with unlike errors far from the prior."""
    seen = np.linspace(1.5, 3.0, dimension)
    sd = np.geomspace(0.1, 1.0, dimension)
    clouds = [
        sequential_monte_carlo(
            lambda points: stats.norm(seen, sd).logpdf(points).sum(axis=1),
            dimension,
            np.random.default_rng([2, run]),
        )
        for run in range(RUNS)
    ]
    log_evidence = stats.norm(0, np.sqrt(1 + sd**2)).logpdf(seen).sum()
    assert abs(off([np.exp(c.log_evidence - log_evidence) for c in clouds], 1.0)) < far(1)
    assert np.abs(off([c.points.mean(axis=0) for c in clouds], seen / (1 + sd**2))).max() < far(
        dimension
    )
    # Tails too: the share beyond the posterior's upper tenth.
    tenth = seen / (1 + sd**2) + stats.norm.isf(0.1) * sd / np.sqrt(1 + sd**2)
    share = [(c.points > tenth).mean(axis=0) for c in clouds]
    assert np.abs(off(share, 0.1)).max() < far(dimension)


def test_two_modes_keep_their_weights():
    """Which a chain from one starting point would not find."""

    def log_likelihood(points):
        x = points[:, 0]
        return np.logaddexp(
            np.log(0.25) + stats.norm(-2, 0.2).logpdf(x),
            np.log(0.75) + stats.norm(2, 0.2).logpdf(x),
        )

    share = [
        (
            sequential_monte_carlo(log_likelihood, 1, np.random.default_rng([3, run])).points > 0
        ).mean()
        for run in range(RUNS)
    ]
    assert abs(off(share, 0.75)) < far(1)


def test_a_constant_factor_moves_the_evidence_alone():
    exact = Regression(2, 10, 0.5)
    plain, more = (
        sequential_monte_carlo(
            lambda u, shift=shift: exact.log_likelihood(u) + shift, 2, np.random.default_rng(4)
        )
        for shift in (0.0, -1024.0)
    )
    np.testing.assert_allclose(more.points, plain.points, atol=1e-9)
    assert more.log_evidence == pytest.approx(plain.log_evidence - 1024.0, abs=1e-8)
