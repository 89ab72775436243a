"""Maximisation of a smooth function from several starts at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from fewlabels.kernels.arrays import Bools, Floats

Gradient = Callable[[Floats], tuple[Floats, Floats]]
"""Values (S,) and gradients (S, q) of points (S, q)."""

_LONGEST = 1.0
_HALVINGS = 12


class Summit(NamedTuple):
    """A maximum (q,), its value, and whether the search ended there by itself."""

    point: Floats
    value: float
    converged: bool


def climb(
    target: Gradient, starts: Floats, *, bound: float, iterations: int
) -> tuple[Floats, Floats]:
    """Points (S, q) after steps of BFGS from every start, and their values (S,).

    All starts move in step, so that one evaluation serves all: where an evaluation costs little
    more for ten points than for one, this is several times faster than one search after another.
    """
    at = np.clip(starts, -bound, bound)
    value, slope = target(at)
    inverse = (
        np.tile(np.eye(at.shape[1]), (len(at), 1, 1))
        / (1 + np.abs(slope).max(axis=1))[:, None, None]
    )
    going = np.isfinite(value)
    for _ in range(iterations):
        if not going.any():
            break
        direction = np.einsum("sij,sj->si", inverse, slope)
        uphill = (direction * slope).sum(axis=1)
        direction = np.where((uphill > 0)[:, None], direction, slope)
        direction *= np.minimum(1, _LONGEST / np.maximum(np.abs(direction).max(axis=1), 1e-300))[
            :, None
        ]
        uphill = (direction * slope).sum(axis=1)
        size = np.where(going, 1.0, 0.0)
        for _ in range(_HALVINGS):
            trial = np.clip(at + size[:, None] * direction, -bound, bound)
            reached, after = target(trial)
            good = ~going | (reached >= value + 1e-4 * size * uphill)
            if good.all():
                break
            size = np.where(good, size, size / 3)
        moved = good & going & np.isfinite(reached)
        inverse = _updated(inverse, trial - at, slope - after, moved)
        gain = np.where(moved, reached - value, 0.0)
        at = np.where(moved[:, None], trial, at)
        slope = np.where(moved[:, None], after, slope)
        value = np.where(moved, reached, value)
        going = moved & (gain > 1e-4)
    return at, value


def _updated(inverse: Floats, step: Floats, change: Floats, moved: Bools) -> Floats:
    """BFGS update of inverse Hessians (S, q, q) of what is minimised."""
    along = (step * change).sum(axis=1)
    usable = moved & (along > 1e-12)
    rho = 1 / np.where(usable, along, 1.0)
    pushed = np.einsum("sij,sj->si", inverse, change)
    bend = (change * pushed).sum(axis=1)
    outer = step[:, :, None] * step[:, None, :]
    cross = pushed[:, :, None] * step[:, None, :]
    new = (
        inverse
        + (rho + rho**2 * bend)[:, None, None] * outer
        - rho[:, None, None] * (cross + cross.transpose(0, 2, 1))
    )
    return np.where(usable[:, None, None], new, inverse)


def summit(target: Gradient, start: Floats, *, bound: float) -> Summit:
    """The maximum that L-BFGS-B finds from one start (q,) within [-bound, bound]."""

    def descend(point: Floats) -> tuple[float, Floats]:
        value, slope = target(point[None])
        return -float(value[0]), -slope[0]

    found = minimize(
        descend,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-bound, bound)] * len(start),
        options={"maxiter": 500, "ftol": 1e-12, "gtol": 1e-5},
    )
    # A line search that can gain no more digits ends "abnormally" at a maximum all the same.
    flat = bool(np.abs(found.jac).max() < 1e-2 * (1 + abs(found.fun)) ** 0.5)
    return Summit(found.x, -float(found.fun), bool(found.success) or flat)
