"""What every method in the registry must do, exactly or within Monte Carlo error.

A new method arrives here by being registered; a property that it lacks is named, with the reason,
in its `exempt`.
"""

from __future__ import annotations

import numpy as np
import pytest
from contract_methods import fresh, n_classes_of, quick, served

import fewlabels as fl
from fewlabels.errors import InputError
from fewlabels.models import METHODS
from fewlabels.posterior import first_block

NAMES = list(METHODS)


def world(n_classes: int = 2, n: int = 240, known: int = 40, seed: int = 0) -> fl.Predictions:
    """Three classifiers of different skill; labels for the first items only."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n)
    signal = 2.0 * np.eye(n_classes)[truth][:, None, :] * np.array([0.5, 1.0, 1.5])[:, None]
    logits = signal + rng.normal(size=(n, 3, n_classes))
    p = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    labels = np.where(np.arange(n) < known, truth, -1)
    return fl.Predictions(p, labels, models=["weak", "fair", "good"])


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
                assert q.shape == (240, n_classes)
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
            assert (posterior.of(j).marginals()[rows, predictions.labels[rows]] == 1).all()
        draws = posterior.draws(5, 1)
        assert draws.shape == (5, 240)
        assert (draws[:, rows] == predictions.labels[rows]).all()

    def test_same_seed_same_bits(self, method, n_classes):
        first, second = (make(method).infer(world(n_classes), 0) for make in (quick, fresh))
        np.testing.assert_array_equal(first.marginals(), second.marginals())
        np.testing.assert_array_equal(first.draws(4, 5), second.draws(4, 5))

    def test_order_of_items_is_irrelevant(self, method, n_classes):
        skip_if_exempt(method, "items")
        predictions = world(n_classes)
        order = np.random.default_rng(1).permutation(predictions.n_items)
        straight = quick(method).infer(predictions, 0)
        shuffled = quick(method).infer(predictions.take(order), 0)
        np.testing.assert_allclose(
            straight.marginals()[order], shuffled.marginals(), rtol=1e-7, atol=1e-9
        )

    def test_soft_draw_weights_sum_to_one(self, method, n_classes):
        posterior = quick(method).infer(world(n_classes), 0)
        total = sum(weights.sum() for weights, _ in posterior.soft_draws(70, 0))
        assert total == pytest.approx(1)

    def test_applies_to_part_of_the_items(self, method, n_classes):
        predictions = world(n_classes)
        fitted = quick(method).fit(predictions, np.random.default_rng(0))
        rows = np.arange(0, 240, 3)
        whole = fitted.posterior(predictions).marginals()[rows]
        part = fitted.posterior(predictions.take(rows)).marginals()
        np.testing.assert_allclose(part, whole, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("method", NAMES)
class TestEstimates:
    def test_input_is_untouched(self, method):
        predictions = world()
        before = predictions.probabilities.copy(), predictions.labels.copy()
        fl.estimate(predictions, fresh(method), "accuracy", details=False)
        np.testing.assert_array_equal(predictions.probabilities, before[0])
        np.testing.assert_array_equal(predictions.labels, before[1])

    def test_order_of_items_is_irrelevant_to_estimates(self, method):
        base, rng = world(), np.random.default_rng(1)
        predictions = fl.Predictions(
            base.probabilities.round(1), base.labels, weight=rng.gamma(1.0, size=240)
        )
        order = rng.permutation(240)
        metrics = served(method, ["accuracy", "ece", "roc_auc", "average_precision", "log_loss"])
        straight = fl.estimate(predictions, quick(method), metrics)
        shuffled = fl.estimate(predictions.take(order), quick(method), metrics)
        for a, b in zip(straight.rows, shuffled.rows, strict=True):
            np.testing.assert_allclose(a[3:6], b[3:6], atol=1e-9)

    @pytest.mark.parametrize("estimand", ["population", "sample"])
    def test_workers_do_not_show(self, method, estimand):
        predictions = world()
        one, five = (
            fl.estimate(predictions, fresh(method), estimand=estimand, workers=w) for w in (1, 5)
        )
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

    def test_intervals_are_ordered_and_in_bounds(self, method):
        for estimand in ("population", "sample"):
            for row in fl.estimate(
                world(n_classes_of(method)),
                quick(method),
                served(method, list(fl.metrics.METRICS)),
                estimand=estimand,
                details=False,
            ).rows:
                bounds = fl.metrics.METRICS[row.metric].bounds
                assert bounds[0] <= row.low <= row.value <= row.high <= bounds[1], row
                assert row.high > row.low, row

    def test_metrics_that_are_not_served_say_so(self, method):
        rows = fl.estimate(world(), quick(method), [*fl.metrics.METRICS], details=False).rows
        defined = served(method, list(fl.metrics.METRICS))
        for row in rows:
            assert (row.status == "not-applicable") == (row.metric not in defined)

    def test_needs_are_said_in_one_line(self, method):
        needs = METHODS[method].needs
        if "two classes" in needs:
            with pytest.raises(InputError, match="two classes"):
                fl.estimate(world(3), quick(method))
        if "labels" in needs:
            with pytest.raises(InputError, match="label"):
                fl.estimate(world().with_labels(None), quick(method))

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_no_labels_and_one_class_of_labels(self, method, n_classes):
        if n_classes == 3:
            n_classes = n_classes_of(method)
        predictions = world(n_classes)
        metrics = served(method, ["accuracy", "roc_auc"])
        if "labels" not in METHODS[method].needs:
            none = fl.estimate(predictions.with_labels(None), quick(method), metrics)
            assert {r.status for r in none.rows} <= {"assumption", "undefined", "not-converged"}
        one_class = np.where(predictions.labels == 0, 0, -1)
        single = fl.estimate(predictions.with_labels(one_class), quick(method), metrics)
        for row in single.rows:
            assert row.status in ("few-labels", "undefined", "not-converged"), row
            assert np.isnan(row.value) or row.high > row.low

    def test_a_group_without_labels_keeps_its_rows(self, method):
        base = world()
        group = np.where(np.arange(240) < 200, "seen", "unseen")
        predictions = fl.Predictions(base.probabilities, base.labels, groups={"g": group})
        found = fl.estimate(predictions, quick(method), "accuracy", by="g")
        row = found.get("model2", "accuracy", "g=unseen")
        assert row.status in ("few-labels", "not-converged")
        assert row.high > row.low

    def test_missing_predictions(self, method):
        base = world()
        p = base.probabilities.copy()
        p[50:120, 1] = np.nan
        p[100:110, :] = np.nan
        metrics = served(method, ["accuracy", "ece", "auc"])
        found = fl.estimate(fl.Predictions(p, base.labels), quick(method), metrics)
        assert all(r.low <= r.value <= r.high for r in found.rows)

    def test_duplicate_items_count_twice(self, method):
        base = world()
        twice = base.take(np.repeat(np.arange(240), 2))
        posterior = quick(method).infer(twice, 0)
        assert posterior.marginals().shape == (480, 2)
        assert np.isfinite(posterior.marginals()).all()

    def test_one_classifier_and_saturated_scores(self, method):
        rng = np.random.default_rng(0)
        p = np.where(rng.random(200) < 0.4, 1.0, 0.0)
        labels = np.where(np.arange(200) < 30, (p > 0.5).astype(int), -1)
        found = fl.estimate(
            fl.Predictions(p[:, None], labels),
            quick(method),
            served(method, ["accuracy", "auc", "log_loss"]),
        )
        for row in found.rows:
            assert row.low <= row.value <= row.high
            assert row.high > row.low


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
