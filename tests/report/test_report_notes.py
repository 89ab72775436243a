"""Warnings by weight, with what to do about each kind."""

from __future__ import annotations

from page import Page
from report_samples import render_html, render_text, two_classes

from fewlabels.errors import gravest_first
from fewlabels.report.document import Document
from fewlabels.report.html import ADVICE, weighed

SAID = [
    "a note",
    "undefined: roc_auc: no label",
    "few-labels: only 3 labeled items in group a",
    "unrelated: no classifier agrees with the labels",
    "reversed: by the labels, worse than chance: m",
    "few-labels: only 2 labeled items in group b",
]


def test_kinds_are_in_order_of_weight_and_say_what_to_do() -> None:
    found = weighed(SAID)
    assert [note.kind for note in found] == ["reversed", "unrelated", "few-labels", "undefined", ""]
    assert found[2].texts == ["only 3 labeled items in group a", "only 2 labeled items in group b"]
    assert [bool(note.advice) for note in found] == [False, False, True, True, False]


def test_a_page_lists_all_of_the_gravest_kind_first() -> None:
    words = Page(render_html(two_classes() | {"warnings": SAID[2:3] + SAID[:2] + SAID[5:]})).words
    places = [
        words.index(part)
        for part in (
            "only 3 labeled items in group a", "only 2 labeled items in group b",
            "What to do: label more of these items", "Please note undefined", "a note",
        )
    ]  # fmt: skip
    assert places == sorted(places)


def test_what_is_said_with_its_status_is_not_said_again() -> None:
    report = {"warnings": ["few-labels: no labeled item of class 5", "no labeled item of class 5"]}
    assert Document("", report, {}).noted == ["few-labels: no labeled item of class 5"]


def test_advice_names_options_that_there_are() -> None:
    text = " ".join(ADVICE.values())
    for said in ("`fewlabels label-next`", "--method", "--metrics"):
        assert said in text


def test_a_text_has_the_three_weightiest_with_what_to_do_once() -> None:
    lines = render_text(two_classes() | {"warnings": gravest_first(SAID)}, 200).split("\n")
    assert lines[1] == f"! {SAID[4]}"
    start = lines.index("Warnings")
    assert [line[2:12] for line in lines[start + 1 : start + 4]] == [
        "unrelated:", "few-labels", "few-labels",
    ]  # fmt: skip
    assert "What to do: label more of these items" in lines[start + 2]
    assert "What to do" not in lines[start + 1] + lines[start + 3]
    assert lines[start + 4 :] == ["- and 2 more: the JSON and the HTML report have all"]
