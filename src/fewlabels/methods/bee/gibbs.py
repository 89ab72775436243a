"""Gibbs sampling of labels, class shares and error rates from votes: one sweep for every model.

A sweep draws: who shares rates with whom, given the labels (rates integrated out) -> rates -> a
flip of the classes, where it is as likely -> class shares -> labels. Order matters for the first
two: rates must be drawn right after they were integrated out.

Items with the same votes are one row with a count, which is exact: given the parameters they are
exchangeable. Missing votes are skipped, which integrates them out (equation 7).

Source: Platanios, Dubey, Mitchell (2016), equations 3 to 7 and sections 4.2, 4.3; which function
has which equation is in `docs/papers.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from threading import Lock
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import go_on, map_blocks, report, spans
from fewlabels.kernels.compiled import IS_COMPILED, compiled, compiled_or, compiled_part
from fewlabels.kernels.simplex import softmax
from fewlabels.methods.bee.seating import (
    count_distinct,
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
    Schedule,
    VoteDraws,
    VotePrior,
    VoteState,
    VoteTable,
    draw_rates_prior,
)

_CERTAIN = 50.0
"""Log-odds of a vote at the start: practically certain, unless votes tie."""

_BATCH = 2**16
"""Votes per thread if nothing is compiled: threads with fewer would wait for each other."""

_LONGEST = 4
"""Limit of the sweeps, in multiples of those asked for, if chains do not agree before."""

_LEARNED_EVERY = 4
"""Sweeps per draw of the prior of the rates, if it is learned: it changes slowly."""

_SLICE = 2**23
"""Votes and rows per call of compiled sweeps, a part of a second: between calls Python can stop."""

_EXTREME = 0.1
"""Smaller rates (and larger than 1 minus it) are clipped when the prior orients classes."""

_SETTLING = 5
"""In chains that do not start from the majority's labels, one burn-in sweep in so many runs first,
without shared rates."""

_ENOUGH = 0.3
"""Seconds of sampling that show how long the rest will take."""


# --- chains -----------------------------------------------------------------------------------


class _Progress:
    """Counts sweeps of all chains, and reports them at every hundredth of the total.

    `expect` gets once, soon after the start, the seconds for these and `ahead` more sweeps.
    """

    def __init__(self, total: int, ahead: int, expect: Callable[[float], None] | None) -> None:
        self.total, self.ahead, self.expect = total, ahead, expect
        self.done, self.last, self.started = 0, 0, perf_counter()
        self.lock = Lock()

    def add(self, sweeps: int) -> None:
        with self.lock:
            self.done += sweeps
            if self.done - self.last >= self.total / 100 or self.done == self.total:
                self.last = self.done
                report(self.done, self.total)
            passed = perf_counter() - self.started
            if self.expect is not None and passed > _ENOUGH:
                self.expect(passed * (self.total + self.ahead) / self.done)
                self.expect = None


def new_state(
    table: VoteTable, prior: VotePrior, n_units: int, alpha: float, gamma: float
) -> VoteState:
    """Arrays of one chain, with every unit, domain and table in a group of its own."""
    n_states, n_domains = table.row_of.shape
    n_models = n_units // n_domains
    n_rows, n_classes = prior.rates.shape
    if n_rows == 1:  # right or wrong, whatever the class
        n_rows = n_classes = max(int(table.row_of.max()) + 1, 2)
    units = np.arange(n_units)
    size = (n_units, *prior.rates.shape)
    return VoteState(
        labels=np.zeros((len(table.items), n_states), dtype=np.int64),
        shares=np.full((len(table.free), n_states), 1 / n_states),
        cells=np.zeros(size),
        atom=units.copy(),
        phi=np.zeros(size),
        log_rates=np.zeros((n_units, n_rows, n_classes)),
        concentration=np.array([alpha, gamma]),
        cluster=np.arange(n_domains),
        table=np.tile(np.arange(n_models), (n_domains, 1)),
        dish=units.reshape(n_domains, n_models).copy(),
    )


class Run(NamedTuple):
    """What a model is fitted to; `concentration` is (alpha, gamma)."""

    table: VoteTable
    prior: VotePrior
    n_units: int
    concentration: tuple[float, float]
    rng: np.random.Generator


class _Chain:
    """A chain, and the latest draws that it has kept: rates, shares, atoms, concentrations.

    The first of several chains starts from the majority's labels, others from a growing share of
    random ones, the last from their mirror image if classes may trade names (`flips`). Agreement of
    chains with such different starts shows that they have found all modes.
    """

    def __init__(
        self, run: Run, rng: np.random.Generator, size: int, start: float, flips: bool
    ) -> None:
        # A prior that is learned is each chain's own.
        self.run = run._replace(prior=run.prior._replace(rates=run.prior.rates.copy()))
        self.rng, self.size, self.done = rng, size, 0
        two_unknown = len(run.table.row_of) == 2 and bool(run.table.free.all())
        self.mirrored = flips and two_unknown
        self.random = 0.0 if self.mirrored else start
        self.state = new_state(run.table, run.prior, run.n_units, *run.concentration)
        state = self.state
        kinds = (state.phi, state.shares, state.atom, state.concentration)
        self.retained = [np.empty((size, *kind.shape), dtype=kind.dtype) for kind in kinds]

    def burn_in(self, rules: Rules, sweeps: int, add: Callable[[int], None]) -> None:
        """Set the start, and run the burn-in."""
        run = self.run
        start_state(run.table, run.prior, self.state, self.rng, self.random, mirrored=self.mirrored)
        if self.random or self.mirrored:
            # Who shares rates under random labels goes on to share them under the right ones.
            alone = rules._replace(coupling=ALONE, collapsed_labels=False)
            settling = 0 if rules.coupling == ALONE else sweeps // _SETTLING
            advance(run.table, run.prior, self.state, alone, settling, self.rng)
        # Without a compiler a sweep may take long, and is worth a word.
        for part in spans(sweeps, max(sweeps // 20, 1) if IS_COMPILED else 1):
            advance(run.table, run.prior, self.state, rules, part.stop - part.start, self.rng)
            add(part.stop - part.start)

    def sample(self, rules: Rules, thin: int, add: Callable[[int], None]) -> None:
        """Continue until every `thin`-th sweep since the burn-in has filled the draws.

        Earlier draws were one in `thin / 2` sweeps, so half of them are kept.
        """
        run, state, rng = self.run, self.state, self.rng
        held = self.size // 2 if self.done else 0
        for kind in self.retained:
            kind[:held] = kind[1::2][:held].copy()
        for t in range(held, self.size):
            sweeps = (t + 1) * thin - self.done
            advance(run.table, run.prior, state, rules, sweeps, rng)
            now = (state.phi[state.atom], state.shares, state.atom, state.concentration)
            for kind, value in zip(self.retained, now, strict=True):
                kind[t] = value
            self.done += sweeps
            add(sweeps)
        if rules.orient and len(run.table.row_of) == 2:
            rates, shares, atom, _ = (kind[held:] for kind in self.retained)
            orient(run.table, run.prior, rates, shares, atom, rng)


def run_chains(
    runs: Sequence[Run],
    rules: Rules,
    burn_in_rules: Rules,
    schedule: Schedule,
    ahead: int = 0,
    expect: Callable[[float], None] | None = None,
    accept: Callable[[int, VoteDraws], bool] | None = None,
) -> list[VoteDraws]:
    """Draws of every run; each chain has a random generator of its own.

    The result depends neither on the threads nor on other work. If `accept` (place of the run, its
    draws) is false, the run is continued at twice the thinning, again and again, with equally many
    draws kept. If loops are not compiled, `expect` gets the seconds that this and `ahead` further
    sweeps will take.
    """
    size, chains = schedule.sweeps // schedule.thin, schedule.chains
    each = schedule.burn_in + size * schedule.thin
    progress = _Progress(len(runs) * chains * each, ahead, None if IS_COMPILED else expect)
    flips = rules.flip and schedule.burn_in > 0
    made = [
        [
            _Chain(run, rng, size, c / chains, flips and 0 < c == chains - 1)
            for c, rng in enumerate(run.rng.spawn(chains))
        ]
        for run in runs
    ]
    out: dict[int, VoteDraws] = {}
    thin, left = schedule.thin, list(range(len(runs)))
    while left:

        def sample(batch: list[_Chain], thin: int = thin) -> None:
            for chain in batch:
                if not chain.done:
                    chain.burn_in(burn_in_rules, schedule.burn_in, progress.add)
                chain.sample(rules, thin, progress.add)

        list(map_blocks(sample, _batches([chain for place in left for chain in made[place]])))
        for place in left:
            kinds = zip(*(chain.retained for chain in made[place]), strict=True)
            out[place] = VoteDraws(*(np.stack(kind, axis=1) for kind in kinds))
        if accept is None or chains == 1 or thin >= _LONGEST * schedule.thin:
            break
        left = [place for place in left if not accept(place, out[place])]
        progress.total += len(left) * chains * size * thin
        thin *= 2
    return [out[place] for place in range(len(runs))]


def _batches(chains: list[_Chain]) -> list[list[_Chain]]:
    """Chains in batches, each sampled by one thread."""
    out: list[list[_Chain]] = []
    votes = 0
    for chain in chains:
        size = len(chain.run.table.vote)
        votes += size
        if IS_COMPILED or not out or votes > _BATCH:
            out.append([])
            votes = size
        out[-1].append(chain)
    return out


def start_state(
    table: VoteTable,
    prior: VotePrior,
    state: VoteState,
    rng: np.random.Generator,
    random: float = 0.0,
    *,
    mirrored: bool = False,
) -> None:
    """Set the labels most votes agree with (ties at random), and the rates that follow.

    A share `random` of each label may be drawn at random instead, or, if `mirrored`, the classes
    are swapped. No rates are shared.
    """
    arrays = table.arrays(len(state.atom), state.log_rates.shape[2], state.phi.shape[1])
    hits = np.zeros(state.cells.shape)  # which cells count votes for the label
    n_rows, n_columns = state.phi.shape[1:]
    hits[:] = np.eye(n_columns)[np.arange(n_rows) % n_columns if n_rows > 1 else [1]]
    weights = _CERTAIN * (arrays.votes @ hits.ravel()[arrays.cell]) + table.evidence
    weights += np.log(prior.share)[table.group]
    chances = softmax(weights)
    if mirrored:
        chances = chances[:, ::-1]
    elif random:
        chances = (1 - random) * chances + random * softmax(table.evidence)
    state.labels[:] = rng.multinomial(table.items, chances)
    state.cells[:] = arrays.counts(state.labels, state.cells.shape)
    state.phi[:] = state.cells + prior.rates
    state.phi[:] /= state.phi.sum(axis=2, keepdims=True)


def orient(
    table: VoteTable,
    prior: VotePrior,
    rates: Floats,
    shares: Floats,
    atom: Ints,
    rng: np.random.Generator,
) -> None:
    """Orient two classes in each domain, by a prior in which no rates are shared.

    Rates (T, units, Q, C), shares (T, G, 2) and atoms (T, units) of T draws change in place. Under
    the prior p a shared rate counts once, so three good classifiers that share one would weigh no
    more against a bad one than a single good one. Under the prior q every unit that votes has a
    rate of its own. With T theta the mirror image of a domain, which has the same likelihood, a
    draw stays with probability h = q(theta) / (q(theta) + q(T theta)). This gives exact draws under
    the prior (p(theta) + p(T theta)) h(theta), as does any h(theta) = 1 - h(T theta).

    In q rates beyond .1 or .9 are clipped to these: labels equal to one classifier's votes make it
    perfect, which must not outweigh all others. Domains that share rates with one whose labels are
    partly known keep its orientation.
    """
    n_units, n_domains = atom.shape[1], len(table.free)
    voted = (np.bincount(table.unit, minlength=n_units) > 0).reshape(n_domains, -1)
    # Trading classes swaps the rows of a matrix, or errors and hits.
    axis = -1 if rates.shape[2] == 1 else -2
    bounded = np.clip(rates, _EXTREME, 1 - _EXTREME)
    odds = np.einsum("tuqc,qc->tu", np.log(bounded), prior.rates - np.flip(prior.rates, axis))
    log_ratio = (odds.reshape(len(odds), *voted.shape) * voted).sum(axis=2)
    log_ratio += (np.log(shares) * (prior.share - prior.share[:, ::-1])).sum(axis=2)
    labeled = np.tile(~table.free, (len(atom), 1))
    draw, before = np.arange(len(atom))[:, None], -1
    while labeled.any() and labeled.sum() > before:
        before = labeled.sum()
        seen = np.zeros(atom.shape, dtype=bool)
        units = (labeled[:, :, None] & voted).reshape(atom.shape)
        seen[np.nonzero(units)[0], atom[units]] = True
        labeled |= (seen[draw, atom].reshape(-1, *voted.shape) & voted).any(axis=2)
    turned = (rng.random(labeled.shape) >= expit(log_ratio)) & ~labeled
    units = np.repeat(turned, voted.shape[1], axis=1)
    rates[units] = np.flip(rates[units], axis)
    shares[turned] = shares[turned][:, ::-1]
    atom[units] += n_units  # no longer shared with domains that stay


# --- sweeps -----------------------------------------------------------------------------------


def advance(
    table: VoteTable,
    prior: VotePrior,
    state: VoteState,
    rules: Rules,
    sweeps: int,
    rng: np.random.Generator,
) -> None:
    """Run some sweeps; `state` changes in place."""
    alone = rules.coupling == ALONE and not rules.collapsed_labels
    at_once = max(_SLICE // (len(table.vote) + len(table.evidence)), 1) if alone else 1
    for part in spans(sweeps, _LEARNED_EVERY if rules.learn_rates else max(sweeps, 1)):
        for some in spans(part.stop - part.start, at_once):
            go_on()
            # Only what a model needs is compiled: each of these takes seconds the first time.
            if rules.coupling == DOMAINS:
                _couple_domains(prior, state, rules, rng)
            elif rules.coupling != ALONE:
                _couple_classifiers(prior, state, rules, rng)
            if rules.collapsed_labels:
                _draw_parameters(table, prior, state, rules, rng)
                _draw_labels_collapsed(table, prior, state, rng)
            else:
                _sweep(table, prior, state, rules, some.stop - some.start, rng)
        if rules.learn_rates:
            draw_rates_prior(prior.rates, state.phi[np.unique(state.atom)], rng)


@compiled
def _sweep(
    table: VoteTable,
    prior: VotePrior,
    state: VoteState,
    rules: Rules,
    sweeps: int,
    rng: np.random.Generator,
) -> None:
    """Sweeps over parameters and labels, given which units share rates."""
    for _ in range(sweeps):
        _draw_parameters(table, prior, state, rules, rng)
        _draw_labels(table, state, rng)


@compiled
def _draw_parameters(
    table: VoteTable, prior: VotePrior, state: VoteState, rules: Rules, rng: np.random.Generator
) -> None:
    """Draw rates and class shares given the labels, with a flip of the classes in between.

    phi_lj ~ Beta(a + M_lj, b + R_lj), with the errors M_lj and non-errors R_lj of all units that
    share the rates; for a confusion matrix Dirichlet(prior + counts), row by row; class shares pi ~
    Dirichlet(prior + labels per class) (Platanios, Dubey, Mitchell, 2016: rates of one domain are
    equation 4, with a classifier's votes in place of all items, and shared rates in section 4.2;
    shares are another of equations 3 to 7).
    """
    concentration = np.empty(state.phi.shape)
    concentration[:] = prior.rates
    if rules.coupling == ALONE:
        concentration += state.cells
    else:
        for u in range(len(state.atom)):
            concentration[state.atom[u]] += state.cells[u]
    c = state.phi.shape[2]
    state.phi[:] = draw_rates(concentration.reshape(-1, c), rng).reshape(state.phi.shape)
    if rules.flip:
        _flip(table, prior, state, rules.coupling, rng)
    shares = prior.share.copy()
    _add_labels(table, state, shares)
    state.shares[:] = draw_rates(shares, rng)


def _add_labels_by_arrays(table: VoteTable, state: VoteState, shares: Floats) -> None:
    for s in range(shares.shape[1]):
        counts = table.informs * state.labels[:, s]
        shares[:, s] += np.bincount(table.group, counts, len(shares))


@compiled_or(_add_labels_by_arrays)
def _add_labels(table: VoteTable, state: VoteState, shares: Floats) -> None:
    """Add labels to counts (G, S) of the state shares, from rows with `informs` 1."""
    for r in range(len(table.items)):
        for s in range(shares.shape[1]):
            shares[table.group[r], s] += table.informs[r] * state.labels[r, s]


@compiled
def _couple_domains(
    prior: VotePrior, state: VoteState, rules: Rules, rng: np.random.Generator
) -> None:
    """Draw the clusters of the domains, and their concentration if it is learned."""
    seat_domains(
        state.cells, prior.rates, state.phi, state.atom, state.cluster, state.concentration,
        rules.collapsed, rng,
    )  # fmt: skip
    if rules.learn_alpha:
        n_domains = len(state.cluster)
        customers, used = np.full(1, n_domains), count_distinct(state.cluster, n_domains)
        state.concentration[0] = draw_concentration(
            state.concentration[0], customers, used, 1.0, 1.0, rng
        )


@compiled
def _couple_classifiers(
    prior: VotePrior, state: VoteState, rules: Rules, rng: np.random.Generator
) -> None:
    """Draw the tables of the units and their dishes, and the concentrations that are learned."""
    shared = rules.coupling == FRANCHISE
    seat_classifiers(
        state.cells, prior.rates, state.phi, state.atom, state.table, state.dish,
        state.concentration, shared, rules.collapsed, rng,
    )  # fmt: skip
    n_domains, n_models = state.table.shape
    used = 0
    for d in range(n_domains):
        used += count_distinct(state.table[d], n_models)
    if rules.learn_alpha:
        customers = np.full(n_domains, n_models)
        state.concentration[0] = draw_concentration(
            state.concentration[0], customers, used, 1.0, 1.0, rng
        )
    if rules.learn_gamma and shared:
        dishes = count_distinct(state.atom, len(state.atom))
        state.concentration[1] = draw_concentration(
            state.concentration[1], np.full(1, used), dishes, 1.0, 1.0, rng
        )


def _labels_by_arrays(table: VoteTable, state: VoteState, rng: np.random.Generator) -> None:
    """As the loops below: one sparse product for the labels, one for the counts."""
    n_units, _, k = state.log_rates.shape
    arrays = table.arrays(n_units, k, state.phi.shape[1])
    logits = table.log_joint(state.phi[state.atom][None], state.shares[None], k)[:, :, 0]
    state.labels[:] = arrays.drawn(softmax(logits, out=logits), table.items, rng)
    state.cells[:] = arrays.counts(state.labels, state.cells.shape)


@compiled_or(_labels_by_arrays)
def _draw_labels(table: VoteTable, state: VoteState, rng: np.random.Generator) -> None:
    """Draw the labels of every row, and set the counts of votes that follow.

    log P(l_i = k) = log pi_k + sum_j log P(vote_ij | k), up to a constant, plus the evidence of the
    row (Platanios, Dubey, Mitchell 2016, one of equations 3 to 7). Rows of one item come first, so
    that the array version can use the random numbers in the same order.
    """
    _spread_rates(state)
    state.cells[:] = 0.0
    weights = np.empty(table.row_of.shape[0])
    for r in range(len(table.items)):
        if table.items[r] == 1:
            _weigh(table, state, r, weights)
            state.labels[r] = 0
            state.labels[r, pick(weights, rng)] = 1
    for r in range(len(table.items)):
        if table.items[r] != 1:
            _weigh(table, state, r, weights)
            _multinomial(weights, table.items[r], state.labels[r], rng)
        for s in range(len(weights)):
            if state.labels[r, s] > 0:
                _mark(table, state.cells, r, s, float(state.labels[r, s]))


@compiled_part
def _spread_rates(state: VoteState) -> None:
    """Set log P(vote | row) of every unit from the rates of its atom."""
    n_units, n_rows, n_classes = state.log_rates.shape
    for u in range(n_units):
        phi = state.phi[state.atom[u]]
        for k in range(n_rows):
            for v in range(n_classes):
                if phi.shape[0] > 1:
                    state.log_rates[u, k, v] = math.log(phi[k, v])
                elif k == v:
                    state.log_rates[u, k, v] = math.log(phi[0, 1])
                else:
                    state.log_rates[u, k, v] = math.log(phi[0, 0] / (n_classes - 1))


@compiled_part
def _weigh(table: VoteTable, state: VoteState, r: int, weights: Floats) -> None:
    """Write log P(state, votes, evidence) of row r into `weights` (S,).

    Only votes that are there count, as a missing one has probabilities that sum to 1 (Platanios,
    Dubey, Mitchell, 2016, equation 7).
    """
    n_states, n_domains = table.row_of.shape
    n_models = state.cells.shape[0] // n_domains
    for s in range(n_states):
        weights[s] = math.log(state.shares[table.group[r], s]) + table.evidence[r, s]
    for e in range(table.start[r], table.start[r + 1]):
        u = table.unit[e]
        d = u // n_models
        for s in range(n_states):
            rate = state.log_rates[u, table.row_of[s, d], table.vote[e]]
            weights[s] += table.times[e] * rate


@compiled_part
def _multinomial(weights: Floats, count: int, out: Ints, rng: np.random.Generator) -> None:
    """Write counts of `count` draws, of probabilities proportional to exp(weights), into `out`."""
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


@compiled_part
def _mark(table: VoteTable, cells: Floats, r: int, s: int, amount: float) -> None:
    """Count the votes of row r as `amount` items in state s."""
    n_models = cells.shape[0] // table.row_of.shape[1]
    single = cells.shape[1] == 1
    for e in range(table.start[r], table.start[r + 1]):
        u = table.unit[e]
        k = table.row_of[s, u // n_models]
        if single:
            cells[u, 0, 1 if table.vote[e] == k else 0] += amount * table.times[e]
        else:
            cells[u, k, table.vote[e]] += amount * table.times[e]


@compiled_part
def _root(parent: Ints, d: int) -> int:
    while parent[d] != d:
        parent[d] = parent[parent[d]]
        d = parent[d]
    return d


@compiled_part
def _roots(state: VoteState, coupling: int) -> Ints:
    """The first domain of those that share rates with each domain, directly or not, (D,)."""
    n_domains, n_models = state.table.shape
    out = np.arange(n_domains)
    if coupling in (DOMAINS, FRANCHISE):
        first = np.full(len(state.phi), -1)
        # Domains that share any rates share those of the first classifier, unless single ones do.
        for u in range(0, len(state.atom), n_models if coupling == DOMAINS else 1):
            d = _root(out, u // n_models)
            if first[state.atom[u]] < 0:
                first[state.atom[u]] = d
            other = _root(out, first[state.atom[u]])
            out[max(d, other)] = min(d, other)
        for d in range(n_domains):
            out[d] = _root(out, d)
    return out


def _flip_by_arrays(
    table: VoteTable, prior: VotePrior, state: VoteState, coupling: int, rng: np.random.Generator
) -> None:
    n_domains, n_models = state.table.shape
    n_classes = state.log_rates.shape[1]
    single = state.phi.shape[1] == 1
    if single and n_classes > 2:
        return
    root = _roots(state, coupling)
    one, two, accept = np.zeros_like(root), np.zeros_like(root), np.zeros(n_domains)
    for d in range(n_domains):
        if root[d] == d:
            one[d] = int(rng.random() * n_classes)
            two[d] = (one[d] + 1 + int(rng.random() * (n_classes - 1))) % n_classes
            accept[d] = math.log(2 * max(rng.random(), 1e-300))
    one, two = one[root], two[root]
    # Log-ratio of the prior densities, summed over the rates and shares of domains that share.
    of_atom = np.full(len(state.phi), -1)
    of_atom[state.atom] = root[np.arange(len(state.atom)) // n_models]
    atoms = np.flatnonzero(of_atom >= 0)
    heads = of_atom[atoms]
    if single:
        odds = np.log(state.phi[atoms, 0, 1]) - np.log(state.phi[atoms, 0, 0])
        gain = (prior.rates[0, 0] - prior.rates[0, 1]) * odds
    else:
        first, second = one[heads], two[heads]
        rows = state.phi.reshape(-1, n_classes)
        odds = np.log(rows[atoms * n_classes + second]) - np.log(rows[atoms * n_classes + first])
        gain = ((prior.rates[first] - prior.rates[second]) * odds).sum(axis=1)
    ratio = np.bincount(heads, gain, n_domains)
    first, second = n_classes * np.arange(n_domains) + one, n_classes * np.arange(n_domains) + two
    counts, logs = prior.share.reshape(-1), np.log(state.shares).reshape(-1)
    gain = (counts[first] - counts[second]) * (logs[second] - logs[first])
    ratio += np.bincount(root, np.where(table.free, gain, -np.inf), n_domains)
    trades = (accept < np.minimum(ratio, 0.0))[root]
    if not trades.any():
        return
    for g in np.flatnonzero(trades):
        shares = state.shares[g]
        shares[one[g]], shares[two[g]] = shares[two[g]], shares[one[g]]
        for u in range(g * n_models, (g + 1) * n_models):
            _trade(state.cells[u], one[g], two[g])
        here = table.group == g
        labels = state.labels[:, one[g]].copy()
        state.labels[:, one[g]] = np.where(here, state.labels[:, two[g]], labels)
        state.labels[:, two[g]] = np.where(here, labels, state.labels[:, two[g]])
    for a in atoms[trades[heads]]:
        _trade(state.phi[a], one[of_atom[a]], two[of_atom[a]])


@compiled_or(_flip_by_arrays)
def _flip(
    table: VoteTable, prior: VotePrior, state: VoteState, coupling: int, rng: np.random.Generator
) -> None:
    """Swap two classes in domains that share rates, with Metropolis probability.

    The likelihood stays the same, so the prior decides. A swap is proposed half of the time:
    proposed in every sweep, it could alternate, and every second sweep would show one side only.
    Domains that share no rates swap independently. Domains with anything known of a label never
    swap.
    """
    n_domains, n_models = state.table.shape
    n_classes = state.log_rates.shape[1]
    single = state.phi.shape[1] == 1
    if single and n_classes > 2:
        return
    root = _roots(state, coupling)
    of_atom = np.full(len(state.phi), -1)
    for u in range(len(state.atom)):
        of_atom[state.atom[u]] = root[u // n_models]
    for d in range(n_domains):
        if root[d] != d:
            continue
        one = int(rng.random() * n_classes)
        two = (one + 1 + int(rng.random() * (n_classes - 1))) % n_classes
        log_ratio = 0.0
        for a in range(len(of_atom)):
            if of_atom[a] != d:
                continue
            if single:
                odds = math.log(state.phi[a, 0, 1]) - math.log(state.phi[a, 0, 0])
                log_ratio += (prior.rates[0, 0] - prior.rates[0, 1]) * odds
            else:
                for c in range(n_classes):
                    odds = math.log(state.phi[a, two, c]) - math.log(state.phi[a, one, c])
                    log_ratio += (prior.rates[one, c] - prior.rates[two, c]) * odds
        for g in range(n_domains):
            if root[g] == d:
                odds = math.log(state.shares[g, two]) - math.log(state.shares[g, one])
                log_ratio += (prior.share[g, one] - prior.share[g, two]) * odds
                if not table.free[g]:
                    log_ratio = -math.inf
        if math.log(2 * max(rng.random(), 1e-300)) >= min(log_ratio, 0.0):
            continue
        for a in range(len(of_atom)):
            if of_atom[a] == d:
                _trade(state.phi[a], one, two)
        for g in range(n_domains):
            if root[g] == d:
                shares = state.shares[g]
                shares[one], shares[two] = shares[two], shares[one]
                for j in range(n_models):
                    _trade(state.cells[g * n_models + j], one, two)
        for r in range(len(table.items)):
            if root[table.group[r]] == d:
                labels = state.labels[r]
                labels[one], labels[two] = labels[two], labels[one]


@compiled_part
def _trade(block: Floats, one: int, two: int) -> None:
    """Swap two classes in a unit's counts or rates: rows of a matrix, or errors and hits."""
    if block.shape[0] == 1:
        block[0, 0], block[0, 1] = block[0, 1], block[0, 0]
        return
    for c in range(block.shape[1]):
        block[one, c], block[two, c] = block[two, c], block[one, c]


