"""Differences of paired draws, with intervals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.interval_draws import interval


class Difference(NamedTuple):
    """Metric of one classifier minus that of another, on the same draws."""

    value: float
    low: float
    high: float


def paired_ends(value: Any, gap: Floats, level: float) -> tuple[Any, Any]:
    """Ends (...) of differences (...) from their draws (D, ...): infinite ones say nothing."""
    return interval(value, np.where(np.isfinite(gap), gap, np.nan), level)


def paired_interval(value: float, gap: Floats, level: float) -> Difference:
    """The interval of a difference from its draws (D,)."""
    low, high = paired_ends(value, gap, level)
    return Difference(value, float(low), float(high))
