"""Contrast of the page's colours, by the formula of the Web Content Accessibility Guidelines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fewlabels.report

STYLE = (Path(fewlabels.report.__file__).parent / "templates" / "page.css").read_text()
PAIRS = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", STYLE)
LIGHT = {name: light for name, light, _ in PAIRS}
DARK = {name: dark for name, _, dark in PAIRS}

TEXT = [
    ("ink", "ground"),
    ("ink", "card"),
    ("ink", "note"),
    ("ink", "chip"),
    ("soft", "ground"),
    ("soft", "card"),
    ("own", "ground"),
    ("own", "card"),
    ("own", "note"),
    ("card", "ink"),  # what is said of a value that is pointed at
]
GRAPHICS = [
    ("own", "card"),
    ("other", "card"),
    ("share", "card"),
    ("soft", "card"),
    ("note-edge", "note"),
]


def _luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(a: str, b: str) -> float:
    darker, lighter = sorted([_luminance(a), _luminance(b)])
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("front", "back"), TEXT)
def test_text_can_be_read(colours: dict[str, str], front: str, back: str) -> None:
    assert _contrast(colours[front], colours[back]) >= 4.5


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("front", "back"), GRAPHICS)
def test_plots_can_be_seen(colours: dict[str, str], front: str, back: str) -> None:
    assert _contrast(colours[front], colours[back]) >= 3


def test_no_colour_is_of_one_scheme() -> None:
    declared = re.findall(r"--([\w-]+): ([^;]*(?:#|rgb)[^;]*);", STYLE)
    assert declared
    assert not [name for name, value in declared if not value.startswith("light-dark(")]


def test_columns_of_the_plots_are_in_rem() -> None:
    """Rows of different text size must have the same columns, or bars leave their scale."""
    columns = re.findall(r"\.row \{[^}]*grid-template-columns: ([^;]*);", STYLE)
    assert columns
    assert not [c for c in columns if re.search(r"\d(em|ch)\b", c)]
