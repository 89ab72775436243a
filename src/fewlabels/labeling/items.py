"""The items of a file to label: their keys, what is shown of them, and what classifiers say.

From a file of more than `POOL_ROWS` rows a random sample is the pool of items to label: nobody
labels more by hand, and memory does not grow with the file. Their texts stay columns of Arrow, of
which one cell is made text when its item is shown.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np

from fewlabels.data.chosen_rows import choose_rows, item_column
from fewlabels.data.inputs import refuse_tasks
from fewlabels.data.label_record import Header, LabelRecord, content_digest
from fewlabels.data.native import ChosenRows
from fewlabels.data.options import ColumnArguments, ColumnOptions, column_options
from fewlabels.data.profiles import names_role, profile
from fewlabels.data.read import Beside, open_input, read_predictions
from fewlabels.data.roles import assign_roles, missing_column
from fewlabels.data.sources import locate, open_source
from fewlabels.data.table import Source, group_text, naming_file
from fewlabels.errors import InputError, UsageError, listed, quoted
from fewlabels.predictions import Predictions

POOL_ROWS = 20_000
"""Items that may be drawn; a file of more is sampled. As many labeled ones are kept besides."""

POOL_BYTES = 256 << 20
"""Bytes of the pool's columns, about; with very long texts there are fewer items."""

IMAGES = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif",
    ".webp": "image/webp", ".avif": "image/avif", ".bmp": "image/bmp",
}  # fmt: skip
"""Endings of pictures, with their types. SVG is not among them: it is a document with scripts."""


class Cell(NamedTuple):
    """The content of an item in one column: a text, or the name of a picture."""

    column: str
    kind: Literal["text", "image"]
    text: str


@dataclass(frozen=True, eq=False)
class Items:
    """The pool: `predictions` have a row per key of the `table`; `known` labels are the file's."""

    name: str
    column: str
    table: ChosenRows
    predictions: Predictions
    shown: tuple[str, ...]
    images: str | None = None
    place: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "place", {key: i for i, key in enumerate(self.table.keys)})
        starts = np.cumsum([0, *map(len, self.table.batches)])
        object.__setattr__(self, "_starts", starts)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the items."""
        return self.table.keys

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes as texts."""
        return tuple(str(c) for c in self.predictions.classes)

    def header(self, annotator: str) -> Header:
        """The first line of a record of these items."""
        positive = self.predictions.positive
        return Header(
            Path(self.name).name, self.column, self.table.n_items, self.table.digest, self.classes,
            None if positive is None else str(positive), annotator, now(),
        )  # fmt: skip

    def text(self, row: int, column: str) -> str:
        """One cell of the table as text; empty where there is none."""
        return group_text(self._value(row, column)) or ""

    def _value(self, row: int, column: str) -> Any:
        starts: Any = vars(self)["_starts"]
        k = int(np.searchsorted(starts, row, side="right")) - 1
        return self.table.batches[k].column(column)[row - int(starts[k])].as_py()

    def content(self, row: int, columns: Sequence[str] | None = None) -> str | None:
        """A digest of the contents of an item in some columns; None: those that are shown."""
        shown = self.shown if columns is None else columns
        return content_digest({c: self._value(row, c) for c in shown}, self.column)

    def contents(self, record: LabelRecord) -> dict[str, str | None]:
        """`content` by key of the items that a record decides, in the columns shown then.

        None where the table lacks one of these columns.
        """
        seen, names = record.ledger.seen, set(self.table.batches[0].schema.names)
        out: dict[str, str | None] = {}
        for key in record.decisions.keys() & self.place.keys():
            columns = seen[key][0] if key in seen else ()
            held = set(columns) <= names
            out[key] = self.content(self.place[key], columns) if held else None
        return out

    def cells(self, row: int) -> list[Cell]:
        """The cells of an item that are shown."""
        out = []
        for column in self.shown:
            text = self.text(row, column)
            picture = self.images is not None and Path(text).suffix.lower() in IMAGES
            out.append(Cell(column, "image" if picture else "text", text))
        return out

    def picture(self, row: int, column: str) -> Path | None:
        """The file of a picture, if the cell names one within the folder of pictures."""
        if self.images is None or column not in self.shown:
            return None
        text = self.text(row, column)
        if Path(text).suffix.lower() not in IMAGES or "\0" in text:
            return None
        # Links are followed before it is decided, so that none leads out.
        folder = os.path.realpath(self.images)
        file = os.path.realpath(os.path.join(folder, text))
        inside = os.path.commonpath([folder, file]) == folder
        return Path(file) if inside and os.path.isfile(file) else None

    def answers(self, row: int) -> list[tuple[str, str]]:
        """Prediction of every classifier for an item."""
        predictions = self.predictions
        out = []
        for j, model in enumerate(predictions.models):
            answer = "no answer"
            if predictions.has_hard[row, j]:
                k = int(predictions.hard[row, j])
                answer = str(predictions.classes[k])
                if predictions.probabilities is not None and predictions.has_probabilities[row, j]:
                    answer += f" ({predictions.probabilities[row, j, k]:.0%})"
            elif predictions.scores is not None and not np.isnan(predictions.scores[row, j]):
                answer = f"score {predictions.scores[row, j]:.3g}"
            out.append((model, answer))
        return out


