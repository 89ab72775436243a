"""Samples of the rows, for fitting label models and for measuring noise and small differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewlabels.checks.arrays import cluster_values
from fewlabels.errors import InputError
from fewlabels.evaluation.groups import all_and_groups, values_of
from fewlabels.kernels.arrays import Bools, Ints, UInts
from fewlabels.kernels.counter_based import mix
from fewlabels.kernels.votes import annotator_accuracy
from fewlabels.predictions import Predictions
from fewlabels.streaming.scan import HEAVY, LABELED_ROWS, MODEL_ROWS, SUPPORT_ROWS, Scan
from fewlabels.streaming.sketch import BottomSample, RowArrays, spread_out

_MIX_SALT = 0x5A3B1E


@dataclass(frozen=True, eq=False)
class HeavyRows:
    """Rows that make up a large part of all, counted separately: ranks (h,), counts (h,)."""

    ranks: UInts
    counts: Ints
    rows: RowArrays | None

    @staticmethod
    def of(repeated: BottomSample, counts: Ints, which: Bools | bool, total: int) -> HeavyRows:
        """Those of some repeated rows, or all, that are heavy among `total`, by their counts."""
        found = np.flatnonzero(which & (counts * HEAVY >= total))
        rows = None if repeated.rows is None else repeated.rows.take(found)
        return HeavyRows(repeated.ranks[found], counts[found], rows)

    @staticmethod
    def none() -> HeavyRows:
        """No row is."""
        return HeavyRows(np.empty(0, np.uint64), np.empty(0, np.int64), None)


@dataclass(frozen=True, eq=False)
class Samples:
    """Some of the rows of a stream.

    `fitted_to` holds the labeled rows and a sample of the others; each stands for `multiplicity`
    rows. `known` holds the same rows, each for itself. `sample` is a sample of all rows,
    `of_groups` has one per group that has rows. `of_models` are rows on which a classifier
    predicts, if there are too few of them in `sample`.
    """

    fitted_to: Predictions
    known: Predictions
    sample: Predictions
    of_groups: dict[str, Predictions]
    of_models: dict[int, Predictions]
    accuracy: float

    def rows_of(self, group: str | None) -> Predictions:
        """The sample of a group's rows; of all, where it is None."""
        return self.sample if group is None else self.of_groups[group]


def samples_of(
    scan: Scan, counts: Ints | None, models: Sequence[str], classes: Sequence[Any]
) -> Samples:
    """Choose the rows: which ones depends on the rows alone, not on order or partition.

    `counts` say how often each of the scan's repeated rows occurs in all; None where all are held.
    """
    accuracy = 0.9
    if scan.agree[1]:
        accuracy = annotator_accuracy(*scan.agree, scan.plan.n_classes)
    heavy = _Heavy(scan, counts, models, classes)
    n_informed = scan.size.labeled + scan.size.annotated
    n_others = scan.size.items - n_informed
    parts = [
        (part, total)
        for part, total in (
            (sampled(scan.informed, heavy.informed, LABELED_ROWS, n_informed), n_informed),
            (sampled(scan.others, heavy.others, SUPPORT_ROWS, n_others), n_others),
        )
        if part is not None and len(part)
    ]
    if not parts:
        raise InputError("every row has weight 0; give at least one a positive weight")
    stands_for = np.concatenate([np.full(len(part), total / len(part)) for part, total in parts])
    chosen = RowArrays.joined([part for part, _ in parts])

    def made(rows: RowArrays) -> Predictions:
        items = rows.predictions(models, classes)
        return items.as_part(accuracy, items.keys)

    known = made(chosen)
    # Labeled and other rows alike.
    both = BottomSample.empty(SUPPORT_ROWS)
    for kept_rows in (scan.informed, scan.others):
        both.merge(kept_rows)
    of_all = sampled(both, heavy.all, SUPPORT_ROWS, scan.size.items)
    assert of_all is not None
    sample = made(of_all)
    cluster_values(sample.clusters, sample.n_items, [])  # which refuses a single one
    of_groups = {
        name: made(rows)
        for name, (size, kept) in scan.groups.items()
        if (rows := sampled(kept, heavy.group(name, size.items), kept.size, size.items))
    }
    # Of classifiers that say something of too few rows of the sample.
    of_models: dict[int, Predictions] = {}
    says = (sample.has_hard | sample.provides("ranking")).sum(axis=0)
    for j, sketch in enumerate(scan.models):
        if says[j] < min(MODEL_ROWS, scan.model_rows[j]):
            of_one = sampled(sketch, HeavyRows.none(), MODEL_ROWS, int(scan.model_rows[j]))
            if of_one is not None:
                of_models[j] = made(of_one)
    # Groups and classifiers that have no row among those known: each is to be told of.
    more: list[Predictions] = []
    for name, own in of_groups.items():
        domain = ["domain"] if own.domain is not None else []
        by_length = sorted([*own.groups, *domain], key=len, reverse=True)
        column = next(c for c in by_length if name.startswith(f"{c}="))
        if name not in {f"{column}={value}" for value in values_of(known, column)[1]}:
            more.append(own)
    seen = np.asarray((known.has_hard | known.provides("ranking")).any(axis=0))
    more += [own for j, own in of_models.items() if not seen[j]]
    weighted = chosen.weight is not None
    told = [RowArrays.of(own, own.weight if weighted else None).take(np.arange(1)) for own in more]
    if told:
        known = made(RowArrays.joined([chosen, *told]))
        stands_for = np.concatenate([stands_for, np.ones(len(told))])
    fitted_to = known
    if not (stands_for == 1).all():
        several = known.with_multiplicity(stands_for)
        fitted_to = several.as_part(accuracy, several.keys)
    return Samples(fitted_to, known, sample, of_groups, of_models, accuracy)


