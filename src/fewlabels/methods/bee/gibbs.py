"""Gibbs sampling of labels, class shares and error rates from votes: one sweep for every model.

A sweep draws: who shares rates with whom, given the labels (rates integrated out) -> rates -> a
flip of the classes, where it is as likely -> class shares -> labels. Order matters for the first
two: rates must be drawn right after they were integrated out.

Items with the same votes are one row with a count, which is exact: given the parameters they are
exchangeable. Missing votes are skipped, which integrates them out.

Source: Platanios, Dubey, Mitchell (2016), equations 3 to 7 and sections 4.2, 4.3.
"""

from __future__ import annotations

import math

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.simplex import softmax
from fewlabels.methods.bee.compiled import compiled, compiled_part
from fewlabels.methods.bee.seating import (
    add,
    draw_concentration,
    draw_rates,
    pick,
    seat_classifiers,
    seat_domains,
)
from fewlabels.methods.bee.table import (
    ALONE,
    DOMAINS,
    FRANCHISE,
    Rules,
    VotePrior,
    VoteState,
    VoteTable,
)

_CERTAIN = 50.0
"""Log-odds that a vote for a state starts with: as good as certain, unless votes tie."""


def advance(
    table: VoteTable,
    prior: VotePrior,
    state: VoteState,
    rules: Rules,
    sweeps: int,
    rng: np.random.Generator,
) -> None:
    """Run some sweeps; `state` changes in place."""
    if rules.coupling == ALONE and not rules.collapsed_labels:
        _sweep(table, prior, state, rules.flip, sweeps, rng)
        return
    # Only what a model needs is compiled: each of these takes seconds the first time.
    for _ in range(sweeps):
        if rules.coupling == DOMAINS:
            couple_domains(prior, state, rules.collapsed, rules.learn_alpha, rng)
        elif rules.coupling != ALONE:
            shared = rules.coupling == FRANCHISE
            couple_classifiers(
                prior, state, shared, rules.collapsed, rules.learn_alpha, rules.learn_gamma, rng
            )
        if rules.collapsed_labels:
            _draw_parameters(table, prior, state, rules.flip, rng)
            _draw_labels_collapsed(table, prior, state, rng)
        else:
            _sweep(table, prior, state, rules.flip, 1, rng)


@compiled
def _sweep(
    table: VoteTable,
    prior: VotePrior,
    state: VoteState,
    flip: bool,
    sweeps: int,
    rng: np.random.Generator,
) -> None:
    """Parameters and labels, given who shares rates, some times over."""
    for _ in range(sweeps):
        _draw_parameters(table, prior, state, flip, rng)
        _draw_labels(table, state, rng)


@compiled
def _draw_parameters(
    table: VoteTable, prior: VotePrior, state: VoteState, flip: bool, rng: np.random.Generator
) -> None:
    """Rates and class shares given the labels, with a flip in between."""
    sums = np.zeros(state.phi.shape)
    _sum_by_atom(state, sums)
    for a in range(len(sums)):
        draw_rates(sums[a], prior.rates, state.phi[a], rng)
    if flip:
        _flip(table, prior, state, rng)
    _spread_rates(state)
    _draw_shares(table, prior, state, rng)


@compiled_part
def _sum_by_atom(state: VoteState, sums: Floats) -> None:
    """Counts of votes of all units that share an atom, into `sums`."""
    sums[:] = 0.0
    for u in range(len(state.atom)):
        add(sums[state.atom[u]], state.cells[u], 1.0)


@compiled_part
def _distinct(places: Ints) -> int:
    """How many of the places 0 .. n - 1 somebody has."""
    taken = np.zeros(places.max() + 1)
    for place in places:
        taken[place] = 1.0
    return int(taken.sum())


@compiled
def couple_domains(
    prior: VotePrior, state: VoteState, collapsed: bool, learn: bool, rng: np.random.Generator
) -> None:
    """Draw the clusters of the domains, and their concentration if it is learned."""
    seat_domains(
        state.cells, prior.rates, state.phi, state.atom, state.cluster, state.concentration,
        collapsed, rng,
    )  # fmt: skip
    if learn:
        customers = np.full(1, len(state.cluster))
        state.concentration[0] = draw_concentration(
            state.concentration[0], customers, _distinct(state.cluster), 1.0, 1.0, rng
        )


