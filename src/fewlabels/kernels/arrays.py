"""Array types of the kernels, and read-only values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
UInts = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
"""The types of arrays in annotations; `Array` is of any dtype."""

_K = TypeVar("_K")
_V = TypeVar("_V")
_T = TypeVar("_T")


def _refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
    copied = "dict" if isinstance(self, dict) else "list"
    raise TypeError(f"a result cannot be written into; {copied}() copies it")


class FrozenDict(dict[_K, _V]):
    """A read-only dictionary; it compares, pickles and prints as any other."""

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return frozen, (dict(self),)


class FrozenList(list[_T]):
    """A read-only list: no tuple, which indexes an array in another way."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return frozen, (list(self),)


class Frozen:
    """A result whose arrays are read-only, and its mappings and lists frozen, nested ones too."""

    def __post_init__(self) -> None:
        self.__setstate__(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: frozen(value) for name, value in state.items()})


def frozen(value: Any) -> Any:
    """The value with read-only views for arrays, and mappings, lists and sets frozen.

    The array behind a view stays writeable: it may belong to the caller. Of other frozen objects of
    this package only the arrays are made read-only, so that a method can keep working state.
    """
    if isinstance(value, np.ndarray):
        return read_only(value.view()) if value.flags.writeable else value
    if isinstance(value, Mapping):
        same = isinstance(value, FrozenDict)
        return value if same else FrozenDict({k: frozen(v) for k, v in value.items()})
    if isinstance(value, set):
        return frozenset(value)
    if isinstance(value, list | tuple) and not isinstance(value, FrozenList):
        values = [v if isinstance(v, str | int | float) else frozen(v) for v in value]
        if isinstance(value, list):
            return FrozenList(values)
        if all(a is b for a, b in zip(values, value, strict=True)):
            return value
        make: Any = type(value)
        return make(*values) if hasattr(value, "_fields") else tuple(values)
    if hasattr(value, "indptr"):
        return read_only(value.copy())
    ours = is_dataclass(value) and type(value).__module__.startswith("fewlabels.")
    if ours and not isinstance(value, Frozen | type) and value.__dataclass_params__.frozen:
        for name in (field.name for field in fields(value)):
            item = getattr(value, name)
            if not isinstance(item, Mapping | list | set):
                object.__setattr__(value, name, frozen(item))
    return value


def read_only(value: _T) -> _T:
    """The very array, sparse matrix or tuple of these, made read-only."""
    arrays: Any = value if isinstance(value, tuple) else (value,)
    for array in arrays:
        if hasattr(array, "indptr"):
            read_only((array.data, array.indices, array.indptr))
        elif isinstance(array, np.ndarray):
            array.flags.writeable = False
    return value
