"""What is marked, counted and said to be uncertain in a summary."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_bench_summary import by_method, cell, failed, on_the_curve, one, results, row

from fewlabels.bench.comparisons import coverage_error, ratio
from fewlabels.bench.summary import summarise


@pytest.mark.parametrize("covers", [0.0, 1.0])
def test_a_coverage_of_nothing_or_everything_has_a_standard_error(covers: float) -> None:
    found = coverage_error(np.full(50, covers), 7)
    p = 2 / 354
    assert found == pytest.approx(math.sqrt(p * (1 - p) / 354))


def test_runs_whose_classifiers_cover_together_count_as_one_observation() -> None:
    covered = np.tile([0.0, 1.0], 25)
    assert coverage_error(covered, 10) == pytest.approx(np.std(covered, ddof=1) / math.sqrt(50))
    assert coverage_error(np.array([np.nan]), 10) is None
    assert coverage_error(np.array([1.0]), 1) == pytest.approx(math.sqrt(0.6 * 0.4 / 5))


def test_coverage_errors_know_how_many_classifiers_there_are() -> None:
    rows = [row("labeled", r, 0.1, low=0.4, high=0.8, model=m) for r in range(3) for m in "abc"]
    found = cell(summarise(results(rows, confidence_level=0.9)), "labeled")
    p = 11 / 13
    assert found["coverage_se"] == pytest.approx(math.sqrt(p * (1 - p) / 13))


def test_few_runs_have_no_interval_of_the_ratio() -> None:
    rng = np.random.default_rng(0)
    errors, reference = rng.uniform(0.1, 0.5, (2, 5))
    assert ratio(errors, reference)["rmae_low"] is not None
    assert ratio(errors[:4], reference[:4])["rmae_low"] is None
    assert ratio(errors[:4], reference[:4])["rmae"] is not None


def test_columns_of_one_method_mark_nobody_and_are_no_comparison() -> None:
    rows = [row("labeled", r, 0.1) for r in range(3)]
    rows += [row("ensemble", r, 0.2) for r in range(3)]
    rows += [row("ensemble", r, 0.2, n_labeled=50) for r in range(3)]
    rows += [row("all-labels-known", r, 0.0, n_labeled=50) for r in range(3)]
    summary = summarise(results(rows))
    assert not cell(summary, "ensemble", n_labeled=50)["best"]
    labeled, ensemble, floor = summary["glance"]
    assert (labeled["n_best"], labeled["n_contested"], labeled["n_columns"]) == (1, 1, 2)
    assert (ensemble["n_best"], ensemble["n_ratios"], floor["n_best"]) == (0, 1, 0)
    assert summary["runs"] == 3


def test_a_mean_over_groups_that_one_method_has_alone_is_not_marked() -> None:
    rows = [row(m, r, 0.1, group=g) for m in ("labeled", "ensemble") for r in range(2)
            for g in ("", "sex=F")]  # fmt: skip
    rows += [row("labeled", r, 0.1, group="sex=M") for r in range(2)]
    rows += [row("ensemble", r, np.nan, group="sex=M", status="undefined") for r in range(2)]
    found = by_method(one(summarise(results(rows, tables=("groups",))), "groups"))
    assert found["labeled"][-1]["mean"] == pytest.approx(10)
    assert not found["labeled"][-1]["best"]


def test_the_overview_counts_data_sets() -> None:
    rows = [row("labeled", r, 0.1, dataset=d) for d in "abc" for r in range(2)]
    rows += [row("ensemble", r, 0.02, dataset="a") for r in range(2)]
    rows += [failed("ensemble", r, "only two classes", dataset="b") for r in range(2)]
    found = by_method(one(summarise(results(rows)), "overview"))["ensemble"][0]
    assert (found["n_runs"], found["n_of"], found["over"]) == (1, 3, "data set")
    assert found["reasons"] == {
        "only two classes": 1, "there is no ratio to the error of labeled": 1
    }  # fmt: skip


def test_the_effective_size_of_labeled_is_its_own() -> None:
    rows = [*on_the_curve(), *(row(m, r, 0.4) for m in ("labeled", "ensemble") for r in range(2))]
    summary = summarise(results(rows))
    labeled, ensemble = cell(summary, "labeled"), cell(summary, "ensemble")
    assert (labeled["ess"], labeled["ess_bound"], labeled["ess_low"]) == (20, "", None)
    assert ensemble["ess"] == 10


@pytest.mark.parametrize("tables", [("classifiers",), ("groups", "methods"), ("levels",)])
def test_intervals_that_were_asked_for_are_shown_by_every_protocol(tables: tuple[str, ...]) -> None:
    change = {"low": 0.4, "high": 0.8}
    if tables == ("levels",):
        rows = [row("labeled", r, 0.1, factor="sharpness", level=v, **change)
                for r in range(3) for v in ("2", "0.5")]  # fmt: skip
    else:
        rows = [row("labeled", r, 0.1, group=g, **change) for r in range(3) for g in ("", "sex=F")]
    table = one(summarise(results(rows, tables=tables, confidence_level=0.9)), "intervals")
    heads = [c["value"] for c in table["columns"]]
    assert heads == (["0.5", "2"] if tables == ("levels",) else [20])
