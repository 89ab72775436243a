"""Who is where in the ranking, over draws: P(best), P(among the best k), expected loss."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats


def probability_best(goodness: Floats) -> Floats:
    """P(best) per classifier from paired draws (D, M) where larger is better; (M,).

    Ties are shared. A classifier that is undefined in a draw is not the best there; one that never
    is defined has 0. NaN throughout where no draw is defined.
    """
    there = np.isfinite(goodness).any(axis=0)
    out = np.zeros(goodness.shape[1])
    if not there.any():
        return np.full_like(out, np.nan)
    out[there] = Ranks.of(goodness[:, there]).top[:, 0]
    return out


class Ranks(NamedTuple):
    """How probable each place in the ranking is, and the mean place."""

    top: Floats  # P(among the best k), (M, M)
    expected: Floats  # (M,)

    @staticmethod
    def of(goodness: Floats) -> Ranks:
        """Ranks over draws (D, M), ties broken at random."""
        drawn = np.where(np.isnan(goodness), -np.inf, goodness)
        drawn = drawn[np.isfinite(drawn).any(axis=1)]
        m = drawn.shape[1]
        places = np.arange(1, m + 1)
        top, expected = np.empty((m, m)), np.empty(m)
        for j in range(m):
            ahead = (drawn > drawn[:, [j]]).sum(axis=1)
            tied = (drawn == drawn[:, [j]]).sum(axis=1)
            reached = np.clip((places - ahead[:, None]) / tied[:, None], 0, 1)
            top[j], expected[j] = reached.sum(axis=0), (ahead + (tied + 1) / 2).sum()
        # D draws do not tell a probability below 1 / D from 0: one more draw, in which all tie.
        extra = _one_more(drawn)
        size = len(drawn) + extra
        return Ranks((top + extra * places / m) / size, (expected + extra * (m + 1) / 2) / size)


def _one_more(drawn: Floats) -> int:
    """1, or 0 where the draws leave nothing open."""
    return int(bool((drawn != drawn[:1]).any()))


def probability_positive(gap: Floats) -> float:
    """P(difference > 0) from draws (D,), ties shared; NaN without draws."""
    if not len(gap):
        return math.nan
    extra = _one_more(gap)
    wins = (gap > 0).sum() + (gap == 0).sum() / 2
    return float((wins + extra / 2) / (len(gap) + extra))


def expected_loss(goodness: Floats) -> Floats:
    """By how much the best of each draw is ahead of each classifier, on average, (M,)."""
    whole = goodness[np.isfinite(goodness).all(axis=1)]
    if not len(whole):
        return np.full(goodness.shape[1], np.nan)
    out: Floats = (whole.max(axis=1, keepdims=True) - whole).mean(axis=0)
    return out