@compiled
def couple_classifiers(
    prior: VotePrior,
    state: VoteState,
    shared: bool,
    collapsed: bool,
    learn_alpha: bool,
    learn_gamma: bool,
    rng: np.random.Generator,
) -> None:
    """Draw the tables of the units and their dishes, and the concentrations that are learned."""
    seat_classifiers(
        state.cells, prior.rates, state.phi, state.atom, state.table, state.dish,
        state.concentration, shared, collapsed, rng,
    )  # fmt: skip
    n_domains, n_models = state.table.shape
    used = 0
    for d in range(n_domains):
        used += _distinct(state.table[d])
    if learn_alpha:
        customers = np.full(n_domains, n_models)
        state.concentration[0] = draw_concentration(
            state.concentration[0], customers, used, 1.0, 1.0, rng
        )
    if learn_gamma and shared:
        customers = np.full(1, used)
        state.concentration[1] = draw_concentration(
            state.concentration[1], customers, _distinct(state.atom), 1.0, 1.0, rng
        )


@compiled_part
def _spread_rates(state: VoteState) -> None:
    """Log P(vote | class) of every unit from the rates of its atom."""
    n_units, n_classes, _ = state.log_rates.shape
    for u in range(n_units):
        phi = state.phi[state.atom[u]]
        for k in range(n_classes):
            for v in range(n_classes):
                if phi.shape[0] > 1:
                    state.log_rates[u, k, v] = math.log(phi[k, v])
                elif k == v:
                    state.log_rates[u, k, v] = math.log(phi[0, 1])
                else:
                    state.log_rates[u, k, v] = math.log(phi[0, 0] / (n_classes - 1))


@compiled_part
def _draw_shares(
    table: VoteTable, prior: VotePrior, state: VoteState, rng: np.random.Generator
) -> None:
    """State shares of every group from the labels of its rows that inform them."""
    n_groups, n_states = state.shares.shape
    total = np.zeros((n_groups, 1, n_states))
    base = np.empty((1, n_states))
    for r in range(len(table.items)):
        if table.informs[r] > 0:
            for s in range(n_states):
                total[table.group[r], 0, s] += state.labels[r, s]
    draw = np.empty((1, n_states))
    for g in range(n_groups):
        for s in range(n_states):
            base[0, s] = prior.share[g, s]
        draw_rates(total[g], base, draw, rng)
        for s in range(n_states):
            state.shares[g, s] = draw[0, s]


