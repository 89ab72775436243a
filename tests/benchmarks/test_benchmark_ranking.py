"""The leagues of the study of rankings, and the page that it fills."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import ranking as bench  # noqa: E402


def test_win_rates_of_a_large_league_are_the_true_ones() -> None:
    table = bench.league(np.random.default_rng(0), "plain", 40_000, 40_000)
    halves = table["label"].map({"model_a": 1.0, "model_b": 0.0, "tie": 0.5})
    for model, value in bench.simulated_truth().items():
        won = pd.concat([halves[table["model_a"] == model], 1 - halves[table["model_b"] == model]])
        assert won.mean() == pytest.approx(value, abs=0.015)


def test_the_page_has_a_place_for_every_table() -> None:
    page = (ROOT / "docs" / "benchmarks" / "ranking.md").read_text(encoding="utf-8")
    assert set(re.findall("<!-- end (.*) -->", page)) == set(bench.PARTS)


@pytest.mark.slow
def test_a_cell_and_its_table() -> None:
    records = bench.run(Path(), "likes length", 200, 40, runs=2)
    assert len(records) == 2 * 3 * 6
    text = bench.blocks(pd.DataFrame(records), bench.Plan(Path(), Path(), False))
    assert text.splitlines()[2].startswith("| likes length | 200 | 40 |")
