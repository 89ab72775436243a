"""The first pass: facts about all rows that are needed before a label model is fitted to some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fewlabels.errors import UsageError
from fewlabels.evaluation.groups import MAX_GROUPS, values_of
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints, UInts
from fewlabels.kernels.counter_based import alone, hash_columns, hash_strings
from fewlabels.kernels.ranking import logit_codes, logit_edges
from fewlabels.kernels.votes import agreement
from fewlabels.metrics.base import ScoreView
from fewlabels.predictions import Predictions
from fewlabels.streaming.reading import Batch
from fewlabels.streaming.sketch import BottomSample, RowArrays, VotePatterns

SUPPORT_ROWS = 20_000
"""Unlabeled rows that label models are fitted to, and rows that noise is measured on."""

LABELED_ROWS = 200_000
"""Rows with a label, or annotators' counts, that label models are fitted to at most."""

GROUP_ROWS = 2_000
"""Rows of every group that its noise is measured on."""

MODEL_ROWS = 500
"""Rows of every classifier: one that predicts on few rows may be missing from the other samples."""

HEAVY = 256
"""A row that makes up one in so many of all is counted separately: a sample of distinct rows would
contain all of its copies or none."""

_MODEL_BYTES = 2**26

_BUCKETS = 4096


class TooManyGroupsError(UsageError):
    """A column has more groups than can be held apart in parts of the rows."""


@dataclass(eq=False)
class Size:
    """Numbers of rows: all, labeled, annotated without a label, and of positive weight."""

    items: int = 0
    labeled: int = 0
    annotated: int = 0
    weighty: int = 0

    def add(self, more: Size) -> None:
        """Count more."""
        self.items += more.items
        self.labeled += more.labeled
        self.annotated += more.annotated
        self.weighty += more.weighty


@dataclass(frozen=True)
class ScanPlan:
    """What to look for: groups to tell apart, distinct rows of votes, quantiles of confidences."""

    by: tuple[str, ...]
    n_models: int
    n_classes: int
    patterns: bool = False
    groups_in_patterns: bool = False
    confidences: bool = False

    @property
    def keeps_models(self) -> bool:
        """Whether rows of every classifier are kept; with very many it would take too much."""
        return 8 * MODEL_ROWS * self.n_models**2 * self.n_classes <= _MODEL_BYTES

    def empty(self) -> Scan:
        """Nothing seen yet."""
        return Scan(
            plan=self,
            patterns=VotePatterns.empty() if self.patterns else None,
            confidences=np.zeros((self.n_models, BINS * self.confidences), dtype=np.int64),
            model_rows=np.zeros(self.n_models, dtype=np.int64),
            models=[BottomSample.empty(MODEL_ROWS) for _ in range(self.n_models)],
        )


