"""Values, arrays and objects of this package as bytes: exact, checked when read, never run.

Unlike pickle, which runs what its bytes say: names are looked up in this package alone, and objects
of its classes are made without a call.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import partial
from importlib import import_module
from itertools import chain
from types import FunctionType, MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fewlabels.errors import InputError
from fewlabels.kernels.arrays import FrozenDict, FrozenList

# Mark of the format, digest of all that follows it, and an npz file: the head (JSON), the arrays.
_MARK = b"fewpack3"
_DIGEST_BYTES = 16
_RAW_KINDS = "biufcmMSU"  # arrays whose memory says all: anything but objects and records
_PACKAGE = "fewlabels"


def pack(value: Any) -> bytes:
    """Bytes that `unpack` turns into the same value, bit by bit.

    Values are text, int, float, bool, None; numpy arrays, scalars and types; sparse rows;
    collections and mappings of these; functions, classes and objects of classes of this package.
    Arrays keep type, shape and memory order. An object that occurs twice, or within itself, is
    restored as one.
    """
    packer = _Packer()
    head = {"whole": packer.reference(value), "parts": packer.parts}
    packed = json.dumps(head, separators=(",", ":")).encode("ascii")
    body = io.BytesIO()
    np.savez(body, np.frombuffer(packed, np.uint8), *packer.arrays)
    return b"".join([_MARK, _digest(body.getbuffer()), body.getbuffer()])


def unpack(packed: bytes) -> Any:
    """The value that `pack` was given; its arrays can be written to."""
    start = len(_MARK) + _DIGEST_BYTES
    body = memoryview(packed)[start:]
    if packed[:start] == _MARK + _digest(body):
        try:
            with np.load(io.BytesIO(body), allow_pickle=False) as file:
                head, *arrays = (file[f"arr_{k}"] for k in range(len(file.files)))
            plain = json.loads(head.tobytes())
            return _Unpacker(plain["parts"], arrays).value(plain["whole"])
        except Exception:  # noqa: S110  # bytes that nobody packed, with a digest that fits
            pass
    raise InputError("the packed bytes are damaged or of another format; make them again")


def _digest(body: memoryview) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()


class _Kind(NamedTuple):
    """A type whose values are made from parts by a call without side effects."""

    of: type
    parts: Callable[[Any], Iterable[Any]]
    make: Callable[[list[Any]], Any]


def _mapping(of: type, make: Callable[[dict[Any, Any]], Any]) -> _Kind:
    return _Kind(
        of,
        lambda mapping: chain.from_iterable(mapping.items()),
        lambda parts: make(dict(zip(parts[::2], parts[1::2], strict=True))),
    )


def _rows(of: type) -> _Kind:
    return _Kind(
        of,
        lambda matrix: (matrix.data, matrix.indices, matrix.indptr, matrix.shape),
        lambda parts: of(tuple(parts[:3]), shape=parts[3]),
    )


def _generator(parts: list[Any]) -> np.random.Generator:
    bits = {"PCG64": np.random.PCG64, "Philox": np.random.Philox}[parts[0]]()
    bits.state = parts[1]
    return np.random.Generator(bits)


_KINDS = {
    # JSON has no word for NaN and infinity, and a NaN has bits that its name does not tell.
    "float": _Kind(
        float,
        lambda number: [struct.pack("<d", number).hex()],
        lambda parts: struct.unpack("<d", bytes.fromhex(parts[0]))[0],
    ),
    **{of.__name__: _Kind(of, list, of) for of in (list, tuple, set, frozenset, FrozenList)},
    "dict": _mapping(dict, dict),
    "FrozenDict": _mapping(FrozenDict, FrozenDict),
    "Counter": _mapping(Counter, Counter),
    "mappingproxy": _mapping(MappingProxyType, MappingProxyType),
    "slice": _Kind(slice, lambda s: (s.start, s.stop, s.step), lambda parts: slice(*parts)),
    "partial": _Kind(
        partial,
        lambda f: (f.func, f.args, f.keywords),
        lambda parts: partial(parts[0], *parts[1], **parts[2]),
    ),
    "generator": _Kind(
        np.random.Generator,
        lambda rng: (type(rng.bit_generator).__name__, rng.bit_generator.state),
        _generator,
    ),
    "csr_matrix": _rows(sparse.csr_matrix),
    "csr_array": _rows(sparse.csr_array),
}
_NAMES = {kind.of: name for name, kind in _KINDS.items()}


class _Packer:
    """What a value is made of, as plain lists: every part once, however many others hold it."""

    def __init__(self) -> None:
        self.parts: list[list[Any]] = []
        self.arrays: list[np.ndarray[Any, Any]] = []
        self._places: dict[int, int] = {}
        self._held: list[Any] = []  # or another might get the identity of one that is gone

    def reference(self, value: Any) -> Any:
        """A plain value itself, or the place of a part."""
        kind = type(value)
        if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
            return value
        if id(value) not in self._places:
            self._places[id(value)] = place = len(self.parts)
            self._held.append(value)
            self.parts.append([])
            name, content = self._described(value)
            self.parts[place] = [name, *map(self.reference, content)]
        return [self._places[id(value)]]

    def _described(self, value: Any) -> tuple[str, Iterable[Any]]:
        """The kind of a part, and what makes it."""
        kind = type(value)
        if kind in _NAMES:
            return _NAMES[kind], _KINDS[_NAMES[kind]].parts(value)
        if kind is np.ndarray and value.dtype.kind == "O":
            return "objects", (value.ndim, *value.shape, *value.ravel().tolist())
        if kind is np.ndarray:
            # In the order of its memory: sums of floating-point numbers depend on it.
            order = sorted(range(value.ndim), key=lambda axis: -abs(value.strides[axis]))
            stored = value.transpose(order)
            return "array", (self._stored(stored), *stored.shape, *order)
        if isinstance(value, np.generic):
            return "scalar", [self._stored(np.asarray(value))]
        if isinstance(value, np.dtype):
            return "dtype", [value.str]
        if isinstance(value, type) and issubclass(value, np.generic):
            return "scalar type", [value.__name__]
        if isinstance(value, FunctionType | type):
            return "name", [_name_of(value)]
        if isinstance(value, Enum):
            return "member", (_name_of(kind), value.name)
        if isinstance(value, tuple):
            return "named tuple", (_name_of(kind), *value)
        name, state = _name_of(kind), value.__getstate__() or {}
        if not isinstance(state, dict):
            raise TypeError(f"a {kind.__qualname__} cannot be packed: it has no attributes to keep")
        return "object", (name, *chain.from_iterable(state.items()))

    def _stored(self, array: np.ndarray[Any, Any]) -> int:
        if array.dtype.kind not in _RAW_KINDS:
            raise TypeError(f"an array of {array.dtype} cannot be packed")
        self.arrays.append(np.ascontiguousarray(array).reshape(-1))
        return len(self.arrays) - 1


class _Unpacker:
    def __init__(self, parts: Sequence[Any], arrays: Sequence[np.ndarray[Any, Any]]) -> None:
        self._parts, self._arrays = dict(enumerate(parts)), dict(enumerate(arrays))
        self._made: dict[int, Any] = {}

    def value(self, reference: Any) -> Any:
        if not isinstance(reference, list):
            return reference
        (place,) = reference
        if place not in self._made:
            name, *content = self._parts[place]
            if name == "object":  # which may hold others that hold it
                made = self._made[place] = object.__new__(_named(content[0], type))
                attributes = map(self.value, content[1:])
                vars(made).update(zip(attributes, attributes, strict=True))
            else:
                self._made[place] = self._make(name, [self.value(entry) for entry in content])
        return self._made[place]

    def _make(self, name: str, parts: list[Any]) -> Any:
        if name in _KINDS:
            return _KINDS[name].make(parts)
        first, *rest = parts
        if name == "array":
            shape, order = rest[: len(rest) // 2], rest[len(rest) // 2 :]
            return self._arrays[first].reshape(shape).transpose(np.argsort(order))
        if name == "objects":
            return np.fromiter(rest[first:], dtype=object).reshape(rest[:first])
        if name == "scalar":
            return self._arrays[first][0]
        if name == "dtype":
            return np.dtype(first)
        if name == "scalar type":
            return np.dtype(first).type
        if name == "name":
            return _named(first, object)
        if name == "member":
            return _named(first, type)[rest[0]]
        return {"named tuple": tuple.__new__}[name](_named(first, type), rest)


def _name_of(thing: Any) -> str:
    name = f"{thing.__module__}:{thing.__qualname__}"
    if thing.__module__.partition(".")[0] != _PACKAGE or "<" in name:
        raise TypeError(f"{name} cannot be packed: it is not of this package")
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
