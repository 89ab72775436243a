from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewlabels.bench.cells import DatasetFacts
from fewlabels.bench.comparisons import NOT_RUN, TRUTH_UNDEFINED, Curve, best, ratio, spread
from fewlabels.bench.protocol import Protocol
from fewlabels.bench.results import COLUMNS, TRAITS, Results
from fewlabels.bench.summary import FIGURES, TABLES, summarise
from fewlabels.bench.tables import rank_correlation
from fewlabels.errors import Status, UsageError

METHODS = ("labeled", "ensemble", "ssme-kde")
FLOOR = "all-labels-known"
Row = dict[str, Any]


def row(method: str, run: int, error: float, **changes: Any) -> Row:
    """One estimate, `error` above a truth of .5; 20 labels unless said otherwise."""
    plain = {
        "dataset": "d", "factor": "", "level": "", "method": method, "n_labeled": 20,
        "n_unlabeled": 1000, "run": run, "model": "m", "metric": "accuracy", "group": "",
        "low": np.nan, "high": np.nan, "truth": 0.5, "status": "ok", "message": "", "seconds": 0.25,
    }  # fmt: skip
    found = plain | changes
    return {"estimate": found["truth"] + error} | found


def failed(method: str, run: int, message: str, status: str = "failed", **changes: Any) -> Row:
    nothing = {"model": "", "metric": "", "truth": np.nan, "status": status, "message": message}
    return row(method, run, np.nan, **nothing, **changes)


def results(rows: Sequence[Row], traits: Iterable[tuple[Any, ...]] = (), **changes: Any) -> Results:
    options: dict[str, Any] = {
        "name": "p", "title": "A protocol", "methods": METHODS, "metrics": ("accuracy",),
        "n_labeled": (20,), "n_unlabeled": (1000,), "runs": 3,
    }  # fmt: skip
    traits = list(traits)
    names = dict.fromkeys(r["dataset"] for r in rows)
    return Results(
        Protocol(**(options | changes)),
        tuple(
            DatasetFacts(name, 500, 250, ("m",), (0, 1), (), ("a note",), "d.csv", "0")
            for name in names
        ),
        {k: np.array([r[k] for r in rows], dtype=object if t is str else t)
         for k, t in COLUMNS.items()},
        {k: np.array([t[i] for t in traits], dtype=object if kind is str else kind)
         for i, (k, kind) in enumerate(TRAITS.items())},
        ("x.csv: no column of predictions",),
    )  # fmt: skip


def cell(summary: dict[str, Any], method: str, **place: Any) -> dict[str, Any]:
    found = [
        c
        for c in summary["cells"]
        if c["method"] == method and all(c[k] == v for k, v in place.items())
    ]
    assert len(found) == 1
    return found[0]


def one(summary: dict[str, Any], kind: str) -> dict[str, Any]:
    found = [t for t in summary["tables"] if t["kind"] == kind]
    assert len(found) == 1
    return found[0]


def by_method(table: dict[str, Any]) -> dict[str, list[Any]]:
    return {r["method"]: r["cells"] for r in table["rows"]}


def test_mean_sd_bias_and_ratio_by_hand() -> None:
    rows = [row("labeled", r, e) for r, e in enumerate([0.10, -0.20, 0.30])]
    rows += [row("ensemble", r, e) for r, e in enumerate([0.02, -0.04, 0.03])]
    summary = summarise(results(rows))
    labeled, ensemble = cell(summary, "labeled"), cell(summary, "ensemble")
    assert labeled["mean"] == pytest.approx(20)
    assert labeled["sd"] == pytest.approx(10)
    assert labeled["se"] == pytest.approx(10 / math.sqrt(3))
    assert labeled["bias"] == pytest.approx(100 * 0.2 / 3)
    assert labeled["n_runs"] == labeled["n_of"] == 3
    assert labeled["rmae"] == 1
    assert ensemble["mean"] == pytest.approx(3)
    assert ensemble["rmae"] == pytest.approx(0.15)
    assert ensemble["rmae_low"] is ensemble["rmae_high"] is None
    assert ensemble["seconds"] == 0.25
    assert (labeled["best"], ensemble["best"]) == (False, True)


