"""The two passes by themselves, for whoever brings the rows: Spark, Ray, a queue of workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fewlabels.checks.arguments import RandomState, seed_of
from fewlabels.data.classes import decide_classes
from fewlabels.data.options import column_options
from fewlabels.data.roles import assign_roles
from fewlabels.errors import InputError, UsageError
from fewlabels.estimates import Estimates
from fewlabels.evaluation.evaluator import Estimand
from fewlabels.kernels.blocks import one_blas_thread, using_workers
from fewlabels.methods.base import LabelModel
from fewlabels.pipeline import Against, Question
from fewlabels.predictions import Predictions
from fewlabels.streaming.packing import pack, unpack
from fewlabels.streaming.reading import Reader, example_of
from fewlabels.streaming.tally import Tally
from fewlabels.streaming.two_passes import Fitted, Provenance, SufficientSample, fit_to, scan_plan
from fewlabels.streaming.units import Layout


class Stream:
    """Estimates from rows that come as Arrow tables, part by part, wherever the parts are.

    Every part is scanned (`scan`), the label model is fitted to what the scans hold (`fit`), every
    part is tallied (`FittedStream.tally`), and the tallies give the estimates. Scans and tallies
    are bytes, and an object of this class can be pickled: any system that maps a function over
    parts of a table can do the two passes. What is added up in the same order has the same bits.
    Rows that repeat very often are not counted in a pass of their own, as `estimate_files` does:
    where the same row makes up more than one in 256 of all, prefer that.

    Parameters
    ----------
    names
        The columns of the tables.
    classes
        The classes in order. May be left out where columns p__<model>__<class> name two or more.
    method, metrics, by, confidence_level, estimand, against, random_state
        As in `fewlabels.estimate`.
    columns
        What the columns are, as in `fewlabels.read_predictions`.

    Raises
    ------
    InputError, UsageError
        One line that says what is wrong and how to mend it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from fewlabels.streaming.external import Stream
    >>> parts = [
    ...     pa.table({"label": [1, None, 0], "p__net__1": [0.9, 0.8, 0.2]}),
    ...     pa.table({"label": [None, 1, 0], "p__net__1": [0.1, 0.7, 0.4]}),
    ... ]
    >>> stream = Stream(parts[0].column_names, classes=[0, 1], metrics="accuracy")
    >>> fitted = stream.fit([stream.scan([part]) for part in parts])
    >>> estimates = fitted.estimates([fitted.tally([part]) for part in parts])
    >>> estimates.n_items, estimates.n_labeled
    (6, 4)
    """

    def __init__(
        self,
        names: Sequence[str],
        classes: Sequence[Any] | None = None,
        method: str | LabelModel = "auto",
        metrics: Any = None,
        by: str | Sequence[str] | None = None,
        confidence_level: float | None = 0.95,
        estimand: Estimand = "population",
        against: Against = "auto",
        random_state: RandomState = 0,
        columns: Any = None,
    ) -> None:
        groups = (by,) if isinstance(by, str) else tuple(by or ())
        options = column_options(classes=classes, columns=columns)
        roles = assign_roles(tuple(names), options, None)
        class_list = decide_classes(roles, options, {}).positive_last()
        if options.positive is not None and len(class_list.texts) > 2:
            raise UsageError(
                "`positive` is for two classes here; give every part as `with_positive` makes it, "
                "or use fewlabels.estimate_files"
            )
        layout = Layout("the rows", (), roles, ())
        self.reader = Reader(layout, class_list, tuple(g for g in groups if g in roles.groups))
        self.probe: Predictions = example_of(roles, class_list.names)
        self.question = Question(
            method, metrics, groups, confidence_level, estimand, against, seed_of(random_state)
        ).about(self.probe)
        self.plan = scan_plan(self.question, self.probe)

    def scan(self, tables: Iterable[pa.Table | pa.RecordBatch]) -> bytes:
        """The first pass over a part of the rows."""
        scan = self.plan.empty()
        with one_blas_thread(), using_workers(1):
            for batch in self.reader.of_arrow(tables):
                scan.update(batch)
        return pack(scan)

    def fit(self, scans: Iterable[bytes]) -> FittedStream:
        """Fit the label model to what the scans of all parts hold.

        Raises
        ------
        UsageError
            If there are no rows, or the method does not apply row by row.
        """
        total = self.plan.empty()
        for packed in scans:
            total.take(unpack(packed))
        counts = None if total.complete else total.repeated.counts
        return FittedStream(self.reader, fit_to(self.question, total, counts, self.probe))


@dataclass(frozen=True, eq=False)
class FittedStream:
    """A fitted label model, ready for the second pass; see `Stream`."""

    reader: Reader
    fitted: Fitted | SufficientSample

    def tally(self, tables: Iterable[pa.Table | pa.RecordBatch]) -> bytes:
        """The second pass over a part of the rows."""
        if isinstance(self.fitted, SufficientSample):
            return pack(None)  # what the scans hold was all that is needed
        tally = Tally()
        with one_blas_thread(), using_workers(1):
            for batch in self.reader.of_arrow(tables):
                tally.update(self.fitted.scorer, batch)
        return pack(tally)

    def estimates(self, tallies: Iterable[bytes], workers: int | None = None) -> Estimates:
        """Estimates from the tallies of all parts, which must be of the rows that were scanned."""
        provenance = Provenance({"engine": "stream"}, self.reader.notes)
        if isinstance(self.fitted, SufficientSample):
            return self.fitted.estimates(provenance, workers)
        total = Tally()
        for packed in tallies:
            total.take(unpack(packed))
        scanned = self.fitted.scan.size.items
        if total.n_rows != scanned:
            raise InputError(
                f"the tallies are of {total.n_rows:,} rows, and the scans of {scanned:,}; see "
                "whether a part was lost, or came twice"
            )
        return self.fitted.estimates(total, provenance, workers)
