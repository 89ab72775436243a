"""What is said of intervals and of runs: interval score, means, ratios, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Array, Floats

_RESAMPLES = 500


class Figure(NamedTuple):
    """A number with its standard error and what it is a mean of; NaN where unknown."""

    value: float
    se: float
    n: int


def interval_score(low: Array, high: Array, truth: Array, level: float) -> Floats:
    """Width, and 2 / (1 - level) times how far the truth lies outside; smaller is better.

    Source: Gneiting & Raftery 2007, equation 43.

    Examples
    --------
    >>> interval_score(np.array([0.2]), np.array([0.4]), np.array([0.5]), 0.9).round(6)
    array([2.2])
    """
    alpha = 1 - level
    below, above = np.maximum(low - truth, 0), np.maximum(truth - high, 0)
    score: Floats = (high - low) + 2 / alpha * (below + above)
    return score


def mean(values: Array) -> Figure:
    """Mean over the runs (R,) that have a value, and its standard error.

    Examples
    --------
    >>> mean(np.array([1.0, 2.0, 3.0, np.nan]))
    Figure(value=2.0, se=0.577..., n=3)
    """
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    n = len(known)
    if not n:
        return Figure(float("nan"), float("nan"), 0)
    se = float(known.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return Figure(float(known.mean()), se, n)


def coverage(values: Array) -> Figure:
    """Mean of shares over the runs (R,), with a standard error that is above 0 where all agree.

    It is that of the runs and four more, two that hold and two that do not: without these, ten
    runs that all hold would be sure to hold more than 94%.

    Source: Agresti & Coull 1998, the interval that adds two successes and two failures.

    Examples
    --------
    >>> coverage(np.ones(10))
    Figure(value=1.0, se=0.097..., n=10)
    """
    plain = mean(values)
    return plain._replace(se=mean(np.append(values, [0.0, 0.0, 1.0, 1.0])).se)


def ratio(a: Array, b: Array) -> Figure:
    """Mean of `a` over mean of `b`, paired over the runs (R,) that have both.

    Its standard error is that of the linearised ratio (delta method): the standard deviation of
    a - r b over mean(b) sqrt(R). Two means of zero have ratio 1.
    """
    both = np.isfinite(a) & np.isfinite(b)
    a, b, n = a[both], b[both], int(both.sum())
    if not n:
        return Figure(float("nan"), float("nan"), 0)
    below = float(b.mean())
    if below == 0:
        return Figure(1.0 if float(a.mean()) == 0 else float("inf"), float("nan"), n)
    value = float(a.mean()) / below
    if n == 1:
        return Figure(value, float("nan"), n)
    return Figure(value, float((a - value * b).std(ddof=1) / (abs(below) * np.sqrt(n))), n)


def over_clusters(
    values: Sequence[float], clusters: Sequence[str], statistic: Callable[[Floats], float]
) -> Figure:
    """A statistic of cells, and its standard error over what they belong to (cluster bootstrap).

    Cells of one set share its classifiers, and fall together: sets are resampled, not cells.
    """
    x = np.asarray(values, dtype=float)
    if not len(x):
        return Figure(float("nan"), float("nan"), 0)
    names, place = np.unique(np.asarray(clusters), return_inverse=True)
    groups = [x[place == k] for k in range(len(names))]
    if len(groups) < 2:
        return Figure(statistic(x), float("nan"), len(x))
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(groups), size=(_RESAMPLES, len(groups)))
    again = [statistic(np.concatenate([groups[k] for k in row])) for row in drawn]
    return Figure(statistic(x), float(np.std(again, ddof=1)), len(x))
