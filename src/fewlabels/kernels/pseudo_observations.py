"""Pseudo-observations: one item per draw of unknown class, for what has not been seen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints

PSEUDO_MASS = 1.0
"""Weight, in items, of what has not been seen. One pseudo-observation per draw, of unknown class
and unknown prediction, keeps intervals from collapsing when all labels agree, or a class is never
predicted: with two classes, the interval for accuracy from labels alone is then Jeffreys'."""


class PseudoObservations(NamedTuple):
    """Uniforms (D,) that choose whose scores it has, predicted class (D,), class weights (D, K)."""

    place: Floats
    predicted: Ints
    mass: Floats


def pseudo_observations(
    generator: np.random.Generator, n_classes: int, size: int
) -> PseudoObservations:
    """Draw the pseudo-observations of `size` draws; their weights are PSEUDO_MASS on average."""
    return PseudoObservations(
        generator.random(size),
        generator.integers(n_classes, size=size),
        generator.gamma(PSEUDO_MASS / n_classes, size=(size, n_classes)),
    )
