"""`fewlabels benchmark`: what it prints and writes, and each way it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Cli = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]

SHORT = (
    "--methods", "labeled,ensemble", "--runs", "2", "--n-labeled", "10", "--n-unlabeled", "40",
    "--metrics", "accuracy", "--curve-runs", "2", "--workers", "1",
)  # fmt: skip


@pytest.fixture
def labeled_file(write: Write) -> Path:
    """Two classifiers, 200 items, all labels known."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=200)
    table: dict[str, list[object]] = {"label": truth.tolist()}
    for model, spread in (("good", 0.8), ("poor", 2.0)):
        logit = (2 * truth - 1) * 1.5 + spread * rng.standard_normal(200)
        table[f"p__{model}__1"] = (1 / (1 + np.exp(-logit))).round(4).tolist()
    table["site"] = ["north" if i % 2 else "south" for i in range(200)]
    table["age"] = rng.integers(18, 80, size=200).tolist()
    return write(table, "scores.csv")


def test_list(cli: Cli) -> None:
    code, out, _ = cli("benchmark", "--list")
    assert code == 0
    lines = out.splitlines()
    assert len(lines) == 11
    assert lines[0] == "ssme-binary             Error by method, two classes"
    assert all(len(line) <= 80 for line in lines)


def test_the_study_is_no_protocol(cli: Cli) -> None:
    code, _, said = cli("benchmark", "study")
    assert code == 2
    assert said.startswith("error: unknown protocol 'study'; choose from ssme-binary, ")
    assert said.count("\n") == 1


