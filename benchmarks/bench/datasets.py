"""Files of predictions to data sets of which every label is known, or a line that says why not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from bench.protocol import Protocol
from bench.splits import halve
from bench.world import JOIN, DatasetFacts, Trait, levels_of, likeness, mean_of, quality, varied
from fewlabels import FewlabelsError, InputError, Predictions, UsageError, read_predictions

Array = np.ndarray
_T = TypeVar("_T")

SUFFIXES = (".parquet", ".csv", ".npz")
_NAMELESS = ("data", "predictions")


@dataclass(frozen=True)
class Reading:
    """How files are read: which classifiers, rows (column -> value) and columns.

    `columns` are further arguments of `fewlabels.read_predictions`.
    """

    models: Sequence[str] = ()
    exclude_models: Sequence[str] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Predictions of a fixed set of classifiers; see `bench.world.World`."""

    facts: DatasetFacts
    everything: Predictions
    by: tuple[str, ...]
    levels: tuple[str, ...]
    protocol: Protocol

    @property
    def labels(self) -> Array:
        """Class of every item, (n,)."""
        return self.everything.labels

    def halves(self, run: int) -> tuple[Array, Array]:
        """Rows that a run draws from, and rows that its truth is computed on."""
        return halve(self.everything.n_items, run, self.protocol.seed)

    def predictions(self, rows: Array, level: str, run: int) -> Predictions:
        """What the classifiers of a level say of some rows, with all labels."""
        return varied(self.everything.take(rows), self.protocol.factor, level)

    def traits(self) -> list[Trait]:
        """Sizes and prevalence; quality of each level; likeness where subsets are compared."""
        p, factor = self.everything, self.protocol.factor
        found: list[Trait] = [("", -1, "n_items", float(p.n_items))]
        if p.n_classes == 2:
            found.append(("", -1, "prevalence", float(np.mean(p.labels == 1))))
        for level in dict.fromkeys(["", *(self.levels if factor != "labels" else ())]):
            found += [(level, -1, *trait) for trait in quality(varied(p, factor, level)).items()]
        if factor != "subset":
            return found
        pairs = likeness(p)
        sets = {level: tuple(level.split(JOIN)) for level in self.levels}
        sets |= {"": self.facts.models} | {JOIN.join(pair): pair for pair in pairs}
        for level, models in sets.items():
            inside = pd.DataFrame([t for pair, t in pairs.items() if {*pair} <= {*models}])
            means = ((level, -1, str(name), mean_of(inside[name])) for name in inside)
            found += [trait for trait in means if not np.isnan(trait[3])]
        return found

    def traits_of_run(self, level: str, run: int, truth: Predictions) -> list[Trait]:
        """Nothing: the classifiers are the same in every run."""
        return []


def find_files(sources: Iterable[str | Path]) -> list[Path]:
    """The files that are named, and those in the folders that are, or one level below."""

    def files_in(folder: Path) -> list[Path]:
        files = (f for f in folder.iterdir() if f.suffix.lower() in SUFFIXES and f.is_file())
        return sorted(f for f in files if not f.name.startswith((".", "_")))

    found: list[Path] = []
    for source in map(Path, sources):
        if not source.exists():
            raise UsageError(f"`data` {str(source)!r}: there is no such file or folder")
        files = [source] if source.is_file() else files_in(source)
        files = files or [f for b in sorted(source.iterdir()) if b.is_dir() for f in files_in(b)]
        if not files:
            raise InputError(f"{str(source)!r} holds no files of predictions {SUFFIXES}")
        found += files
    return list(dict.fromkeys(found))


def name_files(files: Sequence[Path]) -> list[str]:
    """A name for each: its stem, or that of its folder where the stem says nothing; unique.

    The first of a name keeps it, so that files added later rename nothing.
    """
    names: list[str] = []
    for file in files:
        folder = file.resolve().parent.name
        short = folder if file.stem.lower() in _NAMELESS else file.stem
        numbered = (f"{folder}-{short}-{k}" for k in range(2, len(files) + 2))
        names.append(next(n for n in (short, f"{folder}-{short}", *numbered) if n not in names))
    return names


