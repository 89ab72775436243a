"""Chinese restaurants of several chains at once, by arrays: `seating` where no loop is compiled.

Guests sit down one after the other, as they must; every step is one of all chains. Random numbers
are asked for in the order in which the loops ask, so a chain ends where theirs does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.seating import LEAST

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
    """Tables and dishes of every chain, changed in place while guests move.

    guests (B, D, M) at every table; serving (B, A) tables per dish; dishes and tables in use have
    smaller numbers than n_dishes and n_tables (D).
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
        self.guests = np.zeros(table.shape, dtype=np.int64)
        np.add.at(self.guests, (b, d, table), 1)
        self.serving = np.zeros((chains, atom.shape[1]), dtype=np.int64)
        used = np.nonzero(self.guests)
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

    def _courses(self, b: Ints, x: Floats, cells: Floats, alone: Floats) -> tuple[Floats, Floats]:
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
        """Give guest j of restaurant d of every chain a table; a new one gets a dish."""
        b = np.arange(len(self.table))
        u = d * self.table.shape[2] + j
        x, cells, alone = self.counts.cells[:, u], self.cells[:, u], self.counts.alone[:, u]
        guests, dish = self.guests[:, d], self.dish[:, d]
        old = self.table[:, d, j]
        course = dish[b, old]
        guests[b, old] -= 1
        self.counts.add(b, course, -x)
        left = guests[b, old] == 0
        self.serving[b, course] -= left
        dish[b, old] = np.where(left, -1, course)
        like, weights = self._courses(b, x, cells, alone)
        top = weights.max(axis=1)
        anew = self.log_concentration[:, 0] + top
        anew += np.log(np.exp(weights - top[:, None]).sum(axis=1))
        if self.shared:
            anew -= np.log(self.serving.sum(axis=1) + self.gamma)
        size = min(self.n_tables[d] + 1, guests.shape[1])
        options = np.empty((len(b), size + 1))
        options[:, :-1] = self.logs[guests[:, :size]] + like[b[:, None], dish[:, :size]]
        options[:, -1] = anew
        new = _pick(options, b, self.generators)
        founds = (new == size).nonzero()[0]
        if founds.size:
            new[founds] = np.argmin(guests[founds] > 0, axis=1)
            dish[founds, new[founds]] = self._dish(founds, weights[founds], cells[founds])
            self.n_tables[d] = max(self.n_tables[d], int(new.max()) + 1)
        self.table[:, d, j] = new
        guests[b, new] += 1
        self.counts.add(b, dish[b, new], x)

    def serve(self, d: int, t: int) -> None:
        """Give table t of restaurant d, with all its guests, a dish, in chains where it has any."""
        b = self.guests[:, d, t].nonzero()[0]
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
        _, weights = self._courses(b, x, cells, alone)
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
