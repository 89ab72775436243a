"""Items in memory as a stream: slices of their arrays are the parts, shared by threads.

With so many items, a few draws of every item and all draws of some give the same result
(`streaming/two_passes.py`), in a tenth of the time and with little memory beside the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from fewlabels.estimates import Estimates
from fewlabels.evaluation.groups import ManyGroups, all_and_groups, refuse_many_groups
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.blocks import spans, step
from fewlabels.pipeline import Question, with_many_groups
from fewlabels.predictions import Predictions
from fewlabels.streaming.executors import open_executor
from fewlabels.streaming.passes import Passes, Progress
from fewlabels.streaming.reading import BATCH_ROWS, Batch
from fewlabels.streaming.scan import Scan
from fewlabels.streaming.sketch import TooManyPatternsError
from fewlabels.streaming.two_passes import Provenance, in_two_passes
from fewlabels.streaming.units import UNCHANGING, Unit

PART_ROWS = 2 * BATCH_ROWS
"""Rows of a part, so that even the smallest data taken in parts have several per thread."""


@dataclass(frozen=True)
class ArrayRows:
    """Batches of slices: the items without sampling weights, and these (None: all are equal)."""

    items: Predictions
    weight: Floats | None

    @staticmethod
    def of(items: Predictions, columns: tuple[str, ...]) -> ArrayRows:
        """Of these other columns the groups of some are kept."""
        equal = bool((items.weight == items.weight[:1]).all())
        bare = items.keeping(columns).with_weight(None).noting(())
        return ArrayRows(bare, None if equal else items.weight)

    def batches(self, unit: Unit) -> Iterator[Batch]:
        """The rows of a part, `BATCH_ROWS` at a time."""
        for span in spans(unit.stop - unit.start, BATCH_ROWS):
            rows = slice(unit.start + span.start, unit.start + span.stop)
            weight = None if self.weight is None else self.weight[rows]
            yield Batch(self.items.take(rows), weight, span.start)


def estimate_in_parts(
    question: Question,
    items: Predictions,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    many: Sequence[ManyGroups] = (),
) -> Estimates | None:
    """The answer of `fewlabels.estimate_files`, from items in memory.

    Its `predictions` are these items, of which it has a posterior when somebody asks for it. None
    where the items have so many different rows of votes that parts are of no use.
    """
    all_and_groups(
        items.with_weight(None).take(slice(0, 1)), question.by
    )  # refuses columns that are not there
    units = tuple(
        Unit("", "the items", "Parquet", s.start, s.stop, s.start, n, n, UNCHANGING)
        for s in spans(items.n_items, PART_ROWS)
        for n in [s.stop - s.start]
    )

    began: list[str] = []

    def show(done: Progress) -> None:
        if progress is not None:
            if done.step not in began:
                began.append(done.step)
                step(done.step)
            progress(done.done_bytes, done.all_bytes)

    def provenance(_: Scan) -> Provenance:
        run = {"engine": "memory", "parts": len(units)}
        return Provenance(run, items.notes, reading=items.reading)

    feed = ArrayRows.of(items, question.columns)
    try:
        with Passes(open_executor("threads", workers), units, progress=show) as passes:
            fitted, estimates = in_two_passes(
                question, feed, items, passes, provenance, workers=workers
            )
    except TooManyPatternsError:
        return None
    every = partial(fitted.fitted.posterior, items)
    estimates = replace(estimates, predictions=items, label_posterior=every, streamed=False)
    if not many:
        return estimates
    refuse_many_groups(items, fitted.setup.name, fitted.setup.metrics, estimates.judged_by, "")
    return with_many_groups(estimates, question, fitted.setup, items, fitted.fitted, many)
