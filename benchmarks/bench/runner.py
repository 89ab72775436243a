"""Run a benchmark: every cell on every core, kept as it finishes, made rows of at the end.

Each design of a protocol is a module: `experiment` for methods of `fewlabels.estimate`,
`disagreement` for histograms of labels. It reads the data, plans the cells and computes one.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, replace
from functools import lru_cache, partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import fewlabels as fl
from bench.datasets import Reading
from bench.page import check_shown
from bench.protocol import FLOOR, HISTOGRAMS, REFERENCE, Protocol, load
from bench.results import CELLS, Results, check_free, read_manifest, write_manifest, writing
from bench.world import Body, Cell, DatasetFacts
from fewlabels import InputError, UsageError
from fewlabels.kernels.blocks import available_workers
from runs import Row, of_cells, run_jobs


def run(
    protocol: str | Path | Protocol, data: str | Path | Sequence[str | Path] = (),
    out: str | Path | None = None, *, resume: bool = False, workers: int | None = None,
    models: Sequence[str] = (), exclude_models: Sequence[str] = (),
    where: Mapping[str, str] | None = None, columns: Mapping[str, Any] | None = None,
    **options: Any,
) -> Results:  # fmt: skip
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
    **options
        Fields of `Protocol` to set otherwise.

    Returns
    -------
    The results; `Results.load(folder)` reads them again.
    """
    wanted = protocol if isinstance(protocol, Protocol) else load(protocol)
    wanted = wanted.with_options(**options)
    design = _design(wanted)
    if wanted.design != HISTOGRAMS:
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
    settings = {dataset.name: fingerprint(wanted, dataset) for dataset in facts}
    rows = [[cell._asdict() | {"settings": settings[cell.dataset]} for cell in job] for job in jobs]
    cells, asked = [*chain(*jobs)], [*chain(*rows)]
    compute = partial(_compute, pickle.dumps((sources, reading, wanted, facts)))
    with writing(folder):
        try:
            kept = run_jobs(folder / CELLS, compute, rows, workers or available_workers(), "splits")
        except BrokenProcessPool:
            raise InputError(
                "a worker process ended too early: with too little memory go on with `resume` and "
                "fewer `workers`; a script that runs a benchmark with several workers must do so "
                "under `if __name__ == '__main__':`"
            ) from None
        done = dict(zip(cells, of_cells(kept, asked), strict=True))
        results = Results.of_cells(done, wanted, facts, tuple(found["skipped"]), folder)
        results.save(folder)
    return results


_FREE = ("title", "source", "tables", "figures", "runs", "methods", "n_labeled", "levels")
"""Fields that no cell depends on besides its own key."""


def fingerprint(protocol: Protocol, dataset: DatasetFacts) -> str:
    """Hash of all that the cells of a data set depend on besides their own keys."""
    fixed = {k: v for k, v in protocol.plain().items() if k not in _FREE}
    # The curve draws its items beside the first number of unlabeled ones.
    fixed["n_unlabeled"] = fixed["n_unlabeled"][0]
    text = json.dumps([fl.__version__, fixed, dataset.digest], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def _compute(made_of: bytes, cell: Row) -> Body:
    """What a cell finds, by a computer that each process makes once."""
    return _computer(made_of).run(Cell(**{k: v for k, v in cell.items() if k != "settings"}))


@lru_cache(maxsize=1)
def _computer(made_of: bytes) -> Any:
    sources, reading, protocol, _ = pickle.loads(made_of)  # the facts, as data may change
    design = _design(protocol)
    worlds, _ = design.read_worlds(sources, reading, protocol)
    return design.Bench({world.facts.name: world for world in worlds}, protocol)


def _design(protocol: Protocol) -> Any:
    """The module that reads the data of a protocol, plans its cells and computes one."""
    return import_module(
        f"bench.{'disagreement' if protocol.design == HISTOGRAMS else 'experiment'}"
    )
