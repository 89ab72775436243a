"""Minimisation of a smooth loss: L-BFGS, then Newton steps that leave no digit on the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.blocks import one_blas_thread

Loss = Callable[[Floats], tuple[float, Floats]]
"""Value and gradient at a point (P,)."""

Hessian = Callable[[Floats], Floats]
"""Second derivatives (P, P) at a point (P,)."""

_LARGEST_HESSIAN = 512
"""Problems of more parameters are left to L-BFGS: a Hessian would cost more than it gains."""

_HAND_OVER = 1e-6
"""Slopes below which L-BFGS gives way to Newton steps."""

_NEWTON_STEPS = 20


class Minimum(NamedTuple):
    """Where the loss is least, its value, whether the gradient vanishes there, steps taken."""

    point: Floats
    value: float
    converged: bool
    n_iter: int


def descend(
    loss: Loss, hessian: Hessian, start: Floats, *, tolerance: float, max_iter: int
) -> Minimum:
    """The minimum reached from `start`; converged where no slope exceeds `tolerance`.

    L-BFGS compares values and so stops half the digits of a minimum early; Newton's method compares
    gradients. It is cheap here, because it starts where it converges quadratically.
    """
    polished = len(start) <= _LARGEST_HESSIAN
    # The losses share their rows out themselves; all else is small.
    with one_blas_thread():
        found = minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            options={
                "maxiter": max_iter,
                "maxfun": 4 * max_iter,
                "maxcor": 20,
                "ftol": 1e-15,
                "gtol": max(tolerance, _HAND_OVER) if polished else tolerance,
            },
        )
        spent = int(found.nit)
        if not polished:
            return Minimum(found.x, float(found.fun), bool(found.success), spent)
        return _newton(loss, hessian, found.x, tolerance, spent, max_iter)


def _newton(
    loss: Loss, hessian: Hessian, point: Floats, tolerance: float, spent: int, max_iter: int
) -> Minimum:
    value, slope = loss(point)
    for taken in range(min(_NEWTON_STEPS, max_iter - spent)):
        steepest = np.abs(slope).max()
        if taken and steepest <= tolerance:  # one step at least: it doubles the digits
            break
        step = _downhill(hessian(point), slope)
        size = 1.0
        while True:
            trial = point - size * step
            reached, after = loss(trial)
            # Within rounding of the value the gradient decides.
            gained = reached <= value - 1e-4 * size * float(slope @ step)
            level = reached <= value + 1e-13 * abs(value) and np.abs(after).max() < steepest
            if gained or level or size < 1e-6:
                break
            size /= 4
        if not (gained or level):
            break
        point, value, slope = trial, reached, after
        spent += 1
    return Minimum(point, value, bool(np.abs(slope).max() <= tolerance), spent)


def _downhill(hessian: Floats, slope: Floats) -> Floats:
    """Newton's step; against negative curvature its mirror image, along flat directions none.

    Flat directions are those that the data cannot tell apart, such as a feature given twice: the
    start decides there, and from zeros the coefficients are the smallest that do it.
    """
    values, vectors = np.linalg.eigh(hessian)
    bend = np.abs(values)
    steep = bend > 1e-12 * bend.max()
    along = (vectors.T @ slope)[steep] / bend[steep]
    step: Floats = vectors[:, steep] @ along
    return step
