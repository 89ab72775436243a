"""Values of Python as columns: rows and columns in memory, JSON, workbooks."""

from __future__ import annotations

import codecs
import datetime
import io
import itertools
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fewlabels.data.content import byte_stream, check_fits, not_utf8
from fewlabels.data.limits import MOST_COLUMNS, refuse_workbook
from fewlabels.data.profiles import truth_in_name
from fewlabels.data.roles import split_native
from fewlabels.data.table import (
    BROKEN_ROWS,
    FRONT_ROWS,
    SAMPLE_ROWS,
    Held,
    Place,
    Table,
    check_header,
    group_text,
    table_start,
)
from fewlabels.errors import (
    FewlabelsError,
    InputError,
    MissingExtraError,
    did_you_mean,
    listed,
    quoted,
)

_CHUNK_ROWS = 1 << 16
"""Rows held as Python objects; earlier ones are Arrow columns."""

_LONGEST_INTEGER = 2**63

_ONE = "list of one"
"""Kind of a list that holds one value and nothing else, which may stand for that value."""


class RowCollector:
    """Rows with names, taken in one at a time; a name that a row lacks is missing there."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._held: list[dict[str, Any]] = []
        self._columns: dict[str, _Column] = {}

    def add(self, row: Mapping[Any, Any]) -> None:
        """Take in a row; objects within it become columns whose names are joined by dots."""
        if len(self._held) == _CHUNK_ROWS:
            self._close_chunk()
        cells: dict[str, Any] = {}
        for name, value in named_values(row):
            if name in cells:
                raise InputError(f"has two values for {quoted(name)}; give one of them another key")
            if name not in self._columns:
                if len(self._columns) == MOST_COLUMNS:
                    raise InputError(
                        f"has more than {MOST_COLUMNS:,} different keys; make rows with the same "
                        "keys each"
                    )
                self._columns[name] = _Column(self.n_rows - len(self._held))
            cells[name] = value
        self._held.append(cells)
        self.n_rows += 1

    def table(self, name: str | None, place: Place) -> Held:
        """All rows."""
        self._close_chunk()
        columns = {_clean(key): column.arrow() for key, column in self._columns.items()}
        return Held(name, Table.of(columns, self.n_rows, place))

    def _close_chunk(self) -> None:
        for name, column in self._columns.items():
            column.add([cells.get(name) for cells in self._held])
        self._held = []


def named_values(row: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """What an object holds, the names within it joined by dots."""
    for key, value in row.items():
        if isinstance(value, dict):
            yield from named_values(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def column_of(values: Sequence[Any]) -> pa.ChunkedArray:
    """One column of any values: numbers, truth values or text; text where they are mixed."""
    column = _Column(0)
    for start in range(0, len(values), _CHUNK_ROWS):
        column.add(values[start : start + _CHUNK_ROWS])
    return column.arrow()


class _Column:
    """One column; `before` rows that came before it was met are null."""

    def __init__(self, before: int) -> None:
        self._chunks: list[pa.Array] = [pa.nulls(before)] if before else []
        self._kinds: set[str] = set()

    def add(self, values: Sequence[Any]) -> None:
        """Hold further rows as Arrow does."""
        if not len(values):
            return
        plain = [_plain(value) for value in values]
        kinds = {kind for kind, _ in plain if kind}
        self._kinds |= kinds
        cells = [value for _, value in plain]
        if not kinds:
            self._chunks.append(pa.nulls(len(cells)))
        elif kinds == {"truth"}:
            self._chunks.append(pa.array(cells, pa.bool_()))
        elif kinds == {"number"} and any(isinstance(cell, float) for cell in cells):
            # What is too large for a float is infinite so.
            cells = [float(Decimal(c)) if isinstance(c, int) else c for c in cells]
            self._chunks.append(pa.array(cells, pa.float64()))
        elif kinds == {"number"} and all(c is None or abs(c) < _LONGEST_INTEGER for c in cells):
            self._chunks.append(pa.array(cells, pa.int64()))
        else:
            self._chunks.append(texts_of(cells))

    def arrow(self) -> pa.ChunkedArray:
        """The whole column, of one type."""
        if self._kinds == {_ONE}:
            return column_of(
                [v and json.loads(v)[0] for chunk in self._chunks for v in chunk.to_pylist()]
            )
        types = {chunk.type for chunk in self._chunks} - {pa.null()}
        # Integers too long for a number are texts.
        if self._kinds in ({"number"}, {"truth"}) and pa.large_string() not in types:
            kind = types.pop() if len(types) == 1 else pa.float64()
            return pa.chunked_array([c.cast(kind, safe=False) for c in self._chunks], kind)
        texts = [
            c if pa.types.is_large_string(c.type) else texts_of(c.to_pylist()) for c in self._chunks
        ]
        return pa.chunked_array(texts, pa.large_string())


def _plain(value: Any) -> tuple[str, Any]:
    """What a value is, and the value as a number, truth value or text; ("", None) for none."""
    if isinstance(value, np.generic | np.ndarray):  # long doubles have no other type of Python
        value = float(value) if isinstance(value, np.floating) else value.tolist()
    if value is None or isinstance(value, str):
        return ("" if value is None else "text"), value
    if isinstance(value, int | float):
        return ("truth" if isinstance(value, bool) else "number"), value
    if isinstance(value, list | tuple | dict | set | frozenset):
        values = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        try:
            text = json.dumps(values, ensure_ascii=False, default=str, skipkeys=True)
        except (ValueError, RecursionError):  # it holds itself
            text = "..."
        scalar = text[0] == "[" and len(values) == 1 and isinstance(values[0], str | int | float)
        return (_ONE if scalar else "list"), text
    if (value != value) is not False:  # NaT and NA of pandas
        return "", None
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time() and value.tzinfo is None
        return "text", (value.date() if midnight else value).isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return "text", value.isoformat()
    return "text", group_text(value)


def texts_of(values: Iterable[Any]) -> pa.Array:
    """Any values as texts."""
    texts = [value if isinstance(value, str) else group_text(value) for value in values]
    try:
        return pa.array(texts, pa.large_string())
    except UnicodeEncodeError:
        # Half of a surrogate pair, as JSON of texts that were cut has it.
        return pa.array([t and _clean(t) for t in texts], pa.large_string())


def _clean(text: str) -> str:
    r"""Text that can be stored: half a surrogate pair becomes `\udc80` and the like."""
    return text.encode("utf-8", "backslashreplace").decode()


# JSON: an object per line (JSONL), a list of objects, or an object of columns ---------------------

_BLOCK = 1 << 20
_LONGEST_LINE = 1 << 28
"""Largest row in bytes, which limits the memory taken by files that are no tables."""

_RECORDS = "save it with an object per line, as pandas does with to_json(FILE, orient='records', "
_RECORDS += "lines=True)"


def open_json(path: Path, name: str) -> Held:
    """Read a JSON file, whichever of the three it is."""
    try:
        with byte_stream(path):  # whose words are said of bytes that cannot be read
            check_fits(path)
        lines = _lines(path)
        head = list(itertools.islice(lines, 2))
        if not head:
            raise InputError("holds nothing but blanks; it needs at least one item")
        first: Any = None
        with suppress(InputError):
            first = _parsed(_text(head[0][1]))
        by_line = isinstance(first, dict)
        if len(head) == 1:
            by_line = by_line and not (_is_columns(first) or _tables(first) or _by_item(first))
        elif not by_line:
            # Two lines are rows although the first is no JSON, and not parts of one document.
            both = all(line.startswith(b"{") for _, line in head)
            by_line = both and not head[0][1].endswith((b"{", b"[", b":", b","))
        if by_line:
            return _of_lines(itertools.chain(head, lines), name)
        del head, first
        return _of_document(path, name)
    except RecursionError:
        raise InputError("is nested too deeply to be a table") from None


def _of_lines(lines: Iterator[tuple[int, bytes]], name: str) -> Held:
    rows, numbers = RowCollector(), array("q")
    for number, line in lines:
        try:
            row = _parsed(_text(line))
            if not isinstance(row, dict):
                raise InputError(f"holds {_what(row)}; every line must be an object")
            rows.add(row)
        except InputError as error:
            if (broken := BROKEN_ROWS.get()) is None:
                raise InputError(f"line {number} {error}") from None
            broken[f"line {number} {error}"] = number
        else:
            numbers.append(number)
    return rows.table(name, lambda row: f"line {numbers[row]}")


def _of_document(path: Path, name: str) -> Held:
    with byte_stream(path) as stream:
        content = stream.read()
    document = _parsed(_text(content).removeprefix("\ufeff"), whole=True)
    del content
    rows = RowCollector()
    if isinstance(document, dict):
        for row in _rows_of_columns(document):
            rows.add(row)
        return rows.table(name, _item)
    if not isinstance(document, list):
        raise InputError(f"holds {_what(document)}; it must be a list of objects")
    for i, row in enumerate(document):
        try:
            if not isinstance(row, dict):
                raise InputError(f"is {_what(row)}; every item must be an object: {_RECORDS}")
            rows.add(row)
        except InputError as error:
            raise InputError(f"{_item(i)} {error}") from None
        document[i] = None  # what has been read needs no second place in memory
    return rows.table(name, _item)


def _item(row: int) -> str:
    return f"item {row + 1} (from 1)"


_FEWEST = 3
"""Fewer objects in one are no rows."""


def _is_columns(document: Mapping[str, Any]) -> bool:
    """Whether an object may be the whole table: columns, or columns by row as pandas has them."""
    values = list(document.values())
    if not all(isinstance(v, dict) for v in values):
        return all(isinstance(v, list) for v in values)
    # The keys are those of rows: 0, 1, 2, ...
    return bool(values) and all(v and list(v) == list(map(str, range(len(v)))) for v in values)


def _by_item(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of an object of objects: one for each, or for each key of answers by item."""
    rows = [row for row in document.values() if isinstance(row, dict) and row]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    shared = 2 * sum(map(len, rows)) >= len(rows) * len(keys)
    if len(rows) < len(document) or max(len(rows), len(keys)) < _FEWEST or not shared:
        return []
    name = "item" if "item" not in keys else "key"
    kinds = [{_plain(value)[0] for value in row.values()} - {""} for row in rows]
    if len(keys) <= len(rows) or any(len(kind) > 1 or kind & {_ONE, "list"} for kind in kinds):
        return [{name: key, **row} for key, row in document.items()]
    columns = {}
    for key, answers in document.items():
        shares = any(isinstance(value, float) and value % 1 for value in answers.values())
        said = shares or truth_in_name(key) or split_native(key)
        columns[key if said else f"y__{key}"] = answers
    return [{name: key, **{c: own.get(key) for c, own in columns.items()}} for key in keys]


