"""Files with probabilities and histograms of labels, or a line that says why a file is none."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fewlabels.bench.datasets import Reading, read_each, rows_where, with_probabilities
from fewlabels.bench.pool_of_file import ANNOTATED, read_pool
from fewlabels.bench.results import DatasetFacts
from fewlabels.bench.seeds import generator
from fewlabels.data import column_names
from fewlabels.errors import InputError, one_line
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.predictions import Predictions

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
    return read_each(
        sources, reading, lambda file, name, offered: _read(file, name, reading, offered)
    )


def _read(file: Path, name: str, reading: Reading, offered: dict[str, None]) -> HistogramWorld:
    has = column_names(file)
    wanted = dict.fromkeys([PARTITION, *(column for column, _ in reading.where)])
    keep = [c for c in wanted if c in has]
    read, drawn = read_pool(
        file, reading.most_items, keep, reading.where, ANNOTATED, reading.columns
    )
    offered |= dict.fromkeys(read.models)
    notes = [*read.notes, *drawn, *(f"only rows of {c}={v}" for c, v in reading.where)]
    rows = rows_where(read.n_items, read.groups, reading.where)
    read, said = with_probabilities(read, reading)
    notes += said
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
