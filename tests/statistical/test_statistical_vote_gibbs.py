"""Geweke's test of every sampler of votes: two ways to draw from the joint distribution agree.

One draws parameters, labels and votes from the prior; the other alternates sweeps with fresh votes
given the labels. A mistake in any conditional shows (Geweke 2004, Getting it right).
"""

from __future__ import annotations

import numpy as np
import pytest

from fewlabels.methods.bee.gibbs import advance, new_state
from fewlabels.methods.bee.table import (
    ALONE,
    DOMAINS,
    FRANCHISE,
    TABLES,
    Rules,
    VotePrior,
    VoteState,
    VoteTable,
)

pytestmark = pytest.mark.slow

N_DOMAINS, N_MODELS, N_ITEMS = 3, 3, 5
SWEEPS = 12_000


def votes_table(n_classes: int, rng: np.random.Generator) -> VoteTable:
    """Every item a row of its own; some votes are missing for good, some are given twice."""
    rows = [
        [
            d * N_MODELS + j
            for j in range(N_MODELS)
            for _ in range(int(rng.choice([0, 1, 2], p=[0.15, 0.75, 0.1])))
        ]
        for d in range(N_DOMAINS)
        for _ in range(N_ITEMS)
    ]
    n = len(rows)
    entries = sum(len(row) for row in rows)
    return VoteTable(
        start=np.cumsum([0, *(len(row) for row in rows)]),
        unit=np.array([u for row in rows for u in row], dtype=np.int64),
        vote=np.zeros(entries, dtype=np.int64),
        times=np.ones(entries),
        items=np.ones(n, dtype=np.int64),
        group=np.repeat(np.arange(N_DOMAINS), N_ITEMS),
        evidence=np.zeros((n, n_classes)),
        informs=np.ones(n),
        free=np.ones(N_DOMAINS, dtype=bool),
        row_of=np.tile(np.arange(n_classes)[:, None], (1, N_DOMAINS)),
    )


def crp(n: int, alpha: float, rng: np.random.Generator) -> np.ndarray:
    """Places of n customers."""
    places: list[int] = []
    for _ in range(n):
        sizes = np.bincount(places, minlength=max(places, default=-1) + 1).astype(float)
        weights = np.append(sizes, alpha)
        places.append(int(rng.choice(len(weights), p=weights / weights.sum())))
    return np.array(places)


