"""Files of predictions to data sets of which every label is known, or a line that says why not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bench.cells import DatasetFacts
from bench.protocol import Protocol
from bench.splits import halve
from bench.world import JOIN, Trait, World, levels_of, likeness, quality, varied
from fewlabels.data import column_names, read_predictions
from fewlabels.errors import (
    FewlabelsError,
    InputError,
    UsageError,
    listed,
    one_line,
    quoted,
    unknown,
)
from fewlabels.evaluation.groups import MAX_GROUPS
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.predictions import Predictions

_T = TypeVar("_T")

SUFFIXES = (".parquet", ".csv", ".npz")
MOST_ITEMS = 200_000
"""Rows of a file that are used at most, unless something else is asked for."""

_NAMELESS = ("data", "predictions")
_PREDICTIONS = ("p__", "y__", "s__", "h__")


@dataclass(frozen=True)
class Reading:
    """How files are read: which rows, classifiers and columns.

    `where` keeps the rows whose columns have these values (as text); `columns` are further
    arguments of `fewlabels.read_predictions`. Of a file of more rows than `most_items` so many
    are used, drawn at random.
    """

    models: tuple[str, ...] = ()
    exclude_models: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)
    most_items: int = MOST_ITEMS


@dataclass(frozen=True, eq=False)
class Dataset(World):
    """Predictions of a fixed set of classifiers."""

    facts: DatasetFacts
    everything: Predictions
    by: tuple[str, ...]
    protocol: Protocol

    @property
    def labels(self) -> Ints:  # type: ignore[override]
        """Class of every item, (n,)."""
        return self.everything.labels

    @cached_property
    def _levels(self) -> tuple[str, ...]:
        return levels_of(self.protocol, self.facts.models, self.facts.name)

    def levels(self) -> tuple[str, ...]:
        """Levels of what the protocol varies; ("",) where it varies nothing."""
        return self._levels

    def halves(self, run: int) -> tuple[Ints, Ints]:
        """Rows that a run draws from, and rows that its truth is computed on."""
        return halve(self.everything.n_items, run, self.protocol.seed)

    def predictions(self, rows: Ints, level: str, run: int) -> Predictions:
        """What the classifiers of a level say of some rows, with all labels."""
        return varied(self.everything.take(rows), self.protocol.factor, level)

    def traits(self) -> list[Trait]:
        """Sizes and prevalence; quality of each level; likeness where subsets are compared."""
        p = self.everything
        found: list[Trait] = [("", -1, "n_items", float(p.n_items))]
        if p.n_classes == 2:
            found.append(("", -1, "prevalence", float(np.mean(p.labels == 1))))
        levels = dict.fromkeys(["", *(self._levels if self.protocol.factor != "labels" else ())])
        for level in levels:
            of_level = quality(varied(p, self.protocol.factor, level))
            found += [(level, -1, name, value) for name, value in of_level.items()]
        if self.protocol.factor == "subset":
            found += self._likeness()
        return found

    def _likeness(self) -> list[Trait]:
        """Traits of every pair, and their means over the pairs of every subset and of all."""
        pairs = likeness(self.everything)
        sets = {level: tuple(level.split(JOIN)) for level in self._levels}
        sets |= {"": self.facts.models} | {JOIN.join(pair): pair for pair in pairs}
        found: list[Trait] = []
        for level, models in sets.items():
            inside = [t for (a, b), t in pairs.items() if a in models and b in models]
            for name in inside[0] if inside else ():
                values = [t[name] for t in inside if not np.isnan(t[name])]
                if values:
                    found.append((level, -1, name, float(np.mean(values))))
        return found

    def traits_of_run(self, level: str, run: int, truth: Predictions) -> list[Trait]:
        """Nothing: the classifiers are the same in every run."""
        return []


def find_files(sources: Iterable[str | Path]) -> list[Path]:
    """The files that a user names, and those in the folders that he names, or one level below.

    Raises
    ------
    UsageError
        If there is nothing at a path, or no file in a folder.
    """
    found: dict[Path, None] = {}
    here = Path.cwd()
    for source in map(Path, sources):
        if source.is_relative_to(here):
            source = source.relative_to(here)  # messages are read by people
        if source.is_file():
            files = [source]
        elif source.is_dir():
            files = _files_in(source) or [
                f for below in sorted(source.iterdir()) if below.is_dir() for f in _files_in(below)
            ]
            if not files:
                raise InputError(
                    f"{quoted(str(source))} holds no files of predictions "
                    f"({', '.join(SUFFIXES)}), nor do the folders in it"
                )
        else:
            raise UsageError(f"`data` {quoted(str(source))}: there is no such file or folder")
        found |= dict.fromkeys(files)
    return list(found)


def _files_in(folder: Path) -> list[Path]:
    return sorted(
        f
        for f in folder.iterdir()
        if f.name.lower().endswith(SUFFIXES) and not f.name.startswith((".", "_")) and f.is_file()
    )


def name_files(files: Sequence[Path]) -> list[str]:
    """A name for each: its stem, or that of its folder where the stem says nothing; unique.

    The first of a name keeps it, so that files added later rename nothing.
    """
    names: list[str] = []
    for file in files:
        stem = file.name.partition(".")[0] if file.name.count(".") == 1 else file.stem
        folder = file.resolve().parent.name
        short = one_line(folder if stem.lower() in _NAMELESS else stem)
        longer = f"{one_line(folder)}-{short}"
        numbered = (f"{longer}-{k}" for k in range(2, len(files) + 2))
        names.append(next(n for n in (short, longer, *numbered) if n not in names))
    return names


def read_datasets(
    sources: Sequence[str | Path], protocol: Protocol, reading: Reading
) -> tuple[list[Dataset], list[str]]:
    """Every data set that fits the protocol, and a line for each file that does not.

    Raises
    ------
    UsageError
        If no file has a classifier that is asked for.
    InputError
        If no file can be used.
    """
    return read_each(
        sources,
        reading,
        lambda file, name, offered: _read(file, name, protocol, reading, offered),
        f" for protocol {protocol.name!r}",
    )


def read_each(
    sources: Sequence[str | Path],
    reading: Reading,
    read_one: Callable[[Path, str, dict[str, None]], _T],
    purpose: str = "",
) -> tuple[list[_T], list[str]]:
    """What `read_one` makes of every file, and a line for each file that it refuses.

    It is given the file, its name, and a dictionary to which it adds the file's classifiers.

    Raises
    ------
    UsageError, InputError
        As `read_datasets`.
    """
    files = find_files(sources)
    worlds, skipped = [], []
    offered: dict[str, None] = {}
    for file, name in zip(files, name_files(files), strict=True):
        try:
            worlds.append(read_one(file, name, offered))
        except FewlabelsError as error:
            line = str(error)
            skipped.append(one_line(line if line.startswith(str(file)) else f"{file}: {line}"))
    for model in (*reading.models, *reading.exclude_models):
        if offered and model not in offered:
            raise UsageError(unknown("model", model, offered))
    if not worlds:
        raise InputError(f"no file can be used{purpose}: {'; '.join(skipped)}")
    return worlds, skipped


def open_file(
    file: Path,
    columns: Sequence[str],
    reading: Reading,
    fits: Fits,
    offered: dict[str, None],
) -> tuple[Predictions, dict[str, Array], Bools, list[str]]:
    """The rows of a file, or a sample of them, with these columns as groups besides.

    Returns the rows, the columns of their groups, the rows (n,) that `where` keeps, and notes;
    `offered` gets the names of the classifiers.
    """
    has = column_names(file)
    wanted = dict.fromkeys([*columns, *(column for column, _ in reading.where)])
    keep = [c for c in wanted if c in has] if has else None
    read, drawn = _read_pool(file, keep, reading, fits)
    offered |= dict.fromkeys(read.models)
    groups = dict(read.groups)
    if read.domain is not None:
        groups["domain"] = read.domain
    rows = np.ones(read.n_items, dtype=bool)
    for column, value in reading.where:
        if column not in groups:
            raise InputError(f"has no column {quoted(column)} (`where` {column}={value})")
        texts = np.array([str(v) for v in groups[column]], dtype=object)
        rows &= texts == value
        if not rows.any():
            shown = listed(dict.fromkeys(texts), 5)
            raise InputError(
                f"no row is left by `where` {column}={value}; the column holds {shown}"
            )
    notes = [*read.notes, *drawn, *(f"only rows of {c}={v}" for c, v in reading.where)]
    return read, groups, rows, notes


def digest_of(names: object, *blocks: Array) -> str:
    """Hash of all that results depend on: names and classes, and arrays of numbers or texts."""
    digest = hashlib.blake2b(repr(names).encode(), digest_size=16)
    for block in blocks:
        if block.dtype == object:
            digest.update("\0".join(map(str, block)).encode("utf-8", "replace"))
        else:
            digest.update(np.ascontiguousarray(block).tobytes())
    return digest.hexdigest()


def _read(
    file: Path, name: str, protocol: Protocol, reading: Reading, offered: dict[str, None]
) -> Dataset:
    read, groups, rows, notes = open_file(
        file, protocol.by, reading, {**LABELED, **ANNOTATED}, offered
    )
    labels, said = _truth(read, rows)
    notes += said
    unknown_labels = rows & (labels < 0)
    if unknown_labels.any() and not said:
        notes.append(f"{int(unknown_labels.sum()):,} rows without a label are left out")
    rows &= labels >= 0
    read, said = with_probabilities(read, reading)
    notes += said
    has = column_names(file)
    others = [c for c in has if not c.startswith(_PREDICTIONS) and c != "label"] if has else groups
    by, named, said = _groups(protocol, groups, rows, others)
    notes += said
    if np.ptp(read.weight) > 0:
        notes.append("weights are not used")
    assert read.probabilities is not None
    given = rows & read.has_probabilities.any(axis=1)
    if given.sum() < rows.sum():
        notes.append(f"{int(rows.sum() - given.sum()):,} rows without any prediction are left out")
    everything = Predictions(
        read.probabilities[given], labels[given],
        groups={c: named[c][given] for c in by}, models=read.models, classes=read.classes,
    )  # fmt: skip
    k = everything.n_classes
    if (protocol.serves == "two classes" and k != 2) or (
        protocol.serves == "more than two classes" and k < 3
    ):
        raise InputError(f"has {k} classes; {protocol.name} serves {protocol.serves}")
    count = np.bincount(everything.labels, minlength=k)
    rare = [everything.classes[j] for j in np.flatnonzero(count < 2)]
    if rare:
        raise InputError(
            f"a class is rarer than needed: class {listed(rare)} has fewer than 2 items; label "
            "more of it, or take its rows and columns out of the file"
        )
    facts = DatasetFacts(
        name, everything.n_items, round(everything.n_items / 2), everything.models,
        everything.classes, by, tuple(one_line(n) for n in notes), str(file),
        digest_of(
            (everything.models, tuple(map(str, everything.classes)), by),
            read.probabilities[given], everything.labels, *(everything.groups[c] for c in by),
        ),
    )  # fmt: skip
    world = Dataset(facts, everything, by, protocol)
    world.levels()
    return world


def _truth(read: Predictions, rows: Bools) -> tuple[Ints, list[str]]:
    """Class of every item, -1 unknown: the label, or without any the annotators' majority."""
    if read.n_labeled:
        return read.labels, []
    h = read.histogram
    if h is None:
        raise InputError("has no labels to compare with; name their column with `label`")
    top = h.max(axis=1)
    clear = (top > 0) & ((h == top[:, None]).sum(axis=1) == 1)
    ties = int((rows & ~clear).sum())
    left_out = f"; {ties:,} rows with a tie or without a count are left out" if ties else ""
    note = f"the truth is the majority of the annotators (h__ columns){left_out}"
    return np.where(clear, np.argmax(h, axis=1), -1), [note]


