"""Every row of the cheat sheet runs, as a command and as Python."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import fewlabels as fl

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(
    r"^\| ([^|`]+) \| `fewlabels ([^`]+)` \| `([^`]+)` \|$",
    (ROOT / "docs" / "cheat-sheet.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
SLOW = {"backtest", "monitor", "rank", "shift"}
"""Commands that take a second, which the tests of their own pages run as well."""


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("command", "python"),
    [
        pytest.param(
            command, python, id=task,
            marks=pytest.mark.slow if command.split()[0] in SLOW else (),
        )
        for task, command, python in ROWS
    ],
)  # fmt: skip
def test_a_row_runs(
    command: str,
    python: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Callable[..., tuple[int, str, str]],
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples")
    code, out, err = cli(*shlex.split(command))
    assert (code, err) == (0, ""), out
    assert out.strip() or "--json" in command
    names = {"fl": fl}
    eval(compile(python, "cheat-sheet.md", "eval"), names)


def test_every_command_and_function_that_people_ask_for_is_there() -> None:
    assert len(ROWS) > 20
    asked = set(re.findall(r"fl\.(\w+)", " ".join(python for *_, python in ROWS)))
    assert {"estimate", "compare", "score", "monitor", "threshold", "curve", "label_next"} <= asked
    assert {"shift", "rank", "backtest", "diagnose"} <= asked
