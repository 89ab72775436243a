"""Draws from the priors of SPE's parameters, which no method needs."""

from __future__ import annotations

import numpy as np

from fewlabels.methods.spe.families import Prior
from fewlabels.methods.spe.mixture import ClassDensity


def draw(prior: Prior, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draws of u, (size,)."""
    if prior.law == "gamma":
        v = rng.gamma(prior.first, 1 / prior.second, size)
    else:
        v = rng.normal(prior.first, prior.second, size)
    if prior.link == "identity":
        return v
    offset = 1.0 if prior.link == "one-plus" else 0.0
    # The law lives where the link reaches: what falls outside is drawn again.
    outside = v <= offset
    if outside.any():
        v[outside] = offset + np.exp(draw(prior, int(outside.sum()), rng))
    return np.log(v - offset)


def draw_density(density: ClassDensity, size: int, rng: np.random.Generator) -> np.ndarray:
    """Parameters of the density of a class, (size, number of parameters)."""
    laws = density.priors or density.family.prior
    columns = [draw(p, size, rng) for _ in range(density.components) for p in laws]
    weights = np.log(rng.dirichlet(np.ones(density.components), size))
    return np.column_stack([*columns, weights[:, :-1] - weights[:, -1:]])
