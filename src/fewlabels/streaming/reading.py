"""Units to batches of `Predictions`, in memory that does not grow with the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fewlabels.checks.arrays import sampling_weight
from fewlabels.data.assemble import arguments_of, class_columns
from fewlabels.data.binary import open_parquet, parquet_batches
from fewlabels.data.classes import Classes, decide_classes
from fewlabels.data.databases import CHANGED, SqlTable
from fewlabels.data.delimited import open_delimited
from fewlabels.data.inputs import one_against
from fewlabels.data.options import ColumnOptions
from fewlabels.data.read import naming_rows
from fewlabels.data.roles import Roles
from fewlabels.data.shapes import needs, with_made
from fewlabels.data.table import Place, Table, naming_file, readable, refuse_mixed, row_place
from fewlabels.data.where import ROW
from fewlabels.errors import InputError, quoted
from fewlabels.kernels.arrays import Floats
from fewlabels.predictions import Predictions
from fewlabels.streaming.units import Layout, Unit

BATCH_ROWS = 65_536
"""Rows of a batch; the last one of a unit has what is left."""


class Batch(NamedTuple):
    """Consecutive rows of a unit.

    `predictions` leaves the sampling weights out; `weight`, shape (n,), are those as they stand,
    None where there is no such column; `first_row` is the place in the unit, from 0.
    """

    predictions: Predictions
    weight: Floats | None
    first_row: int


@dataclass(frozen=True)
class Reader:
    """Reads units of a layout; `groups` are columns to tell groups apart (`Layout.groups`)."""

    layout: Layout
    classes: Classes
    groups: tuple[str, ...]

    def __post_init__(self) -> None:
        self.layout.groups(self.groups)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth a warning about all units; a batch notes what it is about its rows."""
        return (*self.classes.notes, *self.layout.notes)

    def batches(self, unit: Unit) -> Iterator[Batch]:
        """The rows of a unit, `BATCH_ROWS` at a time."""
        with naming_file(unit.name):
            yield from self._batches(_tables(unit, self._roles))

    def of_arrow(self, parts: Iterable[pa.RecordBatch | pa.Table]) -> Iterator[Batch]:
        """Rows read by the caller, `BATCH_ROWS` at a time."""
        names = list(dict.fromkeys([*self._roles.numeric, *self._roles.text]))

        def chosen() -> Iterator[pa.RecordBatch]:
            for part in parts:
                lacking = [name for name in names if name not in part.schema.names]
                if lacking:
                    raise InputError(
                        f"there is no column {quoted(lacking[0])} in a part of the rows"
                    )
                table = part if isinstance(part, pa.Table) else pa.Table.from_batches([part])
                yield from table.select(names).to_batches()

        yield from self._batches(_in_batches(chosen(), names, "row {} of a part".format, 1))

    @property
    def _roles(self) -> Roles:
        # Asked for by the caller: a column that cannot be a group is no longer left out. The domain
        # is read anyway.
        kept = tuple(name for name in self.groups if name in self.layout.roles.groups)
        return replace(self.layout.roles, groups=kept, groups_asked=True)

    def _batches(self, tables: Iterable[Table]) -> Iterator[Batch]:
        roles, first = self._roles, 0
        for table in tables:
            arguments = arguments_of(table, roles, self.classes, class_columns(table, roles))
            # Percentages are those of all rows, or of none.
            for column in set(roles.numeric) & (table.scaled ^ self.classes.scaled):
                if (~np.isnan(table.numbers(column))).any():
                    refuse_mixed(column)
            weight, clusters = arguments.pop("weight"), arguments.pop("clusters")
            if weight is not None and not ((weight >= 0) & (weight < np.inf)).all():
                with naming_rows(roles, table.place):
                    sampling_weight(weight, len(weight))  # which refuses them
            arguments["notes"] = ()
            with naming_rows(roles, table.place):
                items = Predictions(**arguments)
            items = items.in_clusters(clusters)
            yield Batch(items, weight, first)
            first += table.n_rows


