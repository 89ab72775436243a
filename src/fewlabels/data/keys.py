"""Which rows of two tables are of the same item: by a column, by several together, or by order."""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fewlabels.data.cells import column_of
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import (
    item_in_name,
    name_words,
    names_items,
    predicts_in_name,
    truth_in_name,
)
from fewlabels.data.roles import missing_column, split_native
from fewlabels.data.shapes import first_rows, is_nested, shaped, together
from fewlabels.data.table import NO_LABEL, Names, Source, Table, class_text, naming_file
from fewlabels.data.task_names import Task, stem_without
from fewlabels.data.tasks import ByTask
from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Array, Ints

_MOST_COLUMNS = 200
"""Wider tables are joined by columns of the same name alone."""

_SHARED = 0.5
"""Share of one column's values from which those of another table are the same items."""


@dataclass(frozen=True)
class Keyed:
    """The items of a source, `texts` by `rows`; `column` None by order; `left` of no item."""

    column: str | None
    texts: tuple[str, ...]
    rows: Ints
    left: int = 0

    def find(self, texts: Sequence[str]) -> Ints:
        """The row of each of some items, (n,); -1 where it has none."""
        place = dict(zip(self.texts, self.rows.tolist(), strict=True))
        written = as_known(texts, self.texts)
        return np.array([place.get(text, -1) for text in written], dtype=np.int64)


def names_of(source: Source, columns: Sequence[str]) -> dict[str, Names]:
    """Some columns of a source as texts, lists by what they hold; null where a cell is empty."""
    table = source.read((), columns)
    for c in columns:
        pieces = table.pieces(c)
        if any(is_nested(piece.type) for piece in pieces):
            table = table.with_columns({c: [column_of(piece.to_pylist()) for piece in pieces]})
    return {c: Names.of(table, c, lambda value: class_text(value) or None) for c in columns}


def repeats(codes: Array) -> Array:
    """Which entries equal an earlier one, (n,)."""
    out = np.ones(len(codes), dtype=bool)
    out[np.unique(codes, return_index=True)[1]] = False
    return out


def keyed(source: Source, column: str) -> Keyed:
    """The items by a column, which has each once."""
    labels = [n for n in source.names if truth_in_name(n) == 3 and n != column]
    with naming_file(source.name):
        table = source.read((), (column, *labels))
        items = Names.of(table, column, lambda value: class_text(value) or None)
        each = [Names.of(table, n) for n in labels]
        known = [np.array([*(t not in NO_LABEL for t in n.texts), False])[n.codes] for n in each]
        filled = np.any(known, axis=0) if labels else None
        there = items.codes >= 0
        rows = np.flatnonzero(there if filled is None else there | filled)
        if filled is not None:
            again = np.isin(items.codes, np.unique(items.codes[rows][repeats(items.codes[rows])]))
            of_labels = rows[~again[rows] | filled[rows]]
            if len(np.unique(items.codes[of_labels])) == len(np.unique(items.codes[rows])):
                rows = of_labels
        codes = items.codes[rows]
        wrong = np.flatnonzero(repeats(codes) | (codes < 0))
        if len(wrong):
            code = codes[wrong[0]]
            places = " and in ".join(table.place(row) for row in rows[codes == code][:2].tolist())
            what = f"item {quoted(items.texts[code])} is" if code >= 0 else "a label of no item is"
            raise InputError(
                f"{what} in {places}, and files are joined by column {quoted(column)}: give each "
                "item one row, or name another column with --item (A,B for two that name it "
                "together)"
            )
        texts = tuple(items.texts[code] for code in codes.tolist())
        return Keyed(column, texts, rows, table.n_rows - len(rows))


def side_by_side(keys: Sequence[Keyed]) -> tuple[Ints, ...]:
    """The rows of the first one's items in every source, -1 where it has none."""
    return (keys[0].rows, *(one.find(keys[0].texts) for one in keys[1:]))