def test_classifiers_are_averaged_within_a_run_first() -> None:
    rows = [row("labeled", 0, 0.1, model="a"), row("labeled", 0, -0.3, model="b"),
            row("labeled", 1, 0.2, model="a"), row("labeled", 1, 0.2, model="b")]  # fmt: skip
    found = cell(summarise(results(rows)), "labeled")
    assert found["mean"] == pytest.approx(20)
    assert found["sd"] == pytest.approx(0, abs=1e-9)
    assert found["bias"] == pytest.approx(5)


def test_a_metric_without_an_upper_bound_keeps_its_own_unit() -> None:
    rows = [row("labeled", r, 0.25, metric="log_loss") for r in range(2)]
    summary = summarise(results(rows, metrics=("log_loss",)))
    assert cell(summary, "labeled")["mean"] == pytest.approx(0.25)
    assert summary["metrics"]["log_loss"]["unit"] == ""


def test_one_run_has_no_sd_and_no_interval() -> None:
    rows = [row("labeled", 0, 0.1), row("ensemble", 0, 0.05), row("ssme-kde", 0, 0.06)]
    summary = summarise(results(rows))
    found = cell(summary, "ensemble")
    assert (found["sd"], found["se"], found["rmae_low"]) == (None, None, None)
    assert found["rmae"] == pytest.approx(0.5)
    assert [cell(summary, m)["best"] for m in METHODS] == [False, True, False]


def test_runs_with_an_undefined_classifier_are_counted() -> None:
    rows = [row("labeled", r, 0.1, model=m) for r in range(3) for m in ("a", "b")]
    rows += [row("ensemble", r, 0.05, model="a") for r in range(3)]
    rows += [row("ensemble", r, 0.05, model="b") for r in range(2)]
    rows += [row("ensemble", 2, np.nan, model="b", status="undefined")]
    found = cell(summarise(results(rows)), "ensemble")
    assert (found["n_runs"], found["n_of"]) == (2, 3)
    assert found["reasons"] == {Status.UNDEFINED.message: 1}
    assert found["mean"] == pytest.approx(5)


def test_a_classifier_without_a_row_makes_its_run_incomplete() -> None:
    rows = [row("labeled", r, 0.1, model=m) for r in range(2) for m in ("a", "b")]
    rows += [row("ensemble", 0, 0.05, model="a"), row("ensemble", 0, 0.05, model="b")]
    rows += [row("ensemble", 1, 0.05, model="a")]
    found = cell(summarise(results(rows)), "ensemble")
    assert found["n_runs"] == 1
    assert found["reasons"] == {"not every classifier has an estimate": 1}


def test_every_way_to_be_missing_has_its_reason() -> None:
    rows = [row("labeled", r, 0.1) for r in range(4)]
    rows += [row("ensemble", 0, 0.1, truth=np.nan, estimate=0.5), row("ensemble", 1, 0.1)]
    rows += [failed("ensemble", 2, "it diverged")]
    found = cell(summarise(results(rows)), "ensemble")
    assert found["n_runs"] == 1
    assert found["reasons"] == {TRUTH_UNDEFINED: 1, "it diverged": 1, NOT_RUN: 1}


def test_a_method_that_does_not_serve_the_data_keeps_its_row() -> None:
    rows = [row("labeled", r, 0.1) for r in range(2)]
    rows += [failed("ssme-kde", r, "only two classes", "not-applicable") for r in range(2)]
    summary = summarise(results(rows))
    assert cell(summary, "ssme-kde")["mean"] is None
    assert cell(summary, "ssme-kde")["reasons"] == {"only two classes": 2}
    assert summary["failures"] == [
        {
            "dataset": "d", "factor": "", "level": "", "n_labeled": 20, "n_unlabeled": 1000,
            "method": "ssme-kde", "reason": "only two classes", "n_runs": 2,
        }
    ]  # fmt: skip


def test_ratios_use_the_runs_that_both_know() -> None:
    rows = [row("labeled", r, e) for r, e in enumerate([0.1, 0.4])]
    rows += [row("ensemble", 0, 0.05), row("ensemble", 1, np.nan, status="undefined")]
    found = cell(summarise(results(rows)), "ensemble")
    assert found["rmae"] == pytest.approx(0.5)