class _Heavy:
    """The repeated rows of a scan that are heavy among some of the rows."""

    def __init__(
        self, scan: Scan, counts: Ints | None, models: Sequence[str], classes: Sequence[Any]
    ) -> None:
        self.repeated = scan.repeated
        self.counts = counts
        self.rows: Predictions | None = None
        self.members: dict[str | None, Ints] = {}
        if counts is not None and scan.repeated.rows is not None and len(counts):
            arrays = {n: a for n, a in scan.repeated.rows.arrays.items() if n != "weight"}
            self.rows = RowArrays(arrays).predictions(models, classes)
            self.members = {g.name: g.rows for g in all_and_groups(self.rows, scan.plan.by or None)}
        n_informed = scan.size.labeled + scan.size.annotated
        informed = np.zeros(0, dtype=bool) if self.rows is None else self.rows.told
        whole = scan.informed.complete and scan.others.complete
        self.informed = self._of(informed, n_informed, scan.informed.complete)
        self.others = self._of(~informed, scan.size.items - n_informed, scan.others.complete)
        self.all = self._of(np.ones_like(informed), scan.size.items, whole)

    def group(self, name: str, total: int) -> HeavyRows:
        """Those among the rows of a group."""
        if self.rows is None:
            return HeavyRows.none()
        which = np.zeros(self.rows.n_items, dtype=bool)
        which[self.members.get(name, np.empty(0, dtype=np.int64))] = True
        return self._of(which, total, False)

    def _of(self, which: Bools, total: int, complete: bool) -> HeavyRows:
        if self.rows is None or self.counts is None or complete:
            return HeavyRows.none()
        return HeavyRows.of(self.repeated, self.counts, which, total)


def sampled(kept: BottomSample, heavy: HeavyRows, most: int, total: int) -> RowArrays | None:
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
    both, times = RowArrays.joined([rows, heavy.rows]), np.concatenate([copies, copies_heavy])
    order = np.argsort(every)
    return both.take(np.repeat(order, times[order]))


def mixed(rows: Predictions, most: int) -> Ints:
    """Indices of at most so many rows of a sample, independent of their contents.

    Not those of smallest key: rows are in the sample because of small keys, copies whatever their
    key.
    """
    again = mix(rows.keys ^ np.uint64(_MIX_SALT))
    return np.sort(np.argsort(again, kind="stable")[:most])
