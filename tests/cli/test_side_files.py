"""Files beside the data that are not what they should be: exit code 2, one line, no waiting."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Run = Callable[..., tuple[int, str, str]]

DEEP = {
    "json": "[" * 100_000,
    "map": '{"format": "fewlabels-calibration", "version": 1, "models": ' + '{"a":' * 50_000,
    "number": '{"format": "fewlabels-calibration", "version": 1' + "0" * 6_000 + "}",
    "toml": "a = " + "[" * 50_000 + "]" * 50_000,
    "whole": "a = 1" + "0" * 6_000,
}


def refused(run: tuple[int, str, str], *words: str) -> None:
    code, out, err = run
    assert (code, out, err.count("\n")) == (2, "", 1), err[-500:]
    assert all(word in err for word in words), err


@pytest.mark.parametrize(
    ("text", "words"), [("json", "nested too deeply"), ("map", "JSON"), ("number", "4300 digits")]
)
def test_maps_that_go_too_far(cli: Run, predictions_file: Path, tmp_path: Path, text, words):
    (tmp_path / "map.json").write_text(DEEP[text])
    apply = ("--apply", tmp_path / "map.json", "--out", tmp_path / "out.csv")
    refused(cli("calibrate", predictions_file, *apply), "map.json is not JSON", words)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("text", ["toml", "whole"])
def test_toml_that_goes_too_far(cli: Run, predictions_file: Path, tmp_path: Path, text):
    path = tmp_path / "said.toml"
    path.write_text(DEEP[text])
    refused(cli("estimate", predictions_file, "--columns", path), "said.toml: is not valid TOML")


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero", "large"])
def test_pipes_devices_and_what_is_too_large(
    cli: Run, predictions_file: Path, tmp_path: Path, kind
):
    """Nothing waits for ever, or reads without end."""

    def late(*_: object) -> None:
        pytest.fail("waits, or reads without end")

    path = Path(kind) if kind.startswith("/") else tmp_path / "side.toml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "large":
        with path.open("wb") as file:
            file.truncate(1 << 30)
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    try:
        for arguments in (
            ["estimate", predictions_file, "--columns", path],
            ["calibrate", predictions_file, "--apply", path, "--out", tmp_path / "o.csv"],
        ):
            refused(cli(*arguments), "is ")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


IMPOSSIBLE = [-1, 1e308, -1e308, 10**400, 1e-320, 1e12, "x", None, [1e308, 1.0]]


def numbers_of(said: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the numbers that decide are."""
    for key, value in said.items() if isinstance(said, dict) else enumerate(said):
        if isinstance(value, dict | list):
            yield from numbers_of(value, (*path, key))
        elif not isinstance(value, bool | str) and "fitted" in path and "classes_" not in path:
            yield (*path, key)


@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["temperature", "vector", "matrix"])
def test_maps_with_impossible_values(cli: Run, predictions_file: Path, tmp_path: Path, method):
    path, out = tmp_path / "map.json", tmp_path / "out.csv"
    assert cli("calibrate", predictions_file, "--method", method, "--save", path)[0] == 0
    whole = json.loads(path.read_text())
    places = [place for place in numbers_of(whole) if "good" in place]
    assert len(places) >= 4
    held = 0
    for place in places:
        for value in IMPOSSIBLE:
            said = copy.deepcopy(whole)
            at = said
            for key in place[:-1]:
                at = at[key]
            at[place[-1]] = value
            path.write_text(json.dumps(said))
            run = cli("calibrate", predictions_file, "--apply", path, "--out", out)
            if value == -1 and place[-1] not in ("floor_", "temperature_", "n_iter_"):
                continue  # a coefficient may be
            if value == 1e-320 and place[-1] != "n_iter_":
                continue
            refused(run, "map.json, model 'good': the saved ")
            held += 1
    assert held >= 25


