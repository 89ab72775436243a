"""What depends on whether a person is watching: width, progress, and where warnings go."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO

import click

from fewlabels.errors import one_line
from fewlabels.report.ink import inked

Progress = Callable[[int, int], None]


def width() -> int:
    """Columns of a table: 80, or what the terminal has between 60 and 120."""
    if sys.stdout is None or not sys.stdout.isatty():
        return 80
    return min(max(shutil.get_terminal_size().columns, 60), 120)


def has_colours(stream: IO[str] | None) -> bool:
    """Whether a stream shows colours: a terminal does, unless NO_COLOR is set.

    FORCE_COLOR gives any other stream colours too; NO_COLOR is stronger.
    """
    if stream is None or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def colours(context: click.Context) -> Iterator[None]:
    """Texts that are made in this block have colours where standard output shows any."""
    if not has_colours(sys.stdout):
        yield
        return
    context.color = True
    with inked():
        yield


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """Show progress on stderr while the block runs; gives None where that is not a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield advance


def print_warnings(warnings: Iterable[str]) -> None:
    """Print each warning as one line on stderr."""
    for warning in warnings:
        click.echo(f"warning: {one_line(warning)}", err=True)
