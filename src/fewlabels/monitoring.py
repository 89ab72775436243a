"""`fewlabels.monitor`: performance over time, from items in memory or files of any size."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fewlabels.checks.arguments import chosen_from
from fewlabels.data.inputs import predictions_of
from fewlabels.data.options import column_options
from fewlabels.data.sources import chosen as chosen_rows
from fewlabels.data.sources import source
from fewlabels.errors import UsageError, unknown
from fewlabels.evaluation.evaluator import Estimand
from fewlabels.kernels.blocks import Progress, reporting, using_workers
from fewlabels.methods.base import LabelModel
from fewlabels.pipeline import Question, aligned_reference, check_settings
from fewlabels.predictions import Predictions
from fewlabels.questions.over_time import Against, Monitoring, over_time
from fewlabels.streaming.executors import open_executor
from fewlabels.streaming.in_memory import ArrayRows
from fewlabels.streaming.passes import Passes
from fewlabels.streaming.passes import Progress as PassProgress
from fewlabels.streaming.periods import DayScan, DayState, scan_days
from fewlabels.streaming.reading import Batch, Feed, Reader, example_of, find_classes
from fewlabels.streaming.units import lay_out


def monitor(
    predictions: Any,
    time: str,
    every: str | int | None = None,
    metrics: Any = None,
    *,
    tolerance: float = 0.05,
    against: Against | None = None,
    method: str | LabelModel = "auto",
    confidence_level: float = 0.95,
    estimand: Estimand = "sample",
    random_state: int | None = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    reference: Any = None,
    columns: Any = None,
    positive: Any = None,
    where: str | None = None,
    query: str | None = None,
    state: str | os.PathLike[str] | None = None,
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
        week on the new rows alone gives the answer of one run over all.

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
    question = asked(
        time, metrics, tolerance, against, method, confidence_level, estimand, random_state,
        workers, reference=reference,
    )  # fmt: skip
    if where is not None or query is not None:
        predictions = source(predictions, where=where, query=query)
    items = predictions_of(predictions, columns, positive)
    if time not in items.groups:
        raise UsageError(unknown("time", time, items.groups, "the predictions have no groups"))
    scan = DayScan(time)
    rows = ArrayRows.of(items, (time,))
    with using_workers(workers), reporting(progress):
        scan.update(Batch(rows.items, rows.weight, 0))
        elsewhere = aligned_reference(reference, items, method, None, columns=columns)
        notes = (items.notes, items.reading)
        return _answer(question, scan, items, every, elsewhere, tolerance, against, state, notes)


def asked(
    time: str, metrics: Any, tolerance: float, against: Against | None, method: str | LabelModel,
    confidence_level: float, estimand: Estimand, random_state: int | None, workers: int | None,
    *, reference: Any,
) -> Question:  # fmt: skip
    """The checked question; see `monitor`."""
    check_settings(confidence_level, estimand, workers)
    if not 0 <= tolerance < np.inf:
        raise UsageError(f"`tolerance` must be a number from 0; got {tolerance!r}")
    if against is not None:
        chosen_from("against", against, ("first", "trailing", "reference"))
        if (against == "reference") and reference is None:
            raise UsageError("`against` is 'reference', and no reference is given")
    return Question(
        method, metrics, (time,), confidence_level, estimand, random_state=random_state,
        periods=True,
    )  # fmt: skip


def monitor_files(
    place: Any,
    time: str,
    every: str | int | None = None,
    metrics: Any = None,
    *,
    tolerance: float = 0.05,
    against: Against | None = None,
    method: str | LabelModel = "auto",
    confidence_level: float = 0.95,
    estimand: Estimand = "sample",
    random_state: int | None = 0,
    workers: int | None = None,
    progress: Callable[[PassProgress], None] | None = None,
    reference: Any = None,
    columns: Any = None,
    positive: Any = None,
    models: Sequence[str] | None = None,
    where: str | None = None,
    query: str | None = None,
    state: str | os.PathLike[str] | None = None,
) -> Monitoring:
    """The same from files or tables of any size, read once, in memory that hardly grows with them.

    Arguments are those of `monitor` and `fewlabels.estimate_files`.

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it.
    """
    question = asked(
        time, metrics, tolerance, against, method, confidence_level, estimand, random_state,
        workers, reference=reference,
    )  # fmt: skip
    options = column_options(positive=positive, columns=columns)
    layout = lay_out(chosen_rows(place, where, query), options)
    classes = find_classes(layout, options)
    chosen = None if models is None else tuple(models)
    feed = Feed(Reader(layout, classes, layout.groups((time,))), chosen, None, None,
                classes.positive_name)  # fmt: skip
    example = feed.chosen(example_of(layout.roles, classes.names))
    elsewhere = aligned_reference(reference, example, method, columns=columns)
    with using_workers(workers):
        with Passes(open_executor("threads", workers), layout.units, progress=progress) as passes:
            scan = scan_days(feed, time, passes)
        notes = (feed.notes, layout.reading)
        return _answer(question, scan, example, every, elsewhere, tolerance, against, state, notes)


def _answer(
    question: Question, scan: DayScan, example: Predictions, every: str | int | None,
    reference: Predictions | None, tolerance: float, against: Against | None,
    state: str | os.PathLike[str] | None, said: tuple[Sequence[str], Sequence[str]],
) -> Monitoring:  # fmt: skip
    """The answer from these days, and those of the state, which has them from then on."""

    def answer(days: DayScan, models: Sequence[str], more: Sequence[str]) -> Monitoring:
        held = days.held(every, models, example.classes)
        notes, reading = said
        held = held._replace(
            items=held.items.noting((*notes, *more), reading), notes=(*more, *held.notes)
        )
        return over_time(question.about(held.items, reference), held, tolerance, against)

    if state is None:
        return answer(scan, example.models, ())
    kept = DayState(Path(state))
    with kept.held():
        days, models, notes = kept.joined(scan, example.models, example.classes)
        result = answer(days, models, notes)
        kept.save(days, models, example.classes)
        return result
