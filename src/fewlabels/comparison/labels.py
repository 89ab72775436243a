"""How many more labels would settle which of two classifiers is better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from scipy.special import ndtr

from fewlabels.comparison.intervals import Difference
from fewlabels.kernels.roots import crossing

_ROUNDING = 1e-12
"""Differences that sums in different orders may show."""

Settled = Literal["settled", "open", "tied", "unknown"]


@dataclass(frozen=True)
class LabelsNeeded:
    """How many labels, beyond those there are, would settle which of two classifiers is better.

    `status` is "settled" where the paired interval excludes 0 already, "tied" where the two do not
    differ at all, "unknown" where nothing tells, else "open". With `more` labels there is an even
    chance that the interval excludes 0, if each is worth one label; `low` is the same if the
    unlabeled items go on adding to every label what they have added so far; with `high` the chance
    is two in three.
    """

    status: Settled
    more: int | None = None
    low: int | None = None
    high: int | None = None


def labels_needed(
    difference: Difference,
    spread: float,
    variance: float | None,
    *,
    level: float,
    n_labeled: int,
    n_unlabeled: int | None = None,
) -> LabelsNeeded:
    """How many more labels would make the paired interval exclude 0, with what chance.

    The interval reaches z s from the gap towards 0. With variance v of one item's part in the
    difference, that is what w = v / s^2 labels alone would give: the posterior is worth w labels.
    After m more the standard deviation is s sqrt(w / (w + m)), and the estimate will have moved:
    by what is known now it is normal around the gap with variance s^2 m / (w + m). So the chance
    that it is then more than z standard deviations from 0 is, with a = |gap| / s and r = m / w,

        Phi((a sqrt(1 + r) - z) / sqrt(r)) + Phi((-a sqrt(1 + r) - z) / sqrt(r)),

    the assurance of a normal design (O'Hagan, Stevens and Campbell 2005). It allows for what is
    not known of the gap; with the gap taken as it is, m = w ((z / a)^2 - 1).

    Parameters
    ----------
    difference, spread
        The paired difference, and the standard deviation of its draws.
    variance
        v; where it is not known, the posterior is taken to be worth its n labels.
    n_labeled
        n: if the posterior's precision grows in proportion to the labels, each is worth w / n.
    n_unlabeled
        How many items there are to label, where no others count (the sample estimand).
    """
    gap, low, high = difference
    if not math.isfinite(gap + low + high + spread):
        return LabelsNeeded("unknown")
    if max(abs(gap), spread) <= _ROUNDING:
        return LabelsNeeded("tied")
    if low > 0 or high < 0:
        return LabelsNeeded("settled", 0, 0, 0)
    z = NormalDist().inv_cdf((1 + level) / 2)
    # Draws may be skewed: it is the side of 0 that has to shrink.
    s = (gap - low if gap > 0 else high - gap) / z
    v = variance if variance is not None and math.isfinite(variance) else n_labeled * s**2
    if v <= 0 or s <= _ROUNDING:
        return LabelsNeeded("unknown")
    worth = v / s**2
    most = math.inf if n_unlabeled is None else max(n_unlabeled, 1)

    def whole(more: float) -> int:
        return int(min(max(math.ceil(more), 1), most))

    even, sure = (worth * _ratio(abs(gap) / s, z, chance) for chance in (1 / 2, 2 / 3))
    proportional = even * min(n_labeled / worth, 1.0) if n_labeled else even
    return LabelsNeeded("open", whole(even), whole(proportional), whole(sure))


def _ratio(a: float, z: float, chance: float) -> float:
    """The r at which the assurance reaches the chance; it rises from 0 to 1 while a < z."""

    def short_of(r: float) -> float:
        reach, root = a * math.sqrt(1 + r), math.sqrt(r)
        return float(ndtr((reach - z) / root) + ndtr((-reach - z) / root)) - chance

    return crossing(short_of, -30.0, 30.0)
