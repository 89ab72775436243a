"""Output of a command: text or JSON, files, and an exit code that `--require` decides.

Last what depends on whether a person is watching: width, colours, progress, warnings.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from fewlabels.checks.conditions import Answers, Bounds, Requirement, parse_requirement
from fewlabels.cli.files import (
    Role,
    Writer,
    json_text,
    table_writer,
    text_writer,
    write_outputs,
)
from fewlabels.cli.options import OUTPUT, Record, fields_of, loudness, option
from fewlabels.errors import UsageError, one_line, quoted, redacted, unknown

if TYPE_CHECKING:
    from fewlabels.report.shown import HasSummary
    from fewlabels.streaming.passes import Progress

TYPED = "fewlabels.typed"
"""Key of the click context for the typed command line."""

_STDOUT = "-"
"""PATH of --json that prints it, and nothing else."""


# A path may be bytes that are no text.
def _path(about: str | None, metavar: str, file: Role = "text", **more: Any) -> Any:
    return option(OUTPUT, about, metavar, file=file, type=str, **more)


class Output(Record):
    """Where results go; "-" is standard output, of `json` and `markdown`, and None is nowhere."""

    json: str | None = _path("Write JSON; - prints it to standard output.", "PATH")
    html: str | None = _path("Write the report as one HTML file.", "PATH", "written")
    svg: str | None = _path("Write the figures as SVG (extra `plot`).", "PATH")
    save: str | None = _path("Write the fitted map as JSON.", "MODEL.json", "written")
    out: str | None = _path(None, "FILE", "table")
    labels_out: str | None = _path(
        "Write the likeliest class of every item (.csv, .parquet).", "PATH", "table"
    )
    confusion: bool = option(OUTPUT, "Show confusion matrices, with intervals.", default=False)
    disagreements: str | None = _path(
        "Write the items on which they and labels differ.", "PATH", "table"
    )
    to: str | None = _path(
        "Write the estimates as a table: sqlite:///file.db#TABLE, postgresql://, duckdb://, or "
        ".csv, .parquet.",
        "PATH",
        "table",
        rare=True,
    )
    markdown: str | None = _path(
        "Write the estimates as tables of Markdown, for a mail, a pull request or the page of a CI "
        "job; - prints them.",
        "PATH",
        rare=True,
    )
    junit: str | None = _path("Write each --require as a test, as JUnit's XML.", "PATH", rare=True)
    alert: str | None = _path(
        "Write a line of JSON for each fall that is sure, and for each --require that is not met.",
        "PATH",
    )
    write: str | None = _path(
        "Write what was recognised as a file for --columns.", "TOML", "edited"
    )
    raw_cells: bool = option(
        OUTPUT,
        "Leave text of CSV that a spreadsheet takes for a formula as it is.",
        default=False,
        rare=True,
    )

    def conditions(self, texts: Sequence[str], bounds: Bounds) -> list[Requirement]:
        """Those of --require, each of which can decide something; --junit needs one."""
        if self.junit is not None and not texts:
            raise UsageError("--junit writes each --require as a test, and there is none; add one")
        return list(map(partial(parse_requirement, bounds=bounds), texts))

    def save_all(
        self,
        report: Callable[[], Mapping[str, Any]],
        last: Callable[[], object] | None = None,
        tables: Mapping[str, Callable[[], Any]] | None = None,
        keys: Mapping[str, Sequence[str]] | None = None,
        /,
        **contents: Callable[..., Any],
    ) -> None:
        """Write all requested files, or none.

        `report` makes what goes into the JSON; `last` is as in `write_outputs`, `tables` are rows
        for tables of databases, and `keys`, by fields of this record, the columns by which rows
        of a table stay there from run to run. `contents`, by fields too, are as the option's role
        says: what makes the columns of a table or a text, or what writes to a path.
        """
        if self.json != _STDOUT:
            contents["json"] = lambda: json_text(report())
        writers: dict[str, Writer] = {p: partial(_of, rows) for p, rows in (tables or {}).items()}
        edited = []
        for name, content in contents.items():
            path, role = getattr(self, name), fields_of(Output)[name].file
            if path is None or (path == _STDOUT and role == "text"):
                continue
            if role == "table":
                key = (keys or {}).get(name, ())
                writers[path] = table_writer(path, content, raw=self.raw_cells, key=key)
            else:
                writers[path] = content if role == "written" else text_writer(content)
            edited += [path] if role == "edited" else []
        if writers or last is not None:
            with stated_command(), _timed("writing"):
                write_outputs(writers, last, edited)

    def show(
        self,
        report: Callable[[], Mapping[str, Any]],
        summary: Callable[[int], str],
        table: str = "Table",
        also: Mapping[str, str | None] | None = None,
        *,
        named: bool = True,
        markdown: Callable[[], str] | None = None,
    ) -> None:
        """Print the JSON or the Markdown alone, or the summary and what was written where.

        `report` makes what the JSON holds, its warnings among them, and `summary` a text of so many
        columns. `table` is what --out holds, and `also` are other paths, by what they hold. Without
        `named`, paths are not listed.
        """
        if self.json == _STDOUT:
            page = report()
            click.echo(json_text(page), nl=False)
            print_warnings(page.get("warnings") or ())
            return
        if self.markdown == _STDOUT and markdown is not None:
            click.echo(markdown(), nl=False)
            return
        click.echo(summary(width()))
        written = {
            "JSON": self.json,
            "Report": self.html,
            "Figure": self.svg,
            "Model": self.save,
            table: self.out,
            "Estimates": self.to,
            "Likeliest labels": self.labels_out,
            "Disagreements": self.disagreements,
            "Markdown": self.markdown,
            "JUnit": self.junit,
            "Alerts": self.alert,
            **(also or {}),
        }
        for what, path in written.items():
            if named and path is not None:
                click.echo(f"\n{what}: {one_line(redacted(path))}")


def _of(rows: Callable[[], Any], _: Path) -> Any:
    return rows()


def together(results: Sequence[HasSummary]) -> Callable[[int], str]:
    """The summaries of some results, one below the other, to a width."""
    return lambda width: "\n\n".join(result.summary(width) for result in results)


def stated_command() -> AbstractContextManager[None]:
    """Pages that are written in this block say the command as it was typed, and its files."""
    from fewlabels.data.sources import path_of
    from fewlabels.report.html import stated_origin

    context = click.get_current_context()
    typed: Sequence[str] = context.meta.get(TYPED, ())
    paths: list[str] = []
    for name in ("file", "join", "votes", "labels", "reference"):
        named = context.params.get(name)
        paths += [named] if isinstance(named, str) else named if isinstance(named, tuple) else []
    files = ["standard input" if path == "-" else path_of(path) for path in paths if path]
    command = one_line(redacted(shlex.join(["fewlabels", *typed]))) if typed else None
    return stated_origin(command, files)


# Conditions on the estimates, which decide the exit code.


def require(form: str, bound: str) -> Any:
    """A field of the option --require; `bound` is the end of the interval that is worth naming."""
    which = {"low": "lower", "high": "upper"}[bound]
    return option(
        OUTPUT,
        f"Exit with 1 unless every classifier meets it, or one: MODEL:METRIC; {bound}:METRIC "
        f"tests the {which} bound.",
        f"'METRIC{form}X'",
        (),
    )


def check_classifiers(
    requirements: Sequence[Requirement], models: Callable[[], Sequence[str]]
) -> None:
    """Refuse a condition on a classifier that does not exist, before the work.

    `models` gives the names of all; it is only called where a condition names one.
    """
    named = [requirement for requirement in requirements if requirement.model is not None]
    registered = models() if named else ()
    for requirement in named:
        if requirement.model not in registered:
            message = unknown("model", requirement.model, registered, "the file has none")
            raise UsageError(f"--require {quoted(requirement.text)}: {message}")


def verdict(requirements: Sequence[Requirement], estimates: Answers) -> int:
    """Exit code: 1 where a condition is not met, after a line on stderr for each."""
    failures = [line for one in requirements for line in one.failures(estimates)]
    for line in failures:
        click.echo(one_line(line), err=True)
    return 1 if failures else 0


def junit_text(requirements: Sequence[Requirement], estimates: Answers) -> str:
    """The conditions as tests, one for each classifier that one is on."""
    from fewlabels.report.markdown import Case, render_junit

    return render_junit(
        [
            Case(model, requirement.text, failure)
            for requirement in requirements
            for model, failure in requirement.cases(estimates)
        ]
    )


# What depends on whether a person is watching: width, progress, and where warnings go.


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
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show the step and its progress on stderr while the block runs; `what` is the first step.

    Gives None where that is not a terminal.
    """
    with _bar() as bar, _timed(what) as begin:
        from fewlabels.kernels.blocks import hearing_steps

        if bar is None:
            with hearing_steps(begin):
                yield None
            return
        task = bar.add_task(what, total=None, rate="")
        # Each step has progress of its own: the bar begins anew.
        with hearing_steps(lambda name: bar.reset(task, description=name)):
            yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def stream_bar() -> Iterator[Callable[[Progress], None]]:
    """Show step, share, rate and time left on stderr, if that is a terminal."""
    with _bar() as bar, _timed("") as begin:
        tasks: dict[str, Any] = {}

        def show(progress: Progress) -> None:
            if progress.step not in tasks:
                begin(progress.step)
                for task in tasks.values():
                    bar.update(task, visible=False)
                tasks[progress.step] = bar.add_task(progress.step, rate="")
            bar.update(
                tasks[progress.step],
                completed=progress.done_bytes,
                total=progress.all_bytes,
                rate="" if progress.rate != progress.rate else f"{progress.rate:,.0f} rows/s",
            )

        def tell(progress: Progress) -> None:
            if progress.step not in tasks:
                begin(progress.step)
                tasks[progress.step] = None

        yield tell if bar is None else show


