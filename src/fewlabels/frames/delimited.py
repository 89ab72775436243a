"""CSV and TSV, plain or compressed by gzip, through Arrow's reader."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv

from fewlabels.errors import FewlabelsError, InputError
from fewlabels.frames.locate import GZIP
from fewlabels.frames.table import MISSING_NUMBERS, Table

_BLOCK = 8 << 20
"""Bytes that Arrow parses at once. A row must fit, which also bounds the memory of broken files."""

_HEADER = 4 << 20
"""Bytes that the header must fit into."""

_CHUNK = 4 << 20
_DELIMITERS = ",\t;"


@dataclass(frozen=True)
class _Text:
    """What one pass over the bytes tells."""

    quotes: int
    line_breaks: int
    size: int


@dataclass(frozen=True)
class DelimitedFile:
    """One CSV or TSV file; `skip` rows come before the first item."""

    path: Path
    name: str
    names: tuple[str, ...]
    delimiter: str
    skip: int

    @cached_property
    def _text(self) -> _Text:
        return _check_text(self.path)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns: numbers as such, the others as they are written."""
        text = self._text
        position = {name: str(i) for i, name in enumerate(self.names)}
        types = {position[name]: pa.string() for name in texts}
        types |= {position[name]: pa.float64() for name in numbers}
        try:
            table = self._parse(types)
        except pa.ArrowInvalid as error:
            if "conversion error to double" not in str(error):
                self._refuse(error)
            # Read as text, so that whoever asks for the numbers can name the cell that is none.
            try:
                table = self._parse(dict.fromkeys(types, pa.string()))
            except pa.ArrowInvalid as second:
                self._refuse(second)
        if text.quotes % 2 and text.line_breaks > table.num_rows + self.skip:
            self._refuse_open_quote()
        columns = {name: [table.column(position[name])] for name in (*numbers, *texts)}
        return Table(
            tuple(columns),
            columns.__getitem__,
            table.num_rows,
            lambda row: f"row {row + 1} after the header",
        )

    def _parse(self, types: dict[str, pa.DataType], *, threads: bool = True) -> pa.Table:
        with _stream(self.path) as stream:
            return pa.csv.read_csv(
                stream,
                read_options=pa.csv.ReadOptions(
                    # Columns by position: names may be anything, and the header is ours to read.
                    column_names=[str(i) for i in range(len(self.names))],
                    skip_rows_after_names=self.skip,
                    block_size=_BLOCK,
                    use_threads=threads,
                ),
                parse_options=pa.csv.ParseOptions(
                    delimiter=self.delimiter, newlines_in_values=True
                ),
                convert_options=pa.csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(types),
                    null_values=list(MISSING_NUMBERS),
                    strings_can_be_null=False,
                ),
            )

    def _refuse_open_quote(self) -> None:
        """Refuse a quote that is open at the end; Arrow takes all that follows it as one cell."""
        with _stream(self.path) as stream:
            lines = io.TextIOWrapper(stream, "utf-8-sig", newline="")
            try:
                for _ in csv.reader(lines, delimiter=self.delimiter, strict=True):
                    pass
            except csv.Error:
                raise InputError(
                    "has a double quote that is opened and never closed; close it, or write a "
                    'quote within a cell as ""'
                ) from None

    def _refuse(self, error: pa.ArrowInvalid) -> NoReturn:
        """Say in our words what Arrow found."""
        said = str(error)
        if "straddling" in said and self._text.size > _BLOCK:
            raise InputError(
                f"has a row of more than {_BLOCK >> 20} MB; look for a quote that is never closed, "
                "or drop the column with the long text"
            ) from None
        if "straddling" in said or "Empty CSV" in said:
            raise InputError("has a header but no rows; a file needs at least one item") from None
        ragged = re.search(r"Expected (\d+) columns, got (\d+)", said)
        if ragged:
            raise InputError(
                f"has {ragged[1]} columns, but {self._ragged_row()} has {ragged[2]}; look for a "
                "missing or an unquoted delimiter there"
            ) from None
        raise InputError(f"cannot be read as CSV: {said}") from None

    def _ragged_row(self) -> str:
        # Only the reader without threads counts rows.
        try:
            self._parse({"0": pa.string()}, threads=False)
        except pa.ArrowInvalid as error:
            row = re.search(r"Row #(\d+)", str(error))
            if row:
                return f"row {int(row[1]) - self.skip} after the header"
        return "a row"


def open_delimited(path: Path, name: str) -> DelimitedFile:
    """Read the header of a CSV file.

    Raises
    ------
    InputError
        If there is no header to read, or the file is not UTF-8.
    """
    with _stream(path) as stream:
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
    skip = 0
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            skip += 1
            if row:
                names = tuple(column.strip() for column in row)
                return DelimitedFile(path, name, names, delimiter, skip)
    except csv.Error as error:
        raise InputError(f"has a header that cannot be read as CSV: {error}") from None
    raise InputError("has no header; the first row must name the columns")


def _delimiter(path: Path, text: str) -> str:
    """The delimiter: a tab in .tsv, else the one that the header has most of."""
    if path.name.lower().endswith((".tsv", ".tsv.gz")):
        return "\t"
    header = re.sub(r'"[^"]*"', "", text.lstrip("\r\n").partition("\n")[0])
    return max(_DELIMITERS, key=header.count)


def _check_text(path: Path) -> _Text:
    """Refuse what is not UTF-8, with the line where it stops being that."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    quotes = breaks = size = 0
    with _stream(path) as stream:
        while chunk := stream.read(_CHUNK):
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as error:
                line = breaks + 1 + error.object[: error.start].count(b"\n")
                byte = error.object[error.start]
                raise InputError(
                    f"is not UTF-8 (byte 0x{byte:02x} in line {line}); save it again as UTF-8"
                ) from None
            quotes += chunk.count(b'"')
            breaks += chunk.count(b"\n")
            size += len(chunk)
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 (it ends within a character); save it again") from None
    return _Text(quotes, breaks, size)


@contextmanager
def _stream(path: Path) -> Iterator[Any]:
    """The bytes of a file, decompressed where they are compressed."""
    try:
        with path.open("rb") as file:
            compression = "gzip" if file.read(2) == GZIP else None
        with pa.input_stream(str(path), compression=compression) as stream:
            yield stream
    except (FewlabelsError, pa.ArrowInvalid):
        raise
    except (OSError, ValueError, MemoryError) as error:
        raise InputError(
            f"cannot be read ({error}); if it is compressed, it may be damaged or cut short"
        ) from None
