"""Files of binary columns: Parquet, Feather and streams of Arrow; and NPZ, arrays by name.

Only the columns that are needed are read. Keys of an NPZ file are the arguments of `Predictions`;
nothing in it is ever unpickled.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fewlabels.data.limits import inflated_zip, refuse_feather, refuse_whole
from fewlabels.data.options import ColumnOptions
from fewlabels.data.stores import File
from fewlabels.data.table import Table, group_text, naming_file, readable, row_place
from fewlabels.errors import InputError, did_you_mean, listed, one_line, quoted
from fewlabels.kernels.arrays import Array

_BUFFER = 1 << 18
"""Bytes of a Parquet column that are read at once, as row groups may be larger than memory."""

_STORED_BUFFER = 1 << 21
"""The same of a file of a store, where each reading is a request."""


def parquet_file(path: File, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file so that the checksums of its pages, if any, are verified."""
    source = path if isinstance(path, Path) else path.open()
    return pq.ParquetFile(source, pre_buffer=False, page_checksum_verification=True, **options)


@dataclass(frozen=True)
class ParquetFile:
    """One Parquet file; `row_groups` holds how many rows each of them has."""

    path: File
    name: str
    names: tuple[str, ...]
    schema: pa.Schema
    row_groups: tuple[int, ...]

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Columns as they are stored, read when they are asked for."""
        with readable("Parquet"):
            file = parquet_file(self.path)
            size = file.metadata.num_rows

        def pieces(column: str) -> list[pa.ChunkedArray]:
            with readable("Parquet"):
                read = file.read(columns=[column]).column(column)
                if len(read) != size:
                    raise ValueError(f"{len(read)} rows where {size} are announced")
                return [read]

        wanted = tuple(dict.fromkeys([*numbers, *texts]))
        refuse_whole(8 * size * len(wanted), f"its {size:,} rows of {len(wanted)} columns")
        return Table(wanted, pieces, size, row_place)

    def batches(self, numbers: Collection[str], texts: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Some columns from the first row on, some thousand rows at a time."""
        return parquet_batches(self.path, [*numbers, *texts])


