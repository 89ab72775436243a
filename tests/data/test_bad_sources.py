"""What cannot be read, in the words of its one line: see `outputs`."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import pickle
import re
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from workbooks import with_part, xlsx

import fewlabels as fl
from fewlabels.data.options import column_file, column_options
from fewlabels.errors import InputError, UsageError
from outputs import check

GOOD = "label,p__a__0,p__a__1\n0,.4,.6\n1,.3,.7\n"
LATIN = "p__a__1,g\n.1,Zoë\n".encode("latin-1")


def parquet(table: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), out)
    return out.getvalue()


def feather(*, stream: bool = False) -> bytes:
    out = io.BytesIO()
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(out, TABLE.schema) as writer:
        writer.write(TABLE)
    return out.getvalue()


def npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def archive(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name in names:
            file.writestr(name, "x")
    return out.getvalue()


def tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as file:
        file.addfile(tarfile.TarInfo("a.csv"))
    return out.getvalue()


def database() -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("create table t (x)")
        return connection.serialize()


JSONL = (
    '{"label": 0, "p__m__1": 0.25, "site": "a"}\n'
    '{"label": null, "p__m__1": 0.5, "site": "b"}\n'
    '{"label": 1, "p__m__1": 0.75, "site": "a"}\n'
)
ROWS = [json.loads(line) for line in JSONL.splitlines()]
TABLE = pa.Table.from_pylist(ROWS)
GRID = [list(ROWS[0]), *([*row.values()] for row in ROWS)]
CSV = b"label,p__m__1,site\n0,.25,a\n,.5,b\n1,.75,a\n"
BOOK = xlsx({"S": GRID})
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
WHOLE = parquet({"p__a__1": np.linspace(0, 1, 1000)})
P = np.ones((1, 1))

Case = str | bytes
FILES: dict[str, dict[str, Case]] = {
    "csv": {
        "other names": "label,prob\n1,.1\n",
        "one name twice": "p__a__1,p__a__1\n.1,.2\n",
        "a word for a number": "p__a__1\n.1\nxx\n",
        "a comma for a point": "p__a__1\n.1\n0,5\n",
        "two commas for points": "p__a__1;g\n0,5,1;x\n",
        "a comma of thousands": 's__a\n"1,234"\n',
        "some percentages": "p__a__1\n50%\n0.5\n",
        "more than 100%": "p__a__1\n150%\n20%\n",
        "more than 1, with commas": "p__a__1;p__a__0\n0,5;0,5\n1,25;0,1\n",
        "a sum of 90%": "p__a__0,p__a__1\n10%,80%\n",
        "percentages without a sign": "p__a__1\n66.6\n",
        "no probability": "p__a__1\n3.9\n-1\n",
        "a unit of weight": "p__a__1,weight\n.1,kg\n",
        "a weight below 0": "p__a__1,weight\n.1,-1\n",
        "no weight": "p__a__1,weight\n.1,0\n",
        "a probability below 0": "p__a__0,p__a__1\n.1,.9\n-1,2\n",
        "half a row of probabilities": "p__a__0,p__a__1\n.1,.9\n.1,\n",
        "a sum of 0.9": "p__a__0,p__a__1\n.1,.8\n",
        "a label that is no class": "label,p__a__0,p__a__1\nspam,.1,.9\n",
        "a vote that is no class": "y__b,p__a__0,p__a__1\nspam,.1,.9\n",
        "a class -1": "p__a__1,p__a__-1\n.1,.9\n",
        "counts of one class": "p__a__1,h__1\n.1,3\n",
        "a short row": "p__a__1,label\n.1,0\n.2\n",
        "a header without an end": "p__a__1,label",
        "a header alone": "p__a__1,label\n",
        "empty lines": "\n\n",
        "nothing": "",
        "a zero byte": "p__a__1\n\0\n",
        "a quote without an end": 'p__a__1,g\n.5,"x\n.3,y\n.2,z\n',
        "a header of 5 MB": "p__a__1," * 600_000,
        "a quote in the header": '"p__a__1,' + "x" * 200_000,
        "cells beyond the header": "a,p__m__1\n1,.5,\n0,.5,x\n",
        "cells beyond the header, once": "a,p__m__1\n1,.5,\n0,.5\n",
        "latin-1": LATIN,
        "latin-1 in a number": "p__a__1\nZoë\n".encode("latin-1"),
        "utf-16 without a mark": GOOD.encode("utf-16-le"),
        "half a character": GOOD.encode() + b"\xc3",
        "votes, one per row": "item,annotator,label\nx,ann,yes\nx,bob,no\ny,ann,no\nx,cy,\n",
        "scores of three classes": "s__a,label\n.5,a\n2,b\n1,c\n",
        "one class of three": "label,p__a__1\n0,.5\n1,.5\n2,.5\n",
        "a class without a column": "p__a__0,p__a__1,p__a__2,p__b__0,p__b__1\n.2,.2,.6,.5,.5\n",
        "counts without a class": "p__a__a,p__a__b,p__a__c,h__a,h__b\n.2,.2,.6,1,2\n",
        "one class of votes": "y__v\nx\nx\n",
        "one class in two writings": "p__a__1,p__a__1.0\n.5,.5\n",
        "a hundred other names": ",".join(f"c{i}" for i in range(100)) + "\n" + "1," * 99 + "1\n",
    },
    "json": {
        "the end is missing": JSONL[:-3],
        "a key without quotes": JSONL.replace('{"label": null', '{label: null'),
        "nul": JSONL.replace("null", "nul"),
        "a number for a row": "\n" + JSONL + "\n7\n",
        "two rows in a line": JSONL.replace("\n", "", 1),
        "half a first line": JSONL[:5] + JSONL,
        "a key twice": JSONL + '{"a": 1, "b": 2, "a": 3}',
        "two values of a path": JSONL + '{"a.b": 1, "a": {"b": 2}}',
        "nested": JSONL + '{"a": ' + "[" * 99_999,
        "a long number": JSONL + '{"a": ' + "9" * 5_000 + "}",
        "latin-1": JSONL.encode() + b'{"g": "Zo\xeb"}',
        "a word for a number": JSONL.replace("0.5", '"x"'),
        "true for a number": JSONL.replace("0.5", "true"),
        "no probability": JSONL.replace("0.5", "7"),
        "a list without an end": json.dumps(ROWS)[:-9],
        "a list with a word": json.dumps(ROWS, indent=0).replace("0.5", "x"),
        "a list with a number": json.dumps([*ROWS, 3]),
        "a list of lists": json.dumps([[0, 0.5]]),
        "a list with a word for a number": json.dumps(ROWS).replace("0.5", '"x"'),
        "columns of two lengths": json.dumps({"a": [1, 2], "p__m__1": [0.5]}),
        "a table below a key": json.dumps({"data": ROWS, "n": 3}),
        "a table below a key, in lines": json.dumps({"data": ROWS, "n": 3}, indent=2),
        "split by pandas": TABLE.to_pandas().to_json(orient="split", indent=1),
        "an empty list": "[]",
        "an empty object": "{}",
        "too many keys": "\n".join(f'{{"k{i}": 1}}' for i in range(10_001)),
        "csv.jsonl": "label,p__m__1\n",
        "blanks.json": " \n",
    },
    "binary": {
        "cut.parquet": WHOLE[:100],
        "without its end.parquet": WHOLE[:-20],
        "without its beginning.parquet": WHOLE[:100] + WHOLE[200:],
        "its middle.parquet": WHOLE[:40] + b"\xff" * 40 + WHOLE[80:],
        "text.parquet": GOOD,
        "lists.parquet": parquet({"p__a__1": [[1.0]]}),
        "labels in lists.parquet": parquet({"p__a__1": [1.0], "label": [[1.0]]}),
        "no rows.parquet": parquet({"p__a__1": pa.array([], pa.float64())}),
        "one name twice.parquet": parquet(
            pa.Table.from_arrays([pa.array([0.5])] * 2, ["p__a__1"] * 2)
        ),
        "a large cell.parquet": parquet(
            {"p__a__0": [0.5], "p__a__1": [0.5], "label": ["x" * 500_000]}
        ),
        "objects.npz": npz(probabilities=P, domain=np.array(["x"], dtype=object)),
        "label.npz": npz(label=np.ones(1)),
        "a group without a name.npz": npz(probabilities=P, groups__=np.ones(1)),
        "nothing.npz": npz(),
        "models in a table.npz": npz(probabilities=P, models=P),
        "imaginary.npz": npz(probabilities=P, weight=np.array([1j])),
        "cut.npz": npz(probabilities=P)[:-30],
        "text.npz": "text",
        "cut.feather": feather()[:-20],
        "its beginning.feather": feather()[:200],
        "its mark.feather": feather()[:8],
        "cut.arrow": feather(stream=True)[:-40],
        "old.feather": b"FEA1\0\0\0\0",
        "a word.xlsx": xlsx({"S": [GRID[0], GRID[1], [1, "y"]]}),
        "two sheets.xlsx": xlsx({"May": GRID, "June & July": GRID[:3]}),
        "nothing.xlsx": xlsx({"S": []}),
        "cut.xlsx": BOOK[:-50],
        "another tag.xlsx": with_part(BOOK, "sheet1.xml", b'<c r="A2"', b'<d r="A2"'),
        "no entity.xlsx": with_part(BOOK, "sheet1.xml", b"<v>0.5", b"<v>&0.5"),
        "another prefix.xlsx": with_part(BOOK, "sheet1.xml", b"<v>", b"<z:v>"),
        "another kind.xlsx": with_part(BOOK, "sheet1.xml", b't="inlineStr"', b't="inlineSts"'),
    },
    "others": {
        "a.sqlite": database(),
        "pickle.npz": pickle.dumps({"a": 1}),
        "pickle.parquet": pickle.dumps({"a": 1}),
        "pickle.csv": pickle.dumps({"a": 1}),
        "pickle 0": pickle.dumps([1], protocol=0),
        "pickle 1.pkl": pickle.dumps([1], protocol=1),
        "a.pkl.gz": packed(pickle.dumps([1])),
        "a.joblib": b"x\x9c\x01",
        "model.pt": archive("archive/data.pkl"),
        "a.h5": b"\x89HDF\r\n\x1a\n",
        "a.orc": b"ORC\x0a\x04",
        "a.avro": b"Obj\x01\x04",
        "duck.db": bytes(8) + b"DUCK" + bytes(9),
        "a.pdf": b"%PDF-1.7",
        "a.docx": archive("[Content_Types].xml", "word/document.xml"),
        "a.pptx": archive("[Content_Types].xml", "ppt/a.xml"),
        "a.doc": OLE + "WordDocument".encode("utf-16-le"),
        "locked.xlsx": OLE + "EncryptedPackage".encode("utf-16-le"),
        "a.RData": packed(b"RDX3\nX\n\0\0\0"),
        "a.rds": packed(b"X\n\0\0\0\3"),
        "a.dta": b"<stata_dta><header>",
        "old.dta": b"\x72\x02\x01\x00",
        "a.sas7bdat": bytes(12) + b"\xc2\xea\x81\x60",
        "a.sav": b"$FL2@(#) SPSS",
        "a.zip": archive("a.csv", "b.csv"),
        "damaged.zip": archive("a.csv")[:-9],
        "a.tar": tar(),
        "a.tar.gz": packed(tar()),
        "a.7z": b"7z\xbc\xaf\x27\x1c",
        "a.rar": b"Rar!\x1a\x07\x01",
        "a.csv.xz": b"\xfd7zXZ\x00",
        "a.png": b"\x89PNG\r\n\x1a\n",
        "a.jpg": b"\xff\xd8\xff\xe0",
        "page.xls": b"<!DOCTYPE html>",
        "a.arrow.gz": packed(feather()),
        "a.npz.gz": packed(archive("a.npy")),
        "an array.csv": b"\x93NUMPY\x01",
        "arrow.csv": b"ARROW1\0\0",
        "ole.csv": b"\xd0\xcf\x11\xe0",
        "zstd.csv": b"\x28\xb5\x2f\xfd",
        "cut.csv.gz": packed(CSV * 100)[:-9],
    },
}  # fmt: skip
"""Files, by what is wrong with them: their names, where these have an ending."""


def message(read: Callable[..., Any], *given: Any, **options: Any) -> str:
    """The one line of what must be refused, without what other libraries say of damage."""
    with pytest.raises((InputError, UsageError)) as caught:
        read(*given, **options)
    said = str(caught.value)
    assert said.isprintable()
    assert len(said) <= 1200
    theirs = (
        *(r"(?<=cut short \().*(?=\))", r"(?<=be read \().*(?=\))", r"(?<=list<).*(?=>)"),
        *(r"(?<=TOML: Invalid).*", r"(?<=Exceeds).*(?=\))", r"(?<=all the input).*(?=\))"),
        *(r"(?<=column \d: ).*(?=\))", r"(?<=column \d\d: ).*(?=\))"),
        *(r"(?<=column \d\d\d: ).*(?=\))", r"(?<=be collected: ).*"),
    )
    return re.sub("|".join(theirs), "...", said)


def long(**columns: Any) -> pa.Table:
    return pa.table({"item": [1, 2], "annotator": ["a", "a"], "label": [0, 1]} | columns)


HEAD = "item,annotator,label\n"
REPEATED = {"item": [1, 1, 2, 1], "annotator": ["a"] * 4, "label": [0, 1, 1, 0]}
VOTES: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "no column of annotators": ("item,who,label\n1,a,0\n", None, {}),
    "no item": (HEAD + ",a,0\n", None, {}),
    "no annotator": (HEAD + "1,a,0\n1, ,1\n", None, {}),
    "no vote": (HEAD + "1,a,\n", None, {}),
    "no row": (HEAD, None, {}),
    "no class": (HEAD + "1,a,0\n2,a,maybe\n", None, {"classes": [0, 1]}),
    "one class": (HEAD + "1,a,x\n", None, {}),
    "two roles": (HEAD + "1,a,0\n", None, {"vote_columns": {"label": "item"}}),
    "one name twice": ("item,item,label\n1,a,0\n", None, {}),
    "a vote twice": (HEAD + "1,a,0\n1,a,1\n", None, {}),
    "no column of items beside": (HEAD + "1,a,0\n", "id,label\n1,0\n", {}),
    "an item twice beside": (HEAD + "1,a,0\n", "item,label\n1,0\n1,1\n", {}),
    "no item beside": (HEAD + "1,a,0\n", "item,label\n,0\n", {}),
    "no weight beside": (HEAD + "1,a,0\n", "item,weight\n2,1\n", {}),
    "a classifier of the annotator's name": (HEAD + "1,a,0\n", "item,y__a\n1,0\n", {}),
    "other classes beside": (HEAD + "1,a,0\n", "item,p__n__cat,p__n__dog\n1,.5,.5\n", {}),
    "domains beside alone": (HEAD + "1,a,0\n", "item,domain\n1,u\n1,v\n", {}),
    "an item of two domains": (
        "item,annotator,label,site\n1,a,1,v\n1,b,0,u\n", "item,label\n1,0\n", {"domain": "site"},
    ),
    "an item of two clusters": (
        "item,annotator,label,talk\n1,a,1,t\n1,b,0,u\n", None, {"cluster": "talk"},
    ),
    "a cluster of a vote": (HEAD + "1,a,0\n2,a,1\n", None, {"cluster": "annotator"}),
}  # fmt: skip
"""Votes, a file beside them, and options."""


class DataSet:
    """What of data sets of Hugging Face is used: a table, or a stream without columns."""

    __module__ = "datasets"

    def __init__(self, names: list[str] | None) -> None:
        self.column_names = names

    def with_format(self, kind: str) -> DataSet:
        return self


def read(columns: Any, **options: Any) -> fl.Predictions:
    return fl.read_predictions(columns, **options)


MAPPED = {"u": [0.1, 0.6], "v": [0.9, 0.4]}
ITEMS = {"label": [0, 1] * 30, "p__a__1": [0.5] * 60, "case": [f"c{i % 12}" for i in range(60)]}
CALLS: dict[str, dict[str, Callable[[], object]]] = {
    "classes": {
        "-1": lambda: read({"p__a__-1": [0.5], "p__a__1": [0.5]}),
        "none of those declared": lambda: read({"p__a__cat": [0.9]}, classes=["spam", "ham"]),
        "in one text": lambda: read({"p__a__spam": [0.9]}, classes="spam,ham"),
        "one declared": lambda: read({"s__a": [0.9]}, classes=["spam"]),
        "unknown to mapped columns": lambda: read(
            MAPPED | {"label": ["yes", "no"]}, models={"m": ["u", "v"]}
        ),
        "one of mapped columns": lambda: read(
            MAPPED | {"label": ["yes", None]}, models={"m": ["u", "v"]}
        ),
        "more than mapped columns": lambda: read(
            {"u": [0.5] * 3, "v": [0.5] * 3, "label": ["a", "b", "c"]}, models={"m": ["u", "v"]}
        ),
        "more than a mapped column": lambda: read(
            {"u": [0.1]}, models={"m": "u"}, classes=["a", "b", "c"]
        ),
        "as many as votes": lambda: read(
            pa.table({
                "item": [f"i{i % 43}" for i in range(129)],
                "annotator": [f"a{i // 43}" for i in range(129)],
                "label": [f"x{i}" for i in range(129)],
            })
        ),
    },
    "columns": {
        "label": lambda: read({"label": [1], "p__a__1": [0.5]}, label="Label"),
        "of a classifier": lambda: read({"p__a__1": [0.5]}, models={"m": ["v"]}),
        "of a group": lambda: read({"p__a__1": [0.5], "sex": ["f"]}, keep=["sexe"]),
        "lists as a group": lambda: read(
            pa.table({"p__a__1": [0.5], "v": [[1.0, 2.0]]}), keep=["v"]
        ),
        "of two roles": lambda: read({"p__a__1": [0.5], "x": [1]}, domain="x", weight="x"),
        "two classifiers of one name": lambda: read(
            {"u": [0.1], "p__a__1": [0.5]}, models={"a": ["u"]}
        ),
        "cluster": lambda: read(ITEMS, cluster="cass"),
        "a label as the cluster": lambda: read(ITEMS, cluster="label"),
        "a prediction as the cluster": lambda: read(ITEMS, cluster="p__a__1"),
        "a cluster of another length": lambda: fl.Predictions([[0.5]] * 3, clusters={"c": ["x"]}),
        "one cluster": lambda: read(ITEMS | {"site": ["x"] * 60}, cluster="site"),
        "a number as the cluster": lambda: read(ITEMS, cluster=[3]),
        "models in a list": lambda: column_options(models=["a=x"]),
        "models as a number": lambda: column_options(models={"a": 3}),
    },
    "arguments": {
        "nothing to read": lambda: fl.read_predictions(),
        "no such way with duplicates": lambda: read(None, votes=long(), duplicates="first"),
        "duplicates of no votes": lambda: read({"y__a": [1]}, duplicates="keep"),
        "votes in a list": lambda: read(None, votes=[1]),
        "classifiers of votes": lambda: read(None, votes=long(), models={"a": "gold"}),
        "no such column of votes": lambda: read(None, votes=long(), vote_columns={"itm": "x"}),
        "an array": lambda: read(np.ones((2, 2, 2, 2))),
        "a list of numbers": lambda: read([1, 2]),
        "bytes": lambda: read(b"x"),
        "a number": lambda: read(3),
        "an array for a column": lambda: read({"rf": np.ones((3, 2))}),
        "lists of lists for a column": lambda: read({"rf": [[[0.1, 0.9]] * 2] * 3}),
        "a number for a column": lambda: read({"rf": np.array(0.5)}),
        "a text for a column": lambda: read({"label": "x"}),
        "columns of two lengths": lambda: read({"a": [1], "b": [1, 2]}),
        "rows as lists": lambda: read([[1, 2]]),
        "no rows": lambda: read([]),
        "a stream": lambda: read(DataSet(None)),
        "splits": lambda: read({"train": DataSet(["p__m__1"])}),
        "a lazy frame that fails": lambda: read(pl.LazyFrame({"a": [1]}).select("b")),
        "one name twice": lambda: read(pd.DataFrame([[1, 2]], columns=["a", "a"])),
        "a word for a number": lambda: read([{"p__m__1": 0.5}, {"p__m__1": "x"}]),
        "a row that is none": lambda: read([{"p__m__1": 0.5}, 3]),
        "two values of a path": lambda: read([{"a.b": 1, "a": {"b": 2}}]),
        "a word in a frame": lambda: read(pd.DataFrame({"p__a__1": [0.5, "x", None]})),
        "an empty path": lambda: read(""),
        "a URL": lambda: read("https://host/a.csv"),
        "a bucket": lambda: read("hdfs://host/a.parquet"),
        "a data set of a hub": lambda: read("hf://datasets/x"),
        "no file": lambda: read("none.csv"),
        "no folder": lambda: read("none/a.csv"),
        "a device": lambda: read("/dev/null"),
    },
}  # fmt: skip
"""What is asked in Python."""

TOML: list[str | bytes] = [
    "lable = 'x'", "label = ", "label = 3", "label = ''", "classes = 'a'", "models = 3",
    "[models]\na.b = 'x'", "[models]\na = []", "[models]\na = ['x', 'x']", b"label = '\xff'",
    "x = " + "[" * 3000,
]  # fmt: skip


@pytest.mark.parametrize("kind", FILES)
def test_files(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = []
    for name, content in FILES[kind].items():
        path = Path(name if "." in name or kind == "others" else "file.csv")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        said = message(fl.read_predictions, path)
        assert said.startswith(f"{path}: ")
        path.unlink()
        lines.append(f"{name}\n  {said.removeprefix(f'{path}: ')}")
    check(f"data/{kind}", "\n".join(lines))


@pytest.mark.parametrize("about", CALLS)
def test_calls(about: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{name}\n  {message(call)}" for name, call in CALLS[about].items()]
    check(f"data/{about}", "\n".join(lines))


def test_votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor refuses them as well, and goes on."""
    monkeypatch.chdir(tmp_path)
    lines = []
    for name, (votes, wide, options) in VOTES.items():
        Path("votes.csv").write_text(votes)
        Path("wide.csv").write_text(wide or "")
        sources = {"source": wide and "wide.csv", "votes": "votes.csv"}
        lines.append(f"{name}\n  {message(fl.read_predictions, **sources, **options)}")
        assert not fl.diagnose(**sources, **options).ok
    check("data/votes", "\n".join(lines))


