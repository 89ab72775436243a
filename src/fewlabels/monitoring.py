"""`fewlabels.monitor`: performance over time, from items in memory or files of any size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fewlabels.checks.arguments import RandomState, chosen_from, seed_of, workers_of
from fewlabels.data.chosen_rows import rows_at
from fewlabels.data.inputs import predictions_of
from fewlabels.data.options import column_options
from fewlabels.data.sources import chosen as chosen_rows
from fewlabels.data.sources import locate, open_source
from fewlabels.data.table import naming_file
from fewlabels.errors import InputError, UsageError, unknown
from fewlabels.evaluation.evaluator import Estimand
from fewlabels.evaluation.groups import values_of
from fewlabels.evaluation.periods import Calendar
from fewlabels.kernels.blocks import Progress, reporting, using_workers
from fewlabels.methods.base import LabelModel, refuse_strata
from fewlabels.pipeline import Question, aligned_reference, check_settings
from fewlabels.predictions import Predictions
from fewlabels.questions.over_time import Against, Monitoring, over_time
from fewlabels.streaming.checkpoint import held_folder
from fewlabels.streaming.executors import open_executor
from fewlabels.streaming.in_memory import ArrayRows
from fewlabels.streaming.passes import Passes
from fewlabels.streaming.passes import Progress as PassProgress
from fewlabels.streaming.periods import DayScan, DayState, rows_like, scan_days
from fewlabels.streaming.reading import Batch, Feed, Reader, example_of, find_classes
from fewlabels.streaming.units import lay_out


def monitor(
    predictions: Any,
    time: str,
    every: str | int | None = None,
    metrics: Any = None,
    *,
    by: str | Sequence[str] | None = None,
    tolerance: float = 0.05,
    against: Against | None = None,
    method: str | LabelModel = "auto",
    confidence_level: float = 0.95,
    estimand: Estimand = "sample",
    random_state: RandomState = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    reference: Any = None,
    columns: Any = None,
    positive: Any = None,
    where: str | None = None,
    query: str | None = None,
    state: str | os.PathLike[str] | None = None,
    time_format: str | None = None,
) -> Monitoring:
    """Estimate how good each classifier was in each period, whether that fell, and since when.

    Parameters
    ----------
    predictions
        As in `fewlabels.estimate`.
    time
        The column, or group of `Predictions`, with the time of each item: dates or times (ISO
        8601), or numbers such as years. Times with a zone are taken in UTC. Items without a time
        are left out, and a warning says how many.
    every
        "day", "week" (from Monday), "month", "year", or a number of days; of numbers, how many are
        one period. None: the finest of each value, day, week, month and year that gives at most 60
        periods.
    metrics
        As in `fewlabels.estimate`.
    by
        Columns of groups (a language, a version of the classifier), each of which is estimated by
        itself as well: from its own items and labels, and compared with its own first periods or
        its own rows of the reference. At most 24 groups in all.
    tolerance
        A fall by more than this, in the metric's own units, counts as one.
    against
        What a period is compared with: "reference", whose labels alone say how good the classifiers
        were there, "first", the mean of the first 4 periods, or "trailing", the mean of all periods
        before. None: the reference if there is one, else "first".
    estimand
        "sample": the metric on the items of each period. "population": on what they are drawn from.
    method, confidence_level, random_state, workers, progress, columns, positive, where, query
        As in `fewlabels.estimate`.
    reference
        Labeled items of the same classifiers from before, as in `fewlabels.estimate`.
    state
        A file that keeps the items held of each day. Days of earlier runs are taken from it, days
        read now replace theirs, and it is replaced as a whole once the answer is there: a run each
        week on the new rows alone, from the first week on, gives the answer of one run over all.
    time_format
        How times are written, as `datetime.strptime` takes it ("%d/%m/%Y"), where not as ISO 8601.

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it.

    Examples
    --------
    >>> import numpy as np
    >>> import fewlabels as fl
    >>> rng = np.random.default_rng(0)
    >>> week = np.repeat(np.arange(8), 200)
    >>> truth = rng.random(1600) < 0.4
    >>> score = 1 / (1 + np.exp(-rng.normal(np.where(week < 5, 4, 0.5) * (truth - 0.5), 1)))
    >>> labels = np.where(rng.random(1600) < 0.2, truth, -1)
    >>> items = fl.Predictions({"spam": score}, labels, groups={"week": week})
    >>> over_time = fl.monitor(items, "week", metrics="accuracy")
    >>> change = over_time.changes[0]
    >>> change.since, change.alarm
    ('5', True)
    """
    asked = Asked(
        time, every, metrics, by, tolerance, against, method, confidence_level, estimand,
        seed_of(random_state), reference, state, time_format,
    )  # fmt: skip
    workers_of(workers)
    predictions = chosen_rows(predictions, where, query)
    if not isinstance(predictions, Predictions):
        columns = columns_of_state(columns, state)
    items = predictions_of(predictions, columns, positive)
    refuse_strata(items, "monitoring")
    if time not in items.groups:
        raise UsageError(unknown("time", time, items.groups, "the predictions have no groups"))
    scan = asked.scan()
    rows = ArrayRows.of(items, (time, *asked.columns))
    with using_workers(workers), reporting(progress):
        scan.update(Batch(rows.items, rows.weight, 0))
        return asked.answer(scan, items, columns, (items.notes, items.reading))


def monitor_files(
    feed: Feed, asked: Asked, columns: Any = None, *, workers: int | None = None,
    progress: Callable[[PassProgress], None] | None = None,
) -> Monitoring:  # fmt: skip
    """The same from files or tables of any size, read once, in memory that hardly grows with them.

    `columns` say what the columns of a reference are.
    """
    workers_of(workers)
    layout = feed.reader.layout
    example = feed.chosen(example_of(layout.roles, feed.reader.classes.names))
    with using_workers(workers):
        with Passes(open_executor("threads", workers), layout.units, progress=progress) as passes:
            scan = scan_days(feed, asked.scan, passes)
        return asked.answer(scan, example, columns, (feed.notes, layout.reading))


def columns_of_state(columns: Any, state: str | os.PathLike[str] | None) -> Any:
    """What the columns are, with the classes of a state unless others are said."""
    own, kept = column_options(columns=columns), DayState(Path(state)).classes if state else None
    return columns if kept is None or own.classes else replace(own, classes=kept)


def rows_of(
    place: Any, groups: Sequence[str], *, columns: Any = None, positive: Any = None,
    models: Sequence[str] | None = None,
) -> Feed:  # fmt: skip
    """The rows of files, with columns of times and groups; see `fewlabels.estimate_files`."""
    options = column_options(positive=positive, columns=columns)
    layout = lay_out(place, options)
    classes = find_classes(layout, options)
    chosen = None if models is None else tuple(models)
    reader = Reader(layout, classes, layout.groups(groups))
    return Feed(reader, chosen, None, None, classes.positive_name)


def rows_to_label(
    result: Monitoring, size: int, place: Any, read: Predictions | Feed, form: str | None = None
) -> dict[str, list[Any]]:
    """The rows of a file, with all their columns, whose labels would tell most.

    See `Monitoring.next_items`. `read` are the items of the file, or its rows in parts. It must
    have rows of the last complete period, and one of each item.
    """
    period, wanted = result.complete.name, result.next_items(size)
    place_of, names_of = result.calendar.place, result.calendar.names
    days = [day for day, number in place_of.items() if names_of[number] == period]
    if isinstance(read, Predictions):
        batches: Iterator[Batch] = iter([Batch(read.with_weight(None), None, 0)])
    else:
        batches = (b for unit in read.reader.layout.units for b in read.batches(unit))
    located = locate(place)
    with naming_file(None if located is None else located.name):
        opened = open_source(place, located)
        rows = rows_like(wanted, batches, result.time, days, form)
        if not rows:
            raise InputError(
                f"has no item without a label of {period}, the last complete period, which the "
                "items to label are chosen from; read its rows too"
            )
        found, n_rows = rows_at(opened, rows)
        if isinstance(read, Predictions) and n_rows != read.n_items:
            raise InputError(
                f"has {n_rows:,} rows of {read.n_items:,} items, and the items to label are rows "
                "of FILE; make a table of one row per item first (fewlabels convert)"
            )
    return {name: [row[name] for row in found] for name in found[0]}


@dataclass(frozen=True)
class Asked:
    """The arguments of `monitor` that are about all of its items, checked."""

    time: str
    every: str | int | None = None
    metrics: Any = None
    by: str | Sequence[str] | None = None
    tolerance: float = 0.05
    against: Against | None = None
    method: str | LabelModel = "auto"
    confidence_level: float = 0.95
    estimand: Estimand = "sample"
    seed: int = 0
    reference: Any = None
    state: str | os.PathLike[str] | None = None
    time_format: str | None = None

    def __post_init__(self) -> None:
        check_settings(self.confidence_level, self.estimand, None)
        if not 0 <= self.tolerance < np.inf:
            raise UsageError(f"`tolerance` must be a number from 0; got {self.tolerance!r}")
        if self.against is not None:
            chosen_from("against", self.against, ("first", "trailing", "reference"))
            if (self.against == "reference") and self.reference is None:
                raise UsageError("`against` is 'reference', and no reference is given")
        if self.time in self.columns:
            raise UsageError(f"`by` names {self.time!r}, the column of times; leave it out")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of groups."""
        return (self.by,) if isinstance(self.by, str) else tuple(dict.fromkeys(self.by or ()))

    def scan(self) -> DayScan:
        """No rows yet."""
        return DayScan(self.time, self.columns, form=self.time_format)

    @property
    def question(self) -> Question:
        """What is asked of the items of each period."""
        return Question(
            self.method, self.metrics, (self.time,), self.confidence_level, self.estimand,
            seed=self.seed, periods=True,
        )  # fmt: skip

    def answer(
        self, scan: DayScan, example: Predictions, columns: Any,
        said: tuple[Sequence[str], Sequence[str]],
    ) -> Monitoring:  # fmt: skip
        """The answer from these days, and those of the state, which has them from then on."""
        reference = aligned_reference(
            self.reference, example, self.method, columns=columns, keep=self.columns
        )
        if self.state is None:
            return self._of_days(scan, example.models, (), example, reference, said)
        kept = DayState(Path(self.state))
        with held_folder(kept.path):
            days, models, more = kept.joined(scan, example.models, example.classes)
            result = self._of_days(days, models, more, example, reference, said)
            kept.save(days, models, example.classes)
            return result

    def _of_days(
        self, days: DayScan, models: Sequence[str], more: Sequence[str], example: Predictions,
        reference: Predictions | None, said: tuple[Sequence[str], Sequence[str]],
    ) -> Monitoring:  # fmt: skip
        """The answer from all items, with those of the groups."""
        notes, reading = said
        calendar = Calendar.of(days.dated, self.time, self.every, 2 if self.state is None else 1)
        held = days.held(calendar, models, example.classes)
        held = held._replace(
            items=held.items.noting((*notes, *more), reading), notes=(*more, *held.notes)
        )
        question = self.question.about(held.items, reference)
        whole = over_time(question, held, self.tolerance, self.against)
        references = {} if reference is None else dict(_by_group(reference, self.columns))
        groups, alone = dict[str, Monitoring](), list[str]()
        for name, group in days.groups.items():
            periods = calendar.of_days(group.dated)
            if len(periods.names) < 2:
                alone.append(name)
                continue
            own = replace(question, reference=references.get(name))
            mine = group.held(periods, models, example.classes)
            lacks = own.reference is None and self.against == "reference"
            against = None if lacks else self.against
            groups[name] = over_time(own, mine, self.tolerance, against)
        return whole.with_subgroups(groups, alone)


def _by_group(reference: Predictions, columns: Sequence[str]) -> Iterator[tuple[str, Predictions]]:
    """The rows of each group of a reference."""
    for column in columns:
        code, names = values_of(reference, column)
        yield from ((f"{column}={n}", reference.take(code == k)) for k, n in enumerate(names))
