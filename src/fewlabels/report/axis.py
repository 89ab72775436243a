"""Coordinates of plots: scales with round ends and ticks, panels, profiles of classifiers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)

Lines = Sequence[Sequence[tuple[float, float | None]]]


@dataclass(frozen=True)
class Axis:
    """A linear scale from `low` to `high`."""

    low: float
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, str]:
        """The two ends in words; a bound may cut the range short of a tick."""
        written = dict(zip(self.ticks, self.labels, strict=True))
        return written.get(self.low, f"{self.low:.3g}"), written.get(self.high, f"{self.high:.3g}")

    @property
    def marks(self) -> list[tuple[float, str]]:
        """Position and label of each tick."""
        return [*zip(map(self.at, self.ticks), self.labels, strict=True)]

    def at(self, value: float) -> float:
        """Position of the value, from 0 (left) to 1; values outside are put at the end."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def fit_axis(
    values: Iterable[float | None], bounds: tuple[float | None, float | None], ticks: int = 5
) -> Axis:
    """The smallest range with round ends that holds all values and stays within the bounds."""
    floor = -math.inf if bounds[0] is None else bounds[0]
    ceiling = math.inf if bounds[1] is None else bounds[1]
    defined = [v for v in values if v is not None]
    if defined:
        low, high = min(defined), max(defined)
        if high - low <= 1e-9 * max(abs(low), abs(high), 1e-300):
            # One value alone: some room on both sides, for a range of no width is no range.
            room = abs(low) / 10 or 0.1
            low, high = max(floor, low - room), min(ceiling, high + room)
    else:
        low = floor if math.isfinite(floor) else min(0.0, ceiling - 1)
        high = ceiling if math.isfinite(ceiling) else low + 1

    least = (high - low) / max(1, ticks - 1)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(s * power for s in _STEPS if s * power >= least * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    start, end = max(floor, first * step), min(ceiling, last * step)
    marks = []
    for k in range(first, last + 1):
        # Multiples of 0.05 are not quite what they are called; those at the ends become the ends.
        mark = next((e for e in (start, end) if abs(k * step - e) < 1e-9 * step), k * step)
        if start <= mark <= end:
            marks.append(mark)

    # As many decimals as tell neighbouring ticks apart: a step may be 2.5 times a power of ten; the
    # slack swallows rounding of the logarithm.
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    decimals += not math.isclose(round(step, decimals), step)
    labels = []
    for mark in marks:
        if step < 1e-4 or abs(mark) >= 1e5:
            digits = math.ceil(math.log10(max(abs(mark), step) / step)) + 2
            labels.append(f"{mark:.{max(3, digits)}g}")
        else:
            text = f"{mark:.{decimals}f}"
            labels.append(text.removeprefix("-") if float(text) == 0 else text)
    return Axis(start, end, tuple(marks), tuple(labels))


# A panel of a picture: two scales and a height, and what is drawn on them as paths of SVG. Across,
# positions are percent of the plot's width, so that a plot can be narrow while its text keeps its
# size; up and down they are pixels.


@dataclass(frozen=True)
class Panel:
    """A plot of `height` pixels, which paths write with so many `digits`."""

    x: Axis
    y: Axis
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
        defined = [self.at(x, y) for x, y in points if y is not None]
        drawn = (f"{across:.2f} {down:.{self.digits}f}" for across, down in defined)
        return "M" + "L".join(drawn) if len(defined) > 1 else ""

    def outline(self, ends: Iterable[tuple[float, float | None, float | None]]) -> str:
        """What is between low and high, from (x, low, high); "" where not two are known."""
        defined = [(x, low, high) for x, low, high in ends if low is not None and high is not None]
        below = [(x, low) for x, low, _ in reversed(defined)]
        drawn = self.path([*((x, high) for x, _, high in defined), *below])
        return drawn + "Z" if len(defined) > 1 else ""

    def level(self, y: float | None) -> Lines:
        """A line from edge to edge; none if unknown."""
        return [] if y is None else [[(self.x.low, y), (self.x.high, y)]]


class Strip(NamedTuple):
    """A column of the plot with its tooltip; positions in percent."""

    left: float
    width: float
    text: str


def strips(edges: Sequence[float], texts: Iterable[str]) -> tuple[Strip, ...]:
    """A strip from each edge to the next one."""
    ends = itertools.pairwise(edges)
    return tuple(
        Strip(left, right - left, text) for (left, right), text in zip(ends, texts, strict=True)
    )


BARS = 84
"""Pixels of a histogram of scores."""


class Bars(NamedTuple):
    """Histogram of all scores, and below it the labeled ones, on the scale of a view.

    Heights are square roots of counts: most scores are at one end, and on a linear scale the few in
    between, which matter, would be invisible. Ticks are in percent of the width.
    """

    outline: str
    positive: list[float]
    negative: list[float]
    n_positive: int
    n_negative: int
    height: int = BARS


@dataclass(frozen=True, kw_only=True)
class View(Panel):
    """A panel with what is drawn on it, in numbers, and as SVG paths, "" where there is none.

    `runs` are stretches of a line without a gap, points of (x, value, low, high); `dashed` are
    other lines (chance, or perfect calibration); `points` are to be seen, as (x, y, text); a
    `histogram` stands below.
    """

    title: str
    x_name: str
    y_name: str
    runs: Sequence[Sequence[tuple[float, float | None, float | None, float | None]]]
    strips: tuple[Strip, ...]
    description: str
    dashed: Lines = ()
    points: Sequence[tuple[float, float, str]] = ()
    histogram: Bars | None = None

    @property
    def band(self) -> str:
        """What is between the low and the high ends."""
        return "".join(self.outline((x, low, high) for x, _, low, high in run) for run in self.runs)

    @property
    def line(self) -> str:
        """The values."""
        return "".join(self.path((x, value) for x, value, *_ in run) for run in self.runs)

    @property
    def reference(self) -> str:
        """What is dashed."""
        return "".join(map(self.path, self.dashed))

    @property
    def marks(self) -> list[tuple[float, float, str]]:
        """The points, as (percent across, pixels down, text)."""
        return [(*self.at(x, y), text) for x, y, text in self.points]


# --- profiles of a classifier ---------------------------------------------------------------------


class Histogram(NamedTuple):
    """Scores of the items inferred to be of a class, over those of all other items.

    `own` and `other` are the outlines as SVG paths in a box of 100 x 100; empty without items.
    Heights are square roots of densities: most scores are near 0 and 1, and on a linear scale the
    few in between, which matter, would be invisible. The labeled items' scores, in percent of the
    width, are marked under the plot.
    """

    name: Any
    own: str
    other: str
    labeled_own: list[float]
    labeled_other: list[float]


class Profile(NamedTuple):
    """The plots of one classifier: histograms of its scores, and bins of the reliability diagram.

    Bins are those of the report; the area of a point of so much `radius` shows the share of items.
    """

    model: str
    n_items: int
    missing: int
    histograms: list[Histogram]
    kind: str
    bins: list[dict[str, Any]]

    @property
    def view(self) -> View:
        """The reliability diagram in numbers, where there is room for one line."""
        unit = fit_axis([0.0, 1.0], (0.0, 1.0))
        run = [(b["predicted"], b["observed"], b["low"], b["high"]) for b in self.bins]
        return View(
            x=unit, y=unit, height=100, title="", x_name=f"predicted {self.kind}",
            y_name="observed", runs=[run], strips=(), description="",
            dashed=[[(0.0, 0.0), (1.0, 1.0)]],
        )  # fmt: skip


def profile(source: Mapping[str, Any]) -> Profile:
    """The plots of one classifier, from its entry in the report."""
    reliability = source.get("reliability") or {}
    histograms = []
    for entry in source.get("distributions") or ():
        inside, other = ([d or 0.0 for d in entry[side]] for side in ("own", "other"))
        top = max([*inside, *other], default=0.0)
        labeled_inside, labeled_other = (
            sorted({round(100 * s, 1) for s in entry[side] if s is not None})
            for side in ("labeled_own", "labeled_other")
        )
        own, others = (_outline(entry["edges"], heights, top) for heights in (inside, other))
        histograms.append(Histogram(entry["class"], own, others, labeled_inside, labeled_other))
    bins = reliability.get("bins") or ()
    defined = [b for b in bins if b["predicted"] is not None and b["observed"] is not None]
    most = max((b["weight"] or 0.0 for b in defined), default=0.0) or 1.0
    drawn = [{**b, "radius": 2 + 4 * math.sqrt((b["weight"] or 0.0) / most)} for b in defined]
    kind = reliability.get("kind", "")
    return Profile(source["model"], source["n_items"], source["missing"], histograms, kind, drawn)


def reliability(model: str, kind: str, bins: Sequence[Mapping[str, Any]]) -> Profile:
    """The reliability diagram alone, of bins as an entry in the report has them."""
    about = {"model": model, "n_items": 0, "missing": 0}
    return profile(about | {"reliability": {"kind": kind, "bins": bins}})


def _outline(edges: Sequence[float], densities: Sequence[float], top: float) -> str:
    """Steps as an SVG path; "" without densities."""
    if not any(densities):
        return ""
    heights = (100 - 100 * math.sqrt(density / top) for density in densities)
    steps = (
        f"V{round(height, 2):g}H{round(100 * to, 2):g}"
        for height, to in zip(heights, edges[1:], strict=True)
    )
    return f"M{round(100 * edges[0], 2):g} 100{''.join(steps)}V100"
