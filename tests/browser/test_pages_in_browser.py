"""Benchmarks, annotations, calibration, curves and thresholds: pages that a phone can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from annotations_samples import ASSESSMENTS, CALIBRATIONS
from benchmark_samples import SAMPLES
from curve_samples import CURVES, THRESHOLDS

from fewlabels.report.annotations import render_annotations_html
from fewlabels.report.benchmark import render
from fewlabels.report.calibration import render_calibration_html
from fewlabels.report.curve_html import render_curves_html, render_threshold_html

if TYPE_CHECKING:
    from conftest import Measure, Measured

PHONE, DESKTOP = 390, 1200
BENCHMARKS = [f"benchmark {n}" for n in ("binary", "sharpened", "subsets", "hostile", "nothing")]
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
    pages |= {name: render(SAMPLES[name.split()[1]]())["report.html"] for name in BENCHMARKS}
    return measure(pages, (PHONE, DESKTOP))


@pytest.mark.parametrize("name", [*PAGES, *BENCHMARKS])
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


def test_tables_wider_than_the_screen_say_so(measured: Measured) -> None:
    """A shadow at the edge, and a fade and a hint that live on the timeline of scrolling.

    Such a timeline is inactive where nothing scrolls; it starts with a picture, which a test that
    reads the page at once does not wait for.
    """
    tables = [t for name in BENCHMARKS for t in measured[name][str(PHONE)]["tables"]]
    assert {t["scrolls"] for t in tables} == {True, False}
    for table in tables:
        assert table["first"] == "sticky"
        assert table["shadow"] == "local, scroll"
        # Browsers without such timelines have the shadow alone.
        assert table["fades"] in (None, "scroll(self inline)", "scroll(inline self)")
        assert table["hint"] in (None, "scroll(inline)", "scroll(nearest inline)")
