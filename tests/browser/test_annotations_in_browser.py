from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from annotations_samples import ASSESSMENTS, CALIBRATIONS

from fewlabels.report.annotations import render_annotations_html
from fewlabels.report.calibration import render_calibration_html

if TYPE_CHECKING:
    from conftest import Measure, Measured

PHONE, DESKTOP = 390, 1200
TITLES = dict.fromkeys(
    ASSESSMENTS, "How well do the classifiers predict what annotators say? A fewlabels report"
) | dict.fromkeys(CALIBRATIONS, "What does the calibration change? A fewlabels report")


@pytest.fixture(scope="module")
def measured(measure: Measure) -> Measured:
    pages = {name: render_annotations_html(made()) for name, made in ASSESSMENTS.items()}
    pages |= {name: render_calibration_html(made()) for name, made in CALIBRATIONS.items()}
    return measure(pages, (PHONE, DESKTOP))


@pytest.mark.parametrize("name", TITLES)
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_a_page_is_read_without_scrolling_sideways(
    measured: Measured, name: str, width: int
) -> None:
    found = measured[name][str(width)]
    assert found["scroll"] <= found["inner"] == width
    assert found["smallest"] >= 12


@pytest.mark.parametrize("name", TITLES)
def test_nothing_runs_and_nothing_is_fetched(measured: Measured, name: str) -> None:
    found = measured[name][str(PHONE)]
    assert found["title"] == TITLES[name]
    assert (found["active"], found["scripted"], found["fetched"]) == (0, False, [])
