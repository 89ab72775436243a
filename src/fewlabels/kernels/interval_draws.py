"""Draws of a metric, one column per classifier: reduced, recentred, inflated, compared.

And the pseudo-observation of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import expit, logit

from fewlabels.kernels.arrays import Floats, Ints


def ends(drawn: Floats, level: float) -> tuple[Floats, Floats]:
    """Quantiles (...) each, between which a share `level` of the draws (D, ...) lies.

    Undefined draws are left out; NaN where all are undefined, or the level is NaN.
    """
    nothing = np.full(drawn.shape[1:], np.nan)
    if not len(drawn) or math.isnan(level):
        return nothing, nothing
    tails = [(1 - level) / 2, (1 + level) / 2]
    if np.isfinite(drawn).all():
        low, high = np.quantile(drawn, tails, axis=0)
        return low, high

    def column_ends(column: Floats) -> Floats:
        defined = column[~np.isnan(column)]
        if not len(defined):
            return np.full(2, np.nan)
        # There is nothing between two infinite draws.
        way: Literal["nearest", "linear"] = "nearest" if np.isinf(defined).any() else "linear"
        out: Floats = np.quantile(defined, tails, method=way)
        return out

    low, high = np.apply_along_axis(column_ends, 0, drawn)
    return low, high


def interval(
    value: Any, drawn: Floats, level: float, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[Any, Any]:
    """`ends` of the draws (D, ...) within bounds, and around the value (...); NaN where it is."""
    low, high = ends(drawn, level)
    return np.minimum(np.maximum(low, bounds[0]), value), np.maximum(
        np.minimum(high, bounds[1]), value
    )


class Interval(NamedTuple):
    """A value with low <= value <= high; NaN where it is undefined."""

    value: float
    low: float
    high: float


UNDEFINED = Interval(math.nan, math.nan, math.nan)


def spelled(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """What `asdict` makes of a record's parts: fields by name of tuples that have them."""
    return {name: value._asdict() if hasattr(value, "_asdict") else value for name, value in fields}


def above_noise_floor(drawn: Floats, value: Floats, gap: Floats) -> Floats:
    """Draws (D, M) below the value (M,) without the gap (M,) that noise alone would show.

    True gap and noise add up like independent errors, drawn^2 = true^2 + gap^2. Draws above the
    value stay: an upper limit must not rest on the noise being as large as estimated.
    """
    less = np.sqrt(np.maximum(np.maximum(drawn, 0) ** 2 - gap**2, 0.0))
    return np.where(drawn > value, drawn, less)


def over_draws(reduce: Callable[..., Floats], drawn: Floats) -> Floats:
    """Reduce over draws (axis 0), leaving out the undefined; NaN where all are."""
    out = np.full(drawn.shape[1], np.nan)
    some = ~np.isnan(drawn).all(axis=0)
    if some.any():
        out[some] = reduce(drawn[:, some], axis=0)
    return out


def recentred(drawn: Floats, expected: Floats, plain: Floats) -> Floats:
    """Draws (D, M) of a sum of absolute gaps without what noise adds to it.

    `drawn` is from drawn labels, `expected` (D, M) the same with P(label) in their place, and
    `plain` (M,) from P(label) without row weights. Drawn labels add (drawn - expected). Row weights
    on known labels add (expected - plain), and the value is already too large by as much again (the
    bootstrap's estimate of its bias).
    """
    middle = over_draws(np.nanmean, expected)
    excess = over_draws(np.nanmean, drawn) - middle
    out: Floats = drawn - excess - 2 * (middle - plain)
    return out


def inflated(drawn: Floats, value: Floats, factor: float) -> Floats:
    """Draws (D, M) moved away from the values (M,) by a factor; as they are where it is NaN."""
    moved: Floats = np.where(np.isnan(value), drawn, value + factor * (drawn - value))
    return moved


_LEAST_SHARE = 1e-4
"""Least distance from its bounds, as a share of the range, at which a metric has log-odds."""


def shifted_log_odds(
    drawn: Floats, bounds: tuple[Any, Any], best: Any, log_odds_error: Floats
) -> Floats:
    """Draws (D, M) of metrics moved by `log_odds_error` (D, M) in the log-odds of their ranges.

    Positive errors move them towards `best`; metrics without bounds, or a best one, stay.
    """
    low, high, best = (
        np.broadcast_to(np.asarray(x, float), drawn.shape[1]) for x in (*bounds, best)
    )
    sign = (best == high).astype(np.float64) - (best == low)
    moves = np.isfinite(low) & np.isfinite(high) & (low < high) & (sign != 0)
    if not moves.any():
        return drawn
    low, width = low[moves], (high - low)[moves]
    share, shift = (drawn[:, moves] - low) / width, sign[moves] * log_odds_error[:, moves]
    odds = logit(np.clip(share, _LEAST_SHARE, 1 - _LEAST_SHARE)) + shift
    # A draw at a bound is taken to be a little off it, but never moved off it the other way.
    share = np.where(shift < 0, np.minimum(expit(odds), share), np.maximum(expit(odds), share))
    moved = drawn.copy()
    moved[:, moves] = low + width * share
    return moved


def point_value(drawn: Floats, *, only_mean: bool) -> Floats:
    """Point estimate (M,) from draws (D, M): the average of their mean and median.

    With `only_mean` the mean: for a linear metric of these very items it is exact.
    """
    mean = over_draws(np.nanmean, drawn)
    return mean if only_mean else (mean + over_draws(np.nanmedian, drawn)) / 2


def nearer_zero(a: Floats, b: Floats) -> Floats:
    """The smaller of two measures of a difference; 0 where they point to opposite sides.

    An estimate and the mean of its draws differ a little, and neither alone should tell two values
    apart.
    """
    return np.where(a * b > 0, np.sign(a) * np.minimum(np.abs(a), np.abs(b)), 0.0)


PSEUDO_MASS = 1.0
"""Weight, in items, of the pseudo-observation. One per draw, of unknown class
and unknown prediction, keeps intervals from collapsing when all labels agree, or a class is never
predicted: with two classes, the interval for accuracy from labels alone is then Jeffreys'."""


class PseudoObservations(NamedTuple):
    """Uniforms (D,) that choose whose scores it has, predicted class (D,), class weights (D, K)."""

    place: Floats
    predicted: Ints
    mass: Floats


def pseudo_observations(
    generator: np.random.Generator, n_classes: int, size: int
) -> PseudoObservations:
    """Draw the pseudo-observations of `size` draws; their weights are PSEUDO_MASS on average."""
    return PseudoObservations(
        generator.random(size),
        generator.integers(n_classes, size=size),
        generator.gamma(PSEUDO_MASS / n_classes, size=(size, n_classes)),
    )
