"""Hard predictions of several classifiers: shares, one-hot matrices, patterns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.keyed import hash_columns


def vote_shares(votes: Ints, weights: Floats, empty: Floats) -> Floats:
    """Share of the votes for each class, (n, M) and weights (M, D) -> (n, K, D).

    A vote of -1 is missing. Where all voters weigh nothing they count equally; items without any
    vote get `empty`, (K,).
    """
    equal = np.ones_like(weights)
    out = np.empty((len(votes), len(empty), weights.shape[1]))
    present = (votes >= 0).astype(np.float64)
    total = present @ weights
    nothing = total == 0
    if nothing.any():
        total = np.where(nothing, present @ equal, total)
    none = np.flatnonzero(~present.any(axis=1))
    total[none] = 1.0
    for k in range(len(empty)):
        chosen = (votes == k).astype(np.float64)
        out[:, k] = chosen @ weights
        if nothing.any():
            out[:, k] = np.where(nothing, chosen @ equal, out[:, k])
    out /= total[:, None, :]
    out[none] = empty[:, None]
    return out


def one_hot_votes(votes: Ints, n_classes: int) -> scipy.sparse.csr_matrix:
    """Votes (n, M) as rows of ones, (n, M K): column j K + l is classifier j voting for class l."""
    n, m = votes.shape
    item, classifier = np.nonzero(votes >= 0)
    column = classifier * n_classes + votes[item, classifier]
    return scipy.sparse.csr_matrix(
        (np.ones(len(item)), (item, column)), shape=(n, m * n_classes), dtype=np.float64
    )


class Patterns(NamedTuple):
    """Distinct rows: where each first occurs (U,), and which one each item has (n,)."""

    first: Ints
    of_item: Ints

    def sums(self, weights: Floats) -> Floats:
        """Sums over the items of each pattern, (n, B) -> (U, B)."""
        n = len(self.of_item)
        gather = scipy.sparse.csr_matrix(
            (np.ones(n), (self.of_item, np.arange(n))), shape=(len(self.first), n)
        )
        out: Floats = gather @ weights
        return out


def patterns(votes: Ints, evidence: Floats) -> Patterns:
    """Items of the same votes (n, M) and the same evidence (n, K) are one pattern.

    Their number depends on classifiers and classes, hardly on the items: four two-class
    classifiers make 16 patterns, and two more for each that has a label.
    """
    keys = hash_columns([*votes.T, *evidence.T], len(votes))
    _, first, of_item = np.unique(keys, return_index=True, return_inverse=True)
    return Patterns(first, of_item)
