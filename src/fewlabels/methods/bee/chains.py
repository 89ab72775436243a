"""The Gibbs driver: several chains from the majority vote, on threads, with what they drew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from time import perf_counter
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import map_blocks, report, spans
from fewlabels.methods.bee.arrays import ChainArrays
from fewlabels.methods.bee.compiled import IS_COMPILED
from fewlabels.methods.bee.gibbs import advance, start_state
from fewlabels.methods.bee.table import (
    Rules,
    Schedule,
    VoteDraws,
    VotePrior,
    VoteState,
    VoteTable,
)

_BATCH = 2**16
"""Votes of chains that advance at once: with more of them numpy's overhead does not matter."""

_ENOUGH = 0.3
"""Seconds of sampling that show how long the rest will take."""


class _Told:
    """Counts sweeps of all chains, and reports them now and then.

    And says once, soon after the start, how many seconds these and `ahead` more will take.
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
    """Arrays of one chain, everyone in a group of their own."""
    n_states, n_domains = table.class_of.shape
    n_models = n_units // n_domains
    n_classes = max(int(table.class_of.max()) + 1, prior.rates.shape[1])
    units = np.arange(n_units)
    size = (n_units, *prior.rates.shape)
    return VoteState(
        labels=np.zeros((len(table.items), n_states), dtype=np.int64),
        shares=np.full((len(table.free), n_states), 1 / n_states),
        cells=np.zeros(size),
        atom=units.copy(),
        phi=np.zeros(size),
        log_rates=np.zeros((n_units, n_classes, n_classes)),
        concentration=np.array([alpha, gamma]),
        cluster=np.arange(n_domains),
        table=np.tile(np.arange(n_models), (n_domains, 1)),
        dish=units.reshape(n_domains, n_models).copy(),
    )


class Run(NamedTuple):
    """What a model is fitted on; concentration is alpha and gamma."""

    table: VoteTable
    prior: VotePrior
    n_units: int
    concentration: tuple[float, float]
    rng: np.random.Generator


class _Chain(NamedTuple):
    run: Run
    state: VoteState
    rng: np.random.Generator


def run_chains(
    runs: Sequence[Run],
    rules: Rules,
    burn_in_rules: Rules,
    schedule: Schedule,
    ahead: int = 0,
    expect: Callable[[float], None] | None = None,
) -> list[VoteDraws]:
    """Draws of every run, each chain with a generator of its own.

    The answer depends neither on the threads nor on what else runs. Where loops are not compiled
    `expect` is told how many seconds this will take, with `ahead` more sweeps like these to come.
    """
    kept = schedule.sweeps // schedule.thin
    each = schedule.burn_in + kept * schedule.thin
    told = _Told(len(runs) * schedule.chains * each, ahead, None if IS_COMPILED else expect)
    # Without a compiler a sweep may take long, and is worth a word.
    step = max(schedule.burn_in // 20, 1) if IS_COMPILED else 1

    def sample(chains: list[_Chain]) -> list[tuple[Floats, Floats, Ints, Floats]]:
        sampler = _Loops(chains) if IS_COMPILED else _arrays(chains)
        for part in spans(schedule.burn_in, step):
            sampler.advance(burn_in_rules, part.stop - part.start)
            told.add(len(chains) * (part.stop - part.start))
        drawn = [
            (
                np.empty((kept, *state.phi.shape)),
                np.empty((kept, *state.shares.shape)),
                np.empty((kept, *state.atom.shape), dtype=np.int64),
                np.empty((kept, 2)),
            )
            for state in sampler.states
        ]
        for t in range(kept):
            sampler.advance(rules, schedule.thin)
            told.add(len(chains) * schedule.thin)
            for state, (rates, shares, atom, strength) in zip(sampler.states, drawn, strict=True):
                rates[t] = state.phi[state.atom]
                shares[t], atom[t], strength[t] = state.shares, state.atom, state.concentration
        return drawn

    chains = [
        _Chain(run, new_state(run.table, run.prior, run.n_units, *run.concentration), rng)
        for run in runs
        for rng in run.rng.spawn(schedule.chains)
    ]
    batches = [[chain] for chain in chains] if IS_COMPILED else _batches(chains)
    parts = [part for drawn in map_blocks(sample, batches) for part in drawn]
    out = []
    for own in spans(len(parts), schedule.chains):
        stacked = (np.stack(kind, axis=1) for kind in zip(*parts[own], strict=True))
        out.append(VoteDraws(*stacked))
    return out


class _Loops:
    """A chain of its own, by compiled loops."""

    def __init__(self, chains: list[_Chain]) -> None:
        ((self.run, state, self.rng),) = chains
        self.states = [state]
        start_state(self.run.table, self.run.prior, state, self.rng)

    def advance(self, rules: Rules, sweeps: int) -> None:
        """Run some sweeps."""
        advance(self.run.table, self.run.prior, self.states[0], rules, sweeps, self.rng)


def _arrays(chains: list[_Chain]) -> ChainArrays:
    for run, state, rng in chains:
        start_state(run.table, run.prior, state, rng)
    return ChainArrays(
        [run.table for run, _, _ in chains],
        chains[0].run.prior,
        [state for _, state, _ in chains],
        [rng for _, _, rng in chains],
    )


def _batches(chains: list[_Chain]) -> list[list[_Chain]]:
    """Neighbours whose arrays can stand side by side, while that makes them quicker."""
    out: list[list[_Chain]] = []
    votes = 0
    for chain in chains:
        size = len(chain.run.table.vote)
        if not out or votes + size > _BATCH or not _alike(out[-1][0].run, chain.run):
            out.append([])
            votes = 0
        out[-1].append(chain)
        votes += size
    return out


def _alike(one: Run, other: Run) -> bool:
    """Whether two runs have the same units, states and prior."""
    return (
        one.n_units == other.n_units
        and np.array_equal(one.table.class_of, other.table.class_of)
        and np.array_equal(one.prior.share, other.prior.share)
        and np.array_equal(one.prior.rates, other.prior.rates)
    )
