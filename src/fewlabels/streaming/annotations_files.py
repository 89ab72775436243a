"""`assess_files`: losses of label histograms of more rows than fit into memory, in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fewlabels.annotations.assessment import (
    AnnotationCounts,
    Assessment,
    AssessmentSettings,
    Cell,
    CellSums,
    LabeledRows,
    added,
    asked_for,
    assessed,
)
from fewlabels.annotations.statistics import LabelStatistic
from fewlabels.checks.arguments import RandomState
from fewlabels.data.options import column_options
from fewlabels.data.sources import Selection, identity
from fewlabels.errors import InputError, UsageError, unknown
from fewlabels.evaluation.groups import MAX_GROUPS, values_of
from fewlabels.kernels.arrays import Bools, Floats, UInts
from fewlabels.kernels.blocks import using_workers
from fewlabels.predictions import Predictions
from fewlabels.streaming.checkpoint import Checkpoint, key_of
from fewlabels.streaming.executors import Engine, open_executor
from fewlabels.streaming.passes import COUNT, Passes, Piece, Progress
from fewlabels.streaming.reading import Batch, Feed, Reader, example_of, find_classes
from fewlabels.streaming.samples import HeavyRows, sampled
from fewlabels.streaming.scan import SUPPORT_ROWS, frequent, ranks_of
from fewlabels.streaming.sketch import BottomSample, RowArrays
from fewlabels.streaming.units import lay_out, skipped_words

ASSESS, AGAIN = "assessing", "assessing again"
STEPS = (ASSESS, AGAIN, COUNT)


def assess_files(
    source: str | Path | Selection,
    *,
    by: str | Sequence[str] | None = None,
    bins: int = 15,
    statistics: str | LabelStatistic | Sequence[str | LabelStatistic] = (),
    confidence_level: float | None = 0.95,
    random_state: RandomState = 0,
    engine: Engine = "threads",
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    skip_bad_files: bool = False,
    checkpoints: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    models: Sequence[str] | None = None,
    positive: Any = None,
    columns: Any = None,
) -> Assessment:
    """Assess the classifiers in Parquet or CSV files of any size against annotators' labels.

    Values are those of `fewlabels.annotations.assess`, from sums over all rows. Intervals are drawn
    from all annotated rows, or from a random sample of 100,000 (10,000 of a group) and scaled to
    all rows. A classifier that votes without probabilities or scores counts as an annotator.

    `source` is a file or a folder of files of one kind; `models` limits the classifiers. For the
    rest see `fewlabels.annotations.assess`, `fewlabels.estimate_files` and
    `fewlabels.read_predictions`.
    """
    asked = asked_for(bins, statistics, confidence_level, random_state)
    options = column_options(positive=positive, columns=columns)
    layout = lay_out(source, options, skip_bad_files=skip_bad_files)
    groups = layout.groups([by] if isinstance(by, str) else by or ())
    classes = find_classes(layout, options, skip_bad_files=skip_bad_files)
    feed = Feed(Reader(layout, classes, groups), positive=classes.positive_name)
    named = feed.chosen(example_of(layout.roles, classes.names)).classes
    run = _Run(feed, asked, groups, None if models is None else tuple(models), named)
    inputs = (asked, groups, run.select, options, classes.names, feed.positive)
    key = key_of(identity(source), *inputs)
    notes: list[str] = []
    passes = Passes(
        open_executor(engine, workers, scheduler), layout.units,
        lambda step: Checkpoint(checkpoints, f"{key}-{STEPS.index(step)}", notes.append),
        resume, skip_bad_files, progress,
    )  # fmt: skip
    with passes, using_workers(workers):
        plan, sums, heavy = passes.whole(partial(run.sums, passes))
        skipped = [*layout.skipped, *passes.bad.values()]
        remarks = [*skipped_words(skipped, "the losses are"), *feed.notes]
        told, most = sums.all.n_told, sums.all.kept.size
        if asked.level is not None and told > most:
            remarks.append(
                f"intervals are drawn from a random sample of {most:,} of the {told:,} annotated "
                "items, for all of them; the losses themselves are of all items"
            )
        remarks += dict.fromkeys(notes)
        sums.facts.check()
        cells, items = sums.cells(plan, heavy[0]), sums.items(plan, heavy)
        found = assessed(asked, sums.facts, cells, items, plan.models, remarks)
        passes.clear(STEPS)
    stream = passes.facts(engine, skipped)
    return replace(found, diagnostics={**found.diagnostics, "stream": stream})


@dataclass(frozen=True, eq=False)
class _Run:
    """What is asked, and where from."""

    feed: Feed
    asked: AssessmentSettings
    by: tuple[str, ...]
    select: tuple[str, ...] | None
    classes: tuple[Any, ...]

    def sums(self, passes: Passes) -> tuple[AnnotationPlan, AnnotationSums, BothHeavy]:
        """All passes, again when a column turns out to be empty throughout."""
        # Which classifiers have columns of votes alone, (M,).
        roles = self.feed.reader.layout.roles
        speaking = {*roles.probabilities, *roles.mapped, *roles.scores}
        silent = np.array([name not in speaking for name in roles.models], dtype=bool)
        plan = self._plan(silent)
        sums = self._assess(passes, ASSESS, plan)
        if sums.facts.n_items and not (sums.spoke | silent).all():
            # Whoever has a column of probabilities, but none in it, is an annotator too.
            plan = self._plan(~sums.spoke)
            sums = self._assess(passes, AGAIN, plan)
        return plan, sums, self._heavy(passes, plan, sums)

    def _assess(self, passes: Passes, step: str, plan: AnnotationPlan) -> AnnotationSums:
        return passes.run(
            step, partial(sum_unit, self.feed, plan), partial(AnnotationSums.empty, plan)
        )

    def _plan(self, silent: Bools) -> AnnotationPlan:
        names = self.feed.reader.layout.roles.models
        models = tuple(n for n, voter in zip(names, silent, strict=True) if not voter)
        if not models:
            raise InputError(
                "no classifier has probabilities or scores: there are votes alone; add columns "
                "p__<model>__<class>, use them as classifiers (`fewlabels estimate`), or read them "
                "whole, for the agreement of annotators (--engine memory)"
            )
        for name in self.select or ():
            if name not in models:
                raise UsageError(unknown("model", name, models))
        return AnnotationPlan(
            self.asked, self.by, tuple(silent.tolist()), self.select or models, self.classes
        )

    def _heavy(self, passes: Passes, plan: AnnotationPlan, sums: AnnotationSums) -> BothHeavy:
        """Rows of which there are very many: a sample of distinct rows could miss all of them."""
        repeated, sides = sums.repeated, (sums.all.kept, sums.others)
        if repeated.rows is None or all(side.complete for side in sides):
            return HeavyRows.none(), HeavyRows.none()
        counts = passes.counts(self.feed, plan.ranked, repeated.ranks)
        told = plan.predictions(repeated.rows).told
        of_told, of_others = (
            HeavyRows.none() if side.complete else HeavyRows.of(repeated, counts, which, total)
            for side, which, total in zip(
                sides, (told, ~told), (sums.all.n_told, sums.n_others), strict=True
            )
        )
        return of_told, of_others


BothHeavy = tuple[HeavyRows, HeavyRows]
"""Heavy rows among those with a label, and among the others."""


INTERVAL_ROWS = 100_000
"""Annotated rows that intervals are drawn from at most."""

GROUP_ROWS = 10_000
"""The same, of a group."""


@dataclass(frozen=True)
class AnnotationPlan:
    """What to sum: `silent` says of every classifier of the files whether it is an annotator.

    `models` are the classifiers to assess, `classes` those of all.
    """

    asked: AssessmentSettings
    by: tuple[str, ...]
    silent: tuple[bool, ...]
    models: tuple[str, ...]
    classes: tuple[Any, ...]

    def rows(self, read: Predictions) -> Predictions:
        """A batch with annotators as annotators, and the classifiers that are asked for."""
        return read.with_annotators(np.array(self.silent)).select_models(self.models)

    def ranked(self, batch: Batch) -> UInts:
        """Ranks of the rows of a batch that have some weight."""
        some = _Some.of(self.rows(batch.predictions), batch.weight)
        return some.ranks[some.told | some.others]

    def predictions(self, rows: RowArrays) -> Predictions:
        """Rows that were kept."""
        return rows.predictions(self.models, self.classes)


@dataclass(eq=False)
class GroupSums:
    """Sums of each classifier over a group's rows, and some of the rows.

    `n_told` counts rows with a label and some weight; `kept` are some of these.
    """

    cells: list[CellSums]
    kept: BottomSample
    n_told: int = 0

    def update(self, asked: AssessmentSettings, some: _Some, mine: Bools) -> None:
        """Take in rows of a batch."""
        rows, told = np.flatnonzero(mine), mine & some.told
        cells = [asked.sums(some.rows.of_model(j, rows)) for j in range(len(self.cells))]
        self._add(cells, int(told.sum()))
        self.kept.update(some.ranks, some.kept, told)

    def merge(self, other: GroupSums) -> None:
        """Add those of other rows."""
        self._add(other.cells, other.n_told)
        self.kept.merge(other.kept)

    def _add(self, cells: Sequence[CellSums], n_told: int) -> None:
        self.cells = list(map(added, self.cells, cells))
        self.n_told += n_told


@dataclass(eq=False)
class AnnotationSums:
    """Counts and sums of all rows, which add up over parts of the data.

    `spoke` says which classifiers of the files have probabilities or scores; `others` are some of
    the `n_others` unlabeled rows of positive weight; `groups` are by column and value, and by None
    for all rows.
    """

    facts: AnnotationCounts
    spoke: Bools
    repeated: BottomSample
    others: BottomSample
    n_others: int
    groups: dict[tuple[str, str] | None, GroupSums]

    @staticmethod
    def empty(plan: AnnotationPlan) -> AnnotationSums:
        """Nothing seen yet."""
        m = len(plan.models)
        return AnnotationSums(
            AnnotationCounts(
                0, 0, Counter(), np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
            ),
            np.zeros(len(plan.silent), dtype=bool),
            BottomSample.empty(INTERVAL_ROWS),
            BottomSample.empty(SUPPORT_ROWS),
            0,
            {None: GroupSums([{} for _ in plan.models], BottomSample.empty(INTERVAL_ROWS))},
        )

    @property
    def all(self) -> GroupSums:
        """Those of all rows."""
        return self.groups[None]

    def update(self, plan: AnnotationPlan, batch: Batch) -> None:
        """Take in a batch of rows."""
        self.spoke |= ~batch.predictions.silent
        given = plan.rows(batch.predictions)
        some = _Some.of(given, batch.weight)
        self.facts = self.facts.plus(AnnotationCounts.of(given, some.rows.counts))
        self.all.update(plan.asked, some, np.ones(given.n_items, dtype=bool))
        self.others.update(some.ranks, some.kept, some.others)
        self.n_others += int(some.others.sum())
        often = frequent(some.ranks, some.told) | frequent(some.ranks, some.others)
        self.repeated.update(some.ranks, some.kept, often)
        for column in plan.by:
            codes, names = values_of(given, column)
            for code, name in enumerate(names):
                self._group((column, name)).update(plan.asked, some, codes == code)

    def _group(self, key: tuple[str, str] | None) -> GroupSums:
        if key is not None and key not in self.groups:
            if sum(there[0] == key[0] for there in self.groups if there) >= MAX_GROUPS:
                raise UsageError(
                    f"group {key[0]!r} has more than {MAX_GROUPS} values; group them first, or "
                    "leave it out of `by`"
                )
            empty = BottomSample.empty(GROUP_ROWS)
            self.groups[key] = GroupSums([{} for _ in self.all.cells], empty)
        return self.groups[key]

    def merge(self, other: AnnotationSums) -> None:
        """Take in what was seen of other rows, which come after these."""
        self.facts = self.facts.plus(other.facts)
        self.spoke |= other.spoke
        self.repeated.merge(other.repeated)
        self.others.merge(other.others)
        self.n_others += other.n_others
        for key, group in other.groups.items():
            self._group(key).merge(group)

    def take(self, result: AnnotationSums) -> int:
        """Take in a unit's, and say how many rows it had."""
        self.merge(result)
        return result.facts.n_items

    def items(self, plan: AnnotationPlan, heavy: BothHeavy) -> Predictions:
        """Rows with a label, and others: some of each."""
        told, others = self.all, self.others
        parts = (
            sampled(told.kept, heavy[0], told.kept.size, told.n_told),
            sampled(others, heavy[1], others.size, self.n_others),
        )
        return plan.predictions(RowArrays.joined([part for part in parts if part is not None]))

    def cells(self, plan: AnnotationPlan, heavy: HeavyRows) -> Iterator[Cell]:
        """Every classifier on all rows, then on each group, column by column."""
        ordered = sorted(self.groups, key=lambda key: plan.by.index(key[0]) if key else -1)
        for key in ordered:
            group, rows = self.groups[key], None
            if plan.asked.level is not None:
                # All distinct rows that are kept, with copies in proportion: fewer of them with all
                # of their copies would show less of how rows differ.
                kept = replace(group.kept, complete=True)
                known = HeavyRows.none() if key else heavy
                rows = sampled(kept, known, kept.size, group.n_told)
            these = None
            if rows is not None:
                these = LabeledRows.of(plan.predictions(rows))._replace(weight=rows.weight)
            size = 0 if rows is None else len(rows)
            for j in self.facts.judged:
                items = None if these is None else these.of_model(j, np.arange(size))
                name = f"{key[0]}={key[1]}" if key else None
                yield Cell(j, name, group.cells[j], items, sampled=size < group.n_told)


class _Some(NamedTuple):
    """A batch: `told` (n,) are rows with a label and some weight, `others` those without a label.

    `kept` is what is kept of them, and rows of one of the `ranks` (n,) are the same.
    """

    rows: LabeledRows
    told: Bools
    others: Bools
    ranks: UInts
    kept: RowArrays

    @staticmethod
    def of(given: Predictions, weight: Floats | None) -> _Some:
        there = np.ones(given.n_items, dtype=bool) if weight is None else weight > 0
        return _Some(
            LabeledRows.of(given)._replace(weight=weight), given.told & there, ~given.told & there,
            ranks_of(Batch(given, weight, 0), ()), RowArrays.of(given.keeping(()), weight),
        )  # fmt: skip


def sum_unit(feed: Feed, plan: AnnotationPlan, piece: Piece) -> AnnotationSums:
    """The pass over a unit."""
    sums = AnnotationSums.empty(plan)
    for batch in feed.batches(piece.unit):
        sums.update(plan, batch)
    return sums
