"""A file or folder as units: pieces of work that are read on their own."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from fewlabels.data.binary import ParquetFile, parquet_file
from fewlabels.data.content import compression
from fewlabels.data.databases import SqlTable
from fewlabels.data.delimited import NO_HEADER, DelimitedFile
from fewlabels.data.inputs import one_at_a_time
from fewlabels.data.joined_files import refuse_pooled
from fewlabels.data.limits import refuse_wide
from fewlabels.data.options import ColumnOptions
from fewlabels.data.proposals import Proposals
from fewlabels.data.read import read_as_said
from fewlabels.data.repeats import repeated_items
from fewlabels.data.roles import Roles, assign_roles
from fewlabels.data.shapes import Shaped, shaped, telling
from fewlabels.data.sources import (
    SQL,
    BadFile,
    FolderOfTables,
    Located,
    Selection,
    filtered,
    locate,
    nothing_read,
)
from fewlabels.data.stores import File, StoredFile, native_file
from fewlabels.data.table import Source, Table, naming_file, readable, row_place
from fewlabels.data.tasks import find_tasks, recognise_tasks
from fewlabels.data.where import Condition, Filter, refuse_no_row
from fewlabels.errors import InputError, UsageError, listed, one_line, redacted, unknown

IN_PARTS = ("CSV", "Parquet", SQL)
"""Kinds of sources that can be divided; the others are read whole."""

UNIT_ROWS = 262_144
"""Rows of a unit of Parquet, about: whole row groups, or a part of one that has more; of a table of
a database if its keys have no gaps."""

_ROW_BYTES = 100
"""What a row of a database counts in the progress."""

_SLICES = 4
"""Parts of a row group at most: each reads past those before it."""

UNIT_BYTES = 64 << 20
"""Bytes of a unit of CSV, about: whole rows."""

TO_THE_END = 2**63 - 1
"""Where a unit of compressed CSV stops: its length is not known before it is read."""

HEAD_ROWS = 100_000
"""Rows by which the columns of a file are recognised, if the caller does not name them."""

_MOST_HEADS = 50
"""Files whose first rows are read for that."""

_CHUNK = 1 << 18


_SAMPLES, _SAMPLE_BYTES, _FOOTER_BYTES = 16, 1 << 12, 1 << 16


class Stamp(NamedTuple):
    """Identifies the state of a file: size, times in nanoseconds, and part of the contents.

    `changed` is the system's time of the last change, which cannot be set back. `digest` is of the
    last bytes (the footer of Parquet) and of samples of the others, as network file systems may
    lack times and file numbers.
    """

    size: int
    written: int
    changed: int
    inode: int
    digest: str

    @classmethod
    def of(cls, path: File) -> Stamp:
        """The stamp of a file as it is now; a store says itself when it was written."""
        digest = hashlib.blake2b(digest_size=12)
        if isinstance(path, StoredFile):
            status = path.stat()
            return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, 0, "")
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            size = status.st_size
            for k in range(_SAMPLES):
                file.seek(size * k // _SAMPLES)
                digest.update(file.read(_SAMPLE_BYTES))
            file.seek(max(size - _FOOTER_BYTES, 0))
            digest.update(file.read(_FOOTER_BYTES))
        written, changed = status.st_mtime_ns, status.st_ctime_ns
        return cls(size, written, changed, status.st_ino, digest.hexdigest())

    @classmethod
    def of_rows(cls, table: SqlTable, start: int, stop: int) -> Stamp:
        """The stamp of a range of keys: that of the rows, or of the files of the database."""
        version = table.version(start, stop)
        if version is not None:
            return cls(*version, 0, 0, "")
        each = [cls.of(path) for path in table.address.files()]
        size, written = sum(one.size for one in each), sum(one.written for one in each)
        return cls(size, written, 0, 0, "".join(one.digest for one in each))

    def matches(self, now: Stamp) -> bool:
        """Whether a file, possibly read elsewhere under another number, is unchanged."""
        return (self.size, self.written, self.digest) == (now.size, now.written, now.digest)


UNCHANGING = Stamp(0, 0, 0, 0, "")
"""The stamp of rows that are held in memory."""


@dataclass(frozen=True)
class Unit:
    """One piece of work, in the order of the files.

    `start` and `stop` are row groups of a Parquet file, keys of a table, or bytes of the
    uncompressed CSV file: the rows that begin there, without the header. `first_row` is the number
    of its first row in the file, from 0, `n_rows` how many there are; of CSV, only a file's first
    unit knows the former, and none the latter. `n_bytes` is its share of the file's size; `stamp`
    detects changes of the file. A unit may be part of one row group: `skip` and `left` are the rows
    before and after it. `header` says whether the first row of a CSV file names the columns. `path`
    holds no password, `source` is what opens it; `filter` adds columns and chooses rows, among
    which first rows are then counted.
    """

    path: str
    name: str
    kind: str
    start: int
    stop: int
    first_row: int | None
    n_rows: int | None
    n_bytes: int
    stamp: Stamp
    skip: int = 0
    left: int = 0
    header: bool = True
    source: Any = field(default=None, repr=False, compare=False)
    filter: Filter = field(default_factory=Filter, repr=False, hash=False)

    @property
    def file(self) -> Any:
        """What opens it."""
        return Path(self.path) if self.source is None else self.source

    def has_changed(self) -> bool:
        """Whether its file is another one than when it was opened first."""
        if isinstance(self.file, SqlTable):
            return bool(self.stamp.digest) and not self.stamp.matches(
                Stamp.of_rows(self.file, self.start, self.stop)
            )
        return not self.stamp.matches(Stamp.of(self.file))


@dataclass(frozen=True)
class Layout:
    """What there is to read: units, the role of every column, and files that were left out.

    `notes` are worth a warning: columns that were offered as groups and cannot be any. `reading`
    says what was recognised in the first rows without being said, and `options` say it too. Rows
    that are `kept` on disk are gone when the run stops.
    """

    name: str
    units: tuple[Unit, ...]
    roles: Roles
    skipped: tuple[BadFile, ...]
    notes: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()
    options: ColumnOptions = field(default_factory=ColumnOptions)
    kept: bool = False

    @property
    def n_bytes(self) -> int:
        """Size of all units."""
        return sum(unit.n_bytes for unit in self.units)

    def groups(self, asked: Iterable[str]) -> tuple[str, ...]:
        """Columns to tell groups apart by, each once."""
        known = [*self.roles.groups, *([] if self.roles.domain is None else ["domain"])]
        names = tuple(dict.fromkeys(asked))
        for name in names:
            if name not in known:
                raise UsageError(unknown("group", name, known, "the files have none"))
        return names


def lay_out(
    source: str | Path | Selection, options: ColumnOptions, *, skip_bad_files: bool = False
) -> Layout:
    """Divide a Parquet or CSV file, a folder of such files, or a table of a database, into units.

    The header of every file is read, or its footer. Files without rows are fine, and give no unit.
    With `skip_bad_files` one that cannot be opened, or has other columns than the first, is left
    out instead of refused.
    """
    if options.stratum is not None:
        raise UsageError(
            "--stratum needs the shares of all items before the first label counts, so that files "
            "are read whole; add --engine memory (in Python: fewlabels.estimate)"
        )
    proposals = Proposals(source, options, read_as_said)
    try:
        layout = _lay_out(source, options, skip_bad_files)
    except InputError as error:
        raise proposals.tried(error) from None
    notes = proposals.lines((*layout.roles.notes, *layout.notes))
    return replace(layout, notes=notes, reading=proposals.lines(layout.reading))


def _lay_out(
    source: str | Path | Selection, options: ColumnOptions, skip_bad_files: bool
) -> Layout:
    skipped: list[BadFile] = []
    located = locate(source, skipped if skip_bad_files else None)
    if located is None:
        held = source.place if isinstance(source, Selection) else source
        raise UsageError(
            f"`source` must be a path of Parquet or CSV files; got {type(held).__qualname__}: "
            "a frame in memory is not streamed"
        )
    alone = len(located.files) == 1 and not skipped
    with naming_file(located.name):
        if located.kind not in IN_PARTS:
            raise InputError(
                f"is {located.kind}, and {located.kind} files are read whole; add --engine "
                "memory, or save the table as Parquet"
            )
        files: list[Opened] = []
        heads: list[Source] = []
        units: list[Unit] = []
        for path in located.files:
            name = located.shown(path)
            try:
                with naming_file(None if alone or skip_bad_files else name):
                    file: Opened = located.opener(path, name)
                    refuse_wide(len(file.names))
                    named, chosen = filtered(file, located, path)
                    shown = one_line(located.name) if alone else name
                    of_file = list(_units(file, path, shown, located, chosen))
                # Every file must have the columns of the first one, in any order.
                _ = FolderOfTables("", (*heads[:1], named)).names
            except InputError as error:
                if not skip_bad_files:
                    raise
                skipped.append(BadFile(name, str(error)))
            else:
                files.append(file)
                heads.append(named)
                units += of_file
        if not files:
            raise InputError(nothing_read(skipped, alone=len(located.files) == 1))
        head, options = shaped(_Head(heads, located.where), options)
        refuse_pooled(heads, located.files, located.name)
        tasks = find_tasks(head, options)
        reading = recognise_tasks(tasks)
        if tasks.options.task is not None:
            raise UsageError(
                "--task COL, a row for every task, is read whole; add --engine memory, or give "
                "every task columns of its own"
            )
        if tasks.column is not None:
            lines = (*tasks.lines, *reading.lines)
            raise SeveralTasksError(
                tasks.column, tasks.of_each(reading.options), reading.options, lines
            )
        if reading.votes:
            said = shlex.join(["--votes", *reading.options.arguments()])
            raise InputError(f"each row is the vote of an annotator; say so with {said}")
        with telling(head):
            roles, notes = _fit(assign_roles(tasks.source.names, reading.options), files)
        notes = (*notes, *(head.notes if isinstance(head, Shaped) else ()))
        notes = (*notes, *dict.fromkeys(n for file in files for n in getattr(file, "notes", ())))
        if not units:
            raise InputError("there are no rows; a file needs at least one item")
        notes += repeated_items(head, roles, of_head=True, named=options.names_classifiers)
    in_order = sorted(skipped, key=lambda bad: bad.name)
    return Layout(
        located.name, tuple(units), roles, tuple(in_order), (*located.notes, *notes),
        (*tasks.lines, *reading.lines), reading.options, located.kept,
    )  # fmt: skip


Opened = ParquetFile | DelimitedFile | SqlTable
"""What a unit is a part of."""


def _units(file: Opened, path: Any, name: str, located: Located, chosen: Filter) -> Iterator[Unit]:
    """The units of a file."""
    kind, header = located.kind, located.fragment != NO_HEADER
    if isinstance(file, SqlTable):
        n_parts = max(-(-file.n_rows // UNIT_ROWS), 1)
        bounds = [file.start + (file.stop - file.start) * i // n_parts for i in range(n_parts + 1)]
        for start, stop in itertools.pairwise(bounds if file.n_rows else ()):
            stamp, size = Stamp.of_rows(file, start, stop), _ROW_BYTES * file.n_rows // n_parts
            yield Unit(
                str(file.address), name, kind, start, stop, 0 if start == file.start else None,
                None, size, stamp, source=file,
            )  # fmt: skip
        return
    try:
        stamp = Stamp.of(path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from None
    place = redacted(str(path.absolute()))
    for piece in _pieces(file, stamp.size):
        yield Unit(
            place, name, kind, *piece[:5], stamp, *piece[5:], header=header, source=path,
            filter=chosen,
        )  # fmt: skip


class SeveralTasksError(UsageError):
    """Files hold several tasks: `each` has the options that read one, `column` is for which it is.

    `models` are the classifiers of all, and `reading` says what was recognised.
    """

    def __init__(
        self, column: str, each: Mapping[str, ColumnOptions], options: ColumnOptions,
        reading: tuple[str, ...],
    ) -> None:  # fmt: skip
        self.column, self.each, self.reading = column, each, reading
        self.models = (*options.models, *(m for m in options.hard if m not in options.models))
        self.models += tuple(m for m in options.scores if m not in self.models)
        super().__init__(str(one_at_a_time(each, "reading in parts")))


@dataclass(frozen=True)
class _Head:
    """The first rows of the files, by which their columns are recognised."""

    opened: Sequence[Any]
    where: Condition | None = None

    @property
    def name(self) -> str | None:
        return self.opened[0].name

    @property
    def names(self) -> tuple[str, ...]:
        return self.opened[0].names

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        held, n_rows = list[pa.RecordBatch](), 0
        files: list[tuple[str, int]] = []
        for file in self.opened[:_MOST_HEADS]:
            most = n_rows + max((HEAD_ROWS - n_rows) // 2, HEAD_ROWS // _MOST_HEADS)
            for batch in file.batches(numbers, texts):
                held.append(batch.slice(0, most - n_rows))
                n_rows += len(held[-1])
                if n_rows >= most:
                    break
            files.append((str(file.name), n_rows))
        refuse_no_row(n_rows, self.where)
        table = Table.of_batches(held, (*numbers, *texts))
        if len(files) == 1:
            return table

        def place(row: int) -> str:
            i = next(i for i, (_, end) in enumerate(files) if row < end)
            return f"{row_place(row - (files[i - 1][1] if i else 0))} of {files[i][0]}"

        return replace(table, place=place, files=tuple(files))


_Piece = tuple[int, int, int | None, int | None, int, int, int]
"""A unit's start, stop, first_row, n_rows, n_bytes, skip and left, as `Unit` has them."""


