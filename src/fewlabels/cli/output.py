"""Output files: proven writable before the work, written whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fewlabels.cli import terminal
from fewlabels.cli.declare import flag_of, option
from fewlabels.errors import UsageError, one_line

if TYPE_CHECKING:
    from fewlabels.cli.options import Input

Writer = Callable[[Path], None]


@dataclass(frozen=True)
class Output:
    """Where results go; `json` is "-" for standard output, and None is nowhere."""

    json: str | None = option("Write JSON; - prints it alone.", type=str, metavar="PATH")
    html: str | None = option("Write the report as one HTML file.", type=str, metavar="PATH")
    svg: str | None = option("Write the figures as SVG.", type=str, metavar="PATH")
    save: str | None = option("Write the fitted map as JSON.", type=str, metavar="MODEL.json")
    out: str | None = option(metavar="FILE")
    labels_out: str | None = option(
        "Write the likeliest class of every item, as .csv or .parquet.", metavar="PATH"
    )
    write: str | None = option("Write what was recognised as a file for --columns.", metavar="TOML")

    @property
    def printed(self) -> bool:
        """Whether JSON is printed, and nothing else."""
        return self.json == "-"

    def check(self, source: Input, saved: str | None = None) -> None:
        """Prove that every file can be written, before the work begins.

        Parameters
        ----------
        source, saved
            What is read, which no output may replace: the input, and a saved map.

        Raises
        ------
        UsageError
            Where one cannot, is an input, is named twice, or a table has another ending.
        """
        for table in (self.out, self.labels_out):
            if table is not None:
                from fewlabels.data.write import table_kind

                table_kind(table)
        paths = {flag_of(f): getattr(self, f.name) for f in fields(self)}
        paths["--json"] = None if self.printed else self.json
        check_outputs(paths, [*source.files, *([] if saved is None else [saved])])

    def save_all(self, report: Callable[[], Mapping[str, Any]], **writers: Writer) -> None:
        """Write all files that are asked for, or none.

        Parameters
        ----------
        report
            Makes what goes into the JSON.
        writers
            Who writes the others, by the fields of this record.
        """
        if not self.printed:
            writers["json"] = lambda path: json_writer(report())(path)
        paths = {name: getattr(self, name) for name in writers}
        write_outputs({path: writers[name] for name, path in paths.items() if path is not None})

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
            **(also or {}),
        }
        for what, path in written.items():
            if named and path is not None:
                click.echo(f"\n{what}: {one_line(path)}")


def table_writer(path: str | None, columns: Callable[[], Mapping[str, Any]]) -> Writer:
    """Write columns as a table of the kind that the ending of `path` says."""

    def write(temporary: Path) -> None:
        from fewlabels.data.write import table_kind, write_table

        assert path is not None
        write_table(columns(), temporary, table_kind(path))

    return write


def check_outputs(outputs: Mapping[str, str | None], sources: Sequence[str] = ()) -> None:
    """Prove, before the work begins, that every output can be written.

    Parameters
    ----------
    outputs
        Option -> path it names; None where it was not given.
    sources
        The input files, which no output may replace.

    Raises
    ------
    UsageError
        Where a path cannot be written, is the input, or is named twice.
    """
    taken = {_place(source): "the input file" for source in sources}
    for name, path in outputs.items():
        if path is None:
            continue
        try:
            _probe(path)
        except (OSError, ValueError) as error:
            raise UsageError(_cannot_write(f"{name} {path!r}", error)) from None
        place = _place(path)
        if place in taken:
            raise UsageError(f"{name} {path!r} is {taken[place]} too; name another file")
        if not _is_device(path):
            taken[place] = f"the file of {name}"


def write_outputs(writers: Mapping[str, Writer]) -> None:
    """Write all files, or none of them.

    Each writer gets the path of a temporary file in the folder of its target; when all have
    succeeded the temporary files take the targets' places.

    Raises
    ------
    UsageError
        Where the system refuses to write (a full disk, say).
    """
    written: dict[str, Path] = {}
    try:
        for path, write in writers.items():
            written[path] = _temporary(path)
            write(written[path])
        for path, temporary in written.items():
            _put(temporary, path)
    except OSError as error:
        raise UsageError(_cannot_write(f"{path!r}", error)) from None
    finally:
        for temporary in written.values():
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def json_text(value: Mapping[str, Any]) -> str:
    """Strict JSON (no NaN, plain ASCII) with a line break at the end."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def json_writer(value: Mapping[str, Any]) -> Writer:
    """Write `value` as JSON."""

    def write(path: Path) -> None:
        path.write_text(json_text(value), encoding="ascii")

    return write


def _cannot_write(what: str, error: OSError | ValueError) -> str:
    reason = getattr(error, "strerror", None) or str(error)
    return f"cannot write {what}: {reason}; name a file in a folder that exists and is writable"


def _place(path: str) -> str:
    """Where a path leads; a path that cannot be is left to whoever opens it."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return path


def _probe(path: str) -> None:
    if not path:
        raise ValueError("the path is empty")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    else:
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(None, "it is a folder")
        if not os.access(path, os.W_OK):
            raise PermissionError(None, "permission denied")
    if stat.S_ISREG(mode):
        temporary = _temporary(path)
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        temporary.unlink()


def _is_device(path: str) -> bool:
    """Whether the path is a pipe, terminal or /dev/null, which a rename would destroy."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def _temporary(path: str) -> Path:
    if _is_device(path):
        return Path(tempfile.gettempdir()) / f"fewlabels-{secrets.token_hex(8)}"
    # Beside the target that links lead to: a rename must not cross file systems or cut a link.
    # Random, so that two runs do not meet; short, so that a long name still has room.
    target = Path(os.path.realpath(path))
    return target.with_name(f".{target.name[:50]}.{secrets.token_hex(8)}")


def _put(temporary: Path, path: str) -> None:
    if _is_device(path):
        with temporary.open("rb") as source, open(path, "wb") as device:
            shutil.copyfileobj(source, device)
        return
    if os.path.exists(path):
        shutil.copymode(path, temporary)
    os.replace(temporary, os.path.realpath(path))