def prior_atoms(coupling: int, concentration: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Who shares rates with whom, (units,)."""
    units = np.arange(N_DOMAINS * N_MODELS)
    if coupling == ALONE:
        return units
    if coupling == DOMAINS:
        return (
            crp(N_DOMAINS, concentration[0], rng)[:, None] * N_MODELS + np.arange(N_MODELS)
        ).ravel()
    tables = [crp(N_MODELS, concentration[0], rng) for _ in range(N_DOMAINS)]
    sizes = [t.max() + 1 for t in tables]
    total = sum(sizes)
    dishes = np.arange(total) if coupling == TABLES else crp(total, concentration[1], rng)
    starts = np.cumsum([0, *sizes[:-1]])
    return np.concatenate([dishes[s + t] for s, t in zip(starts, tables, strict=True)])


def draw_votes(
    table: VoteTable, rates: np.ndarray, labels: np.ndarray, rng: np.random.Generator
) -> VoteTable:
    """Fresh votes from P(vote | class) (units, K, K) and labels (rows,)."""
    label = np.repeat(labels, np.diff(table.start))
    p = rates[table.unit, label]
    votes = (rng.random(len(p))[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    # A table keeps arrays that it has made of its votes: other votes, another table.
    return table._replace(vote=np.minimum(votes, rates.shape[2] - 1))


def spread(phi: np.ndarray, n_classes: int) -> np.ndarray:
    """P(vote | class) of rates (..., Q, C)."""
    if phi.shape[-2] > 1:
        return phi
    out = np.empty((*phi.shape[:-2], n_classes, n_classes))
    out[:] = (phi[..., 0, 0] / (n_classes - 1))[..., None, None]
    out[..., np.arange(n_classes), np.arange(n_classes)] = phi[..., 0, 1][..., None]
    return out


def functionals(atom, rates, shares, concentration, labels) -> list[float]:
    """What both ways must agree on."""
    error = rates.mean(axis=0)
    first = rates.reshape(len(rates), -1)
    k = len(np.unique(atom))
    units = atom.reshape(N_DOMAINS, N_MODELS)
    return [
        float(first[0, 0]), float(first[0, 0] ** 2), float(first[-1, -1]), float(error.ravel()[0]),
        float(first[0, 0] * first[-1, 0]), float(first[0, -1] * shares[0, 0]),
        float(shares[0, 0]), float(shares[0, 0] ** 2), float(shares[-1, -1]),
        float(np.mean(labels == 0)), float(np.mean(labels == 0) ** 2),
        float(k), float(k**2), float(units[0, 0] == units[1, 0]), float(units[0, 0] == units[0, 1]),
        float(units[0, 0] == units[2, 2]), float(np.log(concentration[0])),
        float(np.log(concentration[1])),
    ]  # fmt: skip


def geweke(coupling, prior_rates, n_classes, rules, seed) -> np.ndarray:
    """z-scores of the functionals that vary."""
    rng = np.random.default_rng(seed)
    table = votes_table(n_classes, rng)
    prior = VotePrior(np.full((N_DOMAINS, n_classes), 1.5), prior_rates)
    learned = np.array([rules.learn_alpha, rules.learn_gamma])

    def from_prior():
        concentration = np.where(learned, np.maximum(rng.standard_gamma(1.0, 2), 1e-8), [0.8, 1.3])
        atom = prior_atoms(coupling, concentration, rng)
        phi = np.stack([[rng.dirichlet(row) for row in prior_rates] for _ in range(atom.max() + 1)])
        rates = np.maximum(phi[atom], 1e-12)
        shares = rng.dirichlet(np.full(n_classes, 1.5), N_DOMAINS)
        u = rng.random(len(table.items))
        labels = (u[:, None] > np.cumsum(shares[table.group], axis=1)).sum(axis=1)
        return atom, rates, shares, concentration, np.minimum(labels, n_classes - 1)

    independent = np.array([functionals(*from_prior()) for _ in range(SWEEPS)])
    state = new_state(table, prior, N_DOMAINS * N_MODELS, 0.8, 1.3)
    table = start(table, state, from_prior(), coupling, rng)
    chain = np.empty_like(independent)
    for t in range(SWEEPS):
        advance(table, prior, state, rules, 1, rng)
        labels = state.labels.argmax(axis=1)
        if rules.collapsed_labels:
            redraw_rates(prior, state, rng)
        rates = spread(state.phi[state.atom], n_classes)
        table = draw_votes(table, rates, labels, rng)
        recount(table, state, labels)
        chain[t] = functionals(
            state.atom, state.phi[state.atom], state.shares, state.concentration, labels
        )
    batches = chain.reshape(100, -1, chain.shape[1]).mean(axis=1)
    gap = chain.mean(axis=0) - independent.mean(axis=0)
    error = np.sqrt(batches.var(axis=0, ddof=1) / 100 + independent.var(axis=0) / SWEEPS)
    varies = error > 0
    assert (np.abs(gap[~varies]) < 1e-9).all()
    return gap[varies] / error[varies]


def redraw_rates(prior: VotePrior, state: VoteState, rng) -> None:
    """Rates given the labels, which such a sweep leaves integrated out."""
    sums = np.zeros(state.phi.shape)
    np.add.at(sums, state.atom, state.cells)
    for a in np.unique(state.atom):
        for q, row in enumerate(prior.rates):
            state.phi[a, q] = np.maximum(rng.dirichlet(row + sums[a, q]), 1e-12)


def start(table: VoteTable, state: VoteState, drawn, coupling: int, rng) -> VoteTable:
    """Labels and votes of a draw from the prior; seats are those of a new state."""
    _, rates, shares, _, labels = drawn
    state.labels[:] = 0
    state.labels[np.arange(len(labels)), labels] = 1
    state.shares[:] = shares
    state.phi[:] = rates
    table = draw_votes(table, spread(rates, table.evidence.shape[1]), labels, rng)
    recount(table, state, labels)
    return table


def recount(table: VoteTable, state: VoteState, labels: np.ndarray) -> None:
    """Counts of votes under the labels."""
    label = np.repeat(labels, np.diff(table.start))
    state.cells[:] = 0
    if state.cells.shape[1] == 1:
        np.add.at(state.cells, (table.unit, 0, (table.vote == label).astype(int)), 1.0)
    else:
        np.add.at(state.cells, (table.unit, label, table.vote), 1.0)


ONE_RATE = np.array([[1.0, 4.0]])
TWO_ROWS = np.array([[4.0, 1.0], [1.0, 4.0]])
THREE_ROWS = np.array([[4.0, 0.5, 0.5], [0.5, 4.0, 0.5], [0.5, 0.5, 4.0]])


@pytest.mark.parametrize(
    ("coupling", "prior_rates", "n_classes", "collapsed", "collapsed_labels", "learn"),
    [
        pytest.param(ALONE, ONE_RATE, 2, True, False, False, id="bee"),
        pytest.param(ALONE, ONE_RATE, 3, True, False, False, id="bee-three-classes"),
        pytest.param(ALONE, THREE_ROWS, 3, True, False, False, id="confusion-bee"),
        pytest.param(DOMAINS, ONE_RATE, 2, True, False, True, id="cbee-learned"),
        pytest.param(DOMAINS, ONE_RATE, 2, False, False, False, id="cbee-uncollapsed"),
        pytest.param(DOMAINS, ONE_RATE, 2, True, True, False, id="cbee-collapsed-labels"),
        pytest.param(DOMAINS, TWO_ROWS, 2, True, False, True, id="confusion-cbee"),
        pytest.param(
            DOMAINS, THREE_ROWS, 3, True, True, False, id="confusion-cbee-collapsed-labels"
        ),
        pytest.param(FRANCHISE, ONE_RATE, 2, True, False, True, id="hcbee-learned"),
        pytest.param(FRANCHISE, ONE_RATE, 2, False, False, False, id="hcbee-uncollapsed"),
        pytest.param(FRANCHISE, THREE_ROWS, 3, True, False, True, id="confusion-hcbee"),
        pytest.param(FRANCHISE, ONE_RATE, 2, True, True, False, id="hcbee-collapsed-labels"),
        pytest.param(TABLES, ONE_RATE, 2, True, False, True, id="cbcc-learned"),
        pytest.param(TABLES, ONE_RATE, 2, True, True, False, id="cbcc-collapsed-labels"),
        pytest.param(TABLES, TWO_ROWS, 2, False, False, False, id="cbcc-uncollapsed"),
    ],
)
@pytest.mark.parametrize("flip", [True, False])
def test_sweeps_leave_the_joint_distribution_as_it_is(
    coupling, prior_rates, n_classes, collapsed, collapsed_labels, learn, flip
):
    rules = Rules(
        coupling, flip, collapsed, collapsed_labels, learn, learn and coupling == FRANCHISE
    )
    z = geweke(coupling, prior_rates, n_classes, rules, seed=coupling + 10 * n_classes)
    assert np.abs(z).max() < 4.2, np.round(z, 2)
