"""Run a benchmark: every cell on every core, kept as it finishes, made rows of at the end.

Each design of a protocol is a module: `experiment` for methods of `fewlabels.estimate`,
`disagreement` for histograms of labels. It reads the data, plans the cells and computes one.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

import fewlabels as fl
from bench.cells import Body, Cell, DatasetFacts, Job
from bench.datasets import Reading
from bench.folder import KeptCells, check_free, read_manifest, write_manifest, writing
from bench.page import check_shown
from bench.protocol import FLOOR, HISTOGRAMS, REFERENCE, Protocol, load
from bench.results import Results, long_table, traits_table
from fewlabels import InputError, UsageError
from fewlabels.kernels.blocks import available_workers

Progress = Callable[[int, int], None]

_TRIES = 3
"""How often workers may be killed before a run gives up."""


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
    progress: Progress | None = None,
    **options: Any,
) -> Results:
    """Run a benchmark on files of predictions, and write what it finds.

    Parameters
    ----------
    protocol
        Name of a protocol (`bench.names()`), path of a .toml file, or a `Protocol`.
    data
        Paths of files of predictions, or of folders of them; every item needs a label.
    out
        Folder for cells and results; ./benchmark-<name> unless given.
    resume
        Take over the finished cells of the folder that this run asks for.
    workers
        Processes; the answer does not depend on them. None: one per available processor.
    models, exclude_models
        Only these classifiers, or all but these.
    where
        Keep the rows whose columns have these values (as text).
    columns
        Further arguments of `fewlabels.read_predictions`, if columns have other names.
    progress
        Called with (cells done, cells in all).
    **options
        Fields of `Protocol` to set otherwise.

    Returns
    -------
    The results; `Results.load(folder)` reads them again.
    """
    wanted = protocol if isinstance(protocol, Protocol) else load(protocol)
    wanted = wanted.with_options(**options)
    histograms = wanted.design == HISTOGRAMS
    design: Any = import_module(f"bench.{'disagreement' if histograms else 'experiment'}")
    if not histograms:
        methods = dict.fromkeys([REFERENCE, *wanted.methods])
        first = methods if REFERENCE not in wanted.methods else wanted.methods
        wanted = replace(wanted, methods=tuple(m for m in first if m != FLOOR))
        fl.metrics.resolve(list(wanted.metrics))
        check_shown(wanted)
    for method in wanted.methods:
        design.model_of(method)
    sources = [data] if isinstance(data, str | Path) else list(data)
    if not sources:
        raise UsageError("no data; name files or folders of predictions with `data`")
    folder = Path(out or f"benchmark-{wanted.name}")
    if resume:
        before = read_manifest(folder).get("protocol", {}).get("name")
        if before != wanted.name:
            raise UsageError(f"`resume`: {folder} holds protocol {before!r}, not {wanted.name!r}")
    else:
        check_free(folder)
    reading = Reading(tuple(models), tuple(exclude_models), dict(where or {}), dict(columns or {}))
    worlds, skipped = design.read_worlds(sources, reading, wanted)
    jobs, too_large = design.plan(wanted, worlds)
    facts = tuple(world.facts for world in worlds)
    found = {
        "fewlabels": fl.__version__, "protocol": wanted.plain(),
        "datasets": [asdict(dataset) for dataset in facts], "skipped": [*skipped, *too_large],
    }  # fmt: skip
    write_manifest(folder, found)
    cells = KeptCells(folder, {d.name: fingerprint(wanted, d) for d in facts})
    make = partial(design.Bench, {w.facts.name: w for w in worlds}, wanted)
    there = cells.read() if resume else {}
    done = kept_or_computed(cells, there, make, jobs, workers, progress)
    results = Results(
        wanted, facts, long_table(done, wanted), traits_table(done), tuple(found["skipped"]), folder
    )
    with writing(folder):
        results.save(folder)
    return results


_FREE = (
    "title", "source", "tables", "figures", "runs", "methods", "n_labeled", "levels",
)  # fmt: skip
"""Fields that no cell depends on besides its own key."""


def fingerprint(protocol: Protocol, dataset: DatasetFacts) -> str:
    """Hash of all that the cells of a data set depend on besides their own keys."""
    fixed = {k: v for k, v in protocol.plain().items() if k not in _FREE}
    # The curve draws its items beside the first number of unlabeled ones.
    fixed["n_unlabeled"] = fixed["n_unlabeled"][0]
    text = json.dumps([fl.__version__, fixed, dataset.digest], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


# --- computing -----------------------------------------------------------------------------------


class Worker:
    """Computes jobs with a computer that it makes where it works, and keeps cells as they finish.

    `make` gives an object whose method `run` computes a cell; it may keep what cells share.
    """

    def __init__(self, make: Callable[[], Any], cells: KeptCells | None) -> None:
        self.make, self.cells, self.computer = make, cells, None

    def __call__(self, job: Job) -> Iterator[tuple[Cell, Body]]:
        """Every cell of a job with what it found."""
        self.computer = self.computer or self.make()
        with threadpool_limits(limits=1):
            for cell in job:
                body = self.computer.run(cell)
                if self.cells is not None:
                    self.cells.add(cell, body)
                yield cell, body


_worker: Worker | None = None
"""Of a process of the pool."""


def _begin(make: Callable[[], Any], cells: KeptCells | None) -> None:
    """Make a process of the pool ready; it ends when its parent does, however that ends."""
    global _worker
    _worker = Worker(make, cells)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


def _work(job: Job) -> list[tuple[Cell, Body]]:
    assert _worker is not None
    return list(_worker(job))


def run_jobs(
    jobs: Sequence[Job],
    make: Callable[[], Any],
    workers: int | None = None,
    cells: KeptCells | None = None,
) -> Generator[tuple[Cell, Body], None, None]:
    """Every cell with what it found; whoever computes one keeps it at once.

    No answer depends on `workers`; one of them computes in this process. Workers that are killed
    are replaced, a few times.
    """
    count = min(available_workers() if workers is None else workers, len(jobs))
    if count <= 1:
        worker = Worker(make, cells)
        for job in jobs:
            yield from worker(job)
        return
    left = dict.fromkeys(jobs)
    for _ in range(_TRIES):
        before = {*multiprocessing.active_children()}
        pool = ProcessPoolExecutor(
            count, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(make, cells)
        )
        try:
            futures = {pool.submit(_work, job): job for job in left}
            for future in as_completed(futures):
                yield from future.result()
                del left[futures[future]]
            return
        except BrokenProcessPool:
            continue
        finally:
            pool.shutdown(wait=not left, cancel_futures=True)
            for child in {*multiprocessing.active_children()} - before if left else ():
                child.terminate()
    raise InputError(
        "worker processes ended too early, again and again: with too little memory go on with "
        "`resume` and fewer `workers`; a script that runs a benchmark with several workers must "
        "do so under `if __name__ == '__main__':`"
    )


def kept_or_computed(
    cells: KeptCells,
    there: Mapping[Cell, Body],
    make: Callable[[], Any],
    jobs: Sequence[Job],
    workers: int | None = None,
    progress: Progress | None = None,
) -> dict[Cell, Body]:
    """Every cell of the jobs: what is there of it already, or else computed and kept."""
    found = {c: there[c] for job in jobs for c in job if c in there}
    missing = [left for job in jobs if (left := tuple(c for c in job if c not in found))]
    total = sum(map(len, jobs))
    with closing(run_jobs(missing, make, workers, cells)) as running:
        for cell, body in running:
            found[cell] = body
            if progress is not None:
                progress(len(found), total)
    return found