def with_probabilities(read: Predictions, reading: Reading) -> tuple[Predictions, list[str]]:
    """The classifiers asked for that give probabilities."""
    absent = [m for m in reading.models if m not in read.models]
    if absent:
        raise InputError(
            f"has no classifier {listed(absent)} (`models`); it has {listed(read.models)}"
        )
    asked = [m for m in reading.models or read.models if m not in reading.exclude_models]
    gives = np.asarray(read.has_probabilities.any(axis=0))
    kept = [m for m in asked if gives[read.models.index(m)]]
    if not gives.any():
        raise InputError(
            "has votes or scores alone, and a benchmark needs probabilities (columns "
            "p__<model>__<class>)"
        )
    if not kept:
        able = listed(m for m, given in zip(read.models, gives, strict=True) if given)
        raise InputError(
            "no classifier is left that gives probabilities (`models`, `exclude_models`); those "
            f"that do are {able}"
        )
    silent = [m for m in asked if m not in kept]
    said = [f"left out, as they give no probabilities: {listed(silent, 5)}"] if silent else []
    return read.select_models(kept), said


def _groups(
    protocol: Protocol, groups: Mapping[str, Array], rows: Bools, others: Iterable[str]
) -> tuple[tuple[str, ...], dict[str, Array], list[str]]:
    """Columns to estimate by, their groups as text (n,), and notes.

    `others` are all columns of the file that could be asked for.
    """
    by = tuple(c for c in protocol.by if c in groups)
    absent = [c for c in protocol.by if c not in groups]
    if absent and not by:
        there = listed(map(quoted, others), 20) or "none"
        raise InputError(
            f"has no column {listed(map(quoted, absent))} to estimate by; name others with `by`: "
            f"there are {there}"
        )
    notes = [f"no column {quoted(c)} to estimate by" for c in absent]
    named = {}
    for column in by:
        named[column], said = cut(groups[column], rows, column, protocol.bins.get(column))
        notes += said
        count = len(set(named[column][rows].tolist()))
        if count > MAX_GROUPS:
            raise InputError(
                f"column {quoted(column)} has {count} groups, more than {MAX_GROUPS}; leave it out "
                "of `by`, or cut a numeric one with `bins`"
            )
    return by, named, notes