def _rows_of_columns(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of an object of columns."""
    if not document:
        raise InputError("holds an object without columns; it needs at least one item")
    if set(document) == {"columns", "index", "data"} or not _is_columns(document):
        if rows := _by_item(document):
            return iter(rows)
        if tables := _tables(document):
            raise InputError(
                f"holds one object, and its key {quoted(tables[0])} a list of rows; save that list"
            )
        raise InputError(f"holds one object that is no table; {_RECORDS}")
    columns = {
        key: list(value.values()) if isinstance(value, dict) else value
        for key, value in document.items()
    }
    sizes = {key: len(value) for key, value in columns.items()}
    first = next(iter(sizes))
    other = next((key for key in sizes if sizes[key] != sizes[first]), None)
    if other is not None:
        raise InputError(
            f"holds columns of different lengths: {quoted(first)} has {sizes[first]:,}, "
            f"{quoted(other)} {sizes[other]:,}; make them agree"
        )
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def _tables(document: Mapping[str, Any]) -> list[str]:
    """The keys of an object that hold rows."""
    lists = [key for key, value in document.items() if isinstance(value, list) and value]
    return [key for key in lists if isinstance(document[key][0], dict)]


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, and their numbers from 1."""
    with byte_stream(path) as stream:
        lines = io.BufferedReader(stream, _BLOCK)
        for number in itertools.count(1):
            line = lines.readline(_LONGEST_LINE + 1)
            if len(line) > _LONGEST_LINE:
                raise InputError(
                    f"has a line of more than {_LONGEST_LINE >> 20} MB (line {number})"
                )
            if not line:
                return
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if line := line.strip():
                yield number, line


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        byte = content[error.start]
        line = content[: error.start].count(b"\n") + 1
        where = f" in line {line}" if line > 1 else ""
        raise not_utf8(byte, where) from None


def _parsed(text: str, *, whole: bool = False) -> Any:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}" if whole else f"column {error.colno}"
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
            where = f"it ends too early, in {where}"
        raise InputError(f"is not valid JSON ({where}: {error.msg}); correct it") from None
    except RecursionError:
        raise InputError("is nested too deeply to be a table") from None
    except FewlabelsError:
        raise
    except ValueError as error:  # a number of thousands of digits
        raise InputError(f"is not valid JSON ({error})") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"has the key {quoted(twice)} twice in one object; remove one")
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def _what(value: Any) -> str:
    """The type of a value in words."""
    words = {list: "a list", str: "text", bool: "a truth value", type(None): "null"}
    return words.get(type(value), "a number")


