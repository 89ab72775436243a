"""What was fitted as plain values: the same object again, and nothing of others."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import fewlabels as fl
from fewlabels.errors import InputError, Status
from fewlabels.kernels.simplex import softmax
from fewlabels.methods.registry import METHODS, resolve
from fewlabels.streaming.objects import object_of, plain_of
from fewlabels.streaming.packing import pack, unpack


def back(value: Any) -> Any:
    return object_of(unpack(pack(plain_of(value))))


def test_values_come_back_with_their_types() -> None:
    for value in (
        None, 1.5, "text", (1, [2, {"a": (3,)}]), {1, 2}, frozenset("ab"), slice(1, None),
        MappingProxyType({"a": 1}), np.float32(2), np.dtype("f4"), np.float32, Status.OK, softmax,
        {(1, "a"): Status.OK},
    ):  # fmt: skip
        found = back(value)
        assert found == value
        assert type(found) is type(value)


def test_arrays_keep_their_order_in_memory() -> None:
    base = np.random.default_rng(0).random((3, 4, 5))
    for array in (base, base.transpose(1, 0, 2), base.T, base[:, 1], base[::-1], base[:0]):
        found = back(array)
        np.testing.assert_array_equal(found, array)
        assert np.argsort(found.strides).tolist() == np.argsort(np.abs(array.strides)).tolist()
    assert back(np.array(["a", None, 1], dtype=object)).tolist() == ["a", None, 1]
    matrix = sparse.csr_matrix(np.eye(3))
    assert (back(matrix) != matrix).nnz == 0


def test_a_part_that_two_hold_is_one_again_and_may_hold_its_holder() -> None:
    shared = np.arange(3)
    one, other = back([shared, shared])
    assert one is other
    rows = fl.Predictions(np.full((4, 1), 0.5))
    vars(rows)["itself"] = rows
    found = back(rows)
    assert vars(found)["itself"] is found


def test_random_numbers_go_on() -> None:
    rng = np.random.default_rng(3)
    rng.random(5)
    found = back(rng)
    assert found.random() == rng.random()


@pytest.mark.parametrize(
    "value", [print, lambda: 1, object(), open, np.linalg.norm, partial(eval), fl]
)
def test_what_is_not_ours_is_not_kept(value: Any) -> None:
    with pytest.raises(TypeError):
        plain_of(value)


@pytest.mark.parametrize(
    "part",
    [
        ["name", "os:system"], ["name", "builtins:eval"], ["name", "fewlabelsx:a"],
        ["name", "fewlabels.data.sources:shutil.rmtree"], ["name", "fewlabels.nothing:a"],
        ["object", "subprocess:Popen", []], ["object", "fewlabels.kernels.simplex:softmax", []],
        ["named tuple", "fewlabels.kernels.simplex:softmax", []], ["generator", "system", {}],
        ["anything"], ["array", 3],
    ],
)  # fmt: skip
def test_names_of_others_are_not_looked_up(part: Any) -> None:
    with pytest.raises(InputError, match="of no object of this version"):
        object_of({"whole": [0], "parts": [part]})


@pytest.mark.slow_with("averaged-curves")
@pytest.mark.parametrize("name", [name for name, known in METHODS.items() if known.streams])
def test_every_method_that_reads_in_parts(name: str) -> None:
    """A new one too: its fit can be kept, and gives the same posterior."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=120)
    p = 1 / (1 + np.exp(-(rng.normal(size=(120, 3)) + (2 * truth - 1)[:, None])))
    rows = fl.Predictions(p, np.where(np.arange(120) < 40, truth, -1))
    _, model = resolve(name, rows, None)
    fitted = model.fit(rows, np.random.default_rng(0))
    fitted.posterior(rows).prepare()
    one, other = fitted.posterior(rows), back(fitted).posterior(rows)
    for j in range(3):
        np.testing.assert_array_equal(one.of(j).probabilities, other.of(j).probabilities)
