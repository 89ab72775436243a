"""The first pass: what must be known of all rows before a label model can be fitted to some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fewlabels.engine.confidences import BINS, histograms
from fewlabels.engine.patterns import VotePatterns
from fewlabels.engine.reading import Batch
from fewlabels.engine.rows import Rows
from fewlabels.engine.sketch import BottomRows
from fewlabels.errors import UsageError
from fewlabels.groups import MAX_GROUPS, values_of
from fewlabels.kernels.annotator_accuracy import agreement
from fewlabels.kernels.arrays import Bools, Floats, Ints, UInts
from fewlabels.kernels.keyed import alone
from fewlabels.metrics.base import Needs
from fewlabels.predictions import Predictions

SUPPORT_ROWS = 20_000
"""Rows without a label that label models are fitted to, and rows that noise is measured on."""

LABELED_ROWS = 200_000
"""Rows with a label, or annotators' counts, that label models are fitted to at most."""

GROUP_ROWS = 2_000
"""Rows of every group that its noise is measured on."""

HEAVY = 256
"""A row that makes up one in so many of all is counted by itself: a sample of distinct rows would
take or leave all of its copies."""

_BUCKETS = 4096
_NEEDS: tuple[Needs, ...] = ("hard", "probabilities", "ranking")


@dataclass(eq=False)
class Size:
    """Rows, labeled ones, and those with annotators' counts but no label."""

    items: int = 0
    labeled: int = 0
    annotated: int = 0

    def add(self, items: int, labeled: int, annotated: int) -> None:
        """Count more."""
        self.items += items
        self.labeled += labeled
        self.annotated += annotated

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"items": self.items, "labeled": self.labeled, "annotated": self.annotated}


@dataclass(frozen=True)
class ScanPlan:
    """What to look for: groups to tell apart, distinct rows of votes, quantiles of confidences."""

    by: tuple[str, ...]
    n_models: int
    n_classes: int
    patterns: bool = False
    groups_in_patterns: bool = False
    confidences: bool = False

    def empty(self) -> Scan:
        """Nothing seen yet."""
        return Scan(
            plan=self,
            gives={needs: np.zeros(self.n_models, dtype=bool) for needs in _NEEDS},
            classes_named=np.zeros(self.n_classes),
            patterns=VotePatterns.empty() if self.patterns else None,
            confidences=np.zeros((self.n_models, BINS), dtype=np.int64),
        )


