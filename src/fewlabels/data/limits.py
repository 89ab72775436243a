"""How much a file may become when it is read: few bytes may be more rows than memory holds."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path

from fewlabels.checks.memory import refuse_beyond_memory
from fewlabels.errors import InputError

IN_MEMORY = 8
"""How often numbers that are read are in memory at once: four times while they are read, twice that
in an estimate (10 million rows of a label and a probability: 0.6 and 1.3 GB)."""

MOST_INFLATED, MOST_RATIO = 4 << 30, 200
"""Bytes that a compressed file may always inflate to, and how often its size beyond that.

Tables are compressed ten times, columns of votes a hundred times; what goes beyond both is made to
fill memory or time.
"""


MOST_COLUMNS = 10_000
"""Columns of a table: each takes some 10 KB while it is recognised, whatever it holds."""


def refuse_wide(n_columns: int) -> None:
    """Refuse a table of more columns than are recognised."""
    if n_columns > MOST_COLUMNS:
        raise InputError(
            f"has {n_columns:,} columns, and at most {MOST_COLUMNS:,} are read; keep those of "
            "labels, predictions and groups"
        )


def refuse_whole(n_bytes: int, what: str) -> None:
    """Refuse to read numbers of so many bytes whole where they do not fit; `what` they are."""
    mend = (
        "use `estimate` with --engine threads, which reads CSV and Parquet in parts, or keep fewer "
        "rows or columns"
    )
    refuse_beyond_memory(IN_MEMORY * n_bytes, f"reading {what} whole", mend)


class Inflation:
    """Counts the bytes that a file inflates to; one that is not `packed` may have any number."""

    def __init__(self, path: Path, *, packed: bool) -> None:
        self.size = 0
        self._packed_size = path.stat().st_size
        limit = max(MOST_INFLATED, MOST_RATIO * self._packed_size)
        self._most = limit if packed else math.inf

    def take(self, n_bytes: int) -> None:
        """Count more."""
        self.size += n_bytes
        if self.size > self._most:
            raise InputError(
                f"is {self._packed_size / 1e6:,.1f} MB and inflates to more than "
                f"{self._most / 1e9:,.1f} GB; if that is what it should hold, decompress it first"
            )


def inflated_zip(path: Path) -> int:
    """Bytes that the members of a zip archive are without compression; 0 where it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return sum(member.file_size for member in archive.infolist())
    except Exception:  # whatever foreign bytes make the reader stumble on; who reads it says it
        return 0
