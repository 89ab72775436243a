"""Frames in memory: pandas, polars, pyarrow and whatever else narwhals understands."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import pyarrow as pa

from fewlabels.errors import InputError, UsageError
from fewlabels.frames.table import Table
from fewlabels.frames.values import group_text
from fewlabels.wording import quoted


def frame_kind(source: Any) -> str | None:
    """Which library a frame is of: pandas, polars or pyarrow; None for anything else.

    Examples
    --------
    >>> import pyarrow
    >>> frame_kind(pyarrow.table({"x": [1]})), frame_kind("file.csv")
    ('pyarrow', None)
    """
    known = nw.dependencies
    if known.is_pandas_dataframe(source):
        return "pandas"
    if known.is_polars_dataframe(source):
        return "polars"
    return "pyarrow" if known.is_pyarrow_table(source) else None


@dataclass(frozen=True)
class NativeFrame:
    """A frame in memory; its items are counted from 0."""

    frame: Any
    keys: tuple[Any, ...]
    name: None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns as text."""
        return tuple(str(key) for key in self.keys)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Convert some columns to Arrow."""
        frame = nw.from_native(self.frame, eager_only=True)
        columns = {
            name: [_column(frame, key)]
            for name, key in zip(self.names, self.keys, strict=True)
            if name in numbers or name in texts
        }
        return Table(
            tuple(columns), columns.__getitem__, len(frame), lambda row: f"item {row} (from 0)"
        )


def open_frame(source: Any, argument: str = "source") -> NativeFrame:
    """Take a frame in memory, which messages call by the name of its argument.

    Raises
    ------
    UsageError
        If it is not a frame, or one that has not been computed yet.
    """
    if not nw.dependencies.is_into_dataframe(source):
        kind = f"{type(source).__module__}.{type(source).__qualname__}"
        raise UsageError(
            f"`{argument}` must be a path or a frame in memory (pandas, polars, pyarrow); got "
            f"{quoted(kind)}: collect a lazy frame first, and pass arrays to fewlabels.Predictions"
        )
    # narwhals refuses repeated names with a message of its own; roles.py says it for all sources.
    names = source.column_names if isinstance(source, pa.Table) else source.columns
    return NativeFrame(source, tuple(names))


def _column(frame: Any, key: Any) -> pa.ChunkedArray:
    series = frame.get_column(key)
    try:
        column = series.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # A column of Python objects of several kinds; texts are what it can be read as.
        pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
        texts = [None if null else _text(key, value) for value, null in pairs]
        column = pa.array(texts, pa.large_string())
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _text(key: Any, value: Any) -> str | None:
    if isinstance(value, (list, dict, set)):
        raise InputError(
            f"column {quoted(str(key))} holds {type(value).__name__} objects; store numbers or text"
        )
    return group_text(value)
