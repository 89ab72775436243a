"""Precision-recall and ROC curves with their bands, and what a score means: document and views."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from fewlabels.report.axis import BARS, Axis, Bars, Panel, Strip, View, fit_axis, strips
from fewlabels.report.blocks import Report
from fewlabels.report.document import (
    Document,
    Drawing,
    Group,
    Legend,
    Node,
    Para,
    Section,
    Table,
    name,
    strong,
)
from fewlabels.report.one_classifier import RATES, Interval, about_one, level, rate_name
from fewlabels.report.words import capital, escape_control, percent, score_text

_ROWS = 10  # Of the picture: a tenth each, and one for the value 0.
_MOST_COLUMNS = 61
_LABEL = 5

HEIGHT = 300
"""Pixels of a plot."""

_MOST_STRIPS = 120  # Tooltips of a panel; more could not be told apart with a mouse.
_MOST_TICKS = 12  # Labeled items in a bin that are drawn one by one.
_UNIT = Axis(0.0, 1.0, (0, 0.25, 0.5, 0.75, 1.0), ("0", "0.25", "0.5", "0.75", "1"))
_DIAGONAL = [(0.0, 0.0), (1.0, 1.0)]


class Kind(NamedTuple):
    """Name of a kind of curve, what its axes and its area are, and where a table reads it off."""

    name: str
    title: str
    x_key: str
    y_key: str
    area: str
    places: tuple[float, ...]

    @property
    def x_name(self) -> str:
        """What is across."""
        return rate_name(self.x_key)

    @property
    def y_name(self) -> str:
        """What is up."""
        return rate_name(self.y_key)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("precision-recall", "Precision and recall", "recall", "precision",
             "average precision", (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)),
        Kind("roc", "ROC", "fpr", "tpr", "area under the ROC curve", (0.01, 0.05, 0.1, 0.2)),
    )
}  # fmt: skip


class Point(NamedTuple):
    """A place on a curve: median, band, and the median threshold that reaches it."""

    x: float
    y: Interval
    threshold: float | None


@dataclass(frozen=True)
class CurveBlock:
    """A curve with its band; `level` is the band's confidence level."""

    kind: Kind
    points: tuple[Point, ...]
    area: Interval
    level: float

    def at(self, x: float) -> Point:
        """The curve read off at `x`, on the line between two neighbouring points."""
        right = bisect.bisect_left([p.x for p in self.points], x)
        after = self.points[min(right, len(self.points) - 1)]
        before = self.points[max(right - 1, 0)]
        if after.x == before.x:
            return after._replace(x=x)
        share = min(1.0, max(0.0, (x - before.x) / (after.x - before.x)))

        def between(a: float | None, b: float | None) -> float | None:
            return None if a is None or b is None else a + share * (b - a)

        y = Interval(*map(between, before.y, after.y))
        return Point(x, y, between(before.threshold, after.threshold))

    @property
    def read_off(self) -> list[Point]:
        """The few points that a table shows."""
        return [self.at(x) for x in self.kind.places]


def curve_blocks(report: Report) -> list[CurveBlock]:
    """The curves of either form of report: of one kind, or of several from one fit."""
    lines = report["curves"] if report["what"] == "curves" else {report["kind"]: report}
    shown = []
    for key, line in lines.items():
        kind = KINDS[key]
        lists = (line[key] for key in (kind.x_key, kind.y_key, "low", "high", "threshold"))
        points = [Point(x, Interval(*y), cut) for x, *y, cut in zip(*lists, strict=True)]
        area = Interval.from_source(line.get("area"))
        shown.append(CurveBlock(kind, tuple(points), area, report["confidence_level"]))
    return shown


