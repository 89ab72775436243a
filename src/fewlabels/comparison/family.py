"""Statements about all classifiers that hold together: who is separated, who may be best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.kernels.interval_draws import nearer_zero


class Family(NamedTuple):
    """Statements about all classifiers that hold together."""

    separated: Bools  # (M, M)
    may_be_best: Bools  # (M,)

    @staticmethod
    def of(value: Floats, goodness: Floats, level: float) -> Family:
        """From estimates (M,) and draws (D, M) where larger is better, best estimate first."""
        m = len(value)
        drawn = goodness[np.isfinite(goodness).all(axis=1)]
        if len(drawn) < 2 or m < 2:
            return Family(np.zeros((m, m), dtype=bool), np.ones(m, dtype=bool))
        ahead, spread = np.empty((m, m)), np.empty((m, m))
        furthest = np.zeros(len(drawn))
        may_be_best = np.empty(m, dtype=bool)
        for j in range(m):
            gap = drawn - drawn[:, [j]]
            middle, sd = gap.mean(axis=0), gap.std(axis=0)
            deviation = (gap - middle) / np.where(sd > 0, sd, np.inf)
            ahead[:, j] = nearer_zero(value - value[j], middle)
            spread[:, j] = sd
            np.maximum(furthest, np.abs(deviation).max(axis=1), out=furthest)
            limit = np.quantile(np.delete(deviation, j, axis=1).max(axis=1), level)
            may_be_best[j] = not (ahead[:, j] > limit * sd + _rounding(value)).any()
        limit = np.quantile(furthest, level)
        return Family(np.abs(ahead) > limit * spread + _rounding(value), may_be_best)


def _rounding(value: Floats) -> float:
    """What sums in different orders differ by: copies must not be told apart by it."""
    return 1e-12 * max(1.0, float(np.abs(value).max()))


def runs_of(separated: Bools) -> list[slice]:
    """Maximal runs of the ranking in which no pair is separated."""
    runs: list[slice] = []
    m, end = len(separated), 0
    for start in range(m):
        reached = max(end, start + 1)
        while reached < m and not separated[start:reached, reached].any():
            reached += 1
        if reached > end:
            runs.append(slice(start, reached))
            end = reached
    return runs
