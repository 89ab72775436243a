"""`estimate_files`: estimates from more rows than fit into memory, in two passes."""

from __future__ import annotations

import atexit
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fewlabels.checks.arguments import RandomState, seed_of
from fewlabels.data.inputs import apply_thresholds, one_at_a_time
from fewlabels.data.options import column_options
from fewlabels.data.read import gaps_of_files
from fewlabels.data.sources import chosen as chosen_rows
from fewlabels.data.sources import identity
from fewlabels.errors import UsageError
from fewlabels.estimates import Estimates
from fewlabels.evaluation.evaluator import Estimand
from fewlabels.methods.base import LabelModel
from fewlabels.pipeline import Against, Question, aligned_reference
from fewlabels.streaming.checkpoint import Checkpoint, key_of
from fewlabels.streaming.executors import Engine, open_executor
from fewlabels.streaming.passes import Passes, Progress
from fewlabels.streaming.posterior_files import PosteriorFiles, PosteriorFolder
from fewlabels.streaming.reading import Feed, Reader, example_of, find_classes
from fewlabels.streaming.scan import Scan
from fewlabels.streaming.two_passes import STEPS, TALLY, Provenance, in_two_passes
from fewlabels.streaming.units import Layout, SeveralTasksError, Unit, lay_out, skipped_words
from fewlabels.tasks import of_streams


