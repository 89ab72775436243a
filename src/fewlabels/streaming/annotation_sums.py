"""What a unit shows of annotators' labels: sums of losses, and rows that intervals are drawn from.

Sums add, so values are those of all rows. The noise of a sum over items is the sum of squares over
items, which a random sample of m of n items shows n / m times too small; intervals are drawn from
such a sample and stretched to all (`drawn_sums`). The sample is of distinct rows by a hash of their
content, with copies in proportion to how often each occurs, so it is the same in any order and
partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fewlabels.annotations.assessment import Asked, Cell, CellSums, Facts, LabeledRows, added
from fewlabels.errors import UsageError
from fewlabels.evaluation.groups import MAX_GROUPS, values_of
from fewlabels.kernels.arrays import Bools, Floats, Ints, UInts
from fewlabels.kernels.counter_based import hash_columns
from fewlabels.predictions import Predictions
from fewlabels.streaming.reading import Batch
from fewlabels.streaming.rows import Rows
from fewlabels.streaming.samples import HeavyRows, sampled
from fewlabels.streaming.scan import frequent
from fewlabels.streaming.sketch import BottomSample, counts_of
from fewlabels.streaming.work import Feed, Piece

INTERVAL_ROWS = 100_000
"""Annotated rows that intervals are drawn from at most."""

GROUP_ROWS = 10_000
"""The same, of a group."""


@dataclass(frozen=True)
class AnnotationPlan:
    """What to sum: `silent` says of every classifier of the files whether it is an annotator.

    `models` are the classifiers that are assessed.
    """

    asked: Asked
    by: tuple[str, ...]
    silent: tuple[bool, ...]
    models: tuple[str, ...]

    def rows(self, read: Predictions) -> Predictions:
        """A batch with annotators as annotators, and the classifiers that are asked for."""
        return read.with_annotators(np.array(self.silent)).select_models(self.models)


@dataclass(eq=False)
class GroupSums:
    """Sums of each classifier over a group's rows, and some of the rows.

    `n_judged` counts rows with a label, a prediction and some weight; `kept` are some of these.
    """

    cells: list[CellSums]
    kept: BottomSample
    n_judged: int = 0

    def update(self, asked: Asked, some: _Some, mine: Bools) -> None:
        """Take in rows of a batch."""
        rows, judged = np.flatnonzero(mine), mine & some.judged
        cells = [asked.sums(some.rows.of_model(j, rows)) for j in range(len(self.cells))]
        self._add(cells, int(judged.sum()))
        self.kept.update(some.ranks, some.kept, judged)

    def merge(self, other: GroupSums) -> None:
        """Add those of other rows."""
        self._add(other.cells, other.n_judged)
        self.kept.merge(other.kept)

    def _add(self, cells: Sequence[CellSums], n_judged: int) -> None:
        self.cells = list(map(added, self.cells, cells))
        self.n_judged += n_judged

    def to_dict(self) -> dict[str, Any]:
        """Arrays and plain values."""
        cells = [{name: list(state) for name, state in cell.items()} for cell in self.cells]
        return {"cells": cells, "kept": self.kept.to_dict(), "n_judged": self.n_judged}

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> GroupSums:
        """What `to_dict` gave."""
        return GroupSums(value["cells"], BottomSample.from_dict(value["kept"]), value["n_judged"])


@dataclass(eq=False)
class AnnotationSums:
    """Counts and sums of all rows: those of any parts of the data add up.

    `spoke` says which classifiers of the files have probabilities or scores; `groups` are by
    column and value, those of all rows by None.
    """

    plan: AnnotationPlan
    facts: Facts
    spoke: Bools
    repeated: BottomSample
    groups: dict[tuple[str, str] | None, GroupSums]

    @staticmethod
    def empty(plan: AnnotationPlan) -> AnnotationSums:
        """Nothing seen yet."""
        m = len(plan.models)
        sums = AnnotationSums(
            plan,
            Facts(0, 0, Counter(), np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)),
            np.zeros(len(plan.silent), dtype=bool),
            BottomSample.empty(INTERVAL_ROWS),
            {},
        )
        sums._group(None)
        return sums

    @property
    def all(self) -> GroupSums:
        """Those of all rows."""
        return self.groups[None]

    def update(self, batch: Batch) -> None:
        """Take in a batch of rows."""
        self.spoke |= ~batch.predictions.silent
        given = self.plan.rows(batch.predictions)
        some = _Some.of(given, batch.weight)
        self.facts = self.facts.plus(Facts.of(given, some.rows.counts))
        self.all.update(self.plan.asked, some, np.ones(given.n_items, dtype=bool))
        often = some.judged.copy()
        often[often] = frequent(some.ranks[often])
        if often.any():
            self.repeated.update(some.ranks, some.kept, often)
        for column in self.plan.by:
            codes, names = values_of(given, column)
            for code, name in enumerate(names):
                self._group((column, name)).update(self.plan.asked, some, codes == code)

    def _group(self, key: tuple[str, str] | None) -> GroupSums:
        if key not in self.groups:
            if key and sum(there[0] == key[0] for there in self.groups if there) >= MAX_GROUPS:
                raise UsageError(
                    f"group {key[0]!r} has more than {MAX_GROUPS} values; group them first, or "
                    "leave it out of `by`"
                )
            rows = GROUP_ROWS if key else INTERVAL_ROWS
            self.groups[key] = GroupSums([{} for _ in self.plan.models], BottomSample.empty(rows))
        return self.groups[key]

    def merge(self, other: AnnotationSums) -> None:
        """Take in what was seen of other rows, which come after these."""
        self.facts = self.facts.plus(other.facts)
        self.spoke |= other.spoke
        self.repeated.merge(other.repeated)
        for key, group in other.groups.items():
            self._group(key).merge(group)

    def take(self, result: AnnotationSums) -> int:
        """Take in a unit's, and say how many rows it had."""
        self.merge(result)
        return result.facts.n_items

    def cells(self, heavy: HeavyRows) -> Iterator[Cell]:
        """Every classifier on all rows, then on each group, column by column."""
        ordered = sorted(self.groups, key=lambda key: self.plan.by.index(key[0]) if key else -1)
        for key in ordered:
            group, rows = self.groups[key], None
            if self.plan.asked.level is not None:
                # All distinct rows that are kept, with copies in proportion: fewer of them with all
                # of their copies would show less of how rows differ.
                kept = replace(group.kept, complete=True)
                known = HeavyRows.none() if key else heavy
                rows = sampled(kept, known, kept.size, group.n_judged)
            size = 0 if rows is None else len(rows)
            for j in self.facts.judged:
                items = None
                if rows is not None:
                    arrays = rows.arrays
                    these = LabeledRows(arrays["histogram"], arrays["probabilities"], rows.weight)
                    items = these.of_model(j, np.arange(size))
                name = f"{key[0]}={key[1]}" if key else None
                yield Cell(j, name, group.cells[j], items, sampled=size < group.n_judged)

    def to_dict(self) -> dict[str, Any]:
        """Arrays and plain values."""
        return {
            "facts": self.facts._asdict() | {"sizes": dict(self.facts.sizes)},
            "spoke": self.spoke,
            "repeated": self.repeated.to_dict(),
            "groups": [[key, group.to_dict()] for key, group in self.groups.items()],
        }

    @staticmethod
    def from_dict(plan: AnnotationPlan, value: Mapping[str, Any]) -> AnnotationSums:
        """What `to_dict` gave, of the same plan."""
        facts = Facts(**value["facts"] | {"sizes": Counter(value["facts"]["sizes"])})
        groups = {
            tuple(key) if key else None: GroupSums.from_dict(group)
            for key, group in value["groups"]
        }
        repeated = BottomSample.from_dict(value["repeated"])
        return AnnotationSums(plan, facts, value["spoke"], repeated, groups)