def test_without_labeled_there_are_no_ratios() -> None:
    rows = [row("ensemble", r, 0.1) for r in range(3)]
    assert cell(summarise(results(rows)), "ensemble")["rmae"] is None


def test_ratio_to_an_error_of_nothing_is_unknown() -> None:
    assert ratio(np.array([0.1, 0.2]), np.zeros(2))["rmae"] is None


def test_the_interval_is_that_of_pairs() -> None:
    """Where both errors move together, their ratio hardly moves."""
    reference = np.random.default_rng(0).uniform(0.05, 0.5, 50)
    found = ratio(reference / 2, reference)
    assert found["rmae_high"] - found["rmae_low"] < 1e-9
    apart = ratio(np.full(50, reference.mean() / 2), reference)
    half = 1.96 * reference.std() / math.sqrt(50) / reference.mean() / 2
    assert apart["rmae_high"] - apart["rmae"] == pytest.approx(half, rel=0.35)


def test_the_best_and_those_within_a_paired_standard_error() -> None:
    rng = np.random.default_rng(1)
    runs = rng.uniform(0.1, 0.5, 40)
    noise = rng.normal(0, 0.01, 40)
    errors = np.stack([runs, runs + 0.02 + noise - noise.mean(), runs + noise - noise.mean()])
    methods = ["a", "b", "c"]
    # Unpaired, all three would be within a standard error of each other.
    assert spread(runs)["se"] > 0.015
    assert best(errors[:, None, :], methods) == [True, False, True]


def test_the_floor_is_never_the_best_and_one_method_neither() -> None:
    errors = np.array([[[0.1, 0.2]], [[0.0, 0.0]]])
    assert best(errors, ["a", FLOOR]) == [False, False]


def test_leaving_out_hard_runs_does_not_win() -> None:
    errors = np.array([[[0.1, 0.1, 0.9]], [[0.2, 0.2, np.nan]]])
    assert best(errors, ["whole", "gaps"]) == [True, False]


def test_the_floor_is_the_last_row_whatever_the_order() -> None:
    rows = [row(m, r, 0.1) for m in (FLOOR, "zeta", *METHODS) for r in range(2)]
    table = one(summarise(results(rows)), "methods")
    assert [r["method"] for r in table["rows"]] == [*METHODS, "zeta", FLOOR]
    assert [r["floor"] for r in table["rows"]] == [False, False, False, False, True]


def test_coverage_and_width() -> None:
    rows = [row("labeled", r, 0.1, low=0.4, high=0.8) for r in range(3)]
    rows += [row("labeled", 3, 0.2, low=0.6, high=0.8)]
    summary = summarise(results(rows, confidence_level=0.9))
    found = cell(summary, "labeled")
    assert found["coverage"] == pytest.approx(0.75)
    assert found["width"] == pytest.approx(35)
    assert one(summary, "intervals")["rows"][0]["cells"][0]["coverage"] == found["coverage"]


def test_without_intervals_there_is_no_table_of_them() -> None:
    summary = summarise(results([row("labeled", 0, 0.1)]))
    assert [t["kind"] for t in summary["tables"]] == ["methods"]


# --- effective sample size ---------------------------------------------------------------------


def curve(*errors: float, se: float = 0.01) -> Curve:
    sizes = np.array([10 + 5 * k for k in range(len(errors))])
    return Curve(sizes, np.array(errors), np.full(len(errors), se), np.full(len(errors), 50))


@pytest.mark.parametrize(
    ("error", "size", "bound"),
    [
        (0.40, 10, ""), (0.29, 15, ""), (0.25, 15, ""), (0.24, 20, ""), (0.20, 20, ""),
        (0.41, 10, "<"), (0.19, 20, ">"),
    ],
)  # fmt: skip
def test_the_nearest_size(error: float, size: int, bound: str) -> None:
    found = curve(0.40, 0.30, 0.20).size(error)
    assert (found["ess"], found["ess_bound"]) == (size, bound)


