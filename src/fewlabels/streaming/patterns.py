"""Distinct rows of votes and how often each occurs: all that models of votes learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewlabels.errors import InputError
from fewlabels.kernels.arrays import Floats, Ints, UInts
from fewlabels.kernels.counter_based import hash_columns, hash_strings
from fewlabels.predictions import Predictions
from fewlabels.streaming.sketch import RowArrays

MOST_PATTERNS = 2_000_000


class TooManyPatternsError(InputError):
    """More different rows of votes than a model of votes is fitted to in parts."""


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
