"""What is left out for want of data is said in the last lines of a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from not_checked import unchecked

ROOT = Path(__file__).resolve().parents[2]


def test_lines_count_tests_by_file() -> None:
    skipped = [
        ("tests/a.py::one", "Skipped: no folder /x; set FEWLABELS_DATA to the folder"),
        ("tests/a.py::two[3]", "Skipped: no golden values in /y"),
        ("tests/b.py::three", "Skipped: numba is not installed"),
    ]
    first, *rest = unchecked(skipped)
    assert "2 tests" in first
    assert rest == ["  tests/a.py: 2"]
    assert unchecked(skipped[2:]) == []


def test_a_run_without_data_says_so(tmp_path: Path) -> None:
    nowhere = {"FEWLABELS_DATA": str(tmp_path / "no"), "FEWLABELS_GOLDEN": str(tmp_path / "no")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [str(ROOT / "tests" / "golden" / "test_golden_histograms.py")]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | nowhere, capture_output=True, text=True
    )
    last = done.stdout.strip().splitlines()[-6:]
    assert any("NOT CHECKED for want of data" in line for line in last), last
    assert any("test_golden_histograms.py" in line for line in last), last
