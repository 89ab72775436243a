"""Performance over time: what changed and since when, then each period, as curves and tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewlabels.report.axis import Axis, Panel, View, fit_axis, strips
from fewlabels.report.blocks import Report
from fewlabels.report.document import (
    Document,
    Drawing,
    Fold,
    Group,
    Legend,
    Listing,
    Node,
    Para,
    Section,
    Table,
    name,
    sentence,
    strong,
)
from fewlabels.report.words import (
    count,
    enumerated,
    made_by,
    number_format,
    percent,
    plural,
    probability,
    with_interval,
)

_MOST_PERIODS, _MOST_PRINTED = 14, 20
"""Rows of a table: in a text, and on paper."""

_HEAD = ("items", "labels", "estimate", "P(fall)")

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
        group, fell = name(part["subgroup"]), [c for c in part["changes"] if c["since"]]
        sure = [change for change in fell if change["alarm"]]
        yield from _falls(report, {**part, "changes": sure}, f"in {group}, ")
        unsure += [f"{_which(change)} in {group}" for change in fell if not change["alarm"]]
    if unsure:
        yield f"perhaps fallen: {enumerated(unsure, 4)}"
    if steady and unlabeled:
        yield (
            f"no item of {last} has a label: whether scores mean something else there than before, "
            "nobody can say"
        )
    elif steady:
        most = max(one["probability"] for one in steady)
        yield (
            f"no sign of a fall by more than {report['tolerance']:g} in {last}: "
            f"{enumerated([*map(_which, steady)], 4)} (probability at most {probability(most)})"
        )


def _which(one: Mapping[str, Any]) -> str:
    return f"{one['metric']} of {name(one['model'])}"


def _falls(report: Report, part: Report, front: str) -> Iterator[str]:
    """A sentence for each fall of all items or of a subgroup, the likeliest first."""
    last, against = part["complete"], _AGAINST[part["against"]]
    for one in sorted(part["changes"], key=lambda one: -one["probability"]):
        if one["since"] is None:
            continue
        sure = strong("has fallen") if one["alarm"] else "has perhaps fallen"
        write = number_format([one["fall"], one["low"], one["high"]])
        yield (
            f"{front}{_which(one)} {sure} since {one['since']}: by "
            f"{write(one['fall'])} [{write(one['low'])}, {write(one['high'])}] in {last} against "
            f"{against} (probability {probability(one['probability'])} of more than "
            f"{report['tolerance']:g}); what changed: {one['what']}"
        )


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

    @property
    def key(self) -> tuple[str, str]:
        """The classifier and the metric."""
        return self.model, self.metric


_Groups = dict[tuple[str, str], dict[str, Series]]
"""By classifier and metric, then by group."""


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


def _cells(series: Series) -> list[list[str]]:
    """Every period as the cells of a table."""
    write = number_format([row[end] for row in series.rows for end in ("value", "low", "high")])
    return [
        [
            period["name"], count(period["n_items"]), count(period["n_labeled"]),
            with_interval(row, write), probability(fall),
        ]
        for row, period, fall in zip(series.rows, series.periods, series.falls, strict=True)
    ]  # fmt: skip


def _table(series: Series, most: int) -> Table:
    """The last periods, a row each."""
    cells, earlier = _cells(series), len(series.rows) - most
    return Table(
        ["period", *_HEAD], cells[-most:], f"{series.metric} of {series.model}, period by period",
        chips=[row["status"] for row in series.rows[-most:]],
        note=f"{plural(earlier, 'earlier period')}: in the JSON" if earlier > 0 else "",
    )  # fmt: skip


def _last_periods(title: str, by_group: Mapping[str, Series]) -> Table:
    """The last period of every group, by one metric of a classifier."""
    return Table(
        ["group", *_HEAD], [[group, *_cells(one)[-1][1:]] for group, one in by_group.items()],
        title, chips=[one.rows[-1]["status"] for one in by_group.values()],
    )  # fmt: skip


# What is drawn ------------------------------------------------------------------------------------

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


def _scale(*several: Series) -> Axis:
    """The scale of a metric of some series."""
    ends = ("low", "high", "value")
    return fit_axis([r[end] for s in several for r in s.rows for end in ends], (None, None))


def series_view(
    series: Series, timeline: Timeline, up: Axis, most: int, of: str | None = None
) -> SeriesView:
    """Estimates with their band, bars for the labels of each period, the level before dashed.

    Tooltips are of so many of the last periods; `of` names a subgroup, whose panel is smaller.
    """
    across = timeline.axis(_MOST_TICKS if of is None else _FEW_TICKS)
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
    return SeriesView(
        **vars(panel),
        title=f"{series.metric} of {series.model}" + ("" if of is None else f", {of}"),
        x_name=timeline.x_name,
        y_name=series.metric if of is None else "",
        runs=[
            [(at, r["value"], r["low"], r["high"]) for at, r in run]
            for run in timeline.runs(series)
        ],
        dashed=panel.level(change["before"] if change else None),
        strips=strips(middles, texts)[-most:] if most else (),
        description="; ".join(texts[-3:]),
        since=None if since is None else 100 * panel.x.at(timeline.names.index(since) - 0.5),
        labels=_label_bars(edges, [p["n_labeled"] for p in series.periods], panel.height),
    )


def _label_bars(at: Sequence[float], numbers: Sequence[int], height: int) -> str:
    """Bars at the foot of a plot: a path of SVG, as high as the square roots of numbers."""
    most = max(numbers, default=0) or 1
    drawn = zip(at, numbers, strict=True)
    return "".join(f"M{x:.1f} {height}v-{_LABELS * (n / most) ** 0.5:.1f}" for x, n in drawn if n)


# The whole ----------------------------------------------------------------------------------------


def _classifier(
    several: Sequence[Series], groups: _Groups, timeline: Timeline, most: int, legend: Legend
) -> Section:
    """A classifier on a page: its metrics over time, those of `groups`, then period by period."""
    body: list[Node] = [
        legend,
        Group("panels", [
            Drawing("curve", series_view(one, timeline, _scale(one), most), one.metric)
            for one in several
        ]),
    ]  # fmt: skip
    for title, by_group in (
        (f"{one.metric} by group", groups[one.key]) for one in several if one.key in groups
    ):
        up = _scale(*by_group.values())
        small = [
            Drawing("curve", series_view(one, timeline, up, 0, group), name(group))
            for group, one in by_group.items()
        ]
        summary = f"{title}, the last period"
        last = Fold(summary, [_last_periods(summary, by_group)])
        body.append(Section(title, [Group("panels small", small), last]))
    for one in several:
        table = _table(one, most)
        # Long tables would take pages of paper each.
        short = len(table.rows) <= _MOST_PRINTED
        body.append(Fold(f"{one.metric}, period by period", [table], printed=short))
    return Section(name(several[0].model), body, on="page")


def _printed(series: Series, by_group: Mapping[str, Series] | None) -> Iterator[Section]:
    """A metric of a classifier as tables of a text."""
    title = f"{name(series.model)}: {series.metric}"
    yield Section(title, [_table(series, _MOST_PERIODS)], on="text")
    if by_group:
        title = f"{title} by group, the last period"
        yield Section(title, [_last_periods(title, by_group)], on="text")


def document(report: Report) -> Document:
    """All that is said of `Monitoring.to_dict`."""
    periods, timeline, against = report["periods"], Timeline.of(report), _AGAINST[report["against"]]
    n, labels = (sum(period[of] for period in periods) for of in ("n_items", "n_labeled"))
    level, tolerance = percent(report["confidence_level"]), report["tolerance"]
    first, last = periods[0]["name"], periods[-1]["name"]
    every, groups = series_of(report), _Groups()
    for part in report["subgroups"]:
        for one in series_of(report, part):
            groups.setdefault(one.key, {})[str(part["subgroup"])] = one
    room, drawn = _MOST_PANELS, _Groups()
    for key, by_group in groups.items():
        if len(by_group) <= room:
            room, drawn[key] = room - len(by_group), by_group
    left_out = sum(map(len, groups.values())) - sum(map(len, drawn.values()))
    by_model: dict[str, list[Series]] = {}
    for one in every:
        by_model.setdefault(one.model, []).append(one)
    most = max(_MOST_ROWS // max(len(every), 1), _LEAST_ROWS)
    legend = Legend([
        ("median", "estimate"), ("band", f"{level} interval"), ("chance", against),
        ("since", "since it fell"), ("labels", "labels of a period"),
    ])  # fmt: skip
    moved = [
        f"{period['name']}: {enumerated([*map(name, period['moved'])], 4)}"
        for period in periods
        if period["moved"]
    ]
    answer, *rest = map(sentence, verdicts(report))
    return Document(
        "Is it still as good?",
        report,
        head=[
            f"{plural(n, 'item')}, {plural(labels, 'label')}, {plural(len(periods), 'period')} of "
            f"{name(report['time'])}, from {first} to {last}"
        ],
        answer=[answer],
        facts={
            "Periods": len(periods), "From": first, "To": last, "Items": n, "Labeled": labels,
        },
        body=[
            *([Section("The other metrics, classifiers and groups", [Listing(rest)])]
              if rest else []),
            *(_classifier(of, drawn, timeline, most, legend) for of in by_model.values()),
            *(part for one in every for part in _printed(one, groups.get(one.key))),
            *([Para(f"{count(left_out)} panels of groups are left out of this page; their numbers "
                    "are in the JSON and the table.", "soft", on="page")] if left_out else []),
            *([Section("What moved, seen without a label", [
                Para("Numbers of a period that lie outside of what the periods before it foretell, "
                     "at 5% for a year of weekly looks.", "soft"),
                Listing(moved),
            ])] if moved else []),
        ],
        terms=_terms(report, against),
        foot=[
            f"{level} intervals; P(fall): probability that it is worse by more than {tolerance:g} "
            f"than {against}; {made_by(report)}"
        ],
        warnings=report["warnings"],
    )  # fmt: skip


def _terms(report: Report, against: str) -> dict[str, str]:
    terms = {}
    if report["gaps"]:
        gaps = ", ".join(report["gaps"])
        terms["Gap"] = f"Periods without items ({gaps}) are white: nothing is estimated there."
    if report["subgroups"]:
        terms["By group"] = (
            "The items of a group are estimated by themselves, from its own labels. They are "
            "compared with its own first periods or reference. With many groups one falls by "
            "chance more often than one in twenty."
        )
    return terms | {
        "Estimate and interval": "What a score means walks from period to period. Labels of a "
        "period move it and its neighbours, and a period without labels is less certain.",
        "P(fall)": "The probability that the metric is worse by more than "
        f"{report['tolerance']:g} than {against}.",
        "P(class | scores), the mix of items": "A metric falls because scores mean something else "
        "than before, or because other items come, of which the classifier was always less sure. "
        "The second part is what the old meaning of the scores says of the new items.",
    }