def read_each(files: Sequence[Path], read: Callable[[Path, str], _T]) -> tuple[list[_T], list[str]]:
    """What `read` makes of every file and its name, and a line for each file that it refuses."""
    worlds, skipped = [], []
    for file, name in zip(files, name_files(files), strict=True):
        try:
            worlds.append(read(file, name))
        except FewlabelsError as error:
            skipped.append(f"{file.name}: {str(error).removeprefix(f'{file}: ')}")
    if not worlds:
        raise InputError(f"no file can be used: {'; '.join(skipped) or 'there is none'}")
    return worlds, skipped


def read_datasets(
    sources: Sequence[str | Path], protocol: Protocol, reading: Reading
) -> tuple[list[Dataset], list[str]]:
    """Every data set that fits the protocol, and a line for each file that does not."""
    return read_each(find_files(sources), lambda f, name: _read(f, name, protocol, reading))


def open_file(
    file: Path, columns: Sequence[str], reading: Reading
) -> tuple[Predictions, pd.DataFrame, Array, list[str]]:
    """A file with the classifiers that give probabilities, and these columns as groups besides.

    Returns what it says, the columns of groups as text, the rows (n,) that `where` keeps, and
    notes.
    """
    keep = None
    try:
        if (kind := file.suffix.lower()) != ".npz":
            parquet = kind == ".parquet"
            there = pq.read_schema(file).names if parquet else [*pd.read_csv(file, nrows=0)]
            keep = [c for c in dict.fromkeys([*columns, *reading.where]) if c in there]
        read = read_predictions(file, keep=keep, **reading.columns)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}") from None
    except TypeError as error:
        raise UsageError(f"`columns`: {error}") from None
    groups = pd.DataFrame({name: np.asarray(values) for name, values in read.groups.items()})
    groups = groups.reindex(range(read.n_items))
    if read.domain is not None:
        groups["domain"] = np.asarray(read.domain)
    rows = np.ones(read.n_items, dtype=bool)
    for column, value in reading.where.items():
        if column not in groups:
            raise InputError(f"has no column {column!r} (`where` {column}={value})")
        rows &= (groups[column].astype(str) == value).to_numpy()
    if not rows.any():
        raise InputError(f"no row is left by `where` {dict(reading.where)}")
    notes = [*read.notes, *(f"only rows of {c}={v}" for c, v in reading.where.items())]
    absent = [m for m in reading.models if m not in read.models]
    if absent:
        raise InputError(f"has no classifier {absent[0]!r} (`models`); it has {read.models}")
    asked = [m for m in reading.models or read.models if m not in reading.exclude_models]
    gives = np.asarray(read.has_probabilities.any(axis=0))
    used = [m for m in asked if gives[read.models.index(m)]]
    if not used:
        raise InputError(
            "no classifier is left that gives probabilities (columns p__<model>__<class>; "
            "`models`, `exclude_models`)"
        )
    if silent := [m for m in asked if m not in used]:
        notes.append(f"left out, as they give no probabilities: {', '.join(silent)}")
    return read.select_models(used), groups[[c for c in columns if c in groups]], rows, notes


def kept_of(rows: Array, needs: Mapping[str, Array]) -> tuple[Array, list[str]]:
    """Rows (n,) that have what is needed, (n,) by what the others are; a note of each of these."""
    notes = []
    for why, good in needs.items():
        if lost := int((rows & ~good).sum()):
            notes.append(f"{lost:,} rows {why} are left out")
        rows = rows & good
    return rows, notes


