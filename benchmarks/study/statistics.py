"""What is said of intervals and of runs: interval score, means, ratios, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

_RESAMPLES = 500


class Figure(NamedTuple):
    """A number with its standard error and what it is a mean of; NaN where unknown."""

    value: float
    se: float
    n: int


NONE = Figure(float("nan"), float("nan"), 0)


def interval_score(low: Any, high: Any, truth: Any, level: float) -> np.ndarray:
    """Width, and 2 / (1 - level) times how far the truth lies outside (smaller is better).

    Source: Gneiting & Raftery 2007, equation 43.
    """
    below, above = np.maximum(low - truth, 0), np.maximum(truth - high, 0)
    return np.asarray((high - low) + 2 / (1 - level) * (below + above))


def mean(values: Any) -> Figure:
    """Mean over the runs (R,) that have a value, and its standard error."""
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    if not len(known):
        return NONE
    se = known.std(ddof=1) / np.sqrt(len(known)) if len(known) > 1 else np.nan
    return Figure(float(known.mean()), float(se), len(known))


def coverage(values: Any) -> Figure:
    """Mean of shares over the runs (R,), with a standard error that is above 0 where all agree.

    It is that of the runs and four more, two that hold and two that do not (Agresti & Coull 1998):
    without these, ten runs that all hold would be sure to hold more than 94%.
    """
    return mean(values)._replace(se=mean(np.append(values, [0.0, 0.0, 1.0, 1.0])).se)


def ratio(a: Any, b: Any) -> Figure:
    """Mean of `a` over mean of `b`, paired over the runs (R,) that have both.

    Its standard error is that of the linearised ratio (delta method): the standard deviation of
    a - r b over mean(b) sqrt(R). Two means of zero have ratio 1.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    both = np.isfinite(a) & np.isfinite(b)
    a, b, n = a[both], b[both], int(both.sum())
    if not n:
        return NONE
    below = float(b.mean())
    if below == 0:
        return Figure(1.0 if float(a.mean()) == 0 else float("inf"), float("nan"), n)
    value = float(a.mean()) / below
    if n == 1:
        return Figure(value, float("nan"), n)
    return Figure(value, float((a - value * b).std(ddof=1) / (abs(below) * np.sqrt(n))), n)


def over_clusters(
    values: Sequence[float], clusters: Sequence[str], statistic: Callable[[Any], float]
) -> Figure:
    """A statistic of cells, and its standard error over what they belong to (cluster bootstrap).

    Cells of one set share its classifiers, and fall together: sets are resampled, not cells.
    """
    x = np.asarray(values, dtype=float)
    if not len(x):
        return NONE
    names, place = np.unique(np.asarray(clusters), return_inverse=True)
    groups = [x[place == k] for k in range(len(names))]
    if len(groups) < 2:
        return Figure(float(statistic(x)), float("nan"), len(x))
    drawn = np.random.default_rng(0).integers(len(groups), size=(_RESAMPLES, len(groups)))
    again = [statistic(np.concatenate([groups[k] for k in row])) for row in drawn]
    return Figure(float(statistic(x)), float(np.std(again, ddof=1)), len(x))


def number(figure: Figure, scale: float, digits: int) -> str:
    """A number times `scale` with its standard error; "none" where there is none."""
    if not figure.n or not np.isfinite(figure.value):
        return "none"
    text = f"{scale * figure.value:.{digits}f}"
    if not np.isfinite(figure.se):
        return text
    return f"{text} ± {scale * figure.se:.{max(digits, 1) if scale == 1 else digits}f}"
