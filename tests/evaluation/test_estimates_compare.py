"""Comparing through `Estimates`: metrics, groups, methods, and what is refused."""

from __future__ import annotations

import importlib
import json
import math
from typing import Any

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.errors import UsageError
from fewlabels.evaluation import differences
from fewlabels.evaluation.differences import (
    comparison,
    errors_together,
    gap,
    group_gaps,
)
from fewlabels.evaluation.item_variance import item_variance
from fewlabels.questions.compare import compared


def world(n: int = 400, labeled: int = 40, m: int = 3, seed: int = 0) -> fl.Predictions:
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(int)
    logit = (2 * truth - 1)[:, None] * np.linspace(1.5, 0.5, m) + rng.standard_normal((n, m))
    group = np.array(["x", "y", "z"])[np.arange(n) % 3]
    seen = np.arange(n) < labeled
    return fl.Predictions(
        1 / (1 + np.exp(-2 * logit)), np.where(seen, truth, -1),
        models=[f"m{j}" for j in range(m)],
        groups={"g": group, "blind": np.where(seen, "seen", np.where(group == "x", "p", "q"))},
    )  # fmt: skip


@pytest.fixture(scope="module")
def estimates() -> fl.Estimates:
    return fl.estimate(world(), metrics=["accuracy", "brier", "auc", "ece", "f1"], by="g")


@pytest.mark.parametrize("metric", ["accuracy", "brier", "auc", "ece", "f1"])
@pytest.mark.parametrize("group", [None, "g=x"])
def test_a_comparison_agrees_with_the_estimates(
    estimates: fl.Estimates, metric: str, group: str | None
) -> None:
    found = comparison(estimates, metric, group)
    best = estimates.probability_best(metric, group)
    assert {s.model: s.probability_best for s in found.standings} == pytest.approx(best)
    values = [s.value * found.direction for s in found.standings]
    assert values == sorted(values, reverse=True)
    for pair in found.pairs:
        expected = estimates.difference(pair.a, pair.b, metric, group)
        assert (pair.value, pair.low, pair.high) == pytest.approx(tuple(expected))
        assert 0 <= pair.probability <= 1
        settled = pair.low > 0 or pair.high < 0
        assert (pair.labels.status == "settled") == settled
        if not settled:
            assert pair.labels.low is not None
            assert 1 <= pair.labels.low <= (pair.labels.more or 0) <= (pair.labels.high or 0)
    assert found.ranking[0] in found.may_be_best
    assert {m for run in found.alike for m in run} == set(found.ranking)


