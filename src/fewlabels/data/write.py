"""A table as a CSV or Parquet file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from fewlabels.errors import UsageError, quoted

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