def estimate_files(
    source: Any,
    method: str | LabelModel = "auto",
    metrics: Any = None,
    by: str | Sequence[str] | None = None,
    confidence_level: float | None = 0.95,
    estimand: Estimand = "population",
    against: Against = "auto",
    random_state: RandomState = 0,
    *,
    engine: Engine = "threads",
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    skip_bad_files: bool = False,
    posterior: str | Path | PosteriorFolder | None = None,
    checkpoints: str | Path | None = None,
    done: ExitStack | None = None,
    progress: Callable[[Progress], None] | None = None,
    models: Sequence[str] | None = None,
    threshold: float | None = None,
    thresholds: Mapping[str, float] | None = None,
    reference: Any = None,
    positive: Any = None,
    cluster: Any = None,
    columns: Any = None,
    where: str | None = None,
    query: str | None = None,
) -> Estimates:
    """Estimate from files or tables of any size, in memory that does not grow with the rows.

    The files are read twice: once for counts and for a sample, which the label model is fitted to;
    once to apply it to every row; of several tasks, twice for each. The answer does not depend on
    the order of rows and files, nor on how rows are spread over files, nor on who does the work (to
    rounding; docs/scaling.md).

    Parameters
    ----------
    source
        A Parquet or CSV file, a folder of such files of one kind, a pattern of paths, an address
        of an object store or of a table of a database, as in `fewlabels.source`.
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
        New folder for P(label) of every row as Parquet, one file per part of the data; it appears
        when it is whole. A `PosteriorFolder` is held, and put in its place, by whoever made it.
    checkpoints
        Folder of checkpoints; None: $FEWLABELS_CHECKPOINTS, or the user's cache.
    done
        Is given what is to happen once the answer is safe with whoever asked, which is that the
        checkpoints go; None: it is safe when it is there.
    progress
        Called with a `Progress` after every part.
    models
        Only these classifiers.
    threshold, thresholds
        Where P(positive) makes a prediction positive: for all, and by classifier; as in
        `Predictions.thresholded`.
    reference
        Labeled items of the same classifiers from elsewhere, as in `fewlabels.estimate`; they are
        read whole.
    positive
        The positive class, as in `fewlabels.estimate`.
    cluster, columns
        Columns that say which rows belong together, and what the columns are, as in
        `fewlabels.read_predictions`.
    where, query
        Which rows of the source, as in `fewlabels.source`. What a query gives is kept on disk while
        the run lasts, so that it cannot be resumed.

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
    seed = seed_of(random_state)
    question = Question(method, metrics, groups, confidence_level, estimand, against, seed)
    options = column_options(positive=positive, cluster=cluster, columns=columns)
    source = chosen_rows(source, where, query)
    try:
        layout = lay_out(source, options, skip_bad_files=skip_bad_files)
    except SeveralTasksError as several:
        refused = {"--posterior": posterior, "--reference": reference}
        refused |= {f"--by {c} in parts": c for c in groups if c != several.column}
        for what, held in refused.items():
            if held is not None:
                raise one_at_a_time(several.each, what) from None
        each = {}
        for name, own in several.each.items():
            theirs = {*own.models, *own.hard, *own.scores}
            each[name] = estimate_files(
                source, method, metrics, None, confidence_level, estimand, against, seed,
                engine=engine, workers=workers, scheduler=scheduler, resume=resume,
                skip_bad_files=skip_bad_files, checkpoints=checkpoints, done=done,
                progress=progress, threshold=threshold, positive=positive, columns=own,
                thresholds={m: cut for m, cut in (thresholds or {}).items() if m in theirs},
                models=None if models is None else [m for m in models if m in theirs],
            )  # fmt: skip
        chosen_models = tuple(models or several.models)
        return of_streams(several.column, each, chosen_models, several.reading)
    kept, item = layout.groups(groups), layout.roles.item
    if posterior is not None and item in layout.roles.groups:
        kept = layout.groups((*kept, item))
    classes = find_classes(layout, options, skip_bad_files=skip_bad_files)
    chosen = None if models is None else tuple(models)
    choices = (chosen, threshold, thresholds, classes.positive_name)
    feed = Feed(Reader(layout, classes, kept), *choices)
    rows = feed.chosen(example_of(layout.roles, classes.names))
    aligned = aligned_reference(reference, rows, method, columns=columns)
    if aligned is not None:
        aligned = apply_thresholds(aligned, threshold, thresholds)
    question = question.about(rows, aligned)
    references = _references(question)
    key = key_of(identity(source), question, references, options, choices, classes.names)
    written, notes = _written(posterior, layout), list[str]()
    if resume and layout.kept:
        notes.append(
            f"{layout.name} has no key to go on from (a whole number that tells its rows apart): "
            "the run started anew"
        )
    if written is not None:
        written.check(key if resume else None)

    def checkpoint(step: str) -> Checkpoint:
        name = f"{key}-{STEPS.index(step)}"
        if step == TALLY and written is not None:
            # It also says which files are written, which those of another folder are not.
            place = os.path.realpath(written.name).encode(errors="surrogateescape")
            name = f"{name}-{hashlib.blake2b(place, digest_size=6).hexdigest()}"
        return Checkpoint(checkpoints, name, notes.append)

    def provenance(scan: Scan) -> Provenance:
        skipped = [*layout.skipped, *passes.bad.values()]
        return Provenance(
            passes.facts(engine, skipped),
            (*feed.notes, *_gaps(passes.used, scan, rows.models)),
            (*skipped_words(skipped, "the estimates are"), *dict.fromkeys(notes)),
            layout.reading,
        )

    def files(method: str, names: tuple[Any, ...]) -> PosteriorFiles:
        assert written is not None
        return PosteriorFiles(written, method, names, key)

    ours = written is not None and written is not posterior
    with ExitStack() as stack:
        if written is not None:
            if ours:
                stack.enter_context(written.held())
            unless_resumed = partial(_without_use, written, checkpoint(TALLY))
            stack.push(unless_resumed)
            # Also where a signal ends the process before this is unwound.
            stack.callback(atexit.unregister, unless_resumed)
            atexit.register(unless_resumed, KeyboardInterrupt)
        executor = open_executor(engine, workers, scheduler)
        passes = Passes(executor, layout.units, checkpoint, resume, skip_bad_files, progress)
        with passes:
            _, estimates = in_two_passes(
                question, feed, rows, passes, provenance,
                workers=workers, files=None if written is None else files,
            )  # fmt: skip
        if written is not None and ours:
            written.place()
        if done is None:
            passes.clear(STEPS)
        else:
            done.callback(passes.clear, STEPS)
        return estimates


def _without_use(
    written: PosteriorFolder, checkpoint: Checkpoint, kind: type[BaseException] | None, *_: object
) -> None:
    """Delete the draft of a folder if no run can resume it."""
    if kind is not None and not checkpoint.path.exists():
        written.discard()


def _gaps(units: Sequence[Unit], scan: Scan, models: Sequence[str]) -> tuple[str, ...]:
    """Warnings on predictions missing in some files alone; see `gaps_of_files`."""
    files = {unit.path: unit.name for unit in units}
    place = dict(zip(files, range(len(files)), strict=True))
    at = [place[unit.path] for unit in units]
    rows = np.zeros(len(files), dtype=np.int64)
    given = np.zeros((len(files), len(models)), dtype=np.int64)
    np.add.at(rows, at, scan.n_rows)
    np.add.at(given, at, scan.given)
    return gaps_of_files(list(files.values()), rows, given, models)


def _written(
    posterior: str | Path | PosteriorFolder | None, layout: Layout
) -> PosteriorFolder | None:
    """The folder to write to, which must not be one that is read from."""
    if posterior is None:
        return None
    folder = (
        posterior if isinstance(posterior, PosteriorFolder) else PosteriorFolder(str(posterior))
    )
    place = os.path.realpath(folder.name)
    if place in {os.path.realpath(os.path.dirname(unit.path)) for unit in layout.units}:
        raise UsageError(
            f"--posterior {folder.name!r} is the folder that is read from; name a new folder"
        )
    return folder


def _references(question: Question) -> list[str]:
    """Digests of reference data, which are not visible in the objects that hold them."""
    held = (question.reference, getattr(question.method, "reference", None))
    items = [r.identity.tobytes() + r.weight.tobytes() for r in held if r is not None]
    return [hashlib.blake2b(each, digest_size=12).hexdigest() for each in items]
