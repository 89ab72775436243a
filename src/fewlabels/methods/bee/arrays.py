"""Gibbs sampling of votes by arrays, several chains at once: where loops are not compiled.

Rows of all chains stand after each other, as one table with a unit per classifier, domain and
chain: a sweep is two sparse products. Every chain asks its own generator for random numbers in the
order in which the loops of `vote_gibbs` do, so both end in the same place but for rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln

from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.simplex import softmax
from fewlabels.methods.bee.gibbs import advance
from fewlabels.methods.bee.seating import LEAST, draw_concentration
from fewlabels.methods.bee.table import (
    ALONE,
    DOMAINS,
    FRANCHISE,
    Rules,
    VotePrior,
    VoteState,
    VoteTable,
    log_rates,
)


class ChainArrays:
    """Chains with tables of their own, and one prior; `states` are views of what they remember."""

    def __init__(
        self,
        tables: Sequence[VoteTable],
        prior: VotePrior,
        states: Sequence[VoteState],
        generators: Sequence[np.random.Generator],
    ) -> None:
        self.tables, self.prior, self.generators = tables, prior, generators
        ends = np.cumsum([0, *(len(table.items) for table in tables)])
        self.rows = [slice(*pair) for pair in itertools.pairwise(ends.tolist())]
        stacked = {name: np.stack([getattr(state, name) for state in states])
                   for name in VoteState._fields if name != "labels"}  # fmt: skip
        self.labels = np.concatenate([state.labels for state in states])
        self.shares, self.cells, self.atom = stacked["shares"], stacked["cells"], stacked["atom"]
        self.phi, self.concentration = stacked["phi"], stacked["concentration"]
        self.cluster, self.table, self.dish = (stacked[s] for s in ("cluster", "table", "dish"))
        self.states = [
            VoteState(labels=self.labels[rows], **{name: all_[b] for name, all_ in stacked.items()})
            for b, rows in enumerate(self.rows)
        ]
        self._join(stacked["log_rates"].shape[2])

    def _join(self, n_classes: int) -> None:
        """What does not change from sweep to sweep."""
        tables, (chains, n_units) = self.tables, self.atom.shape
        n_groups, (n_states, n_domains) = self.shares.shape[1], tables[0].class_of.shape
        self.n_classes, self.n_domains = n_classes, n_domains
        which = np.repeat(np.arange(chains), [len(table.items) for table in tables])
        self.items = np.concatenate([table.items for table in tables])
        self.group = np.concatenate([table.group for table in tables]) + which * n_groups
        self.evidence = np.concatenate([table.evidence for table in tables])
        self.free = np.stack([table.free for table in tables])
        # Rows of one item ask for a number each, then rows of several for binomials.
        single = [table.items == 1 for table in tables]
        self.single = np.flatnonzero(np.concatenate(single))
        ends = np.cumsum([0, *(own.sum() for own in single)])
        self.asks = [slice(*pair) for pair in itertools.pairwise(ends.tolist())]
        self.several = [np.flatnonzero(~own) + rows.start
                        for own, rows in zip(single, self.rows, strict=True)]  # fmt: skip
        blocks = [
            scipy.sparse.csr_matrix(
                (table.times, table.unit * n_classes + table.vote, table.start),
                shape=(len(table.items), n_units * n_classes),
            )
            for table in tables
        ]
        self.votes = scipy.sparse.block_diag(blocks, format="csr")
        self.votes_of = self.votes.T.tocsr()
        informs = np.concatenate([table.informs for table in tables]) > 0
        self.informs = scipy.sparse.csr_matrix(
            (informs.astype(np.float64), (self.group, np.arange(len(informs)))),
            shape=(chains * n_groups, len(informs)),
        )
        # The class that a state means to every unit; states are classes but where rules tie them.
        own = tables[0].class_of[:, np.arange(n_units) // (n_units // n_domains)].T
        plain = n_states == n_classes and bool((own == np.arange(n_classes)).all())
        self.class_of: Ints | None = None if plain else own

    def advance(self, rules: Rules, sweeps: int) -> None:
        """Run some sweeps of every chain."""
        for _ in range(sweeps):
            if rules.collapsed_labels:
                # Item after item, each given all others: there is nothing to do at once.
                for table, state, rng in zip(
                    self.tables, self.states, self.generators, strict=True
                ):
                    advance(table, self.prior, state, rules, 1, rng)
                continue
            if rules.coupling == DOMAINS:
                self._couple_domains(rules)
            elif rules.coupling != ALONE:
                self._couple_classifiers(rules)
            self._draw_parameters(rules.flip)
            self._draw_labels()

    def _couple_domains(self, rules: Rules) -> None:
        seat_domains_of_chains(
            self.cells, self.prior.rates, self.phi, self.atom, self.cluster, self.concentration,
            rules.collapsed, self.generators,
        )  # fmt: skip
        if rules.learn_alpha:
            customers = np.full(1, self.n_domains)
            for b, rng in enumerate(self.generators):
                used = len(np.unique(self.cluster[b]))
                self._learn(b, 0, customers, used, rng)

    def _couple_classifiers(self, rules: Rules) -> None:
        shared = rules.coupling == FRANCHISE
        seat_classifiers_of_chains(
            self.cells, self.prior.rates, self.phi, self.atom, self.table, self.dish,
            self.concentration, shared, rules.collapsed, self.generators,
        )  # fmt: skip
        customers = np.full(self.n_domains, self.table.shape[2])
        for b, rng in enumerate(self.generators):
            used = sum(len(np.unique(own)) for own in self.table[b])
            if rules.learn_alpha:
                self._learn(b, 0, customers, used, rng)
            if rules.learn_gamma and shared:
                self._learn(b, 1, np.full(1, used), len(np.unique(self.atom[b])), rng)

    def _learn(
        self, b: int, which: int, customers: Ints, used: int, rng: np.random.Generator
    ) -> None:
        """Draw one of the concentrations of a chain."""
        current = float(self.concentration[b, which])
        self.concentration[b, which] = draw_concentration(current, customers, used, 1.0, 1.0, rng)

    def _draw_parameters(self, flip: bool) -> None:
        """Rates and class shares given the labels, with a flip in between."""
        chains, atoms, *cell = self.phi.shape
        at = (np.arange(chains)[:, None] * atoms + self.atom)[..., None] * np.prod(cell)
        places = at + np.arange(np.prod(cell))
        sums = np.bincount(places.ravel(), self.cells.ravel(), minlength=self.phi.size)
        self.phi[:] = draw_rates_of_chains(
            self.prior.rates + sums.reshape(self.phi.shape), self.generators
        )
        if flip:
            self._flip()
        counts = (self.informs @ self.labels).reshape(self.shares.shape)
        self.shares[:] = draw_rates_of_chains(self.prior.share + counts, self.generators)

    def _draw_labels(self) -> None:
        """Labels of every row, and the counts of votes that follow."""
        chains, n_units = self.atom.shape
        k, n_states = self.n_classes, self.labels.shape[1]
        phi = self.phi[np.arange(chains)[:, None], self.atom]
        logs = log_rates(phi, k)
        by_state = logs if self.class_of is None else logs[:, np.arange(n_units)[:, None],
                                                           self.class_of]  # fmt: skip
        by_vote = by_state.transpose(0, 1, 3, 2).reshape(-1, n_states)
        weights = self.votes @ by_vote
        weights += np.log(self.shares).reshape(-1, n_states)[self.group]
        weights += self.evidence
        chances = softmax(weights)
        self.labels[self.single] = 0
        uniform = np.empty(len(self.single))
        for rng, asks in zip(self.generators, self.asks, strict=True):
            rng.random(out=uniform[asks])
        self.labels[self.single, first_above(uniform, chances[self.single])] = 1
        for rng, rows in zip(self.generators, self.several, strict=True):
            if rows.size:
                self.labels[rows] = rng.multinomial(self.items[rows], chances[rows])
        counts = (self.votes_of @ self.labels).reshape(chains, n_units, k, n_states)
        by_class = counts.transpose(0, 1, 3, 2)
        if self.class_of is not None:
            means = (self.class_of[:, :, None] == np.arange(k)).astype(np.float64)
            by_class = np.einsum("busv,usk->bukv", by_class, means)
        if self.cells.shape[2] > 1:
            self.cells[:] = by_class
        else:
            self.cells[:, :, 0, 1] = np.einsum("bukk->bu", by_class)
            self.cells[:, :, 0, 0] = by_class.sum(axis=(2, 3)) - self.cells[:, :, 0, 1]

    def _flip(self) -> None:
        """As `vote_gibbs._flip`: two classes trade names in domains that share rates."""
        k, single = self.n_classes, self.phi.shape[2] == 1
        if single and k > 2:
            return
        chains, n_units = self.atom.shape
        b, prior = np.arange(chains)[:, None], self.prior
        root, of_atom, used = self._roots()
        is_root = root == np.arange(self.n_domains)
        uniform = np.ones((chains, self.n_domains, 3))
        for i, rng in enumerate(self.generators):
            uniform[i, is_root[i]] = rng.random((int(is_root[i].sum()), 3))
        one = (uniform[:, :, 0] * k).astype(np.int64) % k
        two = (one + 1 + (uniform[:, :, 1] * (k - 1)).astype(np.int64)) % k
        one, two, accept = one[b, root], two[b, root], np.log(np.maximum(uniform[:, :, 2], 1e-300))
        logs = np.log(np.maximum(self.phi, 1e-300))
        if single:
            gap = prior.rates[0, 0] - prior.rates[0, 1]
            by_atom = gap * (logs[:, :, 0, 1] - logs[:, :, 0, 0])
        else:
            first, second = one[b, of_atom], two[b, of_atom]
            a = np.arange(n_units)
            gaps = prior.rates[first] - prior.rates[second]
            by_atom = (gaps * (logs[b, a, second] - logs[b, a, first])).sum(axis=2)
        d = np.arange(self.n_domains)
        shares = np.log(self.shares)
        by_domain = prior.share[d, one] - prior.share[d, two]
        by_domain = by_domain * (shares[b, d, two] - shares[b, d, one])
        by_domain[~self.free] = -np.inf
        ratio = np.zeros(root.shape)
        np.add.at(ratio, (b, of_atom), np.where(used, by_atom, 0.0))
        np.add.at(ratio, (b, root), by_domain)
        trades = (accept < ratio)[b, root]
        if trades.any():
            self._trade(trades, one, two, of_atom, used)

    def _roots(self) -> tuple[Ints, Ints, Bools]:
        """First of the domains that share rates with a domain, (B, D), or have an atom, (B, A).

        And which atoms anyone has, (B, A).
        """
        chains, n_units = self.atom.shape
        d, b = self.n_domains, np.arange(chains)[:, None]
        unit_domain = np.arange(n_units) // (n_units // d)
        used = np.zeros(self.atom.shape, dtype=bool)
        used[b, self.atom] = True
        of_atom = np.zeros(self.atom.shape, dtype=np.int64)
        of_atom[b, self.atom] = unit_domain
        root = np.tile(np.arange(d), (chains, 1))
        if d == 1 or (of_atom[b, self.atom] == unit_domain).all():
            return root, of_atom, used
        # Domains and atoms are nodes; units are edges.
        size = d + n_units
        edges = ((b * size + unit_domain).ravel(), (b * size + d + self.atom).ravel())
        graph = scipy.sparse.csr_matrix(
            (np.ones(len(edges[0])), edges), shape=(chains * size, chains * size)
        )
        _, part = connected_components(graph, directed=False)
        part = part.reshape(chains, size)
        first = np.full(chains * size, d)
        np.minimum.at(first, part[:, :d].ravel(), np.tile(np.arange(d), chains))
        root = first[part[:, :d]]
        of_atom[:] = root[b, of_atom]
        return root, of_atom, used

    def _trade(self, trades: Bools, one: Ints, two: Ints, of_atom: Ints, used: Bools) -> None:
        """Let classes `one` and `two` (B, D) trade names in the domains (B, D) that do."""
        b, d = np.arange(len(trades))[:, None], np.arange(self.n_domains)
        order = np.tile(np.arange(self.n_classes), (*trades.shape, 1))
        order[b, d, one] = np.where(trades, two, one)
        order[b, d, two] = np.where(trades, one, two)
        by_atom = np.where(used[:, :, None], order[b, of_atom], np.arange(self.n_classes))
        axis = 2 if self.phi.shape[2] > 1 else 3
        places = by_atom[:, :, :, None] if axis == 2 else by_atom[:, :, None]
        self.phi[:] = np.take_along_axis(self.phi, places, axis=axis)
        self.shares[:] = np.take_along_axis(self.shares, order, axis=2)
        by_row = order.reshape(-1, self.n_classes)[self.group]
        self.labels[:] = np.take_along_axis(self.labels, by_row, axis=1)


# --- seating in arrays ------------------------------------------------------------------------
#
# Chinese restaurants of several chains at once, by arrays: `seating` where no loop is compiled.
# Guests sit down one after the other, as they must; every step is one of all chains. Random
# numbers are asked for in the order in which the loops ask, so a chain ends where theirs does.


Generators = Sequence[np.random.Generator]

_BELOW_ONE = 1 - 2.0**-52
"""Keeps a uniform number times a total below the total, whatever rounding does."""


def draw_rates_of_chains(concentration: Floats, generators: Generators) -> Floats:
    """Rates from Dirichlet(concentration) over the last axis, (B, ..., C), chain by chain."""
    out = np.empty(concentration.shape)
    for b, rng in enumerate(generators):
        rng.standard_gamma(concentration[b], out=out[b])
    total = out.sum(axis=-1, keepdims=True)
    out /= np.where(total > 0, total, 1.0)
    return np.maximum(out, LEAST, out=out)


def first_above(uniform: Floats, weights: Floats) -> Ints:
    """One place of every row (n, S), with probability proportional to its weight, (n,)."""
    cumulative = weights.cumsum(axis=1)
    left = uniform * (cumulative[:, -1] * _BELOW_ONE)
    out: Ints = (left[:, None] >= cumulative).sum(axis=1)
    return out


class _Counts:
    """Counts by atom of all chains with the log B of each: terms (B, A, Q (C + 1)), prior included.

    The total of a row of counts stands beside it, so that log B is one product with signs.
    """

    def __init__(self, cells: Floats, prior: Floats, atom: Ints) -> None:
        chains, atoms = cells.shape[:2]
        self.signs = np.tile(np.append(np.ones(prior.shape[1]), -1.0), len(prior))
        self.prior = self._terms(prior[None, None])[0, 0]
        self.cells = self._terms(cells)
        self.terms = np.tile(self.prior, (chains, atoms, 1))
        np.add.at(self.terms, (np.arange(chains)[:, None], atom), self.cells)
        self.held: Floats = gammaln(self.terms) @ self.signs
        self.alone: Floats = gammaln(self.cells + self.prior) @ self.signs
        self.alone -= gammaln(self.prior) @ self.signs

    @staticmethod
    def _terms(cells: Floats) -> Floats:
        with_total = np.concatenate([cells, cells.sum(axis=-1, keepdims=True)], axis=-1)
        return with_total.reshape(*cells.shape[:2], -1)

    def add(self, b: Ints, atom: Ints, x: Floats) -> None:
        """Add terms x (n, ..., W) to these atoms of these chains, (n, ...)."""
        terms = self.terms[b, atom] + x
        self.terms[b, atom] = terms
        self.held[b, atom] = gammaln(terms) @ self.signs

    def gain(self, b: Ints, atoms: slice, x: Floats) -> Floats:
        """Log-likelihood of terms x (n, W) in every one of these atoms, (n, atoms)."""
        out: Floats = gammaln(self.terms[b, atoms] + x[:, None]) @ self.signs
        return out - self.held[b, atoms]


def seat_domains_of_chains(
    cells: Floats,
    prior: Floats,
    phi: Floats,
    atom: Ints,
    cluster: Ints,
    concentration: Floats,
    collapsed: bool,
    generators: Generators,
) -> None:
    """As `seat_domains`, arrays with the chains before their other axes."""
    chains, n_domains = cluster.shape
    n_models = atom.shape[1] // n_domains
    every, models = np.arange(chains), np.arange(n_models)
    counts = _Counts(cells, prior, (cluster[:, :, None] * n_models + models).reshape(chains, -1))
    size = np.zeros((chains, n_domains), dtype=np.int64)
    np.add.at(size, (every[:, None], cluster), 1)
    logs = _logs(n_domains)
    log_phi = _log(phi, collapsed)
    weights = np.empty((chains, n_domains + 1))
    b = every[:, None]
    for d in range(n_domains):
        own = slice(d * n_models, (d + 1) * n_models)
        x = counts.cells[:, own]
        size[every, cluster[:, d]] -= 1
        counts.add(b, cluster[:, d, None] * n_models + models, -x)
        if collapsed:
            terms = counts.terms.reshape(chains, n_domains, n_models, -1)
            like = gammaln(terms + x[:, None]) @ counts.signs
            like -= counts.held.reshape(like.shape)
            like = like.sum(axis=2)
        else:
            rates = log_phi.reshape(chains, n_domains, -1)
            like = (rates @ cells[:, own].reshape(chains, -1, 1))[:, :, 0]
        weights[:, :-1] = logs[size] + like
        weights[:, -1] = np.log(concentration[:, 0]) + counts.alone[:, own].sum(axis=1)
        new = _pick(weights, every, generators)
        fresh = np.argmin(size > 0, axis=1)
        for i in np.flatnonzero(new == n_domains).tolist():
            new[i] = fresh[i]
            if not collapsed:
                place = slice(new[i] * n_models, (new[i] + 1) * n_models)
                _draw_anew(phi, log_phi, i, place, cells[i, own] + prior, generators[i])
        cluster[:, d] = new
        size[every, new] += 1
        atom[:, own] = new[:, None] * n_models + models
        counts.add(b, atom[:, own], x)


class _Franchise:
    """Tables and dishes of every chain, changed in place while customers move.

    customers (B, D, M) at every table; serving (B, A) tables per dish; dishes and tables in use
    have smaller numbers than n_dishes and n_tables (D).
    """

    def __init__(
        self,
        cells: Floats,
        prior: Floats,
        phi: Floats,
        table: Ints,
        dish: Ints,
        concentration: Floats,
        shared: bool,
        collapsed: bool,
        generators: Generators,
    ) -> None:
        self.cells, self.prior, self.phi = cells, prior, phi
        self.table, self.dish = table, dish
        self.shared, self.collapsed, self.generators = shared, collapsed, generators
        self.log_concentration = np.log(concentration)
        self.gamma = concentration[:, 1]
        self._number_anew()
        chains, n_domains, _ = table.shape
        b, d = np.arange(chains)[:, None, None], np.arange(n_domains)[:, None]
        atom = dish[b, d, table].reshape(chains, -1)
        self.counts = _Counts(cells, prior, atom)
        self.customers = np.zeros(table.shape, dtype=np.int64)
        np.add.at(self.customers, (b, d, table), 1)
        self.serving = np.zeros((chains, atom.shape[1]), dtype=np.int64)
        used = np.nonzero(self.customers)
        np.add.at(self.serving, (used[0], dish[used]), 1)
        self.n_dishes = int(atom.max()) + 1
        self.n_tables = (table.max(axis=(0, 2)) + 1).tolist()
        self.log_phi = _log(phi, collapsed)
        self.logs = _logs(table[0].size)

    def _number_anew(self) -> None:
        """Number tables and dishes without gaps, so that few are looked at."""
        table, dish, phi = self.table, self.dish, self.phi
        chains, n_domains, _ = table.shape
        b, d = np.arange(chains)[:, None, None], np.arange(n_domains)[:, None]
        seated = np.zeros(table.shape, dtype=bool)
        seated[b, d, table] = True
        eaten = np.zeros(phi.shape[:2], dtype=bool)
        eaten[np.arange(chains)[:, None], dish[b, d, table].reshape(chains, -1)] = True
        order = np.argsort(~eaten, axis=1, kind="stable")
        phi[:] = np.take_along_axis(phi, order[:, :, None, None], axis=1)
        number = np.cumsum(eaten, axis=1) - 1
        order = np.argsort(~seated, axis=2, kind="stable")
        kept = np.take_along_axis(np.where(seated, dish, -1), order, axis=2)
        dish[:] = np.where(kept >= 0, number[b, kept], -1)
        table[:] = (np.cumsum(seated, axis=2) - 1)[b, d, table]

    def _like(self, b: Ints, atoms: slice, x: Floats, cells: Floats) -> Floats:
        """Log-likelihood of counts under the dishes of some chains, (n, atoms)."""
        if self.collapsed:
            return self.counts.gain(b, atoms, x)
        rates = self.log_phi[b, atoms].reshape(len(b), -1, cells[0].size)
        out: Floats = (rates @ cells.reshape(len(b), -1, 1))[:, :, 0]
        return out

    def _weigh_dishes(
        self, b: Ints, x: Floats, cells: Floats, alone: Floats
    ) -> tuple[Floats, Floats]:
        """Log-likelihood of counts under every dish, and log-weights with a new dish last."""
        dishes = slice(0, min(self.n_dishes + 1, self.serving.shape[1]))
        like = self._like(b, dishes, x, cells)
        weights = np.full((len(b), like.shape[1] + 1), -np.inf)
        weights[:, -1] = alone
        if self.shared:
            weights[:, :-1] = self.logs[self.serving[b, dishes]] + like
            weights[:, -1] += self.log_concentration[b, 1]
        return like, weights

    def _dish(self, b: Ints, weights: Floats, cells: Floats) -> Ints:
        """Draw a dish for a table of each of these chains; a new one gets rates."""
        out = _pick(weights, b, self.generators)
        for i in (out == weights.shape[1] - 1).nonzero()[0].tolist():
            out[i] = np.argmin(self.serving[b[i]] > 0)
            if not self.collapsed:
                _draw_anew(
                    self.phi, self.log_phi, b[i], out[i], cells[i] + self.prior,
                    self.generators[b[i]],
                )  # fmt: skip
        self.serving[b, out] += 1
        self.n_dishes = max(self.n_dishes, int(out.max()) + 1)
        return out

    def seat(self, d: int, j: int) -> None:
        """Give customer j of restaurant d of every chain a table; a new one gets a dish."""
        b = np.arange(len(self.table))
        u = d * self.table.shape[2] + j
        x, cells, alone = self.counts.cells[:, u], self.cells[:, u], self.counts.alone[:, u]
        customers, dish = self.customers[:, d], self.dish[:, d]
        old = self.table[:, d, j]
        course = dish[b, old]
        customers[b, old] -= 1
        self.counts.add(b, course, -x)
        left = customers[b, old] == 0
        self.serving[b, course] -= left
        dish[b, old] = np.where(left, -1, course)
        like, weights = self._weigh_dishes(b, x, cells, alone)
        top = weights.max(axis=1)
        anew = self.log_concentration[:, 0] + top
        anew += np.log(np.exp(weights - top[:, None]).sum(axis=1))
        if self.shared:
            anew -= np.log(self.serving.sum(axis=1) + self.gamma)
        size = min(self.n_tables[d] + 1, customers.shape[1])
        options = np.empty((len(b), size + 1))
        options[:, :-1] = self.logs[customers[:, :size]] + like[b[:, None], dish[:, :size]]
        options[:, -1] = anew
        new = _pick(options, b, self.generators)
        founds = (new == size).nonzero()[0]
        if founds.size:
            new[founds] = np.argmin(customers[founds] > 0, axis=1)
            dish[founds, new[founds]] = self._dish(founds, weights[founds], cells[founds])
            self.n_tables[d] = max(self.n_tables[d], int(new.max()) + 1)
        self.table[:, d, j] = new
        customers[b, new] += 1
        self.counts.add(b, dish[b, new], x)

    def serve(self, d: int, t: int) -> None:
        """Give table t of restaurant d, with its customers, a dish, in chains where it has any."""
        b = self.customers[:, d, t].nonzero()[0]
        if not b.size:
            return
        n_models = self.table.shape[2]
        own = slice(d * n_models, (d + 1) * n_models)
        at = (self.table[b, d] == t).astype(np.float64)[:, None]
        cells = (at @ self.cells[b, own].reshape(len(b), n_models, -1))[:, 0]
        cells = cells.reshape(len(b), *self.prior.shape)
        x = (at @ self.counts.cells[b, own])[:, 0]
        old = self.dish[b, d, t]
        self.serving[b, old] -= 1
        self.counts.add(b, old, -x)
        counts = self.counts
        alone = (gammaln(x + counts.prior) - gammaln(counts.prior)) @ counts.signs
        _, weights = self._weigh_dishes(b, x, cells, alone)
        new = self._dish(b, weights, cells)
        self.dish[b, d, t] = new
        counts.add(b, new, x)


def seat_classifiers_of_chains(
    cells: Floats,
    prior: Floats,
    phi: Floats,
    atom: Ints,
    table: Ints,
    dish: Ints,
    concentration: Floats,
    shared: bool,
    collapsed: bool,
    generators: Generators,
) -> None:
    """As `seat_classifiers`, arrays with the chains before their other axes."""
    chains, n_domains, n_models = table.shape
    franchise = _Franchise(
        cells, prior, phi, table, dish, concentration, shared, collapsed, generators
    )
    for d in range(n_domains):
        for j in range(n_models):
            franchise.seat(d, j)
        if shared:
            for t in range(franchise.n_tables[d]):
                franchise.serve(d, t)
    b, every = np.arange(chains)[:, None, None], np.arange(n_domains)[:, None]
    atom[:] = dish[b, every, table].reshape(chains, -1)


def _logs(most: int) -> Floats:
    """Logarithms of 0 .. most; that of 0 is -inf."""
    return np.append(-np.inf, np.log(np.arange(1, most + 1)))


def _log(phi: Floats, collapsed: bool) -> Floats:
    """Log rates; nothing where they are not looked at."""
    # Rates of groups that nobody is in may still be zero.
    return phi if collapsed else np.log(np.maximum(phi, LEAST))


def _pick(log_weights: Floats, b: Ints, generators: Generators) -> Ints:
    """As `pick`, one place for each of these chains, (n,)."""
    uniform = np.array([generators[i].random() for i in b.tolist()])
    return first_above(uniform, np.exp(log_weights - log_weights.max(axis=1, keepdims=True)))


def _draw_anew(
    phi: Floats,
    log_phi: Floats,
    b: int,
    place: int | slice,
    concentration: Floats,
    rng: np.random.Generator,
) -> None:
    """Rates of a new group of one chain."""
    phi[b, place] = draw_rates_of_chains(concentration[None], [rng])[0]
    log_phi[b, place] = np.log(phi[b, place])
