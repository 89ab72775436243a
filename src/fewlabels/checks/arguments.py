"""Checks shared by rooms: counts and probabilities (n, K), settings, small JSON and TOML files."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from numbers import Integral, Number, Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fewlabels.errors import InputError, UsageError, no_level, one_line, quoted, unknown
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans

_R = TypeVar("_R")
SUM_TOLERANCE = 1e-3
"""Rows of probabilities whose sum is further from 1 than this are refused."""

SUM_ROUNDING = 1e-5
"""Deviations below this are float32 rounding: neither mended nor mentioned."""

MOST_WHOLE = 2**53
"""Not every whole number beyond this is exact in float64."""

_ENTRIES = 1 << 17
"""Numbers of one block: its temporary arrays then stay in the processor's cache."""


def refuse(
    bad: Bools, array: Array, rule: str, mend: str | Callable[[float], str], *,
    first: int = 0, digits: str = ".6g", column: bool = True,
) -> None:  # fmt: skip
    """Refuse an array for the first of its entries that a mask marks.

    `mend` says what to do, or makes it from the value. `first` is the item of row 0, `digits` the
    format of the value, and `column` whether its column is named.
    """
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        place = f"item {first + at[0]}" + "".join(f", column {j}" for j in at[1:] if column)
        words = mend if isinstance(mend, str) else mend(float(array[at]))
        raise InputError(f"{rule}; got {array[at]:{digits}} for {place} (from 0): {words}")


_NO_NUMBERS = {"c": "is complex. Complex data not supported: pass real numbers",
               "m": "holds durations; pass numbers or text",
               "M": "holds times; pass numbers or text",
               "V": "holds records (a structured array); pass one of their fields"}  # fmt: skip
"""Kinds of arrays, by numpy's letters, that are neither numbers nor text."""


def plain_array(name: str, value: Any, *, names: bool = False) -> Array:
    """Any array-like as an array of numbers, texts or objects; every array argument passes here.

    Masked values, NA and None become NaN among numbers, None among others; with `names`, times
    become texts. An array of numbers or texts is returned as it is.
    """
    if hasattr(value, "toarray"):
        raise InputError(f"`{name}` is sparse, which is not supported; pass its .toarray()")
    try:
        if hasattr(value, "detach"):  # a tensor of PyTorch that records gradients
            value = value.detach().cpu()
        masked = _masked(value) if _holds_mask(value) else None
        array = np.asarray(value if masked is None else masked.data)
        if array.dtype.kind == "O":
            array = _plain_objects(array)
        elif array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8")
        elif array.dtype.kind == "T":
            array = array.astype(object)
        elif array.dtype.kind in "mM" and names:
            nothing, array = np.isnat(array), array.astype(str).astype(object)
            array[nothing] = None
    except Exception as error:  # whatever its own library raises
        what = one_line(str(error), 160)
        raise InputError(f"`{name}` must be an array of numbers or text; got {what}") from None
    if array.dtype.kind in _NO_NUMBERS:
        raise InputError(f"`{name}` {_NO_NUMBERS[array.dtype.kind]}")
    if masked is not None and np.ma.getmaskarray(masked).any():
        array = array.astype(np.float64 if array.dtype.kind in "biuf" and not names else object)
        array[np.ma.getmaskarray(masked)] = np.nan if array.dtype.kind == "f" else None
    return array


def _holds_mask(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_holds_mask, value))
    return isinstance(value, np.ma.MaskedArray)


def _masked(value: Any) -> Any:
    """Lists of masked arrays with their masks, which numpy forgets."""
    return np.ma.stack(list(map(_masked, value))) if isinstance(value, list | tuple) else value


def _plain_objects(array: Array) -> Array:
    """Objects with bytes as texts, and None for missing values."""
    kinds = set(map(type, array.ravel().tolist()))
    if any(issubclass(kind, complex | np.complexfloating) for kind in kinds):
        raise ValueError("complex numbers")
    if kinds <= {str, type(None), int, bool}:
        return array
    out = np.empty(array.shape, dtype=object)
    for i, value in enumerate(array.ravel().tolist()):
        if isinstance(value, list | tuple | dict | set | np.ndarray) and value is not np.ma.masked:
            raise ValueError(f"a {type(value).__name__} for one entry: rows of different lengths")
        # NaN differs from itself; NA and NaT of pandas are known by the names of their types.
        missing = isinstance(value, Number) and value != value
        missing = missing or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant")
        out.flat[i] = None if missing else value.decode() if isinstance(value, bytes) else value
    return out


