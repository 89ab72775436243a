"""What chains of every kind draw, as JSON: run with a compiler and without."""

from __future__ import annotations

import json

import numpy as np

from fewlabels.kernels import compiled
from fewlabels.methods.bee.gibbs import Run, run_chains
from fewlabels.methods.bee.table import Rules, Schedule, VotePrior, VoteTable

DOMAINS, MODELS, SWEEPS = 3, 3, 6
TIED = np.array([[0, 0, 0], [1, 0, 1], [1, 1, 1], [0, 1, 0]])
"""States of rows whose three domains are one item."""


def votes_table(rng, n, n_classes, tied):
    """Rows of one item and of several, some with few votes, some with votes given twice."""
    truth = rng.integers(n_classes, size=n)
    units = DOMAINS * MODELS if tied else MODELS
    given = [np.flatnonzero(rng.random(units) < 0.8) for _ in range(n)]
    start = np.cumsum([0, *(len(own) for own in given)])
    row = np.repeat(np.arange(n), np.diff(start))
    unit = np.concatenate(given)
    if not tied:
        unit = unit + row * DOMAINS // n * MODELS
    vote = np.where(rng.random(len(row)) < 0.25, rng.integers(n_classes, size=len(row)), truth[row])
    class_of = TIED if tied else np.tile(np.arange(n_classes)[:, None], (1, DOMAINS))
    evidence = np.zeros((n, len(class_of)))
    evidence[::7, 0] = -np.inf
    group = np.zeros(n, dtype=np.int64) if tied else np.arange(n) * DOMAINS // n
    return VoteTable(
        start=start,
        unit=unit,
        vote=vote,
        times=np.where(np.arange(len(row)) % 9, 1.0, 2.0),
        items=np.where(np.arange(n) % 5, 1, 4),
        group=group,
        evidence=evidence,
        informs=np.where(np.arange(n) % 11, 1.0, 0.0),
        free=np.array([True]) if tied else np.array([True, True, False]),
        row_of=class_of,
    )


def draws(rules, burn_in_rules, n_classes, *, one_rate, tied=False):
    """Two chains on each of two tables of other sizes."""
    rng = np.random.default_rng(n_classes)
    rates = (
        np.array([[1.0, 3.0]])
        if one_rate
        else np.where(np.eye(n_classes) > 0, 3.0, 1 / (n_classes - 1))
    )
    runs = []
    for n in (30, 45):
        table = votes_table(rng, n, n_classes, tied)
        share = np.ones((len(table.free), len(table.row_of)))
        prior = VotePrior(share, rates)
        runs.append(Run(table, prior, DOMAINS * MODELS, (1.0, 1.0), rng))
    found = run_chains(runs, rules, burn_in_rules, Schedule(SWEEPS, SWEEPS, 3, 2))
    return [[kind.tolist() for kind in (d.rates, d.shares, d.atom, d.concentration)] for d in found]


def everything():
    out = {}
    for coupling in range(4):
        for collapsed in (True, False):
            for k, one_rate in ((2, True), (2, False), (3, True), (3, False)):
                rules = Rules(coupling, True, collapsed, False, True, True)
                name = f"{coupling} collapsed={collapsed} classes={k} one rate={one_rate}"
                out[name] = draws(rules, rules, k, one_rate=one_rate)
                if k == 2:
                    rules = rules._replace(flip=False)
                    out[f"{name} tied"] = draws(rules, rules, k, one_rate=one_rate, tied=True)
        burn_in = Rules(coupling, True, True, True, True, True)
        after = burn_in._replace(collapsed=False, collapsed_labels=False)
        out[f"{coupling} labels collapsed"] = draws(after, burn_in, 3, one_rate=False)
    return out


if __name__ == "__main__":
    print(json.dumps({"compiled": compiled.IS_COMPILED, "draws": everything()}))