def test_a_run(cli: Cli, labeled_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, said, warnings = cli(
        "benchmark", "ssme-binary", "--data", labeled_file, "--out", out, *SHORT
    )
    assert code == 0
    assert warnings == ""
    assert all(len(line) <= 80 for line in said.splitlines() if str(tmp_path) not in line)
    for row in ("labeled", "ensemble", "all labels known"):
        assert f"\n{row}" in said
    written = {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()}
    expected = {"manifest.json", "results.csv", "results.parquet", "traits.csv", "report.md",
                "report.html"}  # fmt: skip
    assert expected <= written
    again = cli("benchmark", "ssme-binary", "--out", out, "--resume", "--workers", 1)
    assert again == (code, said, warnings)


def test_groups_levels_and_settings(cli: Cli, labeled_file: Path, tmp_path: Path) -> None:
    code, said, _ = cli(
        "benchmark", "ssme-subgroup", "--data", labeled_file, "--out", tmp_path / "groups", *SHORT,
        "--by", "site,age", "--bins", "age=30,50", "--where", "site=north", "--seed", 3,
        "--methods", "ssme-kde[epochs=2,leave_one_out=true]", "--exclude-models", "poor",
        "--confidence-level", ".9", "--sampler", "uniform",
    )  # fmt: skip
    assert code == 0
    assert "only rows of site=north" in said
    code, _, _ = cli(
        "benchmark", "ssme-ensembling", "--data", labeled_file, "--out", tmp_path / "levels",
        *SHORT, "--levels", ".5,2",
    )  # fmt: skip
    assert code == 0
    assert len(list((tmp_path / "levels" / "figures").glob("*.svg"))) == 1


def test_what_could_not_run_is_said(
    cli: Cli, labeled_file: Path, tmp_path: Path, write: Write
) -> None:
    write({"a": [1]}, "other.csv")
    code, _, said = cli(
        "benchmark", "ssme-binary", "--data", tmp_path, "--out", tmp_path / "out", *SHORT,
        "--n-labeled", "10,90",
    )  # fmt: skip
    assert code == 0
    warnings = said.splitlines()
    assert len(warnings) == 2
    assert "other.csv: no prediction columns" in warnings[0]
    assert "n_labeled 90 with n_unlabeled 40 needs 132 items" in warnings[1]


def test_options_add_up(cli: Cli, labeled_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, _, _ = cli(
        "benchmark", "ssme-subgroup", "--data", labeled_file, "--out", out, *SHORT,
        "--methods", "majority-vote", "--n-labeled", 12, "--n-unlabeled", 30, "--metrics", "brier",
        "--by", "site", "--by", "age", "--bins", "age=40", "--models", "good", "--models", "poor",
    )  # fmt: skip
    assert code == 0
    ran = json.loads((out / "manifest.json").read_text())
    protocol = ran["protocol"]
    assert protocol["methods"] == ["labeled", "ensemble", "majority-vote"]
    assert (protocol["n_labeled"], protocol["n_unlabeled"]) == ([10, 12], [40, 30])
    assert (protocol["metrics"], protocol["by"]) == (["accuracy", "brier"], ["site", "age"])
    assert ran["reading"]["models"] == ["good", "poor"]


@pytest.mark.parametrize("said_by_hand", [(), ("--estimand", "sample")])
def test_intervals_say_what_they_are_for(
    cli: Cli, labeled_file: Path, tmp_path: Path, said_by_hand: tuple[str, ...]
) -> None:
    options = ("--out", tmp_path / "out", *SHORT, "--confidence-level", ".9", *said_by_hand)
    code, said, _ = cli("benchmark", "ssme-binary", "--data", labeled_file, *options)
    assert code == 0
    assert ("(estimand population), since" in " ".join(said.split())) == (not said_by_hand)
    again = cli("benchmark", "ssme-binary", "--out", tmp_path / "out", "--resume")
    assert again[1] == said


def test_a_persons_report_is_kept(cli: Cli, labeled_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "report.md").write_text("mine")
    code, _, said = cli("benchmark", "ssme-binary", "--data", labeled_file, "--out", out, *SHORT)
    assert code == 2
    assert said.count("\n") == 1
    assert "holds report.md, which no benchmark wrote; name another --out" in said
    assert (out / "report.md").read_text() == "mine"


def test_a_report_that_cannot_be_written(cli: Cli, labeled_file: Path, tmp_path: Path) -> None:
    options = ("ssme-binary", "--data", labeled_file, "--out", tmp_path / "out")
    assert cli("benchmark", *options, *SHORT)[0] == 0
    (tmp_path / "out" / "report.md").unlink()
    (tmp_path / "out" / "report.md").mkdir()
    code, _, said = cli("benchmark", *options, "--resume")
    assert code == 2
    assert said.count("\n") == 1
    assert "a folder is in the way; what is finished is kept: mend that, and go on with --r" in said


def test_help_names_the_defaults(cli: Cli) -> None:
    from fewlabels.bench import load, names

    said = " ".join(cli("benchmark", "--help")[1].split())
    protocols = [load(name) for name in names() if name.startswith("ssme")]
    assert {p.n_unlabeled for p in protocols} == {(1000,)}
    assert {p.n_labeled for p in protocols} == {(20,), (20, 50, 100)}
    assert {(p.runs, p.design) for p in protocols} == {(50, "predictions"), (500, "trained sets")}
    for words in (
        "1,000 unlabeled items and 20, 50 or 100 labels",
        "How many labels. Default: 20, 50 and 100; in some protocols only 20.",
        "How many unlabeled items. Default: 1,000.",
        "Repetitions of each setting. Default: 50, trained sets 500.",
    ):
        assert words in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a protocol; `fewlabels benchmark --list` lists them"),
        (("ssme-binray",), "unknown protocol 'ssme-binray'; did you mean 'ssme-binary'?"),
        (("ssme-binary",), "no data; name files or folders of predictions with --data"),
        (("ssme-binary", "--data", "none"), "--data 'none': there is no such file or folder"),
        (("ssme-binary", "--data", "{folder}"), "holds no files of predictions"),
        (("ssme-multiclass", "--data", "{file}"), "has 2 classes; ssme-multiclass serves more"),
        (("ssme-subgroup", "--data", "{file}", "--by", "sex"), "has no column 'sex'"),
        (("ssme-binary", "--data", "{file}", "--methods", "ensembel"), "did you mean 'ensemble'?"),
        (("ssme-binary", "--data", "{file}", "--metrics", "acu"), "unknown metric 'acu'"),
        (("ssme-binary", "--data", "{file}", "--models", "best"), "unknown model 'best'"),
        (
            ("ssme-binary", "--data", "{file}", "--n-labeled", "10,x"),
            "must be whole numbers; got 'x",
        ),
        (("ssme-binary", "--data", "{file}", "--n-labeled", "5000"), "nothing can run: scores: n_"),
        (("ssme-binary", "--data", "{file}", "--bins", "age"), "--bins must be COL=VALUE"),
        (("ssme-binary", "--data", "{file}", "--bins", "age=a"), "--bins must be numbers; got 'a'"),
        (("ssme-binary", "--data", "{file}", "--where", "x"), "--where must be COL=VALUE"),
        (("ssme-binary", "--data", "{file}", "--resume"), "nothing to resume; leave --resume out"),
        (("ssme-binary", "--data", "{file}", "--confidence-level", "95"), "between 0 and 1"),
        (("ssme-binary", "--data", "{file}", "--runs", "0"), "--runs"),
        (
            ("ssme-binary", "--data", "{file}", "--out", "{file}"),
            "is the input file too; name another",
        ),
        (("ssme-binary", "--data", "{file}", "--out", ""), "--out must name a folder; got ''"),
        (("ssme-binary", "--data", ""), "--data '': there is no such file or folder"),
        (("ssme-binary", "--data", "{file}", "--runs", "100000000"), "--runs must be a whole num"),
        (("ssme-binary", "--data", "{file}", "--levels", "2"), "--levels have no use in protocol"),
        (("ssme-binary", "--data", "{file}", "--slice-by", "age"), "--slice-by serves protocols"),
        (("ssme-ess", "--data", "{file}", "--curve-runs", "0"), "--curve-runs must be at least 1"),
        (("ssme-subgroup", "--data", "{file}", "--by", "sex"), "--by: there are 'site', 'age'"),
        (("ssme-binary", "--data", "{file}", "--bins", "age=3"), "--bins cuts column 'age', which"),
        (("ssme-binary", "--data", "{file}"), "the largest --n-unlabeled that works with n_labele"),
        (
            ("ssme-binary", "--data", "{file}", "--where", "site=a", "--where", "site=b"),
            "--where names column 'site' twice; name it once",
        ),
        (("ssme-semisynthetic", "--data", "{file}"), "holds predictions; ssme-semisynthetic trai"),
        (("{own}", "--data", "{file}"), "protocol 'own': unknown field 'x'; there are name, ti"),
    ],
)
def test_bad_input_is_one_line(
    cli: Cli, labeled_file: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    own = empty.with_suffix(".own") / "own.toml"
    own.parent.mkdir()
    own.write_text("x = 3\n")
    filled = [a.format(file=labeled_file, folder=empty, own=own) for a in arguments]
    if "--out" not in filled and filled:
        filled += ["--out", str(tmp_path / "out")]
    if "--methods" not in filled and filled:
        filled += ["--methods", "ensemble"]
    code, out, said = cli("benchmark", *filled)
    assert code == 2
    assert out == ""
    assert message in said
    assert said.startswith("error: ")
    assert said.count("\n") == 1
