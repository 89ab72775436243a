"""A sample of very many rows, chosen by their content, and all distinct rows of votes.

`RowArrays` are the arrays of the items kept, which add up and can be sent. A row's rank is a hash
of its content (in memory, the key of a row without equals). The rows of smallest rank are a sample
of the distinct rows, the same in any order and partition. Their frequencies are counted exactly: a
row among the smallest of all is among the smallest of every part from its first occurrence on
(Cohen and Kaplan, 2007, bottom-k sketches). Models of votes learn from distinct rows alone:
`VotePatterns`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewlabels.errors import InputError
from fewlabels.kernels.arrays import Array, Floats, Ints, UInts
from fewlabels.kernels.counter_based import hash_columns, hash_strings
from fewlabels.predictions import Predictions

_ARRAYS = ("probabilities", "votes", "scores", "histogram", "labels", "domain")
_GROUP, _CLUSTER = "group:", "cluster:"
_WEIGHT = "weight"


@dataclass(frozen=True, eq=False)
class RowArrays:
    """Arrays of n items by the name of the argument of `Predictions`.

    Groups are under "group:<name>", clusters under "cluster:<name>", raw sampling weights under
    "weight".
    """

    arrays: Mapping[str, Array]

    @staticmethod
    def of(predictions: Predictions, weight: Floats | None) -> RowArrays:
        """The items of a batch."""
        found = {name: getattr(predictions, name) for name in _ARRAYS}
        arrays = {name: array for name, array in found.items() if array is not None}
        arrays |= {f"{_GROUP}{name}": array for name, array in predictions.groups.items()}
        arrays |= {f"{_CLUSTER}{name}": array for name, array in predictions.clusters.items()}
        return RowArrays(arrays if weight is None else {**arrays, _WEIGHT: weight})

    def __len__(self) -> int:
        return len(self.arrays["labels"])

    @property
    def weight(self) -> Floats | None:
        """Raw sampling weights, (n,)."""
        return self.arrays.get(_WEIGHT)

    def take(self, index: Array | slice) -> RowArrays:
        """Some of the items."""
        return RowArrays({name: array[index] for name, array in self.arrays.items()})

    @staticmethod
    def joined(parts: Sequence[RowArrays]) -> RowArrays:
        """The items of several parts, one after another."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0].arrays
        return RowArrays({name: np.concatenate([p.arrays[name] for p in parts]) for name in first})

    def predictions(
        self, models: Sequence[str], classes: Sequence[Any], multiplicity: Floats | None = None
    ) -> Predictions:
        """These items as `Predictions`."""
        named: dict[str, Any] = {
            name: array for name, array in self.arrays.items() if name in _ARRAYS
        }
        groups, clusters = (
            {n.removeprefix(front): a for n, a in self.arrays.items() if n.startswith(front)}
            for front in (_GROUP, _CLUSTER)
        )
        return Predictions(
            **named,
            groups=groups,
            weight=self.weight,
            models=models,
            classes=classes,
            positive=classes[1] if len(classes) == 2 else None,
            multiplicity=multiplicity,
        ).in_clusters(clusters)


@dataclass(eq=False)
class BottomSample:
    """The `size` distinct rows of smallest rank, and their frequencies.

    ranks (r,) ascend; counts (r,); `complete` says that no row was dropped.
    """

    size: int
    ranks: UInts
    counts: Ints
    rows: RowArrays | None = None
    complete: bool = True

    @staticmethod
    def empty(size: int) -> BottomSample:
        """No rows yet."""
        return BottomSample(size, np.empty(0, np.uint64), np.empty(0, np.int64))

    def update(self, ranks: UInts, rows: RowArrays, which: Array | None = None) -> None:
        """Take in rows of these ranks, or those that a mask marks."""
        inside = np.ones(len(ranks), dtype=bool) if which is None else which.copy()
        if len(self.ranks) == self.size:
            low = ranks <= self.ranks[-1]
            if self.complete and (inside & ~low).any():
                self.complete = False
            inside &= low
        chosen = np.flatnonzero(inside)
        if len(chosen):
            distinct, first, counts = np.unique(
                ranks[chosen], return_index=True, return_counts=True
            )
            self.complete &= len(distinct) <= self.size
            keep = slice(0, self.size)
            self._take_in(distinct[keep], counts[keep], rows.take(chosen[first[keep]]))

    def merge(self, other: BottomSample) -> None:
        """Take in the rows of another sketch of the same size."""
        self.complete &= other.complete
        if other.rows is not None:
            self._take_in(other.ranks, other.counts, other.rows)

    def _take_in(self, ranks: UInts, counts: Ints, rows: RowArrays) -> None:
        keep = slice(0, self.size)
        if self.rows is None:
            self.complete &= len(ranks) <= self.size
            self.ranks, self.counts, self.rows = ranks[keep], counts[keep], rows.take(keep)
            return
        every = np.concatenate([self.ranks, ranks])
        distinct, first, place = np.unique(every, return_index=True, return_inverse=True)
        total = np.bincount(
            place, np.concatenate([self.counts, counts]), minlength=len(distinct)
        ).astype(np.int64)
        self.complete &= len(distinct) <= self.size
        self.ranks, self.counts = distinct[keep], total[keep]
        self.rows = RowArrays.joined([self.rows, rows]).take(first[keep])

    @property
    def n_rows(self) -> int:
        """Number of rows that its distinct rows stand for."""
        return int(self.counts.sum())


