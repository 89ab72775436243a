"""Groups of a numeric column: it is cut at edges."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Array, Bools, Floats

MOST_VALUES = 12
"""A numeric column with more distinct values is cut."""

_QUINTILES = (0.2, 0.4, 0.6, 0.8)


def cut(
    values: Array, rows: Bools, column: str, edges: Sequence[float] | None
) -> tuple[Array, list[str]]:
    """Group of each item as text (n,), and what was done where nobody asked for it.

    Parameters
    ----------
    values
        Text of each item, None where it is not given.
    rows
        Items that count; quintiles are theirs.
    edges
        Where to cut, rising; None cuts numeric columns of many values at quintiles.

    Raises
    ------
    InputError
        If edges are given and a value is no number.
    """
    numbers = _numbers(values)
    if edges is None:
        if numbers is None or len(set(values[rows].tolist())) <= MOST_VALUES:
            return values, []
        known = numbers[rows & ~np.isnan(numbers)]
        cuts = np.unique(np.quantile(known, _QUINTILES, method="inverted_cdf"))
        shown = listed([f"{e:g}" for e in cuts])
        note = f"column {quoted(column)} is cut at its quintiles ({shown}); other edges by `bins`"
        return _binned(numbers, cuts), [note]
    if numbers is None:
        raise InputError(
            f"column {quoted(column)} cannot be cut (`bins`): not all its values are numbers"
        )
    return _binned(numbers, np.asarray(edges, dtype=float)), []


def _numbers(values: Array) -> Floats | None:
    """The values as numbers, NaN where not given; None if some are none."""
    try:
        return np.array([np.nan if v in (None, "null") else float(v) for v in values.tolist()])
    except ValueError:
        return None


def _binned(numbers: Floats, edges: Floats) -> Array:
    """Names of half-open intervals [a, b)."""
    texts = [f"{e:g}" for e in edges]
    between = [f"{a} to <{b}" for a, b in pairwise(texts)]
    names = np.array([f"<{texts[0]}", *between, f">={texts[-1]}", None], dtype=object)
    place = np.searchsorted(edges, numbers, side="right")
    return names[np.where(np.isnan(numbers), len(edges) + 1, place)]
