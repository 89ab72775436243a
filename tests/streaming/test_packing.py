"""Values and objects of ours to bytes and back: bit by bit, and nothing else is read."""

from __future__ import annotations

import hashlib
import io
import json
import math
import pickle
import struct
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import sparse

import fewlabels as fl
from contract_methods import fresh
from fewlabels.errors import InputError, Status
from fewlabels.kernels.simplex import softmax
from fewlabels.methods.registry import METHODS
from fewlabels.streaming.packing import pack, unpack

_PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_ARRAYS = npst.arrays(
    st.sampled_from(["?", "i1", "<u2", ">i4", "<i8", "<f4", "<f8", ">f8", "<c16", "<U3", "S2"]),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
_VALUES = st.recursive(
    _PLAIN | _ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(_PLAIN, inner, max_size=4)
    ),
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
        return type(value), [_bits(entry) for entry in value]
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


def test_views_come_back_as_arrays_that_can_be_written_to() -> None:
    array = np.arange(24.0).reshape(4, 6)
    back = unpack(pack([array[::2, ::-2], array.T]))
    np.testing.assert_array_equal(back[0], array[::2, ::-2])
    assert back[1].flags.f_contiguous
    back[0][:] = 0  # a state that can be added to, apart from what was packed
    assert array[0, 5] == 5


def _back(value: Any) -> Any:
    return unpack(pack(value))


def test_values_come_back_with_their_types() -> None:
    for value in (
        None, 1.5, "text", (1, [2, {"a": (3,)}]), {1, 2}, frozenset("ab"), slice(1, None),
        MappingProxyType({"a": 1}), np.float32(2), np.dtype("f4"), np.float32, Status.OK, softmax,
        {(1, "a"): Status.OK},
    ):  # fmt: skip
        found = _back(value)
        assert found == value
        assert type(found) is type(value)


def test_arrays_keep_their_order_in_memory() -> None:
    base = np.random.default_rng(0).random((3, 4, 5))
    for array in (base, base.transpose(1, 0, 2), base.T, base[:, 1], base[::-1], base[:0]):
        found = _back(array)
        np.testing.assert_array_equal(found, array)
        assert np.argsort(found.strides).tolist() == np.argsort(np.abs(array.strides)).tolist()
    assert _back(np.array(["a", None, 1], dtype=object)).tolist() == ["a", None, 1]
    matrix = sparse.csr_matrix(np.eye(3))
    assert (_back(matrix) != matrix).nnz == 0


def test_a_part_that_two_hold_is_one_again_and_may_hold_its_holder() -> None:
    shared = np.arange(3)
    one, other = _back([shared, shared])
    assert one is other
    rows = fl.Predictions(np.full((4, 1), 0.5))
    vars(rows)["itself"] = rows
    found = _back(rows)
    assert vars(found)["itself"] is found


def test_random_numbers_go_on() -> None:
    rng = np.random.default_rng(3)
    rng.random(5)
    found = _back(rng)
    assert found.random() == rng.random()


@pytest.mark.parametrize(
    "value",
    [b"bytes", object(), 1j, type("Text", (str,), {})("a"), np.zeros(2, dtype="f8,i4"),
     np.array([1, object()], dtype=object), print, lambda: 1, open, np.linalg.norm, partial(eval),
     fl],
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
    "part",
    [
        ["array", 1, 2, 0], ["array", -1, 2, 0], ["array", "a", 2, 0], ["array", 0, 3, 0],
        ["scalar", 5], ["objects", 1, 3, "a"], ["dict", 3], ["dict", [1], 1], ["float", "00"],
        ["list", [7]], ["list", [-1]], ["tuple", [0]], ["list", [0, 0]], ["dtype", "nothing"],
        ["name", "os:system"], ["name", "builtins:eval"], ["name", "fewlabelsx:a"],
        ["name", "fewlabels.data.sources:shutil.rmtree"], ["name", "fewlabels.nothing:a"],
        ["object", "subprocess:Popen"], ["object", "fewlabels.kernels.simplex:softmax"],
        ["named tuple", "fewlabels.kernels.simplex:softmax"], ["generator", "system", None],
        ["unknown", 0], [], {}, 3,
    ],
    ids=str,
)  # fmt: skip
def test_a_head_that_nobody_wrote(part: Any) -> None:
    """A digest that fits proves no good will: such bytes are refused, not obeyed."""
    _refused(_body({"whole": [0], "parts": [part, ["list"]]}))


@pytest.mark.parametrize("head", [b"{}", b"[]", b"3", b"[" * 100_000], ids=lambda h: str(h[:3]))
def test_a_head_of_another_form(head: bytes) -> None:
    _refused(_body(head))


def test_nothing_in_them_runs() -> None:
    head = {"whole": [0], "parts": [["array", 0, 1, 0]]}
    _refused(_body(head, np.array([{}], dtype=object)))
    _refused(pickle.dumps({"a": 1}))


def _body(head: Any, array: Any = (0.0, 0.0)) -> bytes:
    packed = head if isinstance(head, bytes) else json.dumps(head).encode()
    body = io.BytesIO()
    np.savez(body, np.frombuffer(packed, np.uint8), np.asarray(array))
    return body.getvalue()


def _refused(body: bytes) -> None:
    digest = hashlib.blake2b(body, digest_size=16).digest()
    with pytest.raises(InputError, match="damaged"):
        unpack(b"fewpack3" + digest + body)


@pytest.mark.few(8)
@pytest.mark.slow_with("averaged-curves", "confusion-cbee", "confusion-hcbee", "cbee")
@pytest.mark.parametrize("name", [name for name, known in METHODS.items() if known.streams])
def test_every_method_that_reads_in_parts(name: str) -> None:
    """A new one too: its fit can be kept, and gives the same posterior."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=120)
    p = 1 / (1 + np.exp(-(rng.normal(size=(120, 3)) + (2 * truth - 1)[:, None])))
    rows = fl.Predictions(p, np.where(np.arange(120) < 40, truth, -1))
    fitted = fresh(name).fit(rows, np.random.default_rng(0))
    fitted.posterior(rows).prepare()
    one, other = fitted.posterior(rows), _back(fitted).posterior(rows)
    for j in range(3):
        np.testing.assert_array_equal(one.of(j).probabilities, other.of(j).probabilities)
