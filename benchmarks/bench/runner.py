"""Run a benchmark: every cell on every core, kept as it finishes, made rows of at the end.

Each design of a protocol is a module: `experiment` for methods of `fewlabels.estimate`,
`disagreement` for histograms of labels. It reads the data, plans the cells and computes one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from typing import Protocol as Kind

from threadpoolctl import threadpool_limits

from bench import folder as kept
from bench.cells import Body, Cell, Job
from bench.datasets import MOST_ITEMS, Reading
from bench.folder import KeptCells, Manifest, check_free, folder_of, held, writing
from bench.page import check_shown
from bench.protocol import (
    FLOOR,
    HISTOGRAMS,
    REFERENCE,
    TRAINED,
    Protocol,
    check_used,
    histogram_options,
    load,
    names,
)
from bench.results import Results, tidy, traits
from fewlabels.errors import InputError, UsageError, quoted
from fewlabels.kernels.blocks import available_workers, silent, using_workers
from fewlabels.methods.settings import canonical
from fewlabels.metrics.registry import resolve
from fewlabels.streaming.executors import Failed, not_while_starting

Progress = Callable[[int, int], None]

IN_FLIGHT = 16
"""Jobs per worker that are handed out: few bytes come back, and some jobs are slow."""

_MEND = "go on with `resume` and fewer `workers`"
_GUARD = (
    "a worker process ended too early; a script that runs a benchmark with several workers "
    "must do so under `if __name__ == '__main__':`"
)


def run(
    protocol: str | Path | Protocol,
    data: str | Path | Sequence[str | Path] = (),
    out: str | Path | None = None,
    *,
    resume: bool = False,
    workers: int | None = None,
    models: Sequence[str] = (),
    exclude_models: Sequence[str] = (),
    where: Mapping[str, str] | None = None,
    columns: Mapping[str, Any] | None = None,
    most_items: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Results:
    """Run a benchmark on files of predictions, and write what it finds.

    Parameters
    ----------
    protocol
        Name of a protocol of the package (`bench.names()`), path of a .toml file, or a
        `Protocol`.
    data
        Paths of files of predictions, or of folders of them; every item needs a label.
    out
        Folder for parts and results; ./benchmark-<name> unless given. Nothing in it is overwritten
        that no benchmark wrote.
    resume
        Go on in a folder where a benchmark was interrupted, or add to it: more runs, methods,
        sizes, levels or data. What is not named stays as it was; data that moved are named anew.
    workers
        Processes; the answer does not depend on them. None: one per available processor.
    models, exclude_models
        Only these classifiers, or all but these.
    where
        Keep the rows whose columns have these values (as text).
    columns
        Further arguments of `fewlabels.read_predictions`, if columns have other names.
    most_items
        Rows of a file that are used at most, drawn at random; None: 200,000.
    progress
        Called with (cells done, cells in all).
    **options
        Fields of `Protocol` to set otherwise: methods, metrics, n_labeled, n_unlabeled, runs,
        seed, sampler, confidence_level, by, bins, ... With a `confidence_level` and no `estimand`
        the estimand is "population", since the truth is that of other items.

    Returns
    -------
    The results; `Results.load(folder)` reads them again.

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it. What is finished is kept.
    """
    if most_items is not None and most_items < 2:
        raise UsageError(f"`most_items` must be 2 or more; got {most_items!r}")
    read_by = {
        "most_items": most_items,
        "models": list(models),
        "exclude_models": list(exclude_models),
        "where": dict(where or {}),
        "columns": {k: _plain(v) for k, v in (columns or {}).items() if v is not None and v != {}},
    }
    asked, given = _protocol(protocol, options, resume)
    place = folder_of(out, asked.name)
    wanted = Manifest(asked, places_of(data), {k: v for k, v in read_by.items() if v})
    before = kept.read_manifest(place) if resume else None
    if before is not None:
        wanted = replace(
            before,
            protocol=kept.grown(before.protocol, asked.name, given),
            data=kept.places(before.data, wanted.data),
            reading=dict(before.reading) | dict(wanted.reading),
        )
    _check(wanted, options)
    if not wanted.data:
        raise UsageError("no data; name files or folders of predictions with `data`")
    if not resume:
        check_free(place)
    histograms = wanted.protocol.design == HISTOGRAMS
    design: Any = import_module(f"bench.{'disagreement' if histograms else 'experiment'}")
    said = wanted.reading
    reading = Reading(
        tuple(said.get("models", ())),
        tuple(said.get("exclude_models", ())),
        tuple(said.get("where", {}).items()),
        said.get("columns", {}),
        said.get("most_items", MOST_ITEMS),
    )
    worlds, skipped = design.read_worlds(wanted.data, reading, wanted.protocol)
    if before is not None:
        worlds = _under_known_names(worlds, before)
    jobs, lines = design.plan(wanted.protocol, worlds)
    wanted = replace(wanted, datasets=tuple(w.facts for w in worlds), skipped=(*skipped, *lines))
    with held(place), using_workers(workers):
        if not resume:
            check_free(place)  # another process may have begun while this one read the data
        with writing(place):
            wanted.write(place)  # first: without it nobody could tell whose the cells are
        settings = {d.name: kept.fingerprint(wanted.protocol, d) for d in wanted.datasets}
        make = partial(design.Bench, {w.facts.name: w for w in worlds}, wanted.protocol)
        cells = KeptCells(place, settings)
        # Cells of histograms are spread over threads, as processes would each hold all data.
        count = 1 if histograms else available_workers()
        found = kept_or_computed(cells, cells.read(), make, jobs, count, progress or silent)
        rows = tidy(found, wanted.protocol)
        results = Results(
            wanted.protocol, wanted.datasets, rows, traits(found), wanted.skipped, place
        )
        with writing(place):
            results.save(place)
    return results


def _protocol(
    protocol: str | Path | Protocol, options: Mapping[str, Any], resume: bool
) -> tuple[Protocol, dict[str, Any]]:
    """The protocol, and what a resumed one is asked for: a file's fields all count as asked."""
    named = not isinstance(protocol, Protocol) and str(protocol) in names()
    begun = protocol if isinstance(protocol, Protocol) else load(protocol)
    if begun.design == HISTOGRAMS:
        options = histogram_options(begun, options)
    given = list(options) if named else [f.name for f in fields(Protocol) if f.name != "name"]
    asked = begun.with_options(**options)
    if begun.confidence_level is None and "estimand" not in options:
        asked = asked.with_fitting_estimand()
        if asked.estimand != begun.estimand:
            given = [f for f in given if f != "estimand"]  # what goes on keeps its own
    if asked.design != HISTOGRAMS and (not resume or "methods" in given):
        # In their one spelling; with Labeled, which all are compared with, and without the floor.
        spelled = [m for m in asked.methods if m != FLOOR]
        first = [] if REFERENCE in spelled else [REFERENCE]
        asked = replace(asked, methods=tuple(dict.fromkeys(map(canonical, [*first, *spelled]))))
    return asked, {field: getattr(asked, field) for field in given}


