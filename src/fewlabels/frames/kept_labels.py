"""Labels that are kept apart from the predictions: one row per label, joined by the item."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from fewlabels.errors import InputError
from fewlabels.frames.locate import locate
from fewlabels.frames.names import Names
from fewlabels.frames.options import ColumnOptions
from fewlabels.frames.roles import LIKE_LABELS, missing_column
from fewlabels.frames.sources import open_source
from fewlabels.frames.table import Place, Source, Table
from fewlabels.frames.wording import told_of
from fewlabels.kernels.arrays import Ints
from fewlabels.wording import listed, quoted


@dataclass(frozen=True)
class KeptLabels:
    """Labels by item, as they were read; `name` is what messages call the file."""

    name: str
    by_item: Mapping[str, str]
    item: str


def read_labels(source: Any, names: Collection[str], options: ColumnOptions) -> KeptLabels:
    """Read labels that are kept apart, from a file or a frame.

    Parameters
    ----------
    names
        The columns of the table that they are joined to.

    Raises
    ------
    InputError
        If there is no column of items or of labels, or an item has two labels.
    """
    located = locate(source)
    name = "labels" if located is None else located.name
    with told_of(name):
        opened = open_source(source, located, "labels")
        item = _item_column(opened.names, names, options)
        label = _label_column([n for n in opened.names if n != item], options)
        table = opened.read((), (item, label))
        items, labels = Names.of(table, item), Names.of(table, label)
        return KeptLabels(name, _by_item(items, labels, table.place), item)


def _item_column(of_labels: Collection[str], names: Collection[str], options: ColumnOptions) -> str:
    for column in (options.item, "item"):
        if column is not None and column in of_labels:
            return column
    shared = [n for n in of_labels if n and n in names and n != "label"]
    if len(shared) == 1:
        return shared[0]
    # A table of two columns, one of which is that of the labels: the other names the items.
    others = [n for n in of_labels if n and not LIKE_LABELS.fullmatch(n) and n != options.label]
    if len(others) == 1 and len(of_labels) == 2:
        return others[0]
    missing = missing_column(options.item or "item", tuple(of_labels), "what labels are joined by")
    raise InputError(f"{missing}; say which it is with --item COL")


def _label_column(columns: Collection[str], options: ColumnOptions) -> str:
    for column in (options.label, "label"):
        if column is not None and column in columns:
            return column
    alike = [c for c in columns if LIKE_LABELS.fullmatch(c)] or list(columns)
    if len(alike) == 1:
        return alike[0]
    raise InputError(
        f"no column 'label'; the columns are {listed(map(quoted, columns))}: say which it is with "
        "--label COL"
    )


def _by_item(items: Names, labels: Names, place: Place) -> dict[str, str]:
    found: dict[str, str] = {}
    first: dict[str, int] = {}
    for row, (i, k) in enumerate(zip(items.codes.tolist(), labels.codes.tolist(), strict=True)):
        if i < 0 or k < 0 or not labels.texts[k]:
            continue
        item, label = items.texts[i], labels.texts[k]
        if found.setdefault(item, label) != label:
            raise InputError(
                f"item {quoted(item)} has two labels: {quoted(found[item])} in "
                f"{place(first[item])} and {quoted(label)} in {place(row)}; keep one of them"
            )
        first.setdefault(item, row)
    if not found:
        raise InputError("there are no labels in it; every cell of the column of labels is empty")
    return found


@dataclass(frozen=True)
class WithLabels:
    """A source whose column of labels is filled from labels that are kept apart."""

    inner: Source
    labels: KeptLabels
    item: str
    label: str

    @property
    def label_is_own(self) -> bool:
        """Whether the table has a column of labels of its own."""
        return self.label in self.inner.names

    @property
    def name(self) -> str | None:
        """What messages call it."""
        return self.inner.name

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns, that of the labels among them."""
        inner = self.inner.names
        return inner if self.label in inner else (*inner, self.label)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns; labels are joined by the item.

        Raises
        ------
        InputError
            If no item is in both, an item comes twice, or the two say different labels of one.
        """
        own = self.label in self.inner.names
        wanted = [t for t in dict.fromkeys([*texts, self.item]) if own or t != self.label]
        table = self.inner.read(numbers, wanted)
        if self.label not in texts:
            return table
        column = [self._joined(table, own=own)]
        return Table(
            tuple(dict.fromkeys([*table.names, self.label])),
            lambda name: column if name == self.label else table.pieces(name),
            table.n_rows,
            table.place,
            table.notes,
            table.decimal_comma,
        )

    def _joined(self, table: Table, *, own: bool) -> pa.ChunkedArray:
        items = Names.of(table, self.item)
        self._refuse_repeated(items.codes, items, table.place)
        by_item = self.labels.by_item
        joined = [by_item.get(items.texts[i]) if i >= 0 else None for i in items.codes.tolist()]
        if not any(label is not None for label in joined):
            raise InputError(
                f"no item of {self.labels.name} is in column {quoted(self.item)}; are the items "
                f"the same? there {quoted(next(iter(by_item)))}, here {quoted(items.texts[0])}"
            )
        strangers = len(set(by_item) - set(items.texts))
        if strangers:
            table.notes.append(
                f"{strangers:,} of {len(by_item):,} labels in {self.labels.name} are of items that "
                "are not in the file; they are not used"
            )
        if own:
            known = Names.of(table, self.label)
            for row, (k, label) in enumerate(zip(known.codes.tolist(), joined, strict=True)):
                mine = known.texts[k] if k >= 0 else ""
                if mine and label is not None and mine != label:
                    raise InputError(
                        f"item {quoted(items.texts[items.codes[row]])} has two labels: "
                        f"{quoted(mine)} in {table.place(row)} and {quoted(label)} in "
                        f"{self.labels.name}; correct one of them"
                    )
                joined[row] = mine or label
        return pa.chunked_array([pa.array(joined, pa.string())])

    def _refuse_repeated(self, codes: Ints, items: Names, place: Place) -> None:
        count = np.bincount(codes[codes >= 0], minlength=len(items.texts))
        again = np.flatnonzero(count > 1)
        named = [i for i in again.tolist() if items.texts[i] in self.labels.by_item]
        if named:
            rows = np.flatnonzero(codes == named[0])[:2].tolist()
            raise InputError(
                f"item {quoted(items.texts[named[0]])} is in {place(rows[0])} and in "
                f"{place(rows[1])}, so its label cannot be joined; give each item one row"
            )
