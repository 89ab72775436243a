"""Panels of a benchmark's figures: where every line, marker and label stands."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewlabels.report import benchmark_words as bw
from fewlabels.report.axis import Axis, Scale, fit_axis
from fewlabels.report.panel import Panel
from fewlabels.report.words import count

LABEL_STEP = 15
"""Pixels from one direct label to the next, at least: their lines of text are 14 high."""

LABEL_COLUMNS = 20
"""Characters of a direct label; longer names lose their middle, and stay different."""

LEADER = 22
"""Pixels between the plot and the labels, for the lines that join them."""

_NUMBER = re.compile(r"\d+(\.\d+)?")
_LEAST_HEIGHT = 230
_MOST_MARKERS = 12
_TICK_GAP = 0.02  # Of the width, between the labels of two ticks.
_TICK_CHARACTER = 0.055  # Of the width, that a character takes in the plot of a phone.

_SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z",  # circle
    "M-3.6-3.6h7.2v7.2h-7.2Z",  # square
    "M0-4.8L4.6 3.4H-4.6Z",  # triangle
    "M0-5L5 0L0 5L-5 0Z",  # diamond
    "M0 4.8L4.6-3.4H-4.6Z",  # triangle on its tip
    "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3Z",  # cross
)
_STAR = "M0-5.5L1.4-1.8L5.2-1.7L2.2.7L3.2 4.4L0 2.3L-3.2 4.4L-2.2.7L-5.2-1.7L-1.4-1.8Z"
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 2")
_COLOURS = 6


@dataclass(frozen=True)
class Style:
    """How a method is drawn; colour, dashes and marker each tell methods apart."""

    colour: str
    dashes: str
    shape: str
    hollow: bool


def styles(summary: bw.Summary) -> dict[str, Style]:
    """One style per method, the same in every figure."""
    found: dict[str, Style] = {}
    place = 0
    for method in summary["methods"]:
        name = method["name"]
        if method["floor"]:
            found[name] = Style("floor", "1 4", "", False)
        elif name == summary["reference"]:
            found[name] = Style("reference", "", _STAR, False)
        else:
            # Methods of one colour differ in dashes, in shape and in being hollow.
            cycle = place // _COLOURS
            found[name] = Style(
                f"s{place % _COLOURS}",
                _DASHES[place % len(_DASHES)],
                _SHAPES[(place + 1 + 2 * cycle) % len(_SHAPES)],
                cycle % 2 == 1,
            )
            place += 1
    return found


@dataclass(frozen=True)
class Line:
    """A method in a panel. Points and outlines are in percent of the width and in pixels."""

    name: str
    full: str
    style: Style
    path: str
    band: str
    points: tuple[tuple[float, float, str], ...]
    end: tuple[float, float]
    label: float
    note: str

    @property
    def extension(self) -> str:
        """From the last point to the right edge of the plot, where it is not there; else ""."""
        x, y = self.end
        return "" if x > 99.5 else f"M{x:.2f} {y:.2f}L100.00 {y:.2f}"

    @property
    def leader(self) -> str:
        """From the right edge of the plot to the label."""
        return f"M0 {self.end[1]:.1f}L4 {self.end[1]:.1f}L{LEADER - 8} {self.label:.1f}"


@dataclass(frozen=True, kw_only=True)
class View(Panel):
    """A panel with its lines.

    `notes` says in words what stands behind the names, for screens that have no room there.
    """

    title: str
    x_name: str
    y_name: str
    lines: tuple[Line, ...]
    description: str
    notes: str


def views(figure: Mapping[str, Any], summary: bw.Summary) -> list[View]:
    """All panels of a figure, of one height."""
    drawn = styles(summary)
    most = max((len(p["series"]) + len(p["marks"]) for p in figure["panels"]), default=0)
    height = max(_LEAST_HEIGHT, (most + 1) * LABEL_STEP)
    return [_view(figure, panel, summary, drawn, height) for panel in figure["panels"]]


def _view(
    figure: Mapping[str, Any],
    source: Mapping[str, Any],
    summary: bw.Summary,
    drawn: Mapping[str, Style],
    height: int,
) -> View:
    unit = bw.error_unit(summary, source["metric"])
    levels = figure.get("levels")
    places = _places(levels)
    tops = [p["y"] + (p["se"] or 0.0) for s in source["series"] for p in s["points"]]
    y = Scale(fit_axis([0.0, *tops, *(m["y"] for m in source["marks"])], (0.0, None), ticks=6))
    panel = Panel(_x_scale(figure, source, places, levels), y, height, digits=2)
    entries = [_series(entry, panel, places, figure, unit) for entry in source["series"]]
    entries += [_mark(mark, panel, unit) for mark in source["marks"]]
    names = bw.labels([bw.method_name(e["method"]) for e in entries], LABEL_COLUMNS)
    labels = spread([e["end"][1] for e in entries], LABEL_STEP, 0.0, float(height))
    lines = tuple(
        Line(
            names[bw.method_name(e["method"])],
            bw.method_name(e["method"]),
            drawn[e["method"]],
            e["path"],
            e["band"],
            e["points"],
            e["end"],
            label,
            e["note"],
        )
        for e, label in zip(entries, labels, strict=True)
    )
    title = source["metric"]
    if source.get("level"):
        title += f", {bw.level_name(figure['factor'], source['level'])}"
    y_name = "mean absolute error" + (", points" if unit == "points" else "")
    return View(
        **vars(panel),
        title=title,
        x_name=bw.axis_name(figure["x"]),
        y_name=y_name,
        lines=lines,
        description=_described(entries, unit),
        notes=_noted(figure["kind"], lines),
    )


def _noted(kind: str, lines: Sequence[Line]) -> str:
    said = ", ".join(f"{line.full} {line.note}" for line in lines if line.note)
    what = "As many labels alone" if kind == "labeled-curve" else "Rank correlation"
    return f"{what}: {said}." if said else ""


def _series(
    entry: Mapping[str, Any],
    panel: Panel,
    places: Mapping[str, float],
    figure: Mapping[str, Any],
    unit: str,
) -> dict[str, Any]:
    """A line with a band of one standard error to both sides."""
    known = sorted((places.get(p["x"], p["x"]), p) for p in entry["points"])
    middle = [(at, p["y"]) for at, p in known]
    ends = [(at, p["y"] - (p["se"] or 0.0), p["y"] + (p["se"] or 0.0)) for at, p in known]
    points = [panel.at(*point) for point in middle]
    named = bw.axis_name(figure["x"])
    texts = [
        f"{bw.method_name(entry['method'])}, {named} {_plain(p['x'])}: "
        f"{bw.error_text(p['y'], unit)}"
        + (f" ± {bw.error_text(p['se'], unit)}" if p["se"] is not None else "")
        for _, p in known
    ]
    few = len(known) <= _MOST_MARKERS
    rho = entry.get("rank_correlation")
    return {
        "method": entry["method"],
        "path": panel.path(middle),
        "band": panel.outline(ends),
        "points": tuple((*p, t) for p, t in zip(points, texts, strict=True)) if few else (),
        "end": points[-1],
        "note": "" if rho is None else bw.correlation_text(rho),
        "range": (known[0][1]["y"], known[-1][1]["y"]),
    }


def _mark(mark: Mapping[str, Any], panel: Panel, unit: str) -> dict[str, Any]:
    """The level of a method, from where it meets the curve to the right edge."""
    at = panel.at(mark["x"], mark["y"])
    text = (
        f"{bw.method_name(mark['method'])}: error {bw.error_text(mark['y'], unit)}, that of "
        f"{mark['bound']}{count(mark['x'])} labels"
    )
    return {
        "method": mark["method"],
        "path": panel.level(mark["y"], at[0]),
        "band": "",
        "points": ((*at, text),),
        "end": (100.0, at[1]),
        "note": f"{mark['bound']}{count(mark['x'])}",
        "range": (mark["y"], mark["y"]),
    }


def _described(entries: Sequence[Mapping[str, Any]], unit: str) -> str:
    """The panel in words, for those who do not see it."""
    parts = []
    for entry in entries:
        first, last = (bw.error_text(v, unit) for v in entry["range"])
        moves = first if first == last else f"{first} to {last}"
        parts.append(f"{bw.method_name(entry['method'])} {moves}")
    return "From left to right: " + "; ".join(parts) + "."


def spread(wanted: Sequence[float], step: float, low: float, high: float) -> list[float]:
    """Positions as near as possible to those wanted, `step` apart, from `low` to `high`.

    Neighbours that are too close form a block around the mean of what they want, as in isotonic
    regression; in least squares nothing is better. With more of them than fit, they go on below.
    """
    order = sorted(range(len(wanted)), key=lambda k: (wanted[k], k))
    ceiling = max(low, high - step * (len(order) - 1))
    # With k steps taken off, positions only have to ascend.
    blocks: list[tuple[float, int]] = []
    for k, index in enumerate(order):
        total, size = wanted[index] - k * step, 1
        while blocks and blocks[-1][0] / blocks[-1][1] >= total / size:
            before = blocks.pop()
            total, size = total + before[0], size + before[1]
        blocks.append((total, size))
    level = [min(max(total / size, low), ceiling) for total, size in blocks for _ in range(size)]
    placed = [0.0] * len(wanted)
    for k, index in enumerate(order):
        placed[index] = level[k] + k * step
    return placed


def _places(levels: Sequence[str] | None) -> dict[str, float]:
    """Levels as numbers: themselves if they all are numbers, else one after the other."""
    if levels is None:
        return {}
    numbers = [float(level) for level in levels if _NUMBER.fullmatch(level)]
    return dict(zip(levels, numbers if len(numbers) == len(levels) else range(len(levels)),
                    strict=True))  # fmt: skip


def _x_scale(
    figure: Mapping[str, Any],
    source: Mapping[str, Any],
    places: Mapping[str, float],
    levels: Sequence[str] | None,
) -> Scale:
    if levels is not None:
        return _through(
            {places[level]: level for level in levels}, _NUMBER.fullmatch(levels[0]) is not None
        )
    values = {p["x"] for s in source["series"] for p in s["points"]}
    if figure["x"] != "n_labeled":
        return Scale(_thinned(fit_axis(values, (None, None), ticks=5)))
    if len(values) <= 6:
        return _through({float(v): count(v) for v in sorted(values)}, True)
    low, high = min(values), max(values)
    round_sizes = [m * 10**k for k in range(7) for m in (1, 2, 5)]
    return _through({float(v): count(v) for v in round_sizes if low <= v <= high}, True,
                    (float(low), float(high)))  # fmt: skip


def _through(
    ticks: Mapping[float, str], numeric: bool, ends: tuple[float, float] | None = None
) -> Scale:
    """A scale with these ticks: logarithmic where that spaces them more evenly."""
    at = sorted(ticks)
    low, high = ends or (at[0], at[-1])
    logarithmic = numeric and low > 0 and len(at) > 2 and _uneven(at) > _uneven(
        [math.log10(v) for v in at]
    )  # fmt: skip
    turn = math.log10 if logarithmic else float
    start, end = turn(low), turn(high)
    # A little room in front, or markers would stand on the numbers; labels follow the last ones.
    room = (end - start) * 0.04 or 1.0
    axis = Axis(
        start - room,
        end + (room if len(at) == 1 else 0.0),
        tuple(turn(v) for v in at),
        tuple(ticks[v] for v in at),
    )
    return Scale(_thinned(axis), logarithmic)


def _uneven(places: Sequence[float]) -> float:
    gaps = [b - a for a, b in itertools.pairwise(places)]
    return max(gaps) / min(gaps)


def _thinned(axis: Axis) -> Axis:
    """Without the ticks whose labels would run into the one before; the last one stays."""
    kept: list[int] = []
    for k in reversed(range(len(axis.ticks))):
        half = _TICK_CHARACTER * len(axis.labels[k]) / 2
        right = axis.at(axis.ticks[k]) + half
        if kept:
            after = kept[-1]
            left = axis.at(axis.ticks[after]) - _TICK_CHARACTER * len(axis.labels[after]) / 2
            if right + _TICK_GAP > left:
                continue
        kept.append(k)
    kept.reverse()
    return Axis(
        axis.low, axis.high, tuple(axis.ticks[k] for k in kept), tuple(axis.labels[k] for k in kept)
    )


def _plain(value: Any) -> str:
    if isinstance(value, int):
        return count(value)
    return f"{value:.3g}" if isinstance(value, float) else str(value)