def parquet_batches(
    path: File,
    columns: Collection[str],
    groups: range | None = None,
    *,
    rows: int = 65_536,
    coded: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Columns of some row groups, at most `rows` at a time; few texts are read fastest `coded`."""
    buffer = _BUFFER if isinstance(path, Path) else _STORED_BUFFER
    with (
        readable("Parquet"),
        parquet_file(path, buffer_size=buffer, read_dictionary=list(coded)) as file,
    ):
        yield from file.iter_batches(rows, groups, list(columns), use_threads=False)


def open_parquet(path: File, name: str) -> ParquetFile:
    """Read the column names of a Parquet file."""
    with readable("Parquet"), parquet_file(path) as file:
        schema, footer = file.schema_arrow, file.metadata
        rows = tuple(footer.row_group(i).num_rows for i in range(footer.num_row_groups))
        if min(rows, default=0) < 0 or sum(rows) != footer.num_rows:
            raise ValueError(f"{footer.num_rows} rows in groups of {sum(rows)}")
        return ParquetFile(path, name, tuple(schema.names), schema, rows)


_MAGIC = b"ARROW1"
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""The end mark of a stream; one without it may have lost its last rows."""


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
            is_file = isinstance(reader, pa.ipc.RecordBatchFileReader)
            refuse_feather(self.path, is_file=is_file, columns=len(wanted))
            table = reader.read_all()
            # Broken bytes may give columns that end within memory of somebody else.
            table.validate(full=True)
        columns = {self.names[i]: table.column(k) for k, i in enumerate(wanted)}
        return Table.of(columns, table.num_rows)


def open_feather(path: Path, name: str) -> FeatherFile:
    """Read the column names of a Feather file."""
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


# NPZ ----------------------------------------------------------------------------------------------

GROUP, CLUSTER = "groups__", "clusters__"
_PER_ITEM = ("probabilities", "labels", "votes", "scores", "histogram", "domain", "weight")
_NAMES = ("models", "classes")
_NO_MEMORY = "does not fit into memory, or says so by mistake"
KEYS = (*_PER_ITEM, *_NAMES, f"{GROUP}<name>", f"{CLUSTER}<name>")


def read_npz(files: Sequence[Path], options: ColumnOptions) -> dict[str, Any]:
    """Arguments of `Predictions` from NPZ files, one after another."""
    flags = {"models": "model", "scores": "score", "no_label": "no-label", "votes": "annotator"}
    texts = ("label", "models", "hard", "scores", "confidence", "domain", "weight", "item")
    for option in (*texts, "no_label", "same", "votes"):
        if getattr(options, option):
            name = flags.get(option, option)
            raise InputError(
                f"--{name} names a column, but NPZ files have arrays: {listed(KEYS, 99)}"
            )
    refuse_whole(sum(map(inflated_zip, files)), "its arrays")
    loaded = []
    for file in files:
        with naming_file(one_line(file.name) if len(files) > 1 else None):
            loaded.append(_load(file))
    first = loaded[0]
    for part, file in zip(loaded[1:], files[1:], strict=True):
        both = f"{file.name} and {files[0].name}"
        if odd := sorted(set(part) ^ set(first)):
            raise InputError(f"{both} differ in the keys {listed(odd)}")
        for key in set(_NAMES) & set(first):
            if part[key].tolist() != first[key].tolist():
                raise InputError(f"{both} differ in `{key}`; make them agree")
    try:
        arrays = {
            key: first[key] if key in _NAMES else np.concatenate([part[key] for part in loaded])
            for key in first
        }
    except ValueError as error:
        raise InputError(f"the files have arrays of different shapes ({error})") from None
    for key in _NAMES:
        if key in arrays and arrays[key].ndim != 1:
            raise InputError(f"key {quoted(key)} must be a list; got shape {arrays[key].shape}")
    groups, clusters = (
        {key.removeprefix(front): a for key, a in arrays.items() if key.startswith(front)}
        for front in (GROUP, CLUSTER)
    )
    for name in options.cluster:
        if name in groups:
            clusters.setdefault(name, groups[name])
        elif name not in clusters:
            known = listed([*clusters, *groups]) or "none"
            raise InputError(
                f"no cluster {quoted(name)}; the names of keys {CLUSTER}<name> and {GROUP}<name> "
                f"are {known}"
            )
    if options.stratum is not None and options.stratum not in groups:
        raise InputError(
            f"no stratum {quoted(options.stratum)}; the groups (keys {GROUP}<name>) are "
            f"{listed(groups) or 'none'}"
        )
    if options.keep is not None:
        for name in options.keep:
            if name not in groups and not (name == "domain" and "domain" in arrays):
                raise InputError(
                    f"no group {quoted(name)}; the groups (keys {GROUP}<name>) are {listed(groups)}"
                )
        groups = {name: a for name, a in groups.items() if name in (*options.keep, options.stratum)}
    arguments: dict[str, Any] = {key: arrays[key] for key in _PER_ITEM if key in arrays}
    arguments |= {key: arrays[key].tolist() for key in _NAMES if key in arrays}
    if options.classes is not None:
        arguments["classes"] = list(options.classes)
    if options.positive is not None:
        arguments["positive"] = options.positive
    if options.stratum is not None:
        arguments["stratum"] = options.stratum
    if "domain" in arguments:
        arguments["domain"] = _texts(arguments["domain"])
    for kind, several in (("groups", groups), ("clusters", clusters)):
        arguments[kind] = {name: _texts(array) for name, array in several.items()}
    return arguments


def described(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Key -> its role in words, for `doctor`."""
    known = [key for key in KEYS if arguments.get(key) is not None]
    roles = {key: f"{key}, shape {np.shape(arguments[key])}" for key in known}
    roles |= {f"{GROUP}{name}": "group" for name in arguments["groups"]}
    return roles | {f"{CLUSTER}{name}": "cluster" for name in arguments["clusters"]}


def _load(path: Path) -> dict[str, Array]:
    # Opened here: numpy leaves the file open where it finds no archive in it.
    with (
        readable("NPZ", mend="write it again with numpy.savez", memory=_NO_MEMORY),
        path.open("rb") as stream,
        np.load(stream, allow_pickle=False) as file,
    ):
        for key in file.files:
            if key not in KEYS and (
                key in (GROUP, CLUSTER) or not key.startswith((GROUP, CLUSTER))
            ):
                raise InputError(
                    f"unknown key {quoted(key)}; {did_you_mean(key, KEYS)}the keys are "
                    f"{listed(KEYS, 99)}"
                )
        if not file.files:
            raise InputError(f"holds no arrays; the keys are {listed(KEYS, 99)}")
        arrays: dict[str, Array] = {}
        for key in file.files:
            try:
                array = file[key]
            except ValueError as error:
                if "allow_pickle" in str(error):
                    raise InputError(
                        f"key {quoted(key)} holds Python objects (a pickle), which are never "
                        "opened, as they can run code; save texts as "
                        "numpy.asarray(texts, dtype=str)"
                    ) from None
                raise
            # A member of the archive that is not an array comes back as bytes.
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufUS":
                raise InputError(f"key {quoted(key)} must be an array of numbers or text")
            arrays[key] = np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array
        return arrays


def _texts(array: Array) -> Array:
    """Texts as in a table: None where there is none."""
    values, codes = np.unique(array, return_inverse=True)
    texts = np.array([*(group_text(v) for v in values), None], dtype=object)
    return texts[codes.reshape(array.shape)]
