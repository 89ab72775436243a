"""Whatever bytes a file holds, an error of ours comes out, or predictions."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fewlabels as fl
from fewlabels.data import Diagnosis, column_names, diagnose
from fewlabels.data.npz import KEYS

FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def examine(content: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        for read in (column_names, fl.read_predictions):
            said = message(read, path)
            assert said is None or said.startswith(f"{path}: ")
        message(lambda source: check_summary(diagnose(source)), path)


def message(read: Callable[[Any], object], source: Any) -> str | None:
    """What an error of ours says, if there is one; any other error is not caught."""
    try:
        read(source)
    except fl.FewlabelsError as error:
        said = str(error)
    else:
        return None
    assert said.isprintable()
    return said


def check_summary(diagnosis: Diagnosis) -> None:
    lines = diagnosis.summary().splitlines()
    assert max(map(len, lines)) <= 80
    assert all(map(str.isprintable, lines))


def parquet() -> bytes:
    table = pa.table({"label": ["a", None], "p__m__a": [0.5, 0.25], "p__m__b": [0.5, 0.75]})
    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


def npz() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, probabilities=np.full((2, 1), 0.5), labels=np.array([0, 1]))
    return stream.getvalue()


def csv() -> bytes:
    return b'label,p__m__a,p__m__b,"g"\na,.5,.5,"x\ny"\n,.25,.75,"z"\n'


@FUZZ
@given(st.binary(max_size=200), st.sampled_from(["f.csv", "f.tsv", "f.parquet", "f.npz", "f"]))
def test_any_bytes(content, name):
    examine(content, name)


@FUZZ
@given(
    st.sampled_from([csv, npz, parquet]),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=4),
    st.floats(0, 1),
)
def test_damaged_files(make, damage, end):
    content = bytearray(make())
    for position, byte in damage:
        content[int(position * len(content))] = byte
    examine(bytes(content[: int(np.ceil(end * len(content)))]), "file")
    examine(bytes(content), "file")


CELL = st.one_of(
    st.sampled_from(
        ["", "0", "1", "1.0", "-1", "nan", "true", "a", ".5", "1e999", "null", '"', "\n"]
    ),
    st.text(max_size=4),
)
HEADER = st.one_of(
    st.sampled_from(["label", "domain", "weight", "g", "h__0", "h__1"]),
    st.sampled_from(["p__a__0", "p__a__1", "p__a__2", "p__b__1", "y__a", "y__c", "s__a", "s__d"]),
    st.text(max_size=5),
)


@FUZZ
@given(st.data(), st.lists(HEADER, min_size=1, max_size=6), st.integers(0, 5))
def test_any_table(data, header, rows):
    lines = [header] + [
        data.draw(st.lists(CELL, min_size=len(header), max_size=len(header))) for _ in range(rows)
    ]
    quoted = [[cell if "\n" not in cell and '"' not in cell else f'"{cell}"' for cell in line]
              for line in lines]  # fmt: skip
    examine("\n".join(",".join(line) for line in quoted).encode("utf-8", "replace"), "file.csv")


@FUZZ
@given(
    st.dictionaries(
        st.sampled_from([*KEYS[:-1], "groups__g"]),
        st.sampled_from(
            [
                np.full((3, 2), 0.5), np.full((3, 2, 2), 0.5), np.array([0, 1, -1]),
                np.array(["a", "b", "c"]), np.array([np.nan, np.inf, 1.0]), np.array(3),
                np.zeros((0, 2)), np.array(["a"]), np.ones((3, 2), int),
                np.array([True, False, True]),
                np.zeros((2, 2, 2, 2)), np.array([b"\xff", b"a", b"b"]),
            ]
        ),
        min_size=1,
    )
)  # fmt: skip
def test_any_arrays(arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    examine(stream.getvalue(), "file.npz")


@FUZZ
@given(st.binary(max_size=120), st.sampled_from(["labels.npy", "labels", "x/y.npy", "é.npy"]))
def test_any_archive_member(content, name):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr(name, content)
    examine(stream.getvalue(), "file.npz")


@pytest.mark.parametrize(
    "descr", ["'<f8'", "'|O'", "'<U4'", "[('a', '<i4')]", "'<M8[s]'", "(", "{}"]
)
@pytest.mark.parametrize("shape", ["(2,)", "()", "(-1,)", "(2, 10000000000)", "('x',)", "(True,)"])
def test_any_array_header(descr, shape):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        prefix = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
        file.writestr("labels.npy", prefix + header + bytes(16))
    examine(stream.getvalue(), "file.npz")


OBJECTS = st.sampled_from(
    [0, 1, -1, 0.5, None, "a", "1", True, float("nan"), b"x", [1], {"a": 1}, 10**30, object()]
)


@FUZZ
@given(
    st.dictionaries(HEADER, st.lists(OBJECTS, min_size=3, max_size=3), min_size=1, max_size=5),
)
def test_any_objects_in_pandas(columns):
    import pandas as pd

    frame = pd.DataFrame({c: pd.Series(v, dtype=object) for c, v in columns.items()})
    for read in (fl.read_predictions, diagnose):
        message(read, frame)
