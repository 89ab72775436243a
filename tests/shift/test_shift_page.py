"""The page on shift runs, and the command prints it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from shift_worlds import label_shifted

import fewlabels as fl
from fewlabels.cli.repair import shift as command
from fewlabels.shifts.analysis import shift

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_page_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(vars(fl), "shift", shift)
    text = (ROOT / "docs" / "shift.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        exec(compile(block, "shift.md", "exec"), {})
    out = capsys.readouterr().out
    assert "do not look like a random sample" in " ".join(out.split())
    plain, corrected = map(float, out.splitlines()[-1].split())
    assert corrected < plain


@pytest.fixture
def file(tmp_path: Path) -> Path:
    world = label_shifted(0, 50, [0.5, 0.5], [0.9, 0.1])
    rows = ["label,p__a__1,p__b__1"]
    for y, p in zip(world.shown, world.probabilities[:, :2, 1], strict=True):
        rows.append(f"{'' if y < 0 else y},{p[0]:.5f},{p[1]:.5f}")
    path = tmp_path / "shifted.csv"
    path.write_text("\n".join(rows))
    return path


def test_command_prints_80_columns_and_json(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "shift.json"
    done = CliRunner().invoke(command, [str(file), "--json", str(target)])
    assert done.exit_code == 0, done.output
    assert all(len(line) <= 80 for line in done.output.splitlines() if "JSON:" not in line)
    assert "labeled items are a random sample of all" in done.output
    written = json.loads(target.read_text())
    assert written["what"] == "shift"
    alone = CliRunner().invoke(command, [str(file), "--json", "-"])
    assert json.loads(alone.stdout) == written
    names = [one["class"] for one in written["label_shift"]["classes"]]
    assert names == [0, 1]
    assert written["suggested"] == "label"


def test_hostile_names_stay_on_their_lines() -> None:
    world = label_shifted(1, 30, [0.5, 0.5], [0.9, 0.1], 100)
    predictions = world.predictions(
        models=["a\nb", "x" * 200, "\u202erev"], classes=["no\rno", "y" * 100]
    )
    text = shift(predictions).summary(80)
    assert all(len(line) <= 80 for line in text.split("\n"))
    assert "\r" not in text
    assert "\u202e" not in text


@pytest.mark.slow
def test_many_differences_are_cut() -> None:
    world = label_shifted(2, 60, np.full(15, 1 / 15), np.full(15, 1 / 15), 200)
    text = shift(world.predictions()).summary(80)
    assert "14 more rows: " in text
