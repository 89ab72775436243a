"""Comparisons as text and as a page: widths, hostile names, and parts that are missing."""

from __future__ import annotations

from typing import Any

import pytest
from every_report import estimates_of

from fewlabels.questions.compare import compared
from fewlabels.report import render_html, render_text
from fewlabels.report.comparison import (
    correlations,
    joint_errors,
    labels_cell,
    letters,
    pairs,
    render_comparison_html,
    settling_sentence,
    standing_sentence,
    standings,
    together_sentences,
)


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return compared(estimates_of(["large", "small", "tiny"])).to_dict()


def test_the_page_has_every_part(plain: dict[str, Any]) -> None:
    page = render_comparison_html(plain)
    for part in ("Which classifier is best?", "Differences", "Gaps between groups",
                 "All classifiers together", "Both wrong", "Correlation of errors"):  # fmt: skip
        assert part in page
    assert "undefined" not in page
    assert page.count("<main") == 1


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


def _found(labels: dict[str, Any], may: bool = True) -> dict[str, Any]:
    first = {"model": "one", "probability_best": 0.7, "may_be_best": True}
    second = {"model": "two", "probability_best": 0.3, "may_be_best": may}
    return {"metric": "f1", "standings": [first, second], "labels_needed": labels}


@pytest.mark.parametrize(
    ("labels", "sentence", "cell"),
    [
        ({"status": "settled", "more": 0, "low": 0, "high": 0}, "its lead is clear", "settled"),
        ({"status": "tied", "more": None, "low": None, "high": None}, "do not differ", "never"),
        ({"status": "unknown", "more": None, "low": None, "high": None}, "", "-"),
        (
            {"status": "open", "more": 30, "low": 10, "high": 20_000},
            "deciding between it and two likely needs about 30 more labels (10 to more than "
            "10,000)",
            "30",
        ),
        ({"status": "open", "more": 1, "low": 1, "high": 1}, "needs about 1 more label", "1"),
        (
            {"status": "open", "more": 500, "low": 10, "high": 900},
            "about 500 more labels (10 to 900), and only 100 items are without a label",
            "500",
        ),
        (
            {"status": "open", "more": 20_000, "low": 10, "high": 90_000},
            "deciding between it and two needs more than 10,000 more labels",
            ">10,000",
        ),
    ],
)
def test_what_would_settle_it(labels: dict[str, Any], sentence: str, cell: str) -> None:
    said = settling_sentence(_found(labels), 100)
    assert (sentence in said) if sentence else said == ""
    assert labels_cell(labels) == cell


def test_who_leads() -> None:
    labels = {"status": "open", "more": 1, "low": 1, "high": 1}
    assert standing_sentence(_found(labels)) == (
        "by f1, one leads (P(best) 70%), but two could still be the best"
    )
    surer = _found(labels)
    surer["standings"][1]["probability_best"] = 0.8
    assert standing_sentence(surer) == (
        "by f1, one has the best estimate (P(best) 70%), but two is more probably the best (80%)"
    )
    assert standing_sentence(_found(labels, may=False)) == (
        "by f1, one is ahead of all others (P(best) 70%)"
    )


def test_a_set_of_which_nothing_is_known_says_nothing() -> None:
    nothing = {"value": None, "low": None, "high": None}
    assert together_sentences({"all_wrong": nothing, "models": ["a", "b"]}) == []


def test_what_is_to_be_known_of_joint_rates_is_said(plain: dict[str, Any]) -> None:
    found = plain["together"][0]
    assert together_sentences(found | {"warnings": ["mind this"]}) == [
        *together_sentences(found), "mind this",
    ]  # fmt: skip
