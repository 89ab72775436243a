"""Where lines, bands and ticks stand."""

from __future__ import annotations

import re

import pytest
from curve_samples import CURVES, THRESHOLDS, plain

from fewlabels.report.curve_plot import HEIGHT, curve_view, recalibration_view, threshold_view
from fewlabels.report.curves import ThresholdBlock, curve_blocks


def pixels(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)]


@pytest.mark.parametrize("name", CURVES)
def test_curves_lie_within_their_band_and_the_plot(name: str) -> None:
    report, picture = CURVES[name]()
    views = [curve_view(block, report) for block in curve_blocks(report)]
    views.append(recalibration_view(report, picture)[0])
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
    view = curve_view(curve_blocks(report)[0], report)
    line = report["curves"]["precision-recall"]
    assert pixels(view.line)[30] == pytest.approx(
        (100 * line["recall"][30], HEIGHT * (1 - line["precision"][30])), abs=0.06
    )
    chance = HEIGHT * (1 - report["prevalence"]["value"])
    assert pixels(view.reference) == [(0, pytest.approx(chance, abs=0.06)),
                                      (100, pytest.approx(chance, abs=0.06))]  # fmt: skip


def test_labeled_items_stand_below_their_bins() -> None:
    report, picture = plain()
    view, bars = recalibration_view(report, picture)
    counts = picture["histogram"]["positive"]
    edges = picture["histogram"]["edges"]
    bins = [k for k, count in enumerate(counts) for _ in range(count)]
    assert len(bars.positive) == len(bins) == bars.n_positive == 3
    for k, tick in zip(bins, bars.positive, strict=True):
        assert 100 * view.x.at(edges[k]) < tick < 100 * view.x.at(edges[k + 1])


def test_the_best_threshold_is_marked() -> None:
    report = THRESHOLDS["met"]()
    view = threshold_view(ThresholdBlock(report))
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
    axis = threshold_view(ThresholdBlock(report)).x.axis
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
    view = threshold_view(ThresholdBlock(report))
    assert len(pixels(view.line)) <= 602
    assert len(view.strips) <= 120
