"""What depends on whether a person is watching."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fewlabels.cli import terminal
from fewlabels.report.ink import without_ink

Run = Callable[..., tuple[int, str, str]]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.progress_bar("estimating") as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with terminal.progress_bar("estimating") as progress:
        assert progress is not None
        progress(1, 4)
        progress(4, 4)
    assert "estimating" in shown.getvalue()
    assert "100%" in shown.getvalue()


@pytest.mark.parametrize(("columns", "width"), [("40", 60), ("100", 100), ("300", 120)])
def test_width_of_a_terminal(columns: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert terminal.width() == 80
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal.width() == width


def test_warnings_are_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_warnings(["a\nb", "c"])
    assert capsys.readouterr() == ("", "warning: a\\nb\nwarning: c\n")


@pytest.mark.parametrize(
    ("on_terminal", "variables", "coloured"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),
        (False, {"TERM": "xterm"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_who_gets_colours(
    on_terminal: bool,
    variables: dict[str, str],
    coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert terminal.has_colours(Terminal() if on_terminal else io.StringIO()) is coloured


def test_colours_of_a_summary_but_not_of_json_and_files(
    predictions_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Run
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    arguments = ("estimate", str(predictions_file), "--metrics", "accuracy", "--method", "labeled")
    plain = cli(*arguments)[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    page = tmp_path / "report.html"
    code, out, _ = cli(*arguments, "--html", str(page))
    assert code == 0
    assert "\x1b[" in out
    assert without_ink(out).startswith(plain.rstrip("\n"))
    assert "\x1b" not in cli(*arguments, "--json", "-")[1]
    assert "\x1b" not in page.read_text()
