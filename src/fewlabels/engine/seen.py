"""What a unit shows to the doctor: counts, some rows, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fewlabels.engine.reading import Batch
from fewlabels.engine.rows import Rows
from fewlabels.engine.scan import informed_rows
from fewlabels.engine.sketch import BottomRows
from fewlabels.engine.support import HeavyRows, sampled
from fewlabels.engine.units import BadFile
from fewlabels.engine.work import Feed, Piece
from fewlabels.errors import InputError
from fewlabels.frames.doctor.facts import Classifiers, Groups, Labels
from fewlabels.frames.doctor.labels import row_hashes
from fewlabels.kernels.keyed import alone
from fewlabels.predictions import Predictions

SAMPLE_ROWS = 20_000
"""Rows with a label or annotators' counts that are compared with each other, and other rows."""

HEAD_ROWS = 10_000
"""Rows of a column without a role that are looked at to tell what it holds."""

_NUMBER = re.compile(r"\d+")


def _bottom() -> BottomRows:
    return BottomRows.empty(SAMPLE_ROWS)


@dataclass(eq=False)
class Seen:
    """Counts of all rows, and some rows: the sum over any parts of the data.

    `informed` are rows with a label or annotators' counts, `others` the rest, `copies` counts rows
    that agree in all predictions and the label; `weights` are the smallest and the largest
    sampling weight; `notes` count rows by what was done to them; `head` holds first values of
    columns without a role.
    """

    labels: Labels | None = None
    said: Classifiers | None = None
    groups: Groups = field(default_factory=lambda: Groups({}))
    informed: BottomRows = field(default_factory=_bottom)
    others: BottomRows = field(default_factory=_bottom)
    copies: BottomRows = field(default_factory=_bottom)
    n_informed: int = 0
    annotated: int = 0
    annotator_labels: int = 0
    weights: tuple[float, float] | None = None
    notes: dict[str, int] = field(default_factory=dict)
    head: dict[str, list[Any]] = field(default_factory=dict)
    errors: list[BadFile] = field(default_factory=list)

    def update(self, batch: Batch) -> None:
        """Take in a batch of rows."""
        given = batch.predictions
        informed = informed_rows(given)
        every = Rows.of(given, None).arrays
        rows = Rows({n: a for n, a in every.items() if not n.startswith("group:")})
        ranks, copies = alone(given.identity), row_hashes(given)
        part = Seen(
            Labels.of(given),
            Classifiers.of(given),
            Groups.of(given),
            n_informed=int(informed.sum()),
            notes=dict(map(_counted, given.notes)),
        )
        if given.histogram is not None:
            part.annotated = int(given.histogram.any(axis=1).sum())
            part.annotator_labels = round(float(given.histogram.sum()))
        if batch.weight is not None:
            part.weights = (float(batch.weight.min()), float(batch.weight.max()))
        self.merge(part)
        self.informed.update(ranks, rows, informed)
        self.others.update(ranks, rows, ~informed)
        if copies is not None:
            self.copies.update(copies, Rows({"labels": given.labels}))

    def merge(self, other: Seen) -> None:
        """Take in what was seen of other rows, which come after these."""
        for name in ("labels", "said"):
            have, more = getattr(self, name), getattr(other, name)
            if have is None:
                setattr(self, name, more)
            elif more is not None:
                have.merge(more)
        self.groups.merge(other.groups)
        for sketch in ("informed", "others", "copies"):
            getattr(self, sketch).merge(getattr(other, sketch))
        for count in ("n_informed", "annotated", "annotator_labels"):
            setattr(self, count, getattr(self, count) + getattr(other, count))
        ends = [w for w in (self.weights, other.weights) if w is not None]
        if ends:
            self.weights = (min(low for low, _ in ends), max(high for _, high in ends))
        for note, rows in other.notes.items():
            self.notes[note] = self.notes.get(note, 0) + rows
        self.head = self.head or other.head
        self.errors += other.errors

    def take(self, result: Seen) -> int:
        """Add a unit's; how many rows it has."""
        self.merge(result)
        return 0 if result.labels is None else result.labels.n_items

    def to_dict(self) -> dict[str, Any]:
        """Nothing: a diagnosis keeps no checkpoints."""
        return {}

    @property
    def weighted(self) -> bool:
        """Whether rows differ in their sampling weight."""
        return self.weights is not None and self.weights[0] < self.weights[1]

    def repeated(self) -> tuple[int, int]:
        """How many rows repeat an earlier one, of how many; the rows that are kept stand for all.

        Which rows are kept does not depend on how often they occur, so the mean number of copies
        is theirs.
        """
        assert self.labels is not None
        n, kept = self.labels.n_items, self.copies.n_rows
        return (round(n * (1 - len(self.copies.ranks) / kept)) if kept else 0), n

    def samples(
        self, models: Sequence[str], classes: Sequence[Any]
    ) -> tuple[Predictions, Predictions]:
        """Some of all rows; and labeled or annotated rows before others."""
        assert self.labels is not None
        n = self.labels.n_items
        nobody = HeavyRows.none()
        both = _bottom()
        for part in (self.informed, self.others):
            both.merge(part)
        parts = [
            sampled(self.informed, nobody, SAMPLE_ROWS, self.n_informed),
            sampled(self.others, nobody, SAMPLE_ROWS, n - self.n_informed),
        ]
        some = sampled(both, nobody, SAMPLE_ROWS, n)
        assert some is not None
        known = Rows.joined([part for part in parts if part is not None])
        return some.predictions(models, classes), known.predictions(models, classes)

    def row_notes(self) -> list[str]:
        """What was done to rows, with how many these are."""
        return [note.replace("#", str(rows), 1) for note, rows in self.notes.items()]


def _counted(note: str) -> tuple[str, int]:
    """A note about some rows of a batch without the number of these, and the number."""
    found = _NUMBER.match(note)
    return (note, 1) if found is None else ("#" + note[found.end() :], int(found[0]))


def see_unit(feed: Feed, piece: Piece) -> Seen:
    """Look at a unit as far as it can be read."""
    seen = Seen()
    try:
        for batch in feed.batches(piece.unit):
            if piece.number == 0 and not seen.head:
                groups = batch.predictions.groups.items()
                seen.head = {name: values[:HEAD_ROWS].tolist() for name, values in groups}
            seen.update(batch)
    except InputError as error:
        seen.errors.append(BadFile(piece.unit.name, str(error)))
    return seen
