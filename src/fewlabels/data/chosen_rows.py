"""Some rows of a table of any size, drawn by the keys of its items, in memory that does not grow.

The rows whose keys have the smallest hashes are a random sample, whatever the order of the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from fewlabels.data.delimited import DelimitedFile
from fewlabels.data.label_record import (
    ItemsHere,
    LabelRecord,
    content_digest,
    key_hash,
    keys_digest,
)
from fewlabels.data.native import ChosenRows
from fewlabels.data.profiles import names_items
from fewlabels.data.roles import missing_column, split_native
from fewlabels.data.sources import FolderOfTables
from fewlabels.data.table import NO_LABEL, Place, Source, class_text, row_place
from fewlabels.data.where import ROW, FilteredSource, rows_of
from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Bools, Ints, UInts
from fewlabels.kernels.counter_based import mix

_FIRST_ROWS = 5_000
"""Rows in which it is seen whether all values of a column differ."""

_FEWEST_ROWS = 1_000
"""At least so many rows are kept, even of items with very long texts."""


class Batch(NamedTuple):
    """Rows of a file; `first` is the number of the first one in all of the source."""

    rows: pa.RecordBatch
    first: int
    place: Place


def choose_rows(
    source: Source,
    item: str,
    known: Collection[str],
    keep: Collection[str] = (),
    *,
    most_rows: int,
    most_bytes: int,
    seed: int,
) -> ChosenRows:
    """Keep random rows with a label (in `known`), others without, and the items in `keep`."""
    names = tuple(name for name in source.names if name)
    labels = [column for column in known if column in names]
    kept = _Sample(most_rows, most_bytes)
    hashes: list[UInts] = []
    for batch in batches_of(source, names):
        keys = [class_text(value) for value in batch.rows.column(item).to_pylist()]
        if "" in keys:
            raise InputError(
                f"{batch.place(keys.index(''))} has no item in column {quoted(item)}; fill it in, "
                "drop the row, or name another column with --item"
            )
        hashed = np.array([key_hash(key) for key in keys], dtype=np.uint64)
        hashes.append(hashed)
        rank = mix(hashed ^ mix(np.full(1, seed, dtype=np.uint64)))
        if keep:
            rank[[key in keep for key in keys]] = 0
        known = np.zeros(len(keys), dtype=bool)
        for column in labels:
            texts = map(class_text, batch.rows.column(column).to_pylist())
            known |= [text not in NO_LABEL for text in texts]
        kept.add(batch, keys, rank, known)
    if not hashes:
        raise InputError("there are no rows; a file needs at least one item")
    every = np.concatenate(hashes)
    in_order = np.sort(every)
    if (in_order[1:] == in_order[:-1]).any():
        _refuse_repeated(source, item, every)
    file = _inner(source)
    comma = isinstance(file, DelimitedFile) and file.delimiter == ";"
    kept.prune()
    there = [held for held in kept.held if held[1]]
    return ChosenRows(
        names,
        tuple(batch.rows for batch, *_ in there),
        tuple(key for _, keys, *_ in there for key in keys),
        np.concatenate([batch.first + row for batch, *_, row in there]),
        tuple(batch.place(i) for batch, *_, row in there for i in row.tolist()),
        len(every), keys_digest(every), comma,
    )  # fmt: skip


def items_here(source: Source, item: str, record: LabelRecord, file: str) -> ItemsHere:
    """The items of a source, read once, to compare with a record; see `LabelRecord.match`."""
    seen = record.ledger.seen
    shown = {column for columns, _ in seen.values() for column in columns}
    hashes: list[int] = []
    contents: dict[str, str | None] = {}
    names = [name for name in source.names if name == item or name in shown]
    for batch in batches_of(source, names):
        keys = [class_text(value) for value in batch.rows.column(item).to_pylist()]
        hashes += map(key_hash, keys)
        for row, key in enumerate(keys):
            if key in record.decisions:
                columns = seen[key][0] if key in seen else ()
                held = set(columns) <= {*names}
                cells = {c: batch.rows.column(c)[row].as_py() for c in columns} if held else {}
                contents[key] = content_digest(cells, record.header.item)
    return ItemsHere(file, len(hashes), keys_digest(np.array(hashes, dtype=np.uint64)), contents)


_Held = tuple[Batch, list[str], UInts, Ints, Ints]
"""Rows, and of each its key, its rank, its kind (1 with a label), and its number in the batch."""


class _Sample:
    """The rows of smallest rank so far, of two kinds."""

    def __init__(self, most_rows: int, most_bytes: int) -> None:
        self.most = [most_rows, most_rows]
        self.most_bytes = most_bytes
        self.ceiling = np.full(2, np.iinfo(np.uint64).max, dtype=np.uint64)
        self.held: list[_Held] = []

    def add(self, batch: Batch, keys: list[str], rank: UInts, known: Bools) -> None:
        """Take in a batch."""
        rows = np.arange(len(keys))
        self.held.append(self._under((batch, keys, rank, known.astype(np.int64), rows)))
        many = sum(len(keys) for _, keys, *_ in self.held) > 2 * sum(self.most)
        if many or self._size() > 2 * self.most_bytes:
            self.prune()

    def _size(self) -> int:
        return sum(batch.rows.nbytes for batch, *_ in self.held)

    def _under(self, held: _Held) -> _Held:
        """The rows that are not above the ceiling of their kind."""
        batch, keys, rank, kind, row = held
        there = np.flatnonzero(rank <= self.ceiling[kind])
        if len(there) == len(rank):
            return held
        batch = batch._replace(rows=batch.rows.take(pa.array(there)))
        return batch, [keys[i] for i in there.tolist()], rank[there], kind[there], row[there]

    def prune(self) -> None:
        """Lower the ceilings to what is kept."""
        for k in (0, 1):
            ranks = np.concatenate([rank[kind == k] for _, _, rank, kind, _ in self.held])
            drawn = ranks[ranks > 0]
            share = self.most_bytes / max(self._size(), 1)
            if share < 1:
                fewest = min(_FEWEST_ROWS, self.most[k])
                self.most[k] = max(min(self.most[k], int(share * len(drawn))), fewest)
            if len(drawn) > self.most[k]:
                self.ceiling[k] = np.partition(drawn, self.most[k] - 1)[self.most[k] - 1]
        self.held = list(map(self._under, self.held))


def batches_of(source: Source, names: Collection[str]) -> Iterator[Batch]:
    """All rows of a source, some thousand at a time; texts stay as they are written."""
    first = 0
    several = isinstance(source, FolderOfTables)
    _ = source.names  # refuses files whose columns differ
    for part in source.parts if isinstance(source, FolderOfTables) else (source,):
        inside = 0
        for rows in rows_of(part, names):
            # Chosen rows say themselves where they are.
            at = rows.column(ROW).to_pylist() if ROW in rows.schema.names else None
            rows, before = (rows if at is None else rows.select(list(names))), inside

            def place(
                row: int, part: Any = part, before: int = before, at: list[int] | None = at
            ) -> str:
                inner, row = _inner(part), before + row if at is None else at[row]
                found = f"item {row} (from 0)" if inner.name is None else row_place(row)
                if isinstance(inner, DelimitedFile):
                    found = inner.place(inner.body, row)
                return f"{found} of {part.name}" if several else found

            yield Batch(rows, first, place)
            inside += len(rows)
            first += len(rows)


def rows_at(source: Source, numbers: Sequence[int]) -> tuple[list[dict[str, Any]], int]:
    """The rows of some numbers, from 0, in this order, and how many rows there are in all."""
    names = [name for name in source.names if name]
    found, n_rows = dict[int, dict[str, Any]](), 0
    for batch in batches_of(source, names):
        here = [n for n in numbers if 0 <= n - batch.first < len(batch.rows)]
        rows = batch.rows.take(pa.array([n - batch.first for n in here], pa.int64()))
        found |= zip(here, rows.to_pylist(), strict=True)
        n_rows += len(batch.rows)
    return [found[n] for n in numbers], n_rows


def _inner(source: Any) -> Any:
    """The source whose rows are chosen, or itself."""
    return _inner(source.inner) if isinstance(source, FilteredSource) else source


def _refuse_repeated(source: Source, item: str, hashes: UInts) -> NoReturn:
    """Refuse a column of items in which one comes twice."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    again = int(order[same + 1].min())
    before = int(np.flatnonzero(hashes == hashes[again])[0])
    found: dict[int, tuple[str, str]] = {}
    for batch in batches_of(source, [item]):
        for row in (before, again):
            if 0 <= row - batch.first < len(batch.rows):
                value = batch.rows.column(item)[row - batch.first].as_py()
                found[row] = class_text(value), batch.place(row - batch.first)
    text, place = found[again]
    others = len(np.unique(ordered[same])) - 1
    more = f" ({others:,} more items come twice)" if others else ""
    raise InputError(
        f"column {quoted(item)} does not tell the items apart: {quoted(text)} is in "
        f"{found[before][1]} and in {place}{more}; give each item one row, or name another column "
        "with --item"
    )