def numbers(name: str, value: Any, dimensions: int | None = None) -> Array:
    """An array of numbers, with a row at least; not copied if it is one."""
    array = plain_array(name, value)
    if array.dtype.kind not in "iufb":
        array = as_real(name, array)
    if dimensions is not None and array.ndim != dimensions:
        shape = "(items, classes)" if dimensions == 2 else "(items,)"
        raise InputError(f"`{name}` must have the shape {shape}; got {array.shape}")
    if dimensions is not None and len(array) == 0:
        raise InputError(f"`{name}` has no rows; pass at least one item")
    return array


def as_real(name: str, array: Array, dtype: Any = np.float64) -> Array:
    """A copy of an array as numbers of a type."""
    integral = array.dtype.kind in "iu" and array.size and dtype is np.float64
    if integral and (int(array.max()) > MOST_WHOLE or int(array.min()) < -MOST_WHOLE):
        odd = max(int(array.max()), -int(array.min()))
        raise InputError(
            f"`{name}` must be whole numbers up to 2^53, beyond which neighbours are one; got {odd}"
        )
    try:
        return array.astype(dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"`{name}` must be numbers; got {one_line(str(error), 160)}") from None


LARGEST_SCORE = 1e250
"""The squares of larger scores, and their sums, overflow."""


def too_large(value: object, where: str) -> InputError:
    """The error for such a score."""
    return InputError(
        f"`scores` must be between -{LARGEST_SCORE:g} and {LARGEST_SCORE:g}; got {value} "
        f"{where}: divide all scores of the classifier by a number, which changes no ranking"
    )


def matrix(name: str, value: Any, dimensions: int = 2, dtype: Any = np.float64) -> Array:
    """A copy of numbers with this many dimensions, finite or NaN."""
    array = as_real(name, plain_array(name, value), dtype)
    if array.ndim != dimensions:
        raise InputError(
            f"`{name}` must have {dimensions} dimensions; got shape {array.shape}: see "
            "fewlabels.Predictions for the shapes"
        )
    if array.ndim and len(array) == 0:
        raise InputError(f"`{name}` has no rows; pass at least one item")
    if not array.size:
        raise InputError(f"`{name}` has no columns; got shape {array.shape}: pass at least one")
    if array.dtype.kind == "f" and np.isinf(array).any():
        at = tuple(int(i) for i in np.argwhere(np.isinf(array))[0])
        raise InputError(
            f"`{name}` must be finite or NaN; got {array[at]} at {at} (counted from 0): correct "
            "it, or leave it empty"
        )
    if name == "scores" and (np.abs(array) > LARGEST_SCORE).any():
        at = tuple(int(i) for i in np.argwhere(np.abs(array) > LARGEST_SCORE)[0])
        raise too_large(array[at], f"at {at} (counted from 0)")
    return array


def label_counts(histogram: Any) -> Array:
    """Counts (n, K): whole numbers, none negative, at least two classes."""
    counts = numbers("histogram", histogram, 2)
    if counts.shape[1] < 2:
        raise InputError(
            f"`histogram` must have a column per class, two at least; got {counts.shape[1]}"
        )
    return whole_counts(counts)


def whole_counts(counts: Array) -> Array:
    """The counts of labels (n, K) of a histogram, as they are."""

    def check(block: Array, first: int) -> None:
        with np.errstate(invalid="ignore"):
            bad = ~((block >= 0) & (block == np.floor(block)) & (block <= MOST_WHOLE))
        rule = "`histogram` must be whole counts"
        refuse(bad, block, rule, _as_counts, first=first)

    _by_block(counts, check)
    return counts


def _as_counts(value: float) -> str:
    if np.isnan(value):
        return "write 0 where nobody chose the class"
    if value > MOST_WHOLE:
        return "that many annotators do not exist"
    if value < 0:
        return "pass how many annotators chose each class"
    return "multiply shares by the number of annotators of the item"


def probability_rows(probabilities: Any, shape: tuple[int, ...] | None = None) -> Array:
    """Probabilities (n, K) whose rows sum to 1, or are NaN."""
    p = numbers("probabilities", probabilities, 2)
    if shape is not None and p.shape != shape:
        raise InputError(
            f"`probabilities` must have the shape {shape} of `histogram`; got {p.shape}: pass one "
            "row per item and one column per class"
        )
    return distributions(p, "apply a softmax, or divide percentages by 100", column=False)