MOST_VALUES = 12
"""A numeric column with more distinct values is cut."""

_QUINTILES = (0.2, 0.4, 0.6, 0.8)


def cut(
    values: Array, rows: Bools, column: str, edges: Sequence[float] | None
) -> tuple[Array, list[str]]:
    """Group of each item as text (n,), and what was done where nobody asked for it.

    Parameters
    ----------
    values
        Text of each item, None where it is not given.
    rows
        Items that count; quintiles are theirs.
    edges
        Where to cut, rising; None cuts numeric columns of many values at quintiles.

    Raises
    ------
    InputError
        If edges are given and a value is no number.
    """
    numbers = _numbers(values)
    if edges is None:
        if numbers is None or len(set(values[rows].tolist())) <= MOST_VALUES:
            return values, []
        known = numbers[rows & ~np.isnan(numbers)]
        cuts = np.unique(np.quantile(known, _QUINTILES, method="inverted_cdf"))
        shown = listed([f"{e:g}" for e in cuts])
        note = f"column {quoted(column)} is cut at its quintiles ({shown}); other edges by `bins`"
        return _binned(numbers, cuts), [note]
    if numbers is None:
        raise InputError(
            f"column {quoted(column)} cannot be cut (`bins`): not all its values are numbers"
        )
    return _binned(numbers, np.asarray(edges, dtype=float)), []


