"""The benchmark of curves runs on a small scale, and fills its page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import score_lists
from curves_bands import by_set, draw

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks" / "curves.md"
PARTS = ("figure1", "figure2", "figure4", "figure3g", "synthetic")
TABLES = (*PARTS, "satimage")


def run(work: Path, *options: str) -> str:
    """The page that a quick run writes."""
    script = ROOT / "benchmarks" / "curves.py"
    command = [sys.executable, "-W", "error", str(script), *options, "--quick", "--work", str(work)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return (work / "quick" / PAGE.name).read_text(encoding="utf-8")


def block(page: str, name: str) -> str:
    """What stands between the marks of a part."""
    found = re.search(f"<!-- {name} -->\n(.*?)<!-- end {name} -->", page, re.DOTALL)
    assert found, f"no place for {name}"
    return found[1]


def test_the_page_has_a_place_for_every_part():
    page = PAGE.read_text(encoding="utf-8")
    assert set(re.findall("<!-- end (.*) -->", page)) == set(TABLES)
    assert all(block(page, name) is not None for name in TABLES)


def test_satimage_is_scored_by_classifiers_that_learned_from_the_other_half(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    label = rng.choice([1, 7], 400)
    rows = np.column_stack([label + rng.normal(0, 2, 400), rng.normal(size=400), label])
    table = tmp_path / "satimage.dat"
    table.write_text("\n".join(f"{a}, {b}, {int(c)}" for a, b, c in rows))
    monkeypatch.setattr(score_lists, "data_sets", lambda: {"satimage": table})
    scores = {name: draw(tmp_path, f"satimage_7 {name}", 0) for name in score_lists.LINEAR}
    first, second = scores.values()
    assert first.labels.sum() == second.labels.sum()  # of the same items
    assert len(first.labels) == 200
    for one in scores.values():
        assert roc_auc_score(one.labels, one.values) > 0.95
    other = draw(tmp_path, "satimage_1 logreg", 0)
    assert other.labels.mean() == pytest.approx(1 - first.labels.mean())


def test_areas_are_compared_list_by_list():
    cells = [("a_1 x", 1, 3), ("a_2 x", 2, 1), ("b_1 x", np.nan, 1)]
    records = pd.DataFrame(
        [{"list": name, "n": 20, "method": method, "area": area}
         for name, *areas in cells for method, area in zip(("labeled", "spe"), areas, strict=True)]
    )  # fmt: skip
    table = by_set(records, ["spe"])
    assert "| a | 20 | 2 | 1.500 | 2.000 (1) |" in table
    assert "| b | 20 | 1 | - | 1.000 (0) |" in table


@pytest.mark.slow
def test_a_part_without_data(tmp_path):
    first = run(tmp_path, "synthetic", "--data", str(tmp_path / "none"))
    text = block(first, "synthetic")
    assert "curves synthetic --quick`" in text
    assert text.count("| spe |") == 2


@pytest.mark.slow
def test_every_part_and_its_resumption(tmp_path, real_or_simulated):
    parts = set(PARTS) - {"figure4"}
    page = run(tmp_path, *sorted(parts), "--data", str(real_or_simulated))
    for name in PARTS:
        assert "\n| --- |" in block(page, name), name
    assert (tmp_path / "quick" / "figures" / "curves" / "figure1.svg").stat().st_size > 5000
    cells = tmp_path / "quick" / "synthetic" / "cells.jsonl"
    stamp = cells.stat().st_mtime_ns
    again = run(tmp_path, "synthetic", "--data", str(real_or_simulated))
    assert cells.stat().st_mtime_ns == stamp
    assert block(again, "synthetic").count("| spe |") == 2
