"""What depends on whether a person is watching."""

from __future__ import annotations

import io
import sys

import pytest

from fewlabels.cli import terminal


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