def item_columns(sources: Sequence[Source], options: ColumnOptions) -> list[Keyed]:
    """The items of each source, by what names them in all; by the order of rows if nothing does."""
    first, *others = sources
    shared = [n for n in first.names if n and all(n in one.names for one in others)]
    if options.item is not None or "item" in shared:
        item = options.item or "item"
        for one in sources:
            if item not in one.names:
                with naming_file(one.name):
                    raise InputError(missing_column(item, one.names, "what files are joined by"))
        return [keyed(one, item) for one in sources]
    free = [n for n in shared if may_name_items(n)]
    named = [n for n in free if names_items(n)]
    found = _unique(sources, [(n,) for n in named], 0.0) if named else []
    found = found or _unique(sources, [(n,) for n in free])
    found = found or _unique(sources, _pairs_apart(first, free))
    if found:
        first_way, *others_ways = map(side_by_side, found)
        if any(not all(map(np.array_equal, first_way, way)) for way in others_ways):
            columns = listed(quoted(str(keys[0].column)) for keys in found)
            said = " or ".join(f"--item {shlex.quote(str(keys[0].column))}" for keys in found)
            raise InputError(f"files are joined by one of {columns}: say which with {said}")
        return found[0]
    if len(named) == 1:
        return [keyed(one, named[0]) for one in sources]
    _refuse_wide(sources, [n for n in shared if may_name_items(n)])
    pairs = [same_values(first, one, options=options) for one in others]
    if all(pairs) and len({pair[0] for pair in pairs if pair}) == 1:
        own = [*(a for a, _ in filter(None, pairs[:1])), *(b for _, b in filter(None, pairs))]
        each = zip(sources, own, strict=True)
        return [keyed(with_item(one, column), column) for one, column in each]
    sizes = [one.read((), one.names[:1]).n_rows for one in sources]
    if len(set(sizes)) > 1 or named:
        have = f"the columns that all have are {listed(map(quoted, shared))}"
        have = have if shared else "they have no column in common"
        rows = listed(
            f"{one.name or 'the frame'} {size:,}" for one, size in zip(sources, sizes, strict=True)
        )
        alone = f", {'and not' if shared else 'nor'} as many rows ({rows})" * (len({*sizes}) > 1)
        raise InputError(
            f"files are joined by a column of items, and {have}{alone}: say which with --item COL, "
            "or --item A,B for two that name an item together"
        )
    return [Keyed(None, tuple(map(str, range(1, n + 1))), np.arange(n)) for n in sizes]


def _refuse_wide(sources: Sequence[Source], shared: Sequence[str]) -> None:
    """Say how files are joined of which one has a column for each part of an item."""
    for one, other in itertools.permutations(sources, 2):
        for name in (n for n in one.names if n not in other.names and shared):
            item = f"{shared[0]},{name}"
            held = names_of(one, (name,))[name].texts
            rows = names_of(one, shared[:1])[shared[0]].codes
            if (
                repeats(rows).any()
                and 1 < len(held) <= _MOST_PARTS
                and with_item(other, item, (one,)) is not other
            ):
                raise InputError(
                    f"{other.name or 'a frame'} has columns for each {quoted(name)} "
                    f"({listed(held, 3)}) of {quoted(shared[0])}, and {one.name or 'the other'} a "
                    f"row: join them by both, with --item {shlex.quote(item)}"
                )


_MOST_PARTS = 20
"""Columns of one kind for parts of an item, at most."""


def may_name_items(name: str) -> bool:
    """Whether a column may name items: it is no prediction and no label by its name."""
    return split_native(name) is None and not truth_in_name(name) and not predicts(name)


def predicts(name: str) -> bool:
    """Whether a column may be of predictions by its name."""
    return predicts_in_name(name_words(name)) and truth_in_name(name) < 3


