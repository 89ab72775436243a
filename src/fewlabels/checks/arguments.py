"""Checks that several rooms ask for: counts and probabilities (n, K), settings of a question."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from fewlabels.checks.arrays import SUM_ROUNDING, SUM_TOLERANCE
from fewlabels.errors import InputError, UsageError, no_level
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans

_R = TypeVar("_R")
_ENTRIES = 1 << 17
"""Numbers of one block: its temporary arrays then stay in the processor's cache."""


def refuse(
    bad: Bools,
    array: Array,
    rule: str,
    mend: str | Callable[[float], str],
    *,
    first: int = 0,
    digits: str = ".6g",
    column: bool = True,
) -> None:
    """Refuse an array for the first of its entries that a mask marks.

    Parameters
    ----------
    mend
        What to do, or what to do about such a value.
    first, digits, column
        The item of row 0, how the value is written, and whether its column is named.

    Raises
    ------
    InputError
        "<rule>; got <value> for item <i>, column <j> (from 0): <mend>".
    """
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        place = f"item {first + at[0]}" + "".join(f", column {j}" for j in at[1:] if column)
        words = mend if isinstance(mend, str) else mend(float(array[at]))
        raise InputError(f"{rule}; got {array[at]:{digits}} for {place} (from 0): {words}")


def numbers(name: str, value: Any, dimensions: int) -> Array:
    """An array of numbers of so many dimensions, with a row at least; not copied if it is one.

    Raises
    ------
    InputError
        If it is not.
    """
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


def label_counts(histogram: Any) -> Array:
    """Counts (n, K): whole numbers, none negative, at least two classes.

    Raises
    ------
    InputError
        If they are not.
    """
    counts = numbers("histogram", histogram, 2)
    if counts.shape[1] < 2:
        raise InputError(
            f"`histogram` must have a column per class, two at least; got {counts.shape[1]}"
        )
    rule = "`histogram` must be counts, 0, 1, 2, ..."

    def check(part: Array, first: int) -> None:
        refuse(_no_counts(part), part, rule, _as_counts, first=first, digits="", column=False)

    _by_block(counts, check)
    return counts


def _no_counts(counts: Array) -> Bools:
    if counts.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            return ~((counts >= 0) & (counts == np.floor(counts)) & (counts < np.inf))
    return counts < 0


def _as_counts(value: float) -> str:
    if np.isnan(value):
        return "write 0 where nobody chose the class"
    if value < 0 or np.isinf(value):
        return "pass how many annotators chose each class"
    return "multiply shares by the number of annotators of the item"


def probability_rows(probabilities: Any, shape: tuple[int, ...] | None = None) -> Array:
    """Probabilities (n, K) whose rows sum to 1, or are NaN.

    Raises
    ------
    InputError
        If they are not, or have another shape than `shape`, that of the histogram.
    """
    p = numbers("probabilities", probabilities, 2)
    if shape is not None and p.shape != shape:
        raise InputError(
            f"`probabilities` must have the shape {shape} of `histogram`; got {p.shape}: pass one "
            "row per item and one column per class"
        )
    return distributions(p, "apply a softmax, or divide percentages by 100", column=False)


def distributions(p: Array, out_of_range: str, *, column: bool) -> Array:
    """Probabilities (n, K) whose rows sum to 1, or are NaN; a copy where rounding is mended.

    Parameters
    ----------
    out_of_range
        How to mend what is not between 0 and 1.
    column
        Whether the message says the column, too.

    Raises
    ------
    InputError
        If they are not.
    """

    def off(part: Array, first: int) -> Ints:
        """Rows of a block to renormalise."""
        part = part.astype(np.float64, copy=False)
        total = part.sum(axis=1)
        # NaN compares false: a block with a NaN takes the slow road as well.
        if part.min() >= 0 and part.max() <= 1 and np.abs(total - 1).max() <= SUM_ROUNDING:
            return np.zeros(0, dtype=np.int64)
        empty = np.isnan(part).all(axis=1)
        partly = np.isnan(total) & ~empty
        if partly.any():
            raise InputError(
                "`probabilities` has NaN in part of a row: item "
                f"{first + int(partly.argmax())} (from 0); fill the row, or leave all of it NaN "
                "where there is no prediction"
            )
        with np.errstate(invalid="ignore"):
            outside = (part < -1e-6) | (part > 1 + 1e-6)
            edge = ((part < 0) | (part > 1)).any(axis=1)
        rule = "`probabilities` must be between 0 and 1"
        refuse(outside, part, rule, out_of_range, first=first, column=column)
        gap = np.where(empty, 0.0, np.abs(total - 1))
        rule = "`probabilities` must sum to 1 over the classes"
        mend = "apply a softmax, or add the missing class"
        refuse(gap > SUM_TOLERANCE, total, rule, mend, first=first)
        return first + np.flatnonzero((gap > SUM_ROUNDING) | edge)

    mended = np.concatenate(_by_block(p, off))
    if len(mended):
        p = np.array(p, dtype=np.float64)
        p[mended] = np.clip(p[mended], 0, 1)
        p[mended] /= p[mended].sum(axis=1, keepdims=True)
    return p


def _by_block(array: Array, check: Callable[[Array, int], _R]) -> list[_R]:
    """The check of each block of rows and its first item, on threads."""
    blocks = spans(len(array), max(_ENTRIES // max(array.shape[1], 1), 1))
    return list(map_blocks(lambda rows: check(array[rows], rows.start), blocks))


def bounded(name: str, value: Any, n: int, bounds: tuple[float, float] = (0.0, 1.0)) -> Floats:
    """One number per item (n,) within bounds; NaN = no prediction.

    Raises
    ------
    InputError
        If it is not.
    """
    array = numbers(name, value, 1).astype(np.float64, copy=False)
    low, high = bounds
    if array.shape != (n,):
        raise InputError(f"`{name}` must have {n} entries, one per item; got shape {array.shape}")
    slack = 1e-6 * (high - low)
    with np.errstate(invalid="ignore"):
        refuse(
            (array < low - slack) | (array > high + slack),
            array,
            f"`{name}` must be between {low:g} and {high:g}",
            "correct it, or write NaN where there is no prediction",
        )
    return np.clip(array, low, high)


def bins_of(bins: Any) -> int:
    """The number of bins.

    Raises
    ------
    UsageError
        If it is not a whole number from 1 to 10,000.
    """
    if not _whole(bins) or not 1 <= int(bins) <= 10_000:
        raise UsageError(f"`bins` must be a whole number from 1 to 10000; got {bins!r}")
    return int(bins)


def level_of(level: Any) -> float | None:
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


def seed_of(random_state: Any) -> int:
    """The seed; None = 0.

    Raises
    ------
    UsageError
        If it is not a whole number, 0 or larger.
    """
    if random_state is None:
        return 0
    if not _whole(random_state) or random_state < 0:
        raise UsageError(
            f"`random_state` must be a whole number, 0 or larger; got {random_state!r}"
        )
    return int(random_state)


def workers_of(workers: Any) -> int | None:
    """How many threads or processes; None = one per available processor.

    Raises
    ------
    UsageError
        If it is not a whole number, at least 1.
    """
    if workers is not None and (not isinstance(workers, Integral) or workers < 1):
        raise UsageError(f"`workers` must be a whole number, at least 1; got {workers!r}")
    return None if workers is None else int(workers)


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
