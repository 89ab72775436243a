"""Parquet and Feather files, and streams of Arrow: only the columns that are needed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fewlabels.data.table import Table, readable, row_place

_BUFFER = 1 << 18
"""Bytes of a column of Parquet that are read at once: row groups may be larger than memory."""


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
        with readable("Parquet"):
            file = pq.ParquetFile(self.path, pre_buffer=False)
            size = file.metadata.num_rows

        def pieces(column: str) -> list[pa.ChunkedArray]:
            with readable("Parquet"):
                read = file.read(columns=[column]).column(column)
                if len(read) != size:
                    raise ValueError(f"{len(read)} rows where {size} are announced")
                return [read]

        wanted = tuple(dict.fromkeys([*numbers, *texts]))
        return Table(wanted, pieces, size, row_place)

    def batches(self, numbers: Collection[str], texts: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Some columns from the first row on, some thousand rows at a time."""
        return parquet_batches(self.path, [*numbers, *texts])


def parquet_batches(
    path: Path,
    columns: Collection[str],
    groups: range | None = None,
    *,
    rows: int = 65_536,
    coded: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Columns of some row groups, at most so many rows at a time.

    Parameters
    ----------
    coded
        Columns of few texts, each very often: codes into a dictionary are read three times as fast.
        Other texts may be as many as there are rows, and a batch would get them all.

    Raises
    ------
    InputError
        If the file is damaged.
    """
    with (
        readable("Parquet"),
        pq.ParquetFile(
            path, pre_buffer=False, buffer_size=_BUFFER, read_dictionary=list(coded)
        ) as file,
    ):
        yield from file.iter_batches(rows, groups, list(columns), use_threads=False)


def open_parquet(path: Path, name: str) -> ParquetFile:
    """Read the column names of a Parquet file.

    Raises
    ------
    InputError
        If the file is not readable as Parquet.
    """
    with readable("Parquet"), pq.ParquetFile(path, pre_buffer=False) as file:
        schema, footer = file.schema_arrow, file.metadata
        rows = tuple(footer.row_group(i).num_rows for i in range(footer.num_row_groups))
        if min(rows, default=0) < 0 or sum(rows) != footer.num_rows:
            raise ValueError(f"{footer.num_rows} rows in groups of {sum(rows)}")
        return ParquetFile(path, name, tuple(schema.names), schema, rows)


_MAGIC = b"ARROW1"
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""What a stream ends with; one without it may have lost its last rows."""


@dataclass(frozen=True)
class FeatherFile:
    """One file of Arrow's own format, as a file or as a stream."""

    path: Path
    name: str
    names: tuple[str, ...]

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Some columns as they are stored."""
        wanted = [i for i, name in enumerate(self.names) if name in numbers or name in texts]
        with _opened(self.path, wanted) as reader:
            table = reader.read_all()
            # Broken bytes may give columns that end within memory of somebody else.
            table.validate(full=True)
        columns = {self.names[i]: table.column(k) for k, i in enumerate(wanted)}
        return Table.of(columns, table.num_rows)


def open_feather(path: Path, name: str) -> FeatherFile:
    """Read the column names of a Feather file.

    Raises
    ------
    InputError
        If the file is not readable as Feather.
    """
    with _opened(path, None) as reader:
        return FeatherFile(path, name, tuple(reader.schema.names))


@contextmanager
def _opened(
    path: Path, columns: list[int] | None
) -> Iterator[pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader]:
    """The reader of some columns, by position."""
    options = pa.ipc.IpcReadOptions(included_fields=columns)
    with readable("Feather"):
        with path.open("rb") as file:
            whole = file.read(len(_MAGIC)) == _MAGIC
            file.seek(-len(_END), os.SEEK_END)
            if not whole and file.read() != _END:
                raise ValueError("the stream has no end")
        with pa.OSFile(str(path)) as source:
            read = pa.ipc.open_file if whole else pa.ipc.open_stream
            with read(source, options=options) as reader:
                yield reader