def distributions(p: Array, out_of_range: str, *, column: bool) -> Array:
    """Probabilities (n, K) whose rows sum to 1, or are NaN; a copy where rounding is mended.

    `out_of_range` says how to mend what is not between 0 and 1; with `column` the message names the
    column, too.
    """

    def off(block: Array, first: int) -> Ints:
        """Rows of a block to renormalise."""
        block = block.astype(np.float64, copy=False)
        total = block.sum(axis=1)
        # NaN compares false: a block with a NaN takes the slow path as well.
        if block.min() >= 0 and block.max() <= 1 and np.abs(total - 1).max() <= SUM_ROUNDING:
            return np.zeros(0, dtype=np.int64)
        empty = np.isnan(block).all(axis=1)
        partly = np.isnan(total) & ~empty
        if partly.any():
            raise InputError(
                "`probabilities` has NaN in part of a row: item "
                f"{first + int(partly.argmax())} (from 0); fill the row, or leave all of it NaN "
                "where there is no prediction"
            )
        with np.errstate(invalid="ignore"):
            outside = (block < -1e-6) | (block > 1 + 1e-6)
            edge = ((block < 0) | (block > 1)).any(axis=1)
        rule = "`probabilities` must be between 0 and 1"
        refuse(outside, block, rule, out_of_range, first=first, column=column)
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
    """One number per item (n,) within bounds; NaN = no prediction."""
    array = numbers(name, value, 1).astype(np.float64, copy=False)
    low, high = bounds
    one_per(name, array, n)
    slack = 1e-6 * (high - low)
    with np.errstate(invalid="ignore"):
        rule = f"`{name}` must be between {low:g} and {high:g}"
        mend = "correct it, or write NaN where there is no prediction"
        refuse((array < low - slack) | (array > high + slack), array, rule, mend)
    return np.clip(array, low, high)


