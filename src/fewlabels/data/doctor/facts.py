"""What is counted of all rows: facts of parts of the data add up to those of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.predictions import Predictions

MOST_VALUES = 10_000
"""Different values of a group that are counted; more are told as more than these."""


@dataclass(eq=False)
class Labels:
    """Labels in the order of the rows: how many of each class, (K,), and where they stand.

    `first` and `last` are rows from 0 with the `ends` (classes) there; -1 where there is none.
    `changes` counts labels that differ from the one before.
    """

    n_items: int
    count: Ints
    first: int
    last: int
    ends: tuple[int, int]
    changes: int

    @staticmethod
    def of(predictions: Predictions) -> Labels:
        """The labels of some rows."""
        rows = np.flatnonzero(predictions.labeled)
        known = predictions.labels[rows]
        count = np.bincount(known, minlength=predictions.n_classes)
        if not len(rows):
            return Labels(predictions.n_items, count, -1, -1, (-1, -1), 0)
        changes = int((known[1:] != known[:-1]).sum())
        ends = (int(known[0]), int(known[-1]))
        return Labels(predictions.n_items, count, int(rows[0]), int(rows[-1]), ends, changes)

    @property
    def n_labeled(self) -> int:
        """How many there are."""
        return int(self.count.sum())

    def merge(self, other: Labels) -> None:
        """Add those of rows that come after these."""
        if other.first >= 0:
            if self.first < 0:
                self.first, self.ends = self.n_items + other.first, other.ends
            else:
                self.changes += int(self.ends[1] != other.ends[0])
                self.ends = (self.ends[0], other.ends[1])
            self.last = self.n_items + other.last
        self.count = self.count + other.count
        self.changes += other.changes
        self.n_items += other.n_items


class Range(NamedTuple):
    """Smallest and largest value of each classifier and class; NaN where there is none."""

    low: Floats
    high: Floats

    @staticmethod
    def of(block: Floats) -> Range:
        """Of numbers (n, M, ...)."""
        # Not -1: there may be no classifier.
        flat = block.reshape(*block.shape[:2], int(np.prod(block.shape[2:])))
        return Range(np.fmin.reduce(flat, axis=0), np.fmax.reduce(flat, axis=0))

    def merged(self, other: Range) -> Range:
        """Of these and other numbers."""
        return Range(np.fmin(self.low, other.low), np.fmax(self.high, other.high))

    @property
    def constant(self) -> Bools:
        """Where no two values differ, (M,)."""
        return np.asarray(~(self.high > self.low).any(axis=1))


@dataclass(eq=False)
class Classifiers:
    """What classifiers say: numbers per classifier (M, ...), and which pairs agree in all, (M, M).

    `total` (M, K) are sums of probabilities; `numbers`, `ends` and `rows` (M,) count them, those
    that are 0 or 1, and the rows that have any. `scored` (M,) counts scores, `hard` (M, K) hard
    predictions. `ranges` are of probabilities, scores and votes, where there are any.
    """

    n_items: int
    total: Floats
    numbers: Ints
    ends: Ints
    rows: Ints
    scored: Ints
    hard: Ints
    identical: Bools
    ranges: dict[str, Range]

    @staticmethod
    def of(predictions: Predictions) -> Classifiers:
        """What they say of some rows."""
        m, k = predictions.n_models, predictions.n_classes
        p, s, votes = predictions.probabilities, predictions.scores, predictions.votes
        none = np.zeros(m, dtype=np.int64)
        hard = predictions.hard
        ranges = {name: Range.of(b) for name, b in (("p", p), ("s", s)) if b is not None}
        if votes is not None:
            ranges["y"] = Range.of(np.where(votes < 0, np.nan, votes))
        return Classifiers(
            predictions.n_items,
            np.zeros((m, k)) if p is None else np.nansum(p, axis=0),
            none if p is None else (~np.isnan(p)).sum(axis=(0, 2)),
            none if p is None else ((p == 0) | (p == 1)).sum(axis=(0, 2)),
            np.asarray(predictions.has_probabilities.sum(axis=0)),
            none if s is None else (~np.isnan(s)).sum(axis=0),
            np.stack([np.bincount(h[h >= 0], minlength=k) for h in hard.T]).reshape(m, k)
            if m
            else np.zeros((0, k), dtype=np.int64),
            _identical(predictions),
            ranges,
        )

    def merge(self, other: Classifiers) -> None:
        """Add what they say of other rows."""
        for name in ("n_items", "total", "numbers", "ends", "rows", "scored", "hard"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.identical = self.identical & other.identical
        self.ranges = {n: r.merged(other.ranges[n]) for n, r in self.ranges.items()}

    @property
    def constant(self) -> Bools:
        """Which say one thing for every item, (M,)."""
        same = np.full(len(self.rows), self.n_items > 1)
        for known in self.ranges.values():
            same &= known.constant
        return same

    @property
    def lacking(self) -> Floats:
        """Share of the items that each has nothing for: it ranks all of them by one thing, (M,)."""
        by_score = np.where(self.scored > 0, self.scored, self.hard.sum(axis=1))
        given = np.where(self.rows > 0, self.rows, by_score)
        return np.asarray(1 - given / max(self.n_items, 1))


def _identical(predictions: Predictions) -> Bools:
    """Which two classifiers agree in everything, shape (M, M)."""
    m = predictions.n_models
    same = np.zeros((m, m), dtype=bool)
    blocks = [
        block
        for block in (predictions.probabilities, predictions.votes, predictions.scores)
        if block is not None
    ]
    head = slice(0, 1000)
    for i in range(m):
        for j in range(i + 1, m):
            # Most pairs differ early; only copies are compared to the end.
            same[i, j] = same[j, i] = all(
                np.array_equal(block[part, i], block[part, j], equal_nan=True)
                for part in (head, slice(None))
                for block in blocks
            )
    return same


@dataclass(eq=False)
class Groups:
    """Different values of each group, at most `MOST_VALUES` and one more."""

    values: dict[str, set[Any]]

    @staticmethod
    def of(predictions: Predictions) -> Groups:
        """Those of some rows."""
        return Groups({name: set(a.tolist()) for name, a in predictions.groups.items()})

    def merge(self, other: Groups) -> None:
        """Add those of other rows."""
        for name, values in other.values.items():
            have = self.values.setdefault(name, set())
            if len(have) <= MOST_VALUES:
                have |= values
        self.cut()

    def cut(self) -> None:
        """Forget what is too many to be told."""
        for name, values in self.values.items():
            if len(values) > MOST_VALUES + 1:
                # A set of values that may be told in any order: only how many counts.
                self.values[name] = set(list(values)[: MOST_VALUES + 1])

    def sizes(self, *, cut: bool) -> dict[str, tuple[int, str]]:
        """How many values each has, and the number in words."""
        return {
            name: (n, f"more than {MOST_VALUES:,}" if cut and n > MOST_VALUES else f"{n:,}")
            for name, values in self.values.items()
            for n in (len(values),)
        }


@dataclass(eq=False)
class Facts:
    """All that is counted; `weights` are the smallest and the largest sampling weight."""

    labels: Labels
    classifiers: Classifiers
    groups: Groups
    weights: tuple[float, float]

    @staticmethod
    def of(predictions: Predictions, weight: Floats | None) -> Facts:
        """Facts of some rows with their sampling weights, (n,); None: all are equal."""
        return Facts(
            Labels.of(predictions),
            Classifiers.of(predictions),
            Groups.of(predictions),
            (1.0, 1.0) if weight is None else (float(weight.min()), float(weight.max())),
        )

    def merge(self, other: Facts) -> None:
        """Add those of rows that come after these."""
        self.labels.merge(other.labels)
        self.classifiers.merge(other.classifiers)
        self.groups.merge(other.groups)
        low, high = zip(self.weights, other.weights, strict=True)
        self.weights = (min(low), max(high))

    def counts(self) -> dict[str, int]:
        """How many items, labels, classifiers and classes there are."""
        n_models, n_classes = self.classifiers.total.shape
        return {
            "n_items": self.labels.n_items,
            "n_labeled": self.labels.n_labeled,
            "n_models": n_models,
            "n_classes": n_classes,
        }

    def balance(self, models: Sequence[str], classes: Sequence[Any]) -> dict[str, Any]:
        """Share of each class among the labels, and as each classifier sees it."""
        names = [str(c) for c in classes]
        seen = self.classifiers
        predicted = {
            model: _shares(total if total.any() else hard, names)
            for model, total, hard in zip(models, seen.total, seen.hard, strict=True)
        }
        of_labels = _shares(self.labels.count, names)
        return {"labels": of_labels, "predicted": predicted, "classes": names}


def _shares(total: Any, names: Sequence[str]) -> dict[str, float] | None:
    """Share of each class; None where nothing is counted."""
    whole = float(np.sum(total))
    return None if not whole else {c: float(t) / whole for c, t in zip(names, total, strict=True)}
