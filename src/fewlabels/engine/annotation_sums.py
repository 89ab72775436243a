"""What a unit shows of annotators' labels: sums of losses, and rows that intervals are drawn from.

Sums add, so values are those of all rows. The noise of a sum over items is the sum of squares over
items, which a random sample of m of n items shows n / m times too small; intervals are drawn from
such a sample and stretched to all (`fewlabels.annotations.bootstrap`). The sample is of distinct
rows by a hash of their content, with copies in proportion to how often each occurs, so it is the
same in any order and partition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from fewlabels.annotations.assessment import Facts, label_counts, plain_class
from fewlabels.annotations.parts import Asked, Judged, Part, PartSums, items_by
from fewlabels.engine.reading import Batch
from fewlabels.engine.rows import Rows
from fewlabels.engine.scan import frequent
from fewlabels.engine.sketch import BottomRows, counts_of
from fewlabels.engine.support import HeavyRows, sampled
from fewlabels.engine.work import Feed, Piece
from fewlabels.errors import InputError, UsageError
from fewlabels.evaluation.status import Reasons
from fewlabels.frames.table import told_of
from fewlabels.groups import MAX_GROUPS, values_of
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints, UInts
from fewlabels.kernels.keyed import hash_columns
from fewlabels.kernels.label_histograms import Annotated
from fewlabels.predictions import Predictions

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
    """Sums of each classifier over a group's rows, None where it has none, and some of the rows.

    `n_judged` counts rows with a label, a prediction and some weight; `kept` are some of these.
    """

    parts: list[PartSums | None]
    kept: BottomRows
    n_judged: int = 0

    def merge(self, other: GroupSums) -> None:
        """Add those of other rows."""
        for j, more in enumerate(other.parts):
            have = self.parts[j]
            if have is None:
                self.parts[j] = more
            elif more is not None:
                have.merge(more)
        self.kept.merge(other.kept)
        self.n_judged += other.n_judged

    def to_dict(self) -> dict[str, Any]:
        """Arrays and plain values."""
        return {
            "parts": [None if part is None else part.to_dict() for part in self.parts],
            "kept": self.kept.to_dict(),
            "n_judged": self.n_judged,
        }

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> GroupSums:
        """What `to_dict` gave."""
        parts = [None if part is None else PartSums.from_dict(part) for part in value["parts"]]
        return GroupSums(parts, BottomRows.from_dict(value["kept"]), int(value["n_judged"]))


@dataclass(eq=False)
class AnnotationSums:
    """Counts and sums of all rows: those of any parts of the data add up.

    `given` (M,) and `own` (M,) are as in `Facts`; `spoke` says which classifiers of the files have
    probabilities or scores; `groups` maps a column to its values' sums.
    """

    plan: AnnotationPlan
    given: Bools
    own: Ints
    spoke: Bools
    all: GroupSums
    repeated: BottomRows
    groups: dict[str, dict[str, GroupSums]]
    sizes: dict[int, int] = field(default_factory=dict)
    n_items: int = 0
    n_labeled: int = 0

    @staticmethod
    def empty(plan: AnnotationPlan) -> AnnotationSums:
        """Nothing seen yet."""
        m = len(plan.models)
        return AnnotationSums(
            plan,
            np.zeros(m, dtype=bool),
            np.zeros(m, dtype=np.int64),
            np.zeros(len(plan.silent), dtype=bool),
            GroupSums([None] * m, BottomRows.empty(INTERVAL_ROWS)),
            BottomRows.empty(INTERVAL_ROWS),
            {column: {} for column in plan.by},
        )

    def update(self, batch: Batch) -> None:
        """Take in a batch of rows."""
        self.spoke |= ~batch.predictions.silent
        some = _Some.of(self.plan.rows(batch.predictions), batch.weight)
        labeled = np.asarray(some.arrays.counts.any(axis=1))
        self.n_items += some.given.n_items
        self.n_labeled += some.given.n_labeled
        _add(self.sizes, items_by(some.arrays.counts.sum(axis=1).astype(np.int64)))
        self.given |= some.given.has_probabilities.any(axis=0)
        self.own += (labeled[:, None] & some.given.has_probabilities).sum(axis=0)
        self._add(self.all, some, np.ones(len(labeled), dtype=bool), diagrams=True)
        often = some.judged.copy()
        often[often] = frequent(some.ranks[often])
        if often.any():
            self.repeated.update(some.ranks, some.kept, often)
        for column in self.plan.by:
            codes, names = values_of(some.given, column)
            for code, name in enumerate(names):
                self._add(self._group(column, name), some, codes == code, diagrams=False)

    def _add(self, group: GroupSums, some: _Some, mine: Bools, *, diagrams: bool) -> None:
        for j in range(len(self.plan.models)):
            items = some.arrays.of_model(j, np.flatnonzero(mine))
            if items is not None:
                sums = PartSums.of(items, self.plan.asked, diagrams=diagrams)
                have = group.parts[j]
                if have is None:
                    group.parts[j] = sums
                else:
                    have.merge(sums)
        group.n_judged += int((mine & some.judged).sum())
        group.kept.update(some.ranks, some.kept, mine & some.judged)

    def _group(self, column: str, name: str) -> GroupSums:
        there = self.groups[column]
        if name not in there and len(there) >= MAX_GROUPS:
            raise UsageError(
                f"group {column!r} has more than {MAX_GROUPS} values; group them first, or leave "
                "it out of `by`"
            )
        m = len(self.plan.models)
        return there.setdefault(name, GroupSums([None] * m, BottomRows.empty(GROUP_ROWS)))

    def merge(self, other: AnnotationSums) -> None:
        """Take in what was seen of other rows, which come after these."""
        self.n_items += other.n_items
        self.n_labeled += other.n_labeled
        _add(self.sizes, other.sizes)
        self.given |= other.given
        self.own += other.own
        self.spoke |= other.spoke
        self.all.merge(other.all)
        self.repeated.merge(other.repeated)
        for column, groups in other.groups.items():
            for name, group in groups.items():
                self._group(column, name).merge(group)

    def facts(self, classes: Sequence[Any], notes: Sequence[str]) -> Facts:
        """What is known of all rows together."""
        return Facts(
            self.n_items, self.n_labeled, self.sizes, self.given, self.own, self.plan.models,
            tuple(classes), tuple(notes),
        )  # fmt: skip

    def parts(self, notes: Reasons, heavy: HeavyRows, classes: Sequence[Any]) -> Iterator[Part]:
        """Every classifier on all rows, then on each group."""
        named = tuple(plain_class(c) for c in classes)
        groups = {
            f"{column}={name}": group
            for column, found in self.groups.items()
            for name, group in found.items()
        }
        for name, group in [(None, self.all), *groups.items()]:
            rows = None
            if self.plan.asked.level is not None:
                known = heavy if name is None else HeavyRows.none()
                # All distinct rows that are kept, with copies in proportion: fewer of them with all
                # of their copies would show less of how rows differ.
                kept = replace(group.kept, complete=True)
                rows = sampled(kept, known, kept.size, group.n_judged)
            size = 0 if rows is None else len(rows)
            for j in np.flatnonzero(self.given).tolist():
                items = None
                if rows is not None:
                    items = _Arrays.kept(rows).of_model(j, np.arange(size))
                yield Part(
                    self.plan.asked, self.plan.models[j], name, named, group.parts[j], items,
                    notes, sampled=size < group.n_judged,
                )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Arrays and plain values."""
        return {
            "given": self.given,
            "own": self.own,
            "spoke": self.spoke,
            "all": self.all.to_dict(),
            "repeated": self.repeated.to_dict(),
            "groups": [
                [column, [[name, group.to_dict()] for name, group in found.items()]]
                for column, found in self.groups.items()
            ],
            "sizes": [list(pair) for pair in self.sizes.items()],
            "n_items": self.n_items,
            "n_labeled": self.n_labeled,
        }

    @staticmethod
    def from_dict(plan: AnnotationPlan, value: Mapping[str, Any]) -> AnnotationSums:
        """What `to_dict` gave, of the same plan."""
        return AnnotationSums(
            plan,
            value["given"],
            value["own"],
            value["spoke"],
            GroupSums.from_dict(value["all"]),
            BottomRows.from_dict(value["repeated"]),
            {
                column: {name: GroupSums.from_dict(group) for name, group in found}
                for column, found in value["groups"]
            },
            {int(labels): int(items) for labels, items in value["sizes"]},
            int(value["n_items"]),
            int(value["n_labeled"]),
        )


