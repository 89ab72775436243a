"""Panels of curves and thresholds: where every line, band, marker and tooltip stands.

Across, positions are percent of the plot's width, so that a plot can be narrow while its text
keeps its size; up and down they are pixels.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewlabels.report.axis import Axis, fit_axis
from fewlabels.report.benchmark_plot import Scale
from fewlabels.report.blocks import Report
from fewlabels.report.curves import (
    CurveBlock,
    Interval,
    Point,
    ThresholdBlock,
    interval,
)
from fewlabels.report.words import clean, percent, probability, score_text

HEIGHT = 300
"""Pixels of a plot."""

BARS = 84
"""Pixels of a histogram of scores."""

_MOST_STRIPS = 120  # Tooltips of a panel; more could not be told apart with a mouse.
_MOST_TICKS = 12  # Labeled items in a bin that are drawn one by one.
_UNIT = Scale(Axis(0.0, 1.0, (0, 0.25, 0.5, 0.75, 1.0), ("0", "0.25", "0.5", "0.75", "1")))

_Pixel = tuple[float, float]


@dataclass(frozen=True)
class Strip:
    """A column of the plot with what it says when it is pointed at; positions in percent."""

    left: float
    width: float
    text: str


@dataclass(frozen=True)
class View:
    """A panel. Outlines are SVG paths, "" where there is nothing to draw.

    `reference` is a dashed line (chance, or perfect calibration); `marks` are points to be seen,
    as (percent across, pixels down, text).
    """

    title: str
    x_name: str
    y_name: str
    x: Scale
    y: Scale
    band: str
    line: str
    reference: str
    strips: tuple[Strip, ...]
    description: str
    marks: tuple[tuple[float, float, str], ...] = ()
    height: int = HEIGHT


@dataclass(frozen=True)
class Bars:
    """Scores of all items, and below them those of the labeled ones, on the scale of a view.

    Heights are square roots of counts: most scores sit at one end, and on a linear scale the few
    in between, which decide, could not be seen. Ticks are in percent of the width.
    """

    outline: str
    positive: tuple[float, ...]
    negative: tuple[float, ...]
    n_positive: int
    n_negative: int
    height: int = BARS


def curve_view(block: CurveBlock, report: Report) -> View:
    """A curve with its band; chance is the prevalence, or the diagonal of a ROC plot."""
    kind, points = block.kind, block.points
    scored = report["unit"] == "probability"
    places = [point.x for point in points]
    if kind.name == "roc":
        chance = _path([_pixel(_UNIT, 0.0, 0.0), _pixel(_UNIT, 1.0, 1.0)])
    else:
        chance = _level(interval(report.get("prevalence")).value)
    read_off = "; ".join(_said(block, point, scored) for point in block.read_off)
    return View(
        title=kind.title,
        x_name=kind.x_name,
        y_name=kind.y_name,
        x=_UNIT,
        y=_UNIT,
        band=_band(_UNIT, [(point.x, point.y) for point in points]),
        line=_line(_UNIT, [(point.x, point.y) for point in points]),
        reference=chance,
        strips=_strips(_UNIT, places, [_said(block, point, scored) for point in points]),
        description=f"{kind.y_name.capitalize()} (up) against {kind.x_name} (right), {read_off}.",
    )


def _said(block: CurveBlock, point: Point, scored: bool) -> str:
    text = f"{block.kind.x_name} {percent(point.x)}: {block.kind.y_name} {point.y.text}"
    if point.threshold is None:
        return text
    return f"{text}, threshold {score_text(point.threshold, scored)}"


def recalibration_view(report: Report, picture: Mapping[str, Any]) -> tuple[View, Bars]:
    """P(positive | score) with its band, and the histogram of scores on the same scale."""
    scored = report["unit"] == "probability"
    edges = picture["histogram"]["edges"]
    x = Scale(fit_axis(edges, (0.0, 1.0) if scored else (None, None)))
    source = picture["recalibration"]
    parts = (source[key] for key in ("probability", "low", "high"))
    known = sorted(
        ((s, Interval(*numbers)) for s, *numbers in zip(source["score"], *parts, strict=True)
         if s is not None),
        key=lambda pair: pair[0],
    )  # fmt: skip
    texts = [f"score {score_text(s, scored)}: probability {number.text}" for s, number in known]
    told = f": from {texts[0]} to {texts[-1]}." if texts else "; it is not known."
    view = View(
        title="From score to probability",
        x_name=_score_name(report),
        y_name="probability",
        x=x,
        y=_UNIT,
        band=_band(x, known),
        line=_line(x, known),
        reference=_path([_pixel(x, 0.0, 0.0), _pixel(x, 1.0, 1.0)]) if scored else "",
        strips=_strips(x, [s for s, _ in known], texts),
        description=f"Probability of {clean(report['positive'])} (up) against score (right){told}",
    )
    return view, _bars(picture["histogram"], x)


def _score_name(report: Report) -> str:
    name = clean(report["positive"])
    return f"score: P({name})" if report["unit"] == "probability" else "score"


def _bars(histogram: Mapping[str, Any], x: Scale) -> Bars:
    edges: Sequence[float] = histogram["edges"]
    sides = [
        [int(k or 0) for k in histogram[side]] for side in ("unlabeled", "negative", "positive")
    ]
    totals = [sum(counts) for counts in zip(*sides, strict=True)]
    top = max(totals, default=0)
    outline = ""
    if top:
        steps = "".join(
            f"V{BARS * (1 - (count / top) ** 0.5):.1f}H{100 * x.at(right):.2f}"
            for right, count in zip(edges[1:], totals, strict=True)
        )
        outline = f"M{100 * x.at(edges[0]):.2f} {BARS}{steps}V{BARS}Z"
    return Bars(
        outline,
        _ticks(edges, sides[2], x),
        _ticks(edges, sides[1], x),
        sum(sides[2]),
        sum(sides[1]),
    )


def _ticks(edges: Sequence[float], counts: Sequence[int], x: Scale) -> tuple[float, ...]:
    """Labeled items spread over their bins: of a bin the report says how many it holds."""
    return tuple(
        100 * x.at(left + (k + 0.5) / min(count, _MOST_TICKS) * (right - left))
        for (left, right), count in zip(itertools.pairwise(edges), counts, strict=True)
        for k in range(min(count, _MOST_TICKS))
    )


def threshold_view(block: ThresholdBlock) -> View:
    """The probability that the conditions hold at each threshold, with the best one marked."""
    report = block.report
    scored = report["unit"] == "probability"
    best, at_best = report["best"], probability(report["best_probability"])
    pairs = zip(report["thresholds"], report["probability"], strict=True)
    shown = _of_interest([(cut, p or 0.0) for cut, p in pairs], best)
    x = Scale(fit_axis([cut for cut, _ in shown], (0.0, 1.0) if scored else (None, None)))
    drawn = [(cut, Interval(p, 0.0, p)) for cut, p in _thinned(shown, best)]
    texts = [f"threshold {score_text(cut, scored)}: {probability(p)}" for cut, p in shown]
    marks: tuple[tuple[float, float, str], ...] = ()
    if best is not None:
        place = _pixel(x, best, report["best_probability"])
        marks = ((*place, f"best: {block.best}, {at_best}"),)
    return View(
        title="Probability that the conditions hold",
        x_name=f"threshold on the {_score_name(report)}",
        y_name="probability",
        x=x,
        y=_UNIT,
        band=_band(x, drawn),
        line=_line(x, drawn),
        reference=_level(0.5),
        strips=_strips(x, [cut for cut, _ in shown], texts),
        description=f"Probability that {block.conditions} (up) against the threshold (right); at "
        f"{block.best} it is {at_best}.",
        marks=marks,
    )


def _of_interest(
    pairs: Sequence[tuple[float, float]], best: float | None
) -> Sequence[tuple[float, float]]:
    """Thresholds with a probability worth showing, the best one, and some room to both sides."""
    places = [k for k, (cut, p) in enumerate(pairs) if p >= 0.005 or cut == best]
    if not places or not any(p >= 0.005 for _, p in pairs):
        return pairs
    low, high = pairs[places[0]][0], pairs[places[-1]][0]
    room = (high - low) / 6 or 0.1 * abs(low)
    inside = [pair for pair in pairs if low - room <= pair[0] <= high + room]
    return inside if len(inside) > 1 else pairs


def _thinned(
    pairs: Sequence[tuple[float, float]], best: float | None, most: int = 600
) -> Sequence[tuple[float, float]]:
    """So many of the points that no screen shows the difference, the best one among them."""
    if len(pairs) <= most:
        return pairs
    step = -(-len(pairs) // most)
    return [pair for k, pair in enumerate(pairs)
            if k % step == 0 or k == len(pairs) - 1 or pair[0] == best]  # fmt: skip


def _band(x: Scale, known: Iterable[tuple[float, Interval]]) -> str:
    both = [(at, n.low, n.high) for at, n in known if n.low is not None and n.high is not None]
    if len(both) < 2:
        return ""
    upper = [_pixel(x, at, high) for at, _, high in both]
    lower = [_pixel(x, at, low) for at, low, _ in both]
    return _path([*upper, *reversed(lower)]) + "Z"


def _line(x: Scale, known: Iterable[tuple[float, Interval]]) -> str:
    return _path([_pixel(x, at, n.value) for at, n in known if n.value is not None])


def _level(value: float | None) -> str:
    """A line across the whole plot."""
    if value is None:
        return ""
    down = _pixel(_UNIT, 0.0, value)[1]
    return _path([(0.0, down), (100.0, down)])


def _pixel(x: Scale, at: float, y: float) -> _Pixel:
    return 100 * x.at(at), HEIGHT * (1 - _UNIT.at(y))


def _path(points: Sequence[_Pixel]) -> str:
    if len(points) < 2:
        return ""
    return "M" + "L".join(f"{across:.2f} {down:.1f}" for across, down in points)


def _strips(x: Scale, places: Sequence[float], texts: Sequence[str]) -> tuple[Strip, ...]:
    """A strip per point, to the middles of its neighbours."""
    step = max(1, -(-len(places) // _MOST_STRIPS))
    kept = [(100 * x.at(at), text) for at, text in zip(places, texts, strict=True)][::step]
    if not kept:
        return ()
    middles = [(a + b) / 2 for (a, _), (b, _) in itertools.pairwise(kept)]
    edges = [0.0, *middles, 100.0]
    return tuple(
        Strip(left, right - left, text)
        for (left, right), (_, text) in zip(itertools.pairwise(edges), kept, strict=True)
    )
