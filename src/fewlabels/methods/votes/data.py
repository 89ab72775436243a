"""Predictions as the Gibbs samplers of votes see them: distinct rows per domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Array, Floats, Ints, UInts
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.counter_based_counts import exponential_sums
from fewlabels.kernels.votes import Patterns, by_group, class_votes, patterns
from fewlabels.methods.base import refuse_multiplicity, whole_items
from fewlabels.methods.bee.constraints import Constraints
from fewlabels.methods.bee.table import VoteTable
from fewlabels.predictions import Predictions

_ROWS = 2**16
"""Rows whose bootstrap weights are drawn at a time."""


def domains_of(predictions: Predictions) -> tuple[str | None, ...]:
    """Names of the domains by first appearance; one, None, where none is given."""
    return tuple(dict.fromkeys(item_domains(predictions)))


def item_domains(predictions: Predictions) -> list[str | None]:
    """Name of every item's domain, n of them; None where none is given."""
    if predictions.domain is None:
        return [None] * predictions.n_items
    return [_name(d) for d in predictions.domain.tolist()]


def domain_texts(domains: Sequence[str | None]) -> list[str]:
    """Domains as they are shown: a missing one is called as a missing group is."""
    return ["null" if d is None else d for d in domains]


def by_domain(
    table: Floats, domains: Sequence[str | None], columns: Sequence[str]
) -> dict[str, Any]:
    """Rows of a table (D, c) by domain and column; a single one by column alone."""
    rows = [dict(zip(columns, row, strict=True)) for row in table.tolist()]
    return rows[0] if len(rows) == 1 else dict(zip(domain_texts(domains), rows, strict=True))


def domain_codes(predictions: Predictions, domains: Sequence[str | None]) -> Ints:
    """Index of every item's domain, (n,).

    Raises
    ------
    InputError
        If an item is of a domain that is not among them.
    """
    index = {name: d for d, name in enumerate(domains)}
    if index.keys() == {None}:
        return np.zeros(predictions.n_items, dtype=np.int64)
    if predictions.domain is None:
        raise InputError(
            "these items have no domain, and the method was fitted on domains; give the column "
            "`domain`"
        )
    names = item_domains(predictions)
    strange = dict.fromkeys(name for name in names if name not in index)
    if strange:
        raise InputError(
            f"domain {listed(domain_texts(list(strange)), 3)} is not among those that the method "
            f"was fitted on ({listed(domain_texts(domains), 5)}); fit on all of them"
        )
    return np.array([index[name] for name in names], dtype=np.int64)


def _name(domain: object) -> str | None:
    return None if domain is None or domain != domain else str(domain)


@dataclass(frozen=True, eq=False)
class ItemPatterns:
    """Distinct rows of votes, evidence and domain, and the items of each.

    `first` (U,) is where each pattern occurs first, `of_item` (n,) which one each row has; a row
    counts as many items as it stands for.
    """

    first: Ints
    of_item: Ints
    keys: UInts
    times: Floats | None

    @staticmethod
    def of(predictions: Predictions, domain: Ints | None = None) -> ItemPatterns:
        """The patterns of some predictions; `domain` (n,) are codes."""
        rows = patterns(predictions.vote_counts, predictions.evidence, domain)
        return ItemPatterns(*rows, predictions.keys, predictions.multiplicity)

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def counts(self) -> Floats:
        """Items of each pattern, (U,)."""
        return np.bincount(self.of_item, self.times, minlength=len(self)).astype(np.float64)

    def bootstrapped(self, size: int, salt: int) -> Floats:
        """Sums of Exp(1) weights of the items of each pattern, (U, size)."""
        streams, out = np.arange(size), np.zeros((len(self), size))
        for block in spans(len(self.keys), _ROWS):
            times = None if self.times is None else self.times[block]
            weights = exponential_sums(self.keys[block], streams, times, salt)
            out += Patterns(self.first, self.of_item[block]).sums(weights)
        return out


