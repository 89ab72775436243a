"""CSV and TSV, plain or compressed, through Arrow's reader."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv

from fewlabels.data.content import ENDINGS, byte_stream, is_plain, not_utf8
from fewlabels.data.table import MISSING_NUMBERS, Table
from fewlabels.errors import InputError, quoted

_BLOCK = 8 << 20
"""Bytes that Arrow parses at once. A row must fit, which also bounds the memory of broken files."""

_SMALL_BLOCK = 1 << 20
"""The same for a stream, of which Arrow reads some 32 blocks ahead; a longer row has them grow."""

_HEADER = 4 << 20
"""Bytes that the header must fit into."""

_CHUNK = 4 << 20
_TO_THE_END = 2**62
_NO_NUMBER = "conversion error to double"
_DELIMITERS = ",\t;"


class _Text:
    """What a pass over the bytes tells, and refuses: what is not UTF-8, and where.

    `start` is where in the file the pass begins.
    """

    def __init__(self, start: int = 0) -> None:
        self.quotes = self.line_breaks = self.size = 0
        self._start = start
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def feed(self, chunk: bytes) -> None:
        """Take in what comes next."""
        try:
            self._decoder.decode(chunk)
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            line = self.line_breaks + 1 + error.object[: error.start].count(b"\n")
            held = len(error.object) - len(chunk)
            at = self._start + self.size + error.start - held
            # Of a part of a file nobody knows how many lines come before it.
            where = f"at offset {at:,}" if self._start else f"in line {line}"
            raise not_utf8(byte, f" {where}") from None
        self.quotes += chunk.count(b'"')
        self.line_breaks += chunk.count(b"\n")
        self.size += len(chunk)

    def close(self) -> None:
        """Take in that nothing more comes."""
        try:
            self._decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            raise InputError("is not UTF-8 (it ends within a character); save it again") from None


@dataclass(frozen=True)
class DelimitedFile:
    """One CSV or TSV file; `skip` rows, which are `body` bytes, come before the first item.

    Rows have `width` cells; those behind the named columns are empty.
    """

    path: Path
    name: str
    names: tuple[str, ...]
    delimiter: str
    skip: int
    body: int
    width: int

    @cached_property
    def _text(self) -> _Text:
        return _check_text(self.path)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns: numbers as such, the others as they are written."""
        text = self._text
        position = {name: str(i) for i, name in enumerate(self.names)}
        types = self._types(numbers, texts)
        try:
            try:
                table = self._parse(types)
            except pa.ArrowInvalid as error:
                if _NO_NUMBER not in str(error):
                    raise
                # As text, so that whoever asks for the numbers can name the cell that is none.
                table = self._parse(dict.fromkeys(types, pa.string()))
        except pa.ArrowInvalid as error:
            self._refuse(self._with_row(error), text, self.body)
        if text.quotes % 2 and text.line_breaks > table.num_rows + self.skip:
            self._refuse_open_quote()
        columns = {name: [table.column(position[name])] for name in (*numbers, *texts)}
        return Table(
            tuple(columns),
            columns.__getitem__,
            table.num_rows,
            lambda row: f"row {row + 1} after the header",
            decimal_comma=self.delimiter == ";",
        )

    def parts(
        self, numbers: Collection[str], texts: Collection[str], start: int, stop: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows that begin at the bytes from `start` to `stop`, some megabytes at a time.

        From where a cell is no number on, all columns are text, so that whoever asks for the
        numbers can name that cell.

        Raises
        ------
        InputError
            If the bytes are no rows of this file.
        """
        text = _check_text(self.path, start if start > self.body else 0, stop)
        types = self._types(numbers, texts)
        block, rows, complete = _SMALL_BLOCK, 0, False
        while not complete:
            seen = 0
            try:
                for batch in self._pass(types, block, start, stop):
                    fresh = batch.slice(min(max(rows - seen, 0), len(batch)))
                    seen += len(batch)
                    rows += len(fresh)
                    yield fresh
                complete = True
            except pa.ArrowInvalid as error:
                # Once more, and on from where it stopped.
                if _NO_NUMBER in str(error):
                    types = dict.fromkeys(types, pa.string())
                elif "straddling" in str(error) and block < _BLOCK:
                    block = _BLOCK
                else:
                    self._refuse(error, text, start)
        if text.quotes % 2 and text.line_breaks > rows + self.skip:
            self._refuse_open_quote()

    def batches(self, numbers: Collection[str], texts: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Some columns from the first row on, some megabytes at a time."""
        if self.body < self._size:
            yield from self._pass(self._types(numbers, texts), _SMALL_BLOCK, self.body, self._size)

    @property
    def _size(self) -> int:
        """Where the rows end; nobody knows of compressed files."""
        return self.path.stat().st_size if is_plain(self.path) else _TO_THE_END

    def place(self, start: int, row: int) -> str:
        """Where a person finds a row, counted from 0 among those that begin at byte `start`."""
        if start <= self.body:
            return f"row {row + 1} after the header"
        # Files with quotes are read from the body on: here every line is a row.
        with self.path.open("rb") as stream:
            stream.seek(start)
            lines = io.TextIOWrapper(stream, "utf-8", "replace")
            rows = (line for line in lines if line != "\n")
            found = next(itertools.islice(rows, row, None), "")
        return f"the row that begins with {quoted(found.strip())}"

    def _types(self, numbers: Collection[str], texts: Collection[str]) -> dict[str, pa.DataType]:
        """Position of a column -> the type that it is read as."""
        position = {name: str(i) for i, name in enumerate(self.names)}
        types = {position[name]: pa.string() for name in texts}
        return types | {position[name]: pa.float64() for name in numbers}

    def _pass(
        self, types: dict[str, pa.DataType], block: int, start: int, stop: int
    ) -> Iterator[pa.RecordBatch]:
        names = [self.names[int(i)] for i in types]
        # Arrow reads ahead on threads of its own, where no code of Python should be called.
        with _opened_part(self.path, start, stop) as part:
            try:
                options = self._options(types, threads=False, block=block)
                reader = pa.csv.open_csv(part, **options)
            except pa.ArrowInvalid as error:
                if "Empty CSV" not in str(error):
                    raise
                return
            with reader:
                for batch in reader:
                    yield pa.RecordBatch.from_arrays(batch.columns, names)

    def _parse(self, types: dict[str, pa.DataType]) -> pa.Table:
        with byte_stream(self.path) as stream:
            return pa.csv.read_csv(stream, **self._options(types, threads=True, skip=self.skip))

    def _options(
        self,
        types: dict[str, pa.DataType],
        *,
        threads: bool,
        skip: int = 0,
        block: int | None = None,
    ) -> dict[str, Any]:
        """Options of Arrow's readers."""
        return {
            "read_options": pa.csv.ReadOptions(
                # Columns by position: names may be anything, and the header is ours to read.
                column_names=[str(i) for i in range(self.width)],
                skip_rows_after_names=skip,
                block_size=block or _BLOCK,
                use_threads=threads,
            ),
            "parse_options": pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": pa.csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=list(MISSING_NUMBERS),
                strings_can_be_null=False,
            ),
        }

    def _refuse_open_quote(self) -> None:
        """Refuse a quote that is open at the end; Arrow takes all that follows it as one cell."""
        with byte_stream(self.path) as stream:
            lines = io.TextIOWrapper(stream, "utf-8-sig", newline="")
            try:
                for _ in csv.reader(lines, delimiter=self.delimiter, strict=True):
                    pass
            except csv.Error:
                raise InputError(
                    "has a double quote that is opened and never closed; close it, or write a "
                    'quote within a cell as ""'
                ) from None

    def _with_row(self, error: pa.ArrowInvalid) -> pa.ArrowInvalid:
        """A ragged row with its number, which the reader without threads counts."""
        if "Expected" not in str(error):
            return error
        try:
            for _ in self._pass({"0": pa.string()}, _BLOCK, self.body, self._size):
                pass
        except pa.ArrowInvalid as numbered:
            return numbered
        return error

    def _refuse(self, error: pa.ArrowInvalid, text: _Text, start: int) -> NoReturn:
        """Say in our words what Arrow found in a text of rows that begin at byte `start`."""
        said = str(error)
        if "straddling" in said and text.size > _BLOCK:
            raise InputError(
                f"has a row of more than {_BLOCK >> 20} MB; look for a quote that is never closed, "
                "or drop the column with the long text"
            ) from None
        if "straddling" in said or "Empty CSV" in said:
            raise InputError("has a header but no rows; a file needs at least one item") from None
        ragged = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", said)
        if ragged:
            number, columns, found = ragged.groups()
            row = "a row" if number is None else self.place(start, int(number) - 1)
            raise InputError(
                f"has {columns} columns, but {row} has {found}; look for a missing or an unquoted "
                "delimiter there"
            ) from None
        raise InputError(f"cannot be read as CSV: {said}") from None


