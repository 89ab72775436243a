"""Votes as the Gibbs samplers see them: distinct rows with counts, what labels may be, and priors.

A *unit* is one classifier in one domain, number d M + j. A *state* of a row is what its labels may
be: a class, or, where logic ties the labels of several domains, a class in each of them; states
(S) map to the classes (K) of every domain by `class_of` (S, D).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from numbers import Real
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import gammaln, logit

from fewlabels.errors import InputError, UsageError, listed, quoted, unknown
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.votes import by_group, patterns
from fewlabels.methods.base import refuse_multiplicity, whole_items
from fewlabels.methods.votes.data import domain_codes
from fewlabels.predictions import Predictions

_DENSE = 2**14
"""Up to so many entries, products with the zeros of a table are faster than without."""

HARD_SHARE = 0.5
"""Prior count of a class at each further level of difficulty; the first has 1."""

ALONE, DOMAINS, FRANCHISE, TABLES = 0, 1, 2, 3
"""Rates are shared by none; domains; units over all domains; units within a domain."""


class Rules(NamedTuple):
    """How to sweep.

    `coupling` is one of the four above. `collapsed` integrates rates out of the coupling step,
    `collapsed_labels` out of the labels too. Learned concentrations have a Gamma(1, 1) prior, a
    learned prior of the rates has its own (`draw_rates_prior`). `orient` is `gibbs.orient`.
    """

    coupling: int
    flip: bool
    collapsed: bool
    collapsed_labels: bool
    learn_alpha: bool
    learn_gamma: bool
    learn_rates: bool = False
    orient: bool = False


class _Rows(NamedTuple):
    start: Ints
    unit: Ints
    vote: Ints
    times: Floats
    items: Ints
    group: Ints
    evidence: Floats
    informs: Floats
    free: Bools
    row_of: Ints


class VoteTable(_Rows):
    """Distinct rows of votes.

    start (R + 1,) delimits the entries of each row. An entry has unit, vote and how many times; a
    row has its number of items, the group whose state shares it has, and the log-likelihood
    `evidence` (R, S) of what is known of its label. `informs` (R,) is 1 if the row counts for the
    state shares, else 0. `free` (G,): nothing is known of any label in the group. row_of (S, D) is
    the row of a unit's rates for its votes: the class, or the state if hard items have rates too.
    """

    def arrays(self, n_units: int, n_classes: int, n_rows: int) -> VoteArrays:
        """The same as arrays and products of these. Made once."""
        made: dict[str, VoteArrays] = vars(self)
        if "_arrays" in made:
            return made["_arrays"]
        columns = self.unit * n_classes + self.vote
        shape = (len(self.items), n_units * n_classes)
        votes = scipy.sparse.csr_matrix((self.times, columns, self.start), shape)
        if shape[0] * shape[1] <= _DENSE:
            votes = votes.toarray()
        n_states, n_domains = self.row_of.shape
        unit, vote = np.arange(n_units)[:, None, None], np.arange(n_classes)[:, None]
        means = self.row_of[:, np.arange(n_units) // (n_units // n_domains)].T[:, None]
        if n_rows == 1:
            cell = 2 * unit + (vote == means)
        else:
            cell = (unit * n_rows + means) * n_classes + vote
        one = self.items == 1
        made["_arrays"] = VoteArrays(
            votes,
            votes.T if isinstance(votes, np.ndarray) else votes.T.tocsr(),
            cell.reshape(-1, n_states),
            np.flatnonzero(one),
            np.flatnonzero(~one),
        )
        return made["_arrays"]

    def log_joint(
        self, rates: Floats, shares: Floats, n_classes: int, rows: Ints | None = None
    ) -> Floats:
        """Log P(votes, state, evidence) of all or some rows under D draws, (R, S, D).

        Rates (D, units, Q, C), shares (D, G, S).
        """
        draws, n_units, n_rows = rates.shape[:3]
        arrays = self.arrays(n_units, n_classes, n_rows)
        logs = np.log(rates)
        if n_rows == 1 and n_classes > 2:
            logs[..., 0] -= np.log(n_classes - 1)  # any other class, with equal probability
        weights = logs.reshape(draws, -1)[:, arrays.cell].transpose(1, 2, 0)
        votes, group, evidence = arrays.votes, self.group, self.evidence
        if rows is not None:
            votes, group, evidence = votes[rows], group[rows], evidence[rows]
        sums = votes @ weights.reshape(len(weights), -1)
        out: Floats = sums.reshape(len(group), len(self.row_of), draws)
        with np.errstate(divide="ignore"):  # a state that a group does not have has no share
            log_shares = np.log(shares)
        out += log_shares[:, group].transpose(1, 2, 0)
        out += evidence[:, :, None]
        return out


class VoteArrays(NamedTuple):
    """A `VoteTable` in arrays.

    votes (R, units K) counts, column u K + l of unit u voting for class l, and by_vote, their
    transpose; cell (units K, S): which of the counts or rates (units, Q, C) such a vote is of in a
    state; rows of one item and of several.
    """

    votes: scipy.sparse.csr_matrix | Floats
    by_vote: scipy.sparse.csr_matrix | Floats
    cell: Ints
    single: Ints
    several: Ints

    def counts(self, labels: Floats | Ints, size: tuple[int, ...]) -> Floats:
        """Votes under the labels (R, S) of all rows, by cell: an array of this size."""
        votes = np.asarray(self.by_vote @ labels)
        cells = np.bincount(self.cell.ravel(), votes.ravel(), math.prod(size))
        out: Floats = cells.astype(np.float64).reshape(size)
        return out

    def drawn(self, chances: Floats, items: Ints, rng: np.random.Generator) -> Ints:
        """Items of every row in each state, drawn from P(state) (R, S)."""
        out = np.zeros(chances.shape, dtype=np.int64)
        cumulative = chances[self.single].cumsum(axis=1)
        # Below the total, whatever rounding does.
        left = rng.random(len(self.single)) * (cumulative[:, -1] * (1 - 2.0**-52))
        out[self.single, (left[:, None] >= cumulative).sum(axis=1)] = 1
        if self.several.size:
            out[self.several] = rng.multinomial(items[self.several], chances[self.several])
        return out


class VotePrior(NamedTuple):
    """Dirichlet priors: state shares (G, S), rates (Q, C).

    One rate per unit: Q = 1, C = 2, errors first. A confusion matrix per unit: C = K, a row per
    true class, or per class and level of difficulty.
    """

    share: Floats
    rates: Floats


class VoteState(NamedTuple):
    """The state of a chain; arrays are changed in place.

    labels (R, S), items of a row in each state; shares (G, S); cells (units, Q, C), counts of votes
    under the labels; phi (units, Q, C), rates by atom; atom (units,), the atom whose rates a unit
    has; log_rates (units, rows, K), log P(vote | row); concentration (2,), alpha and gamma. cluster
    (D,) of each domain; table (D, M) of each unit; dish (D, M) of each table, -1 = empty.
    """

    labels: Ints
    shares: Floats
    cells: Floats
    atom: Ints
    phi: Floats
    log_rates: Floats
    concentration: Floats
    cluster: Ints
    table: Ints
    dish: Ints


@dataclass(frozen=True)
class Schedule:
    """Sweeps before the first draw, sweeps after it, sweeps per kept draw, and chains."""

    burn_in: int
    sweeps: int
    thin: int
    chains: int


@dataclass(frozen=True, eq=False)
class VoteDraws:
    """Kept draws, chain by chain: T draws of each of C chains.

    rates (T, C, units, Q, C'), shares (T, C, G, S), atom (T, C, units): equal where units share
    their rates, concentration (T, C, 2). `independent` draws have no chain to mix.
    """

    rates: Floats
    shares: Floats
    atom: Ints
    concentration: Floats
    independent: bool = field(default=False, kw_only=True)


# --- the prior of error rates, learned from the rates -------------------------------------------
#
# Hierarchical shrinkage over classifiers. Row q of the rates of every unit is Dirichlet:
# concentration a / (C - 1) on every wrong vote, b on the right one. Its mean error m = a / (a + b)
# and strength s = a + b are drawn given the rates, on a grid: logit m ~ N(logit(1/11), 1) and
# log s ~ N(log 11, 1), centred at the Beta(1, 10) that is the prior where nothing is learned. The
# prior of hard items stays Beta(3, 4): too few tell of it.


EASY_COUNTS, HARD_COUNTS = (1.0, 10.0), (3.0, 4.0)
"""Counts (errors, hits) that the prior of items as they come is centred at; those of hard ones."""

_MEANS = np.linspace(0.02, 0.6, 30)
"""Mean errors; those of single rates are below one half, or errors and hits could be swapped."""

_MOST_SINGLE = 0.45
_STRENGTHS = np.geomspace(2.0, 60.0, 15)


@lru_cache(maxsize=32)
def _grid(n_wrong: int, most: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Counts of a wrong vote and of the right one, log of the Dirichlet's constant, log prior."""
    mean, strength = np.meshgrid(_MEANS[most > _MEANS], _STRENGTHS, indexing="ij")
    wrong, right = (mean * strength / n_wrong).ravel(), ((1 - mean) * strength).ravel()
    constant = gammaln(strength).ravel() - n_wrong * gammaln(wrong) - gammaln(right)
    a, b = EASY_COUNTS
    off = (logit(mean) - logit(a / (a + b))) ** 2 + np.log(strength / (a + b)) ** 2
    return wrong, right, constant, -0.5 * off.ravel()


def draw_rates_prior(prior: Floats, rates: Floats, rng: np.random.Generator) -> None:
    """Draw the prior (Q, C) anew, in place, given rates (A, Q, C) drawn from it.

    One rate per unit: Q = 1, errors first. Else row q is of class q, hard items follow.
    """

    def drawn(log_p: Floats) -> int:
        cumulative = np.exp(log_p - log_p.max()).cumsum()
        return int(np.searchsorted(cumulative, rng.random() * cumulative[-1]))

    _choose_prior(prior, np.log(rates), drawn)


def fit_rates_prior(prior: Floats, logs: Floats) -> None:
    """Maximum-likelihood prior (Q, C), in place, from expected logs (A, Q, C) of the rates."""
    _choose_prior(prior, logs, lambda log_p: int(np.argmax(log_p)))


def _choose_prior(prior: Floats, logs: Floats, choose: Callable[[Floats], int]) -> None:
    """Set the prior row by row: `choose` a place on the grid by log P(prior | rates) there."""
    n_rows, n_columns = prior.shape
    for q, row in enumerate(logs.sum(axis=0)[: min(n_rows, n_columns)]):
        hit = q if n_rows > 1 else 1
        wrong, right, constant, log_prior = _grid(
            n_columns - 1, _MOST_SINGLE if n_rows == 1 else 1.0
        )
        log_p = len(logs) * constant + log_prior
        place = choose(log_p + (wrong - 1) * (row.sum() - row[hit]) + (right - 1) * row[hit])
        prior[q] = wrong[place]
        prior[q, hit] = right[place]


# --- logic between the labels that one item has in several domains -----------------------------


MOST_TIED = 16
"""Domains that logic ties together, at most: their joint states are listed one by one."""


@dataclass(frozen=True)
class Constraints:
    """Prior weights of the joint labels of an item in several two-class domains.

    A joint state that breaks v rules weighs `weight` ** v, one that breaks none weighs 1; shares of
    the joint states have a Dirichlet prior whose counts are these weights times `class_prior`.
    Rows of different domains are one item where their group `item` is the same. For other weights
    override `weights`. Platanios, Dubey, Mitchell (2016), section 6, name this as future work.

    Parameters
    ----------
    exclusive
        Sets of domains of which an item is positive in one at most.
    subsumption
        Pairs (narrow, broad): positive in the narrow domain means positive in the broad one.
    weight
        Weight of breaking a rule, from 0 (never) to 1 (as likely as not).
    item
        Name of the group (a column of the file) that says which item a row is of.
    """

    exclusive: Sequence[Sequence[str]] = ()
    subsumption: Sequence[tuple[str, str]] = ()
    weight: float = 0.0
    item: str = "item"

    def __post_init__(self) -> None:
        if not isinstance(self.weight, Real) or not 0 <= float(self.weight) <= 1:
            raise UsageError(f"`weight` must be between 0 and 1; got {self.weight!r}")
        for several in self.exclusive:
            if isinstance(several, str) or len(set(several)) < 2:
                raise UsageError(
                    f"`exclusive` must hold sets of at least two domains; got {several!r}"
                )
        for pair in self.subsumption:
            if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
                raise UsageError(
                    f"`subsumption` must hold pairs (narrow, broad) of domains; got {pair!r}"
                )

    def weights(self, labels: Bools, domains: Sequence[str]) -> Floats:
        """Weight (S,) of joint labels (S, c) in these domains."""
        place = {name: c for c, name in enumerate(domains)}
        broken = np.zeros(len(labels))
        for several in self.exclusive:
            if set(several) <= set(domains):
                positive = labels[:, [place[name] for name in dict.fromkeys(several)]].sum(axis=1)
                broken += np.maximum(positive - 1, 0)
        for narrow, broad in self.subsumption:
            if narrow in place and broad in place:
                broken += labels[:, place[narrow]] & ~labels[:, place[broad]]
        out: Floats = float(self.weight) ** broken
        return out

    def tied(self, domains: Sequence[str | None]) -> list[tuple[Ints, Bools, Floats]]:
        """Domains (c,) tied by rules, every other one alone, with their joint states.

        Labels (S, c) say where each state is positive; prior weights (S,) are all positive.
        """
        names = [str(d) for d in domains]
        # The first of the domains that each one is tied to, in whatever steps.
        first = np.arange(len(names))
        for rule in map(tuple, (*self.exclusive, *self.subsumption)):
            for name in rule:
                if name not in names:
                    raise UsageError(unknown("domain", name, names))
                one, other = first[names.index(rule[0])], first[names.index(name)]
                first[first == other] = one
        out = []
        for place in dict.fromkeys(first.tolist()):
            together = np.flatnonzero(first == place)
            those = [names[d] for d in together]
            if len(together) > MOST_TIED:
                raise UsageError(
                    f"rules tie {len(together)} domains together ({listed(those, 3)}); at most "
                    f"{MOST_TIED} can be"
                )
            labels = np.array(list(itertools.product([False, True], repeat=len(together))))
            weights = self.weights(labels, those)
            possible = weights > 0
            out.append((together, labels[possible], weights[possible]))
        return out

    def joint_rows(
        self, predictions: Predictions, domain: Ints, group: Ints, domains: Sequence[str | None]
    ) -> Ints:
        """Which rows are one item in domains that rules tie together, (n,) codes."""
        if predictions.n_classes != 2:
            raise InputError(
                f"constraints are about two classes; there are {predictions.n_classes}"
            )
        if self.item not in predictions.groups:
            raise InputError(
                f"constraints need to know which rows are one item: there is no group "
                f"{self.item!r}; give that column, or name another with Constraints(item=...)"
            )
        names = np.array([str(i) for i in predictions.groups[self.item]], dtype=object).astype(str)
        item = np.unique(names, return_inverse=True)[1].astype(np.int64)
        _, first, times = np.unique(
            item * len(domains) + domain, return_index=True, return_counts=True
        )
        if (times > 1).any():
            i = int(first[times > 1][0])
            raise InputError(
                f"item {quoted(str(predictions.groups[self.item][i]))} has {times.max()} rows in "
                f"domain {quoted(domains[domain[i]])}; constraints need one row per item and domain"
            )
        _, joint = np.unique(item * len(domains) + group, return_inverse=True)
        return joint


# --- predictions as a table ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class States:
    """What the labels of a row may be; every domain is in one group.

    group (D,) of each domain; class_of (S, D): the class that a state means in a domain; weights
    (G, S): prior weights, 0 = not a state of this group; `levels` of difficulty, each of which has
    all classes.
    """

    group: Ints
    class_of: Ints
    weights: Floats
    levels: int = 1

    @staticmethod
    def of(
        n_classes: int,
        domains: Sequence[str | None],
        rules: Constraints | None,
        levels: int = 1,
    ) -> States:
        """Classes, at every level of difficulty, or joint labels where rules tie domains."""
        d = len(domains)
        if rules is None:
            classes = np.tile(np.arange(n_classes), levels)
            weights = np.repeat(HARD_SHARE ** np.arange(levels), n_classes)
            return States(
                np.arange(d), np.tile(classes[:, None], (1, d)), np.tile(weights, (d, 1)), levels
            )
        tied = rules.tied(domains)
        size = max(len(of_states) for _, _, of_states in tied)
        group = np.zeros(d, dtype=np.int64)
        class_of = np.zeros((size, d), dtype=np.int64)
        weights = np.zeros((len(tied), size))
        for g, (together, labels, of_states) in enumerate(tied):
            group[together] = g
            class_of[: len(of_states), together] = labels
            weights[g, : len(of_states)] = of_states
        return States(group, class_of, weights)

    @property
    def are_classes(self) -> bool:
        """Whether a state is a class, and nothing else."""
        classes = np.arange(len(self.class_of))
        return self.levels == 1 and bool((self.class_of == classes[:, None]).all())

    @property
    def row_of(self) -> Ints:
        """Row of a unit's rates for every state, (S, D)."""
        if self.levels == 1:
            return self.class_of
        return np.tile(np.arange(len(self.class_of))[:, None], (1, self.class_of.shape[1]))

    def of_draws(self, shares: Floats) -> Floats:
        """Shares (..., G, S) of the states that a group has."""
        out: Floats = shares * (self.weights > 0)
        out /= out.sum(axis=-1, keepdims=True)
        return out

    def class_rates(self, rates: Floats, shares: Floats) -> Floats:
        """Rates (T, units, Q, C) by class, whatever the difficulty, given shares (T, G, S)."""
        if self.levels == 1:
            return rates
        t, n_units, _, k = rates.shape
        by_level = rates.reshape(t, len(self.group), -1, self.levels, k, k)
        share = shares[:, self.group].reshape(t, -1, self.levels, k)
        share = share / share.sum(axis=2, keepdims=True)
        out: Floats = np.einsum("tdmlkv,tdlk->tdmkv", by_level, share)
        return out.reshape(t, n_units, k, k)

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
    states: States

    @staticmethod
    def of(
        predictions: Predictions,
        domains: Sequence[str | None],
        states: States,
        rules: Constraints | None = None,
        *,
        labeled_at_random: bool = True,
        counted: Floats | None = None,
    ) -> VoteData:
        """Gather items of the same domain, votes and evidence.

        `counted` (units,) is how much a vote of each unit counts, 1 where it is not given.
        """
        domain = domain_codes(predictions, domains)
        counts = by_group(predictions.vote_counts, domain, len(domains))
        evidence, group = predictions.evidence, states.group[domain]
        joint: Ints | None = None
        if rules is not None:
            refuse_multiplicity(predictions, "a model with constraints")
            joint = rules.joint_rows(predictions, domain, group, domains)
            n = len(joint)
            gather = scipy.sparse.csr_matrix((np.ones(n), (joint, np.arange(n))))
            counts = (gather @ counts).tocsr()
            by_state = np.take_along_axis(evidence, states.class_of[:, domain].T, axis=1)
            evidence = np.zeros((counts.shape[0], len(states.class_of)))
            np.add.at(evidence, joint, by_state)
            first = np.zeros(counts.shape[0], dtype=np.int64)
            first[joint] = group
            group = first
            evidence[states.weights[group] == 0] = -np.inf
            nowhere = (evidence == -np.inf).all(axis=1)
            if nowhere.any():
                i = int(np.flatnonzero(nowhere[joint] & predictions.labeled)[0])
                raise InputError(
                    f"the known labels of item {quoted(str(predictions.groups[rules.item][i]))} "
                    "break the constraints; correct them, or let rules be broken with "
                    "Constraints(weight=...) above 0"
                )
        whole_items(predictions)
        rows = patterns(counts, evidence, group)
        of_item = rows.of_item if joint is None else rows.of_item[joint]
        distinct, evidence, place = counts[rows.first], evidence[rows.first], group[rows.first]
        distinct.sort_indices()
        if rules is None:
            # In the order of C, as that of tied states: another would be compiled once more.
            evidence = np.take(evidence, states.class_of[:, 0], axis=1)
        informed = ((evidence != 0) & (states.weights[place] > 0)).any(axis=1)
        unit, vote = np.divmod(distinct.indices.astype(np.int64), predictions.n_classes)
        table = VoteTable(
            start=distinct.indptr.astype(np.int64),
            unit=unit,
            vote=vote,
            times=distinct.data * (1.0 if counted is None else counted[unit]),
            items=np.bincount(rows.of_item, predictions.multiplicity).astype(np.int64),
            group=place,
            evidence=evidence,
            informs=np.where(informed & (not labeled_at_random), 0.0, 1.0),
            free=np.bincount(place[informed], minlength=len(states.weights)) == 0,
            row_of=states.row_of,
        )
        return VoteData(table, of_item, domain, states)

    def labels(self, probabilities: Floats, rows: Ints | slice, n_classes: int) -> Floats:
        """P(label) (n, K, ...) of some items, from P(state) (R, S, ...) of the distinct rows."""
        return self.labels_of(probabilities[self.of_item[rows]], rows, n_classes)

    def labels_of(self, probabilities: Floats, rows: Ints | slice, n_classes: int) -> Floats:
        """P(label) (n, K, ...) of some items, from P(state) (n, S, ...) of each."""
        if self.states.are_classes:
            return probabilities
        is_class = self.states.class_of[:, self.domain[rows]].T[:, :, None] == np.arange(n_classes)
        out: Floats = np.einsum("ns...,nsk->nk...", probabilities, is_class)
        # Sums of shares of one may be off by rounding; known labels stay exact.
        return out / out.sum(axis=1, keepdims=True)
