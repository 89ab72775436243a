"""What the contract promises of estimate() and Estimates, method by method."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from reference_naive import METRICS
from reference_worlds import world

import fewlabels as fl

METHODS = ("labeled", "tempered-ensemble", "ensemble", "ssme-kde")
STATUSES = {"ok", "few-labels", "assumption", "undefined", "not-applicable", "not-converged"}


@pytest.fixture(scope="module")
def predictions() -> fl.Predictions:
    w = world(n=120, models=3, labeled=25, seed=11)
    rng = np.random.default_rng(0)
    sex = np.array(["f", "m", None], dtype=object)[rng.integers(0, 3, 120)]
    sex[:2] = ["m", None]
    site = rng.integers(1, 3, 120)
    site[0] = 2
    return w.predictions(groups={"sex": sex, "site": site})


def plain(estimates: fl.Estimates) -> list[tuple]:
    return [(*row[:7], str(row.status)) for row in estimates.rows]


@pytest.mark.parametrize("method", METHODS)
def test_to_dict_has_the_keys_of_the_contract(predictions, method):
    estimates = fl.estimate(
        predictions, method=method, metrics=["accuracy", "auc"], by="sex", random_state=7
    )
    said = estimates.to_dict()
    assert {
        "fewlabels", "method", "seed", "n_items", "n_labeled", "models", "classes", "estimates",
        "diagnostics", "warnings",
    } <= said.keys()  # fmt: skip
    assert said["fewlabels"] == fl.__version__
    assert said["method"] == method
    assert said["seed"] == 7
    assert (said["n_items"], said["n_labeled"]) == (120, 25)
    assert said["models"] == ["a", "b", "c"]
    assert said["classes"] == [0, 1]
    assert isinstance(said["diagnostics"], dict)
    assert all(isinstance(text, str) for text in said["warnings"])
    for row in said["estimates"]:
        assert list(row) == [
            "model", "metric", "group", "value", "low", "high", "confidence_level", "status",
        ]  # fmt: skip
        assert row["status"] in STATUSES
        assert type(row["status"]) is str
        assert type(row["value"]) is float
        assert type(row["low"]) is float
        assert type(row["high"]) is float
        assert row["confidence_level"] == 0.95
    assert json.loads(json.dumps(said, allow_nan=False)) == said


def test_rows_come_in_the_promised_order(predictions):
    estimates = fl.estimate(predictions, metrics=["ece", "auc", "accuracy"], by=["site", "sex"])
    groups = [None, "site=2", "site=1", *_first_appearance(predictions)]
    wanted = [(m, k, g) for g in groups for m in "abc" for k in ("ece", "auc", "accuracy")]
    assert [(r.model, r.metric, r.group) for r in estimates.rows] == wanted


def _first_appearance(predictions: fl.Predictions) -> list[str]:
    seen = dict.fromkeys("null" if s is None else s for s in predictions.groups["sex"])
    return [f"sex={s}" for s in seen]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (["x", None, "x", "y"], ["null", "x", "y"]),
        ([1.0, np.nan, 2.0, 1.0], ["1", "2", "null"]),
        ([1, 2, 2, 1], ["1", "2"]),
        ([True, False, True, False], ["False", "True"]),
    ],
)
def test_null_is_a_group_of_its_own(values, wanted):
    w = world(n=80, models=2, labeled=30, seed=12)
    column = np.resize(np.array(values, dtype=object if None in values else None), 80)
    estimates = fl.estimate(w.predictions(groups={"g": column}), metrics=["accuracy"], by="g")
    assert sorted({r.group[2:] for r in estimates.rows if r.group}) == wanted


def test_groups_by_domain():
    w = world(n=80, models=2, labeled=30, seed=12)
    domain = np.where(np.arange(80) % 3 == 0, "news", "blog")
    estimates = fl.estimate(w.predictions(domain=domain), metrics=["accuracy"], by="domain")
    assert [r.group for r in estimates.rows[::2]] == [None, "domain=news", "domain=blog"]


def test_a_group_is_the_metric_of_its_items():
    """Fitted on everything, evaluated on the group: with all labels the plain metric there."""
    w = world(n=200, models=2, labeled=200, seed=13)
    side = np.where(w.P[:, 0, 1] > 0.5, "up", "down")
    estimates = fl.estimate(w.predictions(groups={"side": side}), metrics=["accuracy"], by="side")
    for value in ("up", "down"):
        rows = side == value
        right = (w.P[rows, 0].argmax(axis=1) == w.truth[rows]).mean()
        assert estimates.get("a", "accuracy", f"side={value}").value == pytest.approx(
            right, abs=1e-12
        )


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_answer(predictions, method):
    a, b = (
        fl.estimate(predictions, method=method, metrics=[*METRICS], by="sex", random_state=3)
        for _ in range(2)
    )
    assert str(plain(a)) == str(plain(b))
    assert json.dumps(a.to_dict()) == json.dumps(b.to_dict())
    for key in a.draws:
        assert np.array_equal(a.draws[key], b.draws[key], equal_nan=True)


def test_no_seed_means_seed_zero(predictions):
    a = fl.estimate(predictions, metrics=["accuracy"])
    b = fl.estimate(predictions, metrics=["accuracy"], random_state=0)
    assert plain(a) == plain(b)
    assert a.to_dict()["seed"] == 0


@pytest.mark.parametrize("method", METHODS)
def test_another_seed_other_intervals(predictions, method):
    a = fl.estimate(predictions, method=method, metrics=["brier"], random_state=1)
    b = fl.estimate(predictions, method=method, metrics=["brier"], random_state=2)
    assert all(x.low != y.low for x, y in zip(a.rows, b.rows, strict=True))
    assert all(
        abs(x.low - y.low) < 0.5 * (x.high - x.low) for x, y in zip(a.rows, b.rows, strict=True)
    )


def assert_same_estimates(a: fl.Estimates, b: fl.Estimates, tolerance: float = 1e-12) -> None:
    others = {(r.model, r.metric, r.group): r for r in b.rows}
    assert len(others) == len(a.rows)
    for row in a.rows:
        other = others[row.model, row.metric, row.group]
        assert row.status == other.status
        for x, y in zip(row[3:6], other[3:6], strict=True):
            assert (math.isnan(x) and math.isnan(y)) or abs(x - y) <= tolerance * max(1, abs(x)), (
                row,
                other,
            )


@pytest.mark.parametrize("kind", ["plain", "weighted", "duplicates", "ties", "three-classes"])
@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_items_does_not_matter(method, kind):
    rng = np.random.default_rng(5)
    w = world(
        n=90,
        models=3,
        classes=3 if kind == "three-classes" else 2,
        labeled=20,
        seed=14,
        ties=kind == "ties",
    )
    P, shown = w.P, w.shown
    weight = rng.gamma(1.0, size=90) if kind == "weighted" else None
    if kind == "duplicates":
        P, shown = np.repeat(P[:45], 2, axis=0), np.repeat(shown[:45], 2)
    group = np.array(["x", "y", "z"])[rng.integers(0, 3, 90)]
    metrics = ["accuracy", "roc_auc", "average_precision", "ece", "ece_quantile", "log_loss", "f1"]

    def estimates(order: np.ndarray) -> fl.Estimates:
        predictions = fl.Predictions(
            P[order],
            shown[order],
            groups={"g": group[order]},
            weight=None if weight is None else weight[order],
        )
        model = fl.models.SSMEKDE(epochs=5) if method == "ssme-kde" else method
        return fl.estimate(predictions, method=model, metrics=metrics, by="g")

    first = estimates(np.arange(90))
    for _ in range(2):
        assert_same_estimates(first, estimates(rng.permutation(90)))


@pytest.mark.parametrize("method", METHODS)
def test_input_is_left_alone(method):
    w = world(n=60, models=2, labeled=20, seed=15)
    P, shown = w.P.copy(), w.shown.copy()
    fl.estimate(fl.Predictions(P, shown), method=method, metrics=["accuracy", "ece"])
    assert np.array_equal(P, w.P)
    assert np.array_equal(shown, w.shown)


@pytest.mark.parametrize(
    ("backend", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)]
)
def test_to_frame(predictions, backend, kind):
    estimates = fl.estimate(predictions, metrics=["accuracy", "auc"], by="sex")
    frame = estimates.to_frame(backend)
    assert isinstance(frame, kind)
    table = (
        frame
        if backend == "pyarrow"
        else pa.table(frame)
        if backend == "polars"
        else pa.Table.from_pandas(frame)
    )
    columns = ["model", "metric", "group", "value", "low", "high", "confidence_level", "status"]
    assert table.column_names[:8] == columns
    assert table.num_rows == len(estimates.rows)
    assert table["value"].to_pylist() == [r.value for r in estimates.rows]
    assert table["group"].to_pylist() == [r.group for r in estimates.rows]
    assert table["status"].to_pylist() == [str(r.status) for r in estimates.rows]


def test_to_frame_without_any_group(predictions):
    for backend in ("pandas", "polars", "pyarrow"):
        assert len(fl.estimate(predictions, metrics=["accuracy"]).to_frame(backend)) == 3


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", ["accuracy", "error_rate", "roc_auc", "log_loss"])
def test_probability_best_sums_to_one(predictions, method, metric):
    best = fl.estimate(predictions, method=method, metrics=[metric]).probability_best(metric)
    assert list(best) == ["a", "b", "c"]
    assert sum(best.values()) == pytest.approx(1, abs=1e-12)
    assert all(0 <= p <= 1 for p in best.values())


def test_probability_best_knows_which_way_is_better(predictions):
    estimates = fl.estimate(predictions, metrics=["accuracy", "error_rate"])
    a, b = estimates.probability_best("accuracy"), estimates.probability_best("error_rate")
    assert a == pytest.approx(b, abs=1e-9)


def test_identical_classifiers_share_the_first_place():
    w = world(n=100, models=2, labeled=20, seed=16)
    P = w.P[:, [0, 0, 1]]
    estimates = fl.estimate(
        fl.Predictions(P, w.shown, models=["a", "same", "b"]), metrics=["accuracy", "brier"]
    )
    for metric in ("accuracy", "brier"):
        best = estimates.probability_best(metric)
        assert best["a"] == pytest.approx(best["same"], abs=1e-12)
        gap = estimates.difference("a", "same", metric)
        assert (gap.value, gap.low, gap.high) == (0, 0, 0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", ["accuracy", "auc", "brier"])
def test_difference_is_antisymmetric(predictions, method, metric):
    estimates = fl.estimate(predictions, method=method, metrics=[metric], by="sex")
    for group in (None, "sex=f"):
        there = estimates.difference("a", "c", metric, group)
        back = estimates.difference("c", "a", metric, group)
        assert there.low <= there.value <= there.high
        assert (
            there.value
            == estimates.get("a", metric, group).value - estimates.get("c", metric, group).value
        )
        assert (back.value, back.low, back.high) == pytest.approx(
            (-there.value, -there.high, -there.low), abs=1e-12
        )


@pytest.mark.parametrize("method", METHODS)
def test_a_function_of_the_users_own(method):
    def right_in_the_middle(y_true, y_proba):
        y_proba = np.asarray(y_proba)
        p = y_proba if y_proba.ndim == 1 else y_proba[:, 1]
        return float(np.mean(np.abs(p - np.asarray(y_true)) < 0.5))

    w = world(n=80, models=2, labeled=30, seed=17)
    p = w.predictions(groups={"g": np.where(np.arange(80) % 2, "odd", "even")})
    estimates = fl.estimate(p, method=method, metrics=[right_in_the_middle, "accuracy"], by="g")
    assert {r.metric for r in estimates.rows} == {"right_in_the_middle", "accuracy"}
    for model in w.models:
        mine, theirs = (estimates.get(model, k) for k in ("right_in_the_middle", "accuracy"))
        if method == "labeled":
            assert mine.value == pytest.approx(theirs.value, abs=1e-12)
        assert abs(mine.value - theirs.value) < 0.5 * (theirs.high - theirs.low)
        assert mine.low <= mine.value <= mine.high
        assert mine.high > mine.low
        # the same quantity by draws: the intervals agree up to Monte Carlo error
        assert abs(mine.low - theirs.low) < 0.3 * (theirs.high - theirs.low)
        assert abs(mine.high - theirs.high) < 0.3 * (theirs.high - theirs.low)
    json.dumps(estimates.to_dict(), allow_nan=False)


def test_a_function_that_is_undefined_somewhere():
    def always_nan(y_true, y_proba):
        return math.nan

    w = world(n=40, models=1, labeled=20, seed=17)
    row = fl.estimate(w.predictions(), metrics=[always_nan]).rows[0]
    assert row.status == fl.Status.UNDEFINED
    assert math.isnan(row.value)


def test_more_than_fifty_groups_are_refused():
    w = world(n=120, models=2, labeled=20, seed=18)
    fine = fl.estimate(
        w.predictions(groups={"g": np.arange(120) % 50}), metrics=["accuracy"], by="g"
    )
    assert len(fine.rows) == 51 * 2
    with pytest.raises(fl.FewlabelsError, match="50"):
        fl.estimate(w.predictions(groups={"g": np.arange(120) % 51}), metrics=["accuracy"], by="g")


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "no-such-method"},
        {"metrics": ["no-such-metric"]},
        {"metrics": ["accuracy", "no-such-metric"]},
        {"by": "no-such-group"},
        {"estimand": "universe"},
        {"confidence_level": 0},
        {"confidence_level": 1},
        {"confidence_level": 95},
        {"confidence_level": math.nan},
        {"metrics": []},
    ],
    ids=str,
)
def test_unknown_arguments_are_refused_in_one_line(predictions, wrong):
    with pytest.raises(fl.UsageError) as error:
        fl.estimate(predictions, **wrong)
    assert "\n" not in str(error.value)


def test_an_unknown_name_is_told_the_choices(predictions):
    with pytest.raises(fl.UsageError, match="tempered-ensemble"):
        fl.estimate(predictions, method="tempered_ensembel")
    with pytest.raises(fl.UsageError, match="accuracy"):
        fl.estimate(predictions, metrics=["acuracy"])


@pytest.mark.parametrize("method", METHODS)
def test_labels_all_of_one_class_are_few_labels(method):
    w = world(n=100, models=2, labeled=30, seed=19)
    shown = np.where(w.shown == 1, -1, w.shown)
    estimates = fl.estimate(
        w.predictions(labels=shown), method=method, metrics=["accuracy", "brier"]
    )
    _admits(estimates, method, fl.Status.FEW_LABELS)
    assert any("of class" in text for text in estimates.warnings)


@pytest.mark.parametrize("method", ["auto", "tempered-ensemble", "ensemble", "ssme-kde"])
@pytest.mark.parametrize("classes", [2, 3])
def test_no_labels_at_all(method, classes):
    w = world(n=100, models=3, classes=classes, labeled=0, seed=20)
    estimates = fl.estimate(w.predictions(labels=None), method=method, metrics=[*METRICS])
    assert estimates.n_labeled == 0
    for row in estimates.rows:
        assert row.low <= row.value <= row.high
        assert row.high > row.low
    _admits(estimates, method, fl.Status.FEW_LABELS, fl.Status.ASSUMPTION)


@pytest.mark.parametrize("method", ["tempered-ensemble", "ssme-kde"])
def test_no_labels_is_said_in_words(method):
    w = world(n=100, models=3, labeled=0, seed=20)
    estimates = fl.estimate(w.predictions(labels=None), method=method, metrics=["accuracy"])
    assert "no label" in " ".join(estimates.warnings)


def _admits(estimates: fl.Estimates, method: str, *allowed: fl.Status) -> None:
    """The worst status that applies is reported: EM of 50 epochs may also not have converged."""
    worse = {fl.Status.NOT_CONVERGED} if method == "ssme-kde" else set()
    assert {r.status for r in estimates.rows} <= {*allowed, *worse}
    for status in {r.status for r in estimates.rows}:
        assert any(str(status) in text for text in estimates.warnings), status


def test_labeled_without_labels_says_so():
    """Refused in words, or rows that admit it; never a number that looks fine."""
    w = world(n=50, models=2, labeled=0, seed=20)
    try:
        estimates = fl.estimate(w.predictions(labels=None), method="labeled", metrics=["accuracy"])
    except fl.FewlabelsError as error:
        said, rows = str(error), ()
    else:
        said, rows = " ".join(estimates.warnings), estimates.rows
    assert "label" in said
    assert all(math.isnan(r.value) or r.status == fl.Status.FEW_LABELS for r in rows)


def test_auto_is_the_learned_ensemble_for_probabilities(predictions):
    a = fl.estimate(predictions, metrics=["accuracy"])
    b = fl.estimate(predictions, method="learned-ensemble", metrics=["accuracy"])
    assert plain(a) == plain(b)


def test_a_method_may_be_an_object(predictions):
    a = fl.estimate(predictions, method=fl.models.TemperedEnsemble(), metrics=["accuracy"])
    b = fl.estimate(predictions, method="tempered-ensemble", metrics=["accuracy"])
    assert plain(a) == plain(b)


def test_the_row_carries_the_name_that_was_asked_for(predictions):
    estimates = fl.estimate(predictions, metrics=["auc", "roc_auc", "auprc"])
    assert [r.metric for r in estimates.rows[:3]] == ["auc", "roc_auc", "auprc"]
    assert estimates.get("a", "auc")[3:] == estimates.get("a", "roc_auc")[3:]
    with pytest.raises(fl.UsageError, match="average_precision"):
        estimates.get("a", "average_precision")


def test_posterior_is_at_hand(predictions):
    estimates = fl.estimate(predictions, metrics=["accuracy"])
    assert estimates.posterior.marginals().shape == (120, 2)


def test_fit_then_posterior_is_infer(predictions):
    """The split that lets a fit on part of the data apply to a stream."""
    for model in (
        fl.models.TemperedEnsemble(),
        fl.models.SSMEKDE(bandwidth=1.0, init="soft", leave_one_out=True),
    ):
        a = model.infer(predictions, np.random.default_rng(0)).marginals()
        fitted = model.fit(predictions, np.random.default_rng(0))
        b = fitted.posterior(predictions).marginals()
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)
        part = np.arange(40, 90)
        c = fitted.posterior(predictions.take(part)).marginals()
        np.testing.assert_allclose(c, b[part], rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["labeled", "ensemble"])
def test_integer_weights_are_copies(method):
    """Weight 3 and three copies are the same data, where nothing is fitted."""
    w = world(n=120, models=2, labeled=60, seed=21)
    copies = np.random.default_rng(0).integers(1, 4, 120)
    many = fl.Predictions(
        np.repeat(w.P, copies, axis=0), np.repeat(w.shown, copies), models=w.models
    )
    metrics = [m for m in METRICS if m != "ece_quantile"]
    a = fl.estimate(many, method=method, metrics=metrics)
    b = fl.estimate(w.predictions(weight=copies), method=method, metrics=metrics)
    for x, y in zip(a.rows, b.rows, strict=True):
        assert abs(x.value - y.value) < 1e-12, (x, y)


def test_the_ensemble_is_bayes_with_the_evidence_of_opinions():
    """Mean classifier times the multinomial of the annotators; no opinion leaves it alone."""
    w = world(n=100, models=3, classes=3, labeled=10, seed=23)
    rng = np.random.default_rng(0)
    truth = np.eye(3)[w.truth]
    opinions = np.array([rng.multinomial(rng.integers(0, 4), 0.75 * t + 0.25 / 3) for t in truth])
    p = w.predictions(histogram=opinions)
    wanted = w.P.mean(axis=1) * np.exp(p.evidence)
    wanted /= wanted.sum(axis=1, keepdims=True)
    found = fl.estimate(p, method="ensemble", metrics=["accuracy"], against="class")
    got = found.posterior.marginals()
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)
    silent = (opinions.sum(axis=1) == 0) & (w.shown < 0)
    np.testing.assert_allclose(got[silent], w.P.mean(axis=1)[silent], rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_relabelling_two_classes_swaps_recall_and_specificity(method):
    """Two classes turned round: accuracy and AUC stay, recall and specificity change places."""
    w = world(n=200, models=2, labeled=60, seed=22)
    turned = fl.Predictions(
        w.P[:, :, ::-1], np.where(w.shown < 0, -1, 1 - w.shown), models=w.models
    )
    a = fl.estimate(
        w.predictions(), method=method, metrics=["accuracy", "recall", "specificity", "roc_auc"]
    )
    b = fl.estimate(turned, method=method, metrics=["accuracy", "specificity", "recall", "roc_auc"])
    for x, y in zip(a.rows, b.rows, strict=True):
        assert abs(x.value - y.value) < (
            1e-12 if method == "labeled" else 0.35 * (x.high - x.low)
        ), (x, y)