def _numbers(values: Array) -> Floats | None:
    """The values as numbers, NaN where not given; None if some are none."""
    try:
        return np.array([np.nan if v in (None, "null") else float(v) for v in values.tolist()])
    except ValueError:
        return None


def _binned(numbers: Floats, edges: Floats) -> Array:
    """Names of half-open intervals [a, b)."""
    texts = [f"{e:g}" for e in edges]
    between = [f"{a} to <{b}" for a, b in pairwise(texts)]
    names = np.array([f"<{texts[0]}", *between, f">={texts[-1]}", None], dtype=object)
    place = np.searchsorted(edges, numbers, side="right")
    return names[np.where(np.isnan(numbers), len(edges) + 1, place)]


Fits = Mapping[str, Callable[[Predictions], Bools]]
"""Conditions on rows, in words."""


def _annotated(rows: Predictions) -> Bools:
    if rows.histogram is None:
        return np.zeros(rows.n_items, dtype=bool)
    return np.asarray(rows.histogram.any(axis=1) & rows.has_probabilities.any(axis=1))


LABELED: Fits = {
    "a label and a prediction": lambda rows: rows.labeled & rows.has_probabilities.any(axis=1)
}
ANNOTATED: Fits = {"annotators' counts and a prediction": _annotated}


def _read_pool(
    file: Path, keep: Sequence[str] | None, reading: Reading, fits: Fits
) -> tuple[Predictions, list[str]]:
    """A file, or where it has more rows than are to be used a random sample of those that fit.

    The sample depends on what the rows say, not on their order; a note says how it was drawn.

    Parameters
    ----------
    fits
        What rows must have, in words; the first of these that any row has is what is asked of all.

    Raises
    ------
    InputError
        If the file cannot be read, or no row fits.
    """
    most, where = reading.most_items, reading.where
    if file.suffix.lower() != ".npz":
        from bench.draw_rows import draw_rows
        from fewlabels.streaming.units import about_rows

        def within(fit: Callable[[Predictions], Bools]) -> Callable[[Predictions], Bools]:
            return lambda rows: np.asarray(fit(rows)) & _among(rows, where)

        if about_rows(file) > most:
            conditions = {what: within(fit) for what, fit in fits.items()}
            drawn, n_rows = draw_rows(file, most, conditions, keep=keep, **reading.columns)
            if n_rows > most:
                for what, (rows, n_fit) in drawn.items():
                    if rows is not None:
                        sample = rows.n_items < n_fit
                        used = f"{rows.n_items:,} of" if sample else "all"
                        how = ", drawn at random (`most_items`)" if sample else ""
                        return rows, [
                            f"{used} the {n_fit:,} rows with {what} are used{how}; there are "
                            f"{n_rows:,} rows"
                        ]
                of = "".join(f" of {column}={value}" for column, value in where)
                raise InputError(
                    f"none of its {n_rows:,} rows{of} has {listed(fits, 5)}; name columns of other "
                    "names with `label` and `model`"
                )
    return read_predictions(file, keep=keep, **reading.columns), []


def _among(rows: Predictions, where: Sequence[tuple[str, str]]) -> Bools:
    """Rows that have all of these values; a missing column is refused later, by its name."""
    out = np.ones(rows.n_items, dtype=bool)
    groups = dict(rows.groups)
    if rows.domain is not None:
        groups["domain"] = rows.domain
    for column, value in where:
        if column in groups:
            out &= np.array([str(v) == value for v in groups[column].tolist()], dtype=bool)
    return out
