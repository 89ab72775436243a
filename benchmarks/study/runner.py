"""Run the study: cells on every core, kept as they finish, in an order that can stop anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from bench.cells import Body, Cell, Job
from bench.folder import (
    KeptCells,
    Manifest,
    check_free,
    folder_of,
    held,
    places,
    read_manifest,
    writing,
)
from bench.runner import Progress, kept_or_computed, places_of, run_jobs
from fewlabels.errors import InputError, UsageError, listed
from fewlabels.kernels.blocks import available_workers, silent
from study import facts as kept_facts
from study.protocol import NAME, Study, asked, chosen_methods, chosen_sets
from study.results import StudyResults, collect
from study.sets import known_sets, load_kept
from study.trial import PREPARE, Bench

SETS = "sets"
"""Where made sets are kept in the folder."""


def run(
    data: str | Path | Sequence[str | Path] = (),
    out: str | Path | None = None,
    *,
    resume: bool = False,
    reduced: bool = False,
    runs: int | None = None,
    methods: Sequence[str] = (),
    sets: Sequence[str] = (),
    seed: int | None = None,
    n_labeled: Sequence[int] = (),
    n_unlabeled: Sequence[int] = (),
    workers: int | None = None,
    progress: Progress | None = None,
) -> StudyResults:
    """Measure errors and intervals of methods on real and made sets of classifiers.

    Parameters
    ----------
    data
        Folders that hold the real sets (`sets.REAL`); those that are not there are left out.
    out, resume
        Output folder, ./benchmark-study unless given; whether to go on with what is in it.
    reduced
        Few runs and sizes, the first set of each family, and four methods: for a look.
    runs, seed
        Repetitions of each cell, 200, reduced 5; and the seed of what is drawn, 0.
    methods, sets
        Names; see `protocol.asked`. On resume they are added to what there is.
    n_labeled, n_unlabeled
        Numbers of labeled and unlabeled items instead of the design's; on resume, no others than
        those there are.
    workers
        Processes; the answer does not depend on them. None: one per available processor.
    progress
        Called with (parts done, parts in all).

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it. What is finished is kept.
    """
    folder = folder_of(out, NAME)
    data = places_of(data)
    before = _read(folder) if resume else None
    if before is not None:
        _check_alike(before.protocol, seed, reduced, n_labeled, n_unlabeled)
        data = places(before.data, data)
    known, notes = known_sets(data)
    if before is not None:
        study = before.protocol.grown(
            runs=runs, methods=chosen_methods(methods), sets=chosen_sets(known, sets)
        )
        _check_there(study, known)
    else:
        study = asked(
            known, sets=sets, methods=methods, runs=runs, seed=seed or 0, reduced=reduced,
            n_labeled=n_labeled, n_unlabeled=n_unlabeled,
        )  # fmt: skip
        check_free(folder)
    with held(folder):
        if not resume:
            check_free(folder)  # another process may have begun meanwhile
        facts, found = _compute(folder, study, data, notes, workers, progress or silent)
        results = StudyResults(study, facts, collect(found.items()), tuple(notes), folder)
        with writing(folder):
            results.save()
    return results


def _check_alike(
    study: Study, seed: int | None, reduced: bool, n_labeled: Sequence[int],
    n_unlabeled: Sequence[int],
) -> None:  # fmt: skip
    """What is asked for on resume may not contradict what is there."""
    differs = {
        "reduced": reduced and not study.reduced,
        "seed": seed is not None and seed != study.seed,
        "n_labeled": n_labeled and set(n_labeled) != set(study.n_labeled),
        "n_unlabeled": n_unlabeled and set(n_unlabeled) != set(study.n_unlabeled),
    }
    for which in (name for name, other in differs.items() if other):
        raise UsageError(f"`{which}` cannot differ from what is resumed; leave it out")


def _read(folder: Path) -> Manifest:
    """The study that is to go on."""
    return read_manifest(folder, Study.from_plain, "a study")


def _check_there(study: Study, known: Mapping[str, str]) -> None:
    gone = [name for name in study.sets if name not in known]
    if gone:
        raise InputError(
            f"set {gone[0]!r} was in what is resumed, and is not below the data any more; name "
            "where it is with `data`"
        )


def _jobs(study: Study, facts: Mapping[str, Mapping[str, Any]]) -> Iterator[Job]:
    """Block after block: a stop at any time leaves all sets with about equally many runs."""
    for block in range(study.n_blocks):
        for name, known in facts.items():
            job = tuple(study.cells(name, known["n_items"], block))
            if job:
                yield job


def _compute(
    folder: Path,
    study: Study,
    data: tuple[str, ...],
    notes: Sequence[str],
    workers: int | None,
    progress: Callable[[int, int], None],
) -> tuple[dict[str, Any], dict[Cell, Body]]:
    """Facts of every set, and every part: read where it is there, else computed and kept."""
    count = available_workers() if workers is None else workers
    with writing(folder):
        # First: without it nobody could tell whose the cells are.
        Manifest(study, data, {}, skipped=tuple(notes)).write(folder)
    make = partial(Bench, study, data, folder / SETS)
    facts = _facts(folder, study, make, count)
    cells = _cells(folder, study, facts)
    jobs = list(_jobs(study, facts))
    found = kept_or_computed(cells, _whole(cells, study), make, jobs, count, progress)
    return facts, found


def _facts(
    folder: Path, study: Study, make: Callable[[], Bench], workers: int
) -> dict[str, dict[str, Any]]:
    """Facts of every set, which are found anew: sets may have changed since they were kept."""
    known = kept_facts.read(folder)
    prepare = [(Cell(PREPARE, name),) for name in study.sets]
    with closing(run_jobs(prepare, make, workers)) as running:
        for cell, body in running:
            known[cell.dataset] = dict(body)
            with writing(folder):
                kept_facts.write(folder, known)
    return {name: known[name] for name in study.sets}


def _cells(folder: Path, study: Study, facts: Mapping[str, Mapping[str, Any]]) -> KeptCells:
    return KeptCells(folder, {n: study.fingerprint(f["digest"]) for n, f in facts.items()})


def _whole(cells: KeptCells, study: Study) -> dict[Cell, Body]:
    """Cells that are there with all their runs, which may have risen in number since."""
    return {c: b for c, b in cells.read().items() if b["runs"] == list(study.runs_of(c.run))}


def so_far(out: str | Path) -> StudyResults:
    """What a study holds now, while it is still running or after it was stopped.

    No set is made and no part computed. Sets are not needed where their facts are kept; one
    without, that is not there either, is left out with a note.

    Raises
    ------
    InputError
        If there is no study.
    """
    folder = Path(out)
    before = _read(folder)
    study, known = before.protocol, kept_facts.read(folder)
    for name in study.sets:
        if name not in known and (there := load_kept(name, before.data, folder / SETS)) is not None:
            known[name] = there.facts()
    facts = {name: known[name] for name in study.sets if name in known}
    there = _cells(folder, study, facts).read()
    found = {c: there[c] for job in _jobs(study, facts) for c in job if c in there}
    unknown = [name for name in study.sets if name not in facts]
    notes = [*before.skipped, *([f"not begun yet: {listed(unknown)}"] if unknown else [])]
    return StudyResults(study, facts, collect(found.items()), tuple(notes), folder)
