"""The benchmark of curves runs on a small scale, and fills its page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks" / "curves.md"
PARTS = ("figure1", "figure2", "figure4", "figure3g", "synthetic")


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
    assert set(re.findall("<!-- end (.*) -->", page)) == set(PARTS)
    assert all(block(page, name) is not None for name in PARTS)


@pytest.mark.slow
def test_a_part_without_data(tmp_path):
    first = run(tmp_path, "synthetic", "--data", str(tmp_path / "none"))
    text = block(first, "synthetic")
    assert "curves synthetic --quick`" in text
    assert text.count("| spe |") == 2


@pytest.mark.slow
def test_every_part_and_its_resumption(tmp_path, real_or_simulated):
    page = run(tmp_path, "all", "--data", str(real_or_simulated))
    for name in PARTS:
        assert "\n| --- |" in block(page, name), name
    assert (tmp_path / "quick" / "figures" / "curves" / "figure1.svg").stat().st_size > 5000
    cells = tmp_path / "quick" / "synthetic" / "cells.jsonl"
    stamp = cells.stat().st_mtime_ns
    again = run(tmp_path, "synthetic", "--data", str(real_or_simulated))
    assert cells.stat().st_mtime_ns == stamp
    assert block(again, "synthetic").count("| spe |") == 2