def vote_totals(predictions: Predictions) -> Floats:
    """How often each class is voted for, (K,)."""
    votes, times = predictions.vote_counts, predictions.multiplicity
    return class_votes(votes, predictions.n_classes, times)


@dataclass(frozen=True, eq=False)
class States:
    """What the labels of a row may be; every domain is in one group.

    group (D,) of each domain; class_of (S, D): the class that a state means in a domain; weights
    (G, S): prior weights, 0 = not a state of this group.
    """

    group: Ints
    class_of: Ints
    weights: Floats

    @staticmethod
    def of(n_classes: int, domains: Sequence[str | None], rules: Constraints | None) -> States:
        """Classes, or joint labels where rules tie domains together."""
        d = len(domains)
        if rules is None:
            classes = np.tile(np.arange(n_classes)[:, None], (1, d))
            return States(np.arange(d), classes, np.ones((d, n_classes)))
        tied = rules.tied(domains)
        size = max(len(t.weights) for t in tied)
        group = np.zeros(d, dtype=np.int64)
        class_of = np.zeros((size, d), dtype=np.int64)
        weights = np.zeros((len(tied), size))
        for g, t in enumerate(tied):
            group[t.domains] = g
            class_of[: len(t.weights), t.domains] = t.labels
            weights[g, : len(t.weights)] = t.weights
        return States(group, class_of, weights)

    def class_shares(self, shares: Floats, n_classes: int) -> Floats:
        """Class shares (T, D, K) that follow from state shares (T, G, S)."""
        is_class = self.class_of.T[:, :, None] == np.arange(n_classes)
        out: Floats = np.einsum("tds,dsk->tdk", shares[:, self.group], is_class)
        return out


@dataclass(frozen=True, eq=False)
class VoteData:
    """Distinct rows of votes, and which one every item has.

    of_item (n,) is the distinct row of each item; domain (n,) its domain.
    """

    table: VoteTable
    of_item: Ints
    domain: Ints
    tied: bool

    @staticmethod
    def of(
        predictions: Predictions,
        domains: Sequence[str | None],
        states: States,
        rules: Constraints | None = None,
        *,
        labeled_at_random: bool = True,
    ) -> VoteData:
        """Gather items of the same domain, votes and evidence."""
        domain = domain_codes(predictions, domains)
        counts = by_group(predictions.vote_counts, domain, len(domains))
        evidence, group = predictions.evidence, states.group[domain]
        joint: Ints | None = None
        if rules is not None:
            refuse_multiplicity(predictions, "a model with constraints")
            joint = _joint_rows(predictions, rules, domain, group, domains)
            n = len(joint)
            gather = scipy.sparse.csr_matrix((np.ones(n), (joint, np.arange(n))))
            counts = (gather @ counts).tocsr()
            evidence = _joint_evidence(evidence, domain, joint, states)
            first = np.zeros(counts.shape[0], dtype=np.int64)
            first[joint] = group
            group = first
            evidence[states.weights[group] == 0] = -np.inf
            _refuse_contradictions(predictions, rules, evidence, joint)
        whole_items(predictions)
        rows = patterns(counts, evidence, group)
        of_item = rows.of_item if joint is None else rows.of_item[joint]
        return VoteData(
            _table(
                counts,
                evidence,
                group,
                rows,
                states,
                predictions.n_classes,
                labeled_at_random,
                predictions.multiplicity,
            ),
            of_item,
            domain,
            rules is not None,
        )

    def labels(self, probabilities: Floats, rows: Ints | slice, n_classes: int) -> Floats:
        """P(label) (n, K, ...) of some items, from P(state) (R, S, ...) of the distinct rows."""
        return self.labels_of(probabilities[self.of_item[rows]], rows, n_classes)

    def labels_of(self, probabilities: Floats, rows: Ints | slice, n_classes: int) -> Floats:
        """P(label) (n, K, ...) of some items, from P(state) (n, S, ...) of each."""
        if not self.tied:
            return probabilities
        is_class = self.table.class_of[:, self.domain[rows]].T[:, :, None] == np.arange(n_classes)
        out: Floats = np.einsum("ns...,nsk->nk...", probabilities, is_class)
        # Sums of shares of one may be off by rounding; known labels stay exact.
        return out / out.sum(axis=1, keepdims=True)


