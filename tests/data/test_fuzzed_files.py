"""Whatever a file or a frame holds: an error of ours, or a table without rows that were not there.

Damaged files of every format, any bytes, any tables, any values.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
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
from workbooks import Date, ods, xlsx

import fewlabels as fl
from fewlabels.data.binary import KEYS
from fewlabels.data.doctor.diagnose import diagnose
from fewlabels.data.doctor.facts import Diagnosis
from fewlabels.data.read import column_names

FUZZ = settings(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
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


ROWS = [
    {"label": "a", "p__m__a": 0.5, "p__m__b": 0.5, "judge": {"note": "ä"}, "r": ["A"]},
    {"label": None, "p__m__a": 0.25, "p__m__b": 0.75, "judge": {"note": "x"}, "r": ["B"]},
    {"label": "b", "p__m__a": 1, "p__m__b": 0, "judge": {"note": 3}, "r": ["B", 2]},
]
JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
CSV = "label,p__m__a,p__m__b,\na,.5,.5,\n,.25,.75,\n"
GRID = [["label", "p__m__a", "p__m__b", "day"], ["a", 0.5, 0.5, Date(45_000)], ["b", 1, 0, None]]


TABLE = pa.table({"label": ["a", None], "p__m__a": [0.5, 0.25], "p__m__b": [0.5, 0.75]})


def arrow(*, stream: bool, codec: str | None = None) -> bytes:
    table = TABLE.append_column("g", pa.array(["x", "y"]).dictionary_encode())
    out = io.BytesIO()
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with new(out, table.schema, options=options) as writer:
        writer.write(table)
    return out.getvalue()


def parquet() -> bytes:
    stream = io.BytesIO()
    pq.write_table(TABLE, stream)
    return stream.getvalue()


def npz() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, probabilities=np.full((2, 1), 0.5), labels=np.array([0, 1]))
    return stream.getvalue()


def zstd(text: str) -> bytes:
    stream = pa.BufferOutputStream()
    with pa.CompressedOutputStream(stream, "zstd") as out:
        out.write(text.encode())
    return stream.getvalue().to_pybytes()


FILES = [
    JSONL.encode(),
    JSONL.encode("utf-16"),
    json.dumps(ROWS, indent=1).encode(),
    json.dumps({"label": ["a", "b"], "p__m__a": [0.5, 1], "p__m__b": [0.5, 0]}).encode(),
    arrow(stream=False),
    arrow(stream=True),
    arrow(stream=False, codec="zstd"),
    xlsx({"S": GRID}),
    xlsx({"S": GRID}, compressed=True),
    ods({"S": GRID[:2]}),
    CSV.encode(),
    CSV.encode("utf-16"),
    zstd(CSV),
    bz2.compress(CSV.encode()),
    gzip.compress(JSONL.encode(), mtime=0),
    b'label,p__m__a,p__m__b,"g"\na,.5,.5,"x\ny"\n,.25,.75,"z"\n',
    parquet(),
    npz(),
]


@FUZZ
@given(st.binary(max_size=200), st.sampled_from(["f.csv", "f.tsv", "f.parquet", "f.npz", "f"]))
def test_any_bytes(content, name):
    examine(content, name)


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


@settings(FUZZ, max_examples=100)
@given(
    st.sampled_from(FILES),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=4),
    st.floats(0, 1),
)
def test_damaged_files(whole, damage, end):
    content = bytearray(whole)
    for position, byte in damage:
        content[int(position * len(content))] = byte
    examine(bytes(content[: int(np.ceil(end * len(content)))]), "file")
    examine(bytes(content), "file")


@pytest.mark.few(1)
@pytest.mark.parametrize("text", [JSONL, JSONL.replace("\n", "\r\n")])
def test_json_lines_cut_anywhere(tmp_path, text):
    """What is left are the first rows whole, or an error."""
    path = tmp_path / "file.jsonl"
    content = text.encode()
    ends = [
        end for end, byte in enumerate(content) if byte == ord("}") and content[end + 1] in b"\r\n"
    ]
    for cut in range(1, len(content)):
        path.write_bytes(content[:cut])
        complete = sum(end < cut for end in ends)
        between = content[:cut].rstrip().endswith(b"}") and complete and (
            content[ends[complete - 1] + 1 : cut].strip() == b""
        )  # fmt: skip
        said = message(fl.read_predictions, path)
        assert (said is None) == bool(between)
        if said is None:
            assert len(fl.read_predictions(path).labels) == complete


@pytest.mark.slow
@pytest.mark.parametrize("all_pairs", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_json_lines_of_which_a_byte_is_another(tmp_path, all_pairs):
    """No row is lost, and no row is made of two; at each position one byte, or all of them."""
    path = tmp_path / "file.jsonl"
    content, others = JSONL.encode(), b'\n{}[]",: x0\xff'
    for position in range(1, len(content)):
        for byte in others if all_pairs else [others[position % len(others)]]:
            path.write_bytes(content[:position] + bytes([byte]) + content[position + 1 :])
            try:
                n_items = fl.read_predictions(path).n_items
            except fl.InputError:
                continue
            assert n_items == len(ROWS)


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4),
        st.sampled_from([0, 1, 0.5, "1", "a", 2**70]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["label", "p__a__1", "p__a__0", "g", "", "g.h"]), inner),
    ),
    max_leaves=12,
)  # fmt: skip


@FUZZ
@given(st.lists(VALUES, min_size=1, max_size=4), st.booleans())
def test_any_json(values, lines):
    text = "\n".join(map(json.dumps, values)) if lines else json.dumps(values)
    examine(text.encode(), "file.json")


@FUZZ
@given(VALUES)
def test_any_objects_in_memory(value):
    for read in (fl.read_predictions, diagnose):
        if not isinstance(value, str):
            message(read, value)
