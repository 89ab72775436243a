"""What a command gives: files, text or JSON, and an exit code that `--require` decides.

Files are written whole or not at all; before the work they are proven writable (`files`).
"""

from __future__ import annotations

import filecmp
import json
import os
import shlex
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fewlabels.checks.conditions import Requirement
from fewlabels.cli import terminal
from fewlabels.cli.files import Role, cannot_write, draft_of, is_device
from fewlabels.cli.options import OUTPUT, Record, fields_of, option
from fewlabels.errors import InputError, UsageError, one_line, quoted, unknown

if TYPE_CHECKING:
    from fewlabels.annotations import Assessment
    from fewlabels.estimates import Estimates

Writer = Callable[[Path], None]

TYPED = "fewlabels.typed"
"""Where the context has what was typed behind the program's name."""


# A path may be bytes that are no text.
def _path(about: str | None, metavar: str, file: Role = "written") -> Any:
    return option(OUTPUT, about, metavar, file=file, type=str)


class Output(Record):
    """Where results go; `json` is "-" for standard output, and None is nowhere."""

    json: str | None = _path("Write JSON; - prints it to standard output.", "PATH")
    html: str | None = _path("Write the report as one HTML file.", "PATH")
    svg: str | None = _path("Write the figures as SVG.", "PATH")
    save: str | None = _path("Write the fitted map as JSON.", "MODEL.json")
    out: str | None = _path(None, "FILE", file="table")
    labels_out: str | None = _path(
        "Write the likeliest class of every item, as .csv or .parquet.", "PATH", file="table"
    )
    markdown: str | None = _path(
        "Write the estimates as tables of Markdown, for a pull request or the page of a CI job.",
        "PATH",
    )
    junit: str | None = _path("Write each --require as a test, as JUnit's XML.", "PATH")
    write: str | None = _path(
        "Write what was recognised as a file for --columns.", "TOML", file="edited"
    )
    raw_cells: bool = option(
        OUTPUT, "Leave text of CSV that a spreadsheet takes for a formula as it is.", default=False
    )

    @property
    def printed(self) -> bool:
        """Whether JSON is printed, and nothing else."""
        return self.json == "-"

    def table(self, path: str | None, columns: Callable[[], Mapping[str, Any]]) -> Writer:
        """Write columns as a table of the kind that the ending of `path` says."""

        def write(temporary: Path) -> None:
            from fewlabels.data.write import table_kind, write_table

            assert path is not None
            write_table(columns(), temporary, table_kind(path), raw=self.raw_cells)

        return write

    def save_all(
        self,
        report: Callable[[], Mapping[str, Any]],
        last: Callable[[], object] | None = None,
        /,
        **writers: Writer,
    ) -> None:
        """Write all files that are asked for, or none.

        Parameters
        ----------
        report
            Makes what goes into the JSON.
        last
            As of `write_outputs`.
        writers
            Who writes the others, by the fields of this record.
        """
        if not self.printed:
            writers["json"] = lambda path: json_writer(report())(path)
        paths = {name: getattr(self, name) for name in writers}
        asked = {path: writers[name] for name, path in paths.items() if path is not None}
        roles = {getattr(self, name): one.file for name, one in fields_of(Output).items()}
        with of_this_command():
            write_outputs(asked, last, [path for path in asked if roles[path] == "edited"])

    def show(
        self,
        report: Callable[[], Mapping[str, Any]],
        summary: Callable[[int], str],
        table: str = "Table",
        also: Mapping[str, str | None] | None = None,
        *,
        named: bool = True,
    ) -> None:
        """Print the JSON alone, or the summary and what was written where.

        Parameters
        ----------
        report
            Makes what the JSON holds, its warnings among them.
        summary
            Makes a text of so many columns.
        table
            What --out holds.
        also
            Other paths, by what they hold.
        named
            Whether to say what was written where.
        """
        if self.printed:
            found = report()
            click.echo(json_text(found), nl=False)
            terminal.print_warnings(found.get("warnings") or ())
            return
        click.echo(summary(terminal.width()))
        written = {
            "JSON": self.json,
            "Report": self.html,
            "Figure": self.svg,
            "Model": self.save,
            table: self.out,
            "Likeliest labels": self.labels_out,
            "Markdown": self.markdown,
            "JUnit": self.junit,
            **(also or {}),
        }
        for what, path in written.items():
            if named and path is not None:
                click.echo(f"\n{what}: {one_line(path)}")


def of_this_command() -> AbstractContextManager[None]:
    """Pages that are written in this block say the command as it was typed, and its files."""
    from fewlabels.data.sources import path_of
    from fewlabels.report.provenance import made_by

    context = click.get_current_context()
    typed: Sequence[str] = context.meta.get(TYPED, ())
    paths: list[str] = []
    for name in ("file", "votes", "labels", "reference"):
        named = context.params.get(name)
        paths += [named] if isinstance(named, str) else named if isinstance(named, tuple) else []
    files = ["standard input" if path == "-" else path_of(path) for path in paths if path]
    return made_by(one_line(shlex.join(["fewlabels", *typed])) if typed else None, files)


