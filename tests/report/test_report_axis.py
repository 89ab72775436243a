from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fewlabels.report.axis import fit_axis

VALUES = st.lists(st.none() | st.floats(-1e6, 1e6).map(lambda v: round(v, 4)), max_size=12)


@example([-376501.0, -377501.0], 3)
@given(VALUES, st.integers(2, 8))
def test_an_axis_holds_its_values(values: list[float | None], ticks: int) -> None:
    axis = fit_axis(values, (None, None), ticks)
    known = [v for v in values if v is not None]
    assert axis.low < axis.high
    slack = 1e-6 * (axis.high - axis.low)
    assert all(axis.low - slack <= v <= axis.high + slack for v in known)
    assert 2 <= len(axis.ticks) <= 2 * ticks
    assert all(a < b for a, b in pairwise(axis.ticks))
    assert all(0 <= axis.at(tick) <= 1 for tick in axis.ticks)
    assert len(set(axis.labels)) == len(axis.ticks)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_an_axis_stays_within_the_bounds(values: list[float]) -> None:
    axis = fit_axis(values, (0.0, 1.0))
    assert 0 <= axis.low < axis.high <= 1


@pytest.mark.parametrize(
    ("values", "bounds", "labels"),
    [
        ([0.87, 0.97], (0.0, 1.0), ("0.850", "0.875", "0.900", "0.925", "0.950", "0.975")),
        ([0.1, 0.93], (0.0, 1.0), ("0.00", "0.25", "0.50", "0.75", "1.00")),
        ([0.3, 4.1], (0.0, None), ("0", "1", "2", "3", "4", "5")),
        ([], (0.0, None), ("0.00", "0.25", "0.50", "0.75", "1.00")),
        ([None], (None, 0.0), ("-1.00", "-0.75", "-0.50", "-0.25", "0.00")),
        ([1.0], (0.0, 1.0), ("0.900", "0.925", "0.950", "0.975", "1.000")),
    ],
)
def test_ticks_are_round(
    values: list[float | None], bounds: tuple[float | None, float | None], labels: tuple[str, ...]
) -> None:
    assert fit_axis(values, bounds).labels == labels


def test_the_ends_are_named_where_a_bound_cuts_the_range() -> None:
    axis = fit_axis([0.04, 0.9], (0.03, 0.97))
    assert (axis.low, axis.high) == (0.03, 0.97)
    assert axis.ends == ("0.03", "0.97")


def test_what_lies_outside_sits_at_the_end() -> None:
    axis = fit_axis([0.0, 1.0], (0.0, 1.0))
    assert (axis.at(-3.0), axis.at(0.25), axis.at(7.0)) == (0.0, 0.25, 1.0)
