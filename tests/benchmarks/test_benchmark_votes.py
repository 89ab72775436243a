"""The benchmark of models of votes runs on a small scale, and fills its page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from votes_methods import paired

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks" / "votes.md"
DATA = Path(os.environ.get("FEWLABELS_DATA", ROOT.parent / "shared" / "data"))
MARKS = ("nell", "figure4", "brain", "figure4b", "honest", "settings")


def run(work: Path, *options: str) -> str:
    """The page that a quick run writes."""
    script = ROOT / "benchmarks" / "votes.py"
    command = [sys.executable, "-W", "error", str(script), *options, "--quick", "--workers", "1"]
    done = subprocess.run([*command, "--work", str(work)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return (work / "quick" / PAGE.name).read_text(encoding="utf-8")


def block(page: str, name: str) -> str:
    """What stands between the marks of a part."""
    found = re.search(f"<!-- {name} -->\n(.*?)<!-- end {name} -->", page, re.DOTALL)
    assert found, f"no place for {name}"
    return found[1]


def test_the_page_has_a_place_for_every_part():
    page = PAGE.read_text(encoding="utf-8")
    assert re.findall("<!-- end (.*) -->", page) == list(MARKS)
    assert all(block(page, name) is not None for name in MARKS)


def test_pairs_are_compared_where_both_were_run():
    errors = pd.DataFrame({"a": [3.0, 4.0, np.nan], "b": [1.0, 1.0, 5.0], "c": [1.0, 1.0, 5.0]})
    assert paired(errors, "a", "b") == ["2.50e0 ± 5.00e-1", "2 of 2", "5.0", "3.50"]
    assert paired(errors, "b", "c") == ["0.00e0 ± 0.00e0", "0 of 3", "-", "1.00"]


@pytest.mark.slow
def test_a_part_without_data(tmp_path):
    first = run(tmp_path, "settings", "--data", str(tmp_path / "none"))
    text = block(first, "settings")
    assert "votes settings --quick`" in text
    assert "| S1: bee - cbee |" in text
    assert len((tmp_path / "quick" / "settings" / "cells.jsonl").read_text().splitlines()) == 2


@pytest.mark.slow
def test_every_part_and_its_resumption(tmp_path):
    if not (DATA / "nell").is_dir() or not (DATA / "crowd").is_dir():
        pytest.skip(f"no data in {DATA}; set FEWLABELS_DATA")
    page = run(tmp_path, "all", "--data", str(DATA))
    for name in set(MARKS) - {"figure4", "figure4b"}:
        assert "\n| --- |" in block(page, name), name
    assert (tmp_path / "quick" / "figures" / "votes" / "figure4.svg").stat().st_size > 5000
    cells = tmp_path / "quick" / "settings" / "cells.jsonl"
    stamp = cells.stat().st_mtime_ns
    run(tmp_path, "settings", "--data", str(DATA))
    assert cells.stat().st_mtime_ns == stamp
