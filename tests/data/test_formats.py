"""Kinds of files: JSON, Feather, workbooks, compressed text; and files that are none of them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import sys

import numpy as np
import pyarrow as pa
import pytest
from workbooks import Date, ods, xlsx

import fewlabels as fl
from fewlabels.data.doctor.diagnose import diagnose
from fewlabels.data.options import column_options
from fewlabels.data.read import column_names
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


def test_objects_of_objects_are_rows_by_item_or_answers_by_item(write):
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, 40)
    codes = np.where(rng.random((40, 3)) < 0.3, -1, truth[:, None] ^ (rng.random((40, 3)) < 0.2))
    document = {
        f"t{i}": {"label": int(t), "weak_labels": row.tolist(), "data": {"text": f"text {i}"}}
        for i, (t, row) in enumerate(zip(truth, codes, strict=True))
    }
    items = fl.read_predictions(write(json.dumps(document), "rows.json"))
    np.testing.assert_array_equal(items.labels, truth)
    np.testing.assert_array_equal(items.votes, codes)
    assert "weak_labels" in "".join(items.reading)
    answers = {
        f"ann_{j}": {f"q{i}": "ABC"[codes[i, j]] for i in rng.permutation(40) if codes[i, j] >= 0}
        for j in range(3)
    }
    answers["ann_0"]["q3"] = None
    items = fl.read_predictions(write(json.dumps(answers), "answers.json"))
    assert (items.models, items.n_items, items.n_labeled) == (
        tuple(answers),
        (codes >= 0).any(axis=1).sum(),
        0,
    )
    assert (items.votes >= 0).sum() == sum(
        v is not None for a in answers.values() for v in a.values()
    )
    one = json.dumps({"item": {"id": 1}, "p__m": {"1": 0.5}})
    assert column_names(write(one, "one.json")) == ("item.id", "p__m.1")


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


def test_json_by_its_name(write):
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
    assert fl.read_predictions(f"{path}#June & July").n_items == 2
    assert fl.read_predictions(f"{path}#May").n_items == 3
    refused(f"{path}#Mai", "has no sheet 'Mai'; did you mean 'May'")
    refused(f"{path}#", "has no sheet ''")
    content = xlsx({"S": GRID})
    broken = content.replace(b"<sheetData>", b"<sheetDat>>")
    refused(write(broken), r"cannot be read as a workbook|no prediction columns|nothing")
    csv = write(CSV, "a.csv")
    refused(f"{csv}#S", r"is CSV, which has no sheet 'S', and no log of a tool")
    hashed = write(CSV, "a#b.csv")
    assert fl.read_predictions(str(hashed)).n_items == 3


def test_titles_notes_and_legends_of_a_workbook(write):
    rows = [[f"r{i}", i % 2 if i % 3 else None, i % 7 / 10] for i in range(30)]
    titled = [
        ["Scored in April", None, None], [None, "Y", "Scores"], ["case", "label", "p__m__1"],
        *rows, [None] * 3, ["Note: the rest is open", None, None],
    ]  # fmt: skip
    legend = [["Variable", "Meaning"], ["label", "1 = yes"]]
    path = write(xlsx({"Legend": legend, "Data": titled}), "book.xlsx")
    items = fl.read_predictions(path)
    assert (items.n_items, items.n_labeled, items.models) == (30, 20, ("m",))
    said = "\n".join(items.notes)
    assert "rows 1 to 2 before the table ('Y Scores' is the last): not read" in said
    assert "'Note: the rest is open' below the table is not read" in said
    assert "of the sheets 'Data', 'Legend' the first, which is the largest, is read" in said
    refused(f"{path}#Legend", "no prediction columns; the columns are 'Variable', 'Meaning'")
    unnamed = [[None, "label", "p__m__1"], *rows]  # a column without a name is no title
    assert fl.read_predictions(write(xlsx({"S": unnamed}), "book.xlsx")).n_items == 30


def test_workbooks_need_the_extra(write, monkeypatch):
    path = write(xlsx({"S": GRID}))
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(
        fl.MissingExtraError, match=r"install it with `pip install 'fewlabels\[exce"
    ):
        fl.read_predictions(path)


def test_files_that_are_not_there(write, tmp_path):
    write(CSV, "predictions.csv")
    refused(tmp_path / "predictons.csv", r"no such file; did you mean 'predictions\.csv'\?")
    refused(tmp_path / "predictions.parquet", r"did you mean 'predictions\.csv'\?")
    refused(tmp_path / "xyz.parquet", "no such file$")


def test_folders_of_other_formats(write, tmp_path):
    write(JSONL, "folder/a.jsonl")
    write(packed(JSONL.encode()), "folder/b.jsonl.gz")
    folder = tmp_path / "folder"
    assert fl.read_predictions(folder).n_items == 6
    # Notes beside tables do not count.
    write(CSV, "folder/c.csv")
    assert fl.read_predictions(folder).n_items == 3
    write(compressed("zstd", CSV), "folder/d.csv.zst")
    assert fl.read_predictions(folder).n_items == 6


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
