"""What is read: `-` as FILE, `--format`, `--sheet`, and long votes by `--votes`."""

from __future__ import annotations

import gzip
import io
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewlabels.cli import input as settings
from fewlabels.cli.app import app

Run = Callable[..., tuple[int, str, str]]
Answer = Callable[..., dict[str, Any]]
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


def test_every_command_that_takes_a_file(
    cli: Run, answer: Answer, send: Send, predictions_file: Path
) -> None:
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
        found = answer("estimate", *arguments, "--method", "majority-vote")
        assert found["models"] == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (b"", ["-"], "standard input: is empty (0 bytes)"),
        (b"a,b\n1,2\n", ["-"], "standard input: no prediction columns"),
        (b"p__m__1\n.5\nx\n", ["-"], "standard input: column 'p__m__1' must be numbers; got 'x'"),
        (b'{"a": 1}', ["-", "--format", "csv"], "standard input: is JSON, and --format says csv"),
        (b"a,b\n", ["-", "--format", "json"], "standard input: is not a JSON file: it begins with"),
        (b"a,b\n", ["-", "--sheet", "S"], "standard input: is CSV, which has no sheet 'S'"),
        (b"", ["-", "--sheet", "S", "--format", "csv"], "--sheet is of workbooks, and --format sa"),
        (b"", ["-", "--votes", "-"], "FILE and --votes are both standard input"),
        (b"x", ["-", "--resume"], "--resume goes on with a file, and standard input comes once"),
    ],
)
def test_what_is_refused(
    refused: Callable[..., str], send: Send, content: bytes, arguments: list[str], message: str
) -> None:
    send(content)
    assert message in refused("estimate", *arguments)


def test_the_command_that_a_warning_says_works(cli: Run, tmp_path: Path) -> None:
    """Rows that are fewer items: what is to be said is said as it stands in a shell."""
    rng = np.random.default_rng(0)
    path, truth = tmp_path / "ratings.csv", rng.random(80) < 0.4
    label = pa.array(truth, mask=np.arange(80) >= 40)
    columns = {"label": label, "p__a__1": (truth + rng.random(80)) / 2}
    columns |= {"the case": [f"c{i % 20}" for i in range(80)], "reader": ["u", "v"] * 40}
    pa.csv.write_csv(pa.table(columns), path)
    found = json.loads(cli("estimate", path, *OPTIONS)[1])
    (said,) = [w for w in found["warnings"] if "80 rows are 20 items" in w]
    options = shlex.split(said.partition("say ")[2])
    assert options == ["--cluster", "the case"]
    for command in (("estimate", *OPTIONS), ("label-next",), ("doctor",)):
        code, out, err = cli(command[0], path, *command[1:], *options, "--cluster", "reader")
        assert (code, "80 rows are 20 items" in out) == (0, False), err


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
    monkeypatch.setattr(settings, "STREAMED_ROWS", 10)
    seen = []
    from fewlabels.streaming import stream

    whole = stream.estimate_files
    monkeypatch.setattr(
        stream, "estimate_files", lambda *a, **k: (seen.append(a), whole(*a, **k))[1]
    )
    send(predictions_file.read_bytes())
    assert cli("estimate", "-", *OPTIONS)[0] == 0
    assert seen == [("-",)]


def test_rows_decide_and_not_bytes(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "STREAMED_ROWS", 5_000)
    table = pa.table({"label": np.arange(6_000) % 2, "y__a": np.zeros(6_000, np.int8)})
    pq.write_table(table, tmp_path / "small.parquet")
    assert (tmp_path / "small.parquet").stat().st_size < 6_000
    found = json.loads(cli("estimate", tmp_path / "small.parquet", *OPTIONS)[1])
    assert found["diagnostics"]["stream"]["engine"] == "threads"


