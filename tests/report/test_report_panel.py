"""What is drawn on a panel: percent across, pixels down, and nothing where too little is known."""

from __future__ import annotations

from fewlabels.report.axis import Axis, Panel, Strip, strips

UNIT = Axis(0.0, 1.0, (), ())
PANEL = Panel(UNIT, UNIT, 200)


def test_a_path_goes_through_what_is_known() -> None:
    assert PANEL.at(0.25, 0.75) == (25.0, 50.0)
    assert PANEL.path([(0.0, 0.0), (0.5, None), (1.0, 1.0)]) == "M0.00 200.0L100.00 0.0"
    assert PANEL.path([(0.0, 0.0), (0.5, None)]) == ""


def test_an_outline_goes_along_the_upper_ends_and_back_along_the_lower() -> None:
    ends = [(0.0, 0.25, 0.5), (0.5, None, 0.5), (1.0, 0.5, 1.0)]
    assert PANEL.outline(ends) == "M0.00 100.0L100.00 0.0L100.00 100.0L0.00 150.0Z"
    assert PANEL.outline(ends[:2]) == ""


def test_a_level_reaches_from_edge_to_edge() -> None:
    (line,) = PANEL.level(0.5)
    assert PANEL.path(line) == "M0.00 100.0L100.00 100.0"
    assert not PANEL.level(None)


def test_strips_are_between_edges() -> None:
    assert strips([0.0, 40.0, 100.0], ["a", "b"]) == (Strip(0, 40, "a"), Strip(40, 60, "b"))
    assert strips([100.0], []) == ()
