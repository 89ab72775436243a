"""Assessments of label histograms as text and as pages."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from annotations_samples import binary, grouped, many, one_label, plain
from annotations_samples import predictions as made
from test_report_html import Page

import fewlabels as fl
from fewlabels.report.annotations import (
    Assessed,
    render_annotations,
    render_annotations_html,
)
from fewlabels.report.provenance import made_by

Report = dict[str, Any]


def value(report: Report, model: str, metric: str, group: str | None = None) -> Report:
    """One row of the report."""
    wanted = (model, metric, group)
    return next(
        row for row in report["estimates"] if (row["model"], row["metric"], row["group"]) == wanted
    )


def said(text: str) -> str:
    return " ".join(text.split())


def test_the_answer_comes_before_the_tables() -> None:
    report = plain()
    text = render_annotations(report)
    best = value(report, "good", "EL")
    assert best["value"] < value(report, "poor", "EL")["value"]
    rates = report["diagnostics"]["disagreement"]["good"]
    assert re.search(
        r"good comes nearest to what annotators say\. The squared distance "
        rf".* {best['value']:.3f} .*"
        rf"Two annotators disagree on {100 * rates['observed']:.1f}% of the items; good predicts "
        rf"{100 * rates['predicted']:.1f}%\.",
        said(text.split("\ngood\n")[0]),
    )


def test_a_table_has_every_loss_with_its_interval() -> None:
    report = plain()
    table = render_annotations(report).split("\npoor\n")[1].split("\n\n")[0]
    shown = {line.split()[0]: line.split(maxsplit=1)[1] for line in table.split("\n")[1:]}
    for metric in ("accuracy", "L", "EL", "CL", "DL", "CE", "CE_disagreement", "L_unanimity_3"):
        row = value(report, "poor", metric)
        assert shown[metric] == f"{row['value']:.3f}  [{row['low']:.3f}, {row['high']:.3f}]"
    assert "EL_plugin" not in shown


def test_undefined_losses_have_words() -> None:
    text = render_annotations(one_label())
    assert re.search(r"EL +undefined", text)
    assert "from single labels is" in " ".join(text.split())
    assert "disagree on" not in text
    assert re.search(r"Warnings\n(.*\n)*- undefined: EL, DL and the losses", text)
    assert re.search(r"accuracy +\d\.\d+ +\[.*\] +few-labels", text)


def test_a_loss_below_zero_is_explained_once() -> None:
    report = copy.deepcopy(plain())
    assert ("Below 0" in render_annotations(report)) == Assessed(report).negative
    value(report, "good", "CL")["value"] = -0.01
    assert render_annotations(report).count("Below 0: a loss below 0") == 1
    assert "Below 0" in Page(render_annotations_html(report)).words
    for row in report["estimates"]:
        row["value"] = abs(row["value"] or 0.0)
    assert "Below 0" not in render_annotations(report)


@pytest.mark.parametrize(
    ("el", "cl", "dl", "words"),
    [
        (-0.03, 0.01, -0.04, "That cannot be told from 0: the labels show no distance."),
        (
            0.05,
            -0.01,
            0.06,
            "nothing that calibration could remove; all of it takes",
        ),
        (0.05, 0.06, -0.01, "Calibration could remove all of it (CL 0.060)."),
        (0.05, 0.02, 0.03, "could remove 0.020 of it (CL); the other 0.030 (DL) takes"),
    ],
)
def test_the_answer_makes_sense_of_signs(el: float, cl: float, dl: float, words: str) -> None:
    report = copy.deepcopy(plain())
    for metric, number in (("EL", el), ("CL", cl), ("DL", dl)):
        value(report, "good", metric)["value"] = number
    assert words in said(render_annotations(report))
    assert words in Page(render_annotations_html(report)).words


def test_groups_follow_and_many_classifiers_are_cut() -> None:
    text = render_annotations(grouped())
    assert len(re.findall(r"\n=+\n +EL +CL +DL +CE_disagreement\n", text)) == 6
    assert "... 2 more classifiers: the JSON and the HTML report have all" in render_annotations(
        many()
    )


def test_a_page_says_the_numbers_of_the_report() -> None:
    report = plain()
    words = Page(render_annotations_html(report)).words
    for model in report["models"]:
        for metric in ("EL", "CL", "CE_disagreement", "L_unanimity_3"):
            row = value(report, model, metric)
            assert f"{row['value']:.3f}[{row['low']:.3f}, {row['high']:.3f}]" in words.replace(
                " [", "["
            )
    assert "Whether 3 labels of an item are all the same" in words


def test_of_two_classes_one_is_drawn_and_of_many_the_worst() -> None:
    assert Page(render_annotations_html(binary())).count("figure", "map") == 1
    report = plain()
    assert Page(render_annotations_html(report)).count("figure", "map") == 6
    source = render_annotations_html(many())
    # 240 diagrams for 22 classifiers would be too long a page: those of 4 are drawn.
    assert Page(source).count("figure", "map") == 4 * 10
    assert "10 further classes" in source
    assert "Not drawn, for the page to stay short: 18 more classifiers." in source


def test_bars_show_the_losses_of_the_bins() -> None:
    report = binary()
    source = render_annotations_html(report)
    rows = [row for row in report["dispersion"] if row["class"] == "yes"]
    tallest = max(max(r["CL"], 0) + max(r["DL"], 0) for r in rows)
    heights = re.findall(r'<rect class="calibration"[^>]* height="([\d.]+)%"', source)
    assert len(heights) == len(rows)
    for row, height in zip(rows, heights, strict=True):
        assert float(height) == pytest.approx(100 * max(row["CL"], 0) / tallest, abs=0.01)


def test_without_labels_in_pairs_the_page_says_what_to_ask() -> None:
    words = Page(render_annotations_html(one_label())).words
    assert "Ask a second annotator about some items" in words
    assert "How far from the labels" in words


def test_an_assessment_shows_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    found = fl.annotations.assess(made(n=30), confidence_level=None)
    assert str(found) == found.summary() == render_annotations(found.to_dict())
    found.save_html(tmp_path / "page.html")
    with made_by():
        page = render_annotations_html(found.to_dict())
    assert (tmp_path / "page.html").read_text("utf-8") == page
    # The dictionary is JSON as it is, and the page needs nothing besides.
    report = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert render_annotations_html(report) == render_annotations_html(found.to_dict())


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