def _joint_rows(
    predictions: Predictions,
    rules: Constraints,
    domain: Ints,
    group: Ints,
    domains: Sequence[str | None],
) -> Ints:
    """Which rows are one item in domains that rules tie together, (n,) codes."""
    item = rules.items(predictions)
    key = item * len(domains) + domain
    _, first, times = np.unique(key, return_index=True, return_counts=True)
    if (times > 1).any():
        i = int(first[times > 1][0])
        raise InputError(
            f"item {quoted(str(predictions.groups[rules.item][i]))} has {times.max()} rows in "
            f"domain {quoted(domains[domain[i]])}; constraints need one row per item and domain"
        )
    _, joint = np.unique(item * len(domains) + group, return_inverse=True)
    return joint


def _joint_evidence(evidence: Floats, domain: Ints, joint: Ints, states: States) -> Floats:
    """Evidence of the states (rows, S) from that of the labels (n, K) of every domain."""
    out = np.zeros((int(joint.max()) + 1, len(states.class_of)))
    np.add.at(out, joint, np.take_along_axis(evidence, states.class_of[:, domain].T, axis=1))
    return out


def _refuse_contradictions(
    predictions: Predictions, rules: Constraints, evidence: Floats, joint: Ints
) -> None:
    """Refuse known labels of one item that the rules say cannot be together."""
    nowhere = (evidence == -np.inf).all(axis=1)
    if nowhere.any():
        i = int(np.flatnonzero(nowhere[joint] & predictions.labeled)[0])
        raise InputError(
            f"the known labels of item {quoted(str(predictions.groups[rules.item][i]))} break the "
            "constraints; correct them, or let rules be broken with Constraints(weight=...) above 0"
        )


def _table(
    counts: scipy.sparse.csr_matrix,
    evidence: Floats,
    group: Ints,
    rows: Patterns,
    states: States,
    n_classes: int,
    labeled_at_random: bool,
    times: Floats | None,
) -> VoteTable:
    distinct = counts[rows.first]
    distinct.sort_indices()
    known, place = evidence[rows.first], group[rows.first]
    n_groups = len(states.weights)
    told = ((known != 0) & (states.weights[place] > 0)).any(axis=1)
    informed = np.bincount(place[told], minlength=n_groups) > 0
    return VoteTable(
        start=distinct.indptr.astype(np.int64),
        unit=distinct.indices.astype(np.int64) // n_classes,
        vote=distinct.indices.astype(np.int64) % n_classes,
        times=distinct.data.astype(np.float64),
        items=np.bincount(rows.of_item, times, minlength=len(rows.first)).astype(np.int64),
        group=place,
        evidence=known,
        informs=np.where(told & (not labeled_at_random), 0.0, 1.0),
        free=~informed,
        class_of=states.class_of,
    )


def votes_given(predictions: Predictions, domain: Ints, n_domains: int, rows: Array) -> Ints:
    """How many of the items of some rows every classifier votes on in every domain, (D, M)."""
    ordered = rows[np.argsort(domain[rows], kind="stable")]
    ends = np.searchsorted(domain[ordered], np.arange(n_domains + 1))
    parts = [ordered[ends[d] : ends[d + 1]] for d in range(n_domains)]
    times, given = predictions.multiplicity, predictions.has_hard
    return np.array(
        [given[part].sum(axis=0) if times is None else times[part] @ given[part] for part in parts],
        dtype=np.int64,
    )
