"""Bayesian bootstrap over items, of sums that add: one matrix product gives all its draws."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.interval_draws import interval as around
from fewlabels.kernels.label_histograms import (
    Annotated,
    Scheme,
    Scored,
    Sums,
    scored_sums,
    sums_by_unit,
)
from fewlabels.kernels.pseudo_items import pseudo_items

MOST_UNITS = 1000
"""More items than this are dealt into so many random blocks, which are drawn as a whole."""

_NUMBERS = 8_000_000
"""Numbers held at a time in the sums of all units, or of some draws."""


def replicates(
    data: Annotated, scheme: Scheme, level: float, seed: int, whole: Sums | None = None
) -> Iterator[Sums]:
    """Sums of bootstrap draws, some draws at a time, as many as the level asks for.

    Items have exponential weights (Rubin 1981). One pseudo-item per draw stands for what has not
    been seen: the prediction of one of the items, with as many labels, from a random distribution.
    Intervals therefore do not collapse where all labels agree.

    Parameters
    ----------
    whole
        Sums of one unit of all items, where `data` are a random sample of them: draws then lie
        around these sums, with the noise of as many items (`_stretched`).
    """
    rng = np.random.default_rng(seed)
    used = np.flatnonzero(data.counts.any(axis=1) & ~np.isnan(data.probabilities[:, 0]))
    own = data.take(used)
    used = used[_by_content((own.counts, own.probabilities, own.weight, own.pair))]
    n, k = len(used), data.counts.shape[1]
    width = (k + 1) * scheme.bins * (13 if scheme.dispersion else 9)
    units = min(n, MOST_UNITS, max(_NUMBERS // width, 100))
    sums = sums_by_unit(data, scheme, rng.permutation(used), units)
    for rows in spans(draws_for(level), max(_NUMBERS // width, 1)):
        size = rows.stop - rows.start
        factor = rng.standard_exponential((size, units))
        pseudo = pseudo_items(rng, k, size)
        mass = pseudo.mass.sum(axis=1)
        picks = used[(pseudo.place * n).astype(np.int64)]
        unseen = data.take(picks)
        counts = unseen.counts.sum(axis=1).astype(np.int64)
        unseen = unseen._replace(counts=rng.multinomial(counts, _normalised(pseudo.mass)))
        extra = sums_by_unit(unseen, scheme, np.arange(size), size)
        yield Sums(*_drawn(sums, extra, factor, mass, whole))


def scored_replicates(
    scored: Scored,
    scheme: Scheme,
    level: float,
    seed: int,
    whole: tuple[Floats, Floats] | None = None,
) -> Iterator[tuple[Floats, Floats]]:
    """Like `replicates`, of a scored statistic: what has not been seen is at an end of [0, 1]."""
    rng = np.random.default_rng(seed)
    scored = scored.take(_by_content(scored))
    n = len(scored.mean)
    units = min(n, MOST_UNITS)
    unit = np.empty(n, dtype=np.int64)
    unit[rng.permutation(n)] = np.arange(n) % units
    sums = scored_sums(scored, scheme, unit, units)
    size = draws_for(level)
    factor = rng.standard_exponential((size, units))
    pseudo = pseudo_items(rng, 2, size)
    end = (pseudo.mass[:, 1] > pseudo.mass[:, 0]).astype(np.float64)
    unseen = scored.take((pseudo.place * n).astype(np.int64))
    unseen = unseen._replace(mean=end, square=end, product=end)
    extra = scored_sums(unseen, scheme, np.arange(size), size)
    items, cells = _drawn(sums, extra, factor, pseudo.mass.sum(axis=1), whole)
    yield items, cells


def _by_content(parts: Iterable[Floats | None]) -> Ints:
    """The items in an order that is not that of the rows: which draw is whose must not show it.

    By their numbers, to nine digits, so that neither the unit of a statistic shows.
    """
    given = [part for part in parts if part is not None]
    # The first parts count most: `lexsort` goes by the last of its columns.
    columns = [c for part in reversed(given) for c in part.reshape(len(part), -1).T]
    return np.lexsort(np.round(columns, 9))


def _drawn(
    sums: Sequence[Floats],
    extra: Sequence[Floats],
    factor: Floats,
    mass: Floats,
    whole: Sequence[Floats] | None,
) -> list[Floats]:
    """Sums of each draw: units times their factors (D, U), and the pseudo-item times its mass."""
    size, units = factor.shape
    drawn = [(factor @ part.reshape(units, -1)).reshape(size, *part.shape[1:]) for part in sums]
    if whole is not None:
        drawn = _stretched(drawn, [part.sum(axis=0) for part in sums], [part[0] for part in whole])
    return [
        part + more * mass.reshape(-1, *[1] * (part.ndim - 1))
        for part, more in zip(drawn, extra, strict=True)
    ]


def _stretched(
    drawn: Sequence[Floats], seen: Sequence[Floats], every: Sequence[Floats]
) -> list[Floats]:
    """Draws of the sums over a sample, (D, F, ...), as draws of those over all items.

    With n of all and m in the sample, `every` + sqrt(n / m) (draw - `seen`) has the covariance of
    draws with a weight for each of the n, which is the sum of squares over items. No draw takes
    more from a cell than there is: of a cell with few items the sample may hold too many.
    """
    root = math.sqrt(float(every[0][0]) / float(seen[0][0]))
    out = []
    for draws, part, total in zip(drawn, seen, every, strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.where(part > 0, total / part, np.inf).min(axis=0)
        out.append(total + np.minimum(root, most) * (draws - part))
    return out


def _normalised(mass: Floats) -> Floats:
    mass = np.maximum(mass, 1e-300)
    return mass / mass.sum(axis=1, keepdims=True)


def draws_for(level: float) -> int:
    """How many draws an interval takes: more for levels whose ends lie further out."""
    return min(max(1000, 50 * math.ceil(0.8 / (1 - level))), 20_000)


def interval(
    value: float,
    draws: Floats,
    level: float,
    *,
    bounds: tuple[float, float] | None = None,
    recentre: bool = False,
    root: bool = False,
) -> tuple[float, float]:
    """Ends (low, high) with low <= value <= high, from bootstrap draws (D,) of the value.

    Parameters
    ----------
    recentre
        Shift the draws to the value on average: the bootstrap mean of a debiased loss is the
        plugin of the data, as a resample adds the sampling variance once more.
    root
        The interval is for sqrt(max(value, 0)).
    """
    draws = draws[~np.isnan(draws)]
    if math.isnan(value) or not len(draws):
        return math.nan, math.nan
    if recentre:
        draws = draws + (value - draws.mean())
    low, high = map(float, around(value, draws, level))
    if root:
        low, high = math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))
    if bounds is not None:
        low, high = max(low, bounds[0]), min(high, bounds[1])
    return low, high
