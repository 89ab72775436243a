"""Performance over time, as text: what changed and since when, then a table per classifier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fewlabels.report.blocks import Report
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
    by_series: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in report["estimates"]:
        if row["group"] is not None:
            by_series.setdefault((row["model"], row["metric"]), []).append(row)
    falls = {(one["model"], one["metric"]): one["probability"] for one in report["falls"]}
    for (model, metric), rows in by_series.items():
        lines += ["", style(f"{escape_control(model)}: {metric}", "title")]
        lines += _table(report, rows, falls.get((model, metric)), width)
    moved = [
        f"{period['name']}: {enumerated(list(period['moved']), 4)}"
        for period in periods
        if period["moved"]
    ]
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


def _table(
    report: Report, rows: list[Mapping[str, Any]], falls: list[float | None] | None, width: int
) -> list[str]:
    """The last periods, a line each."""
    place = {f"{report['time']}={p['name']}": i for i, p in enumerate(report["periods"])}
    write = number_format([row[end] for row in rows for end in ("value", "low", "high")])
    cells = [["period", "items", "labels", "estimate", "P(fall)", "status"]]
    for row in sorted(rows, key=lambda row: place[row["group"]])[-_MOST_PERIODS:]:
        i = place[row["group"]]
        period = report["periods"][i]
        fall = None if falls is None else falls[i]
        cells.append(
            [
                period["name"],
                count(period["n_items"]),
                count(period["n_labeled"]),
                with_interval(row, write),
                probability(fall),
                row["status"],
            ]
        )
    out = fitted(cells, "lrrrrl", width, least=10)
    if len(rows) > _MOST_PERIODS:
        out.insert(1, f"  ... {plural(len(rows) - _MOST_PERIODS, 'earlier period')} in the JSON")
    return out
