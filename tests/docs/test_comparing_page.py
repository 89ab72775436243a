"""The commands and the Python block of the page on comparing run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from test_pages import as_a_reader, blocks, commands_of

__all__ = ["as_a_reader"]

PAGE = "docs/comparing.md"


def test_commands(as_a_reader: Path, cli: Callable[..., tuple[int, str, str]]) -> None:
    for program, *arguments in commands_of(PAGE):
        assert program == "fewlabels"
        code, out, err = cli(*arguments)
        assert (code, err) == (0, ""), arguments
        assert "large" in out
    assert {"compare.html", "comparison.json"} <= {p.name for p in as_a_reader.iterdir()}


def test_python(as_a_reader: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks(PAGE, "python"):
        exec(compile(block, PAGE, "exec"), {})
    assert "large" in capsys.readouterr().out
