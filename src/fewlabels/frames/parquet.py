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
    """One Parquet file."""

    path: Path
    name: str
    names: tuple[str, ...]

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Columns as they are stored, read when they are asked for."""
        # A column at a time and not the whole file at once: half the peak, in the same time.
        with _readable():
            file = pq.ParquetFile(self.path, pre_buffer=False)
            size = file.metadata.num_rows

        def pieces(column: str) -> list[pa.ChunkedArray]:
            with _readable():
                read = file.read(columns=[column]).column(column)
                if len(read) != size:
                    raise ValueError(f"{len(read)} rows where {size} are announced")
                return [read]

        wanted = tuple(dict.fromkeys([*numbers, *texts]))
        return Table(wanted, pieces, size, lambda row: f"row {row + 1}")


def open_parquet(path: Path, name: str) -> ParquetFile:
    """Read the column names of a Parquet file.

    Raises
    ------
    InputError
        If the file is not readable as Parquet.
    """
    with _readable(), pq.ParquetFile(path) as file:
        return ParquetFile(path, name, tuple(file.schema_arrow.names))


@contextmanager
def _readable() -> Iterator[None]:
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
