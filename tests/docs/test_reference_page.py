"""The page on reference data runs, and its tables are those of the kept results."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from test_pages import ROOT, as_a_reader, blocks, commands_of

sys.path.append(str(ROOT / "benchmarks"))

import reference as recipe

__all__ = ["as_a_reader"]

PAGE = "docs/reference-data.md"


def test_commands(as_a_reader: Path, cli: Callable[..., tuple[int, str, str]]) -> None:
    for program, *arguments in commands_of(PAGE):
        assert program == "fewlabels"
        code, out, err = cli(*arguments)
        assert (code, err) == (0, ""), arguments
        assert "1,500 reference items" in out
        assert "trust the reference" in out


def test_python(as_a_reader: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks(PAGE, "python"):
        exec(compile(block, PAGE, "exec"), {})
    facts, weight = capsys.readouterr().out.splitlines()
    assert "n_items=1500" in facts
    assert 0 <= float(weight) <= 1


def test_tables_are_those_of_the_results() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert recipe.with_table(page, recipe.kept_rows()) == page
