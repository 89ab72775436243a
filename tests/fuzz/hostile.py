"""What is hostile, in tables: texts, arrays, files, records, databases."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from attempts import TABLE

from fewlabels.data.label_record import ENDING, Event, Header

BAD: dict[str, Any] = json.loads(Path(__file__).with_name("payloads.json").read_text("utf-8"))
"""Texts by where they are put."""

ANSWERS = {
    "nothing": None, "its end": b"", "zeros": bytes(1 << 16), "ones": b"\xff" * 999,
    "a web page": b"HTTP/1.1 200 OK\r\n\r\n", "a banner": b"SSH-2.0-x\r\n", "a pickle": b"\x80\4N.",
    "no end": b"\1" + bytes(7) + b"\xff" * 8, "half": b"\2" + bytes(7) + b"\5" + bytes(7),
}  # fmt: skip
"""Of a stranger to whoever connects."""

# Records of labels --------------------------------------------------------------------------------

WHOSE = Header("comments.csv", "id", 60, "d1", ("fine", "toxic"), "toxic", "anna", "t0")
RECORD = Path(f"r{ENDING}")
TARGETS = ("whole", "none", "nowhere/r", ".", str(RECORD), "fifo", "/dev/null", "/dev/full",
           "/dev/zero", "/proc/self/mem")  # fmt: skip
CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "and half a line": lambda b: b + b'{"event": "la', "and zeros": lambda b: b + bytes(99),
    "without its end": lambda b: b[:-1], "twice": lambda b: b * 2, "packed": gzip.compress,
    "with CRLF": lambda b: b.replace(b"\n", b"\r\n"), "and blank": lambda b: b + b"\n \n",
    "with a BOM": lambda b: b"\xef\xbb\xbf" + b, "UTF-16": lambda b: b.decode().encode("utf-16"),
    "and a list": lambda b: b + b"[]\n", "and more": lambda b: b + b'{"event": "burn"}\n',
    "and 8 MB": lambda b: b + b'{"event": "note", "text": "' + b"x" * (8 << 20) + b'"}\n',
}  # fmt: skip
WRITER = f"""import sys
from fewlabels.labeling.journal import *
with Journal(sys.argv[1], {WHOSE}) as journal:
    for k in range(10**6):
        journal.add(Event("label", f"c{{k}}", "anna", "t1", "fine", "random", 0.1, 10, ("text",)))
        print(k, flush=True)