def places_of(data: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    """Absolute paths, so that a benchmark can go on from elsewhere."""
    # A frame is an iterable of texts, too: the names of its columns.
    given: Any = data
    one = isinstance(given, str) or not isinstance(given, Sequence | Iterator)
    found: list[Any] = [given] if one else list(given)
    for source in found:
        if not isinstance(source, str | os.PathLike):
            raise UsageError(
                "`data` must be paths of files or folders of predictions; got "
                f"{type(source).__name__}: save it as a file, and name that"
            )
        if not str(source) or not os.path.exists(source):
            raise UsageError(f"`data` {quoted(str(source))}: there is no such file or folder")
    return tuple(str(Path(source).resolve()) for source in found)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return value if isinstance(value, str | int | float) else [_plain(v) for v in value]


def _check(wanted: Manifest, options: Mapping[str, Any]) -> None:
    """Refuse unknown names, and what does not go together, before anything is read."""
    protocol = wanted.protocol
    if protocol.design == HISTOGRAMS:
        from bench.disagreement import method_of

        for method in protocol.methods:
            method_of(method)
        return
    resolve(list(protocol.metrics))
    check_shown(protocol)
    if protocol.design == TRAINED:
        unused = [k for k in ("by", "bins") if getattr(protocol, k)]
        asked = ("models", "exclude_models", "where", "most_items")
        unused += [k for k in asked if wanted.reading.get(k)]
        if unused:
            raise UsageError(
                f"`{unused[0]}` serves files of predictions; protocol {protocol.name!r} trains its "
                "classifiers: leave it out"
            )
        if set(wanted.reading.get("columns", ())) - {"label"}:
            raise UsageError(
                f"protocol {protocol.name!r} trains its classifiers; of the columns only `label` "
                "can be named"
            )
    check_used(protocol, options)


def _under_known_names(worlds: Sequence[Any], before: Manifest) -> list[Any]:
    """The data sets of a benchmark that goes on, which must be those it began with."""
    names = kept.known_names(before.datasets, [w.facts for w in worlds])
    named = [
        world if world.facts.name == name else replace(world, facts=replace(world.facts, name=name))
        for world, name in zip(worlds, names, strict=True)
    ]
    kept.check_data(before.datasets, [w.facts for w in named])
    return named


# --- computing -----------------------------------------------------------------------------------


class Computer(Kind):
    """What computes cells; it may keep what cells share."""

    def run(self, cell: Cell) -> Body:
        """Compute a cell; what a method cannot do is part of the answer."""
        ...


@dataclass
class _Worker:
    """Computes jobs with a computer of its own, which it makes where it works, and keeps cells."""

    make: Callable[[], Computer]
    cells: KeptCells | None
    computer: Computer | None = field(default=None, init=False)

    def __call__(self, job: Job) -> list[tuple[Cell, Body]]:
        try:
            return list(self.each(job))
        except MemoryError:
            raise InputError(
                "a worker ran out of memory: go on with `resume`, fewer `workers`"
            ) from None

    def each(self, job: Job) -> Iterator[tuple[Cell, Body]]:
        self.computer = self.computer or self.make()
        for cell in job:
            body = self.computer.run(cell)
            if self.cells is not None:
                self.cells.add(cell, body)
            yield cell, body


def run_jobs(
    jobs: Sequence[Job],
    make: Callable[[], Computer],
    workers: int,
    cells: KeptCells | None = None,
) -> Generator[tuple[Cell, Body], None, None]:
    """Every cell with what it found; whoever computes one keeps it before it is given.

    Each worker computes with a computer of its own, from `make`, which can be pickled. No answer
    depends on `workers`; one of them computes in this process. A kill loses what is at hand alone.

    Raises
    ------
    InputError
        If workers are killed again and again, or run out of memory; if a cell cannot be written.
    """
    worker = _Worker(make, cells)
    count = min(workers, len(jobs))
    if count <= 1:
        with threadpool_limits(limits=1):
            for job in jobs:
                yield from worker.each(job)
        return
    from fewlabels.streaming.executors import ProcessExecutor

    not_while_starting()
    with ProcessExecutor(count, mend=_MEND, guard=_GUARD) as executor:
        for answer in executor.map(worker, jobs, in_flight=IN_FLIGHT):
            if isinstance(answer, Failed):
                raise answer.error
            yield from answer


def kept_or_computed(
    cells: KeptCells,
    there: Mapping[Cell, Body],
    make: Callable[[], Computer],
    jobs: Sequence[Job],
    workers: int,
    progress: Progress,
) -> dict[Cell, Body]:
    """Every cell of the jobs: what is there of it already, or else computed and kept."""
    found = {c: there[c] for job in jobs for c in job if c in there}
    missing = [left for job in jobs if (left := tuple(c for c in job if c not in found))]
    total = sum(map(len, jobs))
    progress(len(found), total)
    with closing(run_jobs(missing, make, workers, cells)) as running:
        for cell, body in running:
            found[cell] = body
            progress(len(found), total)
    return found
