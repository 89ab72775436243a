"""`fewlabels label`: refusals in one line, the terminal, the joined table, the page's beginning."""

from __future__ import annotations

import csv
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from fewlabels.data.label_record import read_record

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]
Columns = dict[str, list[Any]]
Answer = Callable[..., dict[str, Any]]
Label = Callable[..., tuple[str, str]]
Refused = Callable[..., str]


@pytest.fixture
def items(columns: Columns) -> Columns:
    """The two classifiers' 80 items, with names and texts."""
    return {"id": [f"c{i:02d}" for i in range(80)],
            "text": [f"this is comment number {i}" for i in range(80)], **columns}  # fmt: skip


@pytest.fixture
def file(items: Columns, write: Write) -> Path:
    return write(items, "comments.csv")


@pytest.fixture
def label(cli: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[str, str]]:
    """What is printed where somebody labels in a terminal and types these lines."""

    def run(path: Path, typed: str, *options: str | Path) -> tuple[str, str]:
        lines = "".join(f"{line}\n" for line in typed.split())
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        code, out, err = cli("label", path, "--terminal", *options)
        assert code == 0, err
        return out, err

    return run


def test_a_record_of_another_file(
    label: Label, refused: Refused, items: Columns, write: Write, file: Path
) -> None:
    label(file, "1 q")
    items["id"][0] = "another"
    other = write(items, "other.csv")
    record = f"{file}.labels.jsonl"
    err = refused("label", other, "--terminal", "--labels", record)
    assert "is the record of another file, 'comments.csv'" in err
    text = Path(record).read_text()
    Path(record).write_text(text.replace('"format": 1', '"format": 7'))
    assert "was written by a newer version" in refused("label", file, "--terminal")
    Path(record).write_text(text.replace('"class": "1"', '"class": "7"'))
    for command in (("label", file, "--terminal"), ("estimate", file, "--labels", record)):
        assert "line 2: unknown class '7'; choose from 0, 1" in refused(*command)


def test_a_port_that_is_taken(refused: Refused, file: Path) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra `label`")
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        err = refused("label", file, "--no-browser", "--port", port)
        assert f"--port {port} is taken" in err


