"""`diagnose_files`: what is in files of more rows than fit into memory, and all that is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from fewlabels.checks.arrays import sampling_weight
from fewlabels.data.doctor.diagnose import Case
from fewlabels.data.doctor.facts import Diagnosis, Evidence, Facts, Finding, row_hashes
from fewlabels.data.options import column_options
from fewlabels.data.proposals import Proposals
from fewlabels.data.read import column_names, read_as_said
from fewlabels.data.sources import BadFile, Selection, is_standard_input, typed
from fewlabels.data.table import Table
from fewlabels.errors import InputError
from fewlabels.kernels.blocks import using_workers
from fewlabels.kernels.counter_based import alone
from fewlabels.streaming.executors import Engine, open_executor
from fewlabels.streaming.passes import Passes, Piece, Progress
from fewlabels.streaming.reading import Batch, Feed, Reader, find_classes
from fewlabels.streaming.samples import HeavyRows, sampled
from fewlabels.streaming.sketch import BottomSample, RowArrays
from fewlabels.streaming.units import lay_out

SAMPLE_ROWS = 20_000
"""Rows with a label or annotators' counts that are compared with each other, and other rows."""

HEAD_ROWS = 10_000
"""Rows of a column without a role that are looked at to tell what it holds."""

_NUMBER = re.compile(r"\d[\d,]*")


def diagnose_files(
    source: str | Path | Selection,
    *,
    engine: Engine = "threads",
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[Progress], None] | None = None,
    positive: Any = None,
    columns: Any = None,
) -> Diagnosis:
    """Say what is in Parquet or CSV files of any size, and everything that is wrong with them.

    `source` is a file or a folder of files of one kind. All are read to their ends: every file that
    cannot be read is a finding of severity "error", and so is the first bad cell of each part.
    Counts are of all rows; items are compared with each other on a sample of them, which a finding
    says. For the other arguments see `fewlabels.estimate_files` and `fewlabels.read_predictions`.
    """
    options = column_options(positive=positive, columns=columns)
    case = Case(str(source), options)
    case.proposals = Proposals(source, options, read_as_said)
    try:
        layout = lay_out(source, options, skip_bad_files=True)
        case.options, case.reading = layout.options, layout.reading
        file, chosen = typed(source)
        case.command = case.options.command(file or case.name) + chosen
        case.described = dict(layout.roles.described())
        for bad in layout.skipped:
            case.error(f"{case.name}: {bad.name}: {bad.reason}")
        reader = Reader(
            layout, find_classes(layout, options, skip_bad_files=True), layout.roles.groups
        )
    except InputError as error:
        place = str(source)
        if not (is_standard_input(place) or "://" in place or Path(place).exists()):
            raise
        case.error(str(error))
        try:
            # Perhaps the names of the columns at least.
            if not case.described:
                case.name_columns(column_names(source))
        except InputError:
            return case.diagnosis()
        case.look_at_columns()
        return case.diagnosis()
    passes = Passes(open_executor(engine, workers, scheduler), layout.units, progress=progress)
    with passes, using_workers(workers):
        seen = passes.run("looking", partial(see_unit, Feed(reader)), FileSummary)
    _look(case, reader, seen)
    return case.diagnosis()


def _bottom() -> BottomSample:
    return BottomSample.empty(SAMPLE_ROWS)


