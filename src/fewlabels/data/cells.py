"""Values of Python as columns: rows and columns in memory, cells of JSON and of workbooks."""

from __future__ import annotations

import datetime
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fewlabels.data.table import Place, Table
from fewlabels.data.values import group_text
from fewlabels.errors import (
    FewlabelsError,
    InputError,
    MissingExtraError,
    did_you_mean,
    listed,
    quoted,
)

_CHUNK_ROWS = 1 << 16
"""Rows that are held as Python objects; those before are held as Arrow columns."""

_MOST_COLUMNS = 10_000
_LONGEST_INTEGER = 2**63

_ONE = "list of one"
"""Kind of a list that holds one value and nothing else, which may stand for that value."""


@dataclass(frozen=True)
class Cells:
    """A table whose columns have been read; `name` is None for what was in memory before."""

    name: str | None
    columns: tuple[tuple[str, pa.ChunkedArray], ...]
    n_rows: int
    place: Place

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in the order in which they were met."""
        return tuple(name for name, _ in self.columns)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Some of the columns."""
        wanted = {n: column for n, column in self.columns if n in numbers or n in texts}
        return Table.of(wanted, self.n_rows, self.place)


class Rows:
    """Rows with names, taken in one at a time; a name that a row lacks is missing there."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._held = 0
        self._columns: dict[str, _Column] = {}

    def add(self, row: Mapping[Any, Any]) -> None:
        """Take in a row; objects within it become columns whose names are joined by dots.

        Raises
        ------
        InputError
            If two values get the same name, or there are too many names.
        """
        if self.n_rows % _CHUNK_ROWS == 0:
            self._close_chunk()
        self._put(row, "")
        self.n_rows += 1

    def _put(self, row: Mapping[Any, Any], before: str) -> None:
        at = self.n_rows - self._held
        for key, value in row.items():
            name = f"{before}{key}"
            if isinstance(value, dict):
                self._put(value, f"{name}.")
                continue
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = self._new_column()
            if not column.put(at, value):
                raise InputError(f"has two values for {quoted(name)}; give one of them another key")

    def _new_column(self) -> _Column:
        if len(self._columns) == _MOST_COLUMNS:
            raise InputError(
                f"has more than {_MOST_COLUMNS:,} different keys; make rows with the same keys each"
            )
        return _Column(self._held)

    def table(self, name: str | None, place: Place) -> Cells:
        """All rows."""
        self._close_chunk()
        columns = tuple((_clean(key), column.arrow()) for key, column in self._columns.items())
        return Cells(name, columns, self.n_rows, place)

    def _close_chunk(self) -> None:
        for column in self._columns.values():
            column.close_chunk(self.n_rows - self._held)
        self._held = self.n_rows


def column_of(values: Sequence[Any]) -> pa.ChunkedArray:
    """One column of any values: numbers, truth values or text; text where they are mixed."""
    column = _Column(0)
    for start in range(0, len(values), _CHUNK_ROWS):
        part = values[start : start + _CHUNK_ROWS]
        for i, value in enumerate(part):
            column.put(i, value)
        column.close_chunk(len(part))
    return column.arrow()


class _Column:
    """One column; `before` rows that came before it was met are null."""

    def __init__(self, before: int) -> None:
        self._chunks: list[pa.Array] = [pa.nulls(before)] if before else []
        self._kinds: set[str] = set()
        self._values: list[Any] = []

    def put(self, row: int, value: Any) -> bool:
        """Set the value in a row of this chunk; False where there is one already."""
        missing = row - len(self._values)
        if missing < 0:
            return False
        if missing:
            self._values.extend([None] * missing)
        self._values.append(value)
        return True

    def close_chunk(self, n_rows: int) -> None:
        """Hold the rows so far as Arrow does."""
        values = self._values
        values.extend([None] * (n_rows - len(values)))
        self._values = []
        if not values:
            return
        plain = [_plain(value) for value in values]
        kinds = {kind for kind, _ in plain if kind}
        self._kinds |= kinds
        cells = [value for _, value in plain]
        if not kinds:
            self._chunks.append(pa.nulls(len(cells)))
        elif kinds == {"number"}:
            self._chunks.append(_numbers(cells))
        elif kinds == {"truth"}:
            self._chunks.append(pa.array(cells, pa.bool_()))
        else:
            self._chunks.append(_texts(cells))

    def arrow(self) -> pa.ChunkedArray:
        """The whole column, of one type."""
        chunks = self._chunks
        if self._kinds == {_ONE}:
            values = [v and json.loads(v)[0] for chunk in chunks for v in chunk.to_pylist()]
            return column_of(values)
        if self._kinds == {"number"}:
            whole = all(c.type in (pa.int64(), pa.null()) for c in chunks)
            kind = pa.int64() if whole else pa.float64()
            if any(pa.types.is_large_string(c.type) for c in chunks):
                return self._as_text()  # integers too long for a number
            return pa.chunked_array([c.cast(kind, safe=False) for c in chunks], kind)
        if self._kinds == {"truth"}:
            return pa.chunked_array([c.cast(pa.bool_()) for c in chunks], pa.bool_())
        return self._as_text()

    def _as_text(self) -> pa.ChunkedArray:
        texts = [
            c if pa.types.is_large_string(c.type) else _texts(c.to_pylist()) for c in self._chunks
        ]
        return pa.chunked_array(texts, pa.large_string())


def _plain(value: Any) -> tuple[str, Any]:
    """What a value is, and the value as a number, truth value or text; ("", None) for none."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None:
        return "", None
    if isinstance(value, str):
        return "text", value
    if isinstance(value, bool):
        return "truth", value
    if isinstance(value, int | float):
        return "number", value
    if isinstance(value, list | tuple | dict | set | frozenset):
        values = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        text = json.dumps(values, ensure_ascii=False, default=str, skipkeys=True)
        alone = isinstance(values, list | tuple) and len(values) == 1
        scalar = alone and isinstance(values[0], str | bool | int | float)
        return (_ONE if scalar else "list"), text
    if (value != value) is not False:  # NaT and NA of pandas
        return "", None
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time() and value.tzinfo is None
        return "text", (value.date() if midnight else value).isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return "text", value.isoformat()
    if isinstance(value, Decimal):
        return "text", str(value)
    return "text", group_text(value)


