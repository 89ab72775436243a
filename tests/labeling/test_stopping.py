"""When to stop: which interval counts for what, and how far it is."""

from __future__ import annotations

import math

import pytest

import fewlabels as fl
from fewlabels.labeling.stopping import Row, parse_stops

METRICS, MODELS = ("accuracy", "ece", "error_rate"), ("good", "poor")


def row(model: str, low: float, high: float, guard: tuple[float, float] | None = None) -> Row:
    return Row(model, "accuracy", (low + high) / 2, low, high, "ok", guard)


def test_a_bound_counts_by_the_guard_alone() -> None:
    (stop,) = parse_stops(["low:accuracy>=0.8"], METRICS, MODELS)
    rows = [row("good", 0.85, 0.95, (0.7, 0.99)), row("poor", 0.85, 0.95, (0.81, 0.97))]
    verdict = stop.verdict(rows, 50)
    assert not verdict.met
    assert verdict.labels == pytest.approx(50 * 3, abs=1)  # (.9 - .7) / (.9 - .8) = 2
    assert verdict.why == (
        "go on until the interval that stays valid at every look for accuracy of every classifier "
        "is above 0.8, which it is not yet of good"
    )
    rows = [row("good", 0.2, 0.95, (0.82, 0.99)), rows[1]]
    met = stop.verdict(rows, 50)
    assert met.met
    assert met.why == (
        "accuracy of every classifier is above 0.8 by the interval that stays valid at every look "
        "(0.810 to 0.990)"
    )
    assert not stop.verdict([row("good", 0.9, 0.95)], 50).met  # no guard, no stop


def test_a_width_counts_by_the_posterior() -> None:
    (stop,) = parse_stops(["width:accuracy<=0.1"], METRICS, MODELS)
    verdict = stop.verdict([row("good", 0.8, 0.88), row("poor", 0.5, 0.7)], 50)
    assert (verdict.met, verdict.labels) == (False, 150)
    verdict = stop.verdict([row("good", 0.8, 0.88), row("poor", 0.5, 0.59)], 50)
    assert verdict.met
    assert "0.090 wide" in verdict.why


def test_one_classifier_may_be_named() -> None:
    (stop,) = parse_stops(["low:good:accuracy>=0.8"], METRICS, MODELS)
    rows = [row("good", 0.9, 0.95, (0.85, 0.96)), row("poor", 0.3, 0.4, (0.2, 0.5))]
    assert stop.verdict(rows, 50).why.startswith("accuracy of good is above 0.8")


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        ([], None),
        ([row("good", 0.6, 0.7, (0.5, 0.8))], None),  # the value is on the wrong side
        ([row("good", math.nan, math.nan, (math.nan, math.nan))], None),
    ],
)
def test_what_no_number_of_labels_is_known_to_mend(rows: list[Row], labels: int | None) -> None:
    (stop,) = parse_stops(["low:accuracy>=0.8"], METRICS, MODELS)
    verdict = stop.verdict(rows, 50)
    assert (verdict.met, verdict.labels) == (False, labels)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("accuracy>=0.8", "labeling may stop when an interval is above"),
        ("low:accuracy<=0.8", "labeling may stop when"),
        ("width:accuracy>=0.1", "labeling may stop when"),
        ("what", "labeling may stop when"),
        ("low:f1>=0.8", "unknown metric 'f1'.*--metrics"),
        ("low:god:accuracy>=0.8", "unknown model 'god'; did you mean 'good'"),
        ("low:ece>=0.1", "of accuracy, .* alone; 'width:ece<=0.1' can be asked"),
        ("width:ece<=0", "a width must be above 0"),
        ("low:accuracy>=80", "for 80% write 0.8"),
    ],
)
def test_what_is_no_condition_to_stop_by(text: str, message: str) -> None:
    with pytest.raises(fl.UsageError, match=message) as caught:
        parse_stops([text], METRICS, MODELS)
    assert repr(text) in str(caught.value)