def test_fewer_classifiers_are_a_smaller_family(estimates: fl.Estimates) -> None:
    two = comparison(estimates, "accuracy", models=["m2", "m0"])
    assert two.ranking == ("m0", "m2")
    assert len(two.pairs) == 1
    everyone = comparison(estimates, "accuracy").pair("m0", "m2")
    assert (two.pairs[0].low, two.pairs[0].high) == (everyone.low, everyone.high)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda e: comparison(e, "f2"), "unknown metric 'f2'"),
        (lambda e: comparison(e, "accuracy", "g=nobody"), "no draws of metric 'accuracy' in group"),
        (lambda e: comparison(e, "accuracy", models=["m0", "you"]), "unknown model 'you'"),
        (lambda e: comparison(e, "accuracy", models=["m0"]), "needs two classifiers"),
        (lambda e: gap(e, "m0", "accuracy", "g=x", "g=w"), "in group 'g=w'"),
        (lambda e: group_gaps(e, "accuracy", "h"), "unknown group 'h'"),
        (lambda e: group_gaps(e, "f2", "g"), "metric 'f2'"),
    ],
)
def test_refusals(estimates: fl.Estimates, ask: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        ask(estimates)
    assert "\n" not in str(caught.value)


def test_a_metric_without_direction_ranks_nobody() -> None:
    def share(y_true: np.ndarray, y_proba: np.ndarray) -> float:
        return float((y_proba > 0.5).mean())

    found = fl.estimate(world(), metrics=fl.metrics.custom(share, direction=0))
    with pytest.raises(UsageError, match="does not say whether larger or smaller"):
        comparison(found, "share")
    assert found.to_dict()["comparison"] == {}


def test_of_a_users_own_function_the_posterior_says_how_many_labels() -> None:
    def cost(y_true: np.ndarray, y_proba: np.ndarray) -> float:
        return float(((y_proba > 0.5) != y_true).mean())

    found = comparison(fl.estimate(world(), metrics=fl.metrics.custom(cost, direction=-1)), "cost")
    assert {pair.labels.status for pair in found.pairs} <= {"open", "settled"}


def test_gaps_between_groups(estimates: fl.Estimates) -> None:
    there = gap(estimates, "m0", "accuracy", "g=x", "g=y")
    back = gap(estimates, "m0", "accuracy", "g=y", "g=x")
    assert there.low <= there.value <= there.high
    assert (there.value, there.low, there.high) == pytest.approx(
        (-back.value, -back.high, -back.low)
    )
    for found in group_gaps(estimates, "accuracy", "g"):
        values = {g: estimates.get(found.model, "accuracy", g).value for g in ("g=x", "g=y", "g=z")}
        assert found.observed == pytest.approx(max(values.values()) - min(values.values()))
        assert values[found.largest or ""] == max(values.values())
        assert 0 <= found.low <= found.value <= found.high


@pytest.mark.slow
def test_draws_of_disjoint_groups_share_the_parameters() -> None:
    """Pairing by draw takes out what the label model leaves open for all groups alike."""
    found = fl.estimate(world(n=3000, labeled=20), "tempered-ensemble", "accuracy", by="g")
    x, y = (found.draws["accuracy", g][:, 0] for g in ("g=x", "g=y"))
    assert np.corrcoef(x, y)[0, 1] > 0.3
    shuffled = np.random.default_rng(0).permutation(y)
    assert np.std(x - y) < 0.9 * np.std(x - shuffled)


def test_a_group_without_labels_has_no_gap_for_labels_alone() -> None:
    found = fl.estimate(world(), "labeled", "accuracy", by="blind")
    assert math.isnan(gap(found, "m0", "accuracy", "blind=p", "blind=seen").value)
    assert math.isnan(group_gaps(found, "accuracy", "blind")[0].value)
    informed = fl.estimate(world(), "tempered-ensemble", "accuracy", by="blind")
    assert math.isfinite(gap(informed, "m0", "accuracy", "blind=p", "blind=seen").value)


def test_no_labels_at_all() -> None:
    found = comparison(fl.estimate(world(labeled=0), metrics="accuracy"), "accuracy")
    for pair in found.pairs:
        assert pair.labels.status in ("open", "settled")


def test_one_classifier_is_not_compared() -> None:
    found = fl.estimate(world(m=1), metrics="accuracy")
    with pytest.raises(UsageError, match="needs two classifiers"):
        comparison(found, "accuracy")
    assert found.to_dict()["comparison"] == {}
    assert "Which is best" not in found.summary()


def test_without_draws_there_is_nothing_to_compare() -> None:
    found = fl.estimate(world(), metrics="accuracy", confidence_level=None)
    with pytest.raises(UsageError, match="`confidence_level`"):
        comparison(found, "accuracy")
    assert found.to_dict()["comparison"] == {}


def test_the_json_holds_the_comparison(estimates: fl.Estimates) -> None:
    said = json.loads(json.dumps(estimates.to_dict(), allow_nan=False))
    assert list(said["comparison"]) == ["accuracy", "brier", "auc", "ece", "f1"]
    part = said["comparison"]["accuracy"]
    assert part["ranking"] == list(comparison(estimates, "accuracy").ranking)
    assert part["labels_needed"] == part["pairs"][0]["labels"]


def test_very_many_classifiers_are_not_listed_by_pairs() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    votes = np.where(rng.random((60, 31)) < 0.2, 1 - truth[:, None], truth[:, None])
    found = fl.estimate(fl.Predictions(votes=votes, labels=truth), "labeled", "accuracy")
    assert found.to_dict()["comparison"] == {}
    assert len(comparison(found, "accuracy").pairs) == 31 * 30 // 2
    assert len(errors_together(found).pairs) == 30 * 29 // 2


def test_a_column_may_be_named_with_an_equals_sign() -> None:
    given = world()
    code = np.arange(given.n_items)
    groups = {
        "a": np.where(code % 2, "b=x", "q"), "a=b": given.groups["g"],
        "many": code.astype(str),
    }  # fmt: skip
    groups["many=b"] = groups["a"]
    named = fl.Predictions(given.probabilities, given.labels, models=given.models, groups=groups)
    plain = fl.estimate(given, "labeled", "accuracy", by="g")
    found = fl.estimate(named, "labeled", "accuracy", by=["a=b", "many=b"])
    assert tuple(found.group_rows) == ("a=b", "many=b")
    for of_model, expected in zip(
        group_gaps(found, "accuracy", "a=b"), group_gaps(plain, "accuracy", "g"), strict=True
    ):
        assert (of_model.value, of_model.low, of_model.high) == (
            expected.value,
            expected.low,
            expected.high,
        )
        assert str(of_model.largest).partition("=")[2] == str(expected.largest).replace("g=", "b=")
    # There is a column `a` with a value `b=x`, but its other groups were not asked for.
    assert errors_together(found, "a=b=x").n_items == errors_together(plain, "g=x").n_items
    assert errors_together(found, "many=b=b=x").n_items == given.n_items // 2
    with pytest.raises(UsageError, match="unknown group 'a'"):
        group_gaps(found, "accuracy", "a")
    report = compared(found).to_dict()
    assert {row["column"] for row in report["group_gaps"]} == {"a=b", "many=b"}


def test_comparisons_and_scores_of_very_many_are_refused_before_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    comparing, scoring = (
        importlib.import_module(f"fewlabels.questions.{name}") for name in ("compare", "score")
    )
    rng = np.random.default_rng(0)
    votes, labels = rng.integers(2, size=(20, 5)), rng.integers(2, size=20)
    predictions = fl.Predictions(votes=votes, labels=labels)
    estimates = fl.estimate(predictions, "labeled", ["accuracy"])
    monkeypatch.setattr(comparing, "MOST_PAIRED", 4)
    monkeypatch.setattr(scoring, "MOST_JUDGES", 4)
    two = predictions.models[:2]
    assert fl.compare(estimates, models=two).get("accuracy").ranking
    assert fl.score(predictions, models=two).rows

    def work(*_: Any, **__: Any) -> None:
        raise AssertionError("refused before the work")

    monkeypatch.setattr(comparing, "run_question", work)
    monkeypatch.setattr(scoring, "estimate", work)
    for ask in (fl.compare, fl.score):
        with pytest.raises(UsageError, match=r"at most 4 classifiers, and there are 5; .*--models"):
            ask(predictions)
    with pytest.raises(UsageError, match="at most 4 classifiers"):
        fl.compare(estimates)


def test_a_comparison_of_some_looks_at_the_pairs_of_these(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    votes = np.where(rng.random((60, 40)) < 0.8, truth[:, None], 1 - truth[:, None])
    estimates = fl.estimate(fl.Predictions(votes=votes, labels=truth), "labeled", ["accuracy"])
    chosen, sizes = ("model39", "model3", "model20"), []
    whole = item_variance(estimates.judged, estimates.judged_by, ["accuracy"], np.arange(60))

    def counted(*given: Any) -> dict[str, Any]:
        found = item_variance(*given)
        sizes.extend(v.shape for v in found.values())
        places = [39, 3, 20]
        assert np.array_equal(found["accuracy"], whole["accuracy"][np.ix_(places, places)])
        return found

    monkeypatch.setattr(differences, "item_variance", counted)
    comparison(estimates, "accuracy", None, chosen)
    assert sizes == [(3, 3)]