def _pairs_apart(source: Source, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Pairs of columns that together tell the first rows of a source apart."""
    head = first_rows(source, names)
    codes = {
        n: Names.of(Table.of({n: column}, len(column)), n).codes
        for n, column in itertools.islice(head.items(), _MOST_PAIRED)
    }
    pairs = itertools.combinations(codes, 2)
    return [
        (a, b) for a, b in pairs if not repeats(codes[a] * (len(codes[b]) + 1) + codes[b]).any()
    ]


_MOST_PAIRED = 10
"""Columns of which pairs may name the items."""


def _unique(
    sources: Sequence[Source], ways: Sequence[tuple[str, ...]], share: float = _SHARED
) -> list[list[Keyed]]:
    """The ways, columns by themselves or together, in which items are told apart in all sources."""
    found = []
    for way in ways:
        try:
            keys = [keyed(with_item(one, ",".join(way)), ",".join(way)) for one in sources]
        except InputError:
            continue
        known = set(keys[0].texts)
        both = [len(known.intersection(one.texts)) for one in keys[1:]]
        fewest = [min(len(known), len(one.texts)) for one in keys[1:]]
        if all(n > share * most for n, most in zip(both, fewest, strict=True)):
            found.append(keys)
    return found


def same_values(
    source: Source, other: Source, item: str | None = None, *, options: ColumnOptions
) -> tuple[str, str] | None:
    """What names the same items in a source and in another, by the values in both."""
    # A column of each, or two of each together (A,B), where no column tells the rows apart alone;
    # letter case and spaces count where something is the same with them. What is said of an item
    # twice is no part of its name, and no answer is.
    if max(len(source.names), len(other.names)) > _MOST_COLUMNS:
        return None
    several = item.split(",") if item is not None else []
    parts = several if all(part in source.names for part in several) else [str(item)]
    said = {"", options.label}
    theirs = names_of(other, [n for n in other.names if n not in said and split_native(n) is None])
    said |= options.of_classifiers
    free = [n for n in source.names if n not in said and split_native(n) is None]
    own = names_of(source, parts or free)
    if item is None:
        own = {n: names for n, names in own.items() if not counts_rows(names)}
        theirs = {n: names for n, names in theirs.items() if not counts_rows(names)}
    size = len(parts) or 1
    ways = [(size, False), (size, True), *([] if parts else [(2, False)])]
    for fold in _FOLDS:
        ours, others = _folded(own, fold), _folded(theirs, fold)
        for size, again in ways:
            if again or size > 1:
                others = {n: texts for n, texts in others.items() if may_name_items(n)}
                ours = {n: t for n, t in ours.items() if parts or may_name_items(n)}
            if found := _best_way(ours, others, size, again=again):
                return found
    return None


_FOLDS: tuple[Callable[[str], str], ...] = (
    str, str.casefold, lambda text: "".join(text.casefold().split()),
)  # fmt: skip
"""What may tell names of items apart, from all to the least: letter case, and spaces."""

_Texts = Mapping[str, list[str | None]]
"""Column -> what it says by rows."""


def _folded(columns: Mapping[str, Names], fold: Callable[[str], str]) -> _Texts:
    """What columns say by rows, with letter case or without."""
    cells = {n: [*map(fold, names.texts), None] for n, names in columns.items()}
    return {n: [cells[n][code] for code in names.codes.tolist()] for n, names in columns.items()}


def _best_way(own: _Texts, theirs: _Texts, size: int, *, again: bool) -> tuple[str, str] | None:
    """The columns, `size` of each side, that share most of the other's items; None: in doubt."""
    # Ways by which every row has the same item are one way. `again`: the other says some twice.
    of_own = {n: {*texts} - {None} for n, texts in own.items()}
    of_theirs = {n: {*texts} - {None} for n, texts in theirs.items()}
    alike = [
        (a, b) for b, values in of_theirs.items() for a in own
        if values and len(values & of_own[a]) >= _SHARED * len(values)
    ]  # fmt: skip
    places: dict[tuple[str, str], tuple[int, ...]] = {}
    most = 0.0
    for pairs in itertools.combinations(alike, size):
        mine, other = (tuple(dict.fromkeys(side)) for side in zip(*pairs, strict=True))
        rows = [*zip(*(theirs[n] for n in other), strict=True)]
        most_keys = math.prod(len(of_theirs[n]) for n in other)
        if min(len(mine), len(other)) < size or (most_keys < len(rows) and not again):
            continue
        row_of = {key: row for row, key in enumerate(rows) if None not in key}
        filled = sum(None not in key for key in rows)
        if len(row_of) < 2 or (len(row_of) < filled) != again:
            continue
        if again and 2 * len(row_of) < filled and not all(item_in_name(n) > 1 for n in other):
            continue
        if size > 1 and any(len(of_theirs[n]) == len(rows) for n in other):
            continue
        where = tuple(row_of.get(key, -1) for key in zip(*(own[n] for n in mine), strict=True))
        met = [row for row in where if row >= 0]
        n_met, once = len({*met}), again or size > 1
        share = n_met / (1 if again else len(row_of))
        if n_met < _SHARED * len(row_of) or share < most or (once and n_met < len(met)):
            continue
        if share > most:
            places, most = {}, share
        places[",".join(mine), ",".join(other)] = where
    return next(iter(places)) if len({*places.values()}) == 1 else None


def as_known(texts: Sequence[str], known: Sequence[str]) -> list[str]:
    """Names of items as those that are known are written, where none is written so."""
    for fold in _FOLDS:
        written = {fold(text): text for text in known}
        if len(written) == len(known) and not {*map(fold, texts)}.isdisjoint(written):
            return [written.get(fold(text), text) for text in texts]
    return list(texts)


def counts_rows(names: Names) -> bool:
    """Whether a column holds the numbers of the rows, from 0 or from 1."""
    numbers = [[str(i + k) for i in range(len(names.codes))] for k in (0, 1)]
    return list(names.texts) in numbers


def with_item(source: Source, item: str | None, whole: Sequence[Source] = ()) -> Source:
    """The source with a column of items, which may be several together (A,B)."""
    parts = [] if item is None or item in source.names else item.split(",")
    lacking = [part for part in parts if part not in source.names]
    other = next((one for one in whole if all(part in one.names for part in parts)), None)
    if len(lacking) == 1 and len(parts) > 1 and other is not None:
        values = names_of(other, lacking)[lacking[0]].texts
        stems = {n: {v: stem_without(n, v) for v in values} for n in source.names}
        tasks = tuple(
            Task(v, {stem: n for n, of in stems.items() if (stem := of[v])}) for v in values
        )
        if tasks and tasks[0].columns and len({frozenset(t.columns) for t in tasks}) == 1:
            taken = {column for task in tasks for column in task.columns.values()}
            others = tuple(n for n in source.names if n not in taken)
            source = ByTask(source, tasks, others, lacking[0], None)
    if together(item, source.names):
        return shaped(source, ColumnOptions(item=item))[0]
    return source
