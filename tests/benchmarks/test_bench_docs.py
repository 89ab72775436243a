"""docs/benchmark.md: its example runs, its protocol loads, and it names every column and field."""

from __future__ import annotations

import re
import shutil
from dataclasses import fields
from pathlib import Path

import pytest

from bench import Protocol, load
from bench.figures import FIGURES
from bench.protocol import CHOICES
from bench.results import COLUMNS, WRITTEN
from bench.tables import OFFERED

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")


def _block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.fixture
def as_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_example_runs(as_a_reader: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(_block("python"), "benchmark.md", "exec"), {})
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    error = {name: float(value) for name, value in said[1:-1]}
    assert set(error) == {"labeled", "tempered-ensemble", "all-labels-known"}
    assert 0 < error["all-labels-known"] < error["tempered-ensemble"] < error["labeled"] < 0.2
    assert (as_a_reader / "benchmark-moderation" / "results.parquet").is_file()


def test_the_protocol_loads(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(_block("toml"), encoding="utf-8")
    mine = load(tmp_path / "mine.toml")
    assert (mine.name, mine.factor, mine.levels) == ("mine", "sharpness", ("0.5", "1", "2"))


def test_everything_is_named() -> None:
    named = set(re.findall(r"`\[?([a-z][\w. -]*?)\]?/?`", TEXT))
    fixed = (choice for choices in CHOICES.values() for choice in choices)
    choices = {*fixed, *OFFERED, *FIGURES} - {""}
    wanted = {*COLUMNS, *(f.name for f in fields(Protocol)), *choices, *WRITTEN}
    assert wanted <= named, wanted - named


def test_what_holds_otherwise() -> None:
    rows = [line.split(" | ") for line in TEXT.splitlines() if line.startswith("| `")]
    said = {names: last.removesuffix(" |").strip("`") for names, *_, last in rows}
    for names, plain in (
        (
            "| `curve_first`, `curve_last`, `curve_step`",
            "{curve_first}, {curve_last}, {curve_step}",
        ),
        ("| `curve_runs`", "{curve_runs}"),
        ("| `subset_size`, `subsets`", "{subset_size}, {subsets}"),
        ("| `slice_by`, `train_rows`, `truth_rows`", "none, {train_rows}, {truth_rows}"),
        ("| `sampler`", "{sampler}"),
        ("| `seed`", "{seed}"),
        ("| `serves`", "{serves}"),
        ("| `design`", "{design}"),
    ):
        otherwise = {f.name: f.default for f in fields(Protocol)}
        assert said[names] == plain.format(**otherwise)
