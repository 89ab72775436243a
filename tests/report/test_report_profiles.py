from __future__ import annotations

from typing import Any

import pytest

from fewlabels.report.axis import profile


def _source(**changes: Any) -> dict[str, Any]:
    entry = {
        "class": "spam",
        "edges": [0.0, 0.5, 1.0],
        "own": [0.0, 4.0],
        "other": [1.0, 0.0],
        "labeled_own": [0.9, 0.9, None],
        "labeled_other": [0.123456],
    }
    bins = [
        {"from": 0.0, "to": 0.5, "weight": 0.8, "predicted": 0.3, "observed": 0.4,
         "low": 0.2, "high": 0.6},
        {"from": 0.5, "to": 0.5, "weight": 0.2, "predicted": 0.5, "observed": 0.5,
         "low": None, "high": None},
        {"from": 0.5, "to": 1.0, "weight": 0.0, "predicted": None, "observed": None,
         "low": None, "high": None},
    ]  # fmt: skip
    return {
        "model": "m",
        "n_items": 10,
        "missing": 2,
        "distributions": [entry | changes],
        "reliability": {"kind": "P(spam)", "bins": bins},
    }


def test_heights_are_square_roots_on_a_common_scale() -> None:
    plot = profile(_source()).histograms[0]
    assert plot.own == "M0 100V100H50V0H100V100"
    assert plot.other == "M0 100V50H50V100H100V100"


def test_marks_of_labeled_items_are_percentages() -> None:
    plot = profile(_source()).histograms[0]
    assert plot.labeled_own == [90.0]
    assert plot.labeled_other == [12.3]


def test_densities_that_are_not_known_draw_nothing() -> None:
    plot = profile(_source(own=[None, None], other=[0.0, 0.0])).histograms[0]
    assert (plot.own, plot.other) == ("", "")


def test_bins_without_items_are_left_out() -> None:
    first, second = profile(_source()).bins
    assert (first["from"], first["to"], first["radius"]) == pytest.approx((0, 0.5, 6))
    assert (second["from"], second["low"], second["radius"]) == (0.5, None, pytest.approx(4))


def test_a_classifier_of_hard_predictions_has_no_plots() -> None:
    found = profile({"model": "m", "n_items": 10, "missing": 0})
    assert (found.histograms, found.bins) == ([], [])