@pytest.mark.parametrize("command", ["estimate", "doctor"])
@pytest.mark.parametrize("column", ["p__a__1", "label", "y__b", "item"])
def test_a_column_of_text_that_is_not_utf8(cli: Run, tmp_path: Path, command, column):
    raw = pa.array([b"1", b"\xff\xfe", b"0"] * 10, pa.binary())
    bad = pa.StringArray.from_buffers(30, *raw.buffers()[1:])
    columns = {
        "label": [0, 1, None] * 10,
        "p__a__1": [0.25, 0.75, 0.5] * 10,
        "y__b": [0, 1, 1] * 10,
    }
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({**columns, column: bad}), path)
    options = ("--method", "labeled") if command == "estimate" else ()
    code, out, err = cli(command, path, *options)
    said = " ".join((out + err).split())
    assert code == 2
    assert r"holds text that is not UTF-8: b'\xff\xfe' in row 2; write it again as UTF-8" in said


def test_a_file_of_columns_says_every_option_of_the_input(cli: Run, tmp_path: Path) -> None:
    """What is typed wins; `doctor --write` writes what it was told; other commands pass it over."""
    votes = tmp_path / "votes.csv"
    rows = [f"{i},{who},{i % 2}" for i in range(30) for who in "aab"]
    votes.write_text("item,who,label\n" + "\n".join(rows) + "\n")
    path = tmp_path / "said.toml"
    told = ["--annotator", "who", "--duplicates", "keep"]
    assert cli("doctor", votes, "--votes", *told, "--write", path)[0] == 0
    assert 'duplicates = "keep"' in path.read_text()
    quick = ("estimate", votes, "--votes", "--method", "majority-vote")
    wanted = cli(*quick, *told)
    assert wanted[0] == 0
    assert cli(*quick, "--columns", path) == wanted
    refused(cli(*quick, "--columns", path, "--duplicates", "refuse"), "votes")
    path.write_text("repeats = 'one'\n" + path.read_text())
    assert cli(*quick, "--columns", path) == wanted


def test_warnings_of_numbers_do_not_reach_the_user(tmp_path: Path):
    program = (
        "import sys, warnings\n"
        "from fewlabels.cli import app\n"
        "import fewlabels.cli.look as look\n"
        "import numpy as np\n"
        "sys.argv = ['fewlabels', 'methods']\n"
        "shown = app.app.invoke\n"
        "app.app.invoke = lambda c: (np.float64(1e308) * np.ones(2) * 10, shown(c))[1]\n"
        "sys.exit(app.main())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_a_score_in_memory_is_bounded_as_well():
    import fewlabels as fl

    with pytest.raises(fl.InputError, match=r"`scores` must be between -1e\+250 and 1e\+250"):
        fl.Predictions(scores=np.array([[1e308], [0.0]]), labels=[0, 1])


@pytest.mark.parametrize(
    "arguments",
    [
        ["estimate", "--model", "lr=0.1=lr=0.1 (p)"],
        ["estimate", "--score", "lr=0.1=lr=0.1 (p)"],
        ["estimate", "--hard", "a=b=v=w"],
        ["curve", "--model", "a=b"],
        ["curve", "--model", "lr=0.1=lr=0.1 (p)"],
        ["threshold", "--model", "a=b", "--min-precision", "0.5"],
        ["label-next", "--model", "a=b"],
    ],
)
def test_names_with_an_equals_sign(cli: Run, tmp_path: Path, arguments: list[str]) -> None:
    path = tmp_path / "a.csv"
    head = "label,p__a=b__0,p__a=b__1,lr=0.1 (p),v=w"
    rows = [f"{i % 2 if i < 20 else ''},{p},{1 - p},{p},{i % 2}" for i, p in enumerate([0.25] * 60)]
    path.write_text("\n".join([head, *rows]))
    command, *options = arguments
    code, out, err = cli(command, path, *options)
    assert code == 0, err
    assert "a=b" in out or "lr=0.1" in out