def document(report: Report, picture: Mapping[str, Any] | None = None) -> Document:
    """All that is said of `Curve.report` or `Curves.report`.

    `picture` is that of `Curve.picture`; without it there is nothing of what a score means.
    """
    blocks = curve_blocks(report)
    first, band = blocks[0], f"{level(report)} band"
    answer = f"The {first.kind.area} of {name(report['model'])} is {first.area.text}."
    if first.area.value is not None:
        value, low, high = (f"{number:.3f}" for number in first.area)
        answer = (
            f"The {first.kind.area} of {name(report['model'])} is estimated at {strong(value)}, "
            f"with a {level(report)} interval from {low} to {high}."
        )
    chance = Interval.from_source(report.get("prevalence"))
    if first.kind.name == "precision-recall" and chance.value is not None:
        positive = name(report["positive"])
        answer += f" Chance would give {chance.text}, the share of items that are {positive}."
    drawings = [
        Drawing("curve", curve_view(block, report), block.kind.title,
                lines=partial(_picture, block) if block is first else None)
        for block in blocks
    ]  # fmt: skip
    return about_one(
        "How good is the ranking?",
        report,
        answer,
        [
            # Precision is what few labels leave open; ROC curves look much alike in a terminal.
            Section("Curve" if len(blocks) == 1 else "Curves", [
                Legend([("median", "median"), ("band", band), ("chance", "chance")]),
                Group("panels", drawings),
            ]),
            Section("Operating points", [
                Para("The threshold is the median of those that reach the rate in the first "
                     "column.", "soft"),
                Group("panels", [_points(block, report) for block in blocks]),
            ]),
            *_by_threshold(report),
            *(_scores(report, picture) if picture else ()),
        ],
        {
            "Line and band": "The labels that are missing were drawn many times, as the labels "
            "there are and the method allow. Each draw has a curve. The line "
            f"is the median at each place. The band is the shortest interval that holds "
            f"{level(report)} of the draws there. It is meant place by place: that it holds the "
            "whole curve at once is less probable.",
            "Chance": "What a classifier would do that knows nothing. Its precision is the share "
            "of positive items at any recall, and it calls as many of the others positive as of "
            "the positive ones.",
            **RATES,
        },
        numbers="bands",
    )  # fmt: skip


def _points(block: CurveBlock, report: Report) -> Group:
    """The curve read off at a few places."""
    kind, scored = block.kind, report["unit"] == "probability"
    rows = []
    for point in block.read_off:
        value, band = point.y.parts
        cut = score_text(point.threshold, scored)
        rows.append([percent(point.x), strong(value), band, cut])
    head = [kind.x_name, kind.y_name, f"[{percent(block.level)} band]", "threshold"]
    table = Table(head, rows, kind.title, sides="rrlr", style="points")
    return Group("", [Section(kind.title, [table], aside=f"{kind.area} {block.area.text}")])


def _by_threshold(report: Report) -> Iterator[Node]:
    """Precision and recall by threshold, and where both errors are equally frequent."""
    rates = report.get("by_threshold")
    if not rates:
        return
    equal = Interval.from_source(rates["equal_error_rate"])
    said = (
        "False positives and false negatives are equally frequent, each in its class, at an error "
        f"rate of {equal.text}."
    )
    enough = len(rates["threshold"]) > 1
    views = rate_views(rates, ("precision", "recall"), report) if enough else ()
    body = [
        *([Para(said, "soft")] if equal.value is not None else ()),
        *([Group("panels", [Drawing("curve", v, v.title) for v in views])] if enough else ()),
    ]
    if body:
        yield Section("By threshold", body)


def _scores(report: Report, picture: Mapping[str, Any]) -> Iterator[Node]:
    """The densities of the classes, and the probability that an item of a score is positive."""
    densities = density_views(report, picture)
    if densities:
        yield Section("The fitted densities", [
            Para("How many of all items are of a class and have such a score, as the densities "
                 "say; dashed, how many items of either class have it. Where the dashed line "
                 "leaves both bands, the densities do not fit.", "soft"),
            Group("panels", [Drawing("curve", view, view.title) for view in densities]),
        ], on="page")  # fmt: skip
    view = recalibration_view(report, picture)
    says = [("chance", "as the classifier says")] if view.reference else []
    bars = view.histogram
    assert bars is not None
    yield Section("What a score means", [
        Para(f"The probability that an item of a score is {name(report['positive'])}, as the "
             "labels and the method have it. Below it the scores of all items (on a square-root "
             "scale, so that rare scores stay visible), and of the labeled ones.", "soft"),
        Legend([
            ("median", "probability"), ("band", f"{level(report)} band"), *says, ("bars", "items"),
            ("positive", f"labeled positive: {bars.n_positive:,}"),
            ("negative", f"labeled otherwise: {bars.n_negative:,}"),
        ]),
        Drawing("curve", view),
    ], on="page")  # fmt: skip


