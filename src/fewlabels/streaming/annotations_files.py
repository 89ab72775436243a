"""`assess_files`: losses of label histograms of more rows than fit into memory, in one pass."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fewlabels import __version__
from fewlabels.annotations.assessment import Asked, Assessment, asked_for, assessed
from fewlabels.annotations.statistics import LabelStatistic
from fewlabels.data.options import ColumnOptions, column_options
from fewlabels.data.roles import Roles
from fewlabels.errors import InputError, UsageError, unknown
from fewlabels.kernels.arrays import Bools, Ints
from fewlabels.kernels.blocks import using_workers
from fewlabels.streaming.annotation_sums import (
    AnnotationPlan,
    AnnotationSums,
    count_unit,
    sum_unit,
)
from fewlabels.streaming.checkpoint import Checkpoint, default_folder
from fewlabels.streaming.example import example_of
from fewlabels.streaming.executors import Engine, open_executor
from fewlabels.streaming.passes import Again, Passes, Progress
from fewlabels.streaming.reading import Reader, find_classes
from fewlabels.streaming.samples import HeavyRows
from fewlabels.streaming.units import lay_out, skipped_words
from fewlabels.streaming.work import Feed

ASSESS, AGAIN, COUNT = "assessing", "assessing again", "counting repeated rows"
STEPS = (ASSESS, AGAIN, COUNT)


def assess_files(
    source: str | Path,
    *,
    by: str | Sequence[str] | None = None,
    bins: int = 15,
    statistics: str | LabelStatistic | Sequence[str | LabelStatistic] = (),
    confidence_level: float | None = 0.95,
    random_state: int | None = 0,
    engine: Engine = "threads",
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    skip_bad_files: bool = False,
    checkpoints: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    select: Sequence[str] | None = None,
    positive: Any = None,
    **columns: Any,
) -> Assessment:
    """Assess the classifiers in Parquet or CSV files of any size against annotators' labels.

    Values are those of `fewlabels.annotations.assess`, from sums over all rows. Intervals are drawn
    from all annotated rows, or a random sample of 100,000 (10,000 of a group), and are those of
    all rows. Whoever votes without probabilities or scores is an annotator.

    Parameters
    ----------
    source
        A Parquet or CSV file, or a folder of such files of one kind.
    by, bins, statistics, confidence_level, random_state
        As in `fewlabels.annotations.assess`.
    engine, workers, scheduler, resume, skip_bad_files, checkpoints, progress
        As in `fewlabels.estimate_files`.
    select
        Only these classifiers.
    positive
        The positive class, as in `fewlabels.estimate`.
    columns
        As in `fewlabels.read_predictions`: label, models, domain, weight, columns, classes.

    Raises
    ------
    InputError, UsageError
        One line that says what is wrong and how to mend it.
    """
    asked = asked_for(bins, statistics, confidence_level, random_state)
    options = column_options(positive=positive, **columns)
    layout = lay_out(source, options, skip_bad_files=skip_bad_files)
    groups = _groups(by, layout.roles)
    classes = find_classes(layout, options, skip_bad_files=skip_bad_files)
    kept = tuple(g for g in groups if g in layout.roles.groups)
    feed = Feed(Reader(layout, classes, kept), positive=classes.positive_name)
    named = feed.chosen(example_of(layout.roles, classes.names)).classes
    folder = default_folder() if checkpoints is None else Path(checkpoints)
    run = _Run(feed, asked, groups, None if select is None else tuple(select))
    key = _key(source, run, options)
    notes: list[str] = []
    passes = Passes(
        open_executor(engine, workers, scheduler), layout.units,
        lambda step: Checkpoint(folder, f"{key}-{STEPS.index(step)}", notes.append),
        resume, skip_bad_files, progress,
    )  # fmt: skip
    with passes, using_workers(workers):
        sums, heavy = run.sums(passes)
        skipped = [*layout.skipped, *passes.bad.values()]
        remarks = [skipped_words(skipped, "the losses are")] if skipped else []
        remarks += feed.notes
        judged, most = sums.all.n_judged, sums.all.kept.size
        if asked.level is not None and judged > most:
            remarks.append(
                f"intervals are drawn from a random sample of {most:,} of the {judged:,} annotated "
                "items, for all of them; the losses themselves are of all items"
            )
        remarks += dict.fromkeys(notes)
        sums.facts.check()
        models = sums.plan.models
        found = assessed(asked, sums.facts, sums.cells(heavy), models, named, remarks)
        passes.clear(STEPS)
    stream = {
        "engine": engine,
        "files": len({unit.path for unit in passes.used}),
        "parts": len(passes.used),
        "skipped_files": len(skipped),
        "resumed": list(passes.resumed),
    }
    return replace(found, diagnostics={**found.diagnostics, "stream": stream})


def _groups(by: str | Sequence[str] | None, roles: Roles) -> tuple[str, ...]:
    """Columns to assess by, each once.

    Raises
    ------
    UsageError
        If one is no group.
    """
    groups = tuple(dict.fromkeys([by] if isinstance(by, str) else by or ()))
    known = [*roles.groups, *([] if roles.domain is None else ["domain"])]
    for name in groups:
        if name not in known:
            raise UsageError(unknown("group", name, known, "the files have none"))
    return groups


def _key(source: str | Path, run: _Run, options: ColumnOptions) -> str:
    """What tells a run's checkpoints from those of others."""
    said = (__version__, "assess", str(Path(source).resolve()), run.asked, run.by, run.select)
    return hashlib.blake2b(
        repr((*said, options, run.feed.reader.classes.names, run.feed.positive)).encode(),
        digest_size=12,
    ).hexdigest()


