"""Plain values and arrays as bytes: exact, checked when read, and nothing in them can run."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from typing import Any

import numpy as np

from fewlabels.errors import InputError

# Mark of the format, digest of all that follows it, length of the head, head (JSON), arrays.
_MARK = b"fewpack1"
_DIGEST_BYTES = 16
_PREFIX = struct.Struct(f"<{len(_MARK)}s{_DIGEST_BYTES}sQ")
_RAW_KINDS = "biufcmMSU"  # arrays whose memory says all: anything but objects and records

# Every JSON object of the head has one key, which says what it stands for.
_DICT, _ARRAY, _NUMPY_SCALAR, _OBJECTS, _FLOAT = "dict", "array", "scalar", "objects", "float"


def pack(value: Any) -> bytes:
    """Bytes that `unpack` turns into the same value, bit by bit.

    Parameters
    ----------
    value
        Dictionaries and lists, as deep as wanted, of text, int, float, bool, None and numpy arrays
        or scalars: numbers, bool, dates, fixed-length text; arrays of objects may hold text, int,
        float, bool and None. Keys of dictionaries are text, int, float, bool or None. Tuples come
        back as lists. Arrays keep their type, shape and whether they are in Fortran's order.

    Raises
    ------
    TypeError
        Anything else: a mistake in the program, not in the data.
    """
    memory = _Memory()
    head = json.dumps(_encode(value, memory), separators=(",", ":")).encode("ascii")
    digest = _digest(head, *memory.parts)
    return b"".join([_PREFIX.pack(_MARK, digest, len(head)), head, *memory.parts])


def unpack(packed: bytes) -> Any:
    """The value that `pack` was given; its arrays can be written to.

    Raises
    ------
    InputError
        The bytes are damaged, cut short or not from `pack`.
    """
    try:
        mark, digest, length = _PREFIX.unpack_from(packed)
        body = memoryview(packed)[_PREFIX.size :]
        if mark == _MARK and digest == _digest(body[:length], body[length:]):
            return _decode(json.loads(bytes(body[:length])), body[length:])
    except (struct.error, ValueError, TypeError, OverflowError, RecursionError):
        pass  # bytes that nobody packed, with or without a digest that fits
    raise InputError("the packed bytes are damaged or of another format; make them again")


class _Memory:
    """The memory of arrays, one after another."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._length = 0

    def add(self, part: bytes) -> int:
        """Keep a part; gives where it starts."""
        start = self._length
        self.parts.append(part)
        self._length += len(part)
        return start


def _digest(*parts: bytes | memoryview) -> bytes:
    state = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        state.update(part)
    return state.digest()


def _encode(value: Any, memory: _Memory) -> Any:
    """What the head says of a value; the memory of its arrays goes to `memory`."""
    kind = type(value)
    if kind is list or kind is tuple:
        return [_encode(entry, memory) for entry in value]
    if kind is dict:
        return {_DICT: [[_plain(key), _encode(entry, memory)] for key, entry in value.items()]}
    if kind is np.ndarray and value.dtype.kind == "O":
        return {_OBJECTS: [list(value.shape), [_plain(entry) for entry in value.ravel().tolist()]]}
    if kind is np.ndarray or isinstance(value, np.generic):
        return {_ARRAY if kind is np.ndarray else _NUMPY_SCALAR: _raw(value, memory)}
    return _plain(value)


def _plain(value: Any) -> Any:
    """A value without parts; classes derived from these types would not come back as they were."""
    if value is None or type(value) in (str, bool, int):
        return value
    if type(value) is float:
        # JSON has no word for these, and a NaN has bits that its name does not tell.
        return value if math.isfinite(value) else {_FLOAT: struct.pack("<d", value).hex()}
    raise TypeError(f"a {type(value).__qualname__} cannot be packed")


def _raw(value: Any, memory: _Memory) -> list[Any]:
    """Type, shape and order of an array; sums depend on the order, so it is kept."""
    array = np.asarray(value)
    if array.dtype.kind not in _RAW_KINDS:
        raise TypeError(f"an array of {array.dtype} cannot be packed")
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    start = memory.add(array.tobytes("F" if fortran else "C"))
    return [array.dtype.str, list(array.shape), fortran, start]


def _decode(said: Any, memory: memoryview) -> Any:
    if isinstance(said, list):
        return [_decode(entry, memory) for entry in said]
    if not isinstance(said, dict):
        return said
    ((kind, content),) = said.items()
    if kind == _DICT:
        return {_decode(key, memory): _decode(entry, memory) for key, entry in content}
    if kind == _FLOAT:
        return struct.unpack("<d", bytes.fromhex(content))[0]
    if kind == _OBJECTS:
        shape, entries = content
        array = np.empty(len(entries), dtype=object)
        array[:] = [_decode(entry, memory) for entry in entries]
        return array.reshape(shape)
    array = _array(memory, *content)
    return array[()] if kind == _NUMPY_SCALAR else array


def _array(
    memory: memoryview, name: str, shape: list[int], fortran: bool, start: int
) -> np.ndarray[Any, Any]:
    dtype = np.dtype(name)
    if dtype.kind not in _RAW_KINDS:
        raise ValueError(name)
    size = math.prod(shape) * dtype.itemsize
    if start < 0 or start + size > len(memory):
        raise ValueError(start)
    # A copy: the bytes are read-only, and states are added to.
    whole = np.empty(shape, dtype, order="F" if fortran else "C")
    if size:
        flat = np.frombuffer(memory[start : start + size], dtype)
        whole[...] = flat.reshape(shape, order="F" if fortran else "C")
    return whole