"""
"""A program that labels for ever, and says what is saved."""


def event(item: str, kind: Any = "label") -> Event:
    """An event on an item."""
    more: dict[str, Any] = {"text": "n"} if kind == "note" else {}
    if kind in ("label", "cannot-say"):
        more = {"order": "random", "probability": 0.1, "left": 10, "shown": ("text",)}
    return Event(
        kind, item, "anna", "t1", "fine" if kind in ("label", "change") else None, **more
    )  # fmt: skip


# Databases ----------------------------------------------------------------------------------------


@cache
def database(kind: str, name: str, by: str = "g") -> bytes:
    """A file of a database with the rows in a table of this name and in `items`."""
    header, *rows = (line.split(",") for line in TABLE.decode().split())
    quoted = ['"{}"'.format(c.replace('"', '""')) for c in (*header[:-1], by, name, "items")]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/f.db"
        with closing((sqlite3 if kind == "sqlite" else duckdb).connect(path)) as connection:
            for table in {*quoted[-2:]}:
                columns = ", ".join(f"{column} varchar" for column in quoted[:-2])
                connection.execute(f"create table {table} ({columns})")
                connection.executemany(f"insert into {table} values (?, ?, ?, ?, ?)", rows)
            connection.commit()
        return Path(path).read_bytes()


# Arrays -------------------------------------------------------------------------------------------

Make = Callable[[Any], Any]


class Liar:
    """A sequence that says that it is long, and gives the same for ever."""

    def __len__(self) -> int:
        return 2**62

    def __getitem__(self, k: int) -> float:
        return 0.5


class Broken(np.ndarray):
    """An array whose methods fail."""

    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        """Fail."""
        raise RuntimeError("no")

    __getitem__ = __iter__ = tolist = copy = astype = __array_ufunc__


def _itself(_: Any) -> list[Any]:
    out: list[Any] = []
    out.append(out)
    return out


SAME: dict[str, Make] = {
    "backwards": lambda a: a[::-1].copy()[::-1], "every other": lambda a: np.repeat(a, 2)[::2],
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder()), "memoryview": memoryview,
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype), "masked": np.ma.array,
    "objects": lambda a: a.astype(object), "list": list, "pandas": pd.Series, "polars": pl.Series,
    "arrow": pa.array, "same index": lambda a: pd.Series(a, index=[0] * len(a)),
}  # fmt: skip
"""Arrays in forms in which they are the same."""

ARRAYS: dict[str, Make] = SAME | {
    "long double": lambda a: a.astype("g"), "itself": _itself, "a liar": lambda _: Liar(),
    "broken": lambda a: a.view(Broken), "0-d": lambda a: np.array(a[0]),
    "complex": lambda a: a + 1j, "texts": lambda a: a.astype(str), "bytes": lambda a: a.astype("S"),
    "pd.NA": lambda a: pd.array([pd.NA] * len(a)), "none": lambda a: [None] * len(a),
    "all masked": lambda a: np.ma.array(a, mask=True), "huge": lambda a: [10**400] * len(a),
    "-huge": lambda a: [-(2**63) - 1] * len(a), "generator": lambda a: (x for x in a), "set": set,
    "dictionary": lambda a: dict(enumerate(a)), "type": lambda _: int, "module": lambda _: np,
    "fields": lambda a: np.zeros(len(a), [("x", "f8")]), "void": lambda a: np.zeros(len(a), "V8"),
    "empty": lambda a: a[:0], "dates": lambda a: a.astype("i8").astype("M8[s]"),
    "durations": lambda a: a.astype("i8").astype("m8[s]"), "infinite": lambda a: a + np.inf,
    "payload NaN": lambda a: np.full(len(a), 0x7FF8DEADBEEF0001, "u8").view(float),
    "signalling NaN": lambda a: np.full(len(a), 0x7FF0000000000001, "u8").view(float),
    "ragged": lambda a: [[1], [2, 3]] * (len(a) // 2), "1e-320": lambda a: a * 0 + 1e-320,
    "one too many": lambda a: np.r_[a, a[:1]], "4-d": lambda a: a[:, None, None, None],
    "8 TB": lambda a: np.broadcast_to(a[:1], (2**40,)), "categories": pd.Categorical,
    "text": lambda _: "x" * 40, "-1.5": lambda a: a * 0 - 1.5,
    "nested": lambda a: np.array([a] * len(a) + [None], dtype=object)[:-1],
}  # fmt: skip

# Files --------------------------------------------------------------------------------------------

LINKS = {"loop.csv": "loop.csv", "none.csv": "nowhere", "zero.csv": "/dev/zero",
         "null.csv": "/dev/null", "full.csv": "/dev/full", "mem.csv": "/proc/self/mem",
         "folder.csv": "."}  # fmt: skip
"""Files that are links elsewhere."""


def _zip(name: str, content: bytes) -> bytes:
    with zipfile.ZipFile(out := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, content)
    return out.getvalue()


_HEAD = b"\x93NUMPY\1\0v\0{'descr': '<f8', 'fortran_order': False, 'shape': (10**15,), }"
CONTENTS: dict[str, Callable[[], bytes]] = {
    "bomb.csv.gz": lambda: gzip.compress(b"a,label\n" + b"0" * (64 << 20), 1),
    "rows.csv.gz": lambda: gzip.compress(b"label,p__a__1\n" + b"\n" * (1 << 19), 1),
    "wide.csv": lambda: b"a," * 30_000 + b"\n" + b"1," * 30_000, "nul.csv": lambda: bytes(9_999),
    "bomb.npz": lambda: _zip("labels.npy", _HEAD.ljust(128)), "deep.json": lambda: b"[" * 10**6,
    "shape.npz": lambda: _zip("labels.npy", _HEAD.replace(b"10**15", b"9" * 15).ljust(128)),
    "up.npz": lambda: _zip("../labels.npy", b"x"), "bom.csv": lambda: b"\xef\xbb\xbf",
    "utf16.csv": lambda: TABLE.decode().encode("utf-16-le"),
    "zip.csv": lambda: _zip("f.csv", TABLE), "cr.csv": lambda: b"\r" * 99,
    "bomb.xlsx": lambda: _zip("xl/workbook.xml", b"<!DOCTYPE x [<!ENTITY a 'a'>]>" + b"&a;" * 999),
    "empty.parquet": lambda: b"PAR1" * 2, "end.csv": lambda: TABLE + b"\x1a",
}  # fmt: skip
"""Files with such contents."""