@contextmanager
def _bar() -> Iterator[Any]:
    """One line: what, how far, how long still, rate and memory; it goes when the block ends.

    None without a terminal, or where somebody asks for less or for a line per step.
    """
    if sys.stderr is None or not sys.stderr.isatty() or loudness():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Left(TimeRemainingColumn):
        def render(self, task: Task) -> Text:
            time_left = super().render(task)
            return time_left.append(" left") if any(map(str.isdigit, time_left.plain)) else Text()

    class Memory(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(_memory(), style="dim")

    *first, _ = Progress.get_default_columns()
    columns = (*first, Left(), TextColumn("{task.fields[rate]}"), Memory())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar


@contextmanager
def _timed(what: str) -> Iterator[Callable[[str], None]]:
    """Say after each step how long it took, with --verbose; gives what a step's begin is told to.

    `what` is the first step, if there is one.
    """
    steps = [(what, time.monotonic())]

    def begin(name: str) -> None:
        last, begun = steps.pop()
        if last and loudness() == "verbose":
            seconds = time.monotonic() - begun
            click.echo(f"{one_line(last)}: {seconds:.1f} s, {_memory()}", err=True)
        steps.append((name, time.monotonic()))

    yield begin
    begin("")


def _memory() -> str:
    """What this process holds in memory; where systems do not say, the most that it held."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        size = pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        try:
            from resource import RUSAGE_SELF, getrusage
        except ImportError:  # Windows
            return ""
        size = getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return f"{size / 1e6:,.0f} MB"


def print_warnings(warnings: Iterable[str]) -> None:
    """Print each warning as one line on stderr."""
    for warning in warnings:
        click.echo(f"warning: {one_line(warning)}", err=True)