@dataclass(eq=False)
class Scan:
    """Counts of all rows, and some rows; scans of parts add up.

    `informed` are rows with a label or annotators' counts, `others` the rest. `repeated` are rows
    that were frequent in some batch. `groups` maps "column=value" to its size and some of its rows.
    `models` are rows with predictions of each classifier, `model_rows` (M,) their numbers. Rows of
    weight 0 are counted but not kept. `n_rows` are the rows of each part, `given` (M,) those of
    them with a prediction of each classifier.
    """

    plan: ScanPlan
    patterns: VotePatterns | None
    confidences: Ints
    model_rows: Ints
    models: list[BottomSample]
    size: Size = field(default_factory=Size)
    agree: tuple[float, float] = (0.0, 0.0)
    informed: BottomSample = field(default_factory=lambda: BottomSample.empty(LABELED_ROWS))
    others: BottomSample = field(default_factory=lambda: BottomSample.empty(SUPPORT_ROWS))
    repeated: BottomSample = field(default_factory=lambda: BottomSample.empty(SUPPORT_ROWS))
    groups: dict[str, tuple[Size, BottomSample]] = field(default_factory=dict)
    n_rows: list[int] = field(default_factory=list)
    given: list[Ints] = field(default_factory=list)

    def update(self, batch: Batch) -> None:
        """Take in a batch of rows."""
        given = batch.predictions
        kept = _Kept.of(batch, self.plan.by)
        informed = given.told
        self.size.add(
            Size(given.n_items, given.n_labeled, given.n_annotated, int(kept.there.sum()))
        )
        if given.histogram is not None:
            agree, items, _ = agreement(given.histogram)
            self.agree = (self.agree[0] + agree, self.agree[1] + items)
        kept.into(self.informed, informed)
        kept.into(self.others, ~informed)
        self._update_models(given, kept)
        if self.patterns is not None:
            groups = self.plan.by if self.plan.groups_in_patterns else ()
            self.patterns.update(given, groups, batch.weight)
        if self.plan.confidences:
            self.confidences += histograms(given)
        self._update_groups(given, kept)
        kept.into(self.repeated, kept.often)

    def _update_models(self, given: Predictions, kept: _Kept) -> None:
        says = (given.has_hard | given.provides("ranking")) & kept.there[:, None]
        self.model_rows += says.sum(axis=0)
        if self.plan.keeps_models:
            for sketch, mine in zip(self.models, says.T, strict=True):
                sketch.update(kept.ranks, kept.rows, mine)

    def _update_groups(self, given: Predictions, kept: _Kept) -> None:
        annotated = given.annotated
        for column in self.plan.by:
            codes, names = values_of(given, column)
            self._refuse_many(column, len(names))
            for code, name in enumerate(names):
                mine = codes == code
                size, sketch = self._group(f"{column}={name}")
                each = (mine, given.labeled & mine, annotated & mine, kept.there & mine)
                size.add(Size(*(int(rows.sum()) for rows in each)))
                kept.into(sketch, mine)
            self._refuse_many(column)

    def _group(self, name: str) -> tuple[Size, BottomSample]:
        return self.groups.setdefault(name, (Size(), BottomSample.empty(GROUP_ROWS)))

    def _refuse_many(self, column: str, in_batch: int = 0) -> None:
        if max(len(self.groups), in_batch) <= MAX_GROUPS:
            return
        mine = [name for name in self.groups if name.startswith(f"{column}=")]
        if max(len(mine), in_batch) > MAX_GROUPS:
            raise TooManyGroupsError(
                f"group {column!r} has more than {MAX_GROUPS} values; group them first, leave "
                "it out of `by`, or read the files whole (--engine memory)"
            )

    def take(self, other: Scan) -> int:
        """Take in the next part; how many rows it has."""
        self.merge(other)
        self.n_rows.append(other.size.items)
        self.given.append(other.model_rows)
        return other.size.items

    def merge(self, other: Scan) -> None:
        """Take in what was seen of other rows, which come after these."""
        self.size.add(other.size)
        self.model_rows += other.model_rows
        for sketch, more in zip(self.models, other.models, strict=True):
            sketch.merge(more)
        self.agree = (self.agree[0] + other.agree[0], self.agree[1] + other.agree[1])
        self.informed.merge(other.informed)
        self.others.merge(other.others)
        self.repeated.merge(other.repeated)
        if self.patterns is not None and other.patterns is not None:
            self.patterns.merge(other.patterns)
        self.confidences += other.confidences
        for name, (size, kept) in other.groups.items():
            own, mine = self._group(name)
            own.add(size)
            mine.merge(kept)
        for column in self.plan.by:
            self._refuse_many(column)

    @property
    def complete(self) -> bool:
        """Whether every distinct row is held."""
        sketches = [self.informed, self.others, *(kept for _, kept in self.groups.values())]
        return all(sketch.complete for sketch in sketches)

    @property
    def ordered_groups(self) -> dict[str, tuple[Size, BottomSample]]:
        """The groups, column by column in the order asked for, then by first appearance."""
        out: dict[str, tuple[Size, BottomSample]] = {}
        for column in self.plan.by:
            for name, group in self.groups.items():
                if name.startswith(f"{column}="):
                    out.setdefault(name, group)
        return out