def _add(have: dict[int, int], more: Mapping[int, int]) -> None:
    for key, count in more.items():
        have[key] = have.get(key, 0) + count


class _Arrays(NamedTuple):
    """Counts (n, K), probabilities (n, M, K) and raw weights (n,), None where there are none."""

    counts: Array
    probabilities: Floats
    weight: Floats | None

    @staticmethod
    def kept(rows: Rows) -> _Arrays:
        """Those of rows that were kept."""
        return _Arrays(rows.arrays["histogram"], rows.arrays["probabilities"], rows.weight)

    def of_model(self, model: int, index: Ints) -> Judged | None:
        """The rows among some that count for a classifier; None where none does."""
        z = self.probabilities[index, model]
        counted = self.counts[index].any(axis=1) & ~np.isnan(z[:, 0])
        if self.weight is not None:
            counted &= self.weight[index] > 0
        if not counted.any():
            return None
        rows, z = index[counted], z[counted]
        weight = None if self.weight is None else self.weight[rows]
        return Judged(Annotated(self.counts[rows], z, None, weight), lambda phi: phi.expected(z))


class _Some(NamedTuple):
    """A batch: `judged` (n,) are rows that count for any classifier, `kept` what is kept of them.

    `ranks` (n,) are hashes of all that losses depend on: rows of one rank are the same for them.
    """

    given: Predictions
    arrays: _Arrays
    judged: Bools
    ranks: UInts
    kept: Rows

    @staticmethod
    def of(given: Predictions, weight: Floats | None) -> _Some:
        counts, p = label_counts(given), given.probabilities
        if p is None:
            p = np.full((given.n_items, given.n_models, given.n_classes), np.nan)
        judged = np.asarray(counts.any(axis=1) & given.has_probabilities.any(axis=1))
        columns = [*p.reshape(len(p), -1).T, *counts.T]
        arrays = {"labels": given.labels, "probabilities": p, "histogram": counts}
        if weight is not None:
            judged &= weight > 0
            columns.append(weight)
            arrays["weight"] = weight
        ranks = hash_columns(columns, len(p))
        return _Some(given, _Arrays(counts, p, weight), judged, ranks, Rows(arrays))


