"""Annotations, calibration, curves and thresholds: pages that a phone can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from annotations_samples import ASSESSMENTS, CALIBRATIONS
from curve_samples import CURVES, THRESHOLDS

from fewlabels.report.annotations import render_annotations_html
from fewlabels.report.calibration import render_calibration_html
from fewlabels.report.curve_html import render_curves_html, render_threshold_html

if TYPE_CHECKING:
    from conftest import Measure, Measured

PHONE, DESKTOP = 390, 1200
TITLED = {
    "How well do the classifiers predict what annotators say?": (
        ASSESSMENTS,
        render_annotations_html,
    ),
    "What does the calibration change?": (CALIBRATIONS, render_calibration_html),
    "How good is the ranking?": (CURVES, lambda made: render_curves_html(*made)),
    "Where to put the threshold?": (THRESHOLDS, render_threshold_html),
}
PAGES = [f"{title}/{name}" for title, (samples, _) in TITLED.items() for name in samples]


@pytest.fixture(scope="module")
def measured(measure: Measure) -> Measured:
    pages = {
        f"{title}/{name}": html(made())
        for title, (samples, html) in TITLED.items()
        for name, made in samples.items()
    }
    return measure(pages, (PHONE, DESKTOP))


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_a_page_is_read_without_scrolling_sideways(
    measured: Measured, name: str, width: int
) -> None:
    """Tables scroll within themselves, text is large enough, and nothing is fetched or run."""
    found = measured[name][str(width)]
    assert found["scroll"] <= found["inner"] == width
    assert found["smallest"] >= 12
    assert (found["active"], found["scripted"], found["fetched"]) == (0, False, [])


@pytest.mark.parametrize("name", PAGES)
def test_the_title_is_the_question(measured: Measured, name: str) -> None:
    assert measured[name][str(PHONE)]["title"] == f"{name.split('/')[0]} A fewlabels report"