@dataclass(eq=False)
class _Kept:
    """Rows of a batch, ranks (n,), which have some weight (n,), and which are frequent (n,)."""

    ranks: UInts
    rows: RowArrays
    there: Bools
    often: Bools

    @staticmethod
    def of(batch: Batch, by: Sequence[str]) -> _Kept:
        n = batch.predictions.n_items
        there = np.ones(n, dtype=bool) if batch.weight is None else batch.weight > 0
        rows = RowArrays.of(batch.predictions, batch.weight)
        return _Kept(ranks_of(batch, by), rows, there, np.zeros(n, dtype=bool))

    def into(self, sketch: BottomSample, which: Bools) -> None:
        """Take some rows into a sketch, and mark those that make up much of them."""
        which = which & self.there
        sketch.update(self.ranks, self.rows, which)
        self.often |= frequent(self.ranks, which)


def ranks_of(batch: Batch, by: Sequence[str]) -> UInts:
    """Rank of every row, (n,): a hash of its content.

    The last bits are of weight, groups and clusters: rows that differ in these alone are distinct,
    and next to each other.
    """
    given = batch.predictions
    aside: list[Array] = [] if batch.weight is None else [batch.weight]
    aside += [hash_strings(given.groups[name]) for name in by if name in given.groups]
    aside += [hash_strings(values) for values in given.clusters.values()]
    ranks = alone(given.identity)
    if not aside:
        return ranks
    return ranks ^ (hash_columns(aside, given.n_items) & np.uint64(2**20 - 1))


def frequent(ranks: UInts, which: Bools) -> Bools:
    """Mask (n,) of rows that make up one in `HEAVY` of a batch, or more.

    A row that makes up one in so many of all rows does so in some batch.
    """
    least = max(2, -(-int(which.sum()) // HEAVY))
    bucket = (ranks[which] >> np.uint64(52)).astype(np.int64)
    full = np.bincount(bucket, minlength=_BUCKETS) >= least
    out = which.copy()
    out[which] = full[bucket]
    if out.any():
        there = np.flatnonzero(out)
        _, place, counts = np.unique(ranks[there], return_inverse=True, return_counts=True)
        out[there] = counts[place] >= least
    return out


BINS = 2**14
_GRID = 10_001


def histograms(rows: Predictions) -> Ints:
    """Rows by P(class 1), or that of the likeliest class, for every classifier, (M, BINS)."""
    out = np.zeros((rows.n_models, BINS), dtype=np.int64)
    if rows.probabilities is None:
        return out
    for j in range(rows.n_models):
        p = rows.probabilities[rows.has_probabilities[:, j], j]
        confidence = p[:, 1] if rows.n_classes == 2 else p.max(axis=1)
        out[j] = np.bincount(logit_codes(confidence, BINS)[0], minlength=BINS)
    return out


def as_view(counts: Ints) -> ScoreView | None:
    """Scores with the quantiles of a histogram (BINS,), as of two classes; None if it is empty."""
    total = counts.sum()
    if not total:
        return None
    edges = logit_edges(BINS)
    reached = np.concatenate([[0], np.cumsum(counts)]) / total
    full = np.flatnonzero(np.diff(reached) > 0)
    # Between full bins the quantile jumps; within one it moves evenly.
    place = np.searchsorted(reached[full + 1], np.linspace(0, 1, _GRID)).clip(max=len(full) - 1)
    start, share = reached[full[place]], np.diff(reached)[full[place]]
    inside = np.clip((np.linspace(0, 1, _GRID) - start) / share, 0, 1)
    score: Floats = edges[full[place]] * (1 - inside) + edges[full[place] + 1] * inside
    return ScoreView(2, np.column_stack([1 - score, score]))