def digest_of(*parts: Any) -> str:
    """Hash of all that results depend on: names and classes, and arrays of numbers or texts."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        numbers = isinstance(part, np.ndarray) and part.dtype != object
        text = part.tolist() if isinstance(part, np.ndarray) else part
        digest.update(np.ascontiguousarray(part).tobytes() if numbers else repr(text).encode())
    return digest.hexdigest()


def _read(file: Path, name: str, protocol: Protocol, reading: Reading) -> Dataset:
    read, groups, rows, notes = open_file(file, protocol.by, reading)
    if not read.n_labeled and read.histogram is None:
        raise InputError("has no labels to compare with; name their column with `label`")
    labels = read.labels
    if not read.n_labeled:
        h = read.histogram
        clear = (h.max(axis=1) > 0) & ((h == h.max(axis=1)[:, None]).sum(axis=1) == 1)
        labels = np.where(clear, np.argmax(h, axis=1), -1)
        notes.append("the truth is the majority of the annotators (h__ columns)")
    needs = {
        "without a label": labels >= 0,
        "without any prediction": read.has_probabilities.any(axis=1),
    }
    rows, left_out = kept_of(rows, needs)
    notes += left_out
    by = tuple(c for c in protocol.by if c in groups)
    if protocol.by and not by:
        there = ", ".join(read.groups) or "none"
        raise InputError(f"has no column {protocol.by[0]!r} to estimate by; there are {there}")
    notes += [f"no column {c!r} to estimate by" for c in protocol.by if c not in by]
    used, kept = groups.loc[rows], {}
    for column in by:
        kept[column], cut_at = cut(used[column], protocol.bins.get(column))
        notes += cut_at
    models, classes = read.models, read.classes
    everything = Predictions(
        read.probabilities[rows], labels[rows], groups=kept, models=models, classes=classes
    )
    k, n = everything.n_classes, everything.n_items
    if protocol.serves != "any" and (k == 2) != (protocol.serves == "two classes"):
        raise InputError(f"has {k} classes; {protocol.name} serves {protocol.serves}")
    count = np.bincount(everything.labels, minlength=k)
    if count.min() < 2:
        rare = everything.classes[int(count.argmin())]
        raise InputError(f"a class is rarer than needed: class {rare} has fewer than 2 items")
    models, classes = everything.models, everything.classes
    digest = digest_of((models, classes, by), read.probabilities[rows], everything.labels,
                       *kept.values())  # fmt: skip
    texts = tuple(map(str, classes))
    facts = DatasetFacts(name, n, round(n / 2), models, texts, tuple(notes), digest)
    return Dataset(facts, everything, by, levels_of(protocol, models, name), protocol)


MOST_VALUES, _QUINTILES = 12, (0.2, 0.4, 0.6, 0.8)
"""A numeric column with more distinct values is cut, at these quantiles unless told otherwise."""


def cut(values: pd.Series, edges: Sequence[float] | None) -> tuple[Array, list[str]]:
    """Group of each item as text (n,), and what was done where nobody asked for it.

    Numeric columns of many values are cut at quintiles, or where `edges` say.
    """
    texts = values.where(values.notna(), None).astype(object)
    numbers = pd.to_numeric(texts.replace("null", None), errors="coerce")
    is_numeric = numbers.notna().sum() == (texts.notna() & (texts != "null")).sum()
    notes = []
    if edges is None:
        if not is_numeric or texts.nunique() <= MOST_VALUES:
            return texts.to_numpy(), []
        edges = np.unique(np.quantile(numbers.dropna(), _QUINTILES, method="inverted_cdf"))
        shown = ", ".join(f"{e:g}" for e in edges)
        notes = [f"column {values.name!r} is cut at its quintiles ({shown}); others by `bins`"]
    elif not is_numeric:
        raise InputError(f"column {values.name!r} cannot be cut (`bins`): not all are numbers")
    at = [f"{e:g}" for e in edges]
    names = [f"<{at[0]}", *(f"{a} to <{b}" for a, b in pairwise(at)), f">={at[-1]}"]
    limits = [-np.inf, *edges, np.inf]
    found = pd.cut(numbers, limits, right=False, labels=names).astype(object)
    return found.where(found.notna(), None).to_numpy(), notes
