"""What is left out for want of data is said in the last lines of a run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

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


def test_a_run_without_data_says_so_last(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    conftest = request.config.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))
    with pytest.raises(pytest.skip.Exception) as skipped:
        conftest._there(tmp_path / "no", "set FEWLABELS_GOLDEN to the folder of the golden values")
    test = "tests/golden/test_x.py"
    report = SimpleNamespace(nodeid=f"{test}::one", longrepr=("f", 1, f"Skipped: {skipped.value}"))
    lines: list[str] = []
    terminal = SimpleNamespace(
        stats={"skipped": [report]},
        section=lambda title, sep: lines.append(title),
        write_line=lines.append,
    )
    conftest.pytest_terminal_summary(terminal)
    assert lines[0] == "promises that were not checked"
    assert "NOT CHECKED for want of data: 1 test " in lines[1]
    assert lines[2:] == [f"  {test}: 1"]
