"""One file per classifier: their columns joined to the items of the first file."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import (
    differences,
    is_role,
    name_words,
    names_items,
    predicts_in_name,
    truth_in_name,
)
from fewlabels.data.roles import missing_column, split_native
from fewlabels.data.shapes import shaped
from fewlabels.data.sources import is_part, locate, open_source, path_of, stem_of
from fewlabels.data.stores import is_pattern
from fewlabels.data.table import Names, Source, Table, naming_file
from fewlabels.errors import InputError, UsageError, listed, quoted
from fewlabels.kernels.arrays import Ints


@dataclass(frozen=True)
class JoinedFiles:
    """A source with the columns of others beside its own, joined by the item.

    `columns` maps a name to the sources that have it, by number (0 is the first one, whose items
    there are), each with its own name of the column: of several, the first value that there is.
    """

    sources: tuple[Source, ...]
    item: str
    columns: Mapping[str, tuple[tuple[int, str], ...]]
    notes: tuple[str, ...]

    @property
    def name(self) -> str | None:
        """What messages call it."""
        return self.sources[0].name

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self.columns)

    @cached_property
    def items(self) -> list[list[str]]:
        """The item of each row of every source."""
        return [_items(source, self.item) for source in self.sources]

    @cached_property
    def rows(self) -> list[Ints]:
        """The row of each item in every source, (n,); -1 where it has none."""
        rows = []
        for items in self.items:
            place = {item: row for row, item in enumerate(items)}
            rows.append(np.array([place.get(one, -1) for one in self.items[0]], dtype=np.int64))
        return rows

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns; those of other files are in the order of the first one's items."""
        wanted = tuple(dict.fromkeys([*numbers, *texts]))
        plain = [
            name for name in wanted
            if self.columns[name] == ((0, name),)
        ]  # fmt: skip
        table = self.sources[0].read(
            [n for n in numbers if n in plain],
            list(dict.fromkeys([*(n for n in texts if n in plain), self.item])),
        )
        table.notes.extend(self.notes)
        needed: dict[int, list[str]] = {}
        for name in wanted:
            for source, column in () if name in plain else self.columns[name]:
                needed.setdefault(source, []).append(column)
        held = {k: self.sources[k].read((), tuple(dict.fromkeys(of))) for k, of in needed.items()}
        made: dict[str, list[pa.ChunkedArray]] = {}
        for name in wanted:
            if name not in plain:
                parts = [
                    _taken(held[source].pieces(column), self.rows[source])
                    for source, column in self.columns[name]
                ]
                made[name] = [pa.chunked_array([_first_value(parts)])]
        return table.with_columns(made)


def _taken(pieces: Sequence[pa.ChunkedArray], rows: Ints) -> pa.Array:
    """The cells of some rows, null where the row is -1."""
    chunks = [chunk for piece in pieces for chunk in piece.chunks]
    if len({chunk.type for chunk in chunks}) > 1 or any(
        pa.types.is_dictionary(chunk.type) for chunk in chunks
    ):
        chunks = [chunk.cast(pa.string()) for chunk in chunks]
    whole = pa.concat_arrays(chunks) if chunks else pa.nulls(0)
    return whole.take(pa.array(rows, mask=rows < 0))


def _first_value(parts: Sequence[pa.Array]) -> pa.Array:
    """The first of several cells that is not empty."""
    if len(parts) == 1:
        return parts[0]
    texts = [part.cast(pa.string()) for part in parts]
    return pc.coalesce(
        *(pc.if_else(pc.equal(t, ""), pa.scalar(None, pa.string()), t) for t in texts)
    )


def _items(source: Source, item: str) -> list[str]:
    """The item of each row of a source, which has each once."""
    with naming_file(source.name):
        table = source.read((), (item,))
        names = Names.of(table, item)
        _, first, count = np.unique(names.codes, return_index=True, return_counts=True)
        wrong = np.flatnonzero((count > 1) | (names.codes[first] < 0))
        if len(wrong):
            code = int(names.codes[first[wrong[0]]])
            rows = np.flatnonzero(names.codes == code)[:2].tolist()
            places = " and in ".join(table.place(row) for row in rows)
            what = f"item {quoted(names.texts[code])} is" if code >= 0 else "an empty item is"
            raise InputError(
                f"{what} in {places}, and files are joined by column {quoted(item)}: give each "
                "item one row, or name another column with --item"
            )
        return [names.texts[code] for code in names.codes.tolist()]


def joined_files(
    source: Source, others: Any, options: ColumnOptions, path: Any
) -> tuple[Source, ColumnOptions]:
    """The source with the columns of other files, and the options with the item.

    `others` are paths, patterns and folders, or a mapping, name -> path or frame; `path` is where
    the source is from, which a pattern may name again. Columns of one name in several files are one
    where they hold the same; predictions, and what differs, are called by their files as well.
    """
    files = _named_sources(others, path)
    opened = [
        shaped(open_source(one, locate(one), "join"), ColumnOptions())[0] for one in files.values()
    ]
    sources = (source, *opened)
    for one in sources:
        if len(set(one.names)) < len(one.names):
            raise InputError(f"{one.name}: two columns have the same name; rename one of them")
    item = _item(sources, options)
    first = stem_of(str(path)) if isinstance(path, str | Path) else "first"
    stems = [first, *files]
    short = differences(stems)
    names = dict(enumerate(short if short and len(set(short)) == len(stems) else stems))
    joined = JoinedFiles(sources, item, {item: ((0, item),)}, ())
    each = zip(files, joined.rows[1:], joined.items[1:], strict=True)
    notes = [_left_out(stem, rows, len(items)) for stem, rows, items in each]
    columns: dict[str, tuple[tuple[int, str], ...]] = {}
    where: dict[str, list[int]] = {}
    for k, one in enumerate(sources):
        for name in one.names:
            where.setdefault(name, []).append(k)
    for name in (n for one in sources for n in one.names):
        if name == item:
            columns.setdefault(item, ((0, item),))
        elif not name or name in columns:
            continue
        elif len(where[name]) == 1 and not (where[name] != [0] and _nameless(name)):
            columns[name] = ((where[name][0], name),)
        elif len(where[name]) > 1 and not _predicts(name) and _same(joined, name, where[name]):
            columns[name] = tuple((k, name) for k in where[name])
        else:
            for k in where[name]:
                columns[_of_file(name, names[k])] = ((k, name),)
    found = replace(joined, columns=columns, notes=tuple(filter(None, notes)))
    return found, replace(options, item=item)