class _Some(NamedTuple):
    """A batch: `judged` (n,) are rows that count for any classifier, `kept` what is kept of them.

    `ranks` (n,) are hashes of all that losses depend on: rows of one rank are the same for them.
    """

    rows: LabeledRows
    judged: Bools
    ranks: UInts
    kept: Rows

    @staticmethod
    def of(given: Predictions, weight: Floats | None) -> _Some:
        rows = LabeledRows.of(given)._replace(weight=weight)
        counts, p = rows.counts, rows.probabilities
        judged = np.asarray(counts.any(axis=1) & given.has_probabilities.any(axis=1))
        columns = [*p.reshape(len(p), -1).T, *counts.T]
        arrays = {"labels": given.labels, "probabilities": p, "histogram": counts}
        if weight is not None:
            judged &= weight > 0
            columns.append(weight)
            arrays["weight"] = weight
        return _Some(rows, judged, hash_columns(columns, len(p)), Rows(arrays))


def sum_unit(feed: Feed, plan: AnnotationPlan, piece: Piece) -> AnnotationSums:
    """The pass over a unit."""
    sums = AnnotationSums.empty(plan)
    for batch in feed.batches(piece.unit):
        sums.update(batch)
    return sums


def count_unit(feed: Feed, plan: AnnotationPlan, ranks: UInts, piece: Piece) -> Ints:
    """How often judged rows of these ranks, which ascend, occur in a unit, (r,)."""
    out = np.zeros(len(ranks), dtype=np.int64)
    for batch in feed.batches(piece.unit):
        some = _Some.of(plan.rows(batch.predictions), batch.weight)
        out += counts_of(some.ranks[some.judged], ranks)
    return out
