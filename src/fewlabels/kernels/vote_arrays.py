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

from fewlabels.kernels.arrays import Bools, Ints
from fewlabels.kernels.seating import draw_concentration
from fewlabels.kernels.seating_arrays import (
    draw_rates_of_chains,
    first_above,
    seat_classifiers_of_chains,
    seat_domains_of_chains,
)
from fewlabels.kernels.simplex import softmax
from fewlabels.kernels.vote_gibbs import advance
from fewlabels.kernels.vote_table import (
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
            guests = np.full(1, self.n_domains)
            for b, rng in enumerate(self.generators):
                used = len(np.unique(self.cluster[b]))
                self._learn(b, 0, guests, used, rng)

    def _couple_classifiers(self, rules: Rules) -> None:
        shared = rules.coupling == FRANCHISE
        seat_classifiers_of_chains(
            self.cells, self.prior.rates, self.phi, self.atom, self.table, self.dish,
            self.concentration, shared, rules.collapsed, self.generators,
        )  # fmt: skip
        guests = np.full(self.n_domains, self.table.shape[2])
        for b, rng in enumerate(self.generators):
            used = sum(len(np.unique(own)) for own in self.table[b])
            if rules.learn_alpha:
                self._learn(b, 0, guests, used, rng)
            if rules.learn_gamma and shared:
                self._learn(b, 1, np.full(1, used), len(np.unique(self.atom[b])), rng)

    def _learn(self, b: int, which: int, guests: Ints, used: int, rng: np.random.Generator) -> None:
        """Draw one of the concentrations of a chain."""
        current = float(self.concentration[b, which])
        self.concentration[b, which] = draw_concentration(current, guests, used, 1.0, 1.0, rng)

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