def test_of_equal_distances_the_smaller_size() -> None:
    assert curve(0.5, 0.25, 0.25).size(0.25)["ess"] == 15
    assert curve(0.5, 0.25, 0.125).size(0.375)["ess"] == 10


def test_a_flat_curve_has_a_wide_range() -> None:
    found = curve(0.40, 0.21, 0.20, 0.20, 0.19, se=0.015).size(0.20)
    assert (found["ess"], found["ess_low"], found["ess_high"]) == (20, 15, 30)


def test_sizes_without_an_error_are_passed_over() -> None:
    assert curve(np.nan, 0.3, 0.2).size(0.35)["ess_bound"] == "<"
    assert curve(np.nan, np.nan).size(0.35)["ess"] is None


def on_the_curve(dataset: str = "d") -> list[Row]:
    return [
        row("labeled", r, sign * 4 / n, factor="curve", n_labeled=n, n_unlabeled=0, dataset=dataset)
        for n in (10, 20, 40)
        for r, sign in enumerate((1, -1))
    ]


def test_rows_of_the_curve_are_in_no_table() -> None:
    rows = [*on_the_curve(), *(row(m, r, 0.2) for m in METHODS[:2] for r in range(2))]
    wanted = {"tables": ("methods", "effective-sizes"), "figures": ("labeled-curve",)}
    summary = summarise(results(rows, **wanted))
    assert {c["n_labeled"] for c in summary["cells"]} == {20}
    assert cell(summary, "ensemble")["ess"] == 20
    points = one(summary, "effective-sizes")["curve"]
    assert [(p["x"], p["n"]) for p in points] == [(10, 2), (20, 2), (40, 2)]
    assert [p["y"] for p in points] == pytest.approx([40, 20, 10])
    (figure,) = summary["figures"]
    assert [m["method"] for m in figure["panels"][0]["marks"]] == ["ensemble"]
    assert summary["curve_runs"] == [2, 2]


@pytest.mark.parametrize(("metric", "known"), [("accuracy", True), ("ece", False)])
def test_the_curve_serves_sharpened_scores_where_only_order_counts(
    metric: str, known: bool
) -> None:
    change = {"factor": "sharpness", "level": "4", "metric": metric}
    rows = [r | {"metric": metric} for r in on_the_curve()] + [row("labeled", 0, 0.1, **change)]
    found = cell(summarise(results(rows, metrics=(metric,))), "labeled")
    assert (found["ess"] is not None) == known


# --- other tables ------------------------------------------------------------------------------


def test_classifiers_side_by_side_with_their_mean() -> None:
    rows = [row("labeled", r, 0.1 * (j + 1), model=m) for r in range(2) for j, m in enumerate("ab")]
    table = one(summarise(results(rows, tables=("classifiers",))), "classifiers")
    assert [c["value"] for c in table["columns"]] == ["a", "b", "mean"]
    assert [c["mean"] for c in by_method(table)["labeled"]] == pytest.approx([10, 20, 15])


def test_groups_side_by_side_with_the_mean_over_groups() -> None:
    rows = [
        row(method, r, error * (3 if group else 1), group=group)
        for method, error in (("labeled", 0.1), ("ensemble", 0.04))
        for r in range(2)
        for group in ("", "sex=F", "sex=M", "age=<30", "age=100", "age=30")
    ]
    rows += [row("labeled", r, 0.1, group="sex=x") for r in range(2)]
    rows += [row("ensemble", r, np.nan, group="sex=x", status="undefined") for r in range(2)]
    summary = summarise(results(rows, tables=("groups",)))
    ratios = by_method(one(summary, "group-ratios"))["ensemble"]
    # sex has a group without a ratio, which counts against no method but is said.
    assert [c["mean"] for c in ratios] == pytest.approx([0.4, 0.4, 0.4])
    assert [(c["n_runs"], c["n_of"]) for c in ratios] == [(3, 3), (2, 3), (5, 6)]
    tables = {t["grouping"]: t for t in summary["tables"] if t["kind"] == "groups"}
    assert [c["value"] for c in tables["age"]["columns"]] == ["<30", "30", "100", "mean"]
    assert [c["value"] for c in tables["sex"]["columns"]] == ["F", "M", "x", "mean"]
    ages = by_method(tables["age"])
    assert ages["ensemble"][-1]["mean"] == pytest.approx(12)
    assert ages["ensemble"][-1]["rmae"] == pytest.approx(0.4)
    assert (ages["labeled"][-1]["best"], ages["ensemble"][-1]["best"]) == (False, True)
    undefined = by_method(tables["sex"])["ensemble"]
    assert undefined[2]["mean"] is None
    assert undefined[3]["mean"] is None
    assert undefined[3]["reasons"]


