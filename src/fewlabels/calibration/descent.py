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
    gradients, and starts here where it converges quadratically. The trust regions of scipy compare
    values too, and leave a direction that the data cannot tell apart, such as a feature given
    twice, anywhere: of its steps the least squares are the shortest, so that the start decides.
    """
    polished = len(start) <= _LARGEST_HESSIAN
    options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "maxcor": 20, "ftol": 1e-15}
    options["gtol"] = max(tolerance, _HAND_OVER) if polished else tolerance
    # The losses share their rows out themselves; all else is small.
    with one_blas_thread():
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
        point, value, slope, spent = found.x, float(found.fun), found.jac, int(found.nit)
        size, last = 1.0, min(spent + _NEWTON_STEPS, max_iter)
        while polished and spent < last and size > 1e-6:
            if size == 1.0:
                step = np.linalg.lstsq(hessian(point), slope, rcond=1e-12)[0]
            reached, after = loss(point - size * step)
            # Within rounding of the value the gradient decides.
            lower = reached <= value - 1e-4 * size * float(slope @ step)
            level = reached <= value + 1e-13 * abs(value)
            if not lower and not (level and np.abs(after).max() < np.abs(slope).max()):
                size /= 4
                continue
            point, value, slope, spent = point - size * step, reached, after, spent + 1
            if np.abs(slope).max() <= tolerance:
                break
            size = 1.0
    return Minimum(point, value, bool(np.abs(slope).max() <= tolerance), spent)
