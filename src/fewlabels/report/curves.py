"""Precision-recall and ROC curves with their bands, and what a score means: document and views."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
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
    parted,
    strong,
)
from fewlabels.report.one_classifier import (
    RATES,
    WRITE,
    about_one,
    score_writer,
    spelled,
)
from fewlabels.report.words import (
    capital,
    count,
    escape_control,
    metric_name,
    percent,
    with_interval,
)

_ROWS = 10  # Of the picture: a tenth each, and one for the value 0.
_OF_WIDTH = 0.77  # Of the picture, with what is left beside it.
_LABEL = 5

HEIGHT = 300
"""Pixels of a plot."""

_MOST_STRIPS = 120  # Tooltips of a panel; more could not be told apart with a mouse.
_MOST_TICKS = 12  # Labeled items in a bin that are drawn one by one.
_UNIT = Axis(0.0, 1.0, (0, 0.25, 0.5, 0.75, 1.0), ("0", "0.25", "0.5", "0.75", "1"))
_DIAGONAL = [(0.0, 0.0), (1.0, 1.0)]

Run = Sequence[tuple[float, float | None, float | None, float | None]]
"""Points of a line: where, value, low, high."""


class Kind(NamedTuple):
    """A kind of curve: the rates across and up, its area, and where a table reads it off."""

    title: str
    x: str
    y: str
    area: str
    places: tuple[float, ...]


KINDS = {
    "precision-recall": Kind(
        "Precision and recall", "recall", "precision", "average precision",
        (0.1, 0.25, 0.5, 0.75, 0.9, 0.95),
    ),
    "roc": Kind("ROC", "fpr", "tpr", "area under the ROC curve", (0.01, 0.05, 0.1, 0.2)),
}  # fmt: skip


class Curve(NamedTuple):
    """A curve: points of (x, median, low, high, threshold that reaches it), and its area."""

    kind: Kind
    points: Sequence[tuple[float, float | None, float | None, float | None, float | None]]
    area: Mapping[str, float | None]

    def at(self, x: float) -> list[Any]:
        """What a point has, read off at `x`, on the line between two neighbouring points."""
        right = bisect.bisect_left(self.points, x, key=itemgetter(0))
        after = self.points[min(right, len(self.points) - 1)]
        before = self.points[max(right - 1, 0)]
        width = after[0] - before[0]
        share = min(1.0, max(0.0, (x - before[0]) / width)) if width else 1.0
        return [x, *(
            None if a is None or b is None else a + share * (b - a)
            for a, b in zip(before[1:], after[1:], strict=True)
        )]  # fmt: skip


def curves_of(report: Report) -> list[Curve]:
    """The curves of either form of report: of one kind, or of several from one fit."""
    lines = report["curves"] if report["what"] == "curves" else {report["kind"]: report}
    shown = []
    for key, line in lines.items():
        kind = KINDS[key]
        lists = (line[name] for name in (kind.x, kind.y, "low", "high", "threshold"))
        shown.append(Curve(kind, [*zip(*lists, strict=True)], line["area"]))
    return shown


def document(report: Report, picture: Mapping[str, Any] | None = None) -> Document:
    """All that is said of `Curve.report` or `Curves.report`.

    `picture` is that of `Curve.picture`; without it there is nothing of what a score means.
    """
    curves, level = curves_of(report), percent(report["confidence_level"])
    first, band, prevalence = curves[0], f"{level} band", report["prevalence"]
    value, low, high = (WRITE(first.area[end]) for end in ("value", "low", "high"))
    answer = f"The {first.kind.area} of {name(report['model'])} is "
    answer += (
        f"{value}."
        if first.area["value"] is None
        else f"estimated at {strong(value)}, with a {level} interval from {low} to {high}."
    )
    if first.kind.x == "recall" and prevalence["value"] is not None:
        answer += (
            f" Chance would give {with_interval(prevalence, WRITE)}, the share of items that are "
            f"{name(report['positive'])}."
        )
    return about_one(
        "How good is the ranking?",
        report,
        answer,
        [
            Section("Curve" if len(curves) == 1 else "Curves", [
                Legend([("median", "median"), ("band", band), ("chance", "chance")]),
                # Precision is what few labels leave open; ROC curves look much alike in a terminal.
                Group("panels", [
                    Drawing("curve", curve_view(curve, report), curve.kind.title,
                            lines=partial(_picture, curve, band) if curve is first else None)
                    for curve in curves
                ]),
            ]),
            Section("Operating points", [
                Para("The threshold is the median of those that reach the rate in the first "
                     "column.", "soft"),
                Group("panels", [_points(curve, band, report) for curve in curves]),
            ]),
            *_by_threshold(report),
            *(_scores(report, picture) if picture else ()),
        ],
        {
            "Line and band": "The labels that are missing were drawn many times, as the labels "
            "there are and the method allow. Each draw has a curve. The line "
            f"is the median at each place. The band is the shortest interval that holds "
            f"{level} of the draws there. It is meant place by place: that it holds the "
            "whole curve at once is less probable.",
            "Chance": "What a classifier would do that knows nothing. Its precision is the share "
            "of positive items at any recall, and it calls as many of the others positive as of "
            "the positive ones.",
            **RATES,
        },
        numbers="bands",
    )  # fmt: skip


def _points(curve: Curve, band: str, report: Report) -> Group:
    """The curve read off at a few places."""
    kind, write, rows = curve.kind, score_writer(report), []
    for x, *numbers, cut in map(curve.at, kind.places):
        rate, ends = parted(spelled(*numbers))
        rows.append([percent(x), strong(rate), ends, write(cut)])
    head = [metric_name(kind.x), metric_name(kind.y), f"[{band}]", "threshold"]
    table = Table(head, rows, kind.title, sides="rrlr", style="points")
    area = f"{kind.area} {with_interval(curve.area, WRITE)}"
    return Group("", [Section(kind.title, [table], aside=area)])


def _by_threshold(report: Report) -> Iterator[Node]:
    """Precision and recall by threshold, and where both errors are equally frequent."""
    rates, body = report.get("by_threshold") or {}, list[Node]()
    if rates and rates["equal_error_rate"]["value"] is not None:
        body.append(Para(
            "False positives and false negatives are equally frequent, each in its class, at an "
            f"error rate of {with_interval(rates['equal_error_rate'], WRITE)}.", "soft",
        ))  # fmt: skip
    if rates and len(rates["threshold"]) > 1:
        body.append(_drawn(rate_views(rates, ("precision", "recall"), report)))
    if body:
        yield Section("By threshold", body)


def _drawn(views: Iterable[View]) -> Group:
    return Group("panels", [Drawing("curve", view, view.title) for view in views])


def _scores(report: Report, picture: Mapping[str, Any]) -> Iterator[Node]:
    """The densities of the classes, and the probability that an item of a score is positive."""
    if picture.get("densities"):
        yield Section("The fitted densities", [
            Para("How many of all items are of a class and have such a score, as the densities "
                 "say; dashed, how many items of either class have it. Where the dashed line "
                 "leaves both bands, the densities do not fit.", "soft"),
            _drawn(density_views(report, picture)),
        ], on="page")  # fmt: skip
    view = recalibration_view(report, picture)
    says = [("chance", "as the classifier says")] if view.reference else []
    positive, negative = (sum(picture["histogram"][side]) for side in ("positive", "negative"))
    yield Section("What a score means", [
        Para(f"The probability that an item of a score is {name(report['positive'])}, as the "
             "labels and the method have it. Below it the scores of all items (on a square-root "
             "scale, so that rare scores stay visible), and of the labeled ones.", "soft"),
        Legend([
            ("median", "probability"), ("band", f"{percent(report['confidence_level'])} band"),
            *says, ("bars", "items"), ("positive", f"labeled positive: {count(positive)}"),
            ("negative", f"labeled otherwise: {count(negative)}"),
        ]),
        Drawing("curve", view),
    ], on="page")  # fmt: skip


def _picture(curve: Curve, band: str, width: int) -> Iterator[str]:
    """The curve and its band, eleven rows high, both axes from 0 to 1."""
    quarter = int(_OF_WIDTH * width) // 4
    # Rows of the median and of both ends of the band; -1 where one is not known.
    heights = [
        [
            -1 if number is None else round(number * _ROWS)
            for number in curve.at(k / 4 / quarter)[1:4]
        ]
        for k in range(4 * quarter + 1)
    ]
    yield metric_name(curve.kind.y)
    for row in reversed(range(_ROWS + 1)):
        label = f"{row / _ROWS:.1f}" if row % 2 == 0 else ""
        cells = (
            "o" if value == row else ":" if 0 <= low <= row <= high else " "
            for value, low, high in heights
        )
        yield f"{label:>{_LABEL}} |{''.join(cells)}"
    yield " " * _LABEL + " +" + ("-" * (quarter - 1) + "+") * 4
    ticks = "0" + "".join(f"{tick:>{quarter}}" for tick in ("0.25", "0.5", "0.75", "1"))
    yield " " * (_LABEL + 2) + ticks
    yield " " * (_LABEL + 2) + f"{metric_name(curve.kind.x)}   (o median, : {band})"


# --- what is drawn --------------------------------------------------------------------------------


def line_view(
    panel: Panel, title: str, x_name: str, y_name: str, run: Run, texts: Sequence[str],
    **more: Any,
) -> View:  # fmt: skip
    """A line with its band; `texts` say what each point is."""
    ends = f"from {texts[0]} to {texts[-1]}" if texts else "not known"
    return View(
        **vars(panel),
        title=title,
        x_name=x_name,
        y_name=y_name,
        runs=[run],
        strips=strips_at(panel, [x for x, *_ in run], texts),
        description=f"{capital(y_name)} (up) against {x_name} (right), {ends}.",
        **more,
    )


def curve_view(curve: Curve, report: Report) -> View:
    """A curve with its band; chance is the prevalence, or the diagonal of a ROC plot."""
    kind, write, panel = curve.kind, score_writer(report), Panel(_UNIT, _UNIT, HEIGHT)
    x_name, y_name = metric_name(kind.x), metric_name(kind.y)

    def describe(x: float, *numbers: Any) -> str:
        *rates, cut = numbers
        text = f"{x_name} {percent(x)}: {y_name} {spelled(*rates)}"
        return text if cut is None else f"{text}, threshold {write(cut)}"

    chance = panel.level(report["prevalence"]["value"]) if kind.x == "recall" else [_DIAGONAL]
    return line_view(
        panel, kind.title, x_name, y_name, [point[:4] for point in curve.points],
        [describe(*point) for point in curve.points], dashed=chance,
    )  # fmt: skip


def over_scores(values: Iterable[float], report: Report, height: int = HEIGHT) -> Panel:
    """Scores across that hold all values, and up what lies between 0 and 1."""
    bounds = (0.0, 1.0) if report["unit"] == "probability" else (None, None)
    return Panel(fit_axis(values, bounds), _UNIT, height)


def score_name(report: Report) -> str:
    """What the axis of scores is called."""
    scored = report["unit"] == "probability"
    return f"score: P({escape_control(report['positive'])})" if scored else "score"


def _score_view(
    panel: Panel, title: str, y_name: str, report: Report, run: Run, **more: Any
) -> View:
    """A line over scores."""
    write = score_writer(report)
    texts = [f"score {write(at)}: {y_name} {spelled(*numbers)}" for at, *numbers in run]
    return line_view(panel, title, score_name(report), y_name, run, texts, **more)


def rate_views(
    rates: Mapping[str, Any], names: Iterable[str], report: Report, height: int = HEIGHT,
    marked: tuple[float, str] | None = None,
) -> Iterator[View]:  # fmt: skip
    """Rates at each threshold, with their bands; `marked` is one of these, and its text."""
    cuts = rates["threshold"]
    panel = over_scores(cuts, report, height)
    for key in names:
        value, low, high = (rates[key][end] for end in ("value", "low", "high"))
        at = value[cuts.index(marked[0])] if marked else None
        view = _score_view(
            panel, f"{capital(metric_name(key))} by threshold", metric_name(key), report,
            [*zip(cuts, value, low, high, strict=True)],
            points=[] if marked is None or at is None else [(marked[0], at, marked[1])],
        )  # fmt: skip
        yield replace(view, y_name="")  # the title has it


def density_views(report: Report, picture: Mapping[str, Any]) -> Iterator[View]:
    """Scores of each class as the densities have them; dashed, the histogram of all scores."""
    edges, densities = picture["histogram"]["edges"], picture["densities"]
    middles = [(left + right) / 2 for left, right in itertools.pairwise(edges)]
    counts = _totals(picture["histogram"])
    shares = [count / max(sum(counts), 1) for count in counts]
    top = max([*shares, *(v or 0.0 for band in densities.values() for v in band["high"])]) or 1.0
    for side in ("positive", "negative"):
        ends = zip(*(densities[side][end] for end in ("value", "low", "high")), strict=True)
        heights = [[None if v is None else v / top for v in numbers] for numbers in ends]
        view = _score_view(
            over_scores(edges, report), f"Scores of the {side} class", "share of items", report,
            [(at, *numbers) for at, numbers in zip(middles, heights, strict=True)],
            dashed=[[(m, s / top) for m, s in zip(middles, shares, strict=True)]],
        )  # fmt: skip
        yield replace(view, strips=())


def recalibration_view(report: Report, picture: Mapping[str, Any]) -> View:
    """P(positive | score) with its band, and the histogram of scores on the same scale."""
    panel = over_scores(picture["histogram"]["edges"], report)
    lists = (picture["recalibration"][key] for key in ("score", "probability", "low", "high"))
    return _score_view(
        panel, "From score to probability", "probability", report, [*zip(*lists, strict=True)],
        dashed=[_DIAGONAL] if report["unit"] == "probability" else (),
        histogram=_bars(picture["histogram"], panel.x),
    )  # fmt: skip


def _totals(histogram: Mapping[str, Any]) -> list[int]:
    """How many items are in each bin."""
    sides = (histogram[side] for side in ("unlabeled", "negative", "positive"))
    return [sum(counts) for counts in zip(*sides, strict=True)]


def _bars(histogram: Mapping[str, Any], x: Axis) -> Bars:
    edges: Sequence[float] = histogram["edges"]
    totals, outline = _totals(histogram), ""
    if top := max(totals, default=0):
        steps = "".join(
            f"V{BARS * (1 - (count / top) ** 0.5):.1f}H{100 * x.at(right):.2f}"
            for right, count in zip(edges[1:], totals, strict=True)
        )
        outline = f"M{100 * x.at(edges[0]):.2f} {BARS}{steps}V{BARS}Z"
    # Labeled items are spread over their bins: of a bin the report says how many it holds.
    positive, negative = (
        [
            100 * x.at(left + (k + 0.5) / min(count, _MOST_TICKS) * (right - left))
            for (left, right), count in zip(itertools.pairwise(edges), counts, strict=True)
            for k in range(min(count, _MOST_TICKS))
        ]
        for counts in (histogram["positive"], histogram["negative"])
    )
    return Bars(outline, positive, negative, sum(histogram["positive"]), sum(histogram["negative"]))


def strips_at(panel: Panel, places: Sequence[float], texts: Iterable[str]) -> tuple[Strip, ...]:
    """A strip per point, to the middles of its neighbours."""
    step = max(1, -(-len(places) // _MOST_STRIPS))
    edges = [100 * panel.x.at(at) for at in places[::step]]
    middles = [(a + b) / 2 for a, b in itertools.pairwise(edges)]
    return strips([0.0, *middles, 100.0] if edges else [], itertools.islice(texts, 0, None, step))
