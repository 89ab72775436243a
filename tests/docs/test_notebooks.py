"""The notebooks of examples/notebooks run, and are kept without what they showed."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def cells(name: str, kind: str) -> list[dict[str, Any]]:
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def show(value: Any) -> None:
    """What a notebook does with the last line of a cell."""
    for name in ("_repr_html_", "_repr_png_"):
        if shown := getattr(value, name, None):
            assert shown() or value.__class__.__name__ == "Figure"
    assert repr(value)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_cells_run(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples" / "notebooks")
    names: dict[str, Any] = {}
    for number, cell in enumerate(cells(name, "code")):
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), f"{name}, cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            show(eval(compile(ast.Expression(last.value), f"{name}, {number}", "eval"), names))
    assert capsys.readouterr().out
    if "plt" in names:
        names["plt"].close("all")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_nothing_that_was_shown_is_kept(name: str) -> None:
    code = cells(name, "code")
    assert [c for c in code if c["outputs"] or c["execution_count"] is not None] == []
    assert "".join(cells(name, "markdown")[0]["source"]).startswith("# ")
    assert f"`notebooks/{name}.ipynb`" in (ROOT / "examples" / "README.md").read_text("utf-8")
