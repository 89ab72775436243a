"""Values to bytes and back: bit by bit, and nothing else is read."""

from __future__ import annotations

import hashlib
import io
import math
import pickle
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from fewlabels.errors import InputError
from fewlabels.streaming.packing import pack, unpack

_PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_ARRAYS = npst.arrays(
    st.sampled_from(["?", "i1", "<u2", ">i4", "<i8", "<f4", "<f8", ">f8", "<c16", "<U3", "S2"]),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
_VALUES = st.recursive(
    _PLAIN | _ARRAYS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_PLAIN, inner, max_size=4),
    max_leaves=15,
)


def _bits(value: Any) -> Any:
    """A value in a form whose equality is that of types, order and bits."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        return "objects", value.shape, [_bits(entry) for entry in value.ravel().tolist()]
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        order = array.size and array.strides
        return type(value), array.dtype.str, array.shape, order, array.tobytes("A")
    if isinstance(value, dict):
        return dict, [(_bits(key), _bits(entry)) for key, entry in value.items()]
    if isinstance(value, list | tuple):
        return list, [_bits(entry) for entry in value]
    if isinstance(value, float):
        return float, struct.pack("<d", value)
    return type(value), value


@given(_VALUES)
def test_what_comes_back_is_what_went_in(value: Any) -> None:
    assert _bits(unpack(pack(value))) == _bits(value)


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, None, True, -0.0, math.inf, -math.inf], 3: {None: "ä\ud800\n", False: 2**80}},
        struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([["cat", None], [1, math.nan]], dtype=object),
        np.array([], dtype=object),
        np.float32(0.1),
        np.int64(3),
        np.bool_(True),
        np.array(["2020-01-01", "NaT"], dtype="datetime64[s]"),
        np.zeros((0, 3)),
        np.array(2.5),
    ],
    ids=repr,
)
def test_hard_values(value: Any) -> None:
    assert _bits(unpack(pack(value))) == _bits(value)


def test_views_and_tuples() -> None:
    array = np.arange(24.0).reshape(4, 6)
    back = unpack(pack((array[::2, ::-2], array.T)))
    assert isinstance(back, list)
    np.testing.assert_array_equal(back[0], array[::2, ::-2])
    assert back[1].flags.f_contiguous
    back[0][:] = 0  # a state that can be added to, apart from what was packed
    assert array[0, 5] == 5


@pytest.mark.parametrize(
    "value",
    [{1, 2}, b"bytes", object(), {("a", 1): 2}, np.array([[1], {}], dtype=object)[:1],
     np.zeros(2, dtype="f8,i4"), 1j, type("Text", (str,), {})("a")],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="cannot be packed"):
        pack({"here": [value]})


def test_every_damage_is_seen() -> None:
    packed = pack({"a": [1.5, "text", np.arange(3)]})
    for place in range(len(packed)):
        flipped = bytearray(packed)
        flipped[place] ^= 1
        for damaged in (bytes(flipped), packed[:place]):
            with pytest.raises(InputError, match="damaged or of another format"):
                unpack(damaged)
    for other in (packed + b"\0", pickle.dumps({"a": 1}), b"PAR1", b"{}"):
        with pytest.raises(InputError, match="damaged"):
            unpack(other)


@pytest.mark.parametrize(
    "head",
    [
        b'{"array": 1}',
        b'{"array": -1}',
        b'{"array": "a"}',
        b'{"objects": [[3], ["a"]]}',
        b'{"dict": [[["list"], 1]]}',
        b'{"dict": 3}',
        b'{"float": "00"}',
        b'{"array": 0, "dict": []}',
        b'{"unknown": 0}',
        b"[" * 100_000,
    ],
    ids=lambda head: head[:20].decode(),
)
def test_a_head_that_nobody_wrote(head: bytes) -> None:
    """A digest that fits proves no good will: such bytes are refused, not obeyed."""
    body = io.BytesIO()
    np.savez(body, np.frombuffer(head, np.uint8), np.zeros(2))
    _refused(body.getvalue())


def test_nothing_in_them_runs() -> None:
    body = io.BytesIO()
    np.savez(body, np.frombuffer(b'{"array": 0}', np.uint8), np.array([{}], dtype=object))
    _refused(body.getvalue())
    _refused(pickle.dumps({"a": 1}))


def _refused(body: bytes) -> None:
    digest = hashlib.blake2b(body, digest_size=16).digest()
    with pytest.raises(InputError, match="damaged"):
        unpack(b"fewpack2" + digest + body)