def _picture(block: CurveBlock, width: int) -> Iterator[str]:
    """The curve and its band, eleven rows high, both axes from 0 to 1."""
    columns = (min(_MOST_COLUMNS, width - _LABEL - 2) - 1) // 4 * 4 + 1
    # Rows of the median and of both ends of the band; -1 where one is not known.
    heights = [
        [-1 if number is None else round(number * _ROWS) for number in block.at(x).y]
        for x in (k / (columns - 1) for k in range(columns))
    ]
    yield block.kind.y_name
    for row in reversed(range(_ROWS + 1)):
        label = f"{row / _ROWS:.1f}" if row % 2 == 0 else ""
        cells = (
            "o" if value == row else ":" if 0 <= low <= row <= high else " "
            for value, low, high in heights
        )  # fmt: skip
        yield f"{label:>{_LABEL}} |{''.join(cells)}"
    quarter = (columns - 1) // 4
    yield " " * _LABEL + " +" + ("-" * (quarter - 1) + "+") * 4
    ticks = "0" + "".join(f"{tick:>{quarter}}" for tick in ("0.25", "0.5", "0.75", "1"))
    yield " " * _LABEL + "  " + ticks
    names = f"{block.kind.x_name}   (o median, : {percent(block.level)} band)"
    yield " " * (_LABEL + 2) + names


def curve_view(block: CurveBlock, report: Report) -> View:
    """A curve with its band; chance is the prevalence, or the diagonal of a ROC plot."""
    kind = block.kind
    scored = report["unit"] == "probability"

    def describe(point: Point) -> str:
        text = f"{kind.x_name} {percent(point.x)}: {kind.y_name} {point.y.text}"
        cut = point.threshold
        return text if cut is None else f"{text}, threshold {score_text(cut, scored)}"

    points, panel = block.points, Panel(_UNIT, _UNIT, HEIGHT)
    read_off = "; ".join(map(describe, block.read_off))
    chance = Interval.from_source(report.get("prevalence")).value
    return View(
        **vars(panel),
        title=kind.title,
        x_name=kind.x_name,
        y_name=kind.y_name,
        runs=[[(p.x, *p.y) for p in points]],
        dashed=[_DIAGONAL] if kind.name == "roc" else panel.level(chance),
        strips=strips_at(panel, [p.x for p in points], map(describe, points)),
        description=f"{capital(kind.y_name)} (up) against {kind.x_name} (right), {read_off}.",
    )


def rate_views(
    rates: Mapping[str, Any], names: Iterable[str], report: Report, height: int = HEIGHT,
    marked: tuple[float, str] | None = None,
) -> list[View]:  # fmt: skip
    """Rates at each threshold, with their bands; `marked` is one of these, and its text."""
    cuts = rates["threshold"]
    panel = over_scores(cuts, report, height)
    views = []
    for key in names:
        view = _line_view(f"{capital(rate_name(key))} by threshold", rate_name(key), panel, cuts,
                          rates[key], report)  # fmt: skip
        at = rates[key]["value"][cuts.index(marked[0])] if marked else None
        if marked and at is not None:
            view = replace(view, points=[(marked[0], at, marked[1])])
        views.append(replace(view, y_name=""))  # the title has it
    return views


def density_views(report: Report, picture: Mapping[str, Any]) -> list[View]:
    """Scores of each class as the densities have them; dashed, the histogram of all scores."""
    densities = picture.get("densities")
    if not densities:
        return []
    edges: Sequence[float] = picture["histogram"]["edges"]
    middles = [(left + right) / 2 for left, right in itertools.pairwise(edges)]
    sides = (picture["histogram"][side] for side in ("unlabeled", "negative", "positive"))
    counts = [sum(k or 0 for k in bins) for bins in zip(*sides, strict=True)]
    shares = [count / max(sum(counts), 1) for count in counts]
    top = max([*shares, *(v or 0.0 for band in densities.values() for v in band["high"])]) or 1.0
    panel = over_scores(edges, report)
    views = []
    for side in ("positive", "negative"):
        outlines = {
            key: [None if v is None else v / top for v in values]
            for key, values in densities[side].items()
        }
        view = _line_view(
            f"Scores of the {side} class", "share of items", panel, middles, outlines, report
        )
        dashed = [[(m, s / top) for m, s in zip(middles, shares, strict=True)]]
        views.append(replace(view, dashed=dashed, strips=()))
    return views