def test_output_may_not_replace_a_workbook(refused: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    path.write_bytes(b"x")
    assert "is the input file too" in refused("estimate", path, "--sheet", "S", "--json", path)


Write = Callable[..., Path]


@pytest.fixture
def votes(write: Write) -> Path:
    """Five annotators on 60 items, three votes each."""
    votes = [(i, (i + k) % 5) for i in range(60) for k in range(3)]
    said = [i * i % 3 % 2 ^ (i % (7 + a) == 0) for i, a in votes]
    item, annotator = zip(*((i, f"w{a}") for i, a in votes), strict=True)
    return write({"item": item, "annotator": annotator, "label": said}, "votes.csv")


BY_MAJORITY = ("--method", "majority-vote", "--metrics", "accuracy")


def test_alone_or_as_the_file(answer: Answer, votes: Path) -> None:
    alone = answer("estimate", "--votes", votes, *BY_MAJORITY)
    assert answer("estimate", votes, "--votes", *BY_MAJORITY) == alone
    assert sorted(alone["models"]) == ["w0", "w1", "w2", "w3", "w4"]
    assert (alone["n_items"], alone["n_labeled"]) == (60, 0)


def test_beside_a_file(answer: Answer, votes: Path, write: Write) -> None:
    wide = write({"id": [1, 0, 99], "label": [0, 1, 1], "site": ["n", "s", "s"]}, "wide.csv")
    asked = ("--votes", votes, "--item", "id", "--by", "site")
    result = answer("estimate", wide, *asked, *BY_MAJORITY)
    assert (result["n_items"], result["n_labeled"]) == (61, 3)
    assert [g["group"] for g in result["groups"]] == [None, "site=n", "site=s", "site=null"]


def test_votes_inform_a_curve(
    answer: Answer, votes: Path, columns: dict[str, Any], write: Write
) -> None:
    wide = write(columns | {"item": list(range(80))})
    assert answer("curve", wide, "--model", "good", "--votes", votes)["model"] == "good"


M = ("--model", "m")
OF_STRATA: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any]], float]]] = {
    # A command, the options that make it answer, and where its accuracy of m is.
    "estimate": (OPTIONS[:4], lambda d: d["estimates"][0]["value"]),
    "compare": (
        ("--metric", "accuracy", *OPTIONS[2:4]),
        lambda d: max(one["value"] for one in d["comparisons"][0]["standings"]),
    ),
    "annotations": ((), lambda d: d["estimates"][0]["value"]),
    "calibrate": (("--method", "vector"), lambda d: d["calibrations"][0]["before"]["accuracy"]),
    # The share of yes.
    "threshold": (
        (*M, *OPTIONS[2:4], "--min-precision", ".4"), lambda d: d["prevalence_here"]["value"],
    ),
    "score": ((), lambda d: d["criteria"][0]["rows"][2]["value"]),
    "curve": ((*M, *OPTIONS[2:4]), lambda d: d["prevalence"]["value"]),
    "calibration": (("--bins", "1", *OPTIONS[2:4]), lambda d: d["bins"][0]["observed"]),
    "label-next": (
        (*M, "--order", "random", "--size", "300", "--method", "bayesian-calibration"),
        lambda d: float(np.mean(d["probability"])),
    ),
}  # fmt: skip
REFUSE_STRATA = {
    "monitor": (("--time", "day"), "monitoring counts all labels alike, and here they were drawn"),
    "shift": ((), "the test for a shift counts all labels alike"),
    "backtest": (("--labels", "20"), "a backtest counts all labels alike"),
    "label": (("--show", "text"), "labeling counts all labels alike"),
}
RATES = {"threshold", "score", "curve", "calibration", "label-next"}


@pytest.fixture(scope="module")
def strata_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two areas of 90 and 10% of the items, 60 labels of each: .19 yes and m right in .95, .9 and
    .35. Of all items .26 are yes and m is right in .89, of the labels half and two thirds."""
    rng = np.random.default_rng(0)
    small = np.arange(2_000) % 10 == 0
    truth = rng.random(2_000) < np.where(small, 0.9, 0.19)
    said = truth ^ (rng.random(2_000) > np.where(small, 0.35, 0.95))
    known = np.zeros(2_000, dtype=bool)
    for inside in (small, ~small):
        known[rng.choice(np.flatnonzero(inside), 60, replace=False)] = True
    table = {
        "id": [f"i{i}" for i in range(2_000)],
        "area": np.where(small, "small", "big").tolist(),
        "day": [f"2024-01-0{1 + i % 2}" for i in range(2_000)],
        "text": [f"what item {i} says" for i in range(2_000)],
        "label": pa.array(np.where(truth, "yes", "no").tolist(), mask=~known),
        "p__m__yes": np.where(said, 0.5, 0.0) + rng.random(2_000) / 2,
        "p__k__yes": rng.random(2_000),
    }
    path = tmp_path_factory.mktemp("strata") / "strata.csv"
    pa.csv.write_csv(pa.table(table), path)
    return path


@pytest.mark.few(3)
@pytest.mark.parametrize("command", OF_STRATA)
def test_strata_count_in_every_question(command: str, cli: Run, strata_file: Path) -> None:
    """What ignores them is off by a fifth and more."""
    options, find = OF_STRATA[command]
    truth, values = 0.26 if command in RATES else 0.89, []
    for more in ((), ("--stratum", "area")):
        code, out, err = cli(command, strata_file, *options, *more, "--json", "-")
        assert code == 0, err
        values.append(find(json.loads(out)))
    assert abs(values[0] - truth) > 0.15
    assert abs(values[1] - truth) < 0.1


@pytest.mark.parametrize("command", REFUSE_STRATA)
def test_a_question_that_cannot_count_them_refuses_strata(
    command: str, refused: Callable[..., str], strata_file: Path
) -> None:
    options, message = REFUSE_STRATA[command]
    assert message in refused(command, strata_file, *options, "--stratum", "area")


def test_no_command_ignores_strata(refused: Callable[..., str], strata_file: Path) -> None:
    params = {n: c.get_params(click.Context(c)) for n, c in app.commands.items()}
    takes = {n for n, every in params.items() if "stratum" in [p.name for p in every]}
    reads = {"doctor", "convert"}  # the column alone
    assert takes == OF_STRATA.keys() | REFUSE_STRATA.keys() | reads
    said = refused("estimate", strata_file, "--shift", "label", "--stratum", "area")
    assert "the correction --shift 'label' counts all labels alike" in said
