"""Run the benchmark of disagreement: every cell once, kept as it finishes, merged at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fewlabels.bench import manifest
from fewlabels.bench.cells import Body, Cell
from fewlabels.bench.disagreement.cells import compute
from fewlabels.bench.disagreement.data import HistogramWorld, read_worlds
from fewlabels.bench.disagreement.protocol import NAME, asked
from fewlabels.bench.disagreement.trial import Trial
from fewlabels.bench.folder import PARTS, check_free, folder_of, held, writing
from fewlabels.bench.manifest import Manifest
from fewlabels.bench.merge import tidy
from fewlabels.bench.parts import Parts
from fewlabels.bench.protocol import Protocol
from fewlabels.bench.results import TRAITS, Results
from fewlabels.bench.runner import Progress, asked_for, places_of, reading_of, silent
from fewlabels.errors import Status, UsageError
from fewlabels.kernels.blocks import using_workers

Job = tuple[Cell, ...]
"""Cells of one trial."""


def run(
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
    """Measure on files with p__ and h__ columns how far calibration maps and alpha-calibration go.

    Parameters
    ----------
    data
        Paths of files with probabilities and histograms of labels, or of folders of them. Where
        there is a column `partition` with the values valid and test, maps are fitted to the
        former and measured on the latter; else to random halves, new in every run.
    out, resume
        As at `fewlabels.bench.run`; ./benchmark-disagreement unless given.
    workers
        Threads; the answer does not depend on them. None: one per available processor.
    models, exclude_models, where, columns, most_items, progress
        As at `fewlabels.bench.run`.
    **options
        runs, methods (`<scaling>` or `<scaling>+alpha-<concentration>`), seed, and
        labels_per_item: how many labels a validation item keeps, one number or several.

    Returns
    -------
    Results
        Tidy rows; `n_labeled` are labels per validation item, `truth` is unknown.

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it. What is finished is kept.
    """
    protocol, given = asked(options)
    folder = folder_of(out, NAME)
    wanted = Manifest(
        protocol,
        places_of(data),
        reading_of(models, exclude_models, where or {}, columns or {}, most_items),
    )
    before = None
    if resume:
        before = manifest.read(folder)
        wanted = replace(
            before,
            protocol=manifest.grown(before.protocol, NAME, given),
            data=manifest.places(before.data, wanted.data),
            reading=dict(before.reading) | dict(wanted.reading),
        )
    if not wanted.data:
        raise UsageError("no data; name files or folders of predictions with `data`")
    if not resume:
        check_free(folder)
    worlds, skipped = read_worlds(wanted.data, asked_for(wanted.reading))
    if before is not None:
        worlds = _under_known_names(worlds, before)
    wanted = replace(wanted, datasets=tuple(w.facts for w in worlds), skipped=tuple(skipped))
    with held(folder), using_workers(workers):
        if not resume:
            check_free(folder)  # another process may have begun while this one read the data
        found = _compute(folder, wanted, worlds, progress or silent)
        results = Results(
            wanted.protocol, wanted.datasets, _applicable(tidy(found, wanted.protocol)),
            {name: np.empty(0, dtype=object if kind is str else kind)
             for name, kind in TRAITS.items()},
            wanted.skipped, folder,
        )  # fmt: skip
        with writing(folder):
            results.save(folder)
    return results


def _under_known_names(worlds: Sequence[HistogramWorld], before: Manifest) -> list[HistogramWorld]:
    """The data sets of a benchmark that goes on, which must be those it began with."""
    names = manifest.known_names(before.datasets, [w.facts for w in worlds])
    named = [
        replace(world, facts=replace(world.facts, name=name))
        for world, name in zip(worlds, names, strict=True)
    ]
    manifest.check_data(before.datasets, [w.facts for w in named])
    return named


def _jobs(protocol: Protocol, worlds: Sequence[HistogramWorld]) -> Iterator[Job]:
    for world in worlds:
        for run in range(protocol.runs):
            for size in protocol.n_labeled:
                place = ("estimates", world.facts.name, "", size, 0, run)
                yield tuple(Cell(*place, method) for method in protocol.methods)


def _compute(
    folder: Path,
    wanted: Manifest,
    worlds: Sequence[HistogramWorld],
    progress: Callable[[int, int], None],
) -> dict[Cell, Body]:
    """What every cell found: read where it is there, else computed and kept.

    Threads share the classifiers of a cell; processes would each hold all data.
    """
    protocol = wanted.protocol
    parts = Parts(
        folder / PARTS, {w.facts.name: manifest.fingerprint(protocol, w.facts) for w in worlds}
    )
    with writing(folder):
        wanted.write(folder)  # first: without it nobody could tell whose the parts are
        parts.prepare()
    named = {world.facts.name: world for world in worlds}
    jobs = list(_jobs(protocol, worlds))
    total = sum(map(len, jobs))
    found: dict[Cell, Body] = {}
    for job in jobs:
        found |= {cell: body for cell in job if (body := parts.read(cell)) is not None}
    progress(len(found), total)
    for job in jobs:
        missing = [cell for cell in job if cell not in found]
        if not missing:
            continue
        first = missing[0]
        trial = Trial(named[first.dataset], protocol.seed, first.run, first.n_labeled)
        for cell in missing:
            found[cell] = compute(trial, cell.method)
            with writing(folder):
                parts.write(cell, found[cell])
            progress(len(found), total)
    return found


def _applicable(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Without the rows of metrics that a method has not, and of empty bins."""
    kept = columns["status"] != str(Status.NOT_APPLICABLE)
    return {name: values[kept] for name, values in columns.items()}
