"""What is done with every unit: functions of modules, so that they travel to other processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from fewlabels.data.inputs import one_against
from fewlabels.kernels.arrays import Ints, UInts
from fewlabels.predictions import Predictions
from fewlabels.streaming.posterior_files import PosteriorFiles
from fewlabels.streaming.reading import Batch, Reader
from fewlabels.streaming.scan import Scan, ScanPlan
from fewlabels.streaming.sketch import counts_of
from fewlabels.streaming.tally import Scorer, Tally
from fewlabels.streaming.units import Unit


class Piece(NamedTuple):
    """A unit, its number, and the number in its file of its first row, where it is known."""

    unit: Unit
    number: int
    first_row: int


class BatchSource(Protocol):
    """Whoever has the rows of a unit; it travels to where the work is done."""

    def batches(self, unit: Unit) -> Iterator[Batch]:
        """The rows of a unit, so many at a time."""
        ...


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


@dataclass(eq=False)
class Counts:
    """How often some rows occur, (r,), among how many."""

    counts: Ints
    n_rows: int = 0

    @staticmethod
    def none(size: int) -> Counts:
        """No row yet."""
        return Counts(np.zeros(size, dtype=np.int64))

    def take(self, other: Counts) -> int:
        """Add those among other rows; how many these are."""
        self.counts += other.counts
        self.n_rows += other.n_rows
        return other.n_rows


def scan_unit(rows: BatchSource, plan: ScanPlan, piece: Piece) -> Scan:
    """The first pass over a unit."""
    scan = plan.empty()
    for batch in rows.batches(piece.unit):
        scan.update(batch)
    return scan


def count_unit(
    rows: BatchSource, ranked: Callable[[Batch], UInts], ranks: UInts, piece: Piece
) -> Counts:
    """How often rows of these ranks, which ascend, are among the ranked rows of a unit."""
    out = Counts.none(len(ranks))
    for batch in rows.batches(piece.unit):
        out.take(Counts(counts_of(ranked(batch), ranks), batch.predictions.n_items))
    return out


def tally_unit(
    rows: BatchSource, scorer: Scorer, files: PosteriorFiles | None, piece: Piece
) -> Tally:
    """The second pass over a unit; posteriors of its rows go to a file where they are asked for."""
    tally = Tally()
    if files is None:
        for batch in rows.batches(piece.unit):
            tally.update(scorer, batch)
        return tally
    with files.writing(piece.number) as write:
        for batch in rows.batches(piece.unit):
            for block in scorer.blocks(batch):
                posterior = scorer.posterior(block.predictions)
                tally.add(scorer, block, posterior)
                first_row = piece.first_row + block.first_row
                write(piece.unit.name, first_row, block.predictions, posterior)
    return tally


def pieces(units: Sequence[Unit], n_rows: Sequence[int] | None) -> list[Piece]:
    """Units with their numbers and, once the numbers of their rows are known, their places."""
    out, first, path = [], 0, ""
    for number, unit in enumerate(units):
        first, path = (0, unit.path) if unit.path != path else (first, path)
        out.append(Piece(unit, number, first if unit.first_row is None else unit.first_row))
        first += 0 if n_rows is None else n_rows[number]
    return out