def write_outputs(
    writers: Mapping[str, Writer],
    last: Callable[[], object] | None = None,
    edited: Collection[str] = (),
) -> None:
    """Write all files, or none of them.

    Each writer gets the path of a temporary file in the folder of its target. When all have
    succeeded and devices have taken theirs, the temporary files take the targets' places; where
    one cannot, what was there before is put back.

    Parameters
    ----------
    last
        What else must succeed for the files to stay.
    edited
        Those that somebody may have edited: they stay as they are, or nothing is written.

    Raises
    ------
    UsageError
        Where the system refuses to write (a full disk, say), or such a file has another content.
    """
    written: dict[str, Path] = {}
    try:
        for path, write in writers.items():
            written[path] = draft_of(path)
            try:
                write(written[path])
            except InputError as error:  # of who writes a page, who knows the draft's name alone
                raise InputError(str(error).replace(str(written[path]), path)) from None
            with written[path].open("rb") as draft:
                os.fsync(draft.fileno())  # some disks say only here that they are full
        for path in edited:
            if os.path.isfile(path) and not filecmp.cmp(path, written[path], shallow=False):
                raise UsageError(
                    f"{path!r} is there and says something else, which somebody may have written; "
                    "name another file, or move that one away"
                )
        # What a device has taken cannot be taken back: it comes before whatever can.
        for path in filter(is_device, written):
            with written[path].open("rb") as source, open(path, "wb") as device:
                shutil.copyfileobj(source, device)
        with ExitStack() as kept, ExitStack() as undo:
            for path in [path for path in written if not is_device(path)]:
                _put(written[path], path, kept, undo)
            if last is not None:
                last()
            undo.pop_all()
    except OSError as error:
        raise UsageError(cannot_write(f"{path!r}", error)) from None
    finally:
        for temporary in written.values():
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _put(temporary: Path, path: str, kept: ExitStack, undo: ExitStack) -> None:
    """Let a file take its target's place; `undo` puts back what was there, which `kept` drops."""
    target = os.path.realpath(path)
    if not os.path.exists(target):
        os.replace(temporary, target)
        undo.callback(os.unlink, target)
        return
    shutil.copymode(target, temporary)
    before = draft_of(path)
    kept.callback(before.unlink, missing_ok=True)
    try:
        os.link(target, before)
    except OSError:  # a file system without links
        shutil.copy2(target, before)
    os.replace(temporary, target)
    undo.callback(os.replace, before, target)


def json_text(value: Mapping[str, Any]) -> str:
    """Strict JSON (no NaN, plain ASCII) with a line break at the end."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def json_writer(value: Mapping[str, Any]) -> Writer:
    """Write `value` as JSON."""
    return text_writer(lambda: json_text(value))


# Conditions on the estimates, which decide the exit code.


def require(form: str, bound: str) -> Any:
    """A field of the option --require; `bound` is the end of the interval that is worth naming."""
    which = {"low": "lower", "high": "upper"}[bound]
    return option(
        OUTPUT,
        f"Exit with 1 unless every classifier meets it, or one: MODEL:METRIC; {bound}:METRIC "
        f"tests the {which} bound. Repeatable.",
        f"'METRIC{form}X'",
        (),
    )


def check_classifiers(
    requirements: Sequence[Requirement], models: Callable[[], Sequence[str]]
) -> None:
    """Refuse a condition on a classifier that there is none of, before the work.

    Parameters
    ----------
    models
        Gives the names of all; it is only asked where a condition names one.

    Raises
    ------
    UsageError
        Naming the nearest classifier, where one is near, and all of them.
    """
    named = [requirement for requirement in requirements if requirement.model is not None]
    known = models() if named else ()
    for requirement in named:
        if requirement.model not in known:
            message = unknown("model", requirement.model, known, "the file has none")
            raise UsageError(f"--require {quoted(requirement.text)}: {message}")


def verdict(requirements: Sequence[Requirement], estimates: Estimates | Assessment) -> int:
    """Exit code: 1 where a condition is not met, after a line on stderr for each."""
    failures = [line for one in requirements for line in one.failures(estimates)]
    for line in failures:
        click.echo(line, err=True)
    return 1 if failures else 0


def text_writer(text: Callable[[], str]) -> Writer:
    """Write a text as it is."""

    def write(path: Path) -> None:
        path.write_text(text(), encoding="utf-8")

    return write


def junit_text(requirements: Sequence[Requirement], estimates: Estimates | Assessment) -> str:
    """The conditions as tests, one for each classifier that one is on."""
    from fewlabels.report.markdown import Case, render_junit

    return render_junit(
        [
            Case(model, requirement.text, failure)
            for requirement in requirements
            for model, failure in requirement.cases(estimates)
        ]
    )


def with_required(metrics: Sequence[str], requirements: Sequence[Requirement]) -> list[str]:
    """Metrics asked for, and after them those that only a requirement names."""
    return list(dict.fromkeys([*metrics, *(r.metric for r in requirements)]))