@dataclass(eq=False)
class Scan:
    """Counts of all rows, and some rows: the sum over any parts of the data.

    `informed` are rows with a label or annotators' counts, `others` the rest; `repeated` are rows
    that occurred often somewhere; `groups` maps "column=value" to its size and some of its rows.
    """

    plan: ScanPlan
    gives: dict[Needs, Bools]
    classes_named: Floats
    patterns: VotePatterns | None
    confidences: Ints
    size: Size = field(default_factory=Size)
    agree: tuple[float, float] = (0.0, 0.0)
    weighted: bool = False
    informed: BottomRows = field(default_factory=lambda: BottomRows.empty(LABELED_ROWS))
    others: BottomRows = field(default_factory=lambda: BottomRows.empty(SUPPORT_ROWS))
    repeated: BottomRows = field(default_factory=lambda: BottomRows.empty(SUPPORT_ROWS))
    groups: dict[str, tuple[Size, BottomRows]] = field(default_factory=dict)

    def update(self, batch: Batch) -> None:
        """Take in a batch of rows."""
        given = batch.predictions
        identity = given.identity
        ranks, rows = alone(identity), Rows.of(given, batch.weight)
        informed = informed_rows(given)
        self.size.add(given.n_items, given.n_labeled, given.n_annotated)
        self.weighted |= batch.weight is not None
        np.add.at(self.classes_named, given.named[1], 1.0)
        for needs, seen in self.gives.items():
            seen |= given.provides(needs).any(axis=0)
        if given.histogram is not None:
            agree, items, _ = agreement(given.histogram)
            self.agree = (self.agree[0] + agree, self.agree[1] + items)
        self.informed.update(ranks, rows, informed)
        self.others.update(ranks, rows, ~informed)
        repeats = frequent(identity)
        if repeats.any():
            self.repeated.update(ranks, rows, repeats & ~informed)
        if self.patterns is not None:
            self.patterns.update(given, self.plan.by if self.plan.groups_in_patterns else ())
        if self.plan.confidences:
            self.confidences += histograms(given)
        self._update_groups(given, ranks, rows)

    def _update_groups(self, given: Predictions, ranks: UInts, rows: Rows) -> None:
        annotated = np.zeros(given.n_items, dtype=bool)
        if given.histogram is not None:
            annotated = given.histogram.any(axis=1) & ~given.labeled
        for column in self.plan.by:
            codes, names = values_of(given, column)
            for code, name in enumerate(names):
                mine = codes == code
                size, kept = self._group(f"{column}={name}")
                size.add(
                    int(mine.sum()), int(given.labeled[mine].sum()), int(annotated[mine].sum())
                )
                kept.update(ranks, rows, mine)
            self._refuse_many(column)

    def _group(self, name: str) -> tuple[Size, BottomRows]:
        return self.groups.setdefault(name, (Size(), BottomRows.empty(GROUP_ROWS)))

    def _refuse_many(self, column: str) -> None:
        if len(self.groups) <= MAX_GROUPS:
            return
        mine = [name for name in self.groups if name.startswith(f"{column}=")]
        if len(mine) > MAX_GROUPS:
            raise UsageError(
                f"group {column!r} has more than {MAX_GROUPS} values; group them first, or leave "
                "it out of `by`"
            )

    def merge(self, other: Scan) -> None:
        """Take in what was seen of other rows, which come after these."""
        self.size.add(other.size.items, other.size.labeled, other.size.annotated)
        self.weighted |= other.weighted
        self.classes_named += other.classes_named
        self.agree = (self.agree[0] + other.agree[0], self.agree[1] + other.agree[1])
        for needs, seen in other.gives.items():
            self.gives[needs] |= seen
        self.informed.merge(other.informed)
        self.others.merge(other.others)
        self.repeated.merge(other.repeated)
        if self.patterns is not None and other.patterns is not None:
            self.patterns.merge(other.patterns)
        self.confidences += other.confidences
        for name, (size, kept) in other.groups.items():
            own, mine = self._group(name)
            own.add(size.items, size.labeled, size.annotated)
            mine.merge(kept)
        for column in self.plan.by:
            self._refuse_many(column)

    def to_dict(self) -> dict[str, Any]:
        """Arrays and plain values, from which `from_dict` makes the same again."""
        return {
            "gives": dict(self.gives),
            "classes_named": self.classes_named,
            "patterns": None if self.patterns is None else self.patterns.to_dict(),
            "confidences": self.confidences if self.plan.confidences else None,
            "size": self.size.to_dict(),
            "agree": list(self.agree),
            "weighted": self.weighted,
            "informed": self.informed.to_dict(),
            "others": self.others.to_dict(),
            "repeated": self.repeated.to_dict(),
            "groups": [
                [name, size.to_dict(), kept.to_dict()] for name, (size, kept) in self.groups.items()
            ],
        }

    @staticmethod
    def from_dict(plan: ScanPlan, value: Mapping[str, Any]) -> Scan:
        """What `to_dict` gave, of the same plan."""
        patterns = value["patterns"]
        counted = value["confidences"]
        return Scan(
            plan=plan,
            gives={needs: value["gives"][needs] for needs in _NEEDS},
            classes_named=value["classes_named"],
            patterns=None if patterns is None else VotePatterns.from_dict(patterns),
            confidences=plan.empty().confidences if counted is None else counted,
            size=Size(**value["size"]),
            agree=(value["agree"][0], value["agree"][1]),
            weighted=bool(value["weighted"]),
            informed=BottomRows.from_dict(value["informed"]),
            others=BottomRows.from_dict(value["others"]),
            repeated=BottomRows.from_dict(value["repeated"]),
            groups={
                name: (Size(**size), BottomRows.from_dict(kept))
                for name, size, kept in value["groups"]
            },
        )


def informed_rows(given: Predictions) -> Bools:
    """Which rows have a label or annotators' counts, (n,)."""
    if given.histogram is None:
        return given.labeled
    return np.asarray(given.labeled | given.histogram.any(axis=1))


def frequent(identity: UInts) -> Bools:
    """Rows that make up one in `HEAVY` of these, or more, (n,).

    Whatever makes up one in so many of all rows does so in some batch.
    """
    least = max(2, -(-len(identity) // HEAVY))
    bucket = (identity >> np.uint64(52)).astype(np.int64)
    full = np.bincount(bucket, minlength=_BUCKETS) >= least
    out = full[bucket]
    if out.any():
        there = np.flatnonzero(out)
        _, place, counts = np.unique(identity[there], return_inverse=True, return_counts=True)
        out[there] = counts[place] >= least
    return out
