"""A panel of a picture: two scales and a height, and what is drawn on them as paths of SVG.

Across, positions are percent of the plot's width, so that a plot can be narrow while its text keeps
its size; up and down they are pixels.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fewlabels.report.axis import Scale


@dataclass(frozen=True)
class Panel:
    """A plot of `height` pixels, which paths write with so many `digits`."""

    x: Scale
    y: Scale
    height: int
    digits: int = 1

    def down(self, y: float) -> float:
        """Pixels from the top."""
        return self.height * (1 - self.y.at(y))

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Percent across and pixels down."""
        return 100 * self.x.at(x), self.down(y)

    def path(self, points: Iterable[tuple[float, float | None]]) -> str:
        """A line through the points that are known; "" where there are not two."""
        known = [self.at(x, y) for x, y in points if y is not None]
        drawn = (f"{across:.2f} {down:.{self.digits}f}" for across, down in known)
        return "M" + "L".join(drawn) if len(known) > 1 else ""

    def outline(self, ends: Iterable[tuple[float, float | None, float | None]]) -> str:
        """What is between low and high, from (x, low, high); "" where not two are known."""
        known = [(x, low, high) for x, low, high in ends if low is not None and high is not None]
        below = [(x, low) for x, low, _ in reversed(known)]
        drawn = self.path([*((x, high) for x, _, high in known), *below])
        return drawn + "Z" if len(known) > 1 else ""

    def level(self, y: float | None, left: float = 0.0) -> str:
        """A line from so many percent to the right edge; "" where it is not known."""
        if y is None:
            return ""
        down = f"{self.down(y):.{self.digits}f}"
        return f"M{left:.2f} {down}L100.00 {down}"


class Strip(NamedTuple):
    """A column of the plot with what it says when it is pointed at; positions in percent."""

    left: float
    width: float
    text: str


def strips(edges: Sequence[float], texts: Iterable[str]) -> tuple[Strip, ...]:
    """A strip from each of the edges to the next one."""
    ends = itertools.pairwise(edges)
    return tuple(
        Strip(left, right - left, text) for (left, right), text in zip(ends, texts, strict=True)
    )
