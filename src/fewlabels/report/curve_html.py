"""Curves and thresholds as pages of HTML, and their figures as one file of SVG.

A view is a panel: where every line, band, marker and tooltip stands.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fewlabels.report.axis import Axis, Panel, Scale, Strip, fit_axis, strips
from fewlabels.report.blocks import Report
from fewlabels.report.curves import (
    STRATA,
    CurveBlock,
    Interval,
    Point,
    ThresholdBlock,
    curve_blocks,
    level,
    next_items,
    status_note,
    strata_rows,
    who,
)
from fewlabels.report.html import render
from fewlabels.report.words import (
    escape_control,
    fit,
    number_format,
    percent,
    plural,
    probability,
    score_text,
)

HEIGHT = 300
"""Pixels of a plot."""

BARS = 84
"""Pixels of a histogram of scores."""

_MOST_STRIPS = 120  # Tooltips of a panel; more could not be told apart with a mouse.
_MOST_TICKS = 12  # Labeled items in a bin that are drawn one by one.
_MOST_POINTS = 600  # Of a line; no screen shows the difference.
_UNIT = Scale(Axis(0.0, 1.0, (0, 0.25, 0.5, 0.75, 1.0), ("0", "0.25", "0.5", "0.75", "1")))
_DIAGONAL = [(0.0, 0.0), (1.0, 1.0)]

# Pixels of the figures in a file of their own, panels side by side: its margins, what stands above
# all panels, and between them; of a panel, the scale at its side, the plot, and what is above it.
_MARGIN, _TOP, _GAP = 24, 84, 32
_SIDE, _PLOT, _ABOVE = 46, 380, 14


@dataclass(frozen=True, kw_only=True)
class View(Panel):
    """A panel with what is drawn on it. Outlines are SVG paths, "" where there is nothing to draw.

    `reference` is a dashed line (chance, or perfect calibration); `marks` are points to be seen,
    as (percent across, pixels down, text).
    """

    title: str
    x_name: str
    y_name: str
    band: str
    line: str
    reference: str
    strips: tuple[Strip, ...]
    description: str
    marks: tuple[tuple[float, float, str], ...] = ()


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
        band=panel.outline((p.x, p.y.low, p.y.high) for p in points),
        line=panel.path((p.x, p.y.value) for p in points),
        reference=panel.path(_DIAGONAL) if kind.name == "roc" else panel.level(chance),
        strips=_strips(panel, [p.x for p in points], map(describe, points)),
        description=f"{kind.y_name.capitalize()} (up) against {kind.x_name} (right), {read_off}.",
    )


def threshold_rate_views(report: Report) -> list[View]:
    """Precision and recall at each threshold, with their bands; [] where the report has none."""
    rates = report.get("by_threshold")
    if not rates or len(rates["threshold"]) < 2:
        return []
    cuts = rates["threshold"]
    panel = _over_scores(cuts, report)
    return [_line_view(f"{name.capitalize()} by threshold", name, panel, cuts, rates[name], report)
            for name in ("precision", "recall")]  # fmt: skip


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
    panel = _over_scores(edges, report)
    views = []
    for name in ("positive", "negative"):
        outlines = {
            key: [None if v is None else v / top for v in values]
            for key, values in densities[name].items()
        }
        view = _line_view(
            f"Scores of the {name} class", "share of items", panel, middles, outlines, report
        )
        reference = panel.path((m, s / top) for m, s in zip(middles, shares, strict=True))
        views.append(replace(view, reference=reference, strips=()))
    return views


def _over_scores(values: Iterable[float], report: Report) -> Panel:
    """Scores across that hold all values, and up what lies between 0 and 1."""
    bounds = (0.0, 1.0) if report["unit"] == "probability" else (None, None)
    return Panel(Scale(fit_axis(values, bounds)), _UNIT, HEIGHT)


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
        x_name=_score_name(report),
        y_name=y_name,
        band=panel.outline((at, number.low, number.high) for at, number in defined),
        line=panel.path((at, number.value) for at, number in defined),
        reference="",
        strips=_strips(panel, places, texts),
        description=f"{y_name.capitalize()} (up) by {_score_name(report)} (right), from {texts[0]} "
        f"to {texts[-1]}.",
    )


def recalibration_view(report: Report, picture: Mapping[str, Any]) -> tuple[View, Bars]:
    """P(positive | score) with its band, and the histogram of scores on the same scale."""
    scored = report["unit"] == "probability"
    panel = _over_scores(picture["histogram"]["edges"], report)
    source = picture["recalibration"]
    lists = (source[key] for key in ("score", "probability", "low", "high"))
    defined = [(s, Interval(*numbers)) for s, *numbers in zip(*lists, strict=True) if s is not None]
    defined.sort(key=lambda pair: pair[0])
    texts = [f"score {score_text(s, scored)}: probability {number.text}" for s, number in defined]
    positive = escape_control(report["positive"])
    span = f": from {texts[0]} to {texts[-1]}." if texts else "; it is not known."
    view = View(
        **vars(panel),
        title="From score to probability",
        x_name=_score_name(report),
        y_name="probability",
        band=panel.outline((s, number.low, number.high) for s, number in defined),
        line=panel.path((s, number.value) for s, number in defined),
        reference=panel.path(_DIAGONAL) if scored else "",
        strips=_strips(panel, [s for s, _ in defined], texts),
        description=f"Probability of {positive} (up) against score (right){span}",
    )
    return view, _bars(picture["histogram"], panel.x)


def _score_name(report: Report) -> str:
    return (
        f"score: P({escape_control(report['positive'])})"
        if report["unit"] == "probability"
        else "score"
    )


def _bars(histogram: Mapping[str, Any], x: Scale) -> Bars:
    edges: Sequence[float] = histogram["edges"]
    unlabeled, negative, positive = (
        [int(k or 0) for k in histogram[side]] for side in ("unlabeled", "negative", "positive")
    )
    totals = [sum(counts) for counts in zip(unlabeled, negative, positive, strict=True)]
    top = max(totals, default=0)
    outline = ""
    if top:
        steps = "".join(
            f"V{BARS * (1 - (count / top) ** 0.5):.1f}H{100 * x.at(right):.2f}"
            for right, count in zip(edges[1:], totals, strict=True)
        )
        outline = f"M{100 * x.at(edges[0]):.2f} {BARS}{steps}V{BARS}Z"

    def ticks(counts: Sequence[int]) -> list[float]:
        """Labeled items spread over their bins: of a bin the report says how many it holds."""
        return [
            100 * x.at(left + (k + 0.5) / min(count, _MOST_TICKS) * (right - left))
            for (left, right), count in zip(itertools.pairwise(edges), counts, strict=True)
            for k in range(min(count, _MOST_TICKS))
        ]

    return Bars(outline, ticks(positive), ticks(negative), sum(positive), sum(negative))


def threshold_view(block: ThresholdBlock) -> View:
    """The probability that the conditions hold at each threshold, with the best one marked."""
    report = block.report
    scored = report["unit"] == "probability"
    best, at_best = report["best"], probability(report["best_probability"])
    pairs = zip(report["thresholds"], report["probability"], strict=True)
    shown = _interesting([(cut, p or 0.0) for cut, p in pairs], best)
    panel = _over_scores((cut for cut, _ in shown), report)
    step = max(1, -(-len(shown) // _MOST_POINTS))
    places = {*range(0, len(shown), step), len(shown) - 1}
    drawn = [(cut, p) for k, (cut, p) in enumerate(shown) if k in places or cut == best]
    texts = [f"threshold {score_text(cut, scored)}: {probability(p)}" for cut, p in shown]
    marks: tuple[tuple[float, float, str], ...] = ()
    if best is not None:
        place = panel.at(best, report["best_probability"])
        marks = ((*place, f"best: {block.best}, {at_best}"),)
    return View(
        **vars(panel),
        title="Probability that the conditions hold",
        x_name=f"threshold on the {_score_name(report)}",
        y_name="probability",
        band=panel.outline((cut, 0.0, p) for cut, p in drawn),
        line=panel.path(drawn),
        reference=panel.level(0.5),
        strips=_strips(panel, [cut for cut, _ in shown], texts),
        description=f"Probability that {block.conditions} (up) against the threshold (right); at "
        f"{block.best} it is {at_best}.",
        marks=marks,
    )


def _interesting(
    pairs: Sequence[tuple[float, float]], best: float | None
) -> Sequence[tuple[float, float]]:
    """Thresholds with a visible probability, the best one, and a margin on both sides."""
    places = [k for k, (cut, p) in enumerate(pairs) if p >= 0.005 or cut == best]
    if not places or not any(p >= 0.005 for _, p in pairs):
        return pairs
    low, high = pairs[places[0]][0], pairs[places[-1]][0]
    room = (high - low) / 6 or 0.1 * abs(low)
    inside = [pair for pair in pairs if low - room <= pair[0] <= high + room]
    return inside if len(inside) > 1 else pairs


def _strips(panel: Panel, places: Sequence[float], texts: Iterable[str]) -> tuple[Strip, ...]:
    """A strip per point, to the middles of its neighbours."""
    step = max(1, -(-len(places) // _MOST_STRIPS))
    edges = [100 * panel.x.at(at) for at in places[::step]]
    middles = [(a + b) / 2 for a, b in itertools.pairwise(edges)]
    return strips([0.0, *middles, 100.0] if edges else [], itertools.islice(texts, 0, None, step))


def render_curves_html(
    report: Report, picture: Mapping[str, Any] | None = None, *, fragment: bool = False
) -> str:
    """One curve, or several from one fit, as a page that needs no other file and no network.

    `report` is the dictionary of `Curve.report` or `Curves.report`. `picture` is that of
    `Curve.picture`; without it the page does not show what a score means.
    """
    shown = curve_blocks(report)
    return _render(
        "curve.html.j2",
        report,
        fragment,
        blocks=shown,
        views=[curve_view(block, report) for block in shown],
        prevalence=Interval.from_source(report.get("prevalence")),
        by_threshold=threshold_rate_views(report),
        densities=density_views(report, picture) if picture else [],
        recalibration=recalibration_view(report, picture) if picture else None,
    )


def render_threshold_html(report: Report, *, fragment: bool = False) -> str:
    """Where to put the threshold, as a page that needs no other file and no network.

    `report` is the dictionary of `Thresholds.report`.
    """
    block = ThresholdBlock(report)
    return _render(
        "threshold.html.j2",
        report,
        fragment,
        block=block,
        asked=any(rate.asked for rate in block.rates),
        # Where no draw meets the conditions the line would lie on the axis.
        view=threshold_view(block) if block.verdict in ("met", "unlikely") else None,
    )


def render_label_next_html(report: Report, *, fragment: bool = False) -> str:
    """The items to label next, as a page that needs no other file.

    `report` is the dictionary of `LabelNext.report`.
    """
    items = next_items(report)
    top = max((row.share or 0.0 for row in items.rows), default=0.0) or 1.0
    rows = strata_rows(report)
    return _render(
        "label_next.html.j2", report, fragment, found=items, top=top, strata=rows,
        strata_heads=STRATA,
    )  # fmt: skip


def render_svg(report: Report) -> str:
    """The figures of a report of curves or thresholds as a file of SVG, with selectable text."""
    views: Sequence[View]
    if report["what"] == "threshold":
        block = ThresholdBlock(report)
        views, title = [threshold_view(block)], f"{report['model']}: {block.conditions}"
    else:
        views = [curve_view(block, report) for block in curve_blocks(report)]
        title = f"{report['model']}: {level(report)} bands"
    panel, panel_height = _SIDE + _PLOT, _ABOVE + HEIGHT + 44
    inside = len(views) * (panel + _GAP) - _GAP

    def fitted(text: str, pixels: int, room: int) -> str:
        """As much of a line as there is room for, by its width in pixels per character."""
        return fit(escape_control(text), room // pixels)

    return render(
        "curve.svg.j2",
        title=title,
        subtitle=who(report),
        views=views,
        fitted=fitted,
        inside=inside,
        width=inside + 2 * _MARGIN,
        height=_TOP + panel_height + _MARGIN,
        panel=panel,
        panel_height=panel_height,
        lefts=[_MARGIN + k * (panel + _GAP) for k in range(len(views))],
        margin=_MARGIN,
        top=_TOP,
        side=_SIDE,
        plot=_PLOT,
        above=_ABOVE,
    )


def _render(template: str, report: Report, fragment: bool, **shown: Any) -> str:
    return render(
        template,
        ("curve_series.css", "curve.css") if fragment else None,
        report=report,
        level=level(report),
        note=status_note(report),
        scored=report["unit"] == "probability",
        **shown,
    )


# --- while somebody labels ------------------------------------------------------------------------


_NARROWING_HEIGHT = 170
"""Pixels of the plot."""


def render_narrowing(picture: Mapping[str, Any]) -> str:
    """The interval and the guard against the number of labels, as SVG for a page with its styles.

    `picture` has plain values: `model`, `metric`, `level`; `points` with n, value, low and high;
    `guard` with n, low and high, which may be empty; `target`, a bound to be reached, or None.
    """
    points, guard = picture["points"], picture["guard"]
    # The guard of the first labels is nearly the whole range, which would stretch the scale.
    last = max([p["n"] for p in (*points, *guard)], default=1)
    values = [p[key] for p in points for key in ("low", "high")]
    values += [g[key] for g in guard if g["n"] >= last / 3 for key in ("low", "high")]
    values += [] if picture["target"] is None else [picture["target"]]
    y = Scale(fit_axis(values or [0.0, 1.0], (0.0, 1.0) if _unit(values) else (None, None)))
    panel = Panel(Scale(fit_axis([0, max(last, 5)], (0, None), 4)), y, _NARROWING_HEIGHT)
    write = number_format([*values, *(p["value"] for p in points)])
    texts = [
        f"{plural(p['n'], 'label')}: {write(p['value'])} ({write(p['low'])} to {write(p['high'])})"
        for p in points
    ]
    latest = f" After {texts[-1]}." if texts else ""
    view = View(
        **vars(panel),
        title=f"{escape_control(picture['metric'])} of {escape_control(picture['model'])}",
        x_name="labels",
        y_name=picture["metric"],
        band=panel.outline((p["n"], p["low"], p["high"]) for p in points),
        line=panel.path((p["n"], p["value"]) for p in points),
        reference=panel.path((g["n"], g["low"]) for g in guard)
        + panel.path((g["n"], g["high"]) for g in guard),
        # From each point to the next.
        strips=strips([*(100 * panel.x.at(p["n"]) for p in points), 100.0], texts),
        description=f"{percent(picture['level'])} interval (up) against labels (right).{latest}",
        marks=tuple((*panel.at(p["n"], p["value"]), texts[-1]) for p in points[-1:]),
    )
    target = picture["target"]
    return render(
        "labeling.svg.j2",
        view=view,
        target=None if target is None else panel.down(target),
    ).strip()


def _unit(values: Sequence[float]) -> bool:
    return all(-1e-9 <= v <= 1 + 1e-9 for v in values)
