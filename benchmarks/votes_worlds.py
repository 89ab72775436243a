"""Votes drawn from the models' own priors, and the acceptance settings: truth known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

import fewlabels as fl
from fewlabels.kernels.arrays import Array, Floats, Ints

_WRONG, _RIGHT = 1.0, 10.0
"""Prior counts of errors and hits, the paper's."""


class World(NamedTuple):
    """Votes (n, N), -1 missing, of domains (n,); error rates (D, N), class shares (D, K)."""

    votes: Ints
    domain: Ints
    error: Floats
    shares: Floats

    def predictions(self) -> fl.Predictions:
        """The votes, domains in order."""
        return fl.Predictions(
            votes=self.votes,
            domain=[f"d{d:04d}" for d in self.domain],
            models=[f"c{j}" for j in range(self.votes.shape[1])],
            classes=tuple(range(self.shares.shape[1])),
        )


class Size(NamedTuple):
    """Domains, classifiers, items of a domain, classes, and the share of votes that are missing."""

    domains: int
    models: int
    items: int
    classes: int = 2
    missing: float = 0.0


def _restaurant(guests: int, concentration: float, rng: np.random.Generator) -> Ints:
    """Tables of so many guests, by the Chinese restaurant process."""
    tables = np.zeros(guests, dtype=np.int64)
    for g in range(1, guests):
        weights = np.append(np.bincount(tables[:g]), concentration)
        tables[g] = rng.choice(len(weights), p=weights / weights.sum())
    return tables


def _own(size: Size, rng: np.random.Generator) -> Ints:
    return np.arange(size.domains * size.models).reshape(size.domains, size.models)


def _by_domain(size: Size, rng: np.random.Generator) -> Ints:
    cluster = _restaurant(size.domains, 1.0, rng)
    return cluster[:, None] * size.models + np.arange(size.models)


def _tables(size: Size, rng: np.random.Generator) -> Ints:
    """Tables of every domain by itself, numbered through."""
    seated = np.stack([_restaurant(size.models, 1.0, rng) for _ in range(size.domains)])
    before = np.cumsum([0, *(row.max() + 1 for row in seated[:-1])])
    return seated + before[:, None]


def _franchise(size: Size, rng: np.random.Generator) -> Ints:
    tables = _tables(size, rng)
    return _restaurant(int(tables.max()) + 1, 1.0, rng)[tables]


GROUPS: Mapping[str, Callable[[Size, np.random.Generator], Ints]] = {
    "bee": _own,
    "cbcc": _tables,
    "cbee": _by_domain,
    "hcbee": _franchise,
}
"""Who shares rates with whom, (D, N), under the prior of each model with alpha = gamma = 1."""


def from_prior(name: str, size: Size, rng: np.random.Generator) -> World:
    """A world drawn from the prior of a model, by its name."""
    kind = name.removeprefix("confusion-")
    groups = GROUPS[kind](size, rng)
    k, atoms = size.classes, int(groups.max()) + 1
    if kind == name:
        confusion = one_rate(rng.beta(_WRONG, _RIGHT, atoms), k)
    else:
        rows = np.full((k, k), _WRONG / (k - 1))
        np.fill_diagonal(rows, _RIGHT)
        confusion = np.stack([[rng.dirichlet(row) for row in rows] for _ in range(atoms)])
    shares = rng.dirichlet(np.ones(k), size.domains)
    return draw_votes(confusion[groups], shares, size, rng)


def one_rate(error: Floats, n_classes: int) -> Floats:
    """P(vote | class) (..., K, K) of one error rate each."""
    same = np.eye(n_classes)
    e = np.asarray(error)[..., None, None]
    return np.asarray(same * (1 - e) + (1 - same) * e / (n_classes - 1))


def draw_votes(confusion: Floats, shares: Floats, size: Size, rng: np.random.Generator) -> World:
    """Labels by the shares (D, K), and votes by confusion matrices (D, N, K, K)."""
    domain = np.repeat(np.arange(size.domains), size.items)
    labels = _draw(shares[domain], rng)
    votes = _draw(confusion[domain, :, labels], rng)
    votes[rng.random(votes.shape) < size.missing] = -1
    right = np.einsum("dnkk,dk->dn", confusion, shares)
    return World(votes, domain, 1 - right, shares)


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
    return draw_votes(one_rate(error, 2), shares, size, rng)


SETTINGS: Mapping[str, Callable[[np.random.Generator], World]] = {
    "S1": lambda rng: from_prior("cbee", Size(20, 5, 20), rng),
    "S2": lambda rng: from_prior("hcbee", Size(10, 8, 20), rng),
    "S3": lambda rng: _profiles(Size(15, 5, 30), rng),
    "S4": lambda rng: _profiles(Size(6, 5, 2000), rng),
}
"""The reference's acceptance settings."""
