"""Comparisons as text and as a page: widths, hostile names, and parts that are missing."""

from __future__ import annotations

from typing import Any

import pytest
from every_report import estimates_of

from fewlabels.questions.compare import compared
from fewlabels.report.comparison import (
    correlations,
    joint_errors,
    letters,
    pairs,
    standings,
    together_sentences,
)


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return compared(estimates_of(["large", "small", "tiny"])).to_dict()


def test_the_report_of_the_estimates_has_the_parts_and_does_without_them() -> None:
    report = estimates_of(["large", "small"]).report()
    assert "Which is best?" in render_html(report)
    assert "Which is best?" in render_text(report)
    bare = {k: v for k, v in report.items() if k not in ("comparison", "together")}
    assert "Which is best?" not in render_html(bare)
    assert "All classifiers together" not in render_text(bare)


def test_tables(plain: dict[str, Any]) -> None:
    found = plain["comparisons"][0]
    ranking, differences = standings(found), pairs(found)
    assert [row[0] for row in ranking.rows] == found["ranking"]
    assert len(differences.rows) == 3
    assert differences.rows[0][:2] == tuple(found["ranking"][:2])
    assert {row[4] for row in differences.rows} <= {"yes", "no"}
    chart = joint_errors(plain["together"][0])
    assert chart is not None
    assert chart.rows[0][1][0].heat is None
    assert "both wrong" in chart.rows[0][1][1].title
    assert correlations(plain["together"][0]) is not None


def test_of_many_pairs_neighbours_and_those_of_the_first_are_shown() -> None:
    found = compared(estimates_of([f"m{j}" for j in range(14)])).to_dict()["comparisons"][0]
    grid = pairs(found)
    assert len(grid.rows) == 13 + 12
    assert "all 91" in grid.note


def test_letters() -> None:
    assert letters({"alike": [["x", "y"], ["y", "z"], ["w"]]}) == {
        "x": "a", "y": "ab", "z": "b", "w": "c",
    }  # fmt: skip


def test_a_set_of_which_nothing_is_known_says_nothing() -> None:
    nothing = {"value": None, "low": None, "high": None}
    assert together_sentences({"all_wrong": nothing, "models": ["a", "b"]}) == []


def test_what_is_to_be_known_of_joint_rates_is_said(plain: dict[str, Any]) -> None:
    found = plain["together"][0]
    assert together_sentences(found | {"warnings": ["mind this"]}) == [
        *together_sentences(found), "mind this",
    ]  # fmt: skip
