"""`estimate_files`: estimates from more rows than fit into memory, in two passes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fewlabels import __version__
from fewlabels.engine.checkpoint import Checkpoint, default_folder
from fewlabels.engine.executors import Engine, open_executor
from fewlabels.engine.passes import Again, Passes, Progress
from fewlabels.engine.posterior_files import PosteriorFiles
from fewlabels.engine.probe import probe_of
from fewlabels.engine.question import Fitted, Question, Told, Whole
from fewlabels.engine.reading import Reader, find_classes
from fewlabels.engine.scan import Scan, ScanPlan
from fewlabels.engine.tally import Tally
from fewlabels.engine.units import Layout, lay_out, skipped_words
from fewlabels.engine.work import (
    Feed,
    Scanned,
    count_unit,
    scan_unit,
    tally_unit,
)
from fewlabels.errors import UsageError
from fewlabels.estimates import Estimates
from fewlabels.evaluation.evaluator import Estimand
from fewlabels.frames.classes import Classes
from fewlabels.frames.options import ColumnOptions, column_options
from fewlabels.frames.roles import Roles
from fewlabels.kernels.arrays import Ints
from fewlabels.models.base import LabelModel
from fewlabels.pipeline import Against, aligned_reference
from fewlabels.predictions import Predictions
from fewlabels.sources import cut_at
from fewlabels.wording import unknown

SCAN, COUNT, TALLY = "reading", "counting repeated rows", "estimating"
STEPS = (SCAN, COUNT, TALLY)


def estimate_files(
    source: str | Path,
    method: str | LabelModel = "auto",
    metrics: Any = None,
    by: str | Sequence[str] | None = None,
    confidence_level: float | None = 0.95,
    estimand: Estimand = "population",
    against: Against = "auto",
    random_state: int | None = 0,
    *,
    engine: Engine = "threads",
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    skip_bad_files: bool = False,
    posterior: str | Path | None = None,
    checkpoints: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    select: Sequence[str] | None = None,
    threshold: float | None = None,
    thresholds: Mapping[str, float] | None = None,
    reference: Any = None,
    positive: Any = None,
    **columns: Any,
) -> Estimates:
    """Estimate from Parquet or CSV files of any size, in memory that does not grow with the rows.

    The files are read twice: once for counts and for a sample, which the label model is fitted to;
    once to apply it to every row. The answer does not depend on the order of rows and files, nor on
    how rows are spread over files, nor on who does the work (to rounding; docs/scaling.md).

    Parameters
    ----------
    source
        A Parquet or CSV file, or a folder of such files of one kind.
    method, metrics, by, confidence_level, estimand, against, random_state
        As in `fewlabels.estimate`.
    engine, workers
        "threads" or "processes" of this machine, or "dask", and how many; None: one per processor.
    scheduler
        With "dask": the address of a cluster; None starts one on this machine.
    resume
        Go on where a run of the same question on the same files stopped.
    skip_bad_files
        Leave out files that cannot be read or have other columns; the diagnostics count them.
    posterior
        New folder for P(label) of every row as Parquet, one file per part of the data.
    checkpoints
        Folder of checkpoints; None: $FEWLABELS_CHECKPOINTS, or the user's cache.
    progress
        Called with a `Progress` after every part.
    select
        Only these classifiers.
    threshold, thresholds
        Where P(positive) makes a prediction positive: for all, and by classifier; as in
        `Predictions.thresholded`.
    reference
        Labeled items of the same classifiers from elsewhere, as in `fewlabels.estimate`; they are
        read whole.
    positive
        The positive class, as in `fewlabels.estimate`.
    columns
        As in `fewlabels.read_predictions`: label, models, domain, weight, columns, classes.

    Raises
    ------
    InputError, UsageError
        One line that says what is wrong and how to mend it. Checkpoints stay where they are.

    Examples
    --------
    >>> import fewlabels as fl
    >>> estimates = fl.estimate_files("predictions/", by="country")     # doctest: +SKIP
    """
    groups = (by,) if isinstance(by, str) else tuple(by or ())
    question = Question(method, metrics, groups, confidence_level, estimand, against, random_state)
    options = column_options(positive=positive, **columns)
    layout = lay_out(source, options, skip_bad_files=skip_bad_files)
    classes = find_classes(layout, options, skip_bad_files=skip_bad_files)
    kept = _kept_groups(groups, layout.roles)
    if posterior is not None and layout.roles.item in layout.roles.groups:
        kept = tuple(dict.fromkeys((*kept, layout.roles.item or "")))
    reader = Reader(layout, classes, kept)
    chosen = None if select is None else tuple(select)
    feed = Feed(reader, chosen, threshold, thresholds, classes.positive_name)
    probe = probe_of(layout.roles, classes.names)
    rows = feed.chosen(probe)
    aligned = aligned_reference(reference, rows, method, **columns)
    if aligned is not None:
        question = replace(question, reference=cut_at(aligned, threshold, thresholds))
    question = question.about(rows)
    key = _key(source, question, options, feed, classes)
    folder = default_folder() if checkpoints is None else Path(checkpoints)
    run = _Run(question, layout, feed, probe, _written(posterior, layout), key)
    passes = Passes(
        open_executor(engine, workers, scheduler), layout.units,
        lambda step: Checkpoint(folder, run.name_of(step), run.notes.append),
        resume, skip_bad_files, progress,
    )  # fmt: skip
    with passes:
        return run.estimates(passes, engine, workers)


def _written(posterior: str | Path | None, layout: Layout) -> str | None:
    """The folder to write to, which must not be one that is read from."""
    if posterior is None:
        return None
    place = os.path.realpath(posterior)
    if place in {os.path.realpath(os.path.dirname(unit.path)) for unit in layout.units}:
        raise UsageError(
            f"--posterior {str(posterior)!r} is the folder that is read from; name a new folder"
        )
    return str(posterior)


def _kept_groups(groups: Sequence[str], roles: Roles) -> tuple[str, ...]:
    """The columns to read for the groups asked for; the domain is read anyway."""
    known = [*roles.groups, *(["domain"] if roles.domain is not None else [])]
    for name in groups:
        if name not in known:
            raise UsageError(unknown("group", name, known, "the files have none"))
    return tuple(dict.fromkeys(name for name in groups if name in roles.groups))


def _key(
    source: str | Path, question: Question, options: ColumnOptions, feed: Feed, classes: Classes
) -> str:
    """What tells a run's checkpoints from those of others."""
    said = [
        __version__, str(Path(source).resolve()), repr(question), repr(options),
        repr((feed.models, feed.threshold, feed.thresholds, feed.positive, classes.names)),
    ]  # fmt: skip
    # A reference is not shown in what holds it.
    for reference in (question.reference, getattr(question.method, "reference", None)):
        if reference is not None:
            items = reference.identity.tobytes() + reference.weight.tobytes()
            said.append(hashlib.blake2b(items, digest_size=12).hexdigest())
    return hashlib.blake2b(json.dumps(said).encode(), digest_size=12).hexdigest()


