"""Where a rising function crosses zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq


def crossing(rising: Callable[[float], float], low: float, high: float) -> float:
    """The positive t at which a rising function is 0, between exp(low) and exp(high).

    Searched by its logarithm (Brent 1973); the nearer end where it does not cross zero between.
    """

    def of_log(x: float) -> float:
        return rising(float(np.exp(x)))

    if of_log(low) >= 0:
        return float(np.exp(low))
    if of_log(high) <= 0:
        return float(np.exp(high))
    return float(np.exp(brentq(of_log, low, high, xtol=1e-13)))
