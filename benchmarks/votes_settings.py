"""The acceptance settings: error of the rates on simulated votes, the same ones for all methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import fewlabels as fl
from fewlabels.kernels.arrays import Array, Floats, Ints
from parts import SEED, Part, Plan, Record, stream
from runs import small, table
from votes_methods import BASELINES, PAIRED, Method, paired, sampled

_WRONG, _RIGHT = 1.0, 10.0
"""Prior counts of errors and hits, the paper's."""


class World(NamedTuple):
    """Votes (n, N) of domains (n,), and error rates (D, N)."""

    votes: Ints
    domain: Ints
    error: Floats

    def predictions(self) -> fl.Predictions:
        """The votes, domains in order."""
        return fl.Predictions(
            votes=self.votes, domain=[f"d{d:04d}" for d in self.domain],
            models=[f"c{j}" for j in range(self.votes.shape[1])], classes=(0, 1),
        )  # fmt: skip


class Size(NamedTuple):
    """Domains, classifiers, and items of a domain."""

    domains: int
    models: int
    items: int


def _restaurant(guests: int, concentration: float, rng: np.random.Generator) -> Ints:
    """Tables of so many guests, by the Chinese restaurant process."""
    tables = np.zeros(guests, dtype=np.int64)
    for g in range(1, guests):
        weights = np.append(np.bincount(tables[:g]), concentration)
        tables[g] = rng.choice(len(weights), p=weights / weights.sum())
    return tables


def _franchise(size: Size, rng: np.random.Generator) -> Ints:
    """Tables of every domain by itself, numbered through, which share dishes."""
    seated = np.stack([_restaurant(size.models, 1.0, rng) for _ in range(size.domains)])
    tables = seated + np.cumsum([0, *(row.max() + 1 for row in seated[:-1])])[:, None]
    return _restaurant(int(tables.max()) + 1, 1.0, rng)[tables]


GROUPS: Mapping[str, Callable[[Size, np.random.Generator], Ints]] = {
    "cbee": lambda size, rng: (
        _restaurant(size.domains, 1.0, rng)[:, None] * size.models + np.arange(size.models)
    ),
    "hcbee": _franchise,
}
"""Who shares rates with whom, (D, N), under the prior of each model with alpha = gamma = 1."""


def from_prior(name: str, size: Size, rng: np.random.Generator) -> World:
    """A world drawn from the prior of a model, by its name."""
    groups = GROUPS[name](size, rng)
    error = rng.beta(_WRONG, _RIGHT, int(groups.max()) + 1)
    return draw_votes(error[groups], rng.dirichlet(np.ones(2), size.domains), size, rng)


def draw_votes(error: Floats, shares: Floats, size: Size, rng: np.random.Generator) -> World:
    """Labels by the shares (D, 2), and votes that differ from them at the error rates (D, N)."""
    domain = np.repeat(np.arange(size.domains), size.items)
    labels = _draw(shares[domain], rng)
    same = np.eye(2)[labels][:, None]
    wrong = error[domain][:, :, None]
    votes = _draw(same * (1 - wrong) + (1 - same) * wrong, rng)
    return World(votes, domain, error)


def _draw(p: Floats, rng: np.random.Generator) -> Ints:
    """One class for each of the distributions (..., K)."""
    above: Array = p.cumsum(axis=-1) < rng.random((*p.shape[:-1], 1))
    return np.minimum(above.sum(axis=-1), p.shape[-1] - 1)


_PROFILES = np.array(
    [[0.05, 0.1, 0.2, 0.3, 0.4], [0.3, 0.3, 0.1, 0.1, 0.2], [0.4, 0.2, 0.3, 0.05, 0.1]]
)


def _profiles(size: Size, rng: np.random.Generator) -> World:
    """Three profiles of error rates in turns, shares uniform on (.3, .7)."""
    error = _PROFILES[np.arange(size.domains) % 3]
    positive = rng.uniform(0.3, 0.7, size.domains)
    shares = np.stack([1 - positive, positive], axis=1)
    return draw_votes(error, shares, size, rng)


SETTINGS: Mapping[str, Callable[[np.random.Generator], World]] = {
    "S1": lambda rng: from_prior("cbee", Size(20, 5, 20), rng),
    "S2": lambda rng: from_prior("hcbee", Size(10, 8, 20), rng),
    "S3": lambda rng: _profiles(Size(15, 5, 30), rng),
    "S4": lambda rng: _profiles(Size(6, 5, 2000), rng),
}
"""Settings in which coupling should help, or should not."""


_SWEEPS = {"burn_in": 500, "sweeps": 1500, "thin": 5}
_REPLICATES = {"S1": 20, "S2": 20, "S3": 20, "S4": 4}
_SAMPLED = ("cbcc", "bee", "cbee", "hcbee")
_LARGE_ONLY = ("agreement-rates", "crowd-svm")

_PAIRS = (
    ("S1", "bee", "cbee"), ("S2", "bee", "hcbee"), ("S2", "cbee", "hcbee"), ("S3", "bee", "cbee"),
    ("S4", "bee", "cbee"), ("S4", "bee", "hcbee"), ("S1", "bee", "hcbee"), ("S3", "bee", "hcbee"),
)  # fmt: skip
"""Setting, worse and better model."""


def methods_of(setting: str) -> dict[str, Method]:
    """What is compared: two methods are too slow, or have too few items, but for S4."""
    first = ("majority-vote", "dawid-skene", "dawid-skene, one rate")
    found = {name: BASELINES[name] for name in first}
    found |= {name: sampled(name, **_SWEEPS) for name in _SAMPLED}
    if setting == "S4":
        found |= {name: BASELINES[name] for name in _LARGE_ONLY}
    return found


def settings_run(data: Path, setting: str, replicate: int) -> list[Record]:
    """Squared error of every method on one world, the mean over domains and classifiers."""
    world = SETTINGS[setting](stream("votes", setting, replicate))
    predictions = world.predictions()
    return [
        {"setting": setting, "replicate": replicate, "method": name,
         "error": float(((method(predictions, replicate).error - world.error) ** 2).mean())}
        for name, method in methods_of(setting).items()
    ]  # fmt: skip


def settings_blocks(records: pd.DataFrame, plan: Plan) -> str:
    """Mean squared errors, and differences between pairs of models, world by world."""
    methods = list(dict.fromkeys(records["method"]))
    rows, pairs = [], []
    for setting, own in records.groupby("setting", sort=False):
        errors = own.pivot(index="replicate", columns="method", values="error")
        mean = errors.mean()
        best = mean.idxmin()
        cells = [small(mean[m]) if m in mean else "" for m in methods]
        cells = [f"**{c}**" if m == best else c for c, m in zip(cells, methods, strict=True)]
        rows.append([f"{setting}, {len(errors)} replicates", *cells])
        pairs += [
            [f"{setting}: {a} - {b}", *paired(errors, a, b)] for s, a, b in _PAIRS if s == setting
        ]
    return f"{table(['', *methods], rows)}\n\n{table(['pair', *PAIRED], pairs)}"


SETTINGS_PART = Part(
    lambda plan: [  # S4 last, as it is long
        {"setting": name, "replicate": r}
        for name in plan.some(list(SETTINGS))
        for r in range(2 if plan.quick else _REPLICATES[name])
    ],
    settings_run, settings_blocks,
    "20 replicates (S4: 4), 500 + 1,500 sweeps of one chain, alpha = gamma = 1, "
    f"seed {SEED}; ± is the standard error of the mean of paired differences",
)  # fmt: skip