def _numbers(values: list[Any]) -> pa.Array:
    if any(isinstance(value, float) for value in values):
        numbers = [None if value is None else _float(value) for value in values]
        return pa.array(numbers, pa.float64())
    if any(value is not None and abs(value) >= _LONGEST_INTEGER for value in values):
        return _texts(values)
    return pa.array(values, pa.int64())


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _texts(values: list[Any]) -> pa.Array:
    texts = [value if isinstance(value, str) else group_text(value) for value in values]
    try:
        return pa.array(texts, pa.large_string())
    except UnicodeEncodeError:
        # Half of a surrogate pair, as JSON of texts that were cut has it.
        return pa.array([t and _clean(t) for t in texts], pa.large_string())


def _clean(text: str) -> str:
    r"""Text that can be stored: half a surrogate pair becomes `\udc80` and the like."""
    return text.encode("utf-8", "backslashreplace").decode()


def open_workbook(path: Path, name: str, sheet: str | None = None) -> Cells:
    """Read a sheet of a workbook: the one that is asked for, or the only one with a table.

    Raises
    ------
    InputError
        If it cannot be read, there is no such sheet, or several sheets hold tables.
    MissingExtraError
        If python-calamine is not installed.
    """
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise MissingExtraError("python-calamine", "excel") from None
    # Broken bytes raise what they will, and its panics are no exceptions but for their base.
    try:
        with path.open("rb") as file:
            chosen, start, rows = _chosen_sheet(CalamineWorkbook.from_filelike(file), sheet)
    except (FewlabelsError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except MemoryError:
        raise InputError("does not fit into memory") from None
    except BaseException as error:
        raise InputError(
            f"cannot be read as a workbook, it is damaged or cut short ({error}); write it again"
        ) from None
    return _table(rows, start, name, chosen)


_Sheet = tuple[str, int, list[list[Any]]]
"""Name, row of the first filled cell (from 0), and the rows of cells from there on."""


def _chosen_sheet(book: Any, sheet: str | None) -> _Sheet:
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
    tables = [s for s in filled if len(s[2]) > 1 and sum(cell != "" for cell in s[2][0]) > 1]
    if len(tables) > 1:
        raise InputError(
            f"has {len(tables)} sheets with tables ({listed(quoted(s[0]) for s in tables)}); "
            f"choose one with --sheet, in Python as FILE#{tables[0][0]}"
        )
    if not filled:
        raise InputError("has no sheet with anything in it")
    return (tables or filled)[0]


def _cells(book: Any, name: str) -> _Sheet:
    sheet = book.get_sheet_by_name(name)
    return name, sheet.start[0] if sheet.start else 0, sheet.to_python(skip_empty_area=True)


def _table(rows: Sequence[Sequence[Any]], start: int, name: str, sheet: str) -> Cells:
    if not rows:
        raise InputError(f"has nothing in the sheet {quoted(sheet)}")
    header = [(group_text(cell) or "").strip() for cell in rows[0]]
    # Rows and columns that were emptied or formatted are part of a sheet without holding anything.
    kept = [i for i in range(1, len(rows)) if any(cell != "" for cell in rows[i])]
    width = len(header)
    while width and not header[width - 1] and all(rows[i][width - 1] == "" for i in kept):
        width -= 1
    columns = tuple(
        (header[k], column_of([None if rows[i][k] == "" else rows[i][k] for i in kept]))
        for k in range(width)
    )
    return Cells(
        name, columns, len(kept), lambda row: f"row {start + kept[row] + 1} of the sheet {sheet!r}"
    )
