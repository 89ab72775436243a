"""`-` as FILE, `--format` and `--sheet`."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewlabels.cli import main, streaming

Run = Callable[..., tuple[int, str, str]]
Send = Callable[[bytes], None]
OPTIONS = ("--metrics", "accuracy", "--method", "labeled", "--json", "-")


@pytest.fixture
def send(monkeypatch: pytest.MonkeyPatch) -> Send:
    """Put bytes into standard input."""

    def put(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))

    return put


def parquet(path: Path) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.csv.read_csv(path), out)
    return out.getvalue()


def json_lines(path: Path) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in pa.csv.read_csv(path).to_pylist()).encode()


@pytest.mark.parametrize(
    ("form", "options"),
    [
        (Path.read_bytes, ()),
        (Path.read_bytes, ("--format", "csv")),
        (lambda path: gzip.compress(path.read_bytes()), ()),
        (lambda path: path.read_bytes().replace(b",", b"\t"), ("--format", "tsv")),
        (json_lines, ()),
        (json_lines, ("--format", "jsonl")),
        (parquet, ()),
        (parquet, ("--format", "parquet")),
        (Path.read_bytes, ("--engine", "threads")),
    ],
)
def test_it_is_read_as_the_file_is(
    cli: Run,
    send: Send,
    predictions_file: Path,
    form: Callable[[Path], bytes],
    options: tuple[str, ...],
) -> None:
    engine = options if "--engine" in options else ()
    code, wanted, err = cli("estimate", predictions_file, *OPTIONS, *engine)
    assert code == 0, err
    send(form(predictions_file))
    assert cli("estimate", "-", *options, *OPTIONS)[:2] == (0, wanted)


def test_every_command_that_takes_a_file(cli: Run, send: Send, predictions_file: Path) -> None:
    send(predictions_file.read_bytes())
    code, out, _ = cli("doctor", "-")
    assert code == 0
    assert out.startswith("standard input: 80 items")
    send(predictions_file.read_bytes())
    assert cli("compare", "-", "--format", "csv", "--metric", "accuracy")[0] == 0
    votes = b"item,annotator,label\n" + b"".join(
        f"{i},{a},{(i + (a == 'z')) % 2}\n".encode() for i in range(20) for a in "xyz"
    )
    for arguments in (("-", "--votes"), ("--votes", "-")):
        send(votes)
        code, out, err = cli("estimate", *arguments, "--method", "majority-vote", "--json", "-")
        assert code == 0, err
        assert json.loads(out)["models"] == ["x", "y", "z"]


def test_a_tab_where_commas_are_more(cli: Run, send: Send) -> None:
    send(b"label\tp__m__1\ta,b,c\n1\t.5\tx\n0\t.25\ty\n")
    code, out, _ = cli("doctor", "-", "--format", "tsv")
    assert code == 0
    assert "'a,b,c'" in out or "a,b,c" in out


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (b"", ["-"], "standard input: is empty (0 bytes)"),
        (b"a,b\n1,2\n", ["-"], "standard input: no prediction columns"),
        (b"p__m__1\n.5\nx\n", ["-"], "standard input: column 'p__m__1' must be numbers; got 'x'"),
        (b'{"a": 1}', ["-", "--format", "csv"], "standard input: is JSON, and --format says csv"),
        (b"a,b\n", ["-", "--format", "json"], "standard input: is not a JSON file: it begins with"),
        (b"a,b\n", ["-", "--format", "xml"], "'--format': 'xml' is not one of"),
        (b"a,b\n", ["-", "--sheet", "S"], "standard input: is CSV, which has no sheet 'S'"),
        (b"", ["-", "--sheet", "S", "--format", "csv"], "--sheet is of workbooks, and --format sa"),
        (b"", ["FILE", "--format", "csv"], "--format says what standard input is (FILE is -)"),
        (b"", ["FILE", "--sheet", "S"], "predictions.csv is CSV, which has no sheets"),
        (b"", ["-", "--votes", "-"], "FILE and --votes are both standard input"),
        (b"x", ["-", "--resume"], "--resume goes on with a file, and standard input comes once"),
    ],
)
def test_what_is_refused(
    cli: Run, send: Send, predictions_file: Path, content: bytes, arguments: list[str], message: str
) -> None:
    send(content)
    paths = {"FILE": predictions_file}
    code, out, err = cli("estimate", *(paths.get(a, a) for a in arguments))
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_terminal_sends_nothing(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    for stdin in (Terminal(io.BytesIO()), None):
        monkeypatch.setattr(sys, "stdin", stdin)
        code, _, err = cli("doctor", "-")
        assert code == 2
        assert "standard input: has nothing to read; send a file" in err


def test_much_is_read_in_parts(
    cli: Run, send: Send, predictions_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "STREAMED_ROWS", 10)
    seen = []
    from fewlabels.streaming import stream

    whole = stream.estimate_files
    monkeypatch.setattr(
        stream, "estimate_files", lambda *a, **k: (seen.append(a), whole(*a, **k))[1]
    )
    send(predictions_file.read_bytes())
    assert cli("estimate", "-", *OPTIONS)[0] == 0
    assert seen == [("-",)]


def test_output_may_not_replace_a_workbook(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    path.write_bytes(b"x")
    assert main(["estimate", str(path), "--sheet", "S", "--json", str(path)]) == 2
    assert path.read_bytes() == b"x"
