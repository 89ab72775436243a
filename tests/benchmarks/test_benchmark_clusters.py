"""The worlds of clusters and their truth, which coverage is measured against."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import cluster_coverage as bench  # noqa: E402


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_rows_of_clusters_are_distributed_as_independent_ones(rho: float) -> None:
    case = np.repeat(np.arange(3_000), 10)
    rows = bench.simulated(np.random.default_rng(1), {"case": case}, rho)
    found = bench.fl.estimate(rows, "labeled", "accuracy", confidence_level=None)
    known = bench.truth(Path(), "simulated")["accuracy"]
    assert found.get("a", "accuracy").value == pytest.approx(known, abs=0.02)
    wrong = (rows.probabilities[:, 0, 1] > 0.5) != rows.labels
    of_case = wrong.reshape(-1, 10).mean(axis=1)
    inflated = of_case.var() / (wrong.var() / 10)
    assert inflated == pytest.approx(1, abs=0.1) if rho == 0 else inflated > 4


def test_the_page_has_a_place_for_every_table() -> None:
    page = (ROOT / "docs" / "benchmarks" / "clusters.md").read_text(encoding="utf-8")
    assert set(re.findall("<!-- end (.*) -->", page)) == set(bench.PARTS)


def test_clusters_drawn_again_are_new_ones() -> None:
    rows = bench.in_clusters(
        np.arange(6) % 2, np.full((6, 2), 0.6), None, {"case": np.array([0, 0, 1, 1, 1, 2])}
    )
    drawn = bench.drawn_clusters(rows, 50, np.random.default_rng(0))
    sizes = np.bincount(drawn.groups["case"].astype(int))
    assert len(sizes) == 50
    assert set(sizes.tolist()) == {1, 2, 3}


def test_a_cell_and_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "WHOLE", 10_000)
    cell = {"world": "crossed", "rho": 0.3, "drawn": "cluster", "labeled": 10}
    records = bench.run(Path(), **cell, method="labeled", runs=2, both=1)
    assert len(records) == 3 * len(bench.METRICS) * 2
    text = bench.blocks(pd.DataFrame(records), bench.Plan(Path(), Path(), False))
    assert text.splitlines()[2].startswith("| crossed | 0.3 | 10 clusters | labeled |")
