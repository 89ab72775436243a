"""Coordinates of a classifier's plots: its scores by inferred class, and its reliability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Histogram(NamedTuple):
    """Scores of the items inferred to be of a class, over those of all other items.

    `own` and `other` are the outlines as SVG paths in a box of 100 x 100; empty without items.
    Heights are square roots of densities: most scores sit near 0 and 1, and on a linear scale
    the few in between, which decide, could not be seen. The labeled items' scores, in percent of
    the width, are marked under the plot.
    """

    name: Any
    own: str
    other: str
    labeled_own: list[float]
    labeled_other: list[float]


class Bin(NamedTuple):
    """A bin of the reliability diagram; coordinates in percent from the lower left corner."""

    left: float
    width: float
    low: float | None
    high: float | None
    predicted: float
    observed: float
    radius: float
    source: Mapping[str, float]


class Profile(NamedTuple):
    """What is drawn of one classifier."""

    model: str
    n_items: int
    missing: int
    histograms: list[Histogram]
    kind: str
    bins: list[Bin]


def profile(source: Mapping[str, Any]) -> Profile:
    """The plots of one classifier, from its entry in the report."""
    reliability = source.get("reliability") or {}
    histograms = []
    for entry in source.get("distributions") or ():
        own, other = ([d or 0.0 for d in entry[side]] for side in ("own", "other"))
        top = max([*own, *other], default=0.0)
        labeled_own, labeled_other = (
            sorted({round(100 * s, 1) for s in entry[side] if s is not None})
            for side in ("labeled_own", "labeled_other")
        )
        histograms.append(
            Histogram(
                entry["class"],
                _outline(entry["edges"], own, top),
                _outline(entry["edges"], other, top),
                labeled_own,
                labeled_other,
            )
        )
    bins = reliability.get("bins") or ()
    known = [b for b in bins if b["predicted"] is not None and b["observed"] is not None]
    most = max((b["weight"] or 0.0 for b in known), default=0.0) or 1.0
    drawn = [
        Bin(
            100 * b["from"],
            # A bin between equal quantiles has no width; a hair of it is drawn.
            max(100 * (b["to"] - b["from"]), 0.5),
            None if b["low"] is None else 100 * b["low"],
            None if b["high"] is None else 100 * b["high"],
            100 * b["predicted"],
            100 * b["observed"],
            # The area of the point shows the share of items.
            2.0 + 4.0 * math.sqrt((b["weight"] or 0.0) / most),
            b,
        )
        for b in known
    ]
    kind = reliability.get("kind", "")
    return Profile(source["model"], source["n_items"], source["missing"], histograms, kind, drawn)


def _outline(edges: Sequence[float], densities: Sequence[float], top: float) -> str:
    """Steps as an SVG path; "" where nothing is."""
    if not any(densities):
        return ""
    heights = (100 - 100 * math.sqrt(density / top) for density in densities)
    steps = (f"V{_short(h)}H{_short(100 * to)}" for h, to in zip(heights, edges[1:], strict=True))
    return f"M{_short(100 * edges[0])} 100{''.join(steps)}V100"


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
