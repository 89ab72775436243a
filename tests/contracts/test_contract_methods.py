"""What every method in the registry must do, exactly or within Monte Carlo error.

A new method arrives here by being registered; a property that it lacks is named, with the reason,
in its `exempt`.
"""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import fewlabels as fl
from contract_methods import fresh, n_classes_of, quick, served
from fewlabels.errors import InputError, Status
from fewlabels.models import METHODS
from fewlabels.posterior import first_block

NAMES = list(METHODS)
# Models of votes differ in how they are fitted; what is made of their draws is one and the same.
AS_BEE = {"confusion-bee", "confusion-cbee", "cbee", "hcbee", "cbcc", "vote-selection"}
JUDGED = [name for name in NAMES if name not in AS_BEE]
# Seconds for items that are not those of `world`.
SLOW_TO_FIT = pytest.mark.slow_with("averaged-curves", "crowd-svm", "spe")
# They differ from those that are quick in which rates are shared.
SLOW_CHAINS = pytest.mark.slow_with(
    "cbee",
    "confusion-cbee",
    "confusion-bee",
    "hcbee",
    "confusion-hcbee",
    "cbcc",
    "vote-selection",
)
N, KNOWN = 180, 40


def world(n_classes: int = 2) -> fl.Predictions:
    """Three classifiers of different skill; labels for the first items only."""
    rng = np.random.default_rng(0)
    truth = rng.integers(n_classes, size=N)
    signal = 2.0 * np.eye(n_classes)[truth][:, None, :] * np.array([0.5, 1.0, 1.5])[:, None]
    logits = signal + rng.normal(size=(N, 3, n_classes))
    p = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    labels = np.where(np.arange(N) < KNOWN, truth, -1)
    return fl.Predictions(p, labels, models=["weak", "fair", "good"])


def estimate(predictions: fl.Predictions, method: str, metrics=None, **options) -> fl.Estimates:
    """By a method that is fitted to these items once, without the parts that nobody asks for."""
    metrics = metrics and served(method, metrics)
    return fl.estimate(predictions, quick(method), metrics, **options)


def skip_if_exempt(method: str, what: str) -> None:
    reason = METHODS[method].exempt.get(what)
    if reason:
        pytest.skip(f"{method} is exempt: {reason}")


SERVED = [
    pytest.param(name, k, id=f"{name}-{k}")
    for name in NAMES
    for k in (2, 4)
    if k == 2 or "two classes" not in METHODS[name].needs
]


@pytest.mark.few(8)
@SLOW_TO_FIT
@pytest.mark.product
@pytest.mark.parametrize(("method", "n_classes"), SERVED)
class TestPosterior:
    def test_rows_are_on_the_simplex(self, method, n_classes):
        everyone = quick(method).infer(world(n_classes), 0)
        for posterior in {id(p): p for p in (everyone, everyone.of(0), everyone.of(2))}.values():
            blocks = [
                posterior.marginals(),
                *(q for _, part in posterior.soft_draws(7, 1) for q in part),
            ]
            for q in blocks:
                assert q.shape == (N, n_classes)
                assert (q >= 0).all()
                np.testing.assert_allclose(q.sum(axis=1), 1, atol=1e-12)

    def test_a_block_of_no_items_has_every_draw(self, method, n_classes):
        posterior = quick(method).infer(world(n_classes), 0)
        for parameters in (posterior.parameters, posterior.interval_parameters):
            if parameters is not None:
                assert first_block(parameters).shape == (0, n_classes, parameters.size)

    def test_known_labels_are_kept(self, method, n_classes):
        predictions = world(n_classes)
        posterior = quick(method).infer(predictions, 0)
        rows = np.flatnonzero(predictions.labeled)
        for j in range(3):
            known = posterior.of(j).marginals()[rows, predictions.labels[rows]]
            np.testing.assert_allclose(known, 1, atol=1e-12)  # a sum of weights rounds
        draws = posterior.draws(5, 1)
        assert draws.shape == (5, N)
        assert (draws[:, rows] == predictions.labels[rows]).all()

    def test_order_of_items_is_irrelevant(self, method, n_classes):
        skip_if_exempt(method, "items")
        predictions = world(n_classes)
        order = np.random.default_rng(1).permutation(predictions.n_items)
        straight = quick(method).infer(predictions, 0)
        shuffled = quick(method).infer(predictions.take(order), 0)
        # A descent of many steps carries the rounding of its sums on (flow: 1.5e-7).
        np.testing.assert_allclose(
            straight.marginals()[order], shuffled.marginals(), rtol=1e-6, atol=1e-9
        )

    def test_soft_draw_weights_sum_to_one(self, method, n_classes):
        posterior = quick(method).infer(world(n_classes), 0)
        total = sum(weights.sum() for weights, _ in posterior.soft_draws(70, 0))
        assert total == pytest.approx(1)

    def test_applies_to_part_of_the_items(self, method, n_classes):
        predictions = world(n_classes)
        fitted = quick(method).fit(predictions, np.random.default_rng(0))
        rows = np.arange(0, N, 3)
        whole = fitted.posterior(predictions).marginals()[rows]
        part = fitted.posterior(predictions.take(rows)).marginals()
        np.testing.assert_allclose(part, whole, rtol=1e-7, atol=1e-9)


