from __future__ import annotations

import re

import numpy as np
from report_samples import minimal, two_classes

import fewlabels as fl
from fewlabels.report import render_text
from fewlabels.report.words import styled, without_style


def test_metrics_lie_beside_each_other_where_there_is_room() -> None:
    report = minimal()
    narrow, wide = (render_text(report, width).split("\n") for width in (60, 120))
    assert not any(line.startswith("accuracy") and "  ece" in line for line in narrow)
    assert any(line.startswith("accuracy") and "  ece" in line for line in wide)
    assert len(wide) < len(narrow)
    # Nothing is lost: every number of the narrow one is in the wide one.
    numbers = [set(re.findall(r"\d\.\d{3}", "\n".join(lines))) for lines in (narrow, wide)]
    assert numbers[0] == numbers[1]


def test_colour_only_where_it_is_asked_for() -> None:
    report = two_classes() | {"warnings": ["assumption: one"]}
    report["estimates"][0]["status"] = "few-labels"
    plain = render_text(report, 120)
    assert "\x1b" not in plain
    with styled():
        coloured = render_text(report, 120)
    assert without_style(coloured) == plain
    assert "\x1b[33m! assumption: one\x1b[0m" in coloured
    assert "\x1b[33mfew-labels" in coloured


def test_groups_come_after_all_items_under_a_heading_each() -> None:
    report = two_classes()
    report["estimates"].reverse()
    lines = render_text(report).split("\n")
    headings = [lines[k - 1] for k, line in enumerate(lines) if line and not line.strip("=")]
    assert headings == ["sex=null", "sex=male", "sex=female"]
    first = next(k for k, line in enumerate(lines) if line.startswith("log_loss"))
    assert first < lines.index("sex=null")


def test_without_intervals() -> None:
    """Estimates without a confidence level are printed without brackets."""
    rng = np.random.default_rng(0)
    truth = rng.random(300) < 0.5
    p = 1 / (1 + np.exp(-rng.normal(2 * truth - 1, 1)))
    labels = np.where(np.arange(300) < 60, truth, -1)
    given = fl.Predictions(np.c_[p, p**2], labels)
    found = fl.estimate(given, metrics="accuracy", confidence_level=None)
    assert "no intervals" in found.summary()
    assert "interval]" not in found.summary()
    assert "None" not in found._repr_html_()
