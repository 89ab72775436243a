"""What depends on whether a person is watching: width, progress, and where warnings go."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import click

from fewlabels.wording import one_line

Progress = Callable[[int, int], None]


def width() -> int:
    """Columns of a table: 80, or what the terminal has between 60 and 120."""
    if sys.stdout is None or not sys.stdout.isatty():
        return 80
    return min(max(shutil.get_terminal_size().columns, 60), 120)


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
