"""The benchmark of judges runs on a small scale, and fills its page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks" / "judges.md"
MARKS = {"summary", "sets", "judges", "orders", "score", "widths"}


def test_the_page_has_a_place_for_every_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert set(re.findall("<!-- end (.*) -->", page)) == MARKS


@pytest.mark.slow
def test_a_quick_run(tmp_path: Path, data_folder: Path) -> None:
    script = ROOT / "benchmarks" / "judges.py"
    command = [sys.executable, "-W", "error", str(script), "all", "--quick", "--workers", "1"]
    command += ["--work", str(tmp_path), "--data", str(data_folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    page = (tmp_path / "quick" / PAGE.name).read_text(encoding="utf-8")
    for mark in MARKS:
        (block,) = re.findall(f"<!-- {mark} -->\n(.*?)<!-- end {mark} -->", page, re.DOTALL)
        assert "--quick`" in block
        assert "\n| --- |" in block, mark
