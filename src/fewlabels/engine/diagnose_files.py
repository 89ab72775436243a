"""`diagnose_files`: what is in files of more rows than fit into memory, and all that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from fewlabels.door import sampling_weight
from fewlabels.engine.executors import Engine, open_executor
from fewlabels.engine.passes import Passes, Progress
from fewlabels.engine.reading import Reader, find_classes, occurring
from fewlabels.engine.seen import Seen, see_unit
from fewlabels.engine.units import Layout, lay_out
from fewlabels.engine.work import Feed
from fewlabels.errors import InputError
from fewlabels.frames.doctor.classifiers import classifier_findings
from fewlabels.frames.doctor.diagnose import (
    column_findings,
    minus_one_findings,
    note_findings,
    worst_first,
)
from fewlabels.frames.doctor.diagnosis import Diagnosis, Finding
from fewlabels.frames.doctor.facts import balance
from fewlabels.frames.doctor.labels import (
    class_findings,
    group_findings,
    label_findings,
    repeat_findings,
)
from fewlabels.frames.doctor.votes import overlap_findings
from fewlabels.frames.options import ColumnOptions, column_options
from fewlabels.frames.read import column_names
from fewlabels.frames.standard_input import is_standard_input
from fewlabels.frames.table import Table
from fewlabels.kernels.blocks import using_workers
from fewlabels.predictions import Predictions
from fewlabels.wording import one_line


def diagnose_files(
    source: str | Path,
    *,
    engine: Engine = "threads",
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[Progress], None] | None = None,
    **columns: Any,
) -> Diagnosis:
    """Say what is in Parquet or CSV files of any size, and everything that is wrong with them.

    All files are read to their ends: every one that cannot be is a finding of severity "error", and
    so is the first bad cell of each part. Counts are of all rows; what compares items with each
    other is looked at on a sample of them, which a finding says.

    Parameters
    ----------
    source
        A Parquet or CSV file, or a folder of such files of one kind.
    engine, workers, scheduler, progress
        As in `fewlabels.estimate_files`.
    columns
        As in `fewlabels.read_predictions`: label, models, domain, weight, columns, classes.

    Raises
    ------
    InputError
        If there is no such file or folder.
    UsageError
        If an argument is not what is said here.
    """
    options = column_options(**columns)
    case = _Case(str(source), options)
    try:
        layout = lay_out(source, options, skip_bad_files=True)
        case.open(layout)
        reader = Reader(
            layout, find_classes(layout, options, skip_bad_files=True), layout.roles.groups
        )
    except InputError as error:
        if not (is_standard_input(str(source)) or Path(source).exists()):
            raise
        case.refuse(str(error), source)
        return case.diagnosis()
    executor = open_executor(engine, workers, scheduler)
    passes = Passes(executor, layout.units, progress=progress)
    with passes, using_workers(workers):
        seen = passes.run("looking", partial(see_unit, Feed(reader)), Seen, _no_checkpoint)
    case.look(reader, seen)
    return case.diagnosis()


def _no_checkpoint(value: object) -> Seen:
    raise AssertionError("a diagnosis keeps no checkpoints")


@dataclass
class _Case:
    """What has been learnt so far."""

    name: str
    options: ColumnOptions
    positive: str | None = None
    reading: tuple[str, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    described: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    balance: dict[str, Any] = field(
        default_factory=lambda: {"labels": None, "predicted": {}, "classes": []}
    )

    def open(self, layout: Layout) -> None:
        """The columns, and the files that cannot be opened."""
        self.described = dict(layout.roles.described())
        self.options, self.reading = layout.options, layout.reading
        for bad in layout.skipped:
            self._error(f"{self.name}: {bad.name}: {bad.reason}")

    def refuse(self, message: str, source: str | Path) -> None:
        """Nothing can be read, but perhaps the names of the columns."""
        self._error(message)
        if not self.described:
            try:
                names = column_names(source)
            except InputError:
                return
            single = ("label", "domain", "weight")
            self.described = {n: n if n in single else "not recognised" for n in names}
        self.findings.extend(column_findings(self.described, None, ()))

    def _error(self, message: str) -> None:
        self.findings.append(Finding("error", one_line(message), self.name, ""))

    def look(self, reader: Reader, seen: Seen) -> None:
        """Collect the findings about all rows that could be read."""
        layout = reader.layout
        for bad in seen.errors:
            self._error(bad.reason)
        if seen.errors:
            self.findings.append(
                Finding(
                    "info",
                    "what follows a bad cell in the same part of a file is not looked at",
                    self.name,
                    "mend the errors and look again",
                )
            )
        if seen.labels is None or seen.said is None:
            self.findings.extend(column_findings(self.described, None, ()))
            return
        models, classes = layout.roles.models, reader.classes.names
        self.positive = reader.classes.positive
        self.counts = {
            "n_items": seen.labels.n_items,
            "n_labeled": seen.labels.n_labeled,
            "n_models": len(models),
            "n_classes": len(classes),
            "n_annotated": seen.annotated,
            "n_annotator_labels": seen.annotator_labels,
        }
        self.balance = balance(seen.labels, seen.said, models, classes)
        some, known = seen.samples(models, classes)
        self.findings.extend(self._of_rows(seen, some, known))
        self.findings.extend(note_findings([*reader.notes, *seen.row_notes()], self.name))
        self.findings.extend(column_findings(self.described, _head(seen), models))
        self.findings.extend(_minus_one(layout, seen, len(classes)))
        self.findings.extend(self._of_sample(seen, known))

    def _of_rows(self, seen: Seen, some: Predictions, known: Predictions) -> Iterator[Finding]:
        assert seen.labels is not None
        assert seen.said is not None
        if not (seen.said.rows.any() or seen.said.scored.any()):
            yield from overlap_findings(some)
        if known.n_models:
            yield from classifier_findings(known, seen.said)
        yield from label_findings(known, seen.labels, weighted=seen.weighted)
        yield from class_findings(some)
        yield from repeat_findings(*seen.repeated(), about=not seen.copies.complete)
        sizes = seen.groups.sizes(cut=True)
        sizes.pop(some.item or self.options.item or "", None)
        yield from group_findings(sizes)
        if seen.weights is not None and seen.weights[1] == 0:
            try:
                sampling_weight([0.0], 1)
            except InputError as error:
                self._error(f"{self.name}: {error}")

    def diagnosis(self) -> Diagnosis:
        """Put it together, the worst first."""
        found = worst_first(self.findings)
        said = self.options
        command = None if any(f.severity == "error" for f in found) else said.command(self.name)
        return Diagnosis(
            self.name, self.described, self.counts, self.balance, found,
            self.positive, self.reading, command, said.to_toml(),
        )  # fmt: skip

    def _of_sample(self, seen: Seen, known: Predictions) -> Iterator[Finding]:
        assert seen.labels is not None
        n = seen.labels.n_items
        if known.n_items < n:
            self.counts["n_sampled"] = known.n_items
            yield Finding(
                "info",
                f"what compares items with each other is from {known.n_items:,} of the {n:,} rows, "
                f"drawn at random, {known.n_labeled:,} labeled ones among them; counts, classes, "
                "missing and constant values are of all rows",
                "rows",
                "",
            )


def _head(seen: Seen) -> Table:
    """The first rows of the columns that no role needs."""
    columns = {name: [pa.chunked_array([pa.array(v)])] for name, v in seen.head.items()}
    size = max((len(v) for v in seen.head.values()), default=0)
    return Table(tuple(columns), columns.__getitem__, size, lambda row: f"row {row + 1}")


def _minus_one(layout: Layout, seen: Seen, n_classes: int) -> Iterator[Finding]:
    """-1 beside labels of one class: the labels' own texts are read once more to tell."""
    label = layout.roles.label
    assert seen.labels is not None
    if label is None or n_classes != 2 or (seen.labels.count > 0).sum() != 1:
        return
    texts: set[str] = set()
    for unit in layout.units:
        try:
            texts |= set(occurring(unit, replace(layout.roles, votes={})).get(label, ()))
        except InputError:
            continue  # said already
        found = list(minus_one_findings(label, texts))
        if found:
            yield from found
            return
