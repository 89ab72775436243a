"""The range of a metric over the groups of a column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fewlabels.kernels.arrays import Floats


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