def _pieces(file: ParquetFile | DelimitedFile, size: int) -> Iterator[_Piece]:
    """Row groups together, or ranges of whole rows, each with its share of the file's size."""
    if isinstance(file, ParquetFile):
        rows = file.row_groups
        total = max(sum(rows), 1)
        start = first = 0
        while start < len(rows):
            stop, n = start + 1, rows[start]
            while stop < len(rows) and n + rows[stop] <= UNIT_ROWS:
                n += rows[stop]
                stop += 1
            slices = min(-(-n // UNIT_ROWS), _SLICES)
            bounds = [n * i // slices for i in range(slices + 1)] if n else []
            for skip, end in itertools.pairwise(bounds):
                share = size * (first + end) // total - size * (first + skip) // total
                yield start, stop, first + skip, end - skip, share, skip, n - end
            start, first = stop, first + n
        return
    if not any(chunk.strip(b"\r\n") for chunk in _body(file)):
        return
    if not file.plain:
        yield file.body, TO_THE_END, 0, None, size, 0, 0
        return
    bounds = [file.body]
    # The whole file where a cell may hold a line break: a row is not told from its bytes alone.
    if size - file.body > UNIT_BYTES and not any(b'"' in chunk for chunk in _body(file)):
        with file.path.open("rb") as stream:
            while bounds[-1] + UNIT_BYTES < size:
                bounds.append(_line_start(stream, bounds[-1] + UNIT_BYTES, size))
    if bounds[-1] < size:
        bounds.append(size)
    for start, stop in itertools.pairwise(bounds):
        of_first = start == file.body
        yield start, stop, 0 if of_first else None, None, stop if of_first else stop - start, 0, 0


def _body(file: DelimitedFile) -> Iterator[bytes]:
    """The bytes after the header, in chunks."""
    with file.stream() as stream:
        stream.read(file.body)
        while chunk := stream.read(_CHUNK):
            yield chunk


def _line_start(stream: BinaryIO, target: int, size: int) -> int:
    """Where the first line that begins at a byte or after it begins; the size where none does."""
    at = target - 1
    stream.seek(at)
    while chunk := stream.read(_CHUNK):
        found = re.search(rb"[\r\n]", chunk)
        if found is None:
            at += len(chunk)
            continue
        at += found.end()
        stream.seek(at)
        # A line break of two bytes is one, also where the chunk ends between them.
        return at + 1 if found[0] == b"\r" and stream.read(1) == b"\n" else at
    return size


def _fit(roles: Roles, files: Iterable[Opened]) -> tuple[Roles, tuple[str, ...]]:
    """The roles without columns that cannot be groups, and a note for each.

    It is decided here, as the batches of a file must all have the same groups.
    """
    unfit: dict[str, str] = {}
    kinds = dict.fromkeys(
        (column, file.schema.field(file.names.index(column)).type)
        for file in files
        if isinstance(file, ParquetFile)
        for column in roles.groups
        if column in file.names
    )
    for column, kind in kinds:
        try:
            Table.of({column: pa.chunked_array([], kind)}, 0).categories(column)
        except InputError as error:
            if roles.groups_asked:
                raise
            unfit.setdefault(column, f"not kept as a group: {error}")
    kept = tuple(column for column in roles.groups if column not in unfit)
    return replace(roles, groups=kept, ignored=(*roles.ignored, *unfit)), tuple(unfit.values())


def skipped_words(skipped: Sequence[BadFile], without: str) -> list[str]:
    """Which files were skipped, if any, why, and what leaves them out ("the losses are")."""
    if not skipped:
        return []
    named = listed([f"{bad.name} ({bad.reason})" for bad in skipped], 3)
    many = len(skipped) > 1
    what = f"{len(skipped)} files were" if many else "1 file was"
    return [f"{what} skipped, and {without} without {'them' if many else 'it'}: {named}"]


_HEAD = 1 << 20
_INFLATED_HEAD = 16 << 20
"""The same of a compressed file, after decompression: few compressed bytes may be many rows."""


def about_rows(path: str | Path | Selection) -> int:
    """Rows of files or of a table: exact for Parquet and tables, else by the first lines.

    What cannot be read in parts counts as none.
    """
    located = locate(path)
    if located is None or located.kind not in IN_PARTS:
        return 0
    total = 0
    with naming_file(located.name):
        for file in located.files:
            if isinstance(file, SqlTable):
                total += file.n_rows
                continue
            if located.kind == "Parquet":
                with readable("Parquet"), parquet_file(file) as parquet:
                    total += int(parquet.metadata.num_rows)
                continue
            codec = compression(file)
            try:
                with native_file(file) as raw:
                    stream, most = raw, _HEAD
                    if codec is not None:
                        stream, most = pa.CompressedInputStream(raw, codec), _INFLATED_HEAD
                    head, read = stream.read(most), raw.tell()
            except (OSError, ValueError) as error:
                raise InputError(f"cannot be read ({error})") from None
            lines = head.count(b"\n") + head.count(b"\r") // 2
            share = file.stat().st_size / max(read, 1) if len(head) == most else 1.0
            total += int(lines * share)
    return total
