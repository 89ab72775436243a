"""Tables in memory: frames that narwhals understands, Arrow's, data sets, columns and rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import narwhals as nw
import pyarrow as pa

from fewlabels.checks.arguments import plain_array
from fewlabels.data.cells import RowCollector, column_of
from fewlabels.data.table import Held, Source, Table, distinct_names
from fewlabels.errors import InputError, UsageError, listed, quoted
from fewlabels.kernels.arrays import Ints


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
    notes: tuple[str, ...] = ()
    name: None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns as text."""
        return tuple(str(key) for key in self.keys)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Convert some columns to Arrow."""
        frame = nw.from_native(self.frame, eager_only=True)
        columns = self._columns(frame, {*numbers, *texts})
        return Table.of(columns, len(frame), _place, self.notes)

    def head(self, names: Collection[str], rows: int) -> dict[str, pa.ChunkedArray]:
        """The first rows of some columns."""
        return self._columns(nw.from_native(self.frame, eager_only=True).head(rows), names)

    def _columns(self, frame: Any, names: Collection[str]) -> dict[str, pa.ChunkedArray]:
        keys = zip(self.names, self.keys, strict=True)
        return {name: _column(frame, key) for name, key in keys if name in names}


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """Rows of a source of `n_items`, by keys, numbers (n,) and places; `digest` is of all keys."""

    names: tuple[str, ...]
    batches: tuple[pa.RecordBatch, ...]
    keys: tuple[str, ...]
    rows: Ints
    places: tuple[str, ...]
    n_items: int
    digest: str
    decimal_comma: bool = False
    name: None = None

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns."""
        wanted = tuple(dict.fromkeys([*numbers, *texts]))
        some = [batch.select(list(wanted)) for batch in self.batches]
        return Table.of_batches(
            some, wanted, lambda row: self.places[row], decimal_comma=self.decimal_comma
        )


def open_frame(source: Any, argument: str = "source") -> Source:
    """Take a table in memory of any kind that is known; `argument` names it in messages."""
    if isinstance(source, ChosenRows):
        return source
    frame = source
    if not nw.dependencies.is_into_dataframe(source):
        if isinstance(source, Mapping):
            return _of_columns(source, argument)
        if isinstance(source, list | tuple) and (not source or isinstance(source[0], Mapping)):
            rows = RowCollector()
            for i, row in enumerate(source):
                try:
                    if not isinstance(row, Mapping):
                        raise InputError(
                            f"is {quoted(type(row).__name__)}, and the first is a dictionary; make "
                            "them agree"
                        )
                    rows.add(row)
                except InputError as error:
                    raise InputError(f"{_place(i)} {error}") from None
            return rows.table(None, _place)
        frame = _computed(source)
        if frame is None:
            _refuse(source, argument)
    arrow = isinstance(frame, pa.Table)
    keys = tuple(frame.column_names if arrow else frame.columns)
    notes: tuple[str, ...] = ()
    if len(set(keys)) < len(keys):
        # narwhals refuses repeated names with a message of its own.
        def alike(i: int, j: int) -> bool:
            if arrow:
                return bool(frame.column(i).equals(frame.column(j)))
            return bool(frame.iloc[:, i].equals(frame.iloc[:, j]))

        names, notes = distinct_names(tuple(map(str, keys)), alike)
        read = [i for i, name in enumerate(names) if name]
        keys = tuple(names[i] for i in read)
        if arrow:
            frame = frame.select(read).rename_columns(keys)
        else:
            frame = frame.iloc[:, read].set_axis(list(keys), axis=1)
    return NativeFrame(frame, keys, notes)


def _place(row: int) -> str:
    return f"item {row} (from 0)"


def _computed(source: Any) -> Any:
    """The frame of whatever can become one by itself; None of anything else."""
    lazy = nw.from_native(source, pass_through=True)
    if isinstance(lazy, nw.LazyFrame):
        try:
            return lazy.collect().to_native()
        except Exception as error:  # whatever its own library raises
            first = str(error).partition("\n")[0]
            raise InputError(f"the lazy frame cannot be collected: {first}") from None
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    if _is_data_set(source):
        # A data set of Hugging Face, with what was selected of it. One that is a stream has no
        # length, and is refused.
        table = source.with_format("arrow")[:] if hasattr(source, "__len__") else None
        return table if isinstance(table, pa.Table) else None
    if hasattr(source, "__arrow_c_stream__"):
        try:
            return pa.RecordBatchReader.from_stream(source).read_all()
        except (pa.ArrowException, ValueError, TypeError):
            return None  # one column, say
    return None


def _is_data_set(source: Any) -> bool:
    """Whether it is a data set of Hugging Face, without importing that library."""
    return hasattr(source, "with_format") and hasattr(source, "column_names")


def _of_columns(source: Mapping[Any, Any], argument: str) -> Held:
    """A dictionary of columns, each of a value or a vector per item."""
    sizes: dict[str, int] = {}
    columns: dict[str, pa.ChunkedArray] = {}
    for key, value in source.items():
        name = str(key)
        if hasattr(value, "__array__"):
            array = plain_array(name, value, names=True)
            shape: tuple[int, ...] = array.shape  # of a vector per item, or of one value
            values = array.tolist()
        elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
            values = list(value)
            shape = (len(values),)
        else:
            _refuse(source, argument)
        if len(shape) not in (1, 2):
            raise UsageError(
                f"`{argument}` has an array of shape {shape} for {quoted(name)}, and a dictionary "
                "of columns has one value or one vector per item; pass arrays to "
                "fewlabels.Predictions"
            )
        sizes[name] = len(values)
        columns[name] = column_of(values)
    first = next(iter(sizes), "")
    for name, size in sizes.items():
        if size != sizes[first]:
            raise InputError(
                f"columns of different lengths: {quoted(first)} has {sizes[first]:,} values, "
                f"{quoted(name)} {size:,}; make them agree"
            )
    return Held(None, Table.of(columns, sizes.get(first, 0), _place))


def _refuse(source: Any, argument: str) -> NoReturn:
    kind = f"{type(source).__module__}.{type(source).__qualname__}"
    way = "pass arrays to fewlabels.Predictions"
    if isinstance(source, Mapping) and any(map(_is_data_set, source.values())):
        way = f"choose one of its splits: {listed(map(quoted, source))}"
    elif _is_data_set(source):
        way = "a data set that is a stream must be loaded first"
    elif hasattr(source, "execute") and hasattr(source, "cursor"):
        way = "run a query, and pass the table that it gives"
    raise UsageError(
        f"`{argument}` must be a path or a frame in memory (pandas, polars, pyarrow), a dictionary "
        f"of columns, or a list of rows; got {quoted(kind)}: {way}"
    )


def _column(frame: Any, key: Any) -> pa.ChunkedArray:
    series = frame.get_column(key)
    try:
        column = series.to_arrow()
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if isinstance(kind, pa.BaseExtensionType):  # intervals of pandas.cut, periods
            raise TypeError(kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # Python objects of several kinds; texts are what they can be read as.
        nulls = series.is_null().to_list()
        values = series.to_list()
        column = column_of([None if n else v for v, n in zip(values, nulls, strict=True)])
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
