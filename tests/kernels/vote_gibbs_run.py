"""What a chain of every kind ends with, as JSON: run with a compiler and without."""

from __future__ import annotations

import json

import numpy as np

from fewlabels.kernels import compiled
from fewlabels.kernels.vote_chains import new_state
from fewlabels.kernels.vote_gibbs import advance, start_state
from fewlabels.kernels.vote_table import Rules, VotePrior, VoteTable


def run(coupling, collapsed, collapsed_labels, n_classes, sweeps):
    rng = np.random.default_rng(0)
    d, m, n = 3, 3, 30
    truth = rng.integers(n_classes, size=n)
    unit = (np.arange(n)[:, None] // 10 * m + np.arange(m)).ravel()
    vote = np.where(
        rng.random(n * m) < 0.25, rng.integers(n_classes, size=n * m), np.repeat(truth, m)
    )
    table = VoteTable(
        start=np.arange(0, n * m + 1, m),
        unit=unit,
        vote=vote,
        times=np.ones(n * m),
        items=np.where(np.arange(n) % 5, 1, 4),
        group=np.arange(n) // 10,
        evidence=np.zeros((n, n_classes)),
        informs=np.ones(n),
        free=np.ones(d, dtype=bool),
        class_of=np.tile(np.arange(n_classes)[:, None], (1, d)),
    )
    rates = (
        np.array([[1.0, 10.0]]) if n_classes == 2 else np.where(np.eye(n_classes) > 0, 10.0, 0.5)
    )
    prior = VotePrior(np.ones((d, n_classes)), rates)
    state = new_state(table, prior, d * m, 1.0, 1.0)
    start_state(table, prior, state, rng)
    rules = Rules(coupling, True, collapsed, collapsed_labels, True, True)
    total = np.zeros(d * m)
    for _ in range(sweeps):
        advance(table, prior, state, rules, 1, rng)
        total += state.phi[state.atom][:, 0, 0]
    return [
        state.labels.tolist(),
        state.atom.tolist(),
        state.shares.tolist(),
        state.concentration.tolist(),
        (total / sweeps).tolist(),
    ]


def everything():
    out = {"compiled": compiled.IS_COMPILED}
    for coupling in range(4):
        for collapsed in (True, False):
            for k in (2, 3):
                # Labels item by item are drawn by the same loops in both.
                out[f"{coupling} {collapsed} {k}"] = run(coupling, collapsed, True, k, 15)
        out[f"mean {coupling}"] = run(coupling, True, False, 2, 600)[-1]
    return out


if __name__ == "__main__":
    print(json.dumps(everything()))