@pytest.mark.few(8)
@SLOW_TO_FIT
@SLOW_CHAINS
@pytest.mark.parametrize("method", NAMES)
class TestEstimates:
    def test_order_of_items_is_irrelevant_to_estimates(self, method):
        base, rng = world(), np.random.default_rng(1)
        predictions = fl.Predictions(
            base.probabilities.round(1), base.labels, weight=rng.gamma(1.0, size=N)
        )
        metrics = ["accuracy", "ece", "roc_auc", "average_precision", "log_loss"]
        straight, shuffled = (
            estimate(predictions.take(order), method, metrics).rows
            for order in (np.arange(N), rng.permutation(N))
        )
        for a, b in zip(straight, shuffled, strict=True):
            np.testing.assert_allclose(a[3:6], b[3:6], atol=1e-9)

    @pytest.mark.slow_with(
        "learned-ensemble",
        "ssme-flow",
        "ssme-kde-marginal",
        "tempered-ensemble",
        "agreement-ensemble",
        "active-surrogate",
        "pseudo-label",
        "autoeval",
    )
    def test_same_seed_same_bits_with_any_workers_and_input_is_untouched(self, method):
        predictions, same = (world(n_classes_of(method)) for _ in range(2))
        metrics = served(method, ["accuracy", "auc"])
        anew = fl.estimate(predictions, fresh(method), metrics, workers=5).to_dict()
        assert anew == estimate(same, method, metrics, workers=1).to_dict()
        np.testing.assert_array_equal(predictions.probabilities, same.probabilities)
        np.testing.assert_array_equal(predictions.labels, same.labels)
        one, five = (estimate(same, method, estimand="sample", workers=w) for w in (1, 5))
        assert one.to_dict() == five.to_dict()

    def test_relabelling_the_classes_relabels_the_answer(self, method):
        skip_if_exempt(method, "classes")
        predictions = world(n_classes_of(method))
        swap = np.array([2, 0, 1]) if predictions.n_classes == 3 else np.array([1, 0])
        turned = fl.Predictions(
            predictions.probabilities[:, :, swap],
            np.where(predictions.labeled, np.argsort(swap)[predictions.labels], -1),
        )
        straight = quick(method).infer(predictions, 0).marginals()[:, swap]
        other = quick(method).infer(turned, 0).marginals()
        # Parameter draws differ: the mean over 200 of them is off by a few hundredths at most.
        assert np.abs(straight - other).mean() < 0.01

    def test_needs_are_said_in_one_line(self, method):
        needs = METHODS[method].needs
        if "two classes" in needs:
            with pytest.raises(InputError, match="two classes"):
                fl.estimate(world(3), quick(method))
        if "labels" in needs:
            with pytest.raises(InputError, match="label"):
                fl.estimate(world().with_labels(None), quick(method))

    def test_no_labels_and_one_class_of_labels(self, method):
        predictions, metrics = world(n_classes_of(method)), ["accuracy", "roc_auc"]
        if "labels" not in METHODS[method].needs:
            none = estimate(predictions.with_labels(None), method, metrics)
            assert {r.status for r in none.rows} <= {"assumption", "undefined", "not-converged"}
        one_class = np.where(predictions.labels == 0, 0, -1)
        for row in estimate(predictions.with_labels(one_class), method, metrics).rows:
            assert row.status in ("few-labels", "undefined", "not-converged"), row
            assert np.isnan(row.value) or row.high > row.low

    def test_missing_predictions_and_votes_with_some_of_the_probabilities(self, method):
        base = world()
        p = base.probabilities.copy()
        votes = p.argmax(axis=2)
        p[50:120, 1] = np.nan
        votes[60:120, 1] = -1
        p[100:110], votes[100:110] = np.nan, -1
        found = estimate(
            fl.Predictions(p, base.labels, votes=votes), method, ["accuracy", "ece", "auc"]
        )
        assert all(r.low <= r.value <= r.high for r in found.rows)

    def test_duplicate_items_count_twice(self, method):
        twice = world().take(np.repeat(np.arange(N), 2))
        marginals = quick(method).infer(twice, 0).marginals()
        assert marginals.shape == (2 * N, 2)
        assert np.isfinite(marginals).all()

    def test_one_classifier_and_saturated_scores(self, method):
        p = np.where(np.random.default_rng(0).random(200) < 0.4, 1.0, 0.0)
        labels = np.where(np.arange(200) < 30, (p > 0.5).astype(int), -1)
        found = estimate(
            fl.Predictions(p[:, None], labels), method, ["accuracy", "auc", "log_loss"]
        )
        for row in found.rows:
            assert row.low <= row.value <= row.high
            assert row.high > row.low

    def test_a_chunk_without_one_classifier(self, method):
        base = world()
        fitted = quick(method).fit(base, np.random.default_rng(0))
        part = base.probabilities[100:].copy()
        part[:, 1] = np.nan
        found = fitted.posterior(
            fl.Predictions(part, base.labels[100:], models=base.models)
        ).marginals()
        np.testing.assert_allclose(found.sum(axis=1), 1)

    def test_annotators_histograms(self, method):
        n, p = 30, world().probabilities[:30, 1:, 1]
        truth = np.random.default_rng(0).integers(2, size=N)[:n]  # as in `world`
        histogram = np.zeros((n, 2))
        histogram[np.arange(n), truth] = 9
        told = fl.Predictions(p, histogram=histogram)
        found = estimate(told, method, ["accuracy"])
        share = (found.posterior.marginals().argmax(axis=1) == truth).mean()
        assert share > 0.99
        if method == "labeled":
            of_class = estimate(told, method, ["accuracy"], against="class")
            assert any("does not use the histograms" in w for w in of_class.warnings)


