"""Every bad input: exit code 2, one line on stderr, nothing on stdout, nothing written."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Run = Callable[..., tuple[int, str, str]]
Table = dict[str, list[Any]]


def refused(run: Run, folder: Path, *arguments: str | Path) -> str:
    """The message of a run that must be refused."""
    before = sorted(folder.rglob("*"))
    code, out, err = run(*arguments)
    assert (code, out) == (2, ""), err
    assert err.startswith("error: ")
    assert err.endswith("\n")
    assert len(err.splitlines()) == 1, err
    assert "Traceback" not in err
    assert sorted(folder.rglob("*")) == before, "something was written"
    return err


def outputs(folder: Path) -> list[str | Path]:
    return ["--json", folder / "out.json", "--html", folder / "out.html"]


def change(column: str, row: int, value: Any) -> Callable[[Table], Table]:
    def edit(table: Table) -> Table:
        values = list(table[column])
        values[row] = value
        return table | {column: values}

    return edit


def drop(*columns: str) -> Callable[[Table], Table]:
    return lambda table: {k: v for k, v in table.items() if k not in columns}


TABLES: dict[str, tuple[Callable[[Table], Any], list[str], str]] = {
    "probability above 1": (change("p__good__1", 3, 1.5), [], r"between 0 and 1.*1\.5.*good"),
    "probability below 0": (change("p__good__1", 3, -0.5), [], r"between 0 and 1.*-0\.5.*good"),
    "nan in part of a row": (change("p__good__1", 3, ""), [], r"NaN in part of a row.*good"),
    "rows that do not sum to 1": (change("p__good__1", 3, 0.05), [], r"must sum to 1.*good"),
    "no prediction columns": (
        drop("p__good__0", "p__good__1", "p__poor__0", "p__poor__1"),
        [],
        r"no prediction",
    ),
    "a label that is not a class": (change("label", 3, "maybe"), [], r"maybe.*not a class"),
    "-1 declared a class": (
        lambda t: {"label": t["label"], "p__good__1": t["p__good__1"]},
        ["--classes=-1,1"],
        r"-1.*class",
    ),
    "one declared class": (
        lambda t: {"label": [1] * 80, "p__good__1": t["p__good__1"]},
        ["--classes=1"],
        r"one class.*at least two",
    ),
    "duplicate column names": (
        lambda t: [*t.items(), ("site", t["site"])],
        [],
        r"two columns are named 'site'",
    ),
    "two models of one name": (
        lambda t: t,
        ["--model", "good=p__poor__0,p__poor__1", "--model", "good=p__good__0,p__good__1"],
        r"two classifiers 'good'",
    ),
    "negative weights": (
        lambda t: t | {"weight": [-1] + [1] * 79},
        [],
        r"--weight must not be negative",
    ),
    "weights all zero": (
        lambda t: t | {"weight": [0] * 80},
        [],
        r"--weight is zero for every item",
    ),
    "unknown label column": (lambda t: t, ["--label", "lable"], r"lable"),
    "unknown domain column": (lambda t: t, ["--domain", "nowhere"], r"nowhere"),
    "unknown weight column": (lambda t: t, ["--weight", "nothing"], r"nothing"),
    "malformed --model": (lambda t: t, ["--model", "good"], r"good.*NAME=COL|NAME=COL.*good"),
    "unknown column in --model": (lambda t: t, ["--model", "m=no,such"], r"no"),
    "no such TOML file": (lambda t: t, ["--columns", "none.toml"], r"none\.toml"),
    "unknown method": (lambda t: t, ["--method", "ssme_kde"], r"did you mean 'ssme-kde'"),
    "unknown metric": (lambda t: t, ["--metrics", "acuracy"], r"did you mean 'accuracy'"),
    "no metric": (lambda t: t, ["--metrics", ","], r"--metrics"),
    "unknown group": (lambda t: t, ["--by", "sight"], r"sight.*site"),
    "unknown model": (lambda t: t, ["--models", "god"], r"did you mean 'good'.*poor"),
    "confidence level 1": (lambda t: t, ["--confidence-level", "1"], r"`?confidence.level`?.*1"),
    "confidence level nan": (lambda t: t, ["--confidence-level", "nan"], r"confidence.level.*nan"),
    "unknown estimand": (lambda t: t, ["--estimand", "world"], r"world.*population"),
    "negative seed": (lambda t: t, ["--seed", "-1"], r"seed.*-1"),
    "no workers": (lambda t: t, ["--workers", "0"], r"workers.*0"),
    "malformed requirement": (lambda t: t, ["--require", "accuracy"], r"in quotes.*'accuracy'"),
    "requirement of nan": (lambda t: t, ["--require", "ece<nan"], r"'ece<nan'"),
    "unknown required metric": (lambda t: t, ["--require", "accu>=1"], r"unknown metric 'accu'"),
    "unknown required classifier": (
        lambda t: t,
        ["--require", "god:accuracy>=1"],
        r"--require 'god:accuracy>=1': unknown model 'god'; did you mean 'good'",
    ),
    "unknown positive class": (
        lambda t: t,
        ["--positive", "spam"],
        r"unknown class 'spam'; choose from 0, 1",
    ),
    "name without columns": (
        lambda t: t,
        ["--model", "good"],
        r"--model 'good' names no columns: --models NAME selects, --model NAME=COL maps",
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_estimate_refuses(
    case: str, cli: Run, tmp_path: Path, columns: Table, write: Callable[..., Path]
) -> None:
    edit, options, message = TABLES[case]
    file = write(edit(columns))
    err = refused(cli, tmp_path, "estimate", file, *options, *outputs(tmp_path))
    assert re.search(message, err), err


def corrupt_parquet(path: Path) -> None:
    path.write_bytes(b"PAR1" + b"\0" * 50 + b"PAR1")


def pickled_npz(path: Path) -> None:
    path.write_bytes(pickle.dumps({"probabilities": [[0.1]]}))


def object_npz(path: Path) -> None:
    np.savez(path, probabilities=np.array([{"a": 1}], dtype=object))


def latin1_csv(path: Path) -> None:
    path.write_bytes("label,p__m__1,ort\n1,0.5,Zürich\n".encode("latin-1"))


FILES: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "no such file": ("none.csv", lambda p: None, r"none\.csv"),
    "empty file": ("empty.csv", lambda p: p.write_bytes(b""), r"empty"),
    "header alone": (
        "header.csv",
        lambda p: p.write_text("label,p__m__1\n"),
        r"no rows|empty|item",
    ),
    "empty parquet": ("empty.parquet", lambda p: p.write_bytes(b""), r"empty"),
    "an empty directory": ("folder", lambda p: p.mkdir(), r"folder"),
    "corrupt parquet": ("broken.parquet", corrupt_parquet, r"broken\.parquet"),
    "text as parquet": ("text.parquet", lambda p: p.write_text("a,b\n1,2\n"), r"text\.parquet"),
    "a pickle as npz": ("evil.npz", pickled_npz, r"evil\.npz"),
    "objects in npz": ("objects.npz", object_npz, r"objects\.npz"),
    "unknown ending": ("data.xyz", lambda p: p.write_text("a"), r"data\.xyz"),
    "latin-1 csv": ("latin.csv", latin1_csv, r"UTF-8"),
}


@pytest.mark.parametrize("case", FILES)
def test_unreadable_file(case: str, cli: Run, tmp_path: Path) -> None:
    name, make, message = FILES[case]
    file = tmp_path / name
    make(file)
    err = refused(cli, tmp_path, "estimate", file, "--json", tmp_path / "out.json")
    assert re.search(message, err), err
    code, _, err = cli("doctor", file)
    assert code == 2
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1
    assert re.search(message, err), err


def test_a_cell_of_100_mb(cli: Run, tmp_path: Path) -> None:
    file = tmp_path / "large.csv"
    file.write_text('label,p__m__1,note\n1,0.5,"' + "x" * 100_000_000 + '"\n0,0.2,\n')
    code, out, err = cli("estimate", file, "--by", "note", *outputs(tmp_path))
    assert code == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert len(err) < 2000


@pytest.mark.parametrize("name", ["", ".", "no/such/folder/out.json", "x" * 300, "nul\0byte"])
def test_output_paths_that_cannot_be(
    name: str, cli: Run, tmp_path: Path, predictions_file: Path
) -> None:
    path = f"{tmp_path}/{name}" if name else ""
    err = refused(cli, tmp_path, "estimate", predictions_file, "--json", path)
    assert "cannot write --json" in err


def test_output_may_not_be_the_input(cli: Run, tmp_path: Path, predictions_file: Path) -> None:
    before = predictions_file.read_bytes()
    err = refused(cli, tmp_path, "estimate", predictions_file, "--json", predictions_file)
    assert "is the input file too" in err
    assert predictions_file.read_bytes() == before


def test_two_outputs_may_not_share_a_file(cli: Run, tmp_path: Path, predictions_file: Path) -> None:
    both = tmp_path / "out"
    err = refused(cli, tmp_path, "estimate", predictions_file, "--json", both, "--html", both)
    assert "is the file of --json too" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["estimat"], "unknown command 'estimat'; did you mean 'estimate'?"),
        (["estimate"], "FILE"),
        (["estimate", "a.csv", "b.csv"], "b.csv"),
        (["estimate", "a.csv", "--modles", "x"], "--modles"),
        (["estimate", "a.csv", "--json"], "--json"),
        (["demo", "--labels", "many"], "many"),
        (["demo", "--labels", "1001"], "between 0 and 1000; got 1001"),
        (["demo", "--out", "no/such/folder/report.html"], "cannot write --out"),
        (["doctor"], "FILE"),
        (["--no-such-option"], "--no-such-option"),
    ],
)
def test_usage(arguments: list[str], message: str, cli: Run, tmp_path: Path) -> None:
    assert message in refused(cli, tmp_path, *arguments)


def test_names_with_line_breaks_stay_on_one_line(
    cli: Run, tmp_path: Path, predictions_file: Path
) -> None:
    err = refused(cli, tmp_path, "estimate", predictions_file, "--by", "a\nb\x1b[31m\u2028\x85")
    assert r"\n" in err
    assert "\x1b" not in err


def test_undecodable_arguments(cli: Run, tmp_path: Path, predictions_file: Path) -> None:
    err = refused(cli, tmp_path, "estimate", predictions_file, "--model", "\udcff=p__good__1")
    assert "must be text" in err
    refused(cli, tmp_path, "estimate", tmp_path / "\udcff.csv")


def test_a_failed_run_leaves_the_old_file(cli: Run, tmp_path: Path, predictions_file: Path) -> None:
    old = tmp_path / "out.json"
    old.write_text("old")
    refused(cli, tmp_path, "estimate", predictions_file, "--by", "sight", "--json", old)
    assert old.read_text() == "old"
