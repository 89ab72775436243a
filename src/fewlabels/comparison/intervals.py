"""Differences of paired draws, with intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.interval_draws import interval


class Difference(NamedTuple):
    """Metric of one classifier minus that of another, on the same draws."""

    value: float
    low: float
    high: float


def paired_interval(value: float, gap: Floats, level: float) -> Difference:
    """The interval of a difference from its draws (D,), of which infinite ones say nothing."""
    low, high = interval(value, np.where(np.isfinite(gap), gap, np.nan), level)
    return Difference(value, float(low), float(high))
