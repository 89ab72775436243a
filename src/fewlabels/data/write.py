"""A table as a CSV or Parquet file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fewlabels.errors import InputError, UsageError, one_line, quoted
from fewlabels.predictions import Predictions

if TYPE_CHECKING:
    import pyarrow as pa

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


@contextmanager
def _one_line() -> Iterator[None]:
    """Say in one line what a library refuses to write; the system's errors are left to others."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, UnicodeError) as error:
        if isinstance(error, OSError):
            raise
        raise InputError(f"a table cannot be written: {one_line(str(error))}") from None


def write_table(
    columns: Mapping[str, Any], path: Path, kind: TableKind, *, raw: bool = False
) -> None:
    """Write named columns of one length, arrays or lists; None and NaN become null.

    `raw` is as for `write_batches`.
    """
    import pyarrow as pa

    with _one_line():
        table = pa.table({name: pa.array(c, from_pandas=True) for name, c in columns.items()})
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    write_batches(batches, path, kind, raw=raw)


def write_batches(
    batches: Iterable[pa.RecordBatch], path: Path, kind: TableKind, *, raw: bool = False
) -> None:
    """Write rows as they come; columns have the types of the first batch.

    Parameters
    ----------
    raw
        Whether cells of CSV that a spreadsheet would take for formulas stay as they are.
    """
    from pyarrow import csv, parquet

    from fewlabels.data.delimited import without_formulas

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