# Workbooks ----------------------------------------------------------------------------------------


def open_workbook(path: Path, name: str, sheet: str | None = None) -> Held:
    """Read a sheet of a workbook: the one that is asked for, or the only one with a table."""
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise MissingExtraError("python-calamine", "excel") from None
    notes: list[str] = []
    # Broken bytes raise what they will, and its panics are no exceptions but for their base.
    try:
        refuse_workbook(path)
        with path.open("rb") as file:
            chosen, start, rows = _chosen_sheet(CalamineWorkbook.from_filelike(file), sheet, notes)
    except (FewlabelsError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except MemoryError:
        raise InputError("does not fit into memory") from None
    except BaseException as error:
        raise InputError(
            f"cannot be read as a workbook, it is damaged or cut short ({error}); write it again"
        ) from None
    if not rows:
        raise InputError(f"has nothing in the sheet {quoted(chosen)}")
    texts = [[(group_text(cell) or "").strip() for cell in row] for row in rows[:FRONT_ROWS]]
    first = table_start(texts)
    header = texts[first]
    # Rows and columns that were emptied or formatted are part of a sheet without holding anything.
    kept = [i for i in range(first + 1, len(rows)) if any(cell != "" for cell in rows[i])]
    if first:
        last = quoted(" ".join(filter(None, texts[first - 1])))
        where = f"{'row' if first == 1 else f'rows {start + 1} to'} {start + first}"
        notes.append(f"{where} before the table ({last} is the last): not read")
    while len(kept) > 1 and kept[-1] > kept[-2] + 1 and _alone(rows[kept[-1]]):
        below = next(cell for cell in rows[kept.pop()] if cell != "")
        notes.append(f"{quoted(below)} below the table is not read")
    width = len(header)
    while width and not header[width - 1] and all(rows[i][width - 1] == "" for i in kept):
        width -= 1
    columns = [
        (header[k], column_of([None if rows[i][k] == "" else rows[i][k] for i in kept]))
        for k in range(width)
    ]
    sample = [[group_text(cell) or "" for cell in rows[i]] for i in kept[:SAMPLE_ROWS]]
    mend = "write names of columns into a row before it"
    return Held.of(
        name, columns, len(kept),
        lambda row: f"row {start + kept[row] + 1} of the sheet {chosen!r}",
        (*notes, *check_header(header[:width], sample, mend)),
    )  # fmt: skip


_Sheet = tuple[str, int, list[list[Any]]]
"""Name, row of the first filled cell (from 0), and the rows of cells from there on."""


def _alone(row: Sequence[Any]) -> bool:
    """Whether a row holds one cell at most."""
    return sum(cell != "" for cell in row) <= 1


def _chosen_sheet(book: Any, sheet: str | None, notes: list[str]) -> _Sheet:
    """The sheet that is asked for, or the largest table; a note says that it was chosen."""
    names: list[str] = book.sheet_names
    if sheet is not None:
        if sheet not in names:
            raise InputError(
                f"has no sheet {quoted(sheet)}; {did_you_mean(sheet, names)}the sheets are "
                f"{listed(map(quoted, names))}"
            )
        return _cells(book, sheet)
    filled = [found for found in (_cells(book, name) for name in names) if found[2]]
    # A note is one column, or nothing below the first row.
    tables = [s for s in filled if len(s[2]) > 1 and not all(map(_alone, s[2]))]
    tables.sort(key=lambda s: -len(s[2]) * len(s[2][0]))
    if len(tables) > 1:
        shown = listed(quoted(s[0]) for s in tables)
        if any(s[2][0] == tables[0][2][0] for s in tables[1:]):
            raise InputError(
                f"has {len(tables)} sheets with tables ({shown}); "
                f"choose one with --sheet, in Python as FILE#{tables[0][0]}"
            )
        notes.append(f"of the sheets {shown} the first, which is the largest, is read (--sheet)")
    if not filled:
        raise InputError("has no sheet with anything in it")
    return (tables or filled)[0]


def _cells(book: Any, name: str) -> _Sheet:
    sheet = book.get_sheet_by_name(name)
    return name, sheet.start[0] if sheet.start else 0, sheet.to_python(skip_empty_area=True)