def test_levels_side_by_side_with_their_paired_difference() -> None:
    drawn, expected = [0.10, 0.30, 0.20], [0.11, 0.33, 0.22]
    rows = [
        row("labeled", r, e, factor="labels", level=level)
        for level, errors in (("drawn", drawn), ("expected", expected))
        for r, e in enumerate(errors)
    ]
    table = one(summarise(results(rows, tables=("levels",))), "levels")
    assert [c["value"] for c in table["columns"]] == ["drawn", "expected", "difference"]
    difference = by_method(table)["labeled"][2]
    assert difference["mean"] == pytest.approx(2)
    assert difference["se"] == pytest.approx(np.std([1, 3, 2], ddof=1) / math.sqrt(3))


def test_numeric_levels_stand_in_their_order() -> None:
    rows = [row("labeled", r, 0.1, factor="sharpness", level=level)
            for r in range(2) for level in ("10", "0.5", "2")]  # fmt: skip
    wanted = {"tables": ("levels",), "figures": ("error-by-level",)}
    summary = summarise(results(rows, **wanted))
    table = one(summary, "levels")
    assert [c["value"] for c in table["columns"]] == ["0.5", "2", "10"]
    assert summary["figures"][0]["levels"] == ["0.5", "2", "10"]


def test_several_data_sets_get_an_overview() -> None:
    rows = [row("labeled", r, 0.1, dataset=d) for d in "ab" for r in range(2)]
    rows += [row("ensemble", r, e, dataset=d) for d, e in (("a", 0.02), ("b", 0.04))
             for r in range(2)]  # fmt: skip
    table = one(summarise(results(rows)), "overview")
    found = by_method(table)["ensemble"][0]
    assert found["mean"] == pytest.approx(0.3)
    assert (found["n_runs"], found["best"]) == (2, True)


def test_rank_correlation_by_hand() -> None:
    assert rank_correlation(np.array([1.0, 2, 3, 4]), np.array([1.0, 4, 9, 7])) == pytest.approx(
        0.8
    )
    assert rank_correlation(np.array([1.0, 2, np.nan]), np.array([1.0, 2, 3])) is None
    assert rank_correlation(np.array([1.0, 2, 3]), np.array([5.0, 5, 5])) is None


def test_trends_over_a_trait_of_each_run() -> None:
    runs = range(40)
    traits = [("d", "3", r, "mean_accuracy", 0.6 + r / 100) for r in runs]
    rows = [row("labeled", r, (40 - r) / 1000, factor="classifiers", level="3") for r in runs]
    rows += [row("ensemble", r, 0.01, factor="classifiers", level="3") for r in runs]
    wanted = {"tables": ("levels",), "figures": ("error-by-accuracy",)}
    summary = summarise(results(rows, traits, **wanted))
    (panel,) = summary["figures"][0]["panels"]
    labeled, ensemble = panel["series"]
    assert labeled["rank_correlation"] == pytest.approx(-1)
    assert ensemble["rank_correlation"] is None
    assert [p["n"] for p in labeled["points"]] == [5] * 8
    assert labeled["points"][0]["x"] == pytest.approx(0.62)
    assert labeled["points"][0]["y"] == pytest.approx(3.8)
    association = by_method(one(summary, "associations"))
    assert association["labeled"][0]["mean"] == pytest.approx(-1)


