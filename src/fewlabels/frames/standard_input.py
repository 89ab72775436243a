"""Standard input as a file: kept on disk, as it may be read more than once."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from fewlabels.errors import InputError, UsageError
from fewlabels.wording import unknown

DASH = "-"
"""What stands for standard input where a path is asked for."""

NAME = "standard input"

FORMATS = {
    "csv": "CSV", "tsv": "CSV", "jsonl": "JSON", "json": "JSON", "parquet": "Parquet",
    "feather": "Feather", "npz": "NPZ", "excel": "Excel",
}  # fmt: skip
"""What may be said of it -> the kind of the file."""


class _Kept:
    """What was read of standard input last, and from which stream."""

    stream: Any = None
    path: Path | None = None


def is_standard_input(source: str) -> bool:
    """Whether a path stands for standard input: `-`, or with more behind it, as `-#tsv`."""
    return source == DASH or source.startswith(f"{DASH}#")


def standard_input(format_name: str | None = None) -> Path:
    """A file with all of standard input, which is read once.

    Parameters
    ----------
    format_name
        One of `FORMATS`, where the content alone does not say what it is.

    Raises
    ------
    InputError
        If nobody sends anything.
    UsageError
        If the format is none.
    """
    if format_name is not None and format_name not in FORMATS:
        raise UsageError(unknown("format", format_name, FORMATS))
    stream = getattr(sys.stdin, "buffer", None)
    if _Kept.path is None or stream is not _Kept.stream:
        if stream is None or stream.closed or sys.stdin.isatty():
            raise InputError("has nothing to read; send a file: fewlabels ... - < FILE")
        _Kept.path, _Kept.stream = _spooled(stream), stream
    # The ending tells a tab for a delimiter, and what the content must be.
    ending = "" if format_name in (None, "excel") else f".{format_name}"
    _Kept.path = _Kept.path.rename(_Kept.path.with_suffix(ending))
    return _Kept.path


def _spooled(stream: Any) -> Path:
    folder = tempfile.mkdtemp(prefix="fewlabels-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / "standard-input"
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)
    return path