@dataclass(eq=False)
class _Run:
    """One run: the passes, and what is told of it."""

    question: Question
    layout: Layout
    feed: Feed
    probe: Predictions
    posterior: str | None
    key: str
    notes: list[str] = field(default_factory=list)
    again: bool = False

    def name_of(self, step: str) -> str:
        """What the checkpoint of a step is called."""
        name = f"{self.key}-{STEPS.index(step)}"
        if step != TALLY or self.posterior is None:
            return name
        # It also says which files are written, which those of another folder are not.
        place = os.path.realpath(self.posterior).encode(errors="surrogateescape")
        return f"{name}-{hashlib.blake2b(place, digest_size=6).hexdigest()}"

    def estimates(self, passes: Passes, engine: str, workers: int | None) -> Estimates:
        """All passes; again from the start when a file turns out bad in a later one."""
        while True:
            try:
                return self._estimates(passes, engine, workers)
            except Again:
                passes.resume, self.again = False, True

    def _estimates(self, passes: Passes, engine: str, workers: int | None) -> Estimates:
        probe = self.feed.chosen(self.probe)
        plan = self.question.plan(probe)
        scanned = passes.run(
            SCAN,
            partial(scan_unit, self.feed, plan),
            lambda: _Scanned(plan.empty()),
            partial(_Scanned.from_dict, plan),
        )
        scan = scanned.scan
        if not scan.size.items:
            raise UsageError("there are no rows to estimate from")
        counts = self._counts(passes, scan, scanned.n_rows)
        settled = self.question.settle(scan, counts, probe.models, probe.classes)
        if isinstance(settled, Whole):
            if self.posterior is not None:
                raise UsageError(
                    f"--posterior goes with methods that apply to every row; {settled.name} "
                    f"estimates from {settled.what} here"
                )
            found = settled.estimates(self._told(passes, engine), workers)
        else:
            tally = self._tally(passes, settled, scanned.n_rows)
            found = settled.estimates(tally, self._told(passes, engine), workers)
        passes.clear(STEPS)
        return found

    def _counts(self, passes: Passes, scan: Scan, n_rows: Sequence[int]) -> Ints | None:
        """How often rows occur of which there may be very many; that takes a pass of its own."""
        ranks = scan.repeated.ranks
        if scan.complete or not len(ranks):
            return None
        return passes.run(
            COUNT,
            partial(count_unit, self.feed, scan.plan.by, ranks),
            lambda: _Counted(np.zeros(len(ranks), dtype=np.int64), n_rows),
            lambda value: _Counted(value["counts"], n_rows, value["done"]),
            n_rows,
        ).counts

    def _tally(self, passes: Passes, settled: Fitted, n_rows: Sequence[int]) -> Tally:
        files = begin = None
        if self.posterior is not None:
            rows = settled.support.sample
            files = PosteriorFiles(self.posterior, settled.name, rows.classes, self.key)
            begin = partial(files.start, resumed=passes.resume or self.again)
        return passes.run(
            TALLY,
            partial(tally_unit, self.feed, settled.scorer, files),
            lambda: _Tallied(settled.scorer.empty()),
            lambda value: _Tallied(Tally.from_dict(value)),
            n_rows,
            begin,
        ).tally

    def _told(self, passes: Passes, engine: str) -> Told:
        skipped = [*self.layout.skipped, *passes.bad.values()]
        warnings = list(dict.fromkeys(self.notes))
        if skipped:
            warnings.insert(0, skipped_words(skipped, "the estimates are"))
        return Told(
            {
                "engine": engine,
                "files": len({unit.path for unit in passes.used}),
                "parts": len(passes.used),
                "skipped_files": len(skipped),
                "resumed": list(passes.resumed),
            },
            self.feed.notes,
            tuple(warnings),
            self.layout.reading,
        )


