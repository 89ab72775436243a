"""Limits of what a file may become when read: few bytes may be more rows than memory holds.

Sizes of workbooks and Feather files are checked, not believed: a zip archive states the sizes of
its members, an Arrow buffer its uncompressed length, and a sheet spans all cells from its first to
its last.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import re
import struct
import zipfile
from collections.abc import Generator, Iterator
from pathlib import Path
from xml.parsers.expat import ParserCreate

import pyarrow as pa

from fewlabels.checks.arguments import refuse_beyond_memory
from fewlabels.data.stores import File
from fewlabels.errors import InputError

IN_MEMORY = 8
"""Copies of the numbers in memory: four while they are read, twice that in an estimate (10 million
rows of a label and a probability: 0.6 and 1.3 GB)."""

MOST_INFLATED, MOST_RATIO = 4 << 30, 200
"""Bytes that a compressed file may always inflate to, and its largest ratio beyond. Tables are
compressed ten times, columns of votes a hundred times; more is made to fill memory or time."""


MOST_COLUMNS = 10_000
"""Columns of a table: to recognise one takes some 10 KB, whatever it holds."""


def refuse_wide(n_columns: int) -> None:
    """Refuse a table of too many columns to be recognised."""
    if n_columns > MOST_COLUMNS:
        raise InputError(
            f"has {n_columns:,} columns, and at most {MOST_COLUMNS:,} are read; keep those of "
            "labels, predictions and groups"
        )


def refuse_whole(n_bytes: int, what: str) -> None:
    """Refuse to read `n_bytes` of numbers whole if they do not fit; `what` names them."""
    mend = (
        "use `estimate` with --engine threads, which reads CSV and Parquet in parts, or keep fewer "
        "rows or columns"
    )
    refuse_beyond_memory(IN_MEMORY * n_bytes, f"reading {what} whole", mend)


class Inflation:
    """Counts the bytes that a file inflates to; unlimited if it is not `packed`."""

    def __init__(self, path: File, *, packed: bool) -> None:
        self.size = 0
        self._packed_size = path.stat().st_size
        limit = max(MOST_INFLATED, MOST_RATIO * self._packed_size)
        self._most = limit if packed else math.inf

    def take(self, n_bytes: int) -> None:
        """Count more."""
        self.size += n_bytes
        if self.size > self._most:
            raise InputError(
                f"is {self._packed_size / 1e6:,.1f} MB and inflates to more than "
                f"{self._most / 1e9:,.1f} GB; if that is what it should hold, decompress it first"
            )


def inflated_zip(path: Path) -> int:
    """Bytes that the members of a zip archive are without compression; 0 where it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return sum(member.file_size for member in archive.infolist())
    except Exception:  # whatever foreign bytes make the reader stumble on; who reads it says it
        return 0


_CHUNK = 1 << 20

# Workbooks ----------------------------------------------------------------------------------------


def refuse_workbook(path: Path) -> None:
    """Refuse a workbook whose parts inflate too far, or whose sheets span too many cells."""
    # Its parts are decompressed, since the reader does not stop at the stated size and ends the
    # process when out of memory. A workbook that is no zip archive is not compressed.
    if not zipfile.is_zipfile(path):
        return
    inflation, cells = Inflation(path, packed=True), 0
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            # Closed at once, or an error would hold the file open.
            with contextlib.closing(_parts(archive, member, inflation)) as parts:
                counts = (count for name, count in _SHEETS if name.fullmatch(member.filename))
                cells += next(counts, lambda parts: 0 * sum(map(len, parts)))(parts)
    # Cells are objects, some ten times as large as their text; empty ones have a place too.
    refuse_whole(max(3 * inflation.size, 8 * cells), f"its sheets, which span {cells:,} cells,")


_XML = re.compile(r"(?i)xl/.*\.(xml|rels)|content\.xml")


def _parts(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, inflation: Inflation
) -> Generator[bytes, None, None]:
    """All that a member holds, whatever size it says; of XML up to the first error."""
    whole = copy.copy(member)
    whole.file_size = 1 << 62
    # Readers of sheets skip what they miss.
    parser = ParserCreate(namespace_separator=" ") if _XML.fullmatch(member.filename) else None
    with archive.open(whole) as file:
        while part := file.read(_CHUNK):
            inflation.take(len(part))
            if parser is not None:
                parser.Parse(part)
            yield part
    if parser is not None:
        parser.Parse(b"", True)


class _Span:
    """First and last rows and columns of filled cells."""

    def __init__(self) -> None:
        self.ends: list[list[int]] = [[], []]

    def take(self, rows: list[int], columns: list[int]) -> None:
        """More filled cells."""
        for ends, more in zip(self.ends, (rows, columns), strict=True):
            every = [*ends, *more]
            ends[:] = [min(every), max(every)] if every else []

    @property
    def cells(self) -> int:
        """Cells between them."""
        return math.prod(ends[1] - ends[0] + 1 if ends else 0 for ends in self.ends)


_KINDS = {b"b", b"d", b"e", b"inlineStr", b"n", b"s", b"str"}
"""Kinds of cells (ECMA-376, ST_CellType). For others, readers differ: a text, or nothing."""
_KIND = re.compile(rb"""<(?:\w+:)?c\s[^>]*?\bt=["']([^"'>]*)["']""")
_CELL = re.compile(rb"""<(?:\w+:)?c\s[^>]*?\br=["']([A-Za-z]{1,3})(\d{1,9})["']""")