def open_delimited(path: Path, name: str) -> DelimitedFile:
    """Read the header of a CSV file.

    Raises
    ------
    InputError
        If there is no header to read, or the file is not UTF-8.
    """
    with byte_stream(path) as stream:
        head = stream.read(_HEADER)
    try:
        # Not final: the block may end in the middle of a character.
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        _check_text(path)
        raise InputError("is not UTF-8; save it again as UTF-8") from None
    if "\0" in text:
        raise InputError("is not a text file (it holds zero bytes); save it as CSV in UTF-8")
    if len(head) == _HEADER and not re.search(r"[\r\n]", text):
        raise InputError(
            f"has a first row of more than {_HEADER >> 20} MB; it must name the columns"
        )
    delimiter = _delimiter(path, text)
    skip, lines = 0, _Lines(text)
    mark = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
    rows = csv.reader(lines, delimiter=delimiter)
    try:
        for row in rows:
            skip += 1
            if row:
                names = tuple(column.strip() for column in row)
                body = mark + lines.size
                file = DelimitedFile(path, name, names, delimiter, skip, body, len(names))
                return _without_empty_columns(file, rows)
    except csv.Error as error:
        raise InputError(f"has a header that cannot be read as CSV: {error}") from None
    raise InputError("has no header; the first row must name the columns")