def test_trends_over_a_trait_of_each_level_and_pairs_of_classifiers() -> None:
    levels = ["a+b+c", "a+b+d", "a+c+d", "b+c+d"]
    traits = [("d", level, -1, "error_correlation", k / 4) for k, level in enumerate(levels)]
    traits += [("d", "a+b", -1, "error_correlation", 0.9)]
    rows = [
        row("labeled", r, 0.1 * (k + 1), factor="subset", level=level, model=m)
        for k, level in enumerate(levels)
        for r in range(2)
        for m in level.split("+")
    ]
    wanted = {"tables": ("correlation",), "figures": ("error-by-correlation",)}
    summary = summarise(results(rows, traits, **wanted))
    pairs = one(summary, "pairs")
    assert pairs["models"] == ["a", "b", "c", "d"]
    assert pairs["values"][0][1] == pairs["values"][1][0] == 0.9
    assert pairs["values"][0][0] is None
    (series,) = summary["figures"][0]["panels"][0]["series"]
    assert [p["y"] for p in series["points"]] == pytest.approx([10, 20, 30, 40])
    assert by_method(one(summary, "associations"))["labeled"][0]["mean"] == pytest.approx(1)


# --- the whole ---------------------------------------------------------------------------------


def world() -> list[Row]:
    rng = np.random.default_rng(5)
    rows = on_the_curve()
    for n in (20, 50):
        for r in range(4):
            for method in (*METHODS[:2], FLOOR):
                rows += [
                    row(method, r, rng.normal() / n, n_labeled=n, model=m, group=g,
                        low=0.4, high=0.6)
                    for m in "ab" for g in ("", "sex=F")
                ]  # fmt: skip
            rows.append(failed("ssme-kde", r, "it diverged", n_labeled=n))
    return rows


EVERYTHING: dict[str, Any] = {"tables": TABLES, "figures": FIGURES, "n_labeled": (20, 50)}


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_the_rows_does_not_matter(seed: int) -> None:
    rows = world()
    shuffled = [rows[k] for k in np.random.default_rng(seed).permutation(len(rows))]
    assert summarise(results(shuffled, **EVERYTHING)) == summarise(results(rows, **EVERYTHING))


def test_the_summary_is_plain_json() -> None:
    summary = summarise(results(world(), **EVERYTHING))
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_no_rows_at_all() -> None:
    rows = [row("labeled", 0, 0.1)]
    empty = results(rows, **EVERYTHING)
    summary = summarise(
        Results(
            empty.protocol,
            empty.datasets,
            {k: v[:0] for k, v in empty.columns.items()},
            empty.traits,
            empty.skipped,
        )
    )
    assert (summary["cells"], summary["tables"], summary["figures"]) == ([], [], [])


@pytest.mark.parametrize("kind", ["tables", "figures"])
def test_an_unknown_table_or_figure(kind: str) -> None:
    with pytest.raises(UsageError, match=rf"unknown {kind[:-1]} 'methodz'"):
        summarise(results([row("labeled", 0, 0.1)], **{kind: ("methodz",)}))


def test_a_glance_over_all_columns() -> None:
    rows = [row(m, r, e, n_labeled=n) for n in (20, 50) for r in range(3)
            for m, e in (("labeled", 0.2), ("ensemble", 0.1 if n == 20 else 0.4))]  # fmt: skip
    labeled, ensemble = summarise(results(rows))["glance"]
    assert (labeled["n_best"], ensemble["n_best"], ensemble["n_columns"]) == (1, 1, 2)
    assert ensemble["rmae"] == pytest.approx(1)


def test_rank_correlations_do_not_mix_levels() -> None:
    """Five classifiers err less than three, at every accuracy: no trend within a level."""
    traits = [("d", level, r, "mean_accuracy", 0.6 + r / 100 + (level == "5") / 5)
              for level in "35" for r in range(9)]  # fmt: skip
    rows = [row("labeled", r, 0.1 + r % 3 / 100 - (level == "5") / 20, factor="classifiers",
                level=level) for level in "35" for r in range(9)]  # fmt: skip
    wanted = {"tables": ("levels",), "figures": ("error-by-accuracy",)}
    tables = [t for t in summarise(results(rows, traits, **wanted))["tables"]
              if t["kind"] == "associations"]  # fmt: skip
    assert [t["level"] for t in tables] == ["3", "5"]
    for table in tables:
        assert by_method(table)["labeled"][0]["mean"] == pytest.approx(0.316, abs=0.001)
