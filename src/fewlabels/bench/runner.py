"""Run a benchmark: every cell on every core, kept as it finishes, merged at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from fewlabels.bench import manifest, methods
from fewlabels.bench.cells import Body, Cell
from fewlabels.bench.datasets import Reading, read_datasets
from fewlabels.bench.files import alone_in
from fewlabels.bench.manifest import Manifest
from fewlabels.bench.merge import tidy, traits
from fewlabels.bench.parts import Parts, any_parts
from fewlabels.bench.plan import plan
from fewlabels.bench.pool import Job, run_jobs
from fewlabels.bench.protocol import Protocol, load, names
from fewlabels.bench.results import Results
from fewlabels.bench.semisynthetic import read_tables
from fewlabels.bench.world import World
from fewlabels.errors import InputError, UsageError
from fewlabels.kernels.blocks import available_workers
from fewlabels.metrics.registry import resolve
from fewlabels.wording import one_line, quoted

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
        Files of predictions, or folders of them; every item needs a label.
    out
        Folder for parts and results; ./benchmark-<name> unless given.
    resume
        Go on in a folder where a benchmark was interrupted, or add to it: more runs, methods,
        sizes, levels or data. What is not named stays as it was.
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
        Fields of `Protocol` to set otherwise: methods, metrics, n_labeled, n_unlabeled, runs,
        seed, sampler, confidence_level, by, bins, ...

    Returns
    -------
    The results; `Results.load(folder)` reads them again.

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it. What is finished is kept.
    """
    begun, given = _protocol(protocol, options, resume)
    folder = Path(out if out is not None else f"benchmark-{begun.name}")
    asked = Manifest(
        begun,
        _places([data] if isinstance(data, str | Path) else data),
        _reading(models, exclude_models, where or {}, columns or {}),
    )
    before = _before(folder, asked, given) if resume else None
    wanted = before or asked
    _check(wanted)
    if not wanted.data:
        raise UsageError("no data; name files or folders of predictions with --data")
    if not resume and any_parts(folder / "parts"):
        raise UsageError(
            f"{one_line(str(folder))} holds parts of a benchmark already; go on with it by "
            "--resume, or name another --out"
        )
    worlds, skipped = _worlds(wanted)
    if before is not None:
        manifest.check_data(before.datasets, [w.facts for w in worlds])
    jobs, lines = _jobs(wanted.protocol, worlds)
    wanted = replace(wanted, datasets=tuple(w.facts for w in worlds), skipped=(*skipped, *lines))
    with _held(folder):
        found = _compute(folder, wanted, worlds, jobs, workers, progress)
        results = Results(
            wanted.protocol, wanted.datasets, tidy(found, wanted.protocol), traits(found),
            wanted.skipped, folder,
        )  # fmt: skip
        with _writing(folder):
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
    if not resume or "methods" in given:
        asked = replace(asked, methods=_methods(asked.methods))
    return asked, {field: getattr(asked, field) for field in given}


def _methods(asked: Sequence[str]) -> tuple[str, ...]:
    """In their one spelling; with Labeled, which all are compared with, and without the floor."""
    spelled = [m for m in asked if m != methods.FLOOR]
    if methods.REFERENCE not in spelled:
        spelled.insert(0, methods.REFERENCE)
    return tuple(dict.fromkeys(methods.canonical(m) for m in spelled))


def _places(data: Sequence[str | Path]) -> tuple[str, ...]:
    """Absolute paths, so that a benchmark can go on from elsewhere."""
    for source in data:
        if not Path(source).exists():
            raise UsageError(f"--data {quoted(str(source))}: there is no such file or folder")
    return tuple(str(Path(source).resolve()) for source in data)


def _reading(
    models: Sequence[str],
    exclude_models: Sequence[str],
    where: Mapping[str, str],
    columns: Mapping[str, Any],
) -> dict[str, Any]:
    """What says how to read, as plain JSON values; empty where nothing is said."""
    said = {
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
        data=manifest.union(before.data, asked.data),
        reading=dict(before.reading) | dict(asked.reading),
    )


def _check(wanted: Manifest) -> None:
    """Refuse unknown metrics, and what does not go together, before anything is read."""
    protocol = wanted.protocol
    resolve(list(protocol.metrics))
    if protocol.design != "trained sets":
        return
    if not protocol.slice_by:
        raise UsageError("name the numeric column that classifiers are trained on with --slice-by")
    unused = [k for k in ("models", "exclude_models", "where") if wanted.reading.get(k)]
    if protocol.by or unused:
        raise UsageError(
            f"`{'by' if protocol.by else unused[0]}` serves files of predictions; protocol "
            f"{protocol.name!r} trains its classifiers"
        )


def _worlds(wanted: Manifest) -> tuple[list[World], list[str]]:
    said = wanted.reading
    columns = said.get("columns", {})
    if wanted.protocol.design == "trained sets":
        tables, skipped = read_tables(wanted.data, wanted.protocol, columns.get("label"))
        return list(tables), skipped
    reading = Reading(
        tuple(said.get("models", ())),
        tuple(said.get("exclude_models", ())),
        tuple(said.get("where", {}).items()),
        columns,
    )
    datasets, skipped = read_datasets(wanted.data, wanted.protocol, reading)
    return list(datasets), skipped


def _jobs(protocol: Protocol, worlds: Sequence[World]) -> tuple[list[Job], list[str]]:
    jobs, lines = [], []
    for world in worlds:
        own, skipped = plan(protocol, world)
        jobs += own
        lines += skipped
    if not jobs:
        raise InputError(f"nothing can run: {'; '.join(lines)}")
    return jobs, lines


def _compute(
    folder: Path,
    wanted: Manifest,
    worlds: Sequence[World],
    jobs: Sequence[Job],
    workers: int | None,
    progress: Progress | None,
) -> dict[Cell, Body]:
    """What every cell found: read where it is there, else computed and kept."""
    parts = Parts(
        folder / "parts",
        {w.facts.name: manifest.fingerprint(wanted.protocol, w.facts) for w in worlds},
    )
    with _writing(folder):
        parts.prepare()
        wanted.write(folder)
    found = {c: b for job in jobs for c in job if (b := parts.read(c)) is not None}
    missing = [tuple(c for c in job if c not in found) for job in jobs]
    missing = [job for job in missing if job]
    total = sum(map(len, jobs))
    advance = progress or _silent
    advance(len(found), total)
    count = available_workers() if workers is None else workers
    named = {w.facts.name: w for w in worlds}
    with closing(run_jobs(missing, named, wanted.protocol, count)) as running:
        for cell, body in running:
            with _writing(folder):
                parts.write(cell, body)
            found[cell] = body
            advance(len(found), total)
    return found


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """The folder is there, and no other process computes in it."""
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with alone_in(folder) as alone:
        if not alone:
            raise UsageError(
                f"another process runs a benchmark in {one_line(str(folder))}; wait for it, or "
                "name another --out"
            )
        yield


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write in {one_line(str(folder))}: {error.strerror or error}; what is finished "
            "is kept: make room or name another --out, and go on with --resume"
        ) from None


def _silent(done: int, total: int) -> None:
    """Show no progress."""