@dataclass(eq=False)
class _Scanned:
    """The first pass so far, and how many rows every unit has."""

    scan: Scan
    n_rows: list[int] = field(default_factory=list)

    def take(self, result: Scanned) -> int:
        """Add a unit's."""
        self.scan.merge(result.scan)
        self.n_rows.append(result.n_rows)
        return result.n_rows

    def to_dict(self) -> dict[str, Any]:
        """Everything."""
        return {"scan": self.scan.to_dict(), "n_rows": list(self.n_rows)}

    @staticmethod
    def from_dict(plan: ScanPlan, value: Mapping[str, Any]) -> _Scanned:
        """What `to_dict` gave."""
        return _Scanned(Scan.from_dict(plan, value["scan"]), list(value["n_rows"]))


@dataclass(eq=False)
class _Counted:
    """How often some rows occur so far."""

    counts: Ints
    n_rows: Sequence[int]
    done: int = 0

    def take(self, result: Ints) -> int:
        """Add a unit's."""
        self.counts += result
        self.done += 1
        return self.n_rows[self.done - 1]

    def to_dict(self) -> dict[str, Any]:
        """Everything."""
        return {"counts": self.counts, "done": self.done}


@dataclass(eq=False)
class _Tallied:
    """The second pass so far."""

    tally: Tally

    def take(self, result: Tally) -> int:
        """Add a unit's."""
        self.tally.merge(result)
        return result.n_rows

    def to_dict(self) -> dict[str, Any]:
        """Everything."""
        return self.tally.to_dict()
