"""A table as a CSV or Parquet file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fewlabels.errors import InputError, UsageError, quoted

if TYPE_CHECKING:
    import pyarrow as pa

TableKind = Literal["csv", "parquet"]


def table_kind(path: str) -> TableKind:
    """What the ending of a path asks for.

    Raises
    ------
    UsageError
        If it is neither .csv nor .parquet.
    """
    ending = Path(path).suffix.lower()
    if ending == ".csv":
        return "csv"
    if ending in (".parquet", ".pq"):
        return "parquet"
    raise UsageError(f"{quoted(path)} must end in .csv or .parquet, which says what to write")


def write_table(columns: Mapping[str, Any], path: Path, kind: TableKind) -> None:
    """Write named columns of one length, arrays or lists; None and NaN become null.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    import pyarrow as pa

    table = pa.table({name: pa.array(c, from_pandas=True) for name, c in columns.items()})
    if kind == "csv":
        from pyarrow import csv

        csv.write_csv(table, path)
    else:
        import pyarrow.parquet as pq

        pq.write_table(table, path, write_page_checksum=True)


def write_batches(batches: Iterable[pa.RecordBatch], path: Path, kind: TableKind) -> None:
    """Write rows as they come; columns have the types of the first batch.

    Raises
    ------
    InputError
        If there are none.
    OSError
        If the file cannot be written.
    """
    from pyarrow import csv, parquet

    rest = iter(batches)
    first = next(rest, None)
    if first is None:
        raise InputError("there are no rows; a file needs at least one item")
    made: Any = (
        csv.CSVWriter(path, first.schema)
        if kind == "csv"
        else parquet.ParquetWriter(path, first.schema, write_page_checksum=True)
    )
    with made:
        made.write_batch(first)
        for batch in rest:
            made.write_batch(batch.cast(first.schema) if batch.schema != first.schema else batch)
