"""Feather files and streams of Arrow: only the columns that are needed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from fewlabels.errors import FewlabelsError, InputError
from fewlabels.frames.table import Table

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
        columns = {self.names[i]: [table.column(k)] for k, i in enumerate(wanted)}
        return Table(
            tuple(columns), columns.__getitem__, table.num_rows, lambda row: f"row {row + 1}"
        )


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
    # Broken bytes raise whatever the decoder stumbles on, as they do in Parquet.
    try:
        options = pa.ipc.IpcReadOptions(included_fields=columns)
        with path.open("rb") as file:
            whole = file.read(len(_MAGIC)) == _MAGIC
            file.seek(-len(_END), os.SEEK_END)
            if not whole and file.read() != _END:
                raise ValueError("the stream has no end")
        with pa.OSFile(str(path)) as source:
            read = pa.ipc.open_file if whole else pa.ipc.open_stream
            with read(source, options=options) as reader:
                yield reader
    except FewlabelsError:
        raise
    except MemoryError:
        raise InputError("does not fit into memory") from None
    except Exception as error:
        raise InputError(
            f"cannot be read as Feather, it is damaged or cut short ({error}); write it again"
        ) from None
