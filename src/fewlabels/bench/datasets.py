"""Files of predictions to data sets of which every label is known, or a line that says why not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fewlabels.bench.bins import cut
from fewlabels.bench.pool_of_file import ANNOTATED, LABELED, MOST_ITEMS, read_pool
from fewlabels.bench.protocol import Protocol
from fewlabels.bench.results import DatasetFacts
from fewlabels.bench.splits import halve
from fewlabels.bench.traits import likeness, quality
from fewlabels.bench.variants import JOIN, levels_of, varied
from fewlabels.bench.world import Trait, World
from fewlabels.data import column_names
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
from fewlabels.kernels.arrays import Array, Bools, Ints
from fewlabels.predictions import Predictions

_T = TypeVar("_T")

SUFFIXES = (".parquet", ".csv", ".npz")
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
    for source in map(_shorter, sources):
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


def _shorter(source: str | Path) -> Path:
    """The path from here, where it leads below: messages are read by people."""
    path = Path(source)
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


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
        short = one_line(_own_name(file))
        longer = f"{one_line(file.resolve().parent.name)}-{short}"
        numbered = (f"{longer}-{k}" for k in range(2, len(files) + 2))
        names.append(next(n for n in (short, longer, *numbered) if n not in names))
    return names


def _own_name(file: Path) -> str:
    stem = file.name.partition(".")[0] if file.name.count(".") == 1 else file.stem
    return file.resolve().parent.name if stem.lower() in _NAMELESS else stem


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


def _read(
    file: Path, name: str, protocol: Protocol, reading: Reading, offered: dict[str, None]
) -> Dataset:
    has = column_names(file)
    wanted = [*protocol.by, *(c for c, _ in reading.where)]
    keep = [c for c in dict.fromkeys(wanted) if c in has] if has else None
    read, drawn = read_pool(
        file, reading.most_items, keep, reading.where, {**LABELED, **ANNOTATED}, reading.columns
    )
    offered |= dict.fromkeys(read.models)
    notes = [*read.notes, *drawn, *(f"only rows of {c}={v}" for c, v in reading.where)]
    groups = dict(read.groups)
    if read.domain is not None:
        groups["domain"] = read.domain
    rows = rows_where(read.n_items, groups, reading.where)
    labels, said = _truth(read, rows)
    notes += said
    unknown_labels = rows & (labels < 0)
    if unknown_labels.any() and not said:
        notes.append(f"{int(unknown_labels.sum()):,} rows without a label are left out")
    rows &= labels >= 0
    read, said = with_probabilities(read, reading)
    notes += said
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
    _check_classes(everything, protocol)
    facts = DatasetFacts(
        name, everything.n_items, round(everything.n_items / 2), everything.models,
        everything.classes, by, tuple(one_line(n) for n in notes), str(file),
        _digest(everything, by),
    )  # fmt: skip
    world = Dataset(facts, everything, by, protocol)
    world.levels()
    return world


def rows_where(n: int, groups: Mapping[str, Array], where: Sequence[tuple[str, str]]) -> Bools:
    """Rows that `where` keeps."""
    rows = np.ones(n, dtype=bool)
    for column, value in where:
        if column not in groups:
            raise InputError(f"has no column {quoted(column)} (`where` {column}={value})")
        texts = np.array([str(v) for v in groups[column]], dtype=object)
        rows &= texts == value
        if not rows.any():
            shown = listed(dict.fromkeys(texts), 5)
            raise InputError(
                f"no row is left by `where` {column}={value}; the column holds {shown}"
            )
    return rows


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


def _check_classes(everything: Predictions, protocol: Protocol) -> None:
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


def _digest(everything: Predictions, by: Sequence[str]) -> str:
    """Hash of all that results depend on."""
    said = hashlib.blake2b(digest_size=16)
    names = (everything.models, tuple(map(str, everything.classes)), tuple(by))
    said.update(repr(names).encode())
    for block in (everything.probabilities, everything.labels):
        said.update(np.ascontiguousarray(block).tobytes())
    for column in by:
        said.update("\0".join(map(str, everything.groups[column])).encode("utf-8", "replace"))
    return said.hexdigest()