def over_scores(values: Iterable[float], report: Report, height: int = HEIGHT) -> Panel:
    """Scores across that hold all values, and up what lies between 0 and 1."""
    bounds = (0.0, 1.0) if report["unit"] == "probability" else (None, None)
    return Panel(fit_axis(values, bounds), _UNIT, height)


def _line_view(
    title: str, y_name: str, panel: Panel, places: Sequence[float], band: Mapping[str, Any],
    report: Report,
) -> View:  # fmt: skip
    """Medians at scores with their band, between 0 and 1."""
    scored = report["unit"] == "probability"
    lists = (band[key] for key in ("value", "low", "high"))
    defined = [(at, Interval(*numbers)) for at, *numbers in zip(places, *lists, strict=True)]
    texts = [f"{score_text(at, scored)}: {y_name} {number.text}" for at, number in defined]
    return View(
        **vars(panel),
        title=title,
        x_name=score_name(report),
        y_name=y_name,
        runs=[[(at, *number) for at, number in defined]],
        strips=strips_at(panel, places, texts),
        description=f"{capital(y_name)} (up) by {score_name(report)} (right), from {texts[0]} "
        f"to {texts[-1]}.",
    )


def recalibration_view(report: Report, picture: Mapping[str, Any]) -> View:
    """P(positive | score) with its band, and the histogram of scores on the same scale."""
    scored = report["unit"] == "probability"
    panel = over_scores(picture["histogram"]["edges"], report)
    source = picture["recalibration"]
    lists = (source[key] for key in ("score", "probability", "low", "high"))
    defined = [(s, Interval(*numbers)) for s, *numbers in zip(*lists, strict=True) if s is not None]
    defined.sort(key=lambda pair: pair[0])
    texts = [f"score {score_text(s, scored)}: probability {number.text}" for s, number in defined]
    positive = escape_control(report["positive"])
    span = f": from {texts[0]} to {texts[-1]}." if texts else "; it is not known."
    return View(
        **vars(panel),
        title="From score to probability",
        x_name=score_name(report),
        y_name="probability",
        runs=[[(s, *number) for s, number in defined]],
        dashed=[_DIAGONAL] if scored else (),
        strips=strips_at(panel, [s for s, _ in defined], texts),
        description=f"Probability of {positive} (up) against score (right){span}",
        histogram=_bars(picture["histogram"], panel.x),
    )


def score_name(report: Report) -> str:
    """What the axis of scores is called."""
    scored = report["unit"] == "probability"
    return f"score: P({escape_control(report['positive'])})" if scored else "score"


def _bars(histogram: Mapping[str, Any], x: Axis) -> Bars:
    edges: Sequence[float] = histogram["edges"]
    unlabeled, negative, positive = (
        [int(k or 0) for k in histogram[side]] for side in ("unlabeled", "negative", "positive")
    )
    totals = [sum(counts) for counts in zip(unlabeled, negative, positive, strict=True)]
    top, height, outline = max(totals, default=0), BARS, ""
    if top:
        steps = "".join(
            f"V{height * (1 - (count / top) ** 0.5):.1f}H{100 * x.at(right):.2f}"
            for right, count in zip(edges[1:], totals, strict=True)
        )
        outline = f"M{100 * x.at(edges[0]):.2f} {height}{steps}V{height}Z"

    def ticks(counts: Sequence[int]) -> list[float]:
        """Labeled items spread over their bins: of a bin the report says how many it holds."""
        return [
            100 * x.at(left + (k + 0.5) / min(count, _MOST_TICKS) * (right - left))
            for (left, right), count in zip(itertools.pairwise(edges), counts, strict=True)
            for k in range(min(count, _MOST_TICKS))
        ]

    return Bars(outline, ticks(positive), ticks(negative), sum(positive), sum(negative))


def strips_at(panel: Panel, places: Sequence[float], texts: Iterable[str]) -> tuple[Strip, ...]:
    """A strip per point, to the middles of its neighbours."""
    step = max(1, -(-len(places) // _MOST_STRIPS))
    edges = [100 * panel.x.at(at) for at in places[::step]]
    middles = [(a + b) / 2 for a, b in itertools.pairwise(edges)]
    return strips([0.0, *middles, 100.0] if edges else [], itertools.islice(texts, 0, None, step))
