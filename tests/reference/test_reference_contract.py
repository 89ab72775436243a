"""What the contract promises of estimate() and Estimates, method by method."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from reference_naive import METRICS

import fewlabels as fl
from worlds import world

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


@pytest.mark.parametrize("method", METHODS)
def test_probability_best_sums_to_one(predictions, method):
    metrics = ["accuracy", "error_rate", "roc_auc", "log_loss"]
    found = fl.estimate(predictions, method=method, metrics=metrics)
    for best in map(found.probability_best, metrics):
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
def test_difference_is_antisymmetric(predictions, method):
    metrics = ["accuracy", "auc", "brier"]
    estimates = fl.estimate(predictions, method=method, metrics=metrics, by="sex")
    for metric, group in itertools.product(metrics, (None, "sex=f")):
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


@pytest.mark.slow
def test_more_than_fifty_groups_are_refused():
    w = world(n=120, models=2, labeled=20, seed=18)
    fine = fl.estimate(
        w.predictions(groups={"g": np.arange(120) % 50}), metrics=["accuracy"], by="g"
    )
    assert len(fine.rows) == 51 * 2
    with pytest.raises(fl.FewlabelsError, match="50"):
        fl.estimate(w.predictions(groups={"g": np.arange(120) % 51}), metrics=["accuracy"], by="g")


@pytest.mark.parametrize("method", ["tempered-ensemble", "ssme-kde"])
def test_no_labels_is_said_in_words(method):
    w = world(n=100, models=3, labeled=0, seed=20)
    estimates = fl.estimate(w.predictions(labels=None), method=method, metrics=["accuracy"])
    assert "no label" in " ".join(estimates.warnings)


def test_the_row_carries_the_name_that_was_asked_for(predictions):
    estimates = fl.estimate(predictions, metrics=["auc", "roc_auc", "auprc"])
    assert [r.metric for r in estimates.rows[:3]] == ["auc", "roc_auc", "auprc"]
    assert estimates.get("a", "auc")[3:] == estimates.get("a", "roc_auc")[3:]
    with pytest.raises(fl.UsageError, match="average_precision"):
        estimates.get("a", "average_precision")


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
