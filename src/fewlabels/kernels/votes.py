"""Hard predictions of several classifiers: shares, one-hot matrices, patterns.

And how often annotators are right, from how often two of one item agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.counter_based import hash_columns, hash_rows, mix


def vote_shares(counts: scipy.sparse.csr_matrix, weights: Floats, empty: Floats) -> Floats:
    """Share of the votes for each class, (n, M K) counts and weights (M, D) -> (n, K, D).

    Where all voters weigh nothing they count equally; items without any vote get `empty`, (K,).
    """
    n, k = counts.shape[0], len(empty)
    votes = by_class(counts, k)
    out: Floats = (votes @ weights).reshape(n, k, weights.shape[1])
    total = out.sum(axis=1)
    if (total == 0).any():
        equal = (votes @ np.ones((votes.shape[1], 1))).reshape(n, k, 1)
        voted = equal.sum(axis=1)
        out = np.where(total[:, None] == 0, equal, out)
        total = np.where(total == 0, np.maximum(voted, 1), total)
        out[voted[:, 0] == 0] = empty[:, None]
    out /= total[:, None]
    return out


def most_voted(shares: Floats) -> Floats:
    """All the probability on the class with the largest share, (n, K, D); ties share it."""
    # Rounding must not break a tie: which class won would depend on their order.
    most = shares >= shares.max(axis=1, keepdims=True) - 1e-12
    out: Floats = most / most.sum(axis=1, keepdims=True)
    return out


def by_class(counts: scipy.sparse.csr_matrix, n_classes: int) -> scipy.sparse.csr_matrix:
    """Counts (n, M K) as (n K, M): how often classifier j calls item i class l, at row i K + l."""
    n, columns = counts.shape
    item = np.repeat(np.arange(n), np.diff(counts.indptr))
    classifier, voted = np.divmod(counts.indices.astype(np.int64), n_classes)
    shape = (n * n_classes, columns // n_classes)
    return scipy.sparse.csr_matrix((counts.data, (item * n_classes + voted, classifier)), shape)


def by_group(
    counts: scipy.sparse.csr_matrix, group: Ints, n_groups: int
) -> scipy.sparse.csr_matrix:
    """Rows (n, c) of groups (n,) as (n, G c): every group has columns of its own."""
    if n_groups == 1:
        return counts
    n, c = counts.shape
    columns = counts.indices + np.repeat(group * c, np.diff(counts.indptr))
    return scipy.sparse.csr_matrix((counts.data, columns, counts.indptr), (n, n_groups * c))


def in_triangle(counts: scipy.sparse.csr_matrix, n_classes: int) -> Bools:
    """Which classifiers (M,) share items with two others that share items themselves.

    Without labels error rates need that: the agreement of two has many explanations.
    """
    voted = by_item(counts, np.ones((counts.shape[0], n_classes)))
    voters = np.diff(voted.indptr)
    out = np.zeros(voted.shape[1], dtype=bool)
    out[voted[voters > 2].indices] = True
    if out.all():
        return out
    voted.data[:] = 1.0
    overlap = (voted.T @ voted).tocsr()
    overlap.setdiag(0)
    overlap.eliminate_zeros()
    # Only paths that start at a classifier that is left: all paths of a large crowd take long.
    rest = np.flatnonzero(~out)
    closed = (overlap[rest] @ overlap).multiply(overlap[rest])
    out[rest] = np.asarray(closed.sum(axis=1)).ravel() > 0
    return out


def by_item(counts: scipy.sparse.csr_matrix, values: Floats) -> scipy.sparse.csr_matrix:
    """Sums of a value of each vote, (n, M): counts (n, M K), the value by item and class (n, K)."""
    n, k = values.shape
    item = np.repeat(np.arange(n), np.diff(counts.indptr))
    classifier, voted = np.divmod(counts.indices.astype(np.int64), k)
    data = counts.data * values[item, voted]
    return scipy.sparse.csr_matrix((data, (item, classifier)), (n, counts.shape[1] // k))


def class_votes(
    counts: scipy.sparse.csr_matrix, n_classes: int, times: Floats | None = None
) -> Floats:
    """Votes for each class, (n, M K) -> (K,), with the number of items of each row (n,)."""
    voted, votes = counts.indices % n_classes, counts.data
    if times is not None:
        votes = votes * np.repeat(times, np.diff(counts.indptr))
    return np.bincount(voted, weights=votes, minlength=n_classes).astype(np.float64)


def as_ballots(hard: Array) -> scipy.sparse.csr_matrix:
    """Hard predictions (n, M), -1 = missing, as class + 1 where there is one."""
    item, classifier = np.nonzero(hard >= 0)
    start = np.searchsorted(item, np.arange(len(hard) + 1))
    data = hard[item, classifier].astype(np.int64) + 1
    return scipy.sparse.csr_matrix((data, classifier, start), hard.shape)


def count_votes(
    ballots: scipy.sparse.csr_matrix, n_classes: int, again: Ints | None = None
) -> scipy.sparse.csr_matrix:
    """Ballots (n, M) as counts, (n, M K): column j K + l is classifier j voting for class l.

    `again` (E, 3) holds further votes: item, classifier, class.
    """
    shape = (ballots.shape[0], ballots.shape[1] * n_classes)
    column = ballots.indices.astype(np.int64) * n_classes
    column += ballots.data
    column -= 1
    counts = scipy.sparse.csr_matrix((np.ones(len(column)), column, ballots.indptr), shape)
    if again is not None:
        others = again[:, 1] * n_classes + again[:, 2]
        counts = counts + scipy.sparse.csr_matrix(
            (np.ones(len(again)), (again[:, 0], others)), shape
        )
    counts.sum_duplicates()
    return counts


def votes_of(again: Ints, axis: int, chosen: Array, size: int) -> Ints:
    """Further votes (E, 3) on some items (axis 0) or by some classifiers (axis 1), numbered anew.

    `chosen` holds indices, which may repeat, or a mask of length `size`.
    """
    index = np.flatnonzero(chosen) if chosen.dtype == bool else np.asarray(chosen)
    order = np.argsort(again[:, axis], kind="stable")
    first = np.searchsorted(again[order, axis], np.arange(size + 1))
    length = np.diff(first)[index]
    place = np.repeat(np.arange(len(index)), length)
    step = np.arange(len(place)) - np.repeat(np.cumsum(length) - length, length)
    out: Ints = again[order[first[index][place] + step]].copy()
    out[:, axis] = place
    return out


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


def patterns(
    counts: scipy.sparse.csr_matrix, evidence: Floats, domain: Ints | None = None
) -> Patterns:
    """Items of the same votes (n, M K), evidence (n, K) and domain (n,) are one pattern.

    Their number depends on classifiers and classes, hardly on the items: four two-class
    classifiers make 16 patterns, and two more for each that has a label.
    """
    columns = [hash_rows(counts), *evidence.T]
    keys = hash_columns(columns if domain is None else [*columns, domain], counts.shape[0])
    _, first, of_item = np.unique(keys, return_index=True, return_inverse=True)
    return Patterns(first, of_item)


_GLANCE = 8
"""Rows in which all columns mostly differ, where they do."""


def distinct_columns(values: Floats) -> Patterns:
    """Columns of (n, K) that differ, in their order, and which one each is."""
    few = distinct_columns(values[:_GLANCE]) if len(values) > _GLANCE else None
    if few is not None and len(few.first) == values.shape[1]:
        return few
    salt = mix(np.arange(len(values), dtype=np.uint64))
    keys = mix((values + 0.0).view(np.uint64) ^ salt[:, None]).sum(axis=0)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return Patterns(first[order], np.argsort(order)[which])


def has_evidence(evidence: Floats) -> Bools:
    """Where labels or annotators favour one class over another, evidence (n, K) -> (n,)."""
    return np.asarray((evidence != 0).any(axis=1))


def agreement(histogram: Floats, times: Floats | None = None) -> tuple[float, float, int]:
    """How often two annotators of one item agree, summed over items with two; how many; classes.

    The first two add up over parts of the items. `times` (n,) is how many items a row stands for.
    """
    size = histogram.sum(axis=1)
    many = size >= 2
    h, m = histogram[many], size[many]
    share = (h * (h - 1)).sum(axis=1) / (m * (m - 1))
    each = np.ones(len(m)) if times is None else times[many]
    return float((share * each).sum()), float(each.sum()), histogram.shape[1]


def annotator_accuracy(agree: float, items: float, n_classes: int) -> float:
    """How often an annotator is right, from `agreement`; .9 where no item has two labels."""
    if not items:
        return 0.9
    # r^2 + (1-r)^2/(k-1) = agree; the root above 1/k.
    spread = max((agree / items - 1 / n_classes) * (n_classes - 1) / n_classes, 0.0)
    return float(np.clip(1 / n_classes + np.sqrt(spread), 1 / n_classes + 1e-3, 1 - 1e-3))
