"""Parts of reports within another page, and results in a dozen lines."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from report_samples import SAMPLES, Report, render_html, render_text, two_classes

import fewlabels as fl
from fewlabels.report.html import render_fragment
from fewlabels.report.shown import brief


@pytest.mark.few(4)
@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_fragments_of_every_report(sample: Callable[[], Report]) -> None:
    text = brief("Estimates", lambda width: render_text(sample(), width, brief=True))
    assert len(text.split("\n")) <= 12
    assert "<script" not in render_fragment("estimates", sample())


def test_the_deciding_warning_is_at_the_top_and_said_once() -> None:
    report = two_classes() | {"warnings": ["few-labels: only 3", "a note"]}
    page = render_html(report)
    assert page.count("only 3</p>") == 1
    assert page.index('class="answer"') < page.index("only 3</p>") < page.index("<main")
    assert page.index("only 3</p>") < page.index("<b>What to do:</b>")
    assert "Please note</h2>" in page
    assert render_text(report).split("\n")[1].startswith("! few-labels: only 3. What to do: ")


def test_what_was_read_is_escaped() -> None:
    items = fl.Predictions(np.full((3, 1, 2), 0.5), models=["<i>"])
    assert "&lt;i&gt;" in items._repr_html_()
    assert "<i>" not in items._repr_html_()


def test_styles_hold_within_the_element() -> None:
    style = re.findall(r"<style>(.*?)</style>", render_fragment("estimates", two_classes()), re.S)
    assert style[0].strip().startswith("div.fewlabels.fewlabels.fewlabels {")
    assert style[0].strip().endswith("}")
    assert style[0].count("{") == style[0].count("}")
    assert not re.search(r"\drem\b", style[0])  # the page around has its own
    assert 'body[data-jp-theme-light="false"] &' in style[0]
