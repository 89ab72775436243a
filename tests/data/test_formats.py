"""Kinds of files: JSON, Feather, workbooks, compressed text; and files that are none of them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import pickle
import sqlite3
import sys
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from workbooks import Date, ods, with_part, xlsx

import fewlabels as fl
from fewlabels.data import column_names, diagnose
from fewlabels.data.options import column_options
from fewlabels.streaming.units import about_rows, lay_out


def packed(content: bytes) -> bytes:
    """The bytes compressed by gzip, the same every time."""
    return gzip.compress(content, mtime=0)


CSV = "label,p__m__1,site\n0,.25,a\n,.5,b\n1,.75,a\n"
JSONL = (
    '{"label": 0, "p__m__1": 0.25, "site": "a"}\n'
    '{"label": null, "p__m__1": 0.5, "site": "b"}\n'
    '{"label": 1, "p__m__1": 0.75, "site": "a"}\n'
)
ROWS = [json.loads(line) for line in JSONL.splitlines()]
TABLE = pa.Table.from_pylist(ROWS)
GRID = [list(ROWS[0]), *([*row.values()] for row in ROWS)]


def compressed(codec: str, text: str) -> bytes:
    stream = pa.BufferOutputStream()
    with pa.CompressedOutputStream(stream, codec) as out:
        out.write(text.encode())
    return stream.getvalue().to_pybytes()


def arrow(*, stream: bool = False, codec: str | None = None) -> bytes:
    out = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(out, TABLE.schema, options=options) as writer:
        writer.write(TABLE)
    return out.getvalue()


def check(path):
    """The file says what `CSV` says, in every way of asking."""
    read = fl.read_predictions(path)
    assert read.classes == (0, 1)
    assert read.labels.tolist() == [0, -1, 1]
    assert read.probabilities[:, 0, 1].tolist() == [0.25, 0.5, 0.75]
    assert read.groups["site"].tolist() == ["a", "b", "a"]
    assert column_names(path) == ("label", "p__m__1", "site")
    assert diagnose(path).ok


def refused(path, message):
    with pytest.raises(fl.InputError, match=message) as caught:
        fl.read_predictions(path)
    said = str(caught.value)
    assert said.isprintable()
    assert said.startswith(f"{path}: ")
    assert len(said) < 400


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", JSONL),
        ("a.ndjson", JSONL.rstrip()),
        ("blank lines", "\n  \n" + JSONL.replace("\n", "\n\n")),
        ("line ends", JSONL.replace("\n", "\r\n")),
        ("mark", "\ufeff" + JSONL),
        ("utf16.txt", JSONL.encode("utf-16")),
        ("a.jsonl.gz", packed(JSONL.encode())),
        ("a.jsonl.zst", compressed("zstd", JSONL)),
        ("a.jsonl.bz2", bz2.compress(JSONL.encode())),
        ("list.json", json.dumps(ROWS)),
        ("pretty list", json.dumps(ROWS, indent=2)),
        ("list.json.gz", packed(json.dumps(ROWS).encode())),
        ("columns.json", json.dumps(TABLE.to_pydict())),
        ("pretty columns", json.dumps(TABLE.to_pydict(), indent=1)),
        ("pandas.json", TABLE.to_pandas().to_json()),
        ("records.json", TABLE.to_pandas().to_json(orient="records", lines=True)),
        ("a.feather", arrow()),
        ("a.feather", arrow(codec="zstd")),
        ("a.arrow", arrow(stream=True)),
        ("a stream", arrow(stream=True, codec="lz4")),
        ("a.xlsx", xlsx({"Sheet1": GRID})),
        ("notes beside", xlsx({"Notes": [["made by us"], ["in May"]], "Data": GRID, "x": []})),
        ("below and right", xlsx({"S": [[], [], *([None, *row] for row in GRID)]})),
        ("empty around", xlsx({"S": [[*GRID[0], None, ""], *GRID[1:], [None], ["", "", ""]]})),
        ("a.ods", ods({"Sheet1": GRID})),
        ("a.csv.zst", compressed("zstd", CSV)),
        ("a.csv.bz2", bz2.compress(CSV.encode())),
        ("two members.gz", packed(CSV.encode()[:30]) + packed(CSV.encode()[30:])),
        ("a.tsv.zst", compressed("zstd", CSV.replace(",", "\t"))),
        ("excel's unicode text.txt", CSV.replace(",", "\t").encode("utf-16")),
        ("utf16 be.csv", b"\xfe\xff" + CSV.encode("utf-16-be")),
        ("utf16.csv.gz", packed(CSV.encode("utf-16"))),
    ],
)
def test_every_format_says_the_same(write, name, content):
    check(write(content, name))


@pytest.mark.parametrize(
    "text",
    [
        "a,p__m__1,,\n1,.5,,\n0,.25,,\n",
        "a,p__m__1\n1,.5,\n0,.25,\n",
        "a,p__m__1\n1,.5,, \n0,.25,,\n",
        "a,p__m__1,\n1,.5\n0,.25\n",
        "a;p__m__1;;\r\n1;.5;;\r\n0;.25;;\r\n",
    ],
)
def test_empty_columns_at_the_end_of_csv(write, text):
    path = write(text)
    read = fl.read_predictions(path)
    assert column_names(path) == ("a", "p__m__1")
    assert read.probabilities[:, 0, 1].tolist() == [0.5, 0.25]
    assert len(lay_out(path, column_options()).units) == 1


def test_columns_without_a_name_that_hold_something_stay(write):
    assert column_names(write("a,p__m__1,,\n1,.5,,\n0,.5,x,\n")) == ("a", "p__m__1", "")
    assert column_names(write("a,p__m__1,,\n1,.5,,\n0,.5,,x\n")) == ("a", "p__m__1", "", "")
    refused(write("a,p__m__1\n1,.5,\n0,.5,x\n"), "has 2 columns, but row 1 after the header has 3")
    refused(write("a,p__m__1\n1,.5,\n0,.5\n"), "has 2 columns, but row 1 after the header has 3")
    assert column_names(write(",p__m__1\n1,.5\n")) == ("", "p__m__1")


def test_objects_lists_and_mixed_values_of_json(write):
    rows = [
        {
            "p__m__1": 0.5,
            "a": {"b": {"c": 1.0}, "d": "x"},
            "r": ["A"],
            "l": [1, {"z": "é"}],
            "m": 1,
        },
        {"p__m__1": 1, "r": ["B"], "l": None, "m": "1", "extra": "late"},
        {"p__m__1": float("nan"), "p__m__0": float("nan"), "a": None, "r": [2], "m": True},
    ]
    for row in rows[:2]:
        row["p__m__0"] = 1 - row["p__m__1"]
    path = write("\n".join(map(json.dumps, rows)))
    groups = {name: values.tolist() for name, values in fl.read_predictions(path).groups.items()}
    assert groups == {
        "a.b.c": ["1", None, None],
        "a.d": ["x", None, None],
        "a": [None, None, None],
        "r": ["A", "B", "2"],
        "l": ['[1, {"z": "é"}]', None, None],
        "m": ["1", "1", "true"],
        "extra": [None, "late", None],
    }


def test_a_list_of_one_is_its_value_only_where_all_are(write):
    for values, wanted in (([["A"], None, ["B"]], ["A", None, "B"]),
                           ([["A"], "A", ["B"]], ['["A"]', "A", '["B"]']),
                           ([["A"], [], ["B"]], ['["A"]', "[]", '["B"]']),
                           ([[["A"]], ["B"], ["C"]], ['[["A"]]', '["B"]', '["C"]'])):  # fmt: skip
        path = write(json.dumps([{"p__m__1": 0.5, "g": value} for value in values]))
        assert fl.read_predictions(path).groups["g"].tolist() == wanted
    path = write(json.dumps([{"p__m__1": [0.5]}, {"p__m__1": [0.25]}]))
    assert fl.read_predictions(path).probabilities[:, 0, 1].tolist() == [0.5, 0.25]


def test_many_rows_of_json_with_keys_that_come_late(write):
    n = 140_000
    lines = [f'{{"label": {i % 2}, "p__m__1": 0.5}}' for i in range(n)]
    lines[100_000] = '{"label": "1", "p__m__1": 1, "late": true}'
    lines[130_000] = '{"label": 1, "p__m__1": 0.5, "late": "x"}'
    read = fl.read_predictions(write("\n".join(lines)))
    assert read.n_items == n
    assert read.labels[99_998:100_002].tolist() == [0, 1, 1, 1]
    assert read.probabilities[100_000, 0, 1] == 1
    late = read.groups["late"]
    assert (late[100_000], late[130_000]) == ("true", "x")
    assert set(late) == {None, "true", "x"}


def test_half_a_character_in_json(write):
    path = write('{"p__m__1": 0.5, "g": "\\ud83d cut"}\n{"p__m__1": 0.5, "g": "\\ud83d\\ude00"}\n')
    assert fl.read_predictions(path).groups["g"].tolist() == ["\\ud83d cut", "😀"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (JSONL[:-3], r"line 3 is not valid JSON \(it ends too early, in column 39: "),
        (JSONL.replace('{"label": null', '{label": null'), "line 2 is not valid JSON"),
        (JSONL.replace("null", "nul"), r"line 2 is not valid JSON \(column 11: Expecting value\)"),
        ("\n" + JSONL + "\n7\n", "line 6 holds a number; every line must be an object"),
        (JSONL.replace("\n", "", 1), r"line 1 is not valid JSON \(column \d+: Extra data\)"),
        (JSONL[:5] + JSONL, "line 1 is not valid JSON"),
        (JSONL + '{"a": 1, "b": 2, "a": 3}', "line 4 has the key 'a' twice in one object"),
        (JSONL + '{"a.b": 1, "a": {"b": 2}}', r"line 4 has two values for 'a\.b'"),
        (JSONL + '{"a": ' + "[" * 99_999, "line 4 is nested too deeply"),
        (JSONL + '{"a": ' + "9" * 5_000 + "}", "line 4 is not valid JSON .*digit"),
        (JSONL.encode() + b'{"g": "Zo\xeb"}', r"line 4 is not UTF-8 \(byte 0xeb\).*iconv -f WIND"),
        (JSONL.replace("0.5", '"x"'), "must be numbers; got 'x' in line 2: correct it"),
        (JSONL.replace("0.5", "true"), "must be numbers; got 'true' in line 2"),
        (JSONL.replace("0.5", "7"), "between 0 and 1.*line 2"),
        (json.dumps(ROWS)[:-9], r"is not valid JSON \(it ends too early, in line 1, column 1\d\d"),
        (json.dumps(ROWS, indent=0).replace("0.5", "x"), r"is not valid JSON \(line 9, column 12"),
        (json.dumps([*ROWS, 3]), r"item 4 \(from 1\) is a number; every item must be an object"),
        (json.dumps([[0, 0.5]]), r"item 1 \(from 1\) is a list;.*orient='records', lines=True"),
        (json.dumps(ROWS).replace("0.5", '"x"'), r"got 'x' in item 2 \(from 1\)"),
        (json.dumps({"a": [1, 2], "p__m__1": [0.5]}), "'a' has 2, 'p__m__1' 1; make them agree"),
        (json.dumps({"data": ROWS, "n": 3}), "its key 'data' a list of rows; save that list"),
        (json.dumps({"data": ROWS, "n": 3}, indent=2), "its key 'data' a list of rows"),
        (TABLE.to_pandas().to_json(orient="split", indent=1), "holds one object that is no table"),
        ("[]", "no prediction columns"),
        ("{}", "no prediction columns"),
        (
            "\n".join(f'{{"k{i}": 1}}' for i in range(10_001)),
            "line 10001 has more than 10,000 diff",
        ),
    ],
)
def test_json_that_is_no_table(write, content, message):
    refused(write(content), message)


def test_json_by_its_name(write):
    refused(write("label,p__m__1\n", "a.jsonl"), "is not a JSON file: it begins with b'label,p_'")
    refused(write(" \n", "a.json"), "holds nothing but blanks")
    for header in ("[label],p__m__1", "{a,p__m__1", "[,p__m__1", "PARENT,p__m__1", "PAR1,p__m__1",
                   "ORC,p__m__1", "ARROW1,p__m__1", "BZh9,p__m__1", "FEA1,p__m__1"):  # fmt: skip
        read = fl.read_predictions(write(header + "\n1,.5\n"))
        assert read.n_items == 1


def test_workbooks(write, tmp_path):
    days = [
        ["p__m__1", "day", "id", "ok", "n"],
        [0.5, Date(45_292), 7, True, 1],
        [1, "x", 8, False, "1"],
    ]
    path = write(xlsx({"S": days}), "book.xlsx")
    groups = {name: values.tolist() for name, values in fl.read_predictions(path).groups.items()}
    assert groups == {
        "day": ["2024-01-01", "x"],
        "id": ["7", "8"],
        "ok": ["true", "false"],
        "n": ["1", "1"],
    }
    write(xlsx({"May": GRID, "June & July": GRID[:3]}), "book.xlsx")
    refused(path, r"has 2 sheets with tables \('May', 'June & July'\); choose one with --sheet")
    assert fl.read_predictions(f"{path}#June & July").n_items == 2
    assert fl.read_predictions(f"{path}#May").n_items == 3
    refused(f"{path}#Mai", "has no sheet 'Mai'; did you mean 'May'")
    refused(write(xlsx({"S": [GRID[0], GRID[1], [1, "y"]]})), "got 'y' in row 3 of the sheet 'S'")
    refused(write(xlsx({"S": []})), "has no sheet with anything in it")
    refused(f"{path}#", "has no sheet ''")
    content = xlsx({"S": GRID})
    refused(write(content[:-50], "cut.xlsx"), "is an Excel file that is damaged or cut short")
    broken = content.replace(b"<sheetData>", b"<sheetDat>>")
    refused(write(broken), r"cannot be read as a workbook|no prediction columns|nothing")
    # The reader of sheets would go on without that cell, or take what no tag begins.
    for whole, other in ((b'<c r="A2"', b'<d r="A2"'), (b"<v>0.5", b"<v>&0.5"), (b"<v>", b"<z:v>")):
        path = write(with_part(content, "sheet1.xml", whole, other))
        refused(path, r"damaged or cut short \(.*(tag|token|prefix)")
    other = with_part(content, "sheet1.xml", b't="inlineStr"', b't="inlineSts"')
    refused(write(other), r"damaged or cut short \(a cell of kind 'inlineSts'\)")
    csv = write(CSV, "a.csv")
    refused(f"{csv}#S", r"is CSV, which has no sheet 'S', and no log of a tool")
    hashed = write(CSV, "a#b.csv")
    assert fl.read_predictions(str(hashed)).n_items == 3


def test_workbooks_need_the_extra(write, monkeypatch):
    path = write(xlsx({"S": GRID}))
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(
        fl.MissingExtraError, match=r"install it with `pip install 'fewlabels\[exce"
    ):
        fl.read_predictions(path)


def test_feather_that_is_damaged(write):
    whole, stream = arrow(), arrow(stream=True)
    for content in (whole[:-20], whole[:200], whole[:8], stream[:-8], stream[:-40], stream[:100]):
        refused(write(content), "cannot be read as Feather, it is damaged or cut short")
    old = write(b"FEA1\0\0\0\0")
    refused(old, "is a Feather file of version 1; write it again")


def archive(*names: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name in names:
            file.writestr(name, "x")
    return stream.getvalue()


def tar() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as file:
        file.addfile(tarfile.TarInfo("a.csv"))
    return stream.getvalue()


def database(folder: Path) -> bytes:
    path = folder / "a.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (x)")
    connection.close()
    return path.read_bytes()


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (database, "file", r"is an SQLite database; export the table: sqlite3 -header -csv FILE "),
        (pickle.dumps({"a": 1}), "file.csv", "is a pickle, which is never opened"),
        (pickle.dumps([1], protocol=0), "file", "is a pickle"),
        (pickle.dumps([1], protocol=1), "file.pkl", "is a pickle"),
        (packed(pickle.dumps([1])), "file.pkl.gz", "is a pickle"),
        (b"x\x9c\x01", "file.joblib", "is a pickle"),
        (archive("archive/data.pkl"), "model.pt", "is a pickle"),
        (b"\x89HDF\r\n\x1a\n", "file.h5", "is an HDF5 file"),
        (b"ORC\x0a\x04", "file.orc", "is an ORC file; save the table as Parquet"),
        (b"Obj\x01\x04", "file.avro", "is an Avro file"),
        (bytes(8) + b"DUCK" + bytes(9), "file.db", "is a DuckDB database"),
        (b"%PDF-1.7", "file.pdf", "is a PDF file; save its table as CSV"),
        (archive("[Content_Types].xml", "word/document.xml"), "a.docx", "is a Word document"),
        (archive("[Content_Types].xml", "ppt/a.xml"), "a.pptx", "is a document or slides"),
        (OLE + "WordDocument".encode("utf-16-le"), "a.doc", "is a Word document"),
        (OLE + "EncryptedPackage".encode("utf-16-le"), "a.xlsx", "without a password"),
        (packed(b"RDX3\nX\n\0\0\0"), "a.RData", r"is an R file; in R: write\.csv"),
        (packed(b"X\n\0\0\0\3"), "a.rds", "is an R file"),
        (b"<stata_dta><header>", "a.dta", "is a Stata file"),
        (b"\x72\x02\x01\x00", "a.dta", "is a Stata file"),
        (bytes(12) + b"\xc2\xea\x81\x60", "a.sas7bdat", "is a SAS file"),
        (b"$FL2@(#) SPSS", "a.sav", "is an SPSS file"),
        (archive("a.csv", "b.csv"), "a.zip", "is a zip archive that holds a.csv, b.csv; unpack it"),
        (archive("a.csv")[:-9], "a.zip", "is a zip archive that is damaged"),
        (tar(), "a.tar", "is a tar archive; unpack it"),
        (packed(tar()), "a.tar.gz", "is a tar archive; unpack it"),
        (b"7z\xbc\xaf\x27\x1c", "a.7z", "is a 7z archive"),
        (b"Rar!\x1a\x07\x01", "a.rar", "is a RAR archive"),
        (b"\xfd7zXZ\x00", "a.csv.xz", "is compressed by xz; decompress it: xz -d FILE"),
        (b"\x89PNG\r\n\x1a\n", "a.png", "is an image"),
        (b"\xff\xd8\xff\xe0", "a.jpg", "is an image"),
        (b"<!DOCTYPE html>", "a.xls", "is a web page"),
        (packed(arrow()), "a.arrow.gz", "is Feather, compressed by gzip; decompress it"),
        (packed(archive("a.npy")), "a.gz", "is NPZ, compressed by gzip"),
        (b"\x93NUMPY\x01", "file.csv", "is one unnamed array"),
        (b"ARROW1\0\0", "file.csv", "cannot be read as Feather, it is damaged or cut short"),
        (b"\xd0\xcf\x11\xe0", "file.csv", "cannot be read as a workbook, it is damaged or cut sh"),
        (b"\x28\xb5\x2f\xfd", "file.csv", "it may be damaged or cut short"),
        (packed(CSV.encode() * 100)[:-9], "file.csv.gz", "it may be damaged or cut short"),
    ],
)
def test_files_that_are_not_read_are_named(write, tmp_path, content, name, message):
    refused(write(content(tmp_path) if callable(content) else content, name), message)


def test_urls_and_files_that_are_not_there(write, tmp_path):
    for url in ("https://host/a.csv", "s3://bucket/a.parquet", "gs://b/a", "hf://datasets/x"):
        refused(url, "is a URL, and files are read from disk; download it first")
    write(CSV, "predictions.csv")
    refused(tmp_path / "predictons.csv", r"no such file; did you mean 'predictions\.csv'\?")
    refused(tmp_path / "predictions.parquet", r"did you mean 'predictions\.csv'\?")
    refused(tmp_path / "xyz.parquet", "no such file$")
    refused(tmp_path / "none" / "a.csv", "no such file; there is no folder '")


def test_folders_of_other_formats(write, tmp_path):
    write(JSONL, "folder/a.jsonl")
    write(packed(JSONL.encode()), "folder/b.jsonl.gz")
    folder = tmp_path / "folder"
    assert fl.read_predictions(folder).n_items == 6
    write(JSONL.replace("0.5", '"x"'), "folder/b.jsonl.gz")
    refused(folder, r"got 'x' in line 2 of b\.jsonl\.gz")
    # Notes beside tables do not count.
    write(CSV, "folder/c.csv")
    assert fl.read_predictions(folder).n_items == 3
    write(compressed("zstd", CSV), "folder/d.csv.zst")
    assert fl.read_predictions(folder).n_items == 6
    write(compressed("zstd", CSV), "folder/c.csv.zst")
    refused(folder, r"holds c\.csv and c\.csv\.zst, which are the same rows; remove one")


def test_in_parts(write):
    """What is compressed is one part; what is neither CSV nor Parquet is read whole."""
    for content in (compressed("zstd", CSV), bz2.compress(CSV.encode()), CSV.encode("utf-16")):
        path = write(content)
        estimates = fl.estimate_files(path, method="labeled", metrics=["accuracy"])
        assert estimates.to_dict()["n_items"] == 3
        assert about_rows(path) >= 0
    for content, kind in ((JSONL, "JSON"), (arrow(), "Feather"), (xlsx({"S": GRID}), "Excel")):
        path = write(content)
        assert about_rows(path) == 0
        with pytest.raises(fl.InputError, match=f"{kind} files are read whole; add --engine mem"):
            lay_out(path, column_options())
