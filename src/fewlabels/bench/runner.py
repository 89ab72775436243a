"""Run a benchmark: every cell on every core, kept as it finishes, merged at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from fewlabels.bench import manifest, methods
from fewlabels.bench.cells import Bench, Body, Cell
from fewlabels.bench.datasets import Reading, read_datasets
from fewlabels.bench.folder import PARTS, check_free, folder_of, held, writing
from fewlabels.bench.manifest import Manifest
from fewlabels.bench.merge import Columns, tidy, traits
from fewlabels.bench.parts import Parts
from fewlabels.bench.plan import plan
from fewlabels.bench.pool import Computer, Job, run_jobs
from fewlabels.bench.pool_of_file import MOST_ITEMS
from fewlabels.bench.protocol import Protocol, check_used, load, names
from fewlabels.bench.results import Results
from fewlabels.bench.semisynthetic import read_tables
from fewlabels.bench.summary import FIGURES, TABLES
from fewlabels.errors import UsageError, quoted, unknown
from fewlabels.kernels.blocks import available_workers, silent, using_workers
from fewlabels.metrics.registry import resolve

Progress = Callable[[int, int], None]


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
        Name of a protocol of the package (`fewlabels.bench.names()`), path of a .toml file, or a
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
    begun, given = _protocol(protocol, options, resume)

    def check(wanted: Manifest) -> None:
        _check(wanted)
        check_used(wanted.protocol, options)

    asked = Asked(begun, given, out, resume, workers, progress, check)
    reading = reading_of(models, exclude_models, where or {}, columns or {}, most_items)
    return conduct(Design(_worlds, plan, Bench), asked, data, reading)


class Design(NamedTuple):
    """What one kind of benchmark reads, and what it computes of that.

    `plan` makes jobs of the data sets, with lines about what cannot run; `bench` computes their
    cells, of which `tidy` makes rows. With `threads` its workers are threads of this process, as
    others would each hold all data.
    """

    read: Callable[[Manifest], tuple[list[Any], list[str]]]
    plan: Callable[[Protocol, Sequence[Any]], tuple[list[Job], list[str]]]
    bench: Callable[[Mapping[str, Any], Protocol], Computer]
    tidy: Callable[[Mapping[Cell, Body], Protocol], Columns] = tidy
    threads: bool = False


class Asked(NamedTuple):
    """A benchmark as it is asked for; `given` are fields of the protocol that were named."""

    protocol: Protocol
    given: Mapping[str, Any]
    out: str | Path | None
    resume: bool
    workers: int | None
    progress: Progress | None
    check: Callable[[Manifest], None] = lambda wanted: None


def conduct(
    design: Design,
    asked: Asked,
    data: str | Path | Sequence[str | Path],
    reading: Mapping[str, Any],
) -> Results:
    """Run what is asked for, or go on with it, and write what it finds.

    Raises
    ------
    UsageError, InputError
        As `run`.
    """
    folder = folder_of(asked.out, asked.protocol.name)
    wanted = Manifest(asked.protocol, places_of(data), reading)
    before = _before(folder, wanted, asked.given) if asked.resume else None
    wanted = before or wanted
    asked.check(wanted)
    if not wanted.data:
        raise UsageError("no data; name files or folders of predictions with `data`")
    if not asked.resume:
        check_free(folder)
    worlds, skipped = design.read(wanted)
    if before is not None:
        worlds = _under_known_names(worlds, before)
    jobs, lines = design.plan(wanted.protocol, worlds)
    wanted = replace(wanted, datasets=tuple(w.facts for w in worlds), skipped=(*skipped, *lines))
    with held(folder):
        if not asked.resume:
            check_free(folder)  # another process may have begun while this one read the data
        make = partial(design.bench, {w.facts.name: w for w in worlds}, wanted.protocol)
        with using_workers(asked.workers):
            count = 1 if design.threads else available_workers()
            found = _compute(folder, wanted, make, jobs, count, asked.progress or silent)
        results = Results(
            wanted.protocol, wanted.datasets, design.tidy(found, wanted.protocol), traits(found),
            wanted.skipped, folder,
        )  # fmt: skip
        with writing(folder):
            results.save(folder)
    return results


def _protocol(
    protocol: str | Path | Protocol, options: Mapping[str, Any], resume: bool
) -> tuple[Protocol, dict[str, Any]]:
    """The protocol, and what a resumed one is asked for: a file's fields all count as asked."""
    named = not isinstance(protocol, Protocol) and str(protocol) in names()
    begun = protocol if isinstance(protocol, Protocol) else load(protocol)
    given = list(options) if named else [f.name for f in fields(Protocol) if f.name != "name"]
    asked = begun.with_options(**options)
    if begun.confidence_level is None and "estimand" not in options:
        asked = asked.with_fitting_estimand()
        if asked.estimand != begun.estimand:
            given = [f for f in given if f != "estimand"]  # what goes on keeps its own
    if not resume or "methods" in given:
        asked = replace(asked, methods=_methods(asked.methods))
    return asked, {field: getattr(asked, field) for field in given}


