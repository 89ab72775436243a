"""Objects of this package as plain values, which `pack` knows, and back: to keep a fit.

Not pickle, which runs what its bytes say: of names only those of this package are looked up, and of
classes objects are made without a call. What else an object holds must be plain values, arrays,
collections of these, functions of this package, or a random generator.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from importlib import import_module
from types import FunctionType, MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from fewlabels.errors import InputError
from fewlabels.kernels.arrays import FrozenDict, FrozenList

_PACKAGE = "fewlabels"
_COLLECTIONS: dict[str, Callable[[Any], Any]] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "FrozenList": FrozenList,
}  # fmt: skip
_MAPPINGS: dict[str, Callable[[Any], Any]] = {
    "dict": dict, "FrozenDict": FrozenDict, "mappingproxy": MappingProxyType,
}  # fmt: skip


def plain_of(value: Any) -> dict[str, Any]:
    """An object as plain values: every part once, however many others hold it.

    Raises
    ------
    TypeError
        If there is something in it of another kind.
    """
    parts: list[Any] = []
    places: dict[int, int] = {}
    held: list[Any] = []  # or another might get the identity of one that is gone

    def told(part: Any) -> Any:
        if part is None or type(part) in (bool, int, float, str):
            return part
        if id(part) not in places:
            places[id(part)] = place = len(parts)
            held.append(part)
            parts.append(None)
            parts[place] = _described(part, told)
        return [places[id(part)]]

    return {"whole": told(value), "parts": parts}


def _described(part: Any, told: Callable[[Any], Any]) -> list[Any]:
    """The kind of a part, and what makes it."""
    kind = type(part)
    if kind is np.ndarray and part.dtype.kind == "O":
        return ["objects", list(part.shape), [told(entry) for entry in part.ravel().tolist()]]
    if kind is np.ndarray:
        # In the order of its memory: sums of floating-point numbers depend on it.
        order = sorted(range(part.ndim), key=lambda axis: -abs(part.strides[axis]))
        return ["array", np.ascontiguousarray(part.transpose(order)).reshape(-1),
                [part.shape[axis] for axis in order], order]  # fmt: skip
    if isinstance(part, np.generic):
        return ["scalar", part]
    if isinstance(part, np.dtype):
        return ["dtype", part.str]
    if kind in _COLLECTIONS.values():
        return [kind.__name__, [told(entry) for entry in part]]
    if kind in (dict, FrozenDict, MappingProxyType):
        return [kind.__name__, [[told(key), told(entry)] for key, entry in part.items()]]
    if kind is slice:
        return ["slice", [told(end) for end in (part.start, part.stop, part.step)]]
    if kind is partial:
        return ["partial", told(part.func), told(part.args), told(part.keywords)]
    if kind is np.random.Generator:
        bits = part.bit_generator
        return ["generator", type(bits).__name__, told(bits.state)]
    if isinstance(part, type) and issubclass(part, np.generic):
        return ["scalar type", part.__name__]
    if kind.__module__.startswith("scipy.sparse") and part.format == "csr":
        return ["csr", kind.__name__, list(part.shape),
                [told(array) for array in (part.data, part.indices, part.indptr)]]  # fmt: skip
    if isinstance(part, FunctionType | type):
        return ["name", _name_of(part)]
    if isinstance(part, Enum):
        return ["member", _name_of(kind), part.name]
    if isinstance(part, tuple):
        return ["named tuple", _name_of(kind), [told(entry) for entry in part]]
    state = part.__getstate__() or {}
    if not isinstance(state, dict):
        raise TypeError(f"a {kind.__qualname__} has no attributes to keep")
    return ["object", _name_of(kind), [[name, told(entry)] for name, entry in state.items()]]


def object_of(plain: dict[str, Any]) -> Any:
    """The object that `plain_of` was given.

    Raises
    ------
    InputError
        If the values are of none.
    """
    try:
        return _Maker(plain["parts"]).made(plain["whole"])
    except Exception:
        raise InputError("the values are of no object of this version; make them again") from None


class _Maker:
    def __init__(self, parts: list[Any]) -> None:
        self._parts = parts
        self._made: dict[int, Any] = {}

    def made(self, told: Any) -> Any:
        if not isinstance(told, list):
            return told
        (place,) = told
        if place not in self._made:
            kind, *given = self._parts[place]
            if kind == "object":  # which may hold others that hold it
                whole = self._made[place] = object.__new__(_named(given[0], type))
                vars(whole).update({name: self.made(entry) for name, entry in given[1]})
            else:
                self._made[place] = self._of(kind, given)
        return self._made[place]

    def _of(self, kind: str, given: list[Any]) -> Any:
        made = self.made
        if kind == "array":
            values, shape, order = given
            return values.reshape(shape).transpose(np.argsort(order))
        if kind == "objects":
            array = np.empty(len(given[1]), dtype=object)
            array[:] = [made(entry) for entry in given[1]]
            return array.reshape(given[0])
        if kind in _COLLECTIONS:
            return _COLLECTIONS[kind](made(entry) for entry in given[0])
        if kind in _MAPPINGS:
            return _MAPPINGS[kind]({made(key): made(entry) for key, entry in given[0]})
        if kind == "slice":
            return slice(*map(made, given[0]))
        if kind == "partial":
            return partial(made(given[0]), *made(given[1]), **made(given[2]))
        if kind == "generator":
            bits = {"PCG64": np.random.PCG64, "Philox": np.random.Philox}[given[0]]()
            bits.state = made(given[1])
            return np.random.Generator(bits)
        if kind == "name":
            return _named(given[0], object)
        if kind == "member":
            return _named(given[0], type)[given[1]]
        if kind == "named tuple":
            return tuple.__new__(_named(given[0], type), [made(entry) for entry in given[1]])
        if kind == "csr":
            matrix = {"csr_matrix": sparse.csr_matrix, "csr_array": sparse.csr_array}[given[0]]
            return matrix(tuple(made(array) for array in given[2]), shape=given[1])
        if kind == "scalar type":
            return np.dtype(given[0]).type
        return {"scalar": lambda: given[0], "dtype": lambda: np.dtype(given[0])}[kind]()


def _name_of(thing: Any) -> str:
    name = f"{thing.__module__}:{thing.__qualname__}"
    if thing.__module__.partition(".")[0] != _PACKAGE or "<" in name:
        raise TypeError(f"{name} cannot be kept by its name")
    return name


def _named(name: str, kind: type) -> Any:
    module, _, path = name.partition(":")
    if module.partition(".")[0] != _PACKAGE:
        raise InputError(f"{name} is not of this package")
    thing: Any = import_module(module)
    for part in path.split("."):
        thing = getattr(thing, part)
    # A module of this package names others' things, too: what it has imported is not its own.
    if not isinstance(thing, kind) or thing.__module__ != module:
        raise InputError(f"{name} is not of this package")
    return thing
