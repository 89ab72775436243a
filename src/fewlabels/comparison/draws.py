"""Statistics of paired draws: ranks, intervals of differences, simultaneous statements.

At the end, differences that allow for model error. A method's draws hold if its assumptions on how
classifiers deviate from one another do. In case they do not, the difference of two gets a
discrepancy of variance v / 50, with v the variance of one item's part in the difference: what a
method infers from items without a label is worth 50 labels at most. Classifiers that predict the
same on every item have v = 0 and stay tied.

The labels show how large the discrepancies are. Let e be the errors of the method's values, less
what all classifiers share; S the covariance of its draws; r the residuals of the labeled items, an
observation of e of covariance R. The method has seen the labels: S is what they left of an A with
S^-1 = A^-1 + R^-1. With the discrepancies' covariance G, A becomes A + G, and

    covariance = ((A + G)^-1 + R^-1)^-1,    shift = R (A + G + R)^-1 G R^-1 r.

With G = 0 nothing changes; with much of it values are rectified by the labels. In no direction is
the variance larger than both S and R.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import helmert

from fewlabels.kernels.arrays import Bools, Floats, Ints
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
    def from_draws(goodness: Floats) -> Ranks:
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
    complete = goodness[np.isfinite(goodness).all(axis=1)]
    if not len(complete):
        return np.full(goodness.shape[1], np.nan)
    out: Floats = (complete.max(axis=1, keepdims=True) - complete).mean(axis=0)
    return out


class Family(NamedTuple):
    """Statements about all classifiers that hold together."""

    separated: Bools  # (M, M)
    may_be_best: Bools  # (M,)

    @staticmethod
    def from_draws(value: Floats, goodness: Floats, level: float) -> Family:
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


def tied_runs(separated: Bools) -> list[slice]:
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
    """Ends (...) of differences (...) from their draws (D, ...), infinite ones left out."""
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

    The largest of several noisy estimates lies too high and the smallest too low, so their range is
    too wide, and that of draws wider still. True range and noise add up like independent errors:
    value^2 = observed^2 - E range(draws - their means)^2, at least 0. The interval comes from
    intervals of all differences that hold together (max-|t|, as in `compare`): the range is at
    least the largest lower end and at most the largest upper end. Estimates `values` (G,) and
    paired `draws` (D, G) that are NaN, undefined, are left out.
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


# --- model error ----------------------------------------------------------------------------------


WORTH = 50
"""How many labels a method's word on a difference is worth at most.

