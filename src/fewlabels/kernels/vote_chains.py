"""The Gibbs driver: several chains from the majority vote, on threads, with what they drew."""

from __future__ import annotations

from threading import Lock

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import map_blocks, report, spans
from fewlabels.kernels.vote_gibbs import advance, start_state
from fewlabels.kernels.vote_table import (
    Rules,
    Schedule,
    VoteDraws,
    VotePrior,
    VoteState,
    VoteTable,
)


class _Told:
    """Counts sweeps of all chains, and reports them now and then."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.last = total, 0, 0
        self.lock = Lock()

    def add(self, sweeps: int) -> None:
        with self.lock:
            self.done += sweeps
            if self.done - self.last >= self.total / 100 or self.done == self.total:
                self.last = self.done
                report(self.done, self.total)


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


def run_chains(
    table: VoteTable,
    prior: VotePrior,
    rules: Rules,
    burn_in_rules: Rules,
    n_units: int,
    concentration: tuple[float, float],
    schedule: Schedule,
    rng: np.random.Generator,
) -> VoteDraws:
    """Run every chain with a generator of its own; the answer does not depend on the threads."""
    kept = schedule.sweeps // schedule.thin
    told = _Told(schedule.chains * (schedule.burn_in + kept * schedule.thin))

    def run(generator: np.random.Generator) -> tuple[Floats, Floats, Ints, Floats]:
        state = new_state(table, prior, n_units, *concentration)
        start_state(table, prior, state, generator)
        for part in spans(schedule.burn_in, max(schedule.burn_in // 20, 1)):
            advance(table, prior, state, burn_in_rules, part.stop - part.start, generator)
            told.add(part.stop - part.start)
        rates = np.empty((kept, *state.phi.shape))
        shares = np.empty((kept, *state.shares.shape))
        atom = np.empty((kept, n_units), dtype=np.int64)
        strength = np.empty((kept, 2))
        for t in range(kept):
            advance(table, prior, state, rules, schedule.thin, generator)
            told.add(schedule.thin)
            rates[t] = state.phi[state.atom]
            shares[t], atom[t], strength[t] = state.shares, state.atom, state.concentration
        return rates, shares, atom, strength

    parts = list(map_blocks(run, rng.spawn(schedule.chains)))
    stacked = (np.stack(kind, axis=1) for kind in zip(*parts, strict=True))
    return VoteDraws(*stacked)
