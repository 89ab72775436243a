"""The study of a task among others: its worlds, a cell, and a place for every table."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import task_coverage as bench  # noqa: E402


def test_tasks_of_opposite_frequency() -> None:
    rng = np.random.default_rng(0)
    labels, p = bench.simulated(bench.parameters("opposite", 2, rng), 4_000, rng)
    rare, usual = labels.mean(axis=0)
    assert rare < 0.2
    assert usual > 0.75
    assert p.shape == (4_000, 2, 1)
    # Labels of an item go together.
    assert np.corrcoef(labels.T)[0, 1] > 0.05


def test_a_run_and_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "ITEMS", 100)
    monkeypatch.setattr(bench, "WHOLE", 2_000)
    records = pd.DataFrame(bench.run(Path(), "alike", 2, 40, 0))
    assert set(records["way"]) == {"tasks", "alone", "groups", "labeled"}
    own = records[records["what"] == "task"].groupby("way")["error"].mean()
    assert own["tasks"] == pytest.approx(own["alone"], abs=0.01)
    table = bench.blocks(records, bench.Plan(Path(), Path(), False)).splitlines()
    assert len(table) == 4
    assert table[2].startswith("| alike | 2 | 40 | accuracy |")


def test_the_page_has_a_place_for_every_table() -> None:
    page = (ROOT / "docs" / "benchmarks" / "tasks.md").read_text(encoding="utf-8")
    assert set(re.findall("<!-- end (.*) -->", page)) == set(bench.PARTS)
