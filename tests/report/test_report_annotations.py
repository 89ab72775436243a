"""Assessments of label histograms as text and as pages."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from annotations_samples import binary, many, plain
from annotations_samples import predictions as made
from page import Page

import fewlabels as fl
from fewlabels.report.html import render_page, render_text, stated_origin

Report = dict[str, Any]


def value(report: Report, model: str, metric: str, group: str | None = None) -> Report:
    """One row of the report."""
    wanted = (model, metric, group)
    return next(
        row for row in report["estimates"] if (row["model"], row["metric"], row["group"]) == wanted
    )


def text(report: Report) -> str:
    """The assessment as text."""
    return render_text("annotations", report)


def page(report: Report) -> str:
    """The assessment as a page."""
    return render_page("annotations", report)


def test_a_loss_below_zero_is_explained_once() -> None:
    report = copy.deepcopy(plain())
    value(report, "good", "CL")["value"] = -0.01
    assert text(report).count("A loss below 0") == 1
    assert Page(page(report)).words.count("A loss below 0") == 1
    for row in report["estimates"]:
        row["value"] = abs(row["value"] or 0.0)
    assert "below 0" not in text(report)


def test_of_two_classes_one_is_drawn_and_of_many_the_worst() -> None:
    assert Page(page(binary())).count("figure", "map") == 1
    report = plain()
    assert Page(page(report)).count("figure", "map") == 6
    source = page(many())
    # 240 diagrams for 22 classifiers would be too long a page: those of 4 are drawn.
    assert Page(source).count("figure", "map") == 4 * 10
    assert "10 further classes" in source
    assert "Not drawn, for the page to stay short: 18 more classifiers." in source


def test_bars_show_the_losses_of_the_bins() -> None:
    report = binary()
    source = page(report)
    rows = [row for row in report["dispersion"] if row["class"] == "yes"]
    tallest = max(max(r["CL"], 0) + max(r["DL"], 0) for r in rows)
    heights = re.findall(r'<rect class="calibration"[^>]* height="([\d.]+)%"', source)
    assert len(heights) == len(rows)
    for row, height in zip(rows, heights, strict=True):
        assert float(height) == pytest.approx(100 * max(row["CL"], 0) / tallest, abs=0.01)


def test_an_assessment_shows_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    found = fl.annotations.assess(made(n=30), confidence_level=None)
    assert str(found) == found.summary() == text(found.to_dict())
    found.save_html(tmp_path / "page.html")
    with stated_origin():
        source = page(found.to_dict())
    assert (tmp_path / "page.html").read_text("utf-8") == source
    # The dictionary is JSON as it is, and the page needs nothing besides.
    report = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert page(report) == page(found.to_dict())


def test_rates_of_disagreement_are_means_over_the_items() -> None:
    items = made()
    found = fl.annotations.assess(items, confidence_level=None)
    observed = fl.annotations.DISAGREEMENT.observed(items.histogram)
    twice = observed == observed
    rates = found.diagnostics["disagreement"]["good"]
    expected = 1 - (items.probabilities[:, 0] ** 2).sum(axis=1)
    assert rates["observed"] == pytest.approx(observed[twice].mean())
    assert rates["predicted"] == pytest.approx(expected[twice].mean())
    assert rates["n_items"] == twice.sum()
