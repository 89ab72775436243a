"""Performance over time, as text and as a page: what changed and since when, then each period."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewlabels.report.axis import Axis, Panel, Scale, View, fit_axis, strips
from fewlabels.report.blocks import Report
from fewlabels.report.html import render
from fewlabels.report.words import (
    NARROWEST,
    as_text,
    count,
    enumerated,
    escape_control,
    fitted,
    made_by,
    number_format,
    percent,
    plural,
    probability,
    style,
    warning_lines,
    with_interval,
    wrap,
)

_MOST_PERIODS = 14

_AGAINST = {
    "first": "the first periods",
    "trailing": "the mean of the periods before",
    "reference": "the reference",
}


def verdicts(report: Report) -> Iterator[str]:
    """A sentence per classifier and metric: alarms, then what may have fallen, then the rest.

    Of subgroups, what has surely fallen, and in one sentence what may have.
    """
    steady = [one for one in report["changes"] if one["since"] is None]
    last = report["complete"]
    unlabeled = any(p["name"] == last and not p["n_labeled"] for p in report["periods"])
    yield from _falls(report, report, "")
    unsure = []
    for part in report["subgroups"]:
        name, fell = escape_control(part["subgroup"]), [c for c in part["changes"] if c["since"]]
        sure = [change for change in fell if change["alarm"]]
        yield from _falls(report, {**part, "changes": sure}, f"in {name}, ")
        unsure += [f"{c['metric']} of {c['model']} in {name}" for c in fell if not c["alarm"]]
    if unsure:
        yield f"perhaps fallen: {enumerated(unsure, 4)}"
    if steady and unlabeled:
        yield (
            f"no item of {last} has a label: whether scores mean something else there than before, "
            "nobody can say"
        )
    elif steady:
        names = [f"{one['metric']} of {one['model']}" for one in steady]
        most = max(one["probability"] for one in steady)
        yield (
            f"no sign of a fall by more than {report['tolerance']:g} in {last}: "
            f"{enumerated(names, 4)} (probability at most {probability(most)})"
        )


def _falls(report: Report, part: Report, front: str) -> Iterator[str]:
    """A sentence for each fall of all items or of a subgroup, the likeliest first."""
    last, against = part["complete"], _AGAINST[part["against"]]
    for one in sorted(part["changes"], key=lambda one: -one["probability"]):
        if one["since"] is None:
            continue
        sure = "has fallen" if one["alarm"] else "has perhaps fallen"
        write = number_format([one["fall"], one["low"], one["high"]])
        yield (
            f"{front}{one['metric']} of {one['model']} {sure} since {one['since']}: by "
            f"{write(one['fall'])} [{write(one['low'])}, {write(one['high'])}] in {last} against "
            f"{against} (probability {probability(one['probability'])} of more than "
            f"{report['tolerance']:g}); what changed: {one['what']}"
        )


def render_monitoring(report: Report, width: int = 80) -> str:
    """What changed, and the estimates of the last periods of each classifier and metric.

    `report` is the dictionary of `Monitoring.to_dict`.
    """
    width = max(width, NARROWEST)
    periods = report["periods"]
    n = sum(period["n_items"] for period in periods)
    labels = sum(period["n_labeled"] for period in periods)
    head = (
        f"{plural(n, 'item')}, {plural(labels, 'label')}, {plural(len(periods), 'period')} of "
        f"{escape_control(report['time'])}, from {periods[0]['name']} to {periods[-1]['name']}"
    )
    lines = [style(line, "title") for line in wrap(head, width, "  ")]
    for sentence in verdicts(report):
        wrapped = wrap(f"- {sentence}", width, "  ")
        sure = "has fallen" in sentence
        lines += [style(line, "warning") if sure else line for line in wrapped]
    for series in series_of(report):
        lines += ["", style(f"{escape_control(series.model)}: {series.metric}", "title")]
        lines += _table(series, width)
        lasts = last_rows(report, series.model, series.metric)
        if lasts:
            cells = [["last period of", *_HEAD[1:]], *([row[0], *row[2:]] for row in lasts)]
            lines += ["", *fitted(cells, "lrrrrl", width, least=10)]
    moved = moved_numbers(report)
    if moved:
        lines += ["", "Unlike all periods before, without any label:"]
        lines += [line for text in moved for line in wrap(f"- {text}", width, "  ")]
    made = (
        f"{percent(report['confidence_level'])} intervals; P(fall): probability that it is lower "
        f"by more than {report['tolerance']:g} than {_AGAINST[report['against']]}; "
        f"{made_by(report)}"
    )
    lines += ["", *(style(line, "soft") for line in wrap(made, width))]
    return as_text([*lines, *warning_lines(report, width)])


@dataclass(frozen=True)
class Series:
    """A metric of a classifier: its row, period and probability of a fall, and the change, if any.

    Periods without an estimate are left out.
    """

    model: str
    metric: str
    rows: list[Mapping[str, Any]]
    periods: list[Mapping[str, Any]]
    falls: list[float | None]
    change: Mapping[str, Any] | None


def series_of(report: Report, part: Report | None = None) -> list[Series]:
    """Every metric of every classifier, in the order of the estimates, of a subgroup or of all."""
    part = report if part is None else part
    place = {f"{report['time']}={p['name']}": i for i, p in enumerate(part["periods"])}
    falls = {(one["model"], one["metric"]): one["probability"] for one in part["falls"]}
    changes = {(one["model"], one["metric"]): one for one in part["changes"]}
    rows: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in part["estimates"]:
        if row["group"] in place:
            rows.setdefault((row["model"], row["metric"]), []).append(row)
    out = []
    for key, some in rows.items():
        ordered = sorted(some, key=lambda row: place[row["group"]])
        places = [place[row["group"]] for row in ordered]
        fell = falls.get(key, [None] * len(place))
        periods = [part["periods"][i] for i in places]
        change = changes.get(key)
        out.append(Series(*key, ordered, periods, [fell[i] for i in places], change))
    return out


def last_rows(report: Report, model: str, metric: str) -> list[list[str]]:
    """The last period of every subgroup, by one metric of a classifier: cells of a table."""
    return [
        [escape_control(part["subgroup"]), *_cells(series)[-1]]
        for part in report["subgroups"]
        for series in series_of(report, part)
        if (series.model, series.metric) == (model, metric)
    ]


def moved_numbers(report: Report) -> list[str]:
    """The periods in which something moved that is seen without a label, and what."""
    return [
        f"{period['name']}: {enumerated(list(period['moved']), 4)}"
        for period in report["periods"]
        if period["moved"]
    ]


_HEAD = ("period", "items", "labels", "estimate", "P(fall)", "status")


def _cells(series: Series) -> list[list[str]]:
    """Every period as the cells of a table."""
    write = number_format([row[end] for row in series.rows for end in ("value", "low", "high")])
    return [
        [
            period["name"],
            count(period["n_items"]),
            count(period["n_labeled"]),
            with_interval(row, write),
            probability(fall),
            row["status"],
        ]
        for row, period, fall in zip(series.rows, series.periods, series.falls, strict=True)
    ]


def _table(series: Series, width: int) -> list[str]:
    """The last periods, a line each."""
    cells = _cells(series)
    out = fitted([_HEAD, *cells[-_MOST_PERIODS:]], "lrrrrl", width, least=10)
    if len(cells) > _MOST_PERIODS:
        out.insert(1, f"  ... {plural(len(cells) - _MOST_PERIODS, 'earlier period')} in the JSON")
    return out


# The page -----------------------------------------------------------------------------------------

_HEIGHT, _SMALL, _LABELS = 200, 120, 16
"""Pixels of a plot, of one of a subgroup, and of what shows the labels of a period."""

_MOST_TICKS, _FEW_TICKS, _MOST_PANELS = 5, 3, 20

_MOST_ROWS, _LEAST_ROWS = 360, 8
"""Rows of all tables together, and tooltips of all plots; of each at least so many of the last."""


@dataclass(frozen=True, kw_only=True)
class SeriesView(View):
    """A panel of a metric over time; `since` is where its fall began, in percent across.

    `labels` are bars below, as high as a period has labels.
    """

    since: float | None
    labels: str
    table: list[list[str]]
    left_out: int


@dataclass(frozen=True)
class Timeline:
    """The periods of a page in order, those without items too, and how ticks write them."""

    names: tuple[str, ...]
    x_name: str

    @staticmethod
    def of(report: Report) -> Timeline:
        """The periods of all items."""
        names = [period["name"] for period in report["periods"]]
        names = sorted([*names, *report["gaps"]]) if report["gaps"] else names
        years = {name[:4] for name in names}
        one = len(years) == 1 and names[0].count("-") == 2
        x_name = f"{report['time']}, {names[0][:4]}" if one else report["time"]
        return Timeline(tuple(names), x_name)

    def axis(self, most: int) -> Axis:
        """Positions from 0 on, with at most so many ticks."""
        step = -(-len(self.names) // most)
        shown = range(0, len(self.names), step)
        dates = all(name.count("-") == 2 for name in self.names)
        cut = slice(5, None) if "," in self.x_name else slice(0, 7) if dates else slice(None)
        texts = tuple(self.names[i][cut] for i in shown)
        return Axis(0.0, float(len(self.names) - 1), tuple(map(float, shown)), texts)

    def runs(self, series: Series) -> list[list[tuple[float, Mapping[str, Any]]]]:
        """Estimates at their positions, in stretches without a gap."""
        out: list[list[tuple[float, Mapping[str, Any]]]] = []
        before = None
        for row, period in zip(series.rows, series.periods, strict=True):
            at = self.names.index(period["name"])
            if row["value"] is None:
                continue
            if before != at - 1:
                out.append([])
            out[-1].append((float(at), row))
            before = at
        # One by itself is a short line.
        return [run if len(run) > 1 else [(at + d, r) for at, r in run for d in (-0.3, 0.3)]
                for run in out]  # fmt: skip


def _scale(*several: Series) -> Scale:
    """The scale of a metric of some series."""
    ends = ("low", "high", "value")
    return Scale(fit_axis([r[end] for s in several for r in s.rows for end in ends], (None, None)))


def series_view(
    series: Series, timeline: Timeline, up: Scale, most: int, of: str | None = None
) -> SeriesView:
    """Estimates with their band, bars for the labels of each period, the level before dashed.

    The table and the tooltips are of so many of the last periods; `of` names a subgroup, whose
    panel is smaller and without them.
    """
    across = Scale(timeline.axis(_MOST_TICKS if of is None else _FEW_TICKS))
    panel = Panel(across, up, _HEIGHT if of is None else _SMALL)
    write = number_format([r[end] for r in series.rows for end in ("value", "low", "high")])
    change = series.change
    texts = [
        f"{p['name']}: {with_interval(row, write)}, {plural(p['n_labeled'], 'label')} of "
        f"{plural(p['n_items'], 'item')}"
        + ("" if fall is None else f", P(fall) {probability(fall)}")
        for row, p, fall in zip(series.rows, series.periods, series.falls, strict=True)
    ]
    there = [timeline.names.index(p["name"]) for p in series.periods]
    edges = [100 * panel.x.at(i) for i in there]
    middles = [0.0, *((a + b) / 2 for a, b in itertools.pairwise(edges)), 100.0]
    since = change["since"] if change else None
    runs = timeline.runs(series)
    cells = _cells(series) if of is None else []
    tips = strips(middles, texts)[-most:] if of is None else ()
    return SeriesView(
        **vars(panel),
        title=f"{series.metric} of {series.model}" + ("" if of is None else f", {of}"),
        x_name=timeline.x_name,
        y_name=series.metric if of is None else of,
        band="".join(panel.outline((at, r["low"], r["high"]) for at, r in run) for run in runs),
        line="".join(panel.path((at, r["value"]) for at, r in run) for run in runs),
        reference=panel.level(change["before"] if change else None),
        strips=tips,
        description="; ".join(texts[-3:]),
        marks=(),
        since=None if since is None else 100 * panel.x.at(timeline.names.index(since) - 0.5),
        labels=_label_bars(edges, [p["n_labeled"] for p in series.periods], panel.height),
        table=cells[-most:],
        left_out=max(len(cells) - most, 0),
    )


def _label_bars(at: Sequence[float], numbers: Sequence[int], height: int) -> str:
    """Bars at the foot of a plot: a path of SVG, as high as the square roots of numbers."""
    most = max(numbers, default=0) or 1
    drawn = zip(at, numbers, strict=True)
    return "".join(f"M{x:.1f} {height}v-{_LABELS * (n / most) ** 0.5:.1f}" for x, n in drawn if n)


@dataclass(frozen=True)
class Multiples:
    """Panels of the subgroups by one metric of a classifier, and their last period."""

    metric: str
    views: list[SeriesView]
    rows: list[list[str]]


def small_multiples(report: Report, timeline: Timeline) -> tuple[dict[str, list[Multiples]], int]:
    """The panels of the subgroups by classifier, and how many are left out of the page."""
    several: dict[tuple[str, str], list[tuple[str, Series]]] = {}
    for part in report["subgroups"]:
        for series in series_of(report, part):
            named = (str(part["subgroup"]), series)
            several.setdefault((series.model, series.metric), []).append(named)
    out: dict[str, list[Multiples]] = {}
    room, left_out = _MOST_PANELS, 0
    for (model, metric), each in several.items():
        if len(each) > room:
            left_out += len(each)
            continue
        room -= len(each)
        up = _scale(*(series for _, series in each))
        views = [series_view(series, timeline, up, 0, name) for name, series in each]
        rows = last_rows(report, model, metric)
        out.setdefault(model, []).append(Multiples(metric, views, rows))
    return out, left_out


def render_monitoring_html(report: Report, *, fragment: bool = False) -> str:
    """What changed, a panel per classifier and metric, and a table of all periods, as a page.

    `report` is the dictionary of `Monitoring.to_dict`.
    """
    timeline = Timeline.of(report)
    by_model: dict[str, list[SeriesView]] = {}
    every = series_of(report)
    most = max(_MOST_ROWS // max(len(every), 1), _LEAST_ROWS)
    for series in every:
        view = series_view(series, timeline, _scale(series), most)
        by_model.setdefault(series.model, []).append(view)
    multiples, left_out = small_multiples(report, timeline)
    answer, *rest = verdicts(report)
    return render(
        "monitoring.html.j2",
        ("curve_series.css", "curve.css", "monitoring.css") if fragment else None,
        report=report,
        answer=answer,
        rest=rest,
        by_model=by_model,
        multiples=multiples,
        left_out=left_out,
        moved=moved_numbers(report),
        labels=sum(period["n_labeled"] for period in report["periods"]),
        items=sum(period["n_items"] for period in report["periods"]),
        against=_AGAINST[report["against"]],
        level=percent(report["confidence_level"]),
    )
