"""Parts of reports within another page, and results in a dozen lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from report_samples import SAMPLES, Report, two_classes

import fewlabels as fl
from fewlabels.report import render_html
from fewlabels.report.html import render_fragment, scoped, summary_fragment
from fewlabels.report.text import brief_estimates


class Tags(HTMLParser):
    """Names of all tags, and what their attributes ask for."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href")]


def everything() -> dict[str, Any]:
    """A result of every kind."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=120)
    p = 1 / (1 + np.exp(-(2 * truth - 1)[:, None] * [1.5, 0.8] - rng.normal(size=(120, 2))))
    labels = np.where(np.arange(120) < 40, truth, -1)
    predictions = fl.Predictions(
        p, labels, models=["<b>good</b>", "poor"], classes=["no", "yes"],
        reading=["labels: column 'gold' (40 of 120 rows)"],
    )  # fmt: skip
    histogram = np.eye(2)[truth] + np.eye(2)[rng.integers(2, size=120)]
    annotated = fl.Predictions(p, histogram=histogram, models=predictions.models)
    one: dict[str, Any] = {"model": "poor", "method": "bayesian-calibration"}
    return {
        "predictions": predictions,
        "estimates": fl.estimate(predictions, method="labeled"),
        "curve": fl.curve(predictions, **one),
        "curves": fl.curves(predictions, **one),
        "threshold": fl.threshold(predictions, min_precision=0.6, min_recall=0.4, **one),
        "next": fl.label_next(predictions, model="poor", size=3),
        "shift": fl.shift(predictions, method="labeled"),
        "assessment": fl.annotations.assess(annotated, confidence_level=None),
        "diagnosis": fl.diagnose(pa.table({"label": [0, 1], "p__a__1": [0.1, 0.9]})),
    }


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return everything()


NAMES = ["predictions", "estimates", "curve", "curves", "threshold", "next", "shift", "assessment",
         "diagnosis"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_repr_is_a_dozen_lines(results: dict[str, Any], name: str) -> None:
    text = repr(results[name])
    lines = text.split("\n")
    assert lines[0].startswith(f"{type(results[name]).__name__}: ")
    assert 1 < len(lines) <= 12
    assert max(map(len, lines)) <= 100
    assert "array(" not in text
    assert str(results[name]) == results[name].summary()


@pytest.mark.parametrize("name", NAMES)
def test_a_fragment_is_whole_and_keeps_to_itself(results: dict[str, Any], name: str) -> None:
    page = results[name]._repr_html_()
    tags = Tags(page)
    assert page.startswith('<div class="fewlabels">')
    assert page.endswith("</div>")
    assert not {"script", "link", "img", "iframe", "html", "body", "head", "b>"} & set(tags.names)
    assert tags.addresses == []
    assert "<b>good" not in page
    style = page[page.index("<style>") + 7 : page.index("</style>")]
    assert "rem" not in re.sub(r"@media[^{]*", "", style).replace("remove", "")
    for selector in re.findall(r"^([^@{}\n][^{}\n]*)\{", style, re.MULTILINE):
        assert all("div.fewlabels" in part for part in re.split(r",(?![^()]*\))", selector))


def test_the_fragment_says_what_the_report_says(results: dict[str, Any]) -> None:
    fragment, page = results["estimates"]._repr_html_(), render_html(results["estimates"].report())
    assert "120 items, 40 labeled, 2 classifiers, 2 classes; positive: yes" in fragment
    for said in (
        "labels: column &#39;gold&#39; (40 of 120 rows)",
        "At a glance",
    ):
        assert said in fragment
        assert said in page
    assert 'href="#method"' in page


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_fragments_of_every_report(sample: Callable[[], Report]) -> None:
    assert len(brief_estimates("Estimates", sample()).split("\n")) <= 12
    assert "<script" not in render_fragment("estimates", sample())


def test_the_deciding_warning_is_at_the_top_and_said_once() -> None:
    report = two_classes() | {"warnings": ["few-labels: only 3", "a note"]}
    page = render_html(report)
    assert page.count("only 3</p>") == 1
    assert page.index('class="answer"') < page.index("only 3</p>") < page.index("<main")
    assert page.index("only 3</p>") < page.index("<b>What to do:</b>")
    assert "Please note</h2>" in page
    head = brief_estimates("Estimates", report).split("\n")
    assert head[1] == "! few-labels: only 3"


def test_summaries_are_escaped() -> None:
    assert "&lt;i&gt;" in summary_fragment("<i>")


def test_a_style_sheet_within_an_element() -> None:
    css = (
        "/* a comment { */ :root { --ink: black; }\nbody, p { margin: 1rem; }\n"
        "@media screen and (prefers-color-scheme: dark) { :root { --ink: white; } }\n"
        "@media print { p { color: red; } }"
    )
    rules = scoped(css)
    assert "div.fewlabels, div.fewlabels p { margin: 14px; }" in rules
    assert "red" not in rules
    assert 'body[data-jp-theme-light="false"] div.fewlabels, ' in rules
    dark = rules[rules.index("vscode-dark") :].split("\n")[0]
    light = rules[rules.index("vscode-light") :].split("\n")[0]
    assert ("white" in dark, "black" in light) == (True, True)