def _of_excel(parts: Iterator[bytes]) -> int:
    span, rest = _Span(), b""
    for part in parts:
        text = rest + part
        odd = set(_KIND.findall(text)) - _KINDS
        if odd:
            raise ValueError(f"a cell of kind {min(odd).decode(errors='replace')!r}")
        found = _CELL.findall(text)
        span.take([int(row) for _, row in found], [_number(name) for name in {n for n, _ in found}])
        rest = text[max(text.rfind(b"<"), len(text) - _CHUNK, 0) :]
    return span.cells


def _number(letters: bytes) -> int:
    """The column that is named A, B, ..., AA, ..."""
    return functools.reduce(lambda out, letter: 26 * out + letter - 64, letters.upper(), 0)


_LAST_CELL = 11
"""Kinds of records of cells are 1 to 11; 0 is a row."""


def _of_binary(parts: Iterator[bytes]) -> int:
    """Records: kind and size in 7 bits a byte, and what they hold."""
    data, span, place, row = b"".join(parts), _Span(), 0, 0
    while place < len(data):
        kind, place = _varied(data, place, 2)
        size, place = _varied(data, place, 4)
        if kind <= _LAST_CELL and place + 4 <= len(data):
            (number,) = struct.unpack_from("<I", data, place)
            if kind:
                span.take([row], [number])
            else:
                row = number
        place += size
    return span.cells


def _varied(data: bytes, place: int, most: int) -> tuple[int, int]:
    out = 0
    for k, byte in enumerate(data[place : place + most]):
        place += 1
        out |= (byte & 127) << 7 * k
        if byte < 128:
            break
    return out, place


_TAG = re.compile(rb"<(/?)table:(table-row|table-cell|covered-table-cell|table)(?=[\s/>])([^>]*)>")
_TIMES = re.compile(rb"""table:number-(?:rows|columns)-repeated=["'](\d{1,12})["']""")


def _of_open_document(parts: Iterator[bytes]) -> int:
    """Rows and cells say how often they are there; empty ones count if a filled one follows."""
    total, rest = 0, b""
    rows = width = waiting = filled = cells = times = 0
    for part in parts:
        text = rest + part
        end = max(text.rfind(b"<"), len(text) - _CHUNK, 0)
        for closing, tag, attributes in _TAG.findall(text[:end]):
            many = int(found[1]) if (found := _TIMES.search(attributes)) else 1
            if tag == b"table":
                total += rows * width
                rows = width = waiting = 0
            elif tag == b"table-row" and not closing:
                filled = cells = 0
                times = many
            elif tag == b"table-row":
                if filled:
                    rows, waiting = rows + waiting + times, 0
                    width = max(width, filled)
                else:
                    waiting += times
            elif not closing:
                cells += many
                if b"value" in attributes or not attributes.endswith(b"/"):
                    filled = cells
        rest = text[end:]
    return total + rows * width


_SHEETS = (
    (re.compile(r"(?i)xl/worksheets/[^/]*\.xml"), _of_excel),
    (re.compile(r"(?i)xl/worksheets/[^/]*\.bin"), _of_binary),
    (re.compile(r"content\.xml"), _of_open_document),
)
"""Parts of a workbook that are sheets, and what counts the cells that they span."""

# Feather ------------------------------------------------------------------------------------------


def refuse_feather(path: Path, *, is_file: bool, columns: int) -> None:
    """Refuse batches whose buffers inflate too far, or whose rows do not fit, before reading."""
    inflation, rows = Inflation(path, packed=True), 0
    with pa.memory_map(str(path)) as source:
        if is_file:
            source.seek(8)  # the magic bytes, padded; a stream follows
        for message in pa.ipc.MessageReader.open_stream(source):
            own, compressed, buffers = _batch(message.metadata.to_pybytes())
            rows += own
            for offset, length in buffers:
                if compressed and length >= 8:
                    (size,) = struct.unpack("<q", message.body.slice(offset, 8).to_pybytes())
                    length = size if size >= 0 else length - 8
                inflation.take(max(length, 0))
    refuse_whole(8 * rows * columns, f"its {rows:,} rows of {columns} columns")
    refuse_beyond_memory(2.0 * inflation.size, "reading its batches", "keep fewer rows or columns")


_DICTIONARY, _RECORDS = 2, 3


def _batch(metadata: bytes) -> tuple[int, bool, list[tuple[int, int]]]:
    """Rows of a batch, whether it is compressed, offsets and lengths of buffers (Message.fbs)."""
    (root,) = struct.unpack_from("<I", metadata)
    kind, header = _field(metadata, root, 1, "<B"), _field(metadata, root, 2)
    if kind == _DICTIONARY and header:
        header = _field(metadata, header, 1)
    if kind not in (_DICTIONARY, _RECORDS) or not header:
        return 0, False, []
    rows, vector = _field(metadata, header, 0, "<q"), _field(metadata, header, 2)
    buffers = []
    if vector:
        (count,) = struct.unpack_from("<I", metadata, vector)
        if vector + 4 + 16 * count > len(metadata):
            raise ValueError(f"{count} buffers are announced")
        buffers = [struct.unpack_from("<qq", metadata, vector + 4 + 16 * i) for i in range(count)]
    compressed = _field(metadata, header, 3) != 0
    return max(rows, 0) if kind == _RECORDS else 0, compressed, buffers


def _field(metadata: bytes, table: int, number: int, form: str | None = None) -> int:
    """A field of a table, or where the table or vector stands that it points to; 0 by default."""
    (back,) = struct.unpack_from("<i", metadata, table)
    (size,) = struct.unpack_from("<H", metadata, table - back)
    if 4 + 2 * number + 2 > size:
        return 0
    (offset,) = struct.unpack_from("<H", metadata, table - back + 4 + 2 * number)
    if not offset:
        return 0
    (value,) = struct.unpack_from(form or "<I", metadata, table + offset)
    return int(value) if form else table + offset + int(value)
