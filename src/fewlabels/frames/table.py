"""Columns that were read, and what every kind of source must be able to do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fewlabels.errors import InputError
from fewlabels.frames.wording import quoted
from fewlabels.kernels.arrays import Floats, Ints

MISSING_NUMBERS = (
    *("", "NA", "N/A", "n/a", "#N/A", "<NA>", "None"),
    *("NaN", "nan", "-NaN", "-nan", "NULL", "null"),
)
"""Texts that stand for a missing number."""

Place = Callable[[int], str]
"""Index of an item, from 0 -> where a person finds it."""


@dataclass(frozen=True)
class Table:
    """Some columns of a source, each in pieces (one per file) that may differ in type."""

    columns: Mapping[str, Sequence[pa.ChunkedArray]]
    n_rows: int
    place: Place

    def numbers(self, name: str) -> Floats:
        """A column as real numbers, shape (n,); NaN where it is empty.

        Raises
        ------
        InputError
            If a value is not a number; the message says which, and where.
        """
        out = np.empty(self.n_rows)
        start = 0
        for piece in self.columns[name]:
            for chunk in self._numeric(name, piece, start).chunks:
                out[start : start + len(chunk)] = chunk.to_numpy(zero_copy_only=False)
                start += len(chunk)
        return out

    def categories(self, name: str) -> tuple[Ints, list[Any]]:
        """A column as codes, shape (n,), into a list of its values; -1 where it is null.

        A value may be in the list more than once.

        Raises
        ------
        InputError
            If the column holds lists or the like.
        """
        codes = np.empty(self.n_rows, dtype=np.int64)
        values: list[Any] = []
        start = 0
        for piece in self.columns[name]:
            stop = start + len(piece)
            try:
                known = _encode(piece, codes[start:stop])
            except (pa.ArrowException, ValueError) as error:
                raise InputError(
                    f"column {quoted(name)} holds {piece.type}, which cannot be read as names "
                    f"({error}); store it as text"
                ) from None
            codes[start:stop][codes[start:stop] >= 0] += len(values)
            values.extend(known)
            start = stop
        return codes, values

    def head(self, rows: int) -> Table:
        """The first rows of every piece."""
        columns = {n: [piece.slice(0, rows) for piece in p] for n, p in self.columns.items()}
        size = sum(len(piece) for piece in next(iter(columns.values()), []))
        return Table(columns, size, self.place)

    def _numeric(self, name: str, piece: pa.ChunkedArray, start: int) -> pa.ChunkedArray:
        kind = piece.type
        if pa.types.is_dictionary(kind):
            return self._numeric(name, piece.cast(kind.value_type), start)
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return piece
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            piece = _without_missing(piece)
        elif not (pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
            raise InputError(f"column {quoted(name)} must be numbers; it holds {kind}")
        try:
            return piece.cast(pa.float64())
        except pa.ArrowException:
            row, value = _first_without_number(piece)
            raise InputError(
                f"column {quoted(name)} must be numbers; got {quoted(value)} in "
                f"{self.place(start + row)}: correct it, or leave the cell empty"
            ) from None


class Source(Protocol):
    """Something with named columns: a file, a folder of files, or a frame in memory."""

    @property
    def name(self) -> str | None:
        """What messages call it; None for a frame in memory."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns as they stand, repetitions included."""

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns; a column that is text in the source stays as it is written."""


def concatenate(tables: Sequence[Table], names: Sequence[str | None]) -> Table:
    """The rows of several tables one after another."""
    ends = np.cumsum([table.n_rows for table in tables])
    # Not the tables themselves: a place is remembered longer than the columns.
    places = [table.place for table in tables]

    def place(row: int) -> str:
        i = int(np.searchsorted(ends, row, side="right"))
        return f"{places[i](row - (int(ends[i - 1]) if i else 0))} of {names[i]}"

    columns = {
        column: [piece for table in tables for piece in table.columns[column]]
        for column in tables[0].columns
    }
    return Table(columns, int(ends[-1]), place)


def _without_missing(piece: pa.ChunkedArray) -> pa.ChunkedArray:
    trimmed = pc.utf8_trim_whitespace(piece)
    missing = pc.is_in(trimmed, value_set=pa.array(MISSING_NUMBERS, piece.type))
    return pc.if_else(missing, pa.scalar(None, piece.type), trimmed)


def _first_without_number(piece: pa.ChunkedArray) -> tuple[int, str]:
    # Halving: the first bad value is in the first half whenever that half does not convert.
    start, size = 0, len(piece)
    while size > 1:
        half = size // 2
        try:
            piece.slice(start, half).cast(pa.float64())
        except pa.ArrowException:
            size = half
        else:
            start, size = start + half, size - half
    return start, str(piece[start].as_py())


def _encode(piece: pa.ChunkedArray, codes: Ints) -> list[Any]:
    """Fill in the codes of one piece and return its values."""
    if pa.types.is_null(piece.type):
        codes[:] = -1
        return []
    if not pa.types.is_dictionary(piece.type):
        if pa.types.is_temporal(piece.type):
            piece = piece.cast(pa.string())
        piece = piece.dictionary_encode()
    chunks = piece.unify_dictionaries().chunks
    start = 0
    for chunk in chunks:
        indices = chunk.indices.cast(pa.int64()).fill_null(-1)
        codes[start : start + len(chunk)] = indices.to_numpy(zero_copy_only=False)
        start += len(chunk)
    values = chunks[0].dictionary if chunks else pa.array([], pa.string())
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.string())
    result: list[Any] = values.to_pylist()
    return result