@compiled_part
def _mark(table: VoteTable, cells: Floats, r: int, s: int, amount: float) -> None:
    """Count the votes of row r as `amount` items in state s."""
    n_models = cells.shape[0] // table.class_of.shape[1]
    single = cells.shape[1] == 1
    for e in range(table.start[r], table.start[r + 1]):
        u = table.unit[e]
        k = table.class_of[s, u // n_models]
        if single:
            cells[u, 0, 1 if table.vote[e] == k else 0] += amount * table.times[e]
        else:
            cells[u, k, table.vote[e]] += amount * table.times[e]


@compiled_part
def _draw_labels(table: VoteTable, state: VoteState, rng: np.random.Generator) -> None:
    """Labels of every row, and the counts of votes that follow.

    Rows of one item come first, which asks for random numbers in an order that arrays can keep.
    """
    state.cells[:] = 0.0
    weights = np.empty(table.class_of.shape[0])
    for r in range(len(table.items)):
        if table.items[r] == 1:
            _weigh(table, state, r, weights)
            state.labels[r] = 0
            state.labels[r, pick(weights, len(weights), rng)] = 1
    for r in range(len(table.items)):
        if table.items[r] != 1:
            _weigh(table, state, r, weights)
            _multinomial(weights, table.items[r], state.labels[r], rng)
        for s in range(len(weights)):
            if state.labels[r, s] > 0:
                _mark(table, state.cells, r, s, float(state.labels[r, s]))


@compiled_part
def _weigh(table: VoteTable, state: VoteState, r: int, weights: Floats) -> None:
    """Log P(state, votes, evidence) of a row, into `weights` (S,)."""
    n_states, n_domains = table.class_of.shape
    n_models = state.cells.shape[0] // n_domains
    for s in range(n_states):
        weights[s] = math.log(state.shares[table.group[r], s]) + table.evidence[r, s]
    for e in range(table.start[r], table.start[r + 1]):
        u = table.unit[e]
        d = u // n_models
        for s in range(n_states):
            rate = state.log_rates[u, table.class_of[s, d], table.vote[e]]
            weights[s] += table.times[e] * rate


@compiled_part
def _multinomial(weights: Floats, count: int, out: Ints, rng: np.random.Generator) -> None:
    """Counts of `count` draws with probabilities proportional to exp(weights), into `out`."""
    top = weights.max()
    total = 0.0
    for s in range(len(weights)):
        weights[s] = math.exp(weights[s] - top)
        total += weights[s]
    left = count
    for s in range(len(weights) - 1):
        p = min(weights[s] / total, 1.0) if total > 0 else 0.0
        out[s] = rng.binomial(left, p) if left > 0 and p > 0 else 0
        left -= out[s]
        total -= weights[s]
    out[len(weights) - 1] = left
    # What rounding left to a last state that cannot be goes to the likeliest.
    if left > 0 and weights[len(weights) - 1] == 0:
        out[len(weights) - 1] = 0
        out[np.argmax(weights)] += left


def start_state(
    table: VoteTable, prior: VotePrior, state: VoteState, rng: np.random.Generator
) -> None:
    """Labels that most votes agree with, ties at random; everyone has the rates that follow."""
    weights = table.evidence.copy()
    row, classes = _entries(table, len(state.atom))
    for s in range(len(classes)):
        agree = table.times * (table.vote == classes[s])
        weights[:, s] += _CERTAIN * np.bincount(row, weights=agree, minlength=len(weights))
    _draw_rows(table, state, weights, rng)
    state.phi[:] = state.cells + prior.rates
    state.phi[:] /= state.phi.sum(axis=2, keepdims=True)


def _entries(table: VoteTable, n_units: int) -> tuple[Ints, Ints]:
    """Row of every entry, and the class (S, entries) that each state means there."""
    row = np.repeat(np.arange(len(table.items)), np.diff(table.start))
    n_models = n_units // table.class_of.shape[1]
    return row, table.class_of[:, table.unit // n_models]


def _draw_rows(
    table: VoteTable, state: VoteState, weights: Floats, rng: np.random.Generator
) -> None:
    """Labels of every row with log-weights (R, S), and the counts of votes that follow."""
    state.labels[:] = rng.multinomial(table.items, softmax(weights))
    row, classes = _entries(table, len(state.atom))
    n_classes = state.log_rates.shape[1]
    state.cells[:] = 0.0
    for s in range(len(classes)):
        if state.cells.shape[1] == 1:
            cell = table.unit * 2 + (table.vote == classes[s])
        else:
            cell = (table.unit * n_classes + classes[s]) * n_classes + table.vote
        amount = table.times * state.labels[row, s]
        counts = np.bincount(cell, weights=amount, minlength=state.cells.size)
        state.cells[:] += counts.reshape(state.cells.shape)


@compiled
def _draw_labels_collapsed(
    table: VoteTable, prior: VotePrior, state: VoteState, rng: np.random.Generator
) -> None:
    """Labels one item at a time with the rates integrated out, given who shares them."""
    n_states = table.class_of.shape[0]
    sums = np.zeros(state.phi.shape)
    _sum_by_atom(state, sums)
    weights = np.empty(n_states)
    for r in range(len(table.items)):
        for _ in range(table.items[r]):
            # Any item of the row, whatever its label: an order by labels would be no valid scan.
            left = rng.random() * table.items[r]
            old = 0
            while left >= state.labels[r, old] and old < n_states - 1:
                left -= state.labels[r, old]
                old += 1
            _see(table, prior, state, sums, r, old, -1.0)
            state.labels[r, old] -= 1
            for s in range(n_states):
                weights[s] = math.log(state.shares[table.group[r], s]) + table.evidence[r, s]
                if weights[s] > -math.inf:
                    # One vote after the other: two of an item may share their rates.
                    weights[s] += _see(table, prior, state, sums, r, s, 1.0)
                    _see(table, prior, state, sums, r, s, -1.0)
            new = pick(weights, n_states, rng)
            _see(table, prior, state, sums, r, new, 1.0)
            state.labels[r, new] += 1
    state.cells[:] = 0.0
    for r in range(len(table.items)):
        for s in range(n_states):
            if state.labels[r, s] > 0:
                _mark(table, state.cells, r, s, float(state.labels[r, s]))


@compiled_part
def _see(
    table: VoteTable, prior: VotePrior, state: VoteState, sums: Floats, r: int, s: int, sign: float
) -> float:
    """Add (or take away) one item of row r in state s; log predictive probability of its votes."""
    n_models = len(state.atom) // table.class_of.shape[1]
    n_classes = state.log_rates.shape[1]
    out = 0.0
    for e in range(table.start[r], table.start[r + 1]):
        u = table.unit[e]
        k = table.class_of[s, u // n_models]
        own = sums[state.atom[u]]
        q = k if own.shape[0] > 1 else 0
        c = table.vote[e]
        if own.shape[0] == 1:
            c = 1 if table.vote[e] == k else 0
        for _ in range(int(table.times[e])):
            if sign > 0:
                total = 0.0
                for other in range(own.shape[1]):
                    total += prior.rates[q, other] + own[q, other]
                out += math.log((prior.rates[q, c] + own[q, c]) / total)
                if own.shape[0] == 1 and c == 0:
                    out -= math.log(n_classes - 1.0)
            own[q, c] += sign
    return out


@compiled_part
def _root(parent: Ints, d: int) -> int:
    while parent[d] != d:
        parent[d] = parent[parent[d]]
        d = parent[d]
    return d


@compiled_part
def _flip(table: VoteTable, prior: VotePrior, state: VoteState, rng: np.random.Generator) -> None:
    """Let two classes trade names in domains that share rates, as often as is as likely.

    The likelihood does not change, so the prior decides. Domains that share no rates trade
    names on their own. Nothing is traded where something is known of the labels.
    """
    n_domains, n_models = state.table.shape
    n_classes = state.log_rates.shape[1]
    single = state.phi.shape[1] == 1
    if single and n_classes > 2:
        return
    parent = np.arange(n_domains)
    seen = np.full(len(state.phi), -1)
    for u in range(len(state.atom)):
        d = _root(parent, u // n_models)
        if seen[state.atom[u]] < 0:
            seen[state.atom[u]] = d
        other = _root(parent, seen[state.atom[u]])
        parent[max(d, other)] = min(d, other)
    for d in range(n_domains):
        if parent[d] != d:
            continue
        one = int(rng.random() * n_classes)
        two = (one + 1 + int(rng.random() * (n_classes - 1))) % n_classes
        log_ratio = 0.0
        for a in range(len(seen)):
            if seen[a] < 0 or _root(parent, seen[a]) != d:
                continue
            if single:
                log_ratio += (prior.rates[0, 0] - prior.rates[0, 1]) * (
                    math.log(state.phi[a, 0, 1]) - math.log(state.phi[a, 0, 0])
                )
            else:
                for c in range(n_classes):
                    log_ratio += (prior.rates[one, c] - prior.rates[two, c]) * (
                        math.log(state.phi[a, two, c]) - math.log(state.phi[a, one, c])
                    )
        for g in range(n_domains):
            if _root(parent, g) == d:
                if not table.free[g]:
                    log_ratio = -math.inf
                log_ratio += (prior.share[g, one] - prior.share[g, two]) * (
                    math.log(state.shares[g, two]) - math.log(state.shares[g, one])
                )
        if math.log(max(rng.random(), 1e-300)) < log_ratio:
            _trade(table, state, parent, seen, d, one, two)


@compiled_part
def _swap(block: Floats, one: int, two: int) -> None:
    """Swap what two classes are to a unit: rows of a matrix, or errors and hits."""
    if block.shape[0] == 1:
        block[0, 0], block[0, 1] = block[0, 1], block[0, 0]
        return
    for c in range(block.shape[1]):
        block[one, c], block[two, c] = block[two, c], block[one, c]


@compiled_part
def _trade(
    table: VoteTable, state: VoteState, parent: Ints, seen: Ints, d: int, one: int, two: int
) -> None:
    """Let classes `one` and `two` trade names in the domains whose root is d."""
    n_domains, n_models = state.table.shape
    for a in range(len(seen)):
        if seen[a] >= 0 and _root(parent, seen[a]) == d:
            _swap(state.phi[a], one, two)
    for g in range(n_domains):
        if _root(parent, g) != d:
            continue
        state.shares[g, one], state.shares[g, two] = state.shares[g, two], state.shares[g, one]
        for j in range(n_models):
            _swap(state.cells[g * n_models + j], one, two)
    for r in range(len(table.items)):
        if _root(parent, table.group[r]) == d:
            state.labels[r, one], state.labels[r, two] = state.labels[r, two], state.labels[r, one]
