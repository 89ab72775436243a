"""The one EM driver: methods supply a step, the driver owns counting and stopping."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats


class EMResult(NamedTuple):
    """Responsibilities after the last step and before it, and what a person wants to know."""

    responsibilities: Floats
    before: Floats
    iterations: int
    change: float
    converged: bool


def expectation_maximisation(
    step: Callable[[Floats], Floats],
    start: Floats,
    *,
    iterations: int,
    tolerance: float = 0.0,
    counts: Floats | None = None,
) -> EMResult:
    """Apply `step` to the responsibilities until they change by at most `tolerance` on average.

    Parameters
    ----------
    step
        One M-step followed by one E-step: responsibilities (n, K, ...) to new ones.
    iterations
        Steps at most. The paper's methods fix their number: `tolerance` 0 takes them all, but
        for a fixed point that is exact.
    counts
        Items that each row stands for in the mean, (n, ...) without the classes; one each unless
        given.
    """
    before, now, change, taken = start, start, np.inf, 0
    for taken in range(1, iterations + 1):  # noqa: B007 - the count is part of the result
        before, now = now, step(now)
        gap = np.abs(now - before)
        change = float(
            gap.mean() if counts is None else np.average(gap.mean(axis=1), weights=counts)
        )
        if change <= tolerance:
            break
    return EMResult(now, before, taken, change, change <= max(tolerance, 1e-3))
