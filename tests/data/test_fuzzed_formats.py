"""Damaged files of every format: an error of ours, or a table; never rows that were not there."""

from __future__ import annotations

import bz2
import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_fuzzed_files import FUZZ, examine, message
from workbooks import Date, ods, xlsx

import fewlabels as fl
from fewlabels.data import diagnose


def packed(content: bytes) -> bytes:
    """The bytes compressed by gzip, the same every time."""
    return gzip.compress(content, mtime=0)


ROWS = [
    {"label": "a", "p__m__a": 0.5, "p__m__b": 0.5, "judge": {"note": "ä"}, "r": ["A"]},
    {"label": None, "p__m__a": 0.25, "p__m__b": 0.75, "judge": {"note": "x"}, "r": ["B"]},
    {"label": "b", "p__m__a": 1, "p__m__b": 0, "judge": {"note": 3}, "r": ["B", 2]},
]
JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
CSV = "label,p__m__a,p__m__b,\na,.5,.5,\n,.25,.75,\n"
GRID = [["label", "p__m__a", "p__m__b", "day"], ["a", 0.5, 0.5, Date(45_000)], ["b", 1, 0, None]]


def arrow(*, stream: bool, codec: str | None = None) -> bytes:
    table = pa.table({"label": ["a", None], "p__m__a": [0.5, 0.25], "p__m__b": [0.5, 0.75]})
    table = table.append_column("g", pa.array(["x", "y"]).dictionary_encode())
    out = io.BytesIO()
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with new(out, table.schema, options=options) as writer:
        writer.write(table)
    return out.getvalue()


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
    packed(JSONL.encode()),
]


@FUZZ
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


def test_json_lines_of_which_a_byte_is_another(tmp_path):
    """No row is lost, and no row is made of two."""
    path = tmp_path / "file.jsonl"
    content = JSONL.encode()
    for position in range(1, len(content)):
        for byte in b'\n{}[]",: x0\xff':
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
