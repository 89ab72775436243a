from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from benchmark_samples import SAMPLES

from fewlabels.report.benchmark import render

if TYPE_CHECKING:
    from conftest import Measure, Measured

PHONE, DESKTOP = 390, 1200
PAGES = ("binary", "sharpened", "subsets", "hostile", "nothing")


@pytest.fixture(scope="module")
def measured(measure: Measure) -> Measured:
    return measure({n: render(SAMPLES[n]())["report.html"] for n in PAGES}, (PHONE, DESKTOP))


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_a_benchmark_is_read_without_scrolling_the_page(
    measured: Measured, name: str, width: int
) -> None:
    """Tables scroll within themselves, text is large enough, and nothing is fetched or run."""
    found = measured[name][str(width)]
    assert found["scroll"] <= found["inner"] == width
    assert found["smallest"] >= 12
    assert (found["active"], found["scripted"], found["fetched"]) == (0, False, [])


def test_tables_wider_than_the_screen_say_so(measured: Measured) -> None:
    """A shadow at the edge, and a fade and a hint that live on the timeline of scrolling.

    Such a timeline is inactive where nothing scrolls; it starts with a picture, which a test that
    reads the page at once does not wait for.
    """
    tables = [t for name in PAGES for t in measured[name][str(PHONE)]["tables"]]
    assert {t["scrolls"] for t in tables} == {True, False}
    for table in tables:
        assert table["first"] == "sticky"
        assert table["shadow"] == "local, scroll"
        # Browsers without such timelines have the shadow alone.
        assert table["fades"] in (None, "scroll(self inline)", "scroll(inline self)")
        assert table["hint"] in (None, "scroll(inline)", "scroll(nearest inline)")
