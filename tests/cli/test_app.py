"""The command as a whole: what stops it, what a terminal shows, what shells complete."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

import fewlabels as fl
from fewlabels.cli import app as module
from fewlabels.cli import main
from fewlabels.cli import output as terminal
from fewlabels.errors import InputError

Run = Callable[..., tuple[int, str, str]]


def test_without_a_command_it_shows_the_help(cli: Run) -> None:
    code, out, err = cli()
    assert (code, err) == (0, "")
    assert out == cli("--help")[1]
    assert {"demo", "doctor", "estimate"} <= set(out.split())


def test_version(cli: Run) -> None:
    assert cli("--version") == (0, f"fewlabels {fl.__version__}\n", "")


def failing(error: BaseException) -> click.Command:
    @click.command()
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InputError("two\nlines"), 2, "error: two\\nlines\n"),
        (click.UsageError("no.\nsuch"), 2, "error: no.\\nsuch (see `fewlabels fail --help`)\n"),
        (click.FileError("f", "gone"), 2, "error: Could not open file 'f': gone\n"),
        (MemoryError(), 2, "error: not enough memory; "),
        (MemoryError("8 GiB"), 2, "error: not enough memory (8 GiB); "),
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
    ],
)
def test_what_stops_a_command(
    error: BaseException,
    code: int,
    message: str,
    cli: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(module.app.commands, "fail", failing(error))
    got, out, err = cli("fail")
    assert (got, out) == (code, "")
    assert err.startswith(message)
    assert len(err.splitlines()) <= 1


def test_a_bug_is_told_from_bad_input(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.app.commands, "fail", failing(ZeroDivisionError("a bug")))
    code, _, err = cli("fail")
    assert code == 70
    assert "Traceback" in err
    assert "a bug" in err


def test_a_reader_that_goes_away_is_no_error() -> None:
    script = (
        "import sys, click\n"
        "from fewlabels.cli import app, main\n"
        "app.app.add_command(click.Command('talk', callback=lambda: [print('x' * 99) "
        "for _ in range(99999)]))\n"
        "sys.exit(main(['talk']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_what_the_terminal_cannot_show_is_escaped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "out").open("w", encoding="ascii") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setitem(
            module.app.commands, "say", click.Command("say", callback=lambda: print("größer"))
        )
        assert main(["say"]) == 0
    assert (tmp_path / "out").read_text() == "gr\\xf6\\xdfer\n"


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
    assert click.unstyle(out).startswith(plain.rstrip("\n"))
    assert "\x1b" not in cli(*arguments, "--json", "-")[1]
    assert "\x1b" not in page.read_text()


Ask = Callable[..., str]


@pytest.fixture
def ask(cli: Run, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """What `fewlabels` prints for a shell that completes word `at` of `words`."""

    def asked(instruction: str, words: str = "", at: int | str = 0) -> str:
        monkeypatch.setenv("_FEWLABELS_COMPLETE", instruction)
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(at))
        return cli()[1]

    return asked


@pytest.mark.parametrize(
    ("shell", "part"),
    [("bash", "complete -o nosort"), ("zsh", "compdef"), ("fish", "complete --no-files")],
)
def test_the_script_of_each_shell(shell: str, part: str, ask: Ask) -> None:
    script = ask(f"{shell}_source")
    assert part in script
    assert f"_FEWLABELS_COMPLETE={shell}_complete" in script


@pytest.mark.parametrize(
    ("words", "at", "wanted"),
    [
        ("fewlabels est", 1, ["plain,estimate"]),
        ("fewlabels estimate --confidence-", 2, ["plain,--confidence-level"]),
        ("fewlabels estimate x.csv --method tempered", 4, ["plain,tempered-ensemble"]),
        ("fewlabels estimate x.csv --metrics ece,rec", 4, ["plain,ece,recall"]),
        ("fewlabels compare x.csv --metric acc", 4, ["plain,accuracy"]),
        ("fewlabels estimate exam", 2, ["file,exam"]),
        ("fewlabels estimate x.csv --html rep", 4, ["file,rep"]),
        ("fewlabels estimate x.csv --estimand s", 4, ["plain,sample"]),
    ],
)
def test_bash_is_told(words: str, at: int, wanted: list[str], ask: Ask) -> None:
    assert ask("bash_complete", words, at).splitlines() == wanted


def test_zsh_and_fish_are_told(ask: Ask) -> None:
    assert "estimate" in ask("zsh_complete", "fewlabels est", 1).splitlines()
    shell = {"words": "fewlabels estimate --estimand", "at": "sam"}
    assert "plain,sample" in ask("fish_complete", **shell)
