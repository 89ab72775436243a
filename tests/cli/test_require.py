"""`--require`."""

from __future__ import annotations

import math

import pytest

from fewlabels.cli.require import parse_requirement, with_required
from fewlabels.errors import Status, UsageError
from fewlabels.estimates import Estimate


def row(value: float, low: float = 0.0, high: float = 1.0) -> Estimate:
    return Estimate("m", "accuracy", None, value, low, high, 0.95, Status.OK)


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("accuracy>=0.5", True),
        ("accuracy>0.5", False),
        ("accuracy<=0.5", True),
        ("accuracy<.5", False),
        ("low:accuracy>=0.5", False),
        ("low:accuracy>=0.4", True),
        (" high : accuracy < 6e-1 ", False),
        ("high:accuracy<=0.6", True),
        ("accuracy>-1", True),
    ],
)
def test_comparisons(text: str, met: bool) -> None:
    assert parse_requirement(text).met_by(row(0.5, 0.4, 0.6)) is met


@pytest.mark.parametrize("compare", [">=", ">", "<=", "<"])
def test_nan_never_passes(compare: str) -> None:
    assert not parse_requirement(f"accuracy{compare}0").met_by(row(math.nan, math.nan, math.nan))


@pytest.mark.parametrize(
    "text",
    [
        *("", "accuracy", ">=0.9", "accuracy>=", "accuracy=>0.9", "accuracy==0.9", "accuracy>=1%"),
        *("mid:accuracy>=0.9", "accuracy>=inf", "accuracy>=nan", "a>=1,b>=2", "0.9<=accuracy<=1"),
    ],
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"`--require` must be .* in quotes .*; got "):
        parse_requirement(text)


def test_required_metrics_come_last_and_once() -> None:
    conditions = [parse_requirement(t) for t in ("ece<1", "brier<1", "low:brier<1")]
    assert with_required(["accuracy", "ece"], conditions) == ["accuracy", "ece", "brier"]
