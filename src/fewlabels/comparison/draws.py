"""What paired draws say: ranks, intervals of differences, statements that hold together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.kernels.interval_draws import Interval, interval, nearer_zero


def probability_best(goodness: Floats) -> Floats:
    """P(best) per classifier from paired draws (D, M) where larger is better; (M,).

    Ties are shared. A classifier that is undefined in a draw is not the best there; one that never
    is defined has 0. NaN throughout where no draw is defined.
    """
    there = np.isfinite(goodness).any(axis=0)
    out = np.zeros(goodness.shape[1])
    if not there.any():
        return np.full_like(out, np.nan)
    # As the first column of `Ranks.top`, without the others: those are squares of thousands.
    drawn = goodness[np.isfinite(goodness).any(axis=1)]
    first = drawn == np.nanmax(drawn, axis=1, keepdims=True)
    extra = _one_more(drawn[:, there])
    won = np.einsum("d,dm->m", 1 / first.sum(axis=1), first)[there]
    out[there] = (won + extra / there.sum()) / (len(drawn) + extra)
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


def paired_ends(value: Any, gap: Floats, level: float) -> tuple[Any, Any]:
    """Ends (...) of differences (...) from their draws (D, ...): infinite ones say nothing."""
    return interval(value, np.where(np.isfinite(gap), gap, np.nan), level)


def paired_interval(value: float, gap: Floats, level: float) -> Interval:
    """A difference with its interval from its draws (D,)."""
    low, high = paired_ends(value, gap, level)
    return Interval(value, float(low), float(high))


@dataclass(frozen=True)
class GroupGap:
    """Largest minus smallest metric of one classifier over the groups of a column.

    `value` is what is left of the `observed` range when noise is taken out; `low` is 0 where no
    two groups can be told apart. `largest` and `smallest` name the groups with these estimates.
    """

    model: str
    value: float
    low: float
    high: float
    observed: float
    largest: str | None
    smallest: str | None


def group_gap(
    model: str, groups: Sequence[str], values: Floats, draws: Floats, level: float
) -> GroupGap:
    """The range of a metric over groups, with an interval that may hold 0.

    The largest of several noisy estimates lies too high and the smallest too low, so their range
    is too wide, and that of draws wider still. True range and noise add up like independent
    errors: value^2 = observed^2 - E range(draws - their means)^2, at least 0. The interval comes
    from intervals of all differences that hold together (max-|t|, as in `compare`): the range is
    at least the largest lower end and at most the largest upper end.

    Parameters
    ----------
    groups, values, draws
        Names, estimates (G,) and draws (D, G), paired; NaN where undefined, which is left out.
    """
    there = np.flatnonzero(np.isfinite(values) & np.isfinite(draws).any(axis=0))
    drawn = draws[:, there]
    drawn = drawn[np.isfinite(drawn).all(axis=1)]
    if len(there) < 2 or len(drawn) < 2:
        return GroupGap(model, math.nan, math.nan, math.nan, math.nan, None, None)
    value = np.asarray(values, dtype=np.float64)[there]
    noise = np.ptp(drawn - drawn.mean(axis=0), axis=1)
    observed = float(np.ptp(value))
    corrected = math.sqrt(max(observed**2 - float((noise**2).mean()), 0.0))
    a, b = np.triu_indices(len(there), 1)
    gap = drawn[:, a] - drawn[:, b]
    sd = gap.std(axis=0)
    deviation = np.abs(gap - gap.mean(axis=0)) / np.where(sd > 0, sd, np.inf)
    reach = np.quantile(deviation.max(axis=1), level) * sd
    between = np.abs(value[a] - value[b])
    low = max(float((between - reach).max()), 0.0)
    high = float((between + reach).max())
    names = [groups[int(g)] for g in there]
    return GroupGap(
        model, max(corrected, low), low, high, observed,
        names[int(value.argmax())], names[int(value.argmin())],
    )  # fmt: skip
