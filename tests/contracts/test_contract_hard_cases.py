"""Cases that every method must survive with numbers that mean something."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
from contract_methods import quick, served

import fewlabels as fl
from fewlabels.errors import Status
from fewlabels.models import METHODS, SSMEKDE

NAMES = list(METHODS)
N = 180


def binary(n: int = N, known: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities (n, 3), labels with -1, and the truth."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(int)
    logits = 2.5 * (truth[:, None] - 0.5) + rng.normal(size=(n, 3))
    return 1 / (1 + np.exp(-logits)), np.where(np.arange(n) < known, truth, -1), truth


@pytest.mark.parametrize("method", NAMES)
class TestEveryMethod:
    def test_a_chunk_without_one_classifier(self, method):
        p, labels, _ = binary()
        fitted = quick(method).fit(fl.Predictions(p, labels), np.random.default_rng(0))
        part = p[100:].copy()
        part[:, 1] = np.nan
        found = fitted.posterior(fl.Predictions(part, labels[100:])).marginals()
        np.testing.assert_allclose(found.sum(axis=1), 1)

    @pytest.mark.parametrize("estimand", ["population", "sample"])
    def test_a_class_that_is_never_predicted(self, method, estimand):
        if estimand == "sample" and method != "labeled":
            pytest.skip("what is never predicted on these very items is known for certain")
        p, labels, _ = binary(known=20)
        metrics = served(method, ["recall", "specificity", "f1", "error_rate"])
        found = fl.estimate(
            fl.Predictions(p * 0.4, labels), quick(method), metrics, estimand=estimand
        )
        for row in found.rows:
            assert row.low <= row.value <= row.high
            # Agreement alone says that those who always agree are never wrong; labels object.
            assert row.high > row.low or row.status is Status.CONTRADICTED

    def test_votes_with_some_of_the_probabilities(self, method):
        p, labels, _ = binary()
        votes = (p > 0.5).astype(int)
        p[5, 0] = np.nan
        found = fl.estimate(
            fl.Predictions(p, labels, votes=votes),
            quick(method),
            served(method, ["accuracy", "ece", "auc"]),
        )
        assert not any(np.isnan(row.value) for row in found.rows)

    @pytest.mark.parametrize("estimand", ["population", "sample"])
    def test_unit_of_the_weights_does_not_matter(self, method, estimand):
        p, labels, _ = binary()
        weight = np.random.default_rng(1).exponential(size=N)
        one, other = (
            fl.estimate(
                fl.Predictions(p, labels, weight=w),
                quick(method),
                served(method, ["accuracy", "roc_auc"]),
                estimand=estimand,
                details=False,
            )
            for w in (weight, 1000 * weight)
        )
        for a, b in zip(one.rows, other.rows, strict=True):
            np.testing.assert_allclose(a[3:6], b[3:6], atol=1e-9)

    def test_a_users_function_is_weighted_like_the_rest(self, method):
        if METHODS[method].serves == "means":
            pytest.skip("a function is not known to be a mean")
        p, labels, _ = binary(n=300, known=150)
        weight = np.where(labels == 1, 5.0, 1.0)

        def share_right(y_true, y_proba):
            return float(np.mean((y_proba > 0.5) == y_true))

        found = fl.estimate(
            fl.Predictions(p, labels, weight=weight), quick(method), [share_right, "accuracy"]
        )
        for model in found.models:
            own, built_in = (found.get(model, m) for m in ("share_right", "accuracy"))
            assert abs(own.value - built_in.value) < 0.3 * (built_in.high - built_in.low)

    def test_only_a_classifiers_own_labels_count(self, method):
        p, labels, _ = binary()
        p[3:, 0] = np.nan
        row = fl.estimate(fl.Predictions(p, labels), quick(method), "accuracy").get(
            "model0", "accuracy"
        )
        assert row.status in ("few-labels", "ok", "not-converged", "assumption")
        if method == "labeled":
            assert row.status == "few-labels"

    def test_intervals_of_higher_levels_hold_those_of_lower(self, method):
        p, labels, _ = binary()
        rows = [
            fl.estimate(
                fl.Predictions(p, labels), quick(method), "accuracy", confidence_level=level,
                details=False,
            ).rows[0]
            for level in (0.5, 0.9, 0.99, 0.999)
        ]  # fmt: skip
        assert len({row.value for row in rows}) == 1
        lows, highs = [row.low for row in rows], [row.high for row in rows]
        assert (lows, highs) == (sorted(lows, reverse=True), sorted(highs))
        assert highs[3] - lows[3] > highs[2] - lows[2]

    def test_without_intervals(self, method):
        p, labels, _ = binary()
        found = fl.estimate(fl.Predictions(p, labels), quick(method), confidence_level=None)
        json.dumps(found.to_dict(), allow_nan=False)
        gap = found.difference("model0", "model1", "accuracy")
        assert np.isfinite(gap.value)
        assert np.isnan(gap.low)

    def test_estimates_can_be_sent_to_another_process(self, method):
        p, labels, _ = binary()
        found = fl.estimate(fl.Predictions(p, labels), quick(method))
        again = pickle.loads(pickle.dumps(found))
        assert again.to_dict() == found.to_dict()
        assert again.report == found.report

    def test_annotators_histograms(self, method):
        p, _, truth = binary(n=90)
        histogram = np.zeros((90, 2))
        histogram[np.arange(90), truth] = 9
        told = fl.Predictions(p, histogram=histogram)
        found = fl.estimate(told, quick(method), "accuracy", details=False)
        share = (found.posterior.marginals().argmax(axis=1) == truth).mean()
        assert share > 0.99
        if method == "labeled":
            of_class = fl.estimate(told, quick(method), "accuracy", against="class")
            assert any("does not use the histograms" in w for w in of_class.warnings)


def test_items_of_weight_zero_do_not_count():
    p, labels, _ = binary()
    weight = np.where(np.arange(N) % 3, 1.0, 0.0)
    kept = weight > 0
    metrics = ["accuracy", "roc_auc", "ece_quantile", "log_loss"]
    whole = fl.estimate(fl.Predictions(p, labels, weight=weight), "labeled", metrics)
    part = fl.estimate(fl.Predictions(p[kept], labels[kept]), "labeled", metrics)
    for a, b in zip(whole.rows, part.rows, strict=True):
        assert a.value == pytest.approx(b.value, abs=1e-12)


def test_labels_that_fill_the_support():
    p, labels, truth = binary(n=900, known=700)
    posterior = SSMEKDE(bandwidth="scott", max_support=400, epochs=3).infer(
        fl.Predictions(p, labels), 0
    )
    assert np.isfinite(posterior.marginals()).all()
    everything = SSMEKDE(bandwidth="scott", max_support=400).infer(fl.Predictions(p, truth), 0)
    assert (everything.marginals().argmax(axis=1) == truth).all()


def test_histograms_off_the_support_count():
    p, _, truth = binary(n=600)
    histogram = np.zeros((600, 2))
    histogram[np.arange(600), truth] = 9
    model = SSMEKDE(bandwidth="scott", max_support=200)
    found = model.infer(fl.Predictions(p, histogram=histogram), 0).marginals()
    assert (found[np.arange(600), truth] > 0.9).mean() > 0.99


def test_support_and_diagnostics_do_not_depend_on_the_order():
    p, labels, _ = binary(n=5000, known=100)
    order = np.argsort(p[:, 0])
    model = SSMEKDE(max_support=3000, epochs=5)
    straight = model.infer(fl.Predictions(p, labels), 0)
    sorted_ = model.infer(fl.Predictions(p[order], labels[order]), 0)
    assert straight.diagnostics["self_share"] == pytest.approx(sorted_.diagnostics["self_share"])
    np.testing.assert_allclose(straight.marginals()[order], sorted_.marginals(), atol=1e-6)


def test_sample_of_known_weight():
    """Labels hold 88% of the weight: the rest cannot move accuracy further than its own weight."""
    p, labels, _ = binary(n=1350, known=1000)
    weight = np.where(labels >= 0, 100.0, 40.0)
    row = fl.estimate(
        fl.Predictions(p, labels, weight=weight), "labeled", "accuracy", estimand="sample"
    ).rows[0]
    known = weight[labels >= 0].sum() / weight.sum()
    assert known * row.value <= row.low <= row.high <= known * row.value + 1 - known


def test_a_certain_looking_ensemble_is_not_certain():
    p = (np.random.default_rng(0).random((30, 1)) < 0.5).astype(float)
    row = fl.estimate(fl.Predictions(p), "ensemble", "accuracy", estimand="sample").rows[0]
    assert row.status == "assumption"
    assert row.high > row.low


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([1.0, None, 0.0], dtype=object), [1, -1, 0]),
        ([True, False, None], [1, 0, -1]),
        ([1, float("nan"), 0], [1, -1, 0]),
        (["1", "", "0"], [1, -1, 0]),
    ],
)
def test_labels_of_many_kinds(labels, expected):
    assert fl.Predictions([[0.5]] * 3, labels).labels.tolist() == expected


def test_two_nameless_functions_are_refused():
    p, labels, _ = binary()
    with pytest.raises(fl.UsageError, match="two metrics are named '<lambda>'"):
        fl.estimate(fl.Predictions(p, labels), metrics=[lambda y, q: 1.0, lambda y, q: 2.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": 3}, "`by` must be the name of a group"),
        ({"workers": "2"}, "`workers` must be a whole number, at least 1; got '2'"),
        ({"workers": 0}, "`workers` must be a whole number, at least 1; got 0"),
        ({"metrics": 3}, "a metric must be a name or a function"),
        ({"metrics": []}, "`metrics` is empty"),
        ({"random_state": -1}, "`random_state` must be a whole number, 0 or larger; got -1"),
        ({"random_state": 1.5}, "`random_state` must be a whole number, 0 or larger; got 1.5"),
        ({"random_state": "a"}, "`random_state` must be a whole number, 0 or larger; got 'a'"),
        ({"confidence_level": "x"}, "`confidence_level` must be between 0 and 1; got 'x'"),
        ({"confidence_level": 1.0}, "`confidence_level` must be between 0 and 1; got 1.0"),
        ({"confidence_level": 0}, "`confidence_level` must be between 0 and 1; got 0"),
        ({"confidence_level": 95}, "`confidence_level` must be between 0 and 1; got 95"),
        ({"confidence_level": math.nan}, "`confidence_level` must be between 0 and 1; got nan"),
        ({"estimand": "both"}, "`estimand` must be 'population' or 'sample'; got 'both'"),
        ({"method": "tempred-ensemble"}, "did you mean 'tempered-ensemble'"),
        ({"metrics": "acuracy"}, "did you mean 'accuracy'"),
        ({"by": "sex"}, "unknown group 'sex'; the predictions have none"),
    ],
)
def test_arguments_are_checked(arguments, message):
    p, labels, _ = binary()
    with pytest.raises(fl.UsageError, match=message) as refused:
        fl.estimate(fl.Predictions(p, labels), **arguments)
    assert "\n" not in str(refused.value)