def whole(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """A whole number within bounds."""
    number = isinstance(value, Integral) and not isinstance(value, bool)
    if not number or int(value) < least or (most is not None and int(value) > most):
        span = ", 0 or larger" if least == 0 else f", at least {least}"
        span = span if most is None else f" from {least} to {most}"
        raise UsageError(f"`{name}` must be a whole number{span}; got {value!r}")
    return int(value)


def few_enough(n: int, most: int, what: str, argument: str = "models") -> None:
    """Refuse more classifiers than `most`, before the work."""
    if n > most:
        raise UsageError(
            f"{what} are of at most {most:,} classifiers, and there are {n:,}; name those that "
            f"matter with `{argument}` (--models)"
        )


def is_missing(value: Any) -> bool:
    """Whether a value is missing: None, NaN, or one of pandas' own."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    # NaN is the one number that differs from itself.
    return isinstance(value, float | np.datetime64 | np.timedelta64) and bool(value != value)


def group_value(value: Any) -> str:
    """A value of a column as the names of groups have it: 1.0 is 1, what is missing is null."""
    if is_missing(value):
        return "null"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value)
    return str(value)


def bins_of(bins: Any) -> int:
    """The number of bins, from 1 to 10,000."""
    return whole("bins", bins, 1, 10_000)


def level_of(level: Any) -> float | None:
    """The confidence level; None = no intervals."""
    return None if level is None else some_level(level)


def some_level(level: Any) -> float:
    """The confidence level, where intervals are required."""
    if not isinstance(level, Real) or isinstance(level, bool) or not 0 < float(level) < 1:
        raise UsageError(no_level(level))
    if (1 + float(level)) / 2 >= 1:
        raise UsageError(
            "`confidence_level` must leave some probability outside the interval; got "
            f"{level!r}, which is 1 by the arithmetic of quantiles: take 0.999999 or less"
        )
    return float(level)


RandomState = int | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None
"""What gives a seed: itself (None: 0), or a source of random numbers."""


def seed_of(random_state: Any) -> int:
    """The seed, a whole number of at least 0; None = 0.

    A generator gives its next 32 bits, so that it goes on, and a `SeedSequence` always the same.
    """
    if isinstance(random_state, np.random.SeedSequence):
        return int(random_state.generate_state(1)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**32, dtype=np.uint32))
    return 0 if random_state is None else whole("random_state", random_state, 0)


def workers_of(workers: Any) -> int | None:
    """How many threads or processes, at least 1; None = one per available processor."""
    return None if workers is None else whole("workers", workers)


def one_of(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """A value that is one of the choices."""
    if not any(value is c or (isinstance(value, str) and value == c) for c in choices):
        raise UsageError(unknown(name, value, [str(c) for c in choices]))
    return value


def not_negative(name: str, value: Any) -> float:
    """A finite number of at least 0."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not 0 <= number < np.inf:
        raise UsageError(f"`{name}` must be a finite number of at least 0; got {quoted(value)}")
    return number


def one_per(name: str, array: Array, n: int, unit: str = "item") -> Array:
    """An array (n,) with an entry per item, or per row."""
    if array.shape != (n,):
        size = len(array) if array.ndim == 1 else f"shape {array.shape}"
        raise InputError(f"`{name}` must have {n} entries, one per {unit}; got {size}")
    return array


def positive(name: str, value: Any) -> None:
    """Refuse what is not a finite number above 0."""
    if not isinstance(value, (int, float, np.number)) or not 0 < value < np.inf:
        raise UsageError(f"`{name}` must be a number above 0; got {value!r}")


def chosen_from(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of the choices of a setting."""
    if value not in choices:
        raise UsageError(f"`{name}` must be one of {', '.join(choices)}; got {value!r}")


def refuse_beyond_memory(needed: float, what: str, mend: str) -> None:
    """Refuse work that needs more bytes than there are."""
    free = available_memory()
    if free is not None and needed > free:
        raise InputError(
            f"{what} takes about {needed / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are "
            f"free; {mend}"
        )


# How much memory there is, before it is allocated.

_GROUPS = (
    ("/sys/fs/cgroup", "max", "current", ""),
    ("/sys/fs/cgroup/memory", "limit_in_bytes", "usage_in_bytes", "total_"),
)
"""A container by cgroups v2 and v1: folder, files of the limit and of the use, and the prefix of
totals. Cached files count in the use, but are freed on demand."""


def available_memory() -> int | None:
    """Bytes available without swapping; None where the system does not say.

    The least of what the machine, a container and a limit of this process (`ulimit -v`) leave.
    """
    left: list[int] = []
    with suppress(OSError, ValueError, TypeError):
        match = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text("ascii"))
        left.append(int(match[1]) << 10 if match else _physical())
    for folder, limit, used, total in _GROUPS:
        with suppress(OSError, ValueError):  # "max" is none
            bound, now, fields = (
                Path(folder, f"memory.{name}").read_text("ascii") for name in (limit, used, "stat")
            )
            cached = re.findall(rf"^{total}(?:in)?active_file (\d+)$", fields, re.MULTILINE)
            left.append(int(bound) - int(now) + sum(map(int, cached)))
    with suppress(ImportError, OSError, ValueError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
            left.append(most - pages * os.sysconf("SC_PAGE_SIZE"))
    return max(min(left), 0) if left else None


def _physical() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


# --- small files beside the data ------------------------------------------------------------------

MOST_BYTES = 64 << 20
"""Largest size of a file that is written by hand, or holds some coefficients per classifier."""


def side_text(path: str | os.PathLike[str], what: str = "UTF-8; save it again as UTF-8") -> str:
    """The text of a file, without a byte-order mark."""
    try:
        file = Path(path)
        if file.exists() and not file.is_file() and not file.is_dir():
            raise InputError("is not a regular file; save it as a file first")
        if file.is_file() and file.stat().st_size > MOST_BYTES:
            raise InputError(f"is larger than {MOST_BYTES >> 20} MB, which no such file is")
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"is not {what}") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None


def side_json(path: str | os.PathLike[str]) -> Any:
    """The content of a JSON file."""
    return _parsed(json.loads, side_text(path, "JSON: it is not UTF-8"), "JSON")


def check_format(version: Any, newest: int) -> None:
    """Refuse a file of ours that does not say its format, or whose format is newer than `newest`.

    Each of our own formats is numbered from 1; all up to the newest are read.
    """
    if type(version) is not int or version < 1:
        raise InputError("does not say of which format it is; restore it, or write it again")
    if version > newest:
        raise InputError(
            f"was written by a newer version (format {version}, and this one reads up to "
            f"{newest}); update fewlabels"
        )


def parse_toml(text: str) -> dict[str, Any]:
    """The table of a TOML text."""
    table: dict[str, Any] = _parsed(tomllib.loads, text, "valid TOML")
    return table


def _parsed(parse: Any, text: str, kind: str) -> Any:
    try:
        return parse(text)
    except RecursionError:
        raise InputError(f"is not {kind}: it is nested too deeply") from None
    except ValueError as error:
        reason = one_line(str(error)).partition("; use sys.")[0]
        raise InputError(f"is not {kind}: {reason}") from None
