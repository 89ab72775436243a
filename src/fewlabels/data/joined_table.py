"""The table of a file with the labels of a record in it, however large the file is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from fewlabels.data.chosen_rows import batches_of, item_column, items_here
from fewlabels.data.label_record import is_record, read_record
from fewlabels.data.sources import locate, open_source
from fewlabels.data.table import NO_LABEL, class_text, told_of
from fewlabels.data.write import TableKind, write_batches
from fewlabels.errors import InputError, listed, quoted


def write_joined(
    source: Any, record: Path, path: Path, kind: TableKind, *, item: str | None, label: str | None,
    raw: bool = False,
) -> tuple[int, tuple[str, ...]]:  # fmt: skip
    """Write a file's table with the labels of its record, some thousand rows at a time.

    The column of labels is filled where it is empty; it is `label`, unless the file has one of
    another name; `raw` is as for `write_batches`. How many labels are in it, and
    what is worth a warning.
    """
    if not is_record(record):
        raise InputError(f"{record}: there is no record of labels; label some items first")
    read = read_record(record)
    labels, notes = read.labels, read.notes(record)
    located = locate(source)
    where = None if located is None else located.name
    with told_of(where):
        opened = open_source(source, located)
        names = [name for name in opened.names if name]
        column = item_column(opened, item)
        here = items_here(opened, column, read, where or "the frame")
    with told_of(str(record)):
        notes += tuple(f"{record}: {note}" for note in read.match(here))
    target, found = label if label is not None and label in names else "label", 0

    def joined() -> Iterator[pa.RecordBatch]:
        nonlocal found
        for batch in batches_of(opened, names):
            keys = [class_text(v) for v in batch.rows.column(column).to_pylist()]
            said = [labels.get(key) for key in keys]
            if target in names:
                own = [class_text(v) for v in batch.rows.column(target).to_pylist()]
                for row, (mine, other) in enumerate(zip(own, said, strict=True)):
                    if mine in NO_LABEL:
                        continue
                    if other not in (None, mine):
                        raise InputError(
                            f"item {quoted(keys[row])} has two labels: {quoted(mine)} in "
                            f"{batch.place(row)} and {quoted(other)} in {record}; correct one"
                        )
                    said[row] = mine
            found += sum(key in labels for key in keys)
            yield _with_column(batch.rows, target, pa.array(said, pa.string()))

    def read_joined() -> Iterator[pa.RecordBatch]:
        with told_of(where):  # not what fails in writing them
            yield from joined()

    write_batches(read_joined(), path, kind, raw=raw)
    if not found:
        with told_of(where):
            raise InputError(
                f"no item of {record} is in column {quoted(column)}; its items are such as "
                f"{listed(map(quoted, labels), 3) or 'none'}"
            )
    return found, notes


def _with_column(rows: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    columns = dict(zip(rows.schema.names, rows.columns, strict=True)) | {name: column}
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