def _without_empty_columns(file: DelimitedFile, rows: Iterator[list[str]]) -> DelimitedFile:
    """The file without columns at its end that have neither a name nor a cell.

    Spreadsheets write them, in the header or in the rows alone, of which `rows` are the next.
    """
    named = len(file.names)
    while named and not file.names[named - 1]:
        named -= 1
    try:
        row = next((row for row in rows if row), [])
    except csv.Error:
        row = []
    wider = len(row) > len(file.names) and not "".join(row[len(file.names) :]).strip()
    shorter = named <= len(row) < len(file.names)
    width = len(row) if wider or shorter else len(file.names)
    if not named or named == width == len(file.names):
        return file
    status = file.path.stat()
    stamp = (status.st_size, status.st_mtime_ns)
    filled = _filled(replace(file, width=width), named, stamp)
    if filled is None or filled > len(file.names):
        return file
    return replace(file, names=file.names[:filled], width=width)


@lru_cache(64)
def _filled(file: DelimitedFile, named: int, stamp: tuple[int, int]) -> int | None:
    """How many columns there are up to the last that has a name or a cell; None if rows differ.

    Kept, as a file is opened once for each of its parts; `stamp` tells when it has changed.
    """
    # With a column that has a name, as there may be none behind them.
    columns = range(named - 1, file.width)
    try:
        table = file._parse({str(i): pa.string() for i in columns})
    except pa.ArrowInvalid:
        return None
    filled = [
        i + 1
        for i in columns[1:]
        if any(value.strip() for value in table.column(str(i)).unique().to_pylist())
    ]
    return max(filled, default=named)


class _Lines:
    """The lines of a text with their ends, and how many bytes those read so far have."""

    def __init__(self, text: str) -> None:
        self.size = 0
        self._lines = io.StringIO(text, newline="")

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.size += len(line.encode())
            yield line


def _delimiter(path: Path, text: str) -> str:
    """The delimiter: a tab in .tsv, else the one that the header has most of."""
    if path.name.lower().endswith((".tsv", *(f".tsv{ending}" for ending in ENDINGS))):
        return "\t"
    header = re.sub(r'"[^"]*"', "", text.lstrip("\r\n").partition("\n")[0])
    return max(_DELIMITERS, key=header.count)


def _check_text(path: Path, start: int = 0, stop: int | None = None) -> _Text:
    """Refuse what is not UTF-8, with the place where it stops being that; bytes [start, stop)."""
    text = _Text(start)
    with byte_stream(path) as stream:
        if start:
            stream.seek(start)
        left = _CHUNK if stop is None else stop - start
        while chunk := stream.read(min(_CHUNK, left)):
            text.feed(chunk)
            left -= 0 if stop is None else len(chunk)
    text.close()
    return text


@contextmanager
def _opened_part(path: Path, start: int, stop: int) -> Iterator[Any]:
    """The bytes from `start` to `stop`, or to the end of a file that is not plain text."""
    with byte_stream(path) as stream:
        if is_plain(path):
            yield stream.get_stream(start, stop - start)
            return
        while start and (chunk := stream.read(start)):
            start -= len(chunk)
        yield stream