def now() -> str:
    """The time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def open_items(
    source: Any,
    *,
    show: Sequence[str] | None = None,
    images: str | os.PathLike[str] | None = None,
    recorded: Collection[str] = (),
    seed: int = 0,
    **columns: Unpack[ColumnArguments],
) -> Items:
    """Read the items of a file, a folder or a frame, and what classifiers say of them.

    `show` are the columns to show side by side (None: those of text), `images` the folder of
    pictures that they name. Items of the keys `recorded` must be there; `seed` chooses the sample
    of a large file; `columns` are those of `fewlabels.read_predictions`.
    """
    options = column_options(**columns)
    located = locate(source)
    name = "the frame" if located is None else located.name
    with naming_file(name):
        if located is not None and located.kind == "NPZ":
            raise InputError(
                "holds arrays, whose items have neither names nor texts to show; save a table with "
                "a column of items and one of texts"
            )
        opened = open_source(source, located)
        column = item_column(opened, options.item)
        table = _chosen(opened, column, options, recorded, seed)
        options = replace(options, item=column, keep=())
        predictions = read_predictions(table, columns=options.to_dict(), keep=())
        refuse_tasks(predictions, "labeling")
        shown = _shown(table, options, show, images)
    return Items(name, column, table, predictions, shown, _folder(images))


def _chosen(
    source: Source, column: str, options: ColumnOptions, recorded: Collection[str], seed: int
) -> ChosenRows:
    likely = [n for n in source.names if names_role(n, "label")]
    default = [options.label] if options.label is not None else likely
    return choose_rows(
        source, column, default, recorded, most_rows=POOL_ROWS, most_bytes=POOL_BYTES, seed=seed
    )


def items_in_memory(
    predictions: Predictions,
    items: Any = None,
    *,
    item: str | None = None,
    show: Sequence[str] | None = None,
    images: str | os.PathLike[str] | None = None,
    recorded: Collection[str] = (),
    seed: int = 0,
) -> Items:
    """Items whose predictions are in memory, with their texts in a table or a list.

    `items` is a frame or dictionary of columns with a row per item, or a list of texts. `item` is
    its column of items; None takes a column of that name, else numbers from 0. The others are as in
    `open_items`.
    """
    listing = isinstance(items, list | tuple) and all(isinstance(text, str) for text in items)
    opened = open_source({"text": list(items)} if listing else items, None, "items")
    names = [name for name in opened.names if name]
    column = item if item is not None else ("item" if "item" in names else None)
    if column is None:
        column = "item"
        all_items = opened.read((), names)
        held = {name: [v for p in all_items.pieces(name) for v in p.to_pylist()] for name in names}
        numbers = list(range(all_items.n_rows))
        opened = open_source({column: numbers, **held}, None, "items")
    column = item_column(opened, column)
    table = _chosen(opened, column, ColumnOptions(), recorded, seed)
    if table.n_items != predictions.n_items:
        raise InputError(
            f"`items` has {table.n_items:,} rows, and there are predictions of "
            f"{predictions.n_items:,} items; give one row per item, in the same order"
        )
    pool = predictions.keeping(()).take(table.rows)
    options = ColumnOptions(item=column)
    shown = _shown(table, options, show, images, free=True)
    return Items("the notebook", column, table, pool, shown, _folder(images))


def _shown(
    table: ChosenRows,
    options: ColumnOptions,
    show: Sequence[str] | None,
    images: str | os.PathLike[str] | None,
    *,
    free: bool = False,
) -> tuple[str, ...]:
    """The columns to show: the requested ones, or those of sentences and pictures.

    With `free`, no column has another role.
    """
    if show is not None:
        for name in show:
            if name not in table.names:
                raise UsageError(missing_column(name, table.names, "--show"))
        if not show:
            raise UsageError("--show names no column")
        return tuple(dict.fromkeys(show))
    taken = {options.item}
    if not free:
        opened = open_input(table, options, Beside())
        roles = assign_roles(table.names, opened.options)
        taken |= {*roles.numeric, *roles.text, roles.item}
    out = []
    rest = [name for name in table.names if name not in taken]
    for name in rest:
        column = profile(table.read((), [name]), name, options)
        some = column.texts[:50]
        pictures = [t for t in some if Path(t).suffix.lower() in IMAGES]
        if column.wordy or (images is not None and len(pictures) > len(some) / 2):
            out.append(name)
    if not out:
        raise InputError(
            "no column of text is known to show; say which with --show COL,COL: the columns are "
            f"{listed(map(quoted, rest or table.names))}"
        )
    return tuple(out)


def _folder(images: str | os.PathLike[str] | None) -> str | None:
    if images is None:
        return None
    if not os.path.isdir(images):
        raise UsageError(f"--images {str(images)!r} is no folder; name the one with the pictures")
    return os.fspath(images)