def _distinct_columns(source: Source) -> list[str]:
    """Columns whose values all differ in the first rows, so that they may name the items."""
    names = [name for name in source.names if name]
    batch = next(batches_of(source, names), None)
    if batch is None:
        return []
    rows = batch.rows.slice(0, _FIRST_ROWS)
    found = []
    for name in dict.fromkeys(names):
        column = rows.column(name)
        plain = pa.types.is_string(column.type) or pa.types.is_integer(column.type)
        values = [class_text(v) for v in column.to_pylist()] if plain else []
        # Numbers with decimals measure, and name nothing.
        measured = split_native(name) is not None or all(map(_DECIMAL.fullmatch, values))
        if values and not measured and "" not in values and len(set(values)) == len(values):
            found.append(name)
    return found


_DECIMAL = re.compile(r"-?\d*[.,]\d+(?:[eE]-?\d+)?")


def item_column(source: Source, asked: str | None) -> str:
    """The column that names the items: the one that is asked for, or one of such a name."""
    names = [name for name in source.names if name]
    if asked is not None:
        if asked not in names:
            raise InputError(missing_column(asked, names, "--item"))
        return asked
    alike = [name for name in names if names_items(name)]
    if "item" in names:
        return "item"
    if len(alike) == 1:
        return alike[0]
    found = _distinct_columns(source)
    which = (
        f"values all differ in {listed(map(quoted, found))}"
        if found
        else f"the columns are {listed(map(quoted, source.names))}, and none has values that differ"
    )
    raise InputError(f"no column is known to name the items; say which with --item COL: {which}")