@compiled
def _draw_labels_collapsed(
    table: VoteTable, prior: VotePrior, state: VoteState, rng: np.random.Generator
) -> None:
    """Draw labels one item at a time with the rates integrated out, given which units share them.

    log P(l_i = k | rest) = log pi_k + sum_j log [(prior + n_jc) / sum_c (prior + n_jc)], up to a
    constant, plus the row's evidence: n_j are the counts of the atom of classifier j without item i
    (and with its earlier votes), c the column that vote_ij falls into if the label is k, as an
    error one of K - 1 classes. This is the expectation of P(vote_ij | k) under phi_lj ~ Beta(a +
    M_lj, b + R_lj) (Platanios, Dubey, Mitchell, 2016, section 4.2).
    """
    n_states = table.row_of.shape[0]
    sums = np.zeros(state.phi.shape)
    for u in range(len(state.atom)):
        sums[state.atom[u]] += state.cells[u]
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
            new = pick(weights, rng)
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
    """Add one item of row r in state s (sign 1), or take it away (-1).

    Returns the log predictive probability of its votes, 0 if it is taken away.
    """
    n_models = len(state.atom) // table.row_of.shape[1]
    n_classes = state.log_rates.shape[1]
    out = 0.0
    for e in range(table.start[r], table.start[r + 1]):
        u = table.unit[e]
        k = table.row_of[s, u // n_models]
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