def test_files_of_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = []
    for text in TOML:
        Path("columns.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
        said = message(column_file, Path("columns.toml"))
        assert said.startswith("columns.toml: ")
        lines.append(f"{text!r:.50}\n  {said}")
    check("data/toml", "\n".join(lines))


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = JSONL.replace("0.5", '"x"')
    folders: dict[str, dict[str, Case]] = {
        "empty": {},
        "other columns": {"a.csv": GOOD, "b.csv": GOOD.replace("label", "gold")},
        "a label that is no class": {"a.csv": GOOD, "b.csv": GOOD.replace("0,.4", "7,.4")},
        "a sum of 1.5": {"a.csv": GOOD, "b.csv": GOOD.replace(".4", ".9")},
        "a word for a number": {"a.csv": GOOD, "b.csv": GOOD.replace(".4", "x")},
        "a word in a line": {"a.jsonl": JSONL, "b.jsonl.gz": packed(rows.encode())},
        "two kinds": {"a.csv": GOOD, "c.parquet": parquet({"p__a__1": [0.5]})},
        "the same rows twice": {"c.csv": CSV, "c.csv.bz2": bz2.compress(CSV)},
        "other models": {
            "0.npz": npz(probabilities=P, models=["a"]), "2.npz": npz(probabilities=P, models=["b"])
        },
        "other keys": {"0.npz": npz(probabilities=P, models=["a"]), "2.npz": npz(probabilities=P)},
        "other shapes": {
            "0.npz": npz(probabilities=P), "2.npz": npz(probabilities=np.ones((1, 3)))
        },
    }  # fmt: skip
    lines = []
    for name, files in folders.items():
        Path(name).mkdir()
        for file, content in files.items():
            whole = content if isinstance(content, bytes) else content.encode()
            Path(name, file).write_bytes(whole)
        lines.append(f"{name}\n  {message(fl.read_predictions, Path(name))}")
    check("data/folders", "\n".join(lines))
