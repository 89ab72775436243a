"""The benchmark of two versions in turns: works run, failures are said, pages keep each other."""

from __future__ import annotations

from pathlib import Path

import pytest

import evaluator_speed as recipe
from evaluator_speed import Case
from runs import fill

SRC = Path(__file__).resolve().parents[2] / "src"
TREES = {"before": SRC, "after": SRC}


@pytest.mark.parametrize(
    "work",
    [
        recipe.Work(Case(2, 60, labels=20), ("accuracy",)),
        recipe.Work(Case(2, 60, classes=3, groups=2, labels=20), ("accuracy",), "labeled"),
        recipe.Work(Case(2, 60, labels=20), ("accuracy",), "labeled", "file"),
        recipe.Work(Case(2, 60, classes=4, labels=20), None, "labeled", "votes"),
    ],
    ids=str,
)
def test_a_work_of_every_kind(work, tmp_path):
    if work.source == "file":
        recipe.make(work.case, recipe._file(work.case, tmp_path))
    found = recipe.child(work, tmp_path)
    assert found["mb"] > 10
    assert found["seconds"] > 0
    assert 0 <= found["low"] <= found["value"] <= found["high"] <= 1


def test_a_run_that_takes_too_long_is_said(tmp_path):
    runner = recipe.Runner(tmp_path, limit=0.01)
    record = runner.alternating("small", recipe.WORKS["small"], TREES, 2)
    assert record["before"] == record["after"] == {"failed": "not done after 0 s"}
    (row,) = recipe.table([record]).splitlines()[2:]
    assert row.count("not done after 0 s") == 2
    assert row.count("|") == recipe.table([]).splitlines()[0].count("|")


def test_an_exponent_is_that_of_the_power():
    seconds = [2.0 * n**1.5 for n in (10, 100, 1_000)]
    assert recipe.slope([10, 100, 1_000], seconds) == pytest.approx(1.5)


def test_sections_of_the_page_keep_each_other(tmp_path):
    page = tmp_path / "speed.md"
    page.write_text(recipe.PAGE.read_text("utf-8"), "utf-8")
    for mark in (recipe.MARK, "speed", recipe.MARK):
        fill(page, {mark: f"made for {mark}"})
    text = page.read_text("utf-8")
    assert "made for speed" in text
    assert f"made for {recipe.MARK}" in text
    assert "More rows than memory" in text