# Of those whose draws are of one kind, another is quick.
@pytest.mark.few(7)
@SLOW_TO_FIT
@pytest.mark.slow_with("confusion-hcbee", "ssme-kde-marginal", "agreement-ensemble",
                       "active-surrogate")  # fmt: skip
@pytest.mark.parametrize("method", JUDGED)
class TestIntervals:
    @pytest.mark.product
    @pytest.mark.parametrize("estimand", ["population", "sample"])
    def test_intervals_are_ordered_and_in_bounds(self, method, estimand):
        predictions = world(n_classes_of(method))
        for row in estimate(predictions, method, [*fl.metrics.METRICS], estimand=estimand).rows:
            bounds = fl.metrics.METRICS[row.metric].bounds
            assert bounds[0] <= row.low <= row.value <= row.high <= bounds[1], row
            # Of two grades every mistake is off by one.
            sure = row.metric == "within_one" and len(predictions.classes) == 2
            assert row.high > row.low or sure, row

    def test_metrics_that_are_not_served_say_so(self, method):
        metrics = [*fl.metrics.METRICS]
        defined = served(method, metrics)
        asked = {"confidence_level": None}
        for row in fl.estimate(world(), quick(method), metrics, **asked).rows:
            assert (row.status == "not-applicable") == (row.metric not in defined)

    def test_a_group_without_labels_keeps_its_rows(self, method):
        base, group = world(), np.where(np.arange(N) < N - 40, "seen", "unseen")
        predictions = fl.Predictions(base.probabilities, base.labels, groups={"g": group})
        row = estimate(predictions, method, ["accuracy"], by="g").get(
            "model2", "accuracy", "g=unseen"
        )
        assert row.status in ("few-labels", "not-converged")
        assert row.high > row.low

    @pytest.mark.parametrize("estimand", ["population", "sample"])
    def test_a_class_that_is_never_predicted(self, method, estimand):
        if estimand == "sample" and method != "labeled":
            pytest.skip("what is never predicted on these very items is known for certain")
        base = world()
        found = estimate(
            fl.Predictions(base.probabilities[:, :, 1] * 0.4, base.labels),
            method,
            ["recall", "specificity", "f1", "error_rate"],
            estimand=estimand,
        )
        for row in found.rows:
            assert row.low <= row.value <= row.high
            # Agreement alone says that those who always agree are never wrong; labels object.
            assert row.high > row.low or row.status is Status.CONTRADICTED

    def test_unit_of_the_weights_does_not_matter(self, method):
        base, weight = world(), np.random.default_rng(1).exponential(size=N)
        one, other = (
            [
                row
                for estimand in ("population", "sample")
                for row in estimate(
                    fl.Predictions(base.probabilities, base.labels, weight=unit * weight),
                    method,
                    ["accuracy", "roc_auc"],
                    estimand=estimand,
                ).rows
            ]
            for unit in (1, 1000)
        )
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a[3:6], b[3:6], atol=1e-9)

    def test_a_users_function_is_weighted_like_the_rest(self, method):
        if METHODS[method].serves == "means":
            pytest.skip("a function is not known to be a mean")
        base = world()
        weight = np.where(base.labels == 1, 5.0, 1.0)

        def share_right(y_true, y_proba):
            return float(np.mean((y_proba > 0.5) == y_true))

        found = fl.estimate(
            fl.Predictions(base.probabilities, base.labels, weight=weight), quick(method),
            [share_right, "accuracy"],
        )  # fmt: skip
        for model in found.models:
            own, built_in = (found.get(model, m) for m in ("share_right", "accuracy"))
            assert abs(own.value - built_in.value) < 0.3 * (built_in.high - built_in.low)

    def test_only_a_classifiers_own_labels_count(self, method):
        base = world()
        p = base.probabilities[:, :, 1].copy()
        p[3:, 0] = np.nan
        row = estimate(fl.Predictions(p, base.labels), method, ["accuracy"]).rows[0]
        assert row.status in ("few-labels", "ok", "not-converged", "assumption")
        if method == "labeled":
            assert row.status == "few-labels"

    def test_intervals_of_higher_levels_hold_those_of_lower(self, method):
        rows = [
            estimate(world(), method, ["accuracy"], confidence_level=level).rows[0]
            for level in (0.5, 0.9, 0.999)
        ]
        assert len({row.value for row in rows}) == 1
        lows, highs = [row.low for row in rows], [row.high for row in rows]
        assert (lows, highs) == (sorted(lows, reverse=True), sorted(highs))
        assert highs[2] - lows[2] > highs[1] - lows[1]

    def test_without_intervals(self, method):
        found = fl.estimate(world(), quick(method), confidence_level=None)
        json.dumps(found.to_dict(), allow_nan=False)
        gap = found.difference("weak", "fair", "accuracy")
        assert np.isfinite(gap.value)
        assert np.isnan(gap.low)

    def test_estimates_can_be_sent_to_another_process(self, method):
        found = fl.estimate(world(), quick(method), "accuracy")
        again = pickle.loads(pickle.dumps(found))
        assert again.to_dict() == found.to_dict()
        assert again.report() == found.report()


def test_registry_is_complete():
    """Every method says what a person must know."""
    for name, method in METHODS.items():
        assert method.name == name
        assert method.summary
        assert method.how
        assert method.assumes
        assert method.fails_when
        assert method.source
        assert set(method.exempt) <= {"items", "classes", "simplex", "clamped"}
