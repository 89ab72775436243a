"""Comparisons as text and as a page: widths, hostile names, and parts that are missing."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from every_report import estimates_of
from report_samples import render_html
from report_samples import render_text as text_of_estimates

from fewlabels.questions.compare import compared
from fewlabels.report.comparison import document, heat_maps, letters, together_sentences
from fewlabels.report.document import Forest, Section
from fewlabels.report.html import render_text


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return compared(estimates_of(["large", "small", "tiny"])).to_dict()


def test_the_report_of_the_estimates_has_the_parts_and_does_without_them() -> None:
    report = estimates_of(["large", "small"]).report()
    assert "Which is best?" in render_html(report)
    assert "Which is best?" in text_of_estimates(report)
    bare = {k: v for k, v in report.items() if k not in ("comparison", "together")}
    assert "Which is best?" not in render_html(bare)
    assert "All classifiers together" not in text_of_estimates(bare)


def forests(report: dict[str, Any], title: str) -> list[Forest]:
    """The rankings, and the differences below them, of a section of the document."""
    section = next(p for p in document(report).body if isinstance(p, Section) and p.title == title)
    inner = next(p for p in section.body if isinstance(p, Section))
    return [p for p in (*section.body, *inner.body) if isinstance(p, Forest)]


def test_rankings_and_differences(plain: dict[str, Any]) -> None:
    found = plain["comparisons"][0]
    ranking, differences = forests(plain, found["metric"])
    assert [row.model for row in ranking.rows] == found["ranking"]
    assert len(differences.rows) == 3
    assert (differences.rows[0].model, differences.versus[0]) == tuple(found["ranking"][:2])
    assert set(dict(differences.extras)["significant"]) <= {"yes", "no"}
    assert differences.zero
    assert differences.axis.low <= 0 <= differences.axis.high


def test_maps_of_the_set_as_a_whole(plain: dict[str, Any]) -> None:
    chart, of_errors = heat_maps(plain["together"][0])
    assert chart.rows[0][1][0].heat is None
    assert "both wrong" in chart.rows[0][1][1].title
    assert of_errors.caption == "Correlation of errors"


def test_of_many_pairs_a_text_has_the_first() -> None:
    report = compared(estimates_of([f"m{j}" for j in range(14)])).to_dict()
    assert len(forests(report, "accuracy")[1].rows) == 91
    assert "71 of 91 rows are not shown" in render_text("comparison", report)


def test_those_that_the_labels_contradict_are_not_ranked(plain: dict[str, Any]) -> None:
    report = copy.deepcopy(plain)
    entry = report["comparisons"][0]
    entry["contradicted"] = [entry["ranking"][-1]]
    entry["standings"][-1] |= {"expected_rank": None, "expected_loss": None}
    ranking, _ = forests(report, entry["metric"])
    assert ranking.rows[-1].status == "contradicted"
    assert dict(ranking.extras)["P(best)"][-1] == "-"


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
