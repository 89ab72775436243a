"""The command as a whole: help, version, and what happens when something stops it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest

import fewlabels as fl
from fewlabels.cli import app as module
from fewlabels.cli import main
from fewlabels.errors import InputError

Run = Callable[..., tuple[int, str, str]]


def test_without_a_command_it_shows_the_help(cli: Run) -> None:
    code, out, err = cli()
    assert (code, err) == (0, "")
    assert out == cli("--help")[1]
    assert {"demo", "doctor", "estimate"} <= set(out.split())


def test_version(cli: Run) -> None:
    assert cli("--version") == (0, f"fewlabels {fl.__version__}\n", "")


@pytest.mark.parametrize("command", sorted(module.app.commands))
def test_every_option_is_explained(command: str, cli: Run) -> None:
    code, out, err = cli(command, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: fewlabels {command} ")


def test_help_names_every_method(cli: Run) -> None:
    shown = cli("estimate", "--help")[1]
    for method in fl.models.METHODS:
        assert method in shown


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


def test_help_starts_in_half_a_second() -> None:
    run = [sys.executable, "-m", "fewlabels", "--help"]
    subprocess.run(run, check=True, capture_output=True)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run(run, check=True, capture_output=True)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5