@dataclass(frozen=True)
class Feed:
    """Batches of units: some of the classifiers, the positive class, thresholds of their own."""

    reader: Reader
    models: tuple[str, ...] | None = None
    threshold: float | None = None
    thresholds: Mapping[str, float] | None = None
    positive: Any = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What to say of the rows."""
        known = len(self.reader.classes.texts)
        turned = self.positive is not None and known > 2
        return (*self.reader.notes, *([one_against(self.positive, known)] if turned else []))

    def batches(self, unit: Unit) -> Iterator[Batch]:
        """The rows of a unit."""
        for batch in self.reader.batches(unit):
            yield batch._replace(predictions=self.chosen(batch.predictions))

    def chosen(self, rows: Predictions) -> Predictions:
        """The rows with the classifiers and hard predictions that are asked for."""
        if self.models is not None:
            rows = rows.select_models(self.models)
        if self.positive is not None:
            rows = rows.with_positive(self.positive)
        if self.threshold is not None:
            rows = rows.thresholded(self.threshold)
        return rows.thresholded(self.thresholds) if self.thresholds else rows


def example_of(roles: Roles, classes: Sequence[Any]) -> Predictions:
    """One labeled row with all that the columns can give, before any is read."""
    m, k = len(roles.models), len(classes)
    p = np.full((1, m, k), np.nan)
    votes, scores = np.full((1, m), -1), np.full((1, m), np.nan)
    for j, model in enumerate(roles.models):
        if model in roles.probabilities or model in roles.mapped or model in roles.confidence:
            p[0, j] = 1 / k
        if model in roles.votes:
            votes[0, j] = 0
        if model in roles.scores:
            scores[0, j] = 0.0
    return Predictions(
        p if roles.probabilities or roles.mapped or roles.confidence else None,
        [-1 if roles.label is None else 0],
        votes=votes if roles.votes else None,
        scores=scores if roles.scores else None,
        histogram=np.ones((1, k)) if roles.histogram else None,
        models=roles.models,
        classes=classes,
        positive=classes[1] if k == 2 else None,
    )


def find_classes(
    layout: Layout, options: ColumnOptions, *, skip_bad_files: bool = False
) -> Classes:
    """Decide on the classes; labels and votes are read if the columns do not name them.

    With `skip_bad_files` unreadable units are skipped, as in the full reading.
    """
    seen: dict[str, Counter[str]] = {}
    head: Table | None = None
    for unit in layout.units:  # the first rows of the first one that can be read
        with suppress(InputError), naming_file(unit.name):  # said where it is read in full
            head = next(
                _tables(unit, replace(layout.roles, groups=(), item=None, clusters=())), None
            )
            break
    by_columns = {c for by_class in layout.roles.probabilities.values() for c in by_class}
    if options.classes is None and len(by_columns | set(layout.roles.histogram)) < 2:
        for unit in layout.units:
            try:
                for column, texts in occurring(unit, layout.roles).items():
                    seen.setdefault(column, Counter()).update(texts)
            except InputError:
                if not skip_bad_files:
                    raise
    elif head is not None:
        with naming_file(layout.name):
            texts_of_head = class_columns(head, layout.roles)
        seen = {column: Counter(names.counts()) for column, names in texts_of_head.items()}
    with naming_file(layout.name):
        classes = decide_classes(layout.roles, options, seen).positive_last()
    if head is None:
        return classes
    # How numbers are written is told by the first rows; rows that differ are refused.
    wrong: list[InputError] = []
    roles = replace(layout.roles, groups=(), item=None, clusters=())
    with naming_file(layout.name):
        arguments_of(head, roles, classes, class_columns(head, roles), wrong)
    notes = [note for note in head.notes if "renormalised" not in note]
    return replace(classes, notes=(*classes.notes, *notes), scaled=frozenset(head.scaled))


def occurring(unit: Unit, roles: Roles) -> dict[str, Counter[str]]:
    """The texts of labels and of hard predictions in a unit, and in how many rows each is."""
    only = replace(roles, probabilities={}, mapped={}, scores={}, histogram={}, weight=None)
    only = replace(only, domain=None, item=None, groups=(), confidence={}, clusters=())
    seen: dict[str, Counter[str]] = {}
    with naming_file(unit.name):
        for table in _tables(unit, only) if only.text else ():
            for column, names in class_columns(table, only).items():
                seen.setdefault(column, Counter()).update(names.counts())
    return seen


def _tables(unit: Unit, roles: Roles) -> Iterator[Table]:
    """The columns of a unit that have a role, `BATCH_ROWS` rows at a time."""
    try:
        changed = unit.has_changed()
    except OSError as error:
        raise InputError(f"cannot be read any more: {error.strerror or error}") from None
    if changed:
        raise InputError(CHANGED)
    names = tuple(dict.fromkeys([*roles.numeric, *roles.text]))
    file = unit.file
    if unit.kind == "Parquet":
        file = open_parquet(file, unit.name)
    elif not isinstance(file, SqlTable):
        file = open_delimited(file, unit.name, header=unit.header)
    numbers, texts = needs(roles.numeric, roles.text, unit.filter.names(file.names))
    needed = tuple(dict.fromkeys([*numbers, *texts]))
    numbers, texts = map(tuple, unit.filter.read(numbers, texts))
    first, comma = 0, False
    place: Place = row_place
    if isinstance(file, SqlTable):
        version = None if unit.stamp.digest else unit.stamp[:2]
        parts = file.parts(numbers, texts, unit.start, unit.stop, version)
        if unit.first_row is None:
            place = f"row {{}} from {file.key} {unit.start} on".format
            first = 1
    elif unit.kind == "Parquet":
        first = unit.first_row or 0
        parts = _row_groups(unit, roles, list(dict.fromkeys([*numbers, *texts])))
    else:
        parts = file.parts(numbers, texts, unit.start, unit.stop)
        place, comma = partial(file.place, unit.start), file.delimiter == ";"
    if unit.filter:
        parts = unit.filter.batches(parts)
    tables = _in_batches(parts, needed, place, first, decimal_comma=comma)
    yield from (with_made(table, names) for table in tables)


def _in_batches(
    parts: Iterable[pa.RecordBatch],
    names: Sequence[str],
    place: Place,
    first: int = 0,
    *,
    decimal_comma: bool = False,
) -> Iterator[Table]:
    """Tables of one size, however the file is stored; `first` is the number of the first row."""
    for held in _regrouped(parts, BATCH_ROWS):
        before = first  # of this table: the next one has its own
        at = [part.column(ROW) for part in held] if ROW in held[0].schema.names else None

        def where(row: int, before: int = before, at: list[pa.Array] | None = at) -> str:
            if at is not None:  # among rows of which some are left out
                return place(before + pa.chunked_array(at)[row].as_py())
            return place(before + row)

        yield Table.of_batches(held, names, where, decimal_comma=decimal_comma)
        first += sum(map(len, held)) if at is None else 0


def _row_groups(unit: Unit, roles: Roles, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Columns of the row groups of a unit of Parquet, or of some rows of one."""
    coded = [c for c in (roles.label, *roles.votes.values()) if c is not None and c in names]
    groups, seen = range(unit.start, unit.stop), 0
    assert unit.n_rows is not None
    end = unit.skip + unit.n_rows
    with readable("Parquet"):
        for part in parquet_batches(unit.file, names, groups, rows=BATCH_ROWS, coded=coded):
            before = min(max(unit.skip - seen, 0), len(part))
            own = part.slice(before, max(end - seen - before, 0))
            seen += len(part)
            if len(own):
                yield own
            if unit.left and seen >= end:
                return  # another unit sees whether the row group ends where it should
        if seen != end:
            raise ValueError(f"{seen} rows where {end} are announced")


def _regrouped(parts: Iterable[pa.RecordBatch], size: int) -> Iterator[list[pa.RecordBatch]]:
    """The same rows in batches of one size, so that these do not depend on how a file is stored."""
    held: list[pa.RecordBatch] = []
    missing = size
    for part in parts:
        start = 0
        while start < len(part):
            held.append(part.slice(start, missing))
            start += len(held[-1])
            missing -= len(held[-1])
            if not missing:
                yield held
                held, missing = [], size
    if held:
        yield held
