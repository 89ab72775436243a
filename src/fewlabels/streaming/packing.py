"""Plain values and arrays as bytes: exact, checked when read, and nothing in them can run."""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
from typing import Any

import numpy as np

from fewlabels.errors import InputError

# Mark of the format, digest of all that follows it, and an npz file: the head (JSON), the arrays.
_MARK = b"fewpack2"
_DIGEST_BYTES = 16
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
    arrays: list[np.ndarray[Any, Any]] = []
    head = json.dumps(_encode(value, arrays), separators=(",", ":")).encode("ascii")
    body = io.BytesIO()
    np.savez(body, np.frombuffer(head, np.uint8), *arrays)
    return b"".join([_MARK, _digest(body.getbuffer()), body.getbuffer()])


def unpack(packed: bytes) -> Any:
    """The value that `pack` was given; its arrays can be written to.

    Raises
    ------
    InputError
        The bytes are damaged, cut short or not from `pack`.
    """
    start = len(_MARK) + _DIGEST_BYTES
    body = memoryview(packed)[start:]
    if packed[:start] == _MARK + _digest(body):
        try:
            with np.load(io.BytesIO(body), allow_pickle=False) as file:
                head, *arrays = (file[f"arr_{k}"] for k in range(len(file.files)))
            return _decode(json.loads(head.tobytes()), arrays)
        except Exception:  # noqa: S110  # bytes that nobody packed, with a digest that fits
            pass
    raise InputError("the packed bytes are damaged or of another format; make them again")


def _digest(body: memoryview) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()


def _encode(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """What the head says of a value, whose arrays join `arrays`."""
    kind = type(value)
    if kind is list or kind is tuple:
        return [_encode(entry, arrays) for entry in value]
    if kind is dict:
        return {_DICT: [[_plain(key), _encode(entry, arrays)] for key, entry in value.items()]}
    if kind is np.ndarray and value.dtype.kind == "O":
        return {_OBJECTS: [list(value.shape), [_plain(entry) for entry in value.ravel().tolist()]]}
    if kind is np.ndarray or isinstance(value, np.generic):
        if value.dtype.kind not in _RAW_KINDS:
            raise TypeError(f"an array of {value.dtype} cannot be packed")
        arrays.append(np.asarray(value))
        return {_ARRAY if kind is np.ndarray else _NUMPY_SCALAR: len(arrays) - 1}
    return _plain(value)


def _plain(value: Any) -> Any:
    """A value without parts; classes derived from these types would not come back as they were."""
    if value is None or type(value) in (str, bool, int):
        return value
    if type(value) is float:
        # JSON has no word for these, and a NaN has bits that its name does not tell.
        return value if math.isfinite(value) else {_FLOAT: struct.pack("<d", value).hex()}
    raise TypeError(f"a {type(value).__qualname__} cannot be packed")


def _decode(said: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if isinstance(said, list):
        return [_decode(entry, arrays) for entry in said]
    if not isinstance(said, dict):
        return said
    ((kind, content),) = said.items()
    if kind == _DICT:
        return {_decode(key, arrays): _decode(entry, arrays) for key, entry in content}
    if kind == _FLOAT:
        return struct.unpack("<d", bytes.fromhex(content))[0]
    if kind == _OBJECTS:
        shape, entries = content
        array = np.empty(len(entries), dtype=object)
        array[:] = [_decode(entry, arrays) for entry in entries]
        return array.reshape(shape)
    array = dict(enumerate(arrays))[content]
    return {_ARRAY: array, _NUMPY_SCALAR: array[()]}[kind]
