"""Differences of paired draws, with intervals."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats


class Difference(NamedTuple):
    """Metric of one classifier minus that of another, on the same draws."""

    value: float
    low: float
    high: float


def paired_interval(value: float, gap: Floats, level: float) -> Difference:
    """Quantiles of the draws (D,) of a difference that are defined, around its value."""
    gap = gap[np.isfinite(gap)]
    if not len(gap) or math.isnan(value) or math.isnan(level):
        return Difference(value, math.nan, math.nan)
    low, high = np.quantile(gap, [(1 - level) / 2, (1 + level) / 2])
    return Difference(value, min(float(low), value), max(float(high), value))


def paired_intervals(values: Floats, gaps: Floats, level: float) -> tuple[Floats, Floats]:
    """`paired_interval` of the columns of gaps (D, P), in one go where nothing is undefined."""
    if not np.isfinite(gaps).all():
        found = [
            paired_interval(float(v), gap, level) for v, gap in zip(values, gaps.T, strict=True)
        ]
        return np.array([f.low for f in found]), np.array([f.high for f in found])
    low, high = np.quantile(gaps, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.minimum(low, values), np.maximum(high, values)
