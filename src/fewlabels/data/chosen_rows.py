"""Some rows of a table of any size, drawn by the keys of its items, in memory that does not grow.

The rows whose keys have the smallest hashes are a random sample, whatever the order of the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
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
from fewlabels.data.table import NO_LABEL, Place, Source, class_text
from fewlabels.data.where import ROW, FilteredSource, rows_of
from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Bools, Ints, UInts
from fewlabels.kernels.counter_based import mix

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
    """Read a source once and keep a random sample of its rows, drawn with `seed`.

    Rows with a label, that is with a cell filled in one of the columns `known`, and rows without
    are sampled apart: `most_rows` and `most_bytes` limit either, so fewer rows with long texts are
    kept. Items whose keys (column `item`) are in `keep` are always kept.
    """
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
        kept.add(batch, keys, rank, _filled(batch.rows, labels))
    if not hashes:
        raise InputError("there are no rows; a file needs at least one item")
    every = np.concatenate(hashes)
    in_order = np.sort(every)
    if (in_order[1:] == in_order[:-1]).any():
        _refuse_repeated(source, item, every)
    file = source.inner if isinstance(source, FilteredSource) else source
    comma = isinstance(file, DelimitedFile) and file.delimiter == ";"
    return kept.chosen(names, len(every), keys_digest(every), comma)


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


def _filled(rows: pa.RecordBatch, columns: Collection[str]) -> Bools:
    """Which rows may have a label, (n,)."""
    out = np.zeros(len(rows), dtype=bool)
    for column in columns:
        out |= [class_text(v) not in NO_LABEL for v in rows.column(column).to_pylist()]
    return out


class _Sample:
    """The rows of smallest rank so far, of two kinds."""

    def __init__(self, most_rows: int, most_bytes: int) -> None:
        self.most = [most_rows, most_rows]
        self.most_bytes = most_bytes
        self.ceiling = np.full(2, np.iinfo(np.uint64).max, dtype=np.uint64)
        self.batches: list[tuple[Batch, list[str], UInts, Ints, Ints]] = []

    def add(self, batch: Batch, keys: list[str], rank: UInts, known: Bools) -> None:
        """Take in a batch."""
        kind = known.astype(np.int64)
        self.batches.append((batch, keys, rank, kind, np.arange(len(keys))))
        self._filter(-1)
        held = sum(len(b[1]) for b in self.batches)
        size = sum(b[0].rows.nbytes for b in self.batches)
        if held > 2 * sum(self.most) or size > 2 * self.most_bytes:
            self._prune()

    def _filter(self, start: int) -> None:
        """Drop rows above the ceiling of their kind from the batches from `start` on."""
        for k in range(len(self.batches))[start:]:
            batch, keys, rank, kind, row = self.batches[k]
            under = rank <= self.ceiling[kind]
            if not under.all():
                there = np.flatnonzero(under)
                self.batches[k] = (
                    batch._replace(rows=batch.rows.filter(pa.array(under))),
                    [keys[i] for i in there.tolist()],
                    rank[there], kind[there], row[there],
                )  # fmt: skip

    def _prune(self) -> None:
        for kind in (0, 1):
            ranks = np.concatenate([b[2][b[3] == kind] for b in self.batches])
            drawn = ranks[ranks > 0]
            size = sum(b[0].rows.nbytes for b in self.batches)
            if size > self.most_bytes:
                share = self.most_bytes / size
                self.most[kind] = max(
                    min(self.most[kind], int(share * len(drawn))),
                    min(_FEWEST_ROWS, self.most[kind]),
                )
            if len(drawn) > self.most[kind]:
                self.ceiling[kind] = np.partition(drawn, self.most[kind] - 1)[self.most[kind] - 1]
        self._filter(0)

    def chosen(self, names: tuple[str, ...], n: int, digest: str, comma: bool) -> ChosenRows:
        """The rows of the sample, in the order of the source."""
        self._prune()
        there = [b for b in self.batches if b[1]]
        return ChosenRows(
            names,
            tuple(b[0].rows for b in there),
            tuple(key for b in there for key in b[1]),
            np.concatenate([b[0].first + b[4] for b in there]),
            tuple(b[0].place(i) for b in there for i in b[4].tolist()),
            n,
            digest,
            comma,
        )


def batches_of(source: Source, names: Collection[str]) -> Iterator[Batch]:
    """All rows of a source, some thousand at a time; texts stay as they are written."""
    first = 0
    for part, named in _parts(source):
        inside = 0
        for rows in rows_of(part, names):
            # Chosen rows say themselves where they are.
            at = rows.column(ROW).to_pylist() if ROW in rows.schema.names else None
            rows, before = (rows if at is None else rows.select(list(names))), inside

            def place(
                row: int, part: Any = part, before: int = before, named: str = named, at: Any = at
            ) -> str:
                found = _place(part, before + row if at is None else at[row])
                return f"{found} of {named}" if named else found

            yield Batch(rows, first, place)
            inside += len(rows)
            first += len(rows)


def _parts(source: Source) -> Iterator[tuple[Any, str]]:
    if isinstance(source, FolderOfTables):
        _ = source.names  # refuses files whose columns differ
        yield from ((part, str(part.name)) for part in source.parts)
    else:
        yield source, ""


def _place(source: Any, row: int) -> str:
    if isinstance(source, FilteredSource):
        return _place(source.inner, row)
    if isinstance(source, DelimitedFile):
        return source.place(source.body, row)
    found: str = f"item {row} (from 0)" if source.name is None else f"row {row + 1}"
    return found


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


def distinct_columns(source: Source, some: int = 5_000) -> list[str]:
    """Columns whose values all differ in the first rows, so that they may name the items."""
    names = [name for name in source.names if name]
    batch = next(batches_of(source, names), None)
    if batch is None:
        return []
    rows = batch.rows.slice(0, some)
    found = []
    for name in dict.fromkeys(names):
        column = rows.column(name)
        plain = pa.types.is_string(column.type) or pa.types.is_integer(column.type)
        values = [class_text(v) for v in column.to_pylist()] if plain else []
        measured = split_native(name) is not None or all(map(_is_fraction, values))
        if values and not measured and "" not in values and len(set(values)) == len(values):
            found.append(name)
    return found


def _is_fraction(text: str) -> bool:
    """Whether a text is a number with decimals, which measures and does not name."""
    return bool(re.fullmatch(r"-?\d*[.,]\d+(?:[eE]-?\d+)?", text))


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
    found = distinct_columns(source)
    which = (
        f"values all differ in {listed(map(quoted, found))}"
        if found
        else f"the columns are {listed(map(quoted, source.names))}, and none has values that differ"
    )
    raise InputError(f"no column is known to name the items; say which with --item COL: {which}")
