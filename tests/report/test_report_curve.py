"""Curves and thresholds as text, pages and figures."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest
from curve_samples import CURVES, THRESHOLDS, World, curves, plain

from fewlabels.report.curves import HEIGHT, curve_view, curves_of, recalibration_view
from fewlabels.report.figure import render_svg
from fewlabels.report.html import render_page, render_text
from fewlabels.report.threshold import cut_text, ranges, ranges_text, threshold_view
from fewlabels.report.words import score_text

Report = dict[str, Any]


REPORTS: dict[str, tuple[str, Callable[[], Report]]] = {
    **{name: ("curves", lambda made=made: made()[0]) for name, made in CURVES.items()},
    **{name: ("threshold", made) for name, made in THRESHOLDS.items()},
}


def test_the_picture_has_the_curve_where_it_is() -> None:
    line: Report = {
        "recall": [0.005, 0.995], "precision": [1.0, 0.5], "low": [0.8, 0.2],
        "high": [1.0, 0.7], "threshold": [0.9, 0.1],
        "area": {"metric": "average_precision", "value": 0.75, "low": 0.6, "high": 0.8},
    }  # fmt: skip
    report = curves(World(n=50)) | {"curves": {"precision-recall": line}}
    rows = render_text("curves", report).split("\n")
    start = rows.index("precision") + 1
    cells = [row[7:].ljust(61) for row in rows[start : start + 11]]
    assert "".join(row[0] for row in cells) == "o::        "
    assert "".join(row[60] for row in cells) == "   ::o:::  "


def test_ranges_are_those_of_the_report() -> None:
    report = THRESHOLDS["met"]() | {
        "thresholds": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        "probability": [0.5, 0.2, 0.95, 0.9, 0.6, 0.1],
    }
    assert ranges(report, 0.5) == [(0.1, 0.1), (0.3, 0.5)]
    assert ranges_text(report, 0.5) == "0.100, 0.300 to 0.500"
    assert ranges_text(report, 0.9) == "0.300 to 0.400"
    assert ranges_text(report, 0.99) == "nowhere"
    assert ranges_text(report, 0.5, most=1) == "0.300 to 0.500 and 1 shorter range"


@pytest.mark.parametrize(
    ("thresholds", "cut", "text"),
    [
        ([0.1, 0.7343], 0.7343, "0.734"),
        ([0.7342, 0.7343], 0.7343, "0.7343"),
        ([0.7343], 0.7343, "0.734"),
        ([0.7340001, 0.7343], 0.7343, "0.7343"),
        ([0.9991, 0.99987], 0.99987, "0.9998"),
        ([1e-7, 2.34567e-7], 2.34567e-7, "2.34e-7"),
        ([-3.5, -2.129], -2.129, "-2.13"),
        ([-2.1295, -2.129], -2.129, "-2.129"),
        ([0.0], 0.0, "0.000"),
        ([12345.678], 12345.678, "12300"),
        ([1 / 3], 1 / 3, "0.333"),
    ],
)
def test_a_threshold_as_written_calls_the_same_items(
    thresholds: list[float], cut: float, text: str
) -> None:
    assert cut_text(thresholds, cut) == text
    below = [t for t in thresholds if t < cut]
    assert max(below, default=float("-inf")) < float(text) <= cut


@pytest.mark.parametrize(
    ("score", "probability", "text"),
    [
        (0.5, True, "0.500"),
        (0.99987, True, "0.999870"),
        (0.00021, True, "0.000210"),
        (0.0, True, "0.000"),
        (1.0, True, "1.000"),
        (1e-9, True, "1e-09"),
        (-17.812, False, "-17.81"),
        (123456.0, False, "1.235e+05"),
        (None, True, "none"),
    ],
)
def test_scores_keep_the_digits_that_tell_them_apart(
    score: float | None, probability: bool, text: str
) -> None:
    assert score_text(score, probability) == text


def test_every_place_of_a_curve_has_a_tooltip() -> None:
    source = render_page("curves", plain()[0])
    titles = re.findall(r'class="strip"[^>]*><title>([^<]*)</title>', source)
    assert len(titles) == 200
    assert re.fullmatch(r"recall 0\.5%: precision [\d.]+ \[[\d., ]+\], threshold [\d.]+", titles[0])


@pytest.mark.few(3)
@pytest.mark.parametrize("name", REPORTS)
def test_figures_are_files_of_their_own_and_the_same_each_time(name: str) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    kind, made = REPORTS[name]
    report = made()
    source = render_svg(kind, report)
    root = ElementTree.fromstring(source)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [element.text or "" for element in root.iter() if element.tag.endswith("}text")]
    assert any("probability" in text or "recall" in text or "rate" in text for text in texts)
    assert not [element for element in root.iter() if element.tag.endswith("}script")]
    assert render_svg(kind, report) == source


def pixels(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)]


@pytest.mark.parametrize("name", CURVES)
def test_curves_lie_within_their_band_and_the_plot(name: str) -> None:
    report, picture = CURVES[name]()
    views = [curve_view(curve, report) for curve in curves_of(report)]
    views.append(recalibration_view(report, picture))
    for view in views:
        for x, y in pixels(view.line) + pixels(view.band):
            assert 0 <= x <= 100
            assert 0 <= y <= HEIGHT
        line, band = pixels(view.line), pixels(view.band)
        high, low = band[: len(line)], band[len(line) :][::-1]
        for (_, middle), (_, above), (_, below) in zip(line, high, low, strict=True):
            assert above - 0.11 <= middle <= below + 0.11
        widths = [strip.width for strip in view.strips]
        assert sum(widths) == pytest.approx(100 if widths else 0)


def test_a_point_of_the_curve_stands_where_its_numbers_say() -> None:
    report = plain()[0]
    view = curve_view(curves_of(report)[0], report)
    line = report["curves"]["precision-recall"]
    assert pixels(view.line)[30] == pytest.approx(
        (100 * line["recall"][30], HEIGHT * (1 - line["precision"][30])), abs=0.06
    )
    chance = HEIGHT * (1 - report["prevalence"]["value"])
    assert pixels(view.reference) == [(0, pytest.approx(chance, abs=0.06)),
                                      (100, pytest.approx(chance, abs=0.06))]  # fmt: skip


def test_labeled_items_stand_below_their_bins() -> None:
    report, picture = plain()
    view = recalibration_view(report, picture)
    bars = view.histogram
    assert bars is not None
    counts = picture["histogram"]["positive"]
    edges = picture["histogram"]["edges"]
    bins = [k for k, count in enumerate(counts) for _ in range(count)]
    assert len(bars.positive) == len(bins) == bars.n_positive == 3
    for k, tick in zip(bins, bars.positive, strict=True):
        assert 100 * view.x.at(edges[k]) < tick < 100 * view.x.at(edges[k + 1])


def test_the_best_threshold_is_marked() -> None:
    report = THRESHOLDS["met"]()
    view = threshold_view(report)
    ((x, y, text),) = view.marks
    assert x == pytest.approx(100 * view.x.at(report["best"]))
    assert y == pytest.approx(HEIGHT * (1 - report["best_probability"]))
    assert text.startswith("best: ")
    assert (round(x, 2), round(y, 1)) in pixels(view.line)


def test_the_thresholds_of_no_interest_are_left_out() -> None:
    report = THRESHOLDS["met"]() | {
        "thresholds": [k / 1000 for k in range(1001)],
        "probability": [0.8 if 400 <= k <= 420 else 0.0 for k in range(1001)],
        "best": 0.41,
        "best_probability": 0.8,
    }
    axis = threshold_view(report).x
    assert 0.35 <= axis.low < 0.4
    assert 0.42 < axis.high <= 0.45


def test_many_thresholds_make_no_long_path() -> None:
    n = 20_000
    report = THRESHOLDS["met"]() | {
        "thresholds": [k / n for k in range(n)],
        "probability": [0.5] * n,
        "best": 7 / n,
        "best_probability": 0.5,
    }
    view = threshold_view(report)
    assert len(pixels(view.line)) <= 602
    assert len(view.strips) <= 120


def test_rates_at_other_thresholds_are_marked_where_the_best_is() -> None:
    """The page has them in a table, whose rows stand where the figures have them."""
    source = render_page("threshold", THRESHOLDS["met"]())
    places = re.findall(r'<tr data-x="([\d.]+%)">', source)
    best = re.search(r'<tr data-x="([\d.]+%)"><th[^>]*>[^\n]*class="chip best"', source)
    assert best is not None
    assert len(places) == 13
    section = source[source.index("If the threshold moves</h2>") :]
    lines = re.findall(r'<line class="drop" x1="([\d.]+%)"', section)
    assert lines == [best[1]] * 4
    assert len(re.findall('class="strip" x=', section)) == 13 * 4


def test_the_cost_has_a_scale_of_its_own() -> None:
    source = render_page("threshold", THRESHOLDS["sure"]())
    assert re.findall("<title>Scale from 0.* to ([\\d.]+)</title>", source) == ["3", "1.00"]
