"""A table as a CSV or Parquet file, and a file's own table with the labels of a record in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fewlabels.data.chosen_rows import batches_of, item_column, items_here
from fewlabels.data.delimited import without_formulas
from fewlabels.data.joined import KeptLabels, fill_in, labels_of
from fewlabels.data.label_record import is_record, read_record
from fewlabels.data.sources import locate, open_source
from fewlabels.data.table import Names, Table, naming_file
from fewlabels.errors import InputError, UsageError, listed, one_line, quoted
from fewlabels.predictions import Predictions

TableKind = Literal["csv", "parquet"]


def table_kind(path: str) -> TableKind:
    """What the ending of a path asks for."""
    ending = Path(path).suffix.lower()
    if ending == ".csv":
        return "csv"
    if ending in (".parquet", ".pq"):
        return "parquet"
    raise UsageError(f"{quoted(path)} must end in .csv or .parquet, which says what to write")


def native_columns(predictions: Predictions) -> dict[str, Any]:
    """Predictions as the columns that are read without an option: label, p__, y__, s__, h__ ..."""
    if predictions.multiplicity is not None or predictions.repeated_votes is not None:
        raise UsageError(
            "repeated votes have no columns of their own; say --duplicates last, or keep the long "
            "votes"
        )
    texts = np.array([*map(str, predictions.classes), None], dtype=object)
    out: dict[str, Any] = dict(predictions.item_names)
    for several in (predictions.groups, predictions.clusters):
        out |= {name: list(values) for name, values in several.items() if name not in out}
    if predictions.domain is not None:
        out["domain"] = list(predictions.domain)
    if predictions.labeled.any():
        out["label"] = texts[predictions.labels]
    if (predictions.weight != 1).any():
        out["weight"] = predictions.weight
    blocks = {"p": predictions.probabilities, "y": predictions.votes, "s": predictions.scores}
    for j, model in enumerate(predictions.models):
        p, votes, scores = (block if block is None else block[:, j] for block in blocks.values())
        if p is not None and not np.isnan(p).all():
            out |= {f"p__{model}__{c}": p[:, k] for k, c in enumerate(predictions.classes)}
        if votes is not None and (votes >= 0).any():
            out[f"y__{model}"] = texts[votes.astype(np.int64)]
        if scores is not None and not np.isnan(scores).all():
            out[f"s__{model}"] = scores
    if predictions.histogram is not None:
        counts = predictions.histogram
        if (counts == np.round(counts)).all():
            counts = counts.astype(np.int64)
        out |= {f"h__{c}": counts[:, k] for k, c in enumerate(predictions.classes)}
    return out


def kept_beside(
    path: Path, batches: Sequence[pa.RecordBatch], key: Sequence[str]
) -> list[pa.RecordBatch]:
    """The rows of a file whose columns of texts, `key`, are none of the new ones', then these."""
    schema = batches[0].schema
    with naming_file(str(path)):
        opened = open_source(path, locate(path))
        if list(opened.names) != schema.names:
            raise InputError(
                f"has a table of other columns ({listed(map(quoted, opened.names))}); name another"
            )
        new = {row for batch in batches for row in _texts_of(batch, key)}
        out = []
        for batch in batches_of(opened, schema.names):
            stays = pa.array([row not in new for row in _texts_of(batch.rows, key)], pa.bool_())
            rows = batch.rows.filter(stays)
            columns = [
                pc.if_else(pc.equal(column, ""), None, column).cast(field.type)
                if pa.types.is_string(column.type) and not pa.types.is_string(field.type)
                else column.cast(field.type)
                for column, field in zip(rows.columns, schema, strict=True)
            ]
            out.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    return [*out, *batches]


def _texts_of(rows: pa.RecordBatch, key: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The texts of some columns, row by row."""
    return zip(*(map(str, rows.column(name).to_pylist()) for name in key), strict=True)


@contextmanager
def _one_line() -> Iterator[None]:
    """Say in one line what a library refuses to write; the system's errors are left to others."""
    try:
        yield
    except (pa.ArrowException, UnicodeError) as error:
        if isinstance(error, OSError):
            raise
        raise InputError(f"a table cannot be written: {one_line(str(error))}") from None


def write_table(
    columns: Mapping[str, Any], path: Path, kind: TableKind, *, raw: bool = False
) -> None:
    """Write named columns of one length, arrays or lists; None and NaN become null."""
    write_batches(batches_of_columns(columns), path, kind, raw=raw)


def batches_of_columns(columns: Mapping[str, Any]) -> list[pa.RecordBatch]:
    """Named columns of one length as rows; None and NaN are null."""
    with _one_line():
        table = pa.table({name: pa.array(c, from_pandas=True) for name, c in columns.items()})
        return table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]


def write_batches(
    batches: Iterable[pa.RecordBatch], path: Path, kind: TableKind, *, raw: bool = False
) -> None:
    """Write rows by the types of the first batch; cells like formulas stay so if `raw`."""
    from pyarrow import csv, parquet

    inert = kind == "csv" and not raw
    rest = map(without_formulas, batches) if inert else iter(batches)
    with _one_line():
        first = next(rest, None)
    if first is None:
        raise InputError("there are no rows; a file needs at least one item")
    with _one_line(), path.open("wb") as file:  # by ourselves, as the path may be no text
        made: Any = (
            csv.CSVWriter(file, first.schema)
            if kind == "csv"
            else parquet.ParquetWriter(file, first.schema, write_page_checksum=True)
        )
        with made:
            made.write_batch(first)
            for batch in rest:
                same = batch.schema == first.schema
                made.write_batch(batch if same else batch.cast(first.schema))


def write_joined(
    source: Any, record: Path, path: Path, kind: TableKind, *, item: str | None, label: str | None,
    raw: bool = False,
) -> tuple[int, tuple[str, ...]]:  # fmt: skip
    """Write a file's table with the labels of its record; how many these are, and warnings."""
    if not is_record(record):
        raise InputError(f"{record}: there is no record of labels; label some items first")
    read = read_record(record)
    labels, notes = read.labels, read.notes(record)
    kept = KeptLabels(str(record), item or "", labels_of(read, str(record)))
    located = locate(source)
    where = None if located is None else located.name
    with naming_file(where):
        opened = open_source(source, located)
        names = [name for name in opened.names if name]
        column = item_column(opened, item)
        here = items_here(opened, column, read, where or "the frame")
    with naming_file(str(record)):
        notes += tuple(f"{record}: {note}" for note in read.match(here))
    target, found = label if label is not None and label in names else "label", 0

    def joined() -> Iterator[pa.RecordBatch]:
        nonlocal found
        with naming_file(where):  # not what fails in writing them
            for batch in batches_of(opened, names):
                table = Table.of_batches([batch.rows], batch.rows.schema.names, batch.place)
                keys = Names.of(table, column)
                own = Names.of(table, target) if target in names else None
                filled = fill_in(own, keys, kept, batch.place)
                labeled = [i for i, text in enumerate(keys.texts) if text in labels]
                found += int(np.isin(keys.codes, labeled).sum())
                columns = dict(zip(batch.rows.schema.names, batch.rows.columns, strict=True))
                columns[target] = pa.array(filled, pa.string())
                yield pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    write_batches(joined(), path, kind, raw=raw)
    if not found:
        with naming_file(where):
            raise InputError(
                f"no item of {record} is in column {quoted(column)}; its items are such as "
                f"{listed(map(quoted, labels), 3) or 'none'}"
            )
    return found, notes