def _methods(asked: Sequence[str]) -> tuple[str, ...]:
    """In their one spelling; with Labeled, which all are compared with, and without the floor."""
    spelled = [m for m in asked if m != methods.FLOOR]
    if methods.REFERENCE not in spelled:
        spelled.insert(0, methods.REFERENCE)
    return tuple(dict.fromkeys(methods.canonical(m) for m in spelled))


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


def reading_of(
    models: Sequence[str],
    exclude_models: Sequence[str],
    where: Mapping[str, str],
    columns: Mapping[str, Any],
    most_items: int | None,
) -> dict[str, Any]:
    """What says how to read, as plain JSON values; empty where nothing is said.

    Raises
    ------
    UsageError
        If `most_items` is no number of items that can be divided.
    """
    if most_items is not None and most_items < 2:
        raise UsageError(f"`most_items` must be 2 or more; got {most_items!r}")
    said = {
        "most_items": most_items,
        "models": list(models),
        "exclude_models": list(exclude_models),
        "where": dict(where),
        "columns": {k: _plain(v) for k, v in columns.items() if v is not None and v != {}},
    }
    return {k: v for k, v in said.items() if v}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return value if isinstance(value, str | int | float) else [_plain(v) for v in value]


def _before(folder: Path, asked: Manifest, given: Mapping[str, Any]) -> Manifest:
    """What the folder holds, with what is asked for besides."""
    before = manifest.read(folder)
    return replace(
        before,
        protocol=manifest.grown(before.protocol, asked.protocol.name, given),
        data=manifest.places(before.data, asked.data),
        reading=dict(before.reading) | dict(asked.reading),
    )


def _check(wanted: Manifest) -> None:
    """Refuse unknown names, and what does not go together, before anything is read."""
    protocol = wanted.protocol
    resolve(list(protocol.metrics))
    shown = (("table", protocol.tables, TABLES), ("figure", protocol.figures, FIGURES))
    for kind, asked, known in shown:
        for name in asked:
            if name not in known:
                raise UsageError(unknown(kind, name, known))
    if protocol.design != "trained sets":
        return
    unused = [
        k for k in ("models", "exclude_models", "where", "most_items") if wanted.reading.get(k)
    ]
    unused = [k for k in ("by", "bins") if getattr(protocol, k)] + unused
    if unused:
        raise UsageError(
            f"`{unused[0]}` serves files of predictions; protocol {protocol.name!r} trains its "
            "classifiers: leave it out"
        )
    if set(wanted.reading.get("columns", ())) - {"label"}:
        raise UsageError(
            f"protocol {protocol.name!r} trains its classifiers; of the columns only `label` can "
            "be named"
        )


def _worlds(wanted: Manifest) -> tuple[list[Any], list[str]]:
    said = wanted.reading
    columns = said.get("columns", {})
    if wanted.protocol.design == "trained sets":
        tables, skipped = read_tables(wanted.data, wanted.protocol, columns.get("label"))
        return list(tables), skipped
    datasets, skipped = read_datasets(wanted.data, wanted.protocol, asked_for(said))
    return list(datasets), skipped


def asked_for(said: Mapping[str, Any]) -> Reading:
    """How files are read, from what `reading_of` gave."""
    return Reading(
        tuple(said.get("models", ())),
        tuple(said.get("exclude_models", ())),
        tuple(said.get("where", {}).items()),
        said.get("columns", {}),
        said.get("most_items", MOST_ITEMS),
    )


def _under_known_names(worlds: Sequence[Any], before: Manifest) -> list[Any]:
    """The data sets of a benchmark that goes on, which must be those it began with."""
    names = manifest.known_names(before.datasets, [w.facts for w in worlds])
    named = [
        world if world.facts.name == name else replace(world, facts=replace(world.facts, name=name))
        for world, name in zip(worlds, names, strict=True)
    ]
    manifest.check_data(before.datasets, [w.facts for w in named])
    return named


def _compute(
    folder: Path,
    wanted: Manifest,
    make: Callable[[], Computer],
    jobs: Sequence[Job],
    workers: int,
    progress: Progress,
) -> dict[Cell, Body]:
    """What every cell found: read where it is there, else computed and kept."""
    facts = wanted.datasets
    parts = Parts(folder / PARTS, {d.name: manifest.fingerprint(wanted.protocol, d) for d in facts})
    with writing(folder):
        wanted.write(folder)  # first: without it nobody could tell whose the parts are
        parts.prepare()
    return kept_or_computed(folder, parts, parts.read, make, jobs, workers, progress)


def kept_or_computed(
    folder: Path,
    parts: Parts,
    read: Callable[[Cell], Body | None],
    make: Callable[[], Computer],
    jobs: Sequence[Job],
    workers: int,
    progress: Progress,
) -> dict[Cell, Body]:
    """Every cell of the jobs: what `read` gives of it, or else computed and kept as a part."""
    found = {c: b for job in jobs for c in job if (b := read(c)) is not None}
    missing = [tuple(c for c in job if c not in found) for job in jobs]
    missing = [job for job in missing if job]
    total = sum(map(len, jobs))
    progress(len(found), total)
    with closing(run_jobs(missing, make, workers, folder, parts)) as running:
        for cell, body in running:
            found[cell] = body
            progress(len(found), total)
    return found