Chosen among 25, 35, 50, 70, 100 and 200 on 366 sets of scikit-learn's learners
(`benchmarks/study/families.py`), 249 of normal scores with random common factors and calibration,
and 150 in which one classifier errs independently of the others, which err alike: with 20 to 200
labels and learned-ensemble, 90% intervals of differences in accuracy, Brier score and AUC miss 1%
to 8% in the first two and 4% to 13% in the third, where without the allowance they miss 8% to 26%.
Smaller numbers widen without need. None of these sets is reported on.
"""

_FEWEST, _WIDE = 20, 1e4


class Residuals(NamedTuple):
    """Metrics of the labeled items minus what a method expects of them.

    Values (M,), NaN where it is not known, and their covariance (M, M). `draws` (D, M) are the
    method's, where the metric's draws are partly from the labels: labels enter a difference through
    its discrepancy.
    """

    value: Floats
    covariance: Floats
    draws: Floats


def with_discrepancy(
    values: Floats, draws: Floats, variance: Floats, residuals: Residuals | None, seed: int
) -> tuple[Floats, Floats]:
    """Values (M,) and draws (D, M) whose differences allow for the method's being wrong.

    Differences alone have a meaning: what all share is not touched. `variance` (M, M) is that of
    one item's part in each difference; where it is NaN the largest counts. `residuals` are None
    where no label says anything, and `seed` is of the discrepancies' draws.
    """
    there = np.flatnonzero(np.isfinite(values) & np.isfinite(draws).any(axis=0))
    defined = np.isfinite(variance[np.ix_(there, there)])
    complete = draws[np.isfinite(draws[:, there]).all(axis=1)]
    first = there.copy()  # of each the first one that is no different
    for i, j in enumerate(there):
        alike = there[:i][variance[there[:i], j] == 0]
        alike = alike[(complete[:, alike] == complete[:, [j]]).all(axis=0)]
        first[i] = alike[0] if len(alike) else j
    chosen = np.unique(first)
    if (
        len(chosen) < 2
        or len(complete) < _FEWEST
        or not defined[~np.eye(len(there), dtype=bool)].any()
    ):
        return values, draws
    v = variance[np.ix_(chosen, chosen)]
    v = np.where(np.isfinite(v), v, np.nanmax(variance[np.ix_(there, there)]))
    contrasts: Floats = helmert(len(chosen))
    spread = contrasts @ np.cov(complete[:, chosen].T) @ contrasts.T
    # v is a squared distance, so that this is a covariance (Schoenberg 1935), to rounding.
    square = -contrasts @ v @ contrasts.T / (2 * WORTH)
    size, axes = np.linalg.eigh((square + square.T) / 2)
    discrepancy: Floats = axes * np.maximum(size, 0.0) @ axes.T
    shift, extra = np.zeros(len(spread)), discrepancy
    if residuals is not None and np.isfinite(residuals.value[chosen]).any():
        observed, noise = _observed(residuals, chosen, v)
        shift, extra = _updated(
            spread, discrepancy, contrasts @ observed, contrasts @ noise @ contrasts.T
        )
    size, root = np.linalg.eigh(extra)
    normal = np.random.default_rng(seed).standard_normal((len(draws), len(size)))
    normal -= normal.mean(axis=0)
    added = normal * np.sqrt(np.maximum(size, 0.0)) @ root.T @ contrasts
    moved, spread_out = values.copy(), draws.copy()
    place = np.searchsorted(chosen, first)
    moved[there] = values[first] + (shift @ contrasts)[place]
    spread_out[:, there] = draws[:, first] + (shift @ contrasts + added)[:, place]
    return moved, spread_out


def _observed(residuals: Residuals, chosen: Ints, v: Floats) -> tuple[Floats, Floats]:
    """Residuals and their covariance; an unknown residual is 0, of a very large variance."""
    value = residuals.value[chosen]
    covariance = residuals.covariance[np.ix_(chosen, chosen)]
    blind = ~np.isfinite(value) | ~np.isfinite(np.diag(covariance))
    covariance = np.where(np.isfinite(covariance) & ~blind & ~blind[:, None], covariance, 0.0)
    covariance[blind, blind] = _WIDE * v.max()
    return np.where(blind, 0.0, value), covariance


def _updated(
    spread: Floats, discrepancy: Floats, residual: Floats, noise: Floats
) -> tuple[Floats, Floats]:
    """How far errors are shifted, and what is added to their covariance, in units of the noise.

    With R = L L' and W^2 = 1 - L^-1 S L'^-1, which is (1 + L^-1 A L'^-1)^-1, no inverse of a
    singular matrix is taken. W is 0 where the method knows less than the labels say.
    """
    noise = noise + np.eye(len(noise)) * 1e-12 * max(float(np.trace(noise)), 1e-300)
    root = np.linalg.cholesky(noise)
    inverse = np.linalg.inv(root)
    size, axes = np.linalg.eigh(inverse @ spread @ inverse.T)
    left = axes * np.sqrt(np.clip(1 - size, 0.0, 1.0)) @ axes.T
    scaled = inverse @ discrepancy @ inverse.T
    eye = np.eye(len(left))
    share = np.linalg.inv(eye + left @ scaled @ left)
    shift: Floats = root @ left @ share @ left @ scaled @ inverse @ residual
    extra: Floats = root @ left @ (eye - share) @ left @ root.T
    return shift, (extra + extra.T) / 2