def spread_out(counts: Ints | Floats, total: int) -> Ints:
    """How many of `total` copies each row gets, in proportion to its count: (r,) whole numbers.

    Systematic rounding: sums over any stretch are right to one.
    """
    if not len(counts):
        return np.zeros(0, dtype=np.int64)
    ends = np.floor(np.cumsum(counts) * (total / counts.sum()) + 0.5).astype(np.int64)
    return np.diff(ends, prepend=0)


def counts_of(found: UInts, ranks: UInts) -> Ints:
    """Counts of some ranks, which ascend, among those found."""
    place = np.minimum(np.searchsorted(ranks, found), len(ranks) - 1)
    return np.bincount(place[ranks[place] == found], minlength=len(ranks))


MOST_PATTERNS = 2_000_000


class TooManyPatternsError(InputError):
    """More distinct rows of votes than a model of votes can be fitted to in parts."""


@dataclass(eq=False)
class VotePatterns:
    """Distinct rows of votes, label, annotators' counts, domain, groups and clusters.

    keys (u,) ascend: hashes of these; counts (u,); all of it exact.
    """

    keys: UInts
    counts: Ints
    rows: RowArrays | None = None

    @staticmethod
    def empty() -> VotePatterns:
        """No rows yet."""
        return VotePatterns(np.empty(0, np.uint64), np.empty(0, np.int64))

    def update(
        self, given: Predictions, groups: Sequence[str], weight: Floats | None = None
    ) -> None:
        """Count the rows of a batch; rows that differ in group or weight are different ones."""
        arrays = {"votes": given.hard, "labels": given.labels}
        columns = [*given.hard.T, given.labels]
        if given.histogram is not None:
            arrays["histogram"] = given.histogram
            columns += list(given.histogram.T)
        if given.domain is not None:
            arrays["domain"] = given.domain
            columns.append(hash_strings(given.domain))
        for name in groups:
            if name in given.groups:
                arrays[f"group:{name}"] = given.groups[name]
                columns.append(hash_strings(given.groups[name]))
        for name, values in given.clusters.items():
            arrays[f"cluster:{name}"] = values
            columns.append(hash_strings(values))
        if weight is not None:
            arrays["weight"] = weight
            columns.append(weight)
        hashed = hash_columns(columns, given.n_items)
        keys, first, counts = np.unique(hashed, return_index=True, return_counts=True)
        self._take_in(keys, counts, RowArrays(arrays).take(first))

    def merge(self, other: VotePatterns) -> None:
        """Add the counts of other rows."""
        if other.rows is not None:
            self._take_in(other.keys, other.counts, other.rows)

    def _take_in(self, keys: UInts, counts: Ints, rows: RowArrays) -> None:
        if self.rows is None:
            self.keys, self.counts, self.rows = keys, counts, rows
            return
        place = np.searchsorted(self.keys, keys)
        known = place < len(self.keys)
        known[known] = self.keys[place[known]] == keys[known]
        self.counts[place[known]] += counts[known]
        new = np.flatnonzero(~known)
        if not len(new):
            return
        every = np.concatenate([self.keys, keys[new]])
        order = np.argsort(every)
        if len(every) > MOST_PATTERNS:
            raise TooManyPatternsError(
                f"there are more than {MOST_PATTERNS:,} different rows of votes, more than a model "
                "of votes is fitted to; choose fewer classifiers (--models), or read the file "
                "whole (--engine memory)"
            )
        self.keys = every[order]
        self.counts = np.concatenate([self.counts, counts[new]])[order]
        self.rows = RowArrays.joined([self.rows, rows.take(new)]).take(order)

    def predictions(self, models: Sequence[str], classes: Sequence[Any]) -> Predictions:
        """One row per pattern, with its multiplicity."""
        assert self.rows is not None
        return self.rows.predictions(models, classes, self.counts.astype(np.float64))
