"""Coordinates of a classifier's plots: its scores by inferred class, and its reliability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Histogram:
    """Scores of the items inferred to be of a class, over those of all other items.

    `own` and `other` are the outlines as SVG paths in a box of 100 x 100; empty without items.
    Heights are square roots of densities: most scores sit near 0 and 1, and on a linear scale
    the few in between, which decide, could not be seen. The labeled items' scores, in percent of
    the width, are marked under the plot.
    """

    name: Any
    own: str
    other: str
    labeled_own: tuple[float, ...]
    labeled_other: tuple[float, ...]


@dataclass(frozen=True)
class Bin:
    """A bin of the reliability diagram; coordinates in percent from the lower left corner."""

    left: float
    width: float
    low: float | None
    high: float | None
    predicted: float
    observed: float
    radius: float
    source: Mapping[str, float]


@dataclass(frozen=True)
class Profile:
    """What is drawn of one classifier."""

    model: str
    n_items: int
    missing: int
    histograms: tuple[Histogram, ...]
    kind: str
    bins: tuple[Bin, ...]


def profile(source: Mapping[str, Any]) -> Profile:
    """The plots of one classifier, from its entry in the report."""
    reliability = source.get("reliability") or {}
    return Profile(
        source["model"],
        source["n_items"],
        source["missing"],
        tuple(_histogram(entry) for entry in source.get("distributions") or ()),
        reliability.get("kind", ""),
        tuple(_bins(reliability.get("bins") or ())),
    )


def _histogram(entry: Mapping[str, Any]) -> Histogram:
    own, other = ([d or 0.0 for d in entry[side]] for side in ("own", "other"))
    top = max([*own, *other], default=0.0)
    return Histogram(
        entry["class"],
        _outline(entry["edges"], own, top),
        _outline(entry["edges"], other, top),
        _marks(entry["labeled_own"]),
        _marks(entry["labeled_other"]),
    )


def _outline(edges: Sequence[float], densities: Sequence[float], top: float) -> str:
    if not any(densities):
        return ""
    path = [f"M{_short(100 * edges[0])} 100"]
    for right, density in zip(edges[1:], densities, strict=True):
        path.append(f"V{_short(100 - 100 * math.sqrt(density / top))}H{_short(100 * right)}")
    return "".join(path) + "V100"


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _marks(scores: Sequence[float | None]) -> tuple[float, ...]:
    return tuple(sorted({round(100 * s, 1) for s in scores if s is not None}))


def _bins(bins: Sequence[Mapping[str, Any]]) -> list[Bin]:
    known = [b for b in bins if b["predicted"] is not None and b["observed"] is not None]
    top = max((b["weight"] or 0.0 for b in known), default=0.0) or 1.0
    return [
        Bin(
            100 * b["from"],
            # A bin between equal quantiles has no width; a hair of it is drawn.
            max(100 * (b["to"] - b["from"]), 0.5),
            None if b["low"] is None else 100 * b["low"],
            None if b["high"] is None else 100 * b["high"],
            100 * b["predicted"],
            100 * b["observed"],
            # The area of the point shows the share of items.
            2.0 + 4.0 * math.sqrt((b["weight"] or 0.0) / top),
            b,
        )
        for b in known
    ]