def sum_unit(feed: Feed, plan: AnnotationPlan, piece: Piece) -> AnnotationSums:
    """The pass over a unit."""
    sums = AnnotationSums.empty(plan)
    for batch in feed.batches(piece.unit):
        with _told_by_place(piece, batch.first_row):
            sums.update(batch)
    return sums


def count_unit(feed: Feed, plan: AnnotationPlan, ranks: UInts, piece: Piece) -> Ints:
    """How often judged rows of these ranks, which ascend, occur in a unit, (r,)."""
    out = np.zeros(len(ranks), dtype=np.int64)
    for batch in feed.batches(piece.unit):
        some = _Some.of(plan.rows(batch.predictions), batch.weight)
        out += counts_of(some.ranks[some.judged], ranks)
    return out


@contextmanager
def _told_by_place(piece: Piece, first: int) -> Iterator[None]:
    """Let messages about items of a batch speak of rows of the file."""
    unit = piece.unit

    def place(found: re.Match[str]) -> str:
        row = first + int(found[1]) + 1
        if unit.first_row is not None:
            return f"row {unit.first_row + row}"
        return f"row {row} after byte {unit.start:,}"

    with told_of(unit.name):
        try:
            yield
        except InputError as error:
            raise InputError(re.sub(r"item (\d+) \(from 0\)", place, str(error))) from None