def _named_sources(others: Any, path: Any) -> dict[str, Any]:
    """Name -> path or frame of the files to join."""
    if isinstance(others, Mapping):
        return {str(name): one for name, one in others.items()}
    several = [others] if isinstance(others, str | Path) else list(others)
    own = os.path.realpath(path_of(str(path))) if isinstance(path, str | Path) else None
    files: list[str] = []
    for one in several:
        if not isinstance(one, str | Path):
            raise UsageError(
                f"`join` must be paths, or a mapping of names to paths or frames; got {quoted(one)}"
            )
        name = str(one)
        if os.path.isdir(name):
            found = sorted(str(f) for f in Path(name).iterdir() if f.is_file() and is_part(f.name))
        elif not os.path.exists(name) and is_pattern(name):
            found = sorted(glob.glob(name, recursive=True))
        else:
            found = [name]
        files += [f for f in found if "\0" in f or os.path.realpath(f) != own]
        if not found:
            raise InputError(f"{name}: no file is named so")
    if not files:
        raise InputError("--join names no file beside FILE")
    out: dict[str, Any] = {}
    for file in dict.fromkeys(files):
        stem = stem_of(file)
        out[stem if stem not in out else file] = file
    return out


def _item(sources: Sequence[Source], options: ColumnOptions) -> str:
    """The column by which the files are joined."""
    shared = [n for n in sources[0].names if n and all(n in one.names for one in sources[1:])]
    if options.item is not None or "item" in shared:
        item = options.item or "item"
        for one in sources:
            if item not in one.names:
                with naming_file(one.name):
                    raise InputError(missing_column(item, one.names, "what files are joined by"))
        return item
    named = [n for n in shared if names_items(n)]
    free = [
        n for n in shared if split_native(n) is None and not truth_in_name(n) and not _predicts(n)
    ]
    unique = named if len(named) == 1 else [n for n in named or free if _tells_apart(sources, n)]
    if len(unique) == 1 or (unique and named):
        return unique[0]
    have = (
        f"the columns that all have are {listed(map(quoted, shared))}"
        if shared
        else ("they have no column in common")
    )
    raise InputError(
        f"files are joined by a column of items, and {have}: say which with --item COL"
    )


def _tells_apart(sources: Sequence[Source], name: str) -> bool:
    try:
        for one in sources:
            _items(one, name)
    except InputError:
        return False
    return True


def _left_out(stem: str, rows: Ints, size: int) -> str:
    """A note on the items that only one of two files has; `size` is how many this one has."""
    without, there = int((rows < 0).sum()), int((rows >= 0).sum())
    if not there:
        raise InputError(
            f"no item of {quoted(stem)} is in the first file; are the items the same? --item says "
            "by which column they are joined"
        )
    said = [f"has no row of {without:,} of the {len(rows):,} items"] * bool(without)
    said += [f"has {size - there:,} items that the first file has not"] * (size > there)
    return f"{quoted(stem)} {' and '.join(said)}" if said else ""


def _predicts(name: str) -> bool:
    return (split_native(name) is not None and name[:1] in "pys") or (
        predicts_in_name(name_words(name)) and truth_in_name(name) < 3
    )


def _nameless(name: str) -> bool:
    """Whether a column says that it holds predictions, and not of which classifier."""
    return _predicts(name) and split_native(name) is None and is_role(name)


def _same(joined: JoinedFiles, name: str, where: Sequence[int]) -> bool:
    """Whether a column holds the same in all files, wherever two have a value."""
    texts: list[Sequence[str | None]] = []
    for k in where:
        names = Names.of(joined.sources[k].read((), (name,)), name)
        cells = [*names.texts, None]
        row = joined.rows[k]
        codes = np.where(row < 0, len(names.texts), names.codes[row])
        texts.append([cells[c] or None for c in codes.tolist()])
    for k, other in enumerate(texts[1:], 1):
        for i, (a, b) in enumerate(zip(texts[0], other, strict=True)):
            if a is None or b is None or a == b:
                continue
            if truth_in_name(name) < 3:
                return False
            at = joined.items[0][i]
            both = [joined.sources[j].name or "the first" for j in (where[0], where[k])]
            raise InputError(
                f"item {quoted(at)} has {quoted(a)} in column {quoted(name)} of {both[0]}, and "
                f"{quoted(b)} in that of {both[1]}; an item has one label: correct one of them"
            )
    return True


def _of_file(name: str, file: str) -> str:
    """What to call a column of one of the files: a native one by its classifier, else by both."""
    native = split_native(name)
    if native is None:
        return f"{file}_{name}"
    kind, _, text = native
    return f"{kind}__{file}__{text}" if kind == "p" else f"{kind}__{file}"