@dataclass(frozen=True, eq=False)
class _Run:
    """What is asked, and where from."""

    feed: Feed
    asked: Asked
    by: tuple[str, ...]
    select: tuple[str, ...] | None

    def sums(self, passes: Passes) -> tuple[AnnotationSums, HeavyRows]:
        """All passes; again when a file turns out bad, or a column to be empty throughout."""
        silent, step = self._without_columns(), ASSESS
        while True:
            plan = self._plan(silent)
            try:
                sums = passes.run(
                    step, partial(sum_unit, self.feed, plan), partial(AnnotationSums.empty, plan),
                    partial(AnnotationSums.from_dict, plan),
                )  # fmt: skip
                if step == ASSESS and sums.facts.n_items and not (sums.spoke | silent).all():
                    # Whoever has a column of probabilities, but none in it, is an annotator too.
                    silent, step = ~sums.spoke, AGAIN
                    continue
                return sums, self._heavy(passes, sums)
            except Again:
                silent, step = self._without_columns(), ASSESS
                passes.resume = False

    def _without_columns(self) -> Bools:
        """Which classifiers have columns of votes alone, (M,)."""
        roles = self.feed.reader.layout.roles
        speaking = {*roles.probabilities, *roles.mapped, *roles.scores}
        return np.array([name not in speaking for name in roles.models], dtype=bool)

    def _plan(self, silent: Bools) -> AnnotationPlan:
        names = self.feed.reader.layout.roles.models
        models = tuple(n for n, voter in zip(names, silent, strict=True) if not voter)
        if not models:
            raise InputError(
                "no classifier has probabilities or scores: there are votes alone; add columns "
                "p__<model>__<class>, or use them as classifiers (`fewlabels estimate`)"
            )
        for name in self.select or ():
            if name not in models:
                raise UsageError(unknown("model", name, models))
        return AnnotationPlan(self.asked, self.by, tuple(silent.tolist()), self.select or models)

    def _heavy(self, passes: Passes, sums: AnnotationSums) -> HeavyRows:
        """Rows of which there are very many: a sample of distinct rows could miss all of them."""
        ranks = sums.repeated.ranks
        if self.asked.level is None or sums.all.kept.complete or not len(ranks):
            return HeavyRows.none()
        counted = passes.run(
            COUNT,
            partial(count_unit, self.feed, sums.plan, ranks),
            lambda: _Counted(np.zeros(len(ranks), dtype=np.int64)),
            lambda value: _Counted(value["counts"]),
        ).counts
        every = np.ones(len(ranks), dtype=bool)
        return HeavyRows.of(sums.repeated, counted, every, sums.all.n_judged)


@dataclass(eq=False)
class _Counted:
    """How often some rows occur so far."""

    counts: Ints

    def take(self, result: Ints) -> int:
        """Add a unit's; how many rows it had is told by the first pass."""
        self.counts += result
        return 0

    def to_dict(self) -> dict[str, Any]:
        """Everything."""
        return {"counts": self.counts}
