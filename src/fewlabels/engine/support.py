"""What label models are fitted to, and what noise and small differences are measured on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewlabels.engine.rows import Rows
from fewlabels.engine.scan import HEAVY, LABELED_ROWS, SUPPORT_ROWS, Scan
from fewlabels.engine.sketch import BottomRows, spread_out
from fewlabels.kernels.annotator_accuracy import annotator_accuracy
from fewlabels.kernels.arrays import Ints, UInts
from fewlabels.predictions import Predictions


@dataclass(frozen=True, eq=False)
class HeavyRows:
    """Rows that make up a large part of all, counted by themselves: ranks (h,), counts (h,)."""

    ranks: UInts
    counts: Ints
    rows: Rows | None

    @staticmethod
    def of(scan: Scan, counts: Ints) -> HeavyRows:
        """The repeated rows of a scan that are heavy by their counts over all rows."""
        found = np.flatnonzero(counts * HEAVY >= scan.size.items)
        rows = None if scan.repeated.rows is None else scan.repeated.rows.take(found)
        return HeavyRows(scan.repeated.ranks[found], counts[found], rows)

    @staticmethod
    def none() -> HeavyRows:
        """No row is."""
        return HeavyRows(np.empty(0, np.uint64), np.empty(0, np.int64), None)


@dataclass(frozen=True, eq=False)
class Support:
    """Some of the rows of a stream.

    `fitted_to` holds the labeled rows and a sample of the others, each row with the number of
    those that it stands for (`multiplicity`); `known` holds the same rows, each for itself.
    `sample` is a sample of all rows, and `of_groups` has one per group.
    """

    fitted_to: Predictions
    known: Predictions
    sample: Predictions
    of_groups: dict[str, Predictions]
    accuracy: float

    def rows_of(self, group: str | None) -> Predictions:
        """The sample of a group's rows; of all, where it is None."""
        return self.sample if group is None else self.of_groups[group]


def support_of(
    scan: Scan, heavy: HeavyRows, models: Sequence[str], classes: Sequence[Any]
) -> Support:
    """Choose the rows: which ones depends on the rows alone, not on order or partition."""
    accuracy = 0.9
    if scan.agree[1]:
        accuracy = annotator_accuracy(*scan.agree, scan.plan.n_classes)
    n_informed = scan.size.labeled + scan.size.annotated
    informed = sampled(scan.informed, HeavyRows.none(), LABELED_ROWS, n_informed)
    others = sampled(scan.others, heavy, SUPPORT_ROWS, scan.size.items - n_informed)
    parts = [
        (part, total)
        for part, total in ((informed, n_informed), (others, scan.size.items - n_informed))
        if part is not None and len(part)
    ]
    stands_for = np.concatenate([np.full(len(part), total / len(part)) for part, total in parts])
    chosen = Rows.joined([part for part, _ in parts])
    known = _with_keys(chosen.predictions(models, classes), accuracy)
    fitted_to = known
    if not (stands_for == 1).all():
        fitted_to = _with_keys(chosen.predictions(models, classes, stands_for), accuracy)
    sample = _sample_of_all(scan, heavy)
    of_groups = {}
    for name, (size, kept) in scan.groups.items():
        rows = sampled(kept, HeavyRows.none(), kept.size, size.items)
        if rows is not None:
            of_groups[name] = _with_keys(rows.predictions(models, classes), accuracy)
    return Support(
        fitted_to,
        known,
        _with_keys(sample.predictions(models, classes), accuracy),
        of_groups,
        accuracy,
    )


def _with_keys(given: Predictions, accuracy: float) -> Predictions:
    """The items with keys that tell equal ones apart, and the accuracy of all annotators."""
    part = given.as_part(accuracy)
    part.__dict__["keys"] = given.keys
    return part


def sampled(kept: BottomRows, heavy: HeavyRows, most: int, total: int) -> Rows | None:
    """At most so many of `total` rows, of which these were kept, in the order of their ranks."""
    if kept.rows is None:
        return None
    light = ~np.isin(kept.ranks, heavy.ranks)
    ranks, counts, rows = kept.ranks[light], kept.counts[light], kept.rows.take(light)
    share = min(1.0, most / max(total, 1))
    copies_heavy = np.maximum(np.round(heavy.counts * share), 1).astype(np.int64)
    room = max(most - int(copies_heavy.sum()), 0)
    if kept.complete and counts.sum() > room:
        copies = spread_out(counts, room)
    else:
        copies = np.diff(np.minimum(np.cumsum(counts), room), prepend=0)
    if heavy.rows is None or not len(heavy.ranks):
        return rows.take(np.repeat(np.arange(len(ranks)), copies))
    every = np.concatenate([ranks, heavy.ranks])
    both, times = Rows.joined([rows, heavy.rows]), np.concatenate([copies, copies_heavy])
    order = np.argsort(every)
    return both.take(np.repeat(order, times[order]))


def _sample_of_all(scan: Scan, heavy: HeavyRows) -> Rows:
    """A sample of labeled and other rows alike."""
    both = BottomRows.empty(SUPPORT_ROWS)
    for part in (scan.informed, scan.others):
        both.merge(part)
    found = sampled(both, heavy, SUPPORT_ROWS, scan.size.items)
    assert found is not None
    return found


def noise_rows(sample: Predictions, most: int) -> Ints:
    """Places of at most so many rows of a sample, those of smallest key."""
    return np.sort(np.argsort(sample.keys, kind="stable")[:most])
