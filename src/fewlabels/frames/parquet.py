"""Parquet files: only the columns that are needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fewlabels.errors import FewlabelsError, InputError
from fewlabels.frames.table import Table


@dataclass(frozen=True)
class ParquetFile:
    """One Parquet file; `row_groups` holds how many rows each of them has."""

    path: Path
    name: str
    names: tuple[str, ...]
    schema: pa.Schema
    row_groups: tuple[int, ...]

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Columns as they are stored, read when they are asked for."""
        # A column at a time and not the whole file at once: half the peak, in the same time.
        with readable():
            file = pq.ParquetFile(self.path, pre_buffer=False)
            size = file.metadata.num_rows

        def pieces(column: str) -> list[pa.ChunkedArray]:
            with readable():
                read = file.read(columns=[column]).column(column)
                if len(read) != size:
                    raise ValueError(f"{len(read)} rows where {size} are announced")
                return [read]

        wanted = tuple(dict.fromkeys([*numbers, *texts]))
        return Table(wanted, pieces, size, lambda row: f"row {row + 1}")

    def batches(self, numbers: Collection[str], texts: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Some columns from the first row on, some thousand rows at a time."""
        with readable(), pq.ParquetFile(self.path, pre_buffer=False) as file:
            yield from file.iter_batches(65_536, columns=[*numbers, *texts], use_threads=False)


def open_parquet(path: Path, name: str) -> ParquetFile:
    """Read the column names of a Parquet file.

    Raises
    ------
    InputError
        If the file is not readable as Parquet.
    """
    with readable(), pq.ParquetFile(path, pre_buffer=False) as file:
        schema, footer = file.schema_arrow, file.metadata
        rows = tuple(footer.row_group(i).num_rows for i in range(footer.num_row_groups))
        if min(rows, default=0) < 0 or sum(rows) != footer.num_rows:
            raise ValueError(f"{footer.num_rows} rows in groups of {sum(rows)}")
        return ParquetFile(path, name, tuple(schema.names), schema, rows)


@contextmanager
def readable() -> Iterator[None]:
    """Say of whatever stops the reading of a Parquet file that it is damaged."""
    # Broken bytes raise whatever the decoder stumbles on: Arrow, operating system, Unicode errors.
    try:
        yield
    except FewlabelsError:
        raise
    except MemoryError:
        raise InputError("does not fit into memory") from None
    except Exception as error:
        raise InputError(
            f"cannot be read as Parquet, it is damaged or cut short ({error}); write it again"
        ) from None
