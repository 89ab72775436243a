"""Performance over time, as text and as a page: what changed and since when, then each period."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fewlabels.report.axis import Axis, Panel, Scale, fit_axis, strips
from fewlabels.report.blocks import Report
from fewlabels.report.curve_html import View
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
    """A sentence per classifier and metric: alarms, then what may have fallen, then the rest."""
    told = sorted(report["changes"], key=lambda one: -one["probability"])
    steady = [one for one in told if one["since"] is None]
    last, against = report["periods"][-1]["name"], _AGAINST[report["against"]]
    for one in told:
        if one["since"] is None:
            continue
        sure = "has fallen" if one["alarm"] else "has perhaps fallen"
        write = number_format([one["fall"], one["low"], one["high"]])
        yield (
            f"{one['metric']} of {one['model']} {sure} since {one['since']}: by "
            f"{write(one['fall'])} [{write(one['low'])}, {write(one['high'])}] in {last} against "
            f"{against} (probability {probability(one['probability'])} of more than "
            f"{report['tolerance']:g}); what changed: {one['what']}"
        )
    if steady:
        names = [f"{one['metric']} of {one['model']}" for one in steady]
        most = max(one["probability"] for one in steady)
        yield (
            f"no sign of a fall by more than {report['tolerance']:g} in {last}: "
            f"{enumerated(names, 4)} (probability at most {probability(most)})"
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
    alarms = {one["metric"] + one["model"] for one in report["changes"] if one["alarm"]}
    for sentence in verdicts(report):
        wrapped = wrap(f"- {sentence}", width, "  ")
        sure = alarms and "has fallen" in sentence
        lines += [style(line, "warning") if sure else line for line in wrapped]
    for series in series_of(report):
        lines += ["", style(f"{escape_control(series.model)}: {series.metric}", "title")]
        lines += _table(series, width)
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


def series_of(report: Report) -> list[Series]:
    """Every metric of every classifier, in the order of the estimates."""
    place = {f"{report['time']}={p['name']}": i for i, p in enumerate(report["periods"])}
    falls = {(one["model"], one["metric"]): one["probability"] for one in report["falls"]}
    changes = {(one["model"], one["metric"]): one for one in report["changes"]}
    rows: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in report["estimates"]:
        if row["group"] in place:
            rows.setdefault((row["model"], row["metric"]), []).append(row)
    out = []
    for key, some in rows.items():
        ordered = sorted(some, key=lambda row: place[row["group"]])
        places = [place[row["group"]] for row in ordered]
        fell = falls.get(key, [None] * len(place))
        periods = [report["periods"][i] for i in places]
        change = changes.get(key)
        out.append(Series(*key, ordered, periods, [fell[i] for i in places], change))
    return out


def moved_numbers(report: Report) -> list[str]:
    """The periods in which something moved that is seen without a label, and what."""
    return [
        f"{period['name']}: {enumerated(list(period['moved']), 4)}"
        for period in report["periods"]
        if period["moved"]
    ]


def _table(series: Series, width: int) -> list[str]:
    """The last periods, a line each."""
    rows = series.rows
    write = number_format([row[end] for row in rows for end in ("value", "low", "high")])
    cells = [
        [
            period["name"],
            count(period["n_items"]),
            count(period["n_labeled"]),
            with_interval(row, write),
            probability(fall),
            row["status"],
        ]
        for row, period, fall in zip(rows, series.periods, series.falls, strict=True)
    ]
    head = ["period", "items", "labels", "estimate", "P(fall)", "status"]
    out = fitted([head, *cells[-_MOST_PERIODS:]], "lrrrrl", width, least=10)
    if len(rows) > _MOST_PERIODS:
        out.insert(1, f"  ... {plural(len(rows) - _MOST_PERIODS, 'earlier period')} in the JSON")
    return out


# The page -----------------------------------------------------------------------------------------

_HEIGHT, _MOST_TICKS = 200, 6


@dataclass(frozen=True, kw_only=True)
class SeriesView(View):
    """A panel of a metric over time; `since` is where its fall began, in percent across."""

    since: float | None
    table: list[list[str]]


def series_view(series: Series, report: Report) -> SeriesView:
    """Estimates with their band, a tick at each period with labels, the level before dashed."""
    names = [period["name"] for period in series.periods]
    last = len(names) - 1
    step = -(-len(names) // _MOST_TICKS)
    shown = range(0, len(names), step)
    across = Axis(0.0, float(last), tuple(map(float, shown)), tuple(names[i] for i in shown))
    rows = series.rows
    up = fit_axis([row[end] for row in rows for end in ("low", "high")], (None, None))
    panel = Panel(Scale(across), Scale(up), _HEIGHT)
    write = number_format([row[end] for row in rows for end in ("value", "low", "high")])
    change = series.change
    texts = [
        f"{p['name']}: {with_interval(row, write)}, {plural(p['n_labeled'], 'label')} of "
        f"{plural(p['n_items'], 'item')}"
        + ("" if fall is None else f", P(fall) {probability(fall)}")
        for row, p, fall in zip(rows, series.periods, series.falls, strict=True)
    ]
    edges = [100 * panel.x.at(i) for i in range(len(names))]
    middles = [0.0, *((a + b) / 2 for a, b in itertools.pairwise(edges)), 100.0]
    since = change["since"] if change else None
    return SeriesView(
        **vars(panel),
        title=f"{series.metric} of {series.model}",
        x_name=report["time"],
        y_name=series.metric,
        band=panel.outline((i, row["low"], row["high"]) for i, row in enumerate(rows)),
        line=panel.path((i, row["value"]) for i, row in enumerate(rows)),
        reference=panel.level(change["before"] if change else None),
        strips=strips(middles, texts),
        description="; ".join(texts[-3:]),
        marks=(),
        since=None if since not in names else 100 * panel.x.at(names.index(since)),
        table=[
            [
                p["name"], count(p["n_items"]), count(p["n_labeled"]), with_interval(row, write),
                probability(fall), row["status"],
            ]
            for row, p, fall in zip(rows, series.periods, series.falls, strict=True)
        ],
    )  # fmt: skip


def render_monitoring_html(report: Report, *, fragment: bool = False) -> str:
    """What changed, a panel per classifier and metric, and a table of all periods, as a page.

    `report` is the dictionary of `Monitoring.to_dict`.
    """
    by_model: dict[str, list[SeriesView]] = {}
    for series in series_of(report):
        by_model.setdefault(series.model, []).append(series_view(series, report))
    answer, *rest = verdicts(report)
    return render(
        "monitoring.html.j2",
        ("curve_series.css", "curve.css", "monitoring.css") if fragment else None,
        report=report,
        answer=answer,
        rest=rest,
        by_model=by_model,
        moved=moved_numbers(report),
        labels=sum(period["n_labeled"] for period in report["periods"]),
        items=sum(period["n_items"] for period in report["periods"]),
        against=_AGAINST[report["against"]],
        level=percent(report["confidence_level"]),
    )
