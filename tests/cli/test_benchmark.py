"""`fewlabels benchmark`: what it prints and writes, and each way it refuses."""

from __future__ import annotations

import subprocess
import sys
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
    assert len(lines) == 9
    assert lines[0] == "ssme-binary             Error by method, two classes"
    assert all(len(line) <= 80 for line in lines)


def test_help_starts_fast() -> None:
    code = (
        "import sys\nfrom fewlabels.cli import main\nassert main(['benchmark', '--help']) == 0\n"
        "assert not {'numpy', 'scipy', 'pyarrow', 'rich', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


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
        (("ssme-binary", "--data", "{file}", "--metrics", "acc"), "unknown metric 'acc'"),
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
        (("ssme-binary", "--data", "{file}", "--out", "{file}", *SHORT[4:8]), "cannot write in"),
    ],
)
def test_bad_input_is_one_line(
    cli: Cli, labeled_file: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    filled = [a.format(file=labeled_file, folder=empty) for a in arguments]
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