@dataclass(eq=False)
class FileSummary:
    """Facts of all rows, and some rows: the sum over any parts of the data.

    `informed` are rows with a label or annotators' counts, `others` the rest, `copies` counts rows
    that agree in all predictions and the label; `notes` count rows by what was done to them; `head`
    holds first values of columns without a role.
    """

    facts: Facts | None = None
    informed: BottomSample = field(default_factory=_bottom)
    others: BottomSample = field(default_factory=_bottom)
    copies: BottomSample = field(default_factory=_bottom)
    n_informed: int = 0
    annotated: int = 0
    annotator_labels: int = 0
    notes: dict[str, int] = field(default_factory=dict)
    head: dict[str, list[Any]] = field(default_factory=dict)
    errors: list[BadFile] = field(default_factory=list)

    def update(self, batch: Batch) -> None:
        """Take in a batch of rows."""
        given = batch.predictions
        informed = given.told
        notes: dict[str, int] = {}
        for note in given.notes:
            number = _NUMBER.match(note)  # of rows; what is said of these is added up
            text = note if number is None else "#" + note[number.end() :]
            notes[text] = 1 if number is None else int(number[0].replace(",", ""))
        part = FileSummary(
            Facts.of(given, batch.weight), n_informed=int(informed.sum()), notes=notes
        )
        if given.histogram is not None:
            part.annotated = int(given.histogram.any(axis=1).sum())
            part.annotator_labels = round(float(given.histogram.sum()))
        self.merge(part)
        every = RowArrays.of(given, None).arrays
        rows = RowArrays({n: a for n, a in every.items() if not n.startswith("group:")})
        ranks, copies = alone(given.identity), row_hashes(given)
        self.informed.update(ranks, rows, informed)
        self.others.update(ranks, rows, ~informed)
        if copies is not None:
            self.copies.update(copies, RowArrays({"labels": given.labels}))

    def merge(self, other: FileSummary) -> None:
        """Take in what was seen of other rows, which come after these."""
        if self.facts is None:
            self.facts = other.facts
        elif other.facts is not None:
            self.facts.merge(other.facts)
        for sketch in ("informed", "others", "copies"):
            getattr(self, sketch).merge(getattr(other, sketch))
        for count in ("n_informed", "annotated", "annotator_labels"):
            setattr(self, count, getattr(self, count) + getattr(other, count))
        for note, rows in other.notes.items():
            self.notes[note] = self.notes.get(note, 0) + rows
        self.head = self.head or other.head
        self.errors += other.errors

    def take(self, result: FileSummary) -> int:
        """Add a unit's; how many rows it has."""
        self.merge(result)
        return 0 if result.facts is None else result.facts.n_items

    def evidence(self, facts: Facts, reader: Reader) -> Evidence:
        """What the checks look at: facts of all rows, and some rows.

        Which rows are kept as copies does not depend on how often they occur, so their mean number
        of copies is that of all rows.
        """
        models, classes = reader.layout.roles.models, reader.classes.names
        n, kept, nobody = facts.n_items, self.copies.n_rows, HeavyRows.none()
        both = _bottom()
        for sketch in (self.informed, self.others):
            both.merge(sketch)
        some = sampled(both, nobody, SAMPLE_ROWS, n)
        parts = [
            sampled(self.informed, nobody, SAMPLE_ROWS, self.n_informed),
            sampled(self.others, nobody, SAMPLE_ROWS, n - self.n_informed),
        ]
        assert some is not None
        known = RowArrays.joined([part for part in parts if part is not None])
        groups = facts.group_sizes(cut=True)
        groups.pop(reader.layout.options.item or "", None)
        return Evidence(
            facts,
            some.predictions(models, classes),
            known.predictions(models, classes),
            round(n * (1 - len(self.copies.ranks) / kept)) if kept else None,
            groups,
            about=not self.copies.complete,
        )


def see_unit(feed: Feed, piece: Piece) -> FileSummary:
    """Look at a unit as far as it can be read."""
    seen = FileSummary()
    try:
        for batch in feed.batches(piece.unit):
            if piece.number == 0 and not seen.head:
                groups = batch.predictions.groups.items()
                seen.head = {name: values[:HEAD_ROWS].tolist() for name, values in groups}
            seen.update(batch)
    except InputError as error:
        seen.errors.append(BadFile(piece.unit.name, str(error)))
    return seen


def _look(case: Case, reader: Reader, seen: FileSummary) -> None:
    """Collect the findings about all rows that could be read."""
    layout, facts = reader.layout, seen.facts
    for bad in seen.errors:
        case.error(bad.reason)
    if seen.errors:
        case.findings.append(
            Finding(
                "info",
                "what follows a bad cell in the same part of a file is not looked at",
                case.name,
                "mend the errors and look again",
            )
        )
    if facts is None:
        case.look_at_columns()
        return
    models, classes = layout.roles.models, reader.classes
    case.positive = classes.positive
    case.counts = facts.counts() | {
        "n_annotated": seen.annotated,
        "n_annotator_labels": seen.annotator_labels,
    }
    case.balance = facts.balance(models, classes.names)
    evidence = seen.evidence(facts, reader)
    # What was done to rows, with how many these are.
    notes = [note.replace("#", f"{rows:,}", 1) for note, rows in seen.notes.items()]
    case.look(evidence, [*reader.notes, *notes])
    if facts.weights[1] == 0:
        try:
            sampling_weight([0.0], 1)
        except InputError as error:
            case.error(f"{case.name}: {error}")
    # The first rows of the columns that no role needs.
    head = {name: pa.chunked_array([pa.array(v)]) for name, v in seen.head.items()}
    case.look_at_columns(Table.of(head, max(map(len, head.values()), default=0)), models)
    n, known = facts.n_items, evidence.known
    if known.n_items < n:
        case.counts["n_sampled"] = known.n_items
        case.findings.append(
            Finding(
                "info",
                f"what compares items with each other is from {known.n_items:,} of the {n:,} rows, "
                f"drawn at random, {known.n_labeled:,} labeled ones among them; counts, classes, "
                "missing and constant values are of all rows",
                "rows",
                "",
            )
        )
