"""The study of performance over time: its worlds, other ways beside, a run and its tables."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import monitor as bench  # noqa: E402


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["none", "sudden fall", "new mistakes", "slow fall"])
def test_accuracy_falls_where_the_kind_says_so(kind: str) -> None:
    fall = np.mean([bench.simulated(kind, k).fall[:, 0] for k in range(8)], axis=0)
    assert abs(fall[:7].mean()) < 0.03
    assert (fall[-3:].mean() > 0.05) == (kind != "none")


def test_complaints_choose_mistakes() -> None:
    case = bench.simulated("complaints", 0)
    wrong = case.items.hard[:, 0] != case.items.labels
    assert wrong[case.rank < 20].mean() > 2 * wrong.mean()
    assert set(np.bincount(case.items.groups["period"][case.rank < 20].astype(int))[1:]) == {20}


def test_a_cusum_is_zero_until_errors_come() -> None:
    sums = bench.cusum(np.array([0, 1, 5, 5]), np.full(4, 10), 0.1)
    rate = np.log([2, 0.8 / 0.9])
    expected = [0, max(rate @ [1, 9], 0), rate @ [5, 5], 2 * rate @ [5, 5]]
    np.testing.assert_allclose(sums, np.maximum(expected, 0))


def test_delay_counts_from_the_fall_to_the_first_alarm_that_is_due() -> None:
    fall, alarm = np.array([0, 0, 0.04, 0.1, 0.1]), np.array([np.nan, 1, 1, np.nan, 1.0])
    (record,) = bench._alarms({"way": alarm[:, None]}, fall[:, None])
    assert (record["quiet"], record["false"], record["found"], record["delay"]) == (1, 1, True, 1)


@pytest.mark.slow
def test_a_run_and_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    case = bench.simulated("none", 3)
    first = case.items.groups["period"] <= 3
    short = case._replace(items=case.items.take(first), rank=case.rank[first], fall=case.fall[:3])
    monkeypatch.setattr(bench, "simulated", lambda kind, world: short)
    monkeypatch.setattr(bench, "TUNING", 20)
    monkeypatch.setattr(bench, "has_nannyml", lambda: False)
    records = pd.DataFrame(bench.run(Path(), "none", 20, 3, looked=True))
    own = records[records["what"] == "estimate"].set_index(["way", "metric"])
    assert own.loc[("fewlabels", "accuracy"), "error"] < 0.1
    assert own.loc[("labels only", "accuracy"), "width"] > 0.1
    tables = bench.blocks(records, bench.Plan(Path(), Path(), quick=True, part="simulated"))
    assert all(text.count("| none | 20 |") for text in tables.values())
    page = (ROOT / "docs" / "benchmarks" / "monitor.md").read_text(encoding="utf-8")
    assert {n for n in re.findall("<!-- end (.*) -->", page) if n in tables} == {*tables}
