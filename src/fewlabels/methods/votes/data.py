"""What models of votes share: domains, distinct rows of votes, draws of error rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from fewlabels.errors import InputError, listed
from fewlabels.kernels.arrays import Array, Bools, Floats, Frozen, Ints, UInts, read_only
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.counter_based import exponential_sums
from fewlabels.kernels.notices import announce
from fewlabels.kernels.simplex import CLIP
from fewlabels.kernels.votes import (
    Patterns,
    class_votes,
    in_triangle,
    most_voted,
    patterns,
    vote_shares,
)
from fewlabels.methods.base import with_evidence
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
    names = predictions.domain.tolist()
    return [None if d is None or d != d else str(d) for d in names]  # NaN is no name either


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
    """Index of every item's domain, (n,)."""
    index = {name: d for d, name in enumerate(domains)}
    if index.keys() == {None}:
        return np.zeros(predictions.n_items, dtype=np.int64)
    if predictions.domain is None:
        raise InputError(
            "these items have no domain, and the method was fitted on domains; give the column "
            "`domain`"
        )
    names = item_domains(predictions)
    unknown = dict.fromkeys(name for name in names if name not in index)
    if unknown:
        raise InputError(
            f"domain {listed(domain_texts(list(unknown)), 3)} is not among those that the method "
            f"was fitted on ({listed(domain_texts(domains), 5)}); fit on all of them"
        )
    return np.array([index[name] for name in names], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ItemPatterns:
    """Distinct rows of votes, evidence and domain, and the items of each.

    `first` (U,) is where each pattern occurs first, `of_item` (n,) which one each row has; a row
    counts as many items as it stands for.
    """

    first: Ints
    of_item: Ints
    clusters: tuple[UInts, ...]
    times: Floats | None

    @staticmethod
    def of(predictions: Predictions, domain: Ints | None = None) -> ItemPatterns:
        """The patterns of some predictions; `domain` (n,) are codes."""
        rows = patterns(predictions.vote_counts, predictions.evidence, domain)
        return ItemPatterns(*rows, predictions.cluster_keys, predictions.multiplicity)

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def counts(self) -> Floats:
        """Items of each pattern, (U,)."""
        return np.bincount(self.of_item, self.times, minlength=len(self)).astype(np.float64)

    def bootstrapped(self, size: int, salt: int) -> Floats:
        """Sums of Exp(1) weights of the items of each pattern, (U, size)."""
        streams, out = np.arange(size), np.zeros((len(self), size))
        for block in spans(len(self.of_item), _ROWS):
            times = None if self.times is None else self.times[block]
            block_keys = [keys[block] for keys in self.clusters]
            weights = exponential_sums(block_keys, streams, times, salt)
            here, place = np.unique(self.of_item[block], return_inverse=True)
            out[here] += Patterns(here, place).sums(weights)
        return out


def vote_totals(predictions: Predictions) -> Floats:
    """How often each class is voted for, (K,)."""
    votes, times = predictions.vote_counts, predictions.multiplicity
    return class_votes(votes, predictions.n_classes, times)


def elected(
    votes: scipy.sparse.csr_matrix, evidence: Floats, weights: Floats, empty: Floats, *, hard: bool
) -> Floats:
    """P(label) (n, K, D) by shares of the votes (n, M K), weights (M, D) of the voters.

    `empty` (K,) stands in where nobody votes. With `hard` the class of most votes gets all the
    probability, classes that tie share it. Evidence (n, K) about the labels is taken in.
    """
    shares = vote_shares(votes, weights, empty)
    return with_evidence(most_voted(shares) if hard else shares, evidence, floor=CLIP)


def votes_given(predictions: Predictions, domain: Ints, n_domains: int, rows: Array) -> Ints:
    """How many of the items of some rows every classifier votes on in every domain, (D, M)."""
    ordered = rows[np.argsort(domain[rows], kind="stable")]
    ends = np.searchsorted(domain[ordered], np.arange(n_domains + 1))
    out = np.zeros((n_domains, predictions.n_models))
    for d in range(n_domains):
        part = ordered[ends[d] : ends[d + 1]]
        ballots = predictions.ballots[part]
        times = np.repeat(predictions.times[part], np.diff(ballots.indptr))
        out[d] = np.bincount(ballots.indices, times, minlength=predictions.n_models)
    return out.astype(np.int64)


def log_rates(rates: Floats, n_classes: int) -> Floats:
    """Log P(vote | class), (..., K classes, K votes), of rates (..., Q, C).

    One rate per classifier: Q = 1, C = 2, errors first. A confusion matrix: Q = C = K.
    """
    if rates.shape[-2] > 1:
        out: Floats = np.log(rates)
        return out
    wrong = np.log(rates[..., 0, 0] / (n_classes - 1))
    shape = (*rates.shape[:-2], n_classes, n_classes)
    out = np.broadcast_to(wrong[..., None, None], shape).copy()
    out[..., np.arange(n_classes), np.arange(n_classes)] = np.log(rates[..., 0, 1])[..., None]
    return out


@dataclass(frozen=True, eq=False)
class VoteRates(Frozen):
    """Error rates, confusion matrices and class shares (T, D, K) of the population, draw by draw.

    `domain` (n,) is the index of the domain of every item; a single domain is called None where the
    data have none.
    """

    models: tuple[str, ...]
    domains: tuple[str | None, ...]
    rates: Floats
    shares: Floats
    domain: Ints
    predictions: Predictions

    @property
    def size(self) -> int:
        """Number of draws, T."""
        return len(self.shares)

    @property
    def place(self) -> Mapping[str, int]:
        """Place of every classifier among them, by its name."""
        return self.predictions.place

    @cached_property
    def n_votes(self) -> Ints:
        """Items that weigh anything and every classifier votes on in every domain, (D, M)."""
        rows = np.flatnonzero(self.predictions.weight > 0)
        return votes_given(self.predictions, self.domain, len(self.domains), rows)

    @property
    def one_rate(self) -> bool:
        """Whether a classifier errs equally often in every class: it then has no more than that."""
        return self.rates.shape[-2] == 1

    @cached_property
    def confusion(self) -> Floats:
        """P(vote | class), (T, D, M, K classes, K votes)."""
        return read_only(np.exp(log_rates(self.rates, self.shares.shape[2])))

    @cached_property
    def error_rates(self) -> Floats:
        """Error rate of every classifier in every domain, (T, D, M)."""
        if self.one_rate:
            return read_only(self.rates[..., 0, 0])
        right = np.einsum("...kk->...k", self.rates)
        out: Floats = 1 - np.einsum("tdmk,tdk->tdm", right, self.shares)
        return read_only(out)

    def covers(self, rows: Ints, j: int) -> bool:
        """Whether these items are all that classifier j votes on in the domains they are of.

        And weigh the same there: the rates are those of items as they come.
        """
        times = self.predictions.times[rows]
        count = np.bincount(self.domain[rows], times, minlength=len(self.domains))
        here = count > 0
        return bool((self._even[here] & (count == self.n_votes[:, j])[here]).all())

    @cached_property
    def _even(self) -> Bools:
        """Domains (D,) whose items all weigh the same, or nothing."""
        weight = self.predictions.weight
        out = np.ones(len(self.domains), dtype=bool)
        for d in range(len(out)):
            some = weight[(self.domain == d) & (weight > 0)]
            out[d] = not some.size or np.ptp(some) == 0
        return out

    def joint(self, rows: Ints, j: int, draws: slice = slice(None)) -> Floats:
        """P(vote, label) of classifier j, (K votes, K classes, T), where these items come from."""
        mass = self.predictions.weight[rows] * self.predictions.times[rows]
        weight = np.bincount(self.domain[rows], weights=mass, minlength=len(self.domains))
        here = np.flatnonzero(weight)
        share = weight[here] / weight[here].sum()
        rates = np.exp(log_rates(self.rates[draws, here, j], self.shares.shape[2]))
        out = np.einsum("d,tdk,tdkv->vkt", share, self.shares[draws, here], rates)
        return np.ascontiguousarray(out)  # sums over it do not hang on how the draws lie


# What votes cannot tell: too few classifiers on the same items, votes that never differ.

LEAST_OVERLAP = 3

INDEPENDENT = (
    "assumption: classifiers err independently of each other, given the class; where they share "
    "mistakes their error rates come out too low"
)
UNLABELED = (
    "assumption: no labels; error rates rest on classifiers that err independently of each other "
    "and are right more often than not"
)

VARIATIONAL = (
    "assumption: rates are fitted by variational inference{}; its intervals are about 1% narrower "
    "than those of chains, and held for .92 to .94 of annotators where these held for .94 to .97; "
    "inference='gibbs' samples chains"
)

LONG_WAIT = 10.0
"""Seconds from which a wait is announced."""


def announce_wait(seconds: float) -> None:
    """Announce how long a computation will take if it is long because nothing is compiled."""
    for note in wait_notes(seconds, "are sampled", "takes"):
        announce(note)


def wait_notes(
    seconds: float, sampled: str = "were sampled", takes: str = "took"
) -> tuple[str, ...]:
    """How long votes took without a compiler, and what to install, where the wait was long."""
    if seconds < LONG_WAIT:
        return ()
    about = float(f"{seconds:.1g}" if seconds < 100 else f"{seconds:.2g}")
    long = f"{about:.0f} s" if about < 100 else f"{about / 60:.0f} minutes"
    return (
        f"votes {sampled} without numba, which {takes} about {long} here; "
        "pip install 'fewlabels[fast]' makes it some three times as fast after its first call",
    )


def not_identified(
    predictions: Predictions, domain: Ints, domains: Sequence[str | None]
) -> tuple[str, ...]:
    """Why these votes do not determine error rates without labels, one sentence per reason."""
    warnings = []
    few: dict[str, list[str]] = {}
    voters = np.diff(predictions.ballots.indptr)
    silent = []
    for d, name in enumerate(domain_texts(domains)):
        rows = np.flatnonzero(domain == d)
        if not voters[rows].any():
            silent.append(name)
            continue
        if (predictions.evidence[rows] != 0).any():
            continue
        counts = predictions.vote_counts[rows]
        lonely = ~in_triangle(counts, predictions.n_classes)
        voting = np.zeros(predictions.n_models, dtype=bool)
        voting[counts.indices // predictions.n_classes] = True
        if (lonely & voting).any():
            who = [predictions.models[j] for j in np.flatnonzero(lonely & voting)]
            whose = "" if len(who) == voting.sum() else f" of {listed(who, 3)}"
            few.setdefault(whose, []).append(name)
    if silent:
        warnings.append(
            f"assumption: no classifier votes in domain {listed(silent, 5)}: what is said of it, "
            "and of the labels there, is the prior alone"
        )
    for whose, where in few.items():
        place = f" in domain {listed(where, 5)}" if len(domains) > 1 else ""
        warnings.append(
            f"assumption: fewer than {LEAST_OVERLAP} classifiers vote on the same items{place}, "
            "and no label is known there: votes alone do not determine the error rates"
            f"{whose}; they rest on the assumption that a classifier is right more often than not"
        )
    return (*warnings, *_never_differ(predictions))


def _never_differ(predictions: Predictions) -> list[str]:
    """Classes that nobody votes for, and classifiers that always agree."""
    warnings = []
    counts = np.asarray(predictions.vote_counts.sum(axis=0)).reshape(-1, predictions.n_classes)
    never = [str(c) for c, n in zip(predictions.classes, counts.sum(axis=0), strict=True) if not n]
    if never:
        warnings.append(
            f"assumption: no classifier ever votes for class {listed(never, 5)}; how often it is "
            "missed cannot be seen in the votes"
        )
    ballots = predictions.ballots
    voters = np.diff(ballots.indptr)
    shared = np.zeros(predictions.n_items, dtype=np.int64)
    item = np.repeat(np.arange(predictions.n_items), voters)
    for k in range(predictions.n_classes):
        shared[np.unique(item[ballots.data == k + 1])] += 1
    several = voters > 1
    if several.any() and (shared[several] <= 1).all() and not predictions.n_labeled:
        warnings.append(
            "assumption: the classifiers never disagree; whether they are always right or share "
            "their mistakes cannot be told from the votes"
        )
    return warnings


def straddling(error_rates: Floats, voted: Bools, domains: Sequence[str | None]) -> list[str]:
    """Warn if the draws (T, D, M) of most error rates lie on both sides of one half.

    Only classifiers that vote there, (D, M), count: the others follow the prior.
    """
    above = (error_rates > 0.5).mean(axis=0)
    doubtful = (above > 0.05) & (above < 0.95) & voted
    both = 2 * doubtful.sum(axis=1) > voted.sum(axis=1)
    if not both.any():
        return []
    names = [name for name, doubt in zip(domain_texts(domains), both, strict=True) if doubt]
    place = f" in domain {listed(names, 5)}" if len(domains) > 1 else ""
    return [
        f"assumption: the data cannot tell right from wrong{place}: draws of most error rates lie "
        "on both sides of one half; a few labels would tell"
    ]
