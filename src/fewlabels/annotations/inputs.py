"""Label counts and probabilities, checked once at the door of the room."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np

from fewlabels.door import SUM_TOLERANCE, sampling_weight
from fewlabels.errors import InputError, UsageError
from fewlabels.kernels.arrays import Array, Floats
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.label_histograms import Annotated
from fewlabels.wording import no_level

_ROUNDING = 1e-5
"""Sums of probabilities this close to 1 differ by the rounding of float32."""

_ENTRIES = 1 << 17


def annotated(
    histogram: Any, probabilities: Any, disagreement: Any = None, weight: Any = None
) -> Annotated:
    """Counts and probabilities (n, K), predicted disagreement and weight (n,), ready to sum.

    Nothing is copied that need not be. Rows of probabilities whose sum is within 1e-3 of 1 are
    renormalised.

    Raises
    ------
    InputError
        Where the arrays are not what is said here, or no item has both a label and a prediction.
    """
    counts = checked_counts(histogram)
    p = checked_probabilities(probabilities, counts.shape)
    pair = None
    if disagreement is not None:
        pair = fractions_of("disagreement", disagreement, len(counts))
    data = Annotated(counts, p, pair, checked_weight(weight, len(counts)))
    if not _any_used(data):
        raise InputError(
            "no item has both a label and a prediction: every row of `histogram` is zero or meets "
            "a row of NaN; pass at least one labeled item with probabilities"
        )
    return data


def _any_used(data: Annotated) -> bool:
    for rows in spans(len(data.counts), max(_ENTRIES // data.counts.shape[1], 1)):
        labeled = data.counts[rows].any(axis=1) & ~np.isnan(data.probabilities[rows, 0])
        if data.weight is not None:
            labeled &= data.weight[rows] > 0
        if labeled.any():
            return True
    return False


def _numbers(name: str, value: Any, dimensions: int) -> Array:
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "iufb":
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"`{name}` must be numbers; got {error}") from None
    if array.ndim != dimensions:
        shape = "(items, classes)" if dimensions == 2 else "(items,)"
        raise InputError(f"`{name}` must have the shape {shape}; got {array.shape}")
    if len(array) == 0:
        raise InputError(f"`{name}` has no rows; pass at least one item")
    return array


def _blocks(array: Array, check: Any) -> Iterator[Any]:
    rows = max(_ENTRIES // max(array.shape[1], 1), 1)
    return map_blocks(check, spans(len(array), rows))


def checked_counts(histogram: Any) -> Array:
    """Counts (n, K): whole numbers, none negative, at least two classes.

    Raises
    ------
    InputError
        If they are not.
    """
    counts = _numbers("histogram", histogram, 2)
    if counts.shape[1] < 2:
        raise InputError(
            f"`histogram` must have a column per class, two at least; got {counts.shape[1]}"
        )

    def odd(rows: slice) -> tuple[int, Any] | None:
        part = counts[rows]
        if part.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                good = (part >= 0) & (part == np.floor(part)) & (part < np.inf)
        elif part.dtype.kind == "i":
            good = part >= 0
        else:
            return None
        if good.all():
            return None
        i, k = np.argwhere(~good)[0]
        return rows.start + int(i), part[i, k]

    for found in _blocks(counts, odd):
        if found is not None:
            item, value = found
            raise InputError(
                f"`histogram` must be counts, 0, 1, 2, ...; got {value} for item {item} (from 0): "
                f"{_mend(float(value))}"
            )
    return counts


def _mend(value: float) -> str:
    if np.isnan(value):
        return "write 0 where nobody chose the class"
    if value < 0 or np.isinf(value):
        return "pass how many annotators chose each class"
    return "multiply shares by the number of annotators of the item"


def checked_probabilities(probabilities: Any, shape: tuple[int, ...] | None = None) -> Array:
    """Probabilities (n, K) whose rows sum to 1, or are NaN.

    Raises
    ------
    InputError
        If they are not, or have another shape than `shape`, that of the histogram.
    """
    p = _numbers("probabilities", probabilities, 2)
    if shape is not None and p.shape != shape:
        raise InputError(
            f"`probabilities` must have the shape {shape} of `histogram`; got {p.shape}: pass one "
            "row per item and one column per class"
        )

    def look(rows: slice) -> tuple[str | None, Array]:
        part = p[rows].astype(np.float64, copy=False)
        total = part.sum(axis=1)
        # NaN compares false: a block with a NaN takes the slow road as well.
        if part.min() >= 0 and part.max() <= 1 and np.abs(total - 1).max() <= _ROUNDING:
            return None, np.zeros(0, dtype=np.int64)
        return _slow_look(part, total, rows.start)

    off: list[Array] = []
    for wrong, rows in _blocks(p, look):
        if wrong is not None:
            raise InputError(wrong)
        off.append(rows)
    mend = np.concatenate(off)
    if len(mend):
        p = np.array(p, dtype=np.float64)
        p[mend] = np.clip(p[mend], 0, 1)
        p[mend] /= p[mend].sum(axis=1, keepdims=True)
    return p


def _slow_look(p: Floats, total: Floats, first: int) -> tuple[str | None, Array]:
    """What is wrong with a block, or which of its rows to renormalise."""
    empty = np.isnan(p).all(axis=1)
    partly = np.isnan(total) & ~empty
    with np.errstate(invalid="ignore"):
        outside = ((p < -1e-6) | (p > 1 + 1e-6)).any(axis=1)
        gap = np.where(empty, 0.0, np.abs(total - 1))
        edge = ((p < 0) | (p > 1)).any(axis=1)
    none = np.zeros(0, dtype=np.int64)
    if partly.any():
        return (
            f"`probabilities` has NaN in part of a row: item {first + int(partly.argmax())} (from "
            "0); fill the row, or leave all of it NaN where there is no prediction"
        ), none
    if outside.any():
        i = int(outside.argmax())
        value = p[i][(p[i] < -1e-6) | (p[i] > 1 + 1e-6)][0]
        return (
            f"`probabilities` must be between 0 and 1; got {value:.6g} for item {first + i} (from "
            "0): apply a softmax, or divide percentages by 100"
        ), none
    if gap.max() > SUM_TOLERANCE:
        i = int(gap.argmax())
        return (
            f"`probabilities` must sum to 1 over the classes; got {total[i]:.6g} for item "
            f"{first + i} (from 0): apply a softmax, or add the missing class"
        ), none
    return None, first + np.flatnonzero((gap > _ROUNDING) | edge)


def fractions_of(name: str, value: Any, n: int, bounds: tuple[float, float] = (0.0, 1.0)) -> Floats:
    """One number per item (n,) within bounds; NaN = no prediction.

    Raises
    ------
    InputError
        If it is not.
    """
    array = _numbers(name, value, 1).astype(np.float64, copy=False)
    low, high = bounds
    if array.shape != (n,):
        raise InputError(f"`{name}` must have {n} entries, one per item; got shape {array.shape}")
    slack = 1e-6 * (high - low)
    with np.errstate(invalid="ignore"):
        outside = (array < low - slack) | (array > high + slack)
        if outside.any():
            i = int(outside.argmax())
            raise InputError(
                f"`{name}` must be between {low:g} and {high:g}; got {array[i]:.6g} for item {i} "
                "(from 0): correct it, or write NaN where there is no prediction"
            )
    return np.clip(array, low, high)


def checked_weight(weight: Any, n: int) -> Floats | None:
    """Weights (n,) that sum to n; None where all are equal.

    Raises
    ------
    InputError
        If one is negative or missing, or all are zero.
    """
    if weight is None:
        return None
    w = sampling_weight(weight, n)
    return None if (w == w[0]).all() else w


def checked_bins(bins: Any) -> int:
    """The number of bins.

    Raises
    ------
    UsageError
        If it is not a whole number from 1 to 10,000.
    """
    if not isinstance(bins, Integral) or isinstance(bins, bool) or not 1 <= int(bins) <= 10_000:
        raise UsageError(f"`bins` must be a whole number from 1 to 10000; got {bins!r}")
    return int(bins)


def checked_level(level: Any) -> float | None:
    """The confidence level; None = no intervals.

    Raises
    ------
    UsageError
        If it is not between 0 and 1.
    """
    if level is None:
        return None
    if not isinstance(level, Real) or isinstance(level, bool) or not 0 < float(level) < 1:
        raise UsageError(no_level(level))
    return float(level)


def checked_seed(random_state: Any) -> int:
    """The seed; None = 0.

    Raises
    ------
    UsageError
        If it is not a whole number, or negative.
    """
    if random_state is None:
        return 0
    whole = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    if not whole or random_state < 0:
        raise UsageError(
            f"`random_state` must be a whole number of at least 0, or None; got {random_state!r}"
        )
    return int(random_state)
