"""What depends on whether a person is watching: width, progress, and where warnings go."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click

from fewlabels.errors import one_line
from fewlabels.report.words import inked

if TYPE_CHECKING:
    from fewlabels.streaming.passes import Progress


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
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show the step and its progress on stderr while the block runs; `what` is the first step.

    Gives None where that is not a terminal.
    """
    with _bar() as bar:
        if bar is None:
            yield None
            return
        from fewlabels.kernels.blocks import hearing_steps

        task = bar.add_task(what, total=None, rate="")
        # How far one step is says nothing of the next: the bar begins anew.
        with hearing_steps(lambda name: bar.reset(task, description=name)):
            yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def stream_bar() -> Iterator[Callable[[Progress], None] | None]:
    """Show step, share, rate and time left on stderr; gives None where that is not a terminal."""
    with _bar() as bar:
        if bar is None:
            yield None
            return
        tasks: dict[str, Any] = {}

        def show(progress: Progress) -> None:
            if progress.step not in tasks:
                for task in tasks.values():
                    bar.update(task, visible=False)
                tasks[progress.step] = bar.add_task(progress.step, rate="")
            bar.update(
                tasks[progress.step],
                completed=progress.done_bytes,
                total=progress.all_bytes,
                rate="" if progress.rate != progress.rate else f"{progress.rate:,.0f} rows/s",
            )

        yield show


@contextmanager
def _bar() -> Iterator[Any]:
    """A bar with room for a rate, that goes when the block ends; None without a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[rate]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar


def print_warnings(warnings: Iterable[str]) -> None:
    """Print each warning as one line on stderr."""
    for warning in warnings:
        click.echo(f"warning: {one_line(warning)}", err=True)
