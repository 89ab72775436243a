"""`fewlabels label`: refusals in one line, the terminal, the joined table, the page's beginning."""

from __future__ import annotations

import csv
import io
import json
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


@pytest.fixture
def items(columns: Columns) -> Columns:
    """The two classifiers' 80 items, with names and texts."""
    return {"id": [f"c{i:02d}" for i in range(80)],
            "text": [f"this is comment number {i}" for i in range(80)], **columns}  # fmt: skip


@pytest.fixture
def file(items: Columns, write: Write) -> Path:
    return write(items, "comments.csv")


def refused(cli: Run, *arguments: Any) -> str:
    code, out, err = cli("label", *arguments)
    assert (code, out) == (2, ""), err
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1
    return err


def test_a_record_of_another_file(
    cli: Run, items: Columns, write: Write, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "1", "q")
    assert cli("label", file, "--terminal")[0] == 0
    items["id"][0] = "another"
    other = write(items, "other.csv")
    record = f"{file}.labels.jsonl"
    err = refused(cli, other, "--terminal", "--labels", record)
    assert "is the record of another file, 'comments.csv'" in err
    text = Path(record).read_text()
    Path(record).write_text(text.replace('"format": 1', '"format": 7'))
    assert "was written by a newer version" in refused(cli, file, "--terminal")
    Path(record).write_text(text.replace('"class": "1"', '"class": "7"'))
    assert "line 2: unknown class '7'; choose from 0, 1" in refused(cli, file, "--terminal")
    assert "line 2: unknown class '7'" in cli("estimate", file, "--labels", record)[2]


def test_a_port_that_is_taken(cli: Run, file: Path) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra `label`")
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        assert f"--port {port} is taken" in refused(cli, file, "--no-browser", "--port", port)


def test_without_the_extra(cli: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page needs it, and the terminal does not."""
    monkeypatch.setitem(sys.modules, "starlette", None)
    err = refused(cli, file)
    assert "starlette is not installed; install it with `pip install 'fewlabels[label]'`" in err
    typed(monkeypatch, "q")
    assert cli("label", file, "--terminal")[0] == 0


# In a terminal ------------------------------------------------------------------------------------


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """What somebody types, a line each, in place of standard input."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_the_terminal(cli: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels, cannot say, an undo, a change of what came before, a note, an estimate."""
    keys = ["0", "1", "s", "u", "1", "b", "b", "0", "f", "n", "hard", "x", "0", "e", "?", "q", "1"]
    typed(monkeypatch, *keys)
    code, out, err = cli("label", file, "--terminal", "--annotator", "anna", "--seed", "3")
    assert (code, err) == (0, "")
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


def test_the_terminal_goes_on_and_says_when_to_stop(
    cli: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "1", "1")
    assert cli("label", file, "--terminal")[0] == 0
    with Path(f"{file}.labels.jsonl").open("ab") as torn:
        torn.write(b'{"event": "la')
    typed(monkeypatch, "1", "e")
    code, out, err = cli("label", file, "--terminal", "--until", "width:accuracy<=.99")
    assert code == 0
    assert "the last line was cut short (13 bytes), and is left out" in err
    assert "Item 3 ---" in out
    assert "You can stop." in out
    assert len(read_record(f"{file}.labels.jsonl").labels) == 3


def test_a_terminal_gets_no_commands_from_texts(
    cli: Run, items: Columns, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    items["text"] = ["\x1b]0;pwned\x07 three more words \x1b[2J"] * 80
    typed(monkeypatch, "q")
    code, out, _ = cli("label", write(items), "--terminal", "--see-predictions")
    assert code == 0
    assert "\x1b" not in out
    assert r"\x1b]0;pwned\x07" in out
    assert "good: " in out


def test_every_item_of_a_small_file(cli: Run, items: Columns, write: Write,
                                    monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    small = {name: values[20:24] for name, values in items.items()}
    typed(monkeypatch, *["1", "0", "1", "s"])
    code, out, _ = cli("label", write(small), "--terminal", "--classes", "0,1")
    assert code == 0
    assert "Every item has a label, or nobody could say." in out


# The joined table ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_joined_table(
    ending: str, cli: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "1", "0", "s", "1", "q")
    assert cli("label", file, "--terminal")[0] == 0
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
    code, text, _ = cli("estimate", out, "--metrics", "accuracy", "--json", "-")
    assert (code, json.loads(text)["n_labeled"]) == (0, 23)
    code, text, _ = cli("estimate", file, "--labels", f"{file}.labels.jsonl", "--metrics",
                        "accuracy", "--json", "-")  # fmt: skip
    assert (code, json.loads(text)["n_labeled"]) == (0, 23)


def test_a_joined_table_of_other_labels(
    cli: Run, items: Columns, write: Write, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "1", "q")
    assert cli("label", file, "--terminal")[0] == 0
    (key,) = read_record(f"{file}.labels.jsonl").labels
    items["label"][int(key[1:])] = 0
    other = write(items, "other.csv")
    record, out = f"{file}.labels.jsonl", file.parent / "joined.csv"
    err = refused(cli, other, "--labels", record, "--out", out)
    assert f"item '{key}' has two labels: '0' in row {int(key[1:]) + 1} after the header" in err
    assert not out.exists()
    err = refused(cli, file, "--out", file)
    assert "is the input file too" in err


# Several records ----------------------------------------------------------------------------------


def test_records_of_two_annotators(
    cli: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = []
    for name, keys in (("anna", "1" * 12), ("ben", "0" * 12)):
        records += ["--labels", tmp_path / f"{name}.labels.jsonl"]
        typed(monkeypatch, *keys)
        code, _, _ = cli("label", file, "--terminal", "--annotator", name, *records[-2:])
        assert code == 0
    asked = ("estimate", file, "--metrics", "accuracy", "--json", "-")
    code, out, err = cli(*asked, *records)
    assert (code, out) == (2, "")
    assert re.search(r"has two labels: '1' \(anna, .* and '0' \(ben, .*--labels-as counts", err)
    code, out, _ = cli(*asked, *records, "--labels-as", "counts")
    assert (code, json.loads(out)["n_annotated"]) == (0, 32)  # a label of the file counts as one
    code, out, _ = cli(*asked, *records, "--labels-as", "votes")
    assert (code, json.loads(out)["models"]) == (0, ["good", "poor", "anna", "ben"])
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
