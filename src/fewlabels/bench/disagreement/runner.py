"""Run the benchmark of disagreement: what it reads and plans; the rest is `fewlabels.bench.run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fewlabels.bench.cells import Body, Cell
from fewlabels.bench.disagreement.cells import Bench
from fewlabels.bench.disagreement.data import HistogramWorld, read_worlds
from fewlabels.bench.disagreement.protocol import asked
from fewlabels.bench.manifest import Manifest
from fewlabels.bench.merge import Columns, tidy
from fewlabels.bench.pool import Job
from fewlabels.bench.protocol import Protocol
from fewlabels.bench.results import Results
from fewlabels.bench.runner import Asked, Design, Progress, asked_for, conduct, reading_of
from fewlabels.errors import Status


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
    reading = reading_of(models, exclude_models, where or {}, columns or {}, most_items)
    wanted = Asked(protocol, given, out, resume, workers, progress)
    return conduct(Design(_worlds, _plan, Bench, _applicable, threads=True), wanted, data, reading)


def _worlds(wanted: Manifest) -> tuple[list[HistogramWorld], list[str]]:
    return read_worlds(wanted.data, asked_for(wanted.reading))


def _plan(protocol: Protocol, worlds: Sequence[HistogramWorld]) -> tuple[list[Job], list[str]]:
    """A job per trial; every data set can serve every number of labels."""
    return [
        tuple(Cell("estimates", w.facts.name, "", n, 0, run, m) for m in protocol.methods)
        for w in worlds
        for run in range(protocol.runs)
        for n in protocol.n_labeled
    ], []


def _applicable(found: Mapping[Cell, Body], protocol: Protocol) -> Columns:
    """Tidy rows without those of metrics that a method has not, and of empty bins."""
    columns = tidy(found, protocol)
    kept = columns["status"] != str(Status.NOT_APPLICABLE)
    return {name: values[kept] for name, values in columns.items()}
