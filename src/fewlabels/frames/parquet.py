"""Parquet files: only the columns that are needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
        """Read some columns, as they are stored."""
        wanted = list(dict.fromkeys([*numbers, *texts]))
        with _readable(), pq.ParquetFile(self.path) as file:
            table = file.read(columns=wanted)
            columns = {name: [table.column(name)] for name in wanted}
            return Table(columns, table.num_rows, lambda row: f"row {row + 1}")


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
