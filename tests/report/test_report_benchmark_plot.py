from __future__ import annotations

import itertools
import math

import pytest
from benchmark_samples import SAMPLES, binary, many_methods, sharpened
from hypothesis import given
from hypothesis import strategies as st

from fewlabels.report.benchmark_plot import (
    LABEL_COLUMNS,
    LABEL_STEP,
    Style,
    View,
    spread,
    styles,
    views,
)
from fewlabels.report.words import cell_width

samples = pytest.mark.parametrize("name", SAMPLES)
NARROWEST_PLOT = 110  # Pixels: a phone of 360.
CHARACTER = 7  # Pixels of a character of 12, by the widest of the usual fonts.


def all_views(name: str) -> list[View]:
    summary = SAMPLES[name]()
    return [view for figure in summary["figures"] for view in views(figure, summary)]


@samples
def test_direct_labels_do_not_overlap(name: str) -> None:
    for view in all_views(name):
        boxes = sorted((line.label - 7, line.label + 7) for line in view.lines)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(boxes))
        assert boxes[0][0] >= -8
        assert boxes[-1][1] <= view.height + 8
        assert len({line.name for line in view.lines}) == len(view.lines)
        assert all(cell_width(line.name) <= LABEL_COLUMNS for line in view.lines)


@samples
def test_ticks_do_not_overlap_on_a_phone(name: str) -> None:
    for view in all_views(name):
        boxes = [
            (NARROWEST_PLOT * at - CHARACTER * len(text) / 2,
             NARROWEST_PLOT * at + CHARACTER * len(text) / 2)
            for at, text in view.x.ticks
        ]  # fmt: skip
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(boxes)), view.x.ticks
        assert view.x.ticks


@samples
def test_everything_stands_inside_the_plot(name: str) -> None:
    for view in all_views(name):
        for line in view.lines:
            assert line.points or line.path
            for x, y, text in line.points:
                assert 0 <= x <= 100
                assert 0 <= y <= view.height
                assert line.full in text


@samples
def test_the_scale_begins_at_no_error(name: str) -> None:
    assert all(view.y.axis.low == 0 for view in all_views(name))


def test_number_of_labels_is_logarithmic_where_that_spaces_it_evenly() -> None:
    assert all(v.x.logarithmic for v in all_views("binary"))
    assert all(v.x.logarithmic for v in views(sharpened()["figures"][0], sharpened()))
    assert not any(v.x.logarithmic for v in all_views("drawn_and_expected"))


def test_sizes_that_are_measured_are_the_ticks() -> None:
    summary = binary()
    (view, *_) = views(summary["figures"][0], summary)
    assert [text for _, text in view.x.ticks] == ["20", "50", "100"]


def test_each_method_looks_the_same_everywhere_and_unlike_the_others_in_grey() -> None:
    summary = binary()
    found = styles(summary)
    grey = {(s.dashes, s.shape, s.hollow) for s in found.values()}
    assert len(grey) == len(found) == 13
    for view in all_views("binary"):
        for line in view.lines:
            method = "all-labels-known" if line.full == "all labels known" else line.full
            assert line.style == found[method]


def test_thirty_methods_have_thirty_styles() -> None:
    found = list(styles(many_methods()).values())
    assert len(found) == 32
    assert len({(s.colour, s.dashes, s.shape, s.hollow) for s in found}) == 32
    same = [
        (a, b)
        for a, b in itertools.combinations(found, 2)
        if a.colour == b.colour and (a.shape, a.hollow) == (b.shape, b.hollow)
    ]
    assert all(a.dashes != b.dashes for a, b in same)
    assert isinstance(found[0], Style)


@given(st.lists(st.floats(0, 300), max_size=25), st.sampled_from([300.0, 100.0]))
def test_spread_labels_keep_their_order_and_distance(wanted: list[float], high: float) -> None:
    placed = spread(wanted, LABEL_STEP, 0.0, high)
    assert len(placed) == len(wanted)
    order = sorted(range(len(wanted)), key=lambda k: (wanted[k], k))
    for a, b in itertools.pairwise(order):
        assert placed[b] - placed[a] >= LABEL_STEP - 1e-6
    assert all(p >= -1e-9 for p in placed)
    if wanted and LABEL_STEP * (len(wanted) - 1) <= high:
        assert max(placed) <= high + 1e-6


def test_labels_with_room_stay_where_they_want_to_be() -> None:
    assert spread([10.0, 100.0, 50.0], 15, 0, 200) == [10.0, 100.0, 50.0]


def test_a_crowd_is_centred_on_what_it_wants() -> None:
    assert spread([50.0, 50.0, 50.0], 10, 0, 200) == [40.0, 50.0, 60.0]
    assert spread([0.0, 0.0], 10, 0, 200) == [0.0, 10.0]
    assert spread([200.0, 200.0], 10, 0, 200) == [190.0, 200.0]


def test_marks_stand_where_the_error_meets_the_curve() -> None:
    summary = binary()
    figure = next(f for f in summary["figures"] if f["kind"] == "labeled-curve")
    view = views(figure, summary)[0]
    panel = figure["panels"][0]
    drawn = {line.full: line for line in view.lines}
    for mark in panel["marks"]:
        if mark["floor"]:
            continue
        x, y, text = drawn[mark["method"]].points[0]
        assert x == pytest.approx(100 * view.x.axis.at(math.log10(mark["x"])))
        assert y == pytest.approx(view.height * (1 - view.y.at(mark["y"])))
        assert f"{mark['x']:,} labels" in text
