"""Errors run by run, by hand: means, ratios, who is best, effective sizes, why runs are missing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench_samples import FLOOR, METHODS, Row, failed, on_the_curve, results, row

from bench.errors import (
    NOT_RUN,
    TRUTH_UNDEFINED,
    Errors,
    best,
    coverage_error,
    effective_size,
    rank_correlation,
    ratio,
    spread,
)
from fewlabels import Status


def cell(rows: list[Row], method: str, **changes: Any) -> pd.Series:
    found = Errors(results(rows, **changes)).cells
    (own,) = (part for _, part in found[found["method"] == method].iterrows())
    return own


def test_mean_sd_bias_and_ratio_by_hand() -> None:
    rows = [row("labeled", r, e) for r, e in enumerate([0.10, -0.20, 0.30])]
    rows += [row("ensemble", r, e) for r, e in enumerate([0.02, -0.04, 0.03])]
    labeled, ensemble = cell(rows, "labeled"), cell(rows, "ensemble")
    assert labeled[["mean", "sd", "se"]].tolist() == pytest.approx([20, 10, 10 / math.sqrt(3)])
    assert labeled["bias"] == pytest.approx(100 * 0.2 / 3)
    assert labeled["n_runs"] == labeled["n_of"] == 3
    assert labeled["rmae"] == 1
    assert ensemble[["mean", "rmae", "seconds"]].tolist() == pytest.approx([3, 0.15, 0.25])
    assert math.isnan(ensemble["rmae_low"])
    assert (labeled["best"], ensemble["best"]) == (False, True)


def test_classifiers_are_averaged_within_a_run_first() -> None:
    rows = [row("labeled", 0, 0.1, model="a"), row("labeled", 0, -0.3, model="b"),
            row("labeled", 1, 0.2, model="a"), row("labeled", 1, 0.2, model="b")]  # fmt: skip
    found = cell(rows, "labeled")
    assert found[["mean", "sd", "bias"]].tolist() == pytest.approx([20, 0, 5], abs=1e-9)


def test_a_metric_without_an_upper_bound_keeps_its_own_unit() -> None:
    rows = [row("labeled", r, 0.25, metric="log_loss") for r in range(2)]
    assert cell(rows, "labeled", metrics=("log_loss",))["mean"] == pytest.approx(0.25)


def test_every_way_to_be_missing_has_its_reason() -> None:
    two = [row("labeled", r, 0.1, model=m) for r in range(7) for m in "ab"]
    two += [row("ensemble", r, 0.05, model=m) for r in (0, 1) for m in "ab"]
    two += [row("ensemble", 2, 0.05, model="a")]
    two += [row("ensemble", 3, 0.05, model="a"),
            row("ensemble", 3, np.nan, model="b", status="undefined")]  # fmt: skip
    two += [row("ensemble", 4, 0.1, model=m, truth=np.nan, estimate=0.5) for m in "ab"]
    two += [failed("ensemble", 5, "it diverged")]
    found = cell(two, "ensemble")
    assert (found["n_runs"], found["n_of"]) == (2, 7)
    assert found["mean"] == pytest.approx(5)
    assert found["reasons"] == {
        Status.UNDEFINED.message: 1, TRUTH_UNDEFINED: 1, "it diverged": 1, NOT_RUN: 1,
        "not every classifier has an estimate": 1,
    }  # fmt: skip


def test_a_method_that_does_not_serve_the_data_keeps_its_row() -> None:
    rows = [row("labeled", r, 0.1) for r in range(2)]
    rows += [failed("ssme-kde", r, "only two classes", "not-applicable") for r in range(2)]
    found = cell(rows, "ssme-kde")
    assert math.isnan(found["mean"])
    assert found["reasons"] == {"only two classes": 2}


def test_ratios_use_the_runs_that_both_know() -> None:
    rows = [row("labeled", r, e) for r, e in enumerate([0.1, 0.4])]
    rows += [row("ensemble", 0, 0.05), row("ensemble", 1, np.nan, status="undefined")]
    assert cell(rows, "ensemble")["rmae"] == pytest.approx(0.5)
    assert math.isnan(cell(rows[2:], "ensemble")["rmae"])
    assert math.isnan(ratio(np.array([0.1, 0.2]), np.zeros(2))["rmae"])


def test_the_interval_is_that_of_pairs_and_needs_five_runs() -> None:
    """Where both errors move together, their ratio hardly moves."""
    reference = np.random.default_rng(0).uniform(0.05, 0.5, 50)
    found = ratio(reference / 2, reference)
    assert found["rmae_high"] - found["rmae_low"] < 1e-9
    apart = ratio(np.full(50, reference.mean() / 2), reference)
    half = 1.96 * reference.std() / math.sqrt(50) / reference.mean() / 2
    assert apart["rmae_high"] - apart["rmae"] == pytest.approx(half, rel=0.35)
    assert math.isnan(ratio(reference[:4] / 2, reference[:4])["rmae_low"])


def _frame(**methods: list[float]) -> pd.DataFrame:
    return pd.DataFrame(methods.values(), index=[m.replace("_", "-") for m in methods])


def test_the_best_and_those_within_a_paired_standard_error() -> None:
    rng = np.random.default_rng(1)
    runs = rng.uniform(0.1, 0.5, 40)
    noise = rng.normal(0, 0.01, 40)
    near = runs + noise - noise.mean()
    # Unpaired, all three would be within a standard error of each other.
    assert spread(runs)["se"] > 0.015
    assert best(_frame(a=runs, b=near + 0.02, c=near)).tolist() == [True, False, True]


def test_who_cannot_be_the_best() -> None:
    floor = _frame(a=[0.1, 0.2], all_labels_known=[0.0, 0.0])
    assert best(floor).tolist() == [False, False]
    # Leaving out hard runs does not win.
    assert best(_frame(whole=[0.1, 0.1, 0.9], gaps=[0.2, 0.2, np.nan])).tolist() == [True, False]


def test_coverage_and_its_standard_error() -> None:
    rows = [row("labeled", r, 0.1, low=0.4, high=0.8, model=m) for r in range(3) for m in "abc"]
    found = cell(rows, "labeled", confidence_level=0.9)
    p = 11 / 13
    assert found[["coverage", "width"]].tolist() == pytest.approx([1, 40])
    assert found["coverage_se"] == pytest.approx(math.sqrt(p * (1 - p) / 13))
    # Runs whose classifiers cover together count as one observation.
    covered = np.tile([0.0, 1.0], 25)
    assert coverage_error(covered, 10) == pytest.approx(np.std(covered, ddof=1) / math.sqrt(50))
    assert math.isnan(coverage_error(np.array([np.nan]), 10))
    assert coverage_error(np.zeros(50), 7) == pytest.approx(math.sqrt(2 / 354 * 352 / 354 / 354))


# --- effective sample size ---------------------------------------------------------------------


def curve(*errors: float, se: float = 0.01) -> pd.DataFrame:
    sizes = [10 + 5 * k for k in range(len(errors))]
    return pd.DataFrame({"n_labeled": sizes, "mean": errors, "se": se})


@pytest.mark.parametrize(
    ("error", "size", "bound"),
    [
        (0.40, 10, ""), (0.29, 15, ""), (0.25, 15, ""), (0.24, 20, ""), (0.20, 20, ""),
        (0.41, 10, "<"), (0.19, 20, ">"),
    ],
)  # fmt: skip
def test_the_nearest_size(error: float, size: int, bound: str) -> None:
    found = effective_size(curve(0.40, 0.30, 0.20), error)
    assert (found["ess"], found["ess_bound"]) == (size, bound)


def test_flat_curves_and_gaps() -> None:
    assert effective_size(curve(0.5, 0.25, 0.25), 0.25)["ess"] == 15
    found = effective_size(curve(0.40, 0.21, 0.20, 0.20, 0.19, se=0.015), 0.20)
    assert (found["ess"], found["ess_low"], found["ess_high"]) == (20, 15, 30)
    assert effective_size(curve(np.nan, 0.3, 0.2), 0.35)["ess_bound"] == "<"
    assert math.isnan(effective_size(curve(np.nan, np.nan), 0.35)["ess"])


def test_sizes_are_read_from_the_curve_but_that_of_labeled() -> None:
    rows = [*on_the_curve(), *(row(m, r, 0.4) for m in METHODS[:2] for r in range(2))]
    labeled, ensemble = cell(rows, "labeled"), cell(rows, "ensemble")
    assert (labeled["ess"], labeled["ess_bound"]) == (20, "")
    assert math.isnan(labeled["ess_low"])
    assert ensemble["ess"] == 10
    found = Errors(results(rows))
    assert found.curves["mean"].tolist() == pytest.approx([0.4, 0.2, 0.1])
    assert set(found.cells["n_labeled"]) == {20}


@pytest.mark.parametrize(("metric", "known"), [("accuracy", True), ("ece", False)])
def test_the_curve_serves_sharpened_scores_where_only_order_counts(
    metric: str, known: bool
) -> None:
    change = {"factor": "sharpness", "level": "4", "metric": metric}
    rows = [r | {"metric": metric} for r in on_the_curve()] + [row("labeled", 0, 0.1, **change)]
    assert math.isnan(cell(rows, "labeled", metrics=(metric,))["ess"]) != known


def test_rank_correlation_by_hand() -> None:
    assert rank_correlation([1.0, 2, 3, 4], [1.0, 4, 9, 7]) == pytest.approx(0.8)
    assert math.isnan(rank_correlation([1.0, 2, np.nan], [1.0, 2, 3]))
    assert math.isnan(rank_correlation([1.0, 2, 3], [5.0, 5, 5]))


# --- the order ---------------------------------------------------------------------------------


def test_settings_and_methods_stand_in_their_order() -> None:
    rows = [row(m, 0, 0.1, factor="sharpness", level=level, group=g)
            for m in (FLOOR, "zeta", *METHODS) for level in ("10", "0.5")
            for g in ("age=>=60", "age=<30", "age=30 to <60", "")]  # fmt: skip
    found = Errors(results(rows))
    assert found.methods == [*METHODS, "zeta", FLOOR]
    assert list(dict.fromkeys(found.cells["level"])) == ["0.5", "10"]
    groups = ["", "age=<30", "age=30 to <60", "age=>=60"]
    assert list(dict.fromkeys(found.cells["group"])) == groups


def test_the_order_of_the_rows_does_not_matter() -> None:
    rng = np.random.default_rng(5)
    rows = on_the_curve()
    for method in METHODS[:2]:
        rows += [row(method, r, rng.normal() / 20, model=m, group=g, low=0.4, high=0.6)
                 for r in range(3) for m in "ab" for g in ("", "sex=F")]  # fmt: skip
    rows.append(failed("ssme-kde", 1, "it diverged"))
    shuffled = [rows[k] for k in np.random.default_rng(0).permutation(len(rows))]
    one, two = (Errors(results(r)).cells for r in (rows, shuffled))
    pd.testing.assert_frame_equal(one, two, check_exact=True)
