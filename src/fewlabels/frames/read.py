"""`read_predictions`: a file, a folder or a frame to `Predictions`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from fewlabels.errors import InputError
from fewlabels.frames.assemble import assemble
from fewlabels.frames.delimited import open_delimited
from fewlabels.frames.locate import Located, locate
from fewlabels.frames.native import open_frame
from fewlabels.frames.npz import read_npz
from fewlabels.frames.options import ColumnOptions, column_options
from fewlabels.frames.parquet import open_parquet
from fewlabels.frames.roles import Roles, assign_roles
from fewlabels.frames.table import Place, Source, Table, concatenate
from fewlabels.frames.wording import told_of
from fewlabels.predictions import Predictions
from fewlabels.wording import listed, one_line, quoted

_OPENERS: Mapping[str, Callable[[Path, str], Source]] = {
    "CSV": open_delimited,
    "Parquet": open_parquet,
}


def read_predictions(
    source: Any,
    *,
    label: str | None = None,
    models: Mapping[str, str | Sequence[str]] | None = None,
    domain: str | None = None,
    weight: str | None = None,
    columns: str | Path | None = None,
    classes: Sequence[Any] | None = None,
    keep: str | Sequence[str] | None = None,
) -> Predictions:
    """Read predictions and labels from a file, a folder of files, or a frame.

    The native columns are `label`, `p__<model>__<class>` (probability), `y__<model>` (hard
    prediction), `s__<model>` (score), `h__<class>` (how many annotators chose the class), `domain`
    and `weight`; every other column is a group. A label is unknown where it is null, empty, NaN
    or -1.

    Parameters
    ----------
    source
        Path of a CSV (also .tsv, also compressed by gzip), Parquet or NPZ file, or of a folder of
        such files of one kind; or a frame in memory: pandas, polars, pyarrow. The keys of an NPZ
        file are the arguments of `Predictions`, and `groups__<name>`; pickles are never opened.
    label, domain, weight
        Columns of that role, where they have other names.
    models
        Classifier -> its probability columns, in the order of the classes. One column is the
        probability of the last of two classes.
    columns
        TOML file that says the same: keys label, domain, weight, classes, and a table [models].
    classes
        The classes in order; the last of two is the positive one. Default: those of the p and h
        columns, else those that occur; numbers by value, then the rest by alphabet.
    keep
        Which other columns to keep as groups; None = all, () = none.

    Raises
    ------
    InputError
        If the data cannot be used; the message says what, where, and how to mend it.
    UsageError
        If an argument is not what is said above.

    Examples
    --------
    >>> import pyarrow, fewlabels as fl
    >>> table = pyarrow.table({"label": ["no", None], "p__net__yes": [0.2, 0.9]})
    >>> fl.read_predictions(table).classes
    ('no', 'yes')
    """
    options = column_options(
        label=label, models=models, domain=domain, weight=weight, columns=columns,
        classes=classes, keep=keep,
    )  # fmt: skip
    located = locate(source)
    with told_of(None if located is None else located.name):
        if located is not None and located.kind == "NPZ":
            return Predictions(**read_npz(located.files, options))
        table_source = open_source(source, located)
        roles = assign_roles(table_source.names, options)
        # Not bound to a name: the table is gone before Predictions makes its own copy.
        arguments, place = _arguments(table_source.read(roles.numeric, roles.text), roles, options)
        pa.default_memory_pool().release_unused()
        return build(arguments, roles, place)


def column_names(source: Any) -> tuple[str, ...]:
    """The columns of a file, folder or frame, without reading it; none for NPZ.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    located = locate(source)
    with told_of(None if located is None else located.name):
        if located is not None and located.kind == "NPZ":
            return ()
        return open_source(source, located).names


def open_source(source: Any, located: Located | None) -> Source:
    """Open what `locate` found (CSV or Parquet), or the frame that the source is."""
    if located is None:
        return open_frame(source)
    opener = _OPENERS[located.kind]
    parts: list[Source] = []
    for file in located.files:
        with told_of(one_line(file.name) if len(located.files) > 1 else None):
            parts.append(opener(file, one_line(file.name)))
    return parts[0] if len(parts) == 1 else FolderOfTables(located.name, tuple(parts))


@dataclass(frozen=True)
class FolderOfTables:
    """Several files with the same columns, in any order, as one."""

    name: str
    parts: tuple[Source, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the first file, which every other must have too."""
        first = self.parts[0]
        for part in self.parts[1:]:
            odd = sorted(set(first.names) ^ set(part.names))
            if odd:
                raise InputError(
                    f"{first.name} and {part.name} differ in the columns "
                    f"{listed(map(quoted, odd))}; make them agree"
                )
        return first.names

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns of every file."""
        tables = []
        for part in self.parts:
            with told_of(part.name):
                tables.append(part.read(numbers, texts))
        return concatenate(tables, [part.name for part in self.parts])


def build(arguments: dict[str, Any], roles: Roles, place: Place) -> Predictions:
    """Make `Predictions`, whose messages about items then speak of rows and columns of the file."""
    try:
        return Predictions(**arguments)
    except InputError as error:
        message = re.sub(r"item (\d+) \(from 0\)", lambda m: place(int(m[1])), str(error))
        for model in roles.models:
            who = f"classifier {model!r}"
            columns = listed(map(quoted, roles.columns_of(model)), 3)
            message = message.replace(who, f"{who} (column {columns})")
        raise InputError(message) from None


def _arguments(table: Table, roles: Roles, options: ColumnOptions) -> tuple[dict[str, Any], Place]:
    return assemble(table, roles, options.classes), table.place
