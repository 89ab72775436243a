"""Priors of single parameters, in the unconstrained coordinates in which they are sampled."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy.special import gammaln

from fewlabels.kernels.arrays import Floats


class Prior(NamedTuple):
    """A normal (mean, sd) or gamma (shape, rate) law of a parameter v, and its link to u.

    v = u ("identity"), e^u ("log"), or 1 + e^u ("one-plus").
    """

    law: Literal["normal", "gamma"]
    first: float
    second: float
    link: Literal["identity", "log", "one-plus"] = "identity"

    def log_density(self, u: Floats) -> tuple[Floats, Floats]:
        """Log density of u, the Jacobian of the link included, and its derivative, both (D,)."""
        if self.link == "identity":
            return self._law(u)
        grown = np.exp(u)
        value, slope = self._law(1 + grown if self.link == "one-plus" else grown)
        return value + u, slope * grown + 1

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """Draws of u, (size,)."""
        if self.law == "gamma":
            v = rng.gamma(self.first, 1 / self.second, size)
        else:
            v = rng.normal(self.first, self.second, size)
        if self.link == "identity":
            return v
        offset = 1.0 if self.link == "one-plus" else 0.0
        # The law lives where the link reaches: what falls outside is drawn again.
        outside = v <= offset
        if outside.any():
            v[outside] = offset + np.exp(self.draw(int(outside.sum()), rng))
        return np.log(v - offset)

    def _law(self, v: Floats) -> tuple[Floats, Floats]:
        if self.law == "normal":
            z = (v - self.first) / self.second
            constant = -0.5 * np.log(2 * np.pi) - np.log(self.second)
            return constant - 0.5 * z**2, -z / self.second
        shape, rate = self.first, self.second
        constant = shape * np.log(rate) - gammaln(shape)
        return constant + (shape - 1) * np.log(v) - rate * v, (shape - 1) / v - rate