def test_without_the_extra(
    label: Label, refused: Refused, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page needs it, and the terminal does not."""
    monkeypatch.setitem(sys.modules, "starlette", None)
    err = refused("label", file)
    assert "starlette is not installed; install it with `pip install 'fewlabels[label]'`" in err
    label(file, "q")


# In a terminal ------------------------------------------------------------------------------------


def test_the_terminal(label: Label, file: Path) -> None:
    """Labels, cannot say, an undo, a change of what came before, a note, an estimate."""
    keys = "0 1 s u 1 b b 0 f n hard x 0 e ? q 1"
    out, err = label(file, keys, "--annotator", "anna", "--seed", "3")
    assert err == ""
    assert "Item 1 ---" in out
    assert "this is comment number" in out
    assert "saved: cannot say" in out
    assert "undone: c" in out
    assert re.search(r"after 4 labels +interval +holds at every look", out)
    record = read_record(f"{file}.labels.jsonl")
    assert list(record.labels.values()) == ["0", "0", "1", "0"]
    assert list(record.ledger.notes.values()) == [["hard"]]
    assert out.splitlines()[-1] == f"4 labels in {file}.labels.jsonl; the same command goes on"


@pytest.mark.skipif(sys.platform == "win32", reason="files that are open cannot be moved there")
def test_the_terminal_says_that_the_record_is_gone(
    cli: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, lines = Path(f"{file}.labels.jsonl"), iter("101")

    class Typed(io.StringIO):
        def readline(self, size: int | None = -1, /) -> str:
            key = next(lines, "q")
            if key == "0":
                record.unlink()
            return f"{key}\n"

    monkeypatch.setattr(sys, "stdin", Typed())
    code, out, _ = cli("label", file, "--terminal")
    assert code == 0
    assert out.count("saved: 1") == 1
    assert out.count(f"NOT SAVED. {record} is gone; put it back as it was") == 2
    rescue = f"{file}.rescued1.labels.jsonl"
    assert out.splitlines()[-1] == (
        f"{record} is gone; 1 label in {rescue}, which --labels goes on with"
    )
    assert list(read_record(rescue).labels.values()) == ["1"]


def test_the_terminal_goes_on_and_says_when_to_stop(label: Label, file: Path) -> None:
    label(file, "1 1")
    with Path(f"{file}.labels.jsonl").open("ab") as torn:
        torn.write(b'{"event": "la')
    out, err = label(file, "1 e", "--until", "width:accuracy<=.99")
    assert "the last line was cut short (13 bytes), and is left out" in err
    assert "Item 3 ---" in out
    assert "You can stop." in out
    assert len(read_record(f"{file}.labels.jsonl").labels) == 3


def test_a_terminal_gets_no_commands_from_texts(label: Label, items: Columns, write: Write) -> None:
    items["text"] = ["\x1b]0;pwned\x07 three more words \x1b[2J"] * 80
    out, _ = label(write(items), "q", "--see-predictions")
    assert "\x1b" not in out
    assert r"\x1b]0;pwned\x07" in out
    assert "good: " in out


def test_every_item_of_a_small_file(label: Label, items: Columns, write: Write) -> None:
    small = {name: values[20:24] for name, values in items.items()}
    out, _ = label(write(small), "1 0 1 s", "--classes", "0,1")
    assert "Every item has a label, or nobody could say." in out


# The joined table ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_joined_table(
    ending: str, cli: Run, label: Label, answer: Answer, file: Path, tmp_path: Path
) -> None:
    label(file, "1 0 s 1 q")
    before, out = file.read_bytes(), tmp_path / f"joined.{ending}"
    code, said, err = cli("label", file, "--out", out)
    assert (code, err) == (0, "")
    assert said == f"3 labels of {file}.labels.jsonl joined\n\nTable: {out}\n"
    assert file.read_bytes() == before
    with file.open() as given:
        rows = list(csv.DictReader(given))
    if ending == "csv":
        with out.open() as made:
            found = list(csv.DictReader(made))
    else:
        found = [{k: "" if v is None else str(v) for k, v in row.items()}
                 for row in pa.parquet.read_table(out).to_pylist()]  # fmt: skip
    labels = read_record(f"{file}.labels.jsonl").labels
    wanted = [row | {"label": row["label"] or labels.get(row["id"], "")} for row in rows]
    assert found == wanted
    for asked in ((out,), (file, "--labels", f"{file}.labels.jsonl")):
        assert answer("estimate", *asked, "--metrics", "accuracy")["n_labeled"] == 23


def test_a_joined_table_of_other_labels(
    label: Label, refused: Refused, items: Columns, write: Write, file: Path
) -> None:
    label(file, "1 q")
    (key,) = read_record(f"{file}.labels.jsonl").labels
    items["label"][int(key[1:])] = 0
    other = write(items, "other.csv")
    record, out = f"{file}.labels.jsonl", file.parent / "joined.csv"
    err = refused("label", other, "--labels", record, "--out", out)
    assert f"item '{key}' has two labels: '0' in row {int(key[1:]) + 1} after the header" in err


# Several records ----------------------------------------------------------------------------------


def test_records_of_two_annotators(
    cli: Run, label: Label, answer: Answer, refused: Refused, file: Path, tmp_path: Path
) -> None:
    records = []
    for name, keys in (("anna", "1 " * 12), ("ben", "0 " * 12)):
        records += ["--labels", tmp_path / f"{name}.labels.jsonl"]
        label(file, keys, "--annotator", name, *records[-2:])
    asked = ("estimate", file, "--metrics", "accuracy", *records)
    err = refused(*asked)
    assert re.search(r"has two labels: '1' \(anna, .* and '0' \(ben, .*--labels-as counts", err)
    counted = answer(*asked, "--labels-as", "counts")
    assert counted["n_annotated"] == 32  # a label of the file counts as one
    assert answer(*asked, "--labels-as", "votes")["models"] == ["good", "poor", "anna", "ben"]
    code, out, _ = cli("doctor", file, *records, "--labels-as", "counts")
    assert code == 0
    assert "--labels-as counts" in " ".join(out.split())


# The page -----------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_the_page_begins_and_ends(file: Path) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra `label`")
    command = [sys.executable, "-m", "fewlabels", "label", file, "--no-browser"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None
    lines = [run.stdout.readline() for _ in range(4)]
    assert lines[0] == "80 items, 20 labeled\n"
    assert lines[1] == f"Record {file}.labels.jsonl\n"
    assert re.fullmatch(r"Label at http://127\.0\.0\.1:\d+/\?token=[\w-]{32}\n", lines[2])
    os.kill(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=20)
    assert (run.returncode, out) == (130, "")
    assert err == f"interrupted; 0 labels in {file}.labels.jsonl; the same command goes on\n"
