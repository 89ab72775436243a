"""Files with probabilities and histograms of labels, or a line that says why a file is none."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fewlabels.bench.datasets import Reading, find_files, name_files
from fewlabels.bench.results import DatasetFacts
from fewlabels.bench.seeds import generator
from fewlabels.errors import FewlabelsError, InputError, UsageError
from fewlabels.frames import column_names, read_predictions
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.predictions import Predictions
from fewlabels.wording import listed, one_line, quoted, unknown

PARTITION = "partition"
VALID, TEST = ("valid", "validation"), ("test",)
"""Values of the column `partition`; rows of other values (of training, say) are left out."""


@dataclass(frozen=True, eq=False)
class HistogramWorld:
    """Items that every classifier has probabilities for and somebody labeled.

    `probabilities` (n, M, K); `histogram` (n, K) counts; `valid` (n,) marks the validation items
    where the file says which they are, else None.
    """

    facts: DatasetFacts
    probabilities: Floats
    histogram: Floats
    valid: Bools | None

    def parts(self, seed: int, run: int) -> tuple[Ints, Ints]:
        """Rows to validate and to test on: the file's own, or random halves, new in every run."""
        if self.valid is not None:
            return np.flatnonzero(self.valid), np.flatnonzero(~self.valid)
        n = len(self.histogram)
        order = generator("parts", seed, self.facts.name, run).permutation(n)
        return np.sort(order[: n // 2]), np.sort(order[n // 2 :])


def read_worlds(
    sources: Sequence[str | Path], reading: Reading
) -> tuple[list[HistogramWorld], list[str]]:
    """Every file with probabilities and histograms, and a line for each file without.

    Raises
    ------
    UsageError
        If no file has a classifier that is asked for.
    InputError
        If no file can be used.
    """
    files = find_files(sources)
    worlds, skipped = [], []
    offered: dict[str, None] = {}
    for file, name in zip(files, name_files(files), strict=True):
        try:
            worlds.append(_read(file, name, reading, offered))
        except FewlabelsError as error:
            line = str(error)
            skipped.append(one_line(line if line.startswith(str(file)) else f"{file}: {line}"))
    for model in (*reading.models, *reading.exclude_models):
        if offered and model not in offered:
            raise UsageError(unknown("model", model, offered))
    if not worlds:
        raise InputError(f"no file can be used: {'; '.join(skipped)}")
    return worlds, skipped


def _read(file: Path, name: str, reading: Reading, offered: dict[str, None]) -> HistogramWorld:
    has = column_names(file)
    wanted = dict.fromkeys([PARTITION, *(column for column, _ in reading.where)])
    read = read_predictions(file, keep=[c for c in wanted if c in has], **reading.columns)
    offered |= dict.fromkeys(read.models)
    notes = [*read.notes, *(f"only rows of {c}={v}" for c, v in reading.where)]
    read = _with_probabilities(read, reading, notes)
    rows = _rows(read, reading.where)
    partition = read.groups.get(PARTITION)
    valid = None
    if partition is not None:
        texts = np.array([str(v).strip().lower() for v in partition], dtype=object)
        valid = np.isin(texts, VALID)
        rows &= _said(valid | np.isin(texts, TEST), rows, "neither valid nor test", notes)
        notes.append("validation and test items are those of the column `partition`")
    histogram = _histogram(read)
    complete = np.asarray(read.has_probabilities.all(axis=1))
    rows &= _said(complete, rows, "without a prediction of every classifier", notes)
    rows &= _said(histogram.sum(axis=1) > 0, rows, "without a label", notes)
    assert read.probabilities is not None
    probabilities, histogram = read.probabilities[rows], histogram[rows]
    valid = None if valid is None else valid[rows]
    _check(histogram, valid)
    facts = DatasetFacts(
        name, len(histogram), int(valid.sum()) if valid is not None else len(histogram) // 2,
        read.models, read.classes, (), tuple(map(one_line, notes)), str(file),
        _digest(read, probabilities, histogram, valid),
    )  # fmt: skip
    return HistogramWorld(facts, probabilities, histogram, valid)


def _with_probabilities(read: Predictions, reading: Reading, notes: list[str]) -> Predictions:
    """The classifiers asked for, without those that have votes or scores alone."""
    absent = [m for m in reading.models if m not in read.models]
    if absent:
        raise InputError(
            f"has no classifier {listed(absent)} (`models`); it has {listed(read.models)}"
        )
    gives = np.asarray(read.has_probabilities.any(axis=0))
    chosen = [m for m in reading.models or read.models if m not in reading.exclude_models]
    kept = [m for m in chosen if gives[read.models.index(m)]]
    if not kept:
        raise InputError(
            "no classifier is left that gives probabilities (columns p__<model>__<class>); name "
            "the columns, or other `models`"
        )
    silent = [m for m in chosen if m not in kept]
    if silent:
        notes.append(f"left out, as they give no probabilities: {listed(silent, 5)}")
    return read.select_models(kept)


def _rows(read: Predictions, where: Sequence[tuple[str, str]]) -> Bools:
    rows = np.ones(read.n_items, dtype=bool)
    groups: Mapping[str, Array] = read.groups
    for column, value in where:
        if column not in groups:
            raise InputError(f"has no column {quoted(column)} (`where` {column}={value})")
        rows &= np.array([str(v) == value for v in groups[column]], dtype=bool)
        if not rows.any():
            raise InputError(f"no row is left by `where` {column}={value}")
    return rows


def _said(good: Bools, rows: Bools, why: str, notes: list[str]) -> Bools:
    """`good` itself, once it is noted how many of the rows are not."""
    lost = int((rows & ~good).sum())
    if lost:
        notes.append(f"{lost:,} rows {why} are left out")
    return good


def _histogram(read: Predictions) -> Floats:
    if read.histogram is None:
        raise InputError(
            "has no histograms of labels; name the counts of each class h__<class>, one column each"
        )
    counts: Floats = np.asarray(read.histogram, dtype=float)
    return counts


def _check(histogram: Floats, valid: Bools | None) -> None:
    """Refuse what nothing can be learned from, or measured on."""
    for part, name in ((valid, "valid"), (None if valid is None else ~valid, "test")):
        some = histogram if part is None else histogram[part]
        several = int((some.sum(axis=1) >= 2).sum())
        if several < 2:
            where = "" if valid is None else f" of {PARTITION} {name}"
            raise InputError(
                f"{several} items{where} have two labels or more, and the benchmark needs 2 at "
                "least to see experts disagree; add items that several annotators labeled"
            )


def _digest(
    read: Predictions, probabilities: Floats, histogram: Floats, valid: Bools | None
) -> str:
    """Hash of all that results depend on."""
    said = hashlib.blake2b(digest_size=16)
    said.update(repr((read.models, tuple(map(str, read.classes)))).encode())
    for block in (probabilities, histogram, *([] if valid is None else [valid])):
        said.update(np.ascontiguousarray(block).tobytes())
    return said.hexdigest()
