"""About how many rows there are, told from the edges of the files alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from fewlabels.engine.units import IN_PARTS
from fewlabels.frames.compression import is_plain
from fewlabels.frames.locate import locate
from fewlabels.frames.parquet import readable

_HEAD = 1 << 20
_COMPRESSION_RATIO = 4


def about_rows(path: str | Path) -> int:
    """Rows of a Parquet or CSV file, or of a folder: exact for Parquet, else by the first lines.

    What cannot be read in parts counts as none.

    Raises
    ------
    InputError
        If it is none of these.
    """
    located = locate(path)
    if located is None or located.kind not in IN_PARTS:
        return 0
    if located.kind == "Parquet":
        return sum(map(_rows_of_parquet, located.files))
    return sum(map(_rows_of_csv, located.files))


def _rows_of_parquet(path: Path) -> int:
    with readable():
        return int(pq.read_metadata(path).num_rows)


def _rows_of_csv(path: Path) -> int:
    size = path.stat().st_size
    if not is_plain(path):
        size, per_line = size * _COMPRESSION_RATIO, 100.0
    else:
        with path.open("rb") as file:
            head = file.read(_HEAD)
        per_line = len(head) / max(head.count(b"\n") + head.count(b"\r") // 2, 1)
    return int(size / per_line)
