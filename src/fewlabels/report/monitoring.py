"""Performance over time: what changed and since when, then each period, as curves and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from fewlabels.report.axis import Axis, Panel, View, fit_axis
from fewlabels.report.blocks import Report, grouped
from fewlabels.report.curves import strips_at
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
    counts,
    name,
    plain,
    sentence,
    strong,
)
from fewlabels.report.words import (
    count,
    enumerated,
    made_by,
    metric_name,
    number_format,
    percent,
    plural,
    probability,
    with_interval,
)

_MOST_PERIODS = 20
"""Rows of a table; a drawing has all periods."""

_KEY = itemgetter("model", "metric")
_DRAWN = (50, 20, 6, 0)
LEVELS = len(_DRAWN)
"""Groups of a metric that are drawn, fewer at each level."""

_HEADS = ("items", "labels", "estimate", "P(fall)")
_AGAINST = {
    "first": "the first periods",
    "trailing": "the mean of the periods before",
    "reference": "the reference",
}


def verdicts(report: Report) -> Iterator[str]:
    """A sentence per classifier and metric: alarms, then what may have fallen, then the rest.

    Of subgroups, what has surely fallen, and in one sentence what may have.
    """
    last, unsure = report["complete"], []
    for part in (report, *report["subgroups"]):
        where = "" if part is report else f"in {name(part['subgroup'])}"
        fell = [one for one in part["changes"] if one["since"] is not None]
        newest = f"{report['time']}={part['complete']}"
        now = {_KEY(row): row["value"] for row in part["estimates"] if row["group"] == newest}
        for one in sorted(fell, key=lambda one: -one["probability"]):
            if where and not one["alarm"]:
                unsure.append(f"{_which(one)} {where}")
                continue
            # A fall is worse: of an error it is a rise.
            way = "risen" if (now.get(_KEY(one)) or 0.0) > one["before"] else "fallen"
            sure = strong(f"has {way}") if one["alarm"] else f"has perhaps {way}"
            yield (
                f"{where and where + ', '}{_which(one)} {sure} since {one['since']}: by "
                f"{with_interval({**one, 'value': one['fall']})} in {part['complete']} against "
                f"{_AGAINST[part['against']]} (probability {probability(one['probability'])} of "
                f"more than {report['tolerance']:g}); what changed: {one['what']}"
            )
    if unsure:
        yield f"perhaps worse: {enumerated(unsure, 4)}"
    steady = [one for one in report["changes"] if one["since"] is None]
    if steady and any(p["name"] == last and not p["n_labeled"] for p in report["periods"]):
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
    elif not report["changes"]:
        yield f"nothing to compare {last} with yet; a later run with this state goes on from it"


def _which(one: Mapping[str, Any]) -> str:
    return f"{plain(metric_name(one['metric']))} of {name(one['model'])}"


class Point(NamedTuple):
    """The place of a period among all, the period, its estimate, how likely it is a fall."""

    at: int
    period: Mapping[str, Any]
    row: Mapping[str, Any]
    text: str
    fall: float | None


class Series(NamedTuple):
    """A metric of a classifier: periods that have an estimate, and the change, if any."""

    model: str
    metric: str
    points: Sequence[Point]
    change: Mapping[str, Any] | None


_ENDS = ("value", "low", "high")


def series_of(report: Report, part: Report, names: Sequence[str]) -> dict[Any, Series]:
    """By classifier and metric, in the order of the estimates: of a subgroup or of all items."""
    periods = {f"{report['time']}={one['name']}": one for one in part["periods"]}
    falls, changes = ({_KEY(one): one for one in part[of]} for of in ("falls", "changes"))
    rows = grouped((row for row in part["estimates"] if row["group"] in periods), _KEY)
    out = {}
    for key, some in rows.items():
        write = number_format(row[end] for row in some for end in _ENDS)
        known = falls[key]["probability"] if key in falls else [None] * len(periods)
        fell = dict(zip(periods, known, strict=True))
        points = [
            Point(names.index(period["name"]), period, row, with_interval(row, write), fell[group])
            for row in some
            for group, period in [(row["group"], periods[row["group"]])]
        ]
        out[key] = Series(key[0], key[1], sorted(points), changes.get(key))
    return out


def _table(title: str, head: str, points: Mapping[str, Point], note: str = "") -> Table:
    """A period each, or the same one of each group."""
    rows = [
        [who, count(one.period["n_items"]), count(one.period["n_labeled"]), one.text,
         probability(one.fall)]
        for who, one in points.items()
    ]  # fmt: skip
    heads, chips = (head, *_HEADS), [one.row["status"] for one in points.values()]
    return Table(heads, rows, title, chips=chips, note=note)


# What is drawn ------------------------------------------------------------------------------------

_LARGE, _SMALL, _LABELS = (200, 5), (120, 3), 16
"""Pixels of a plot and its ticks, those of a subgroup, and pixels for the labels of a period."""


@dataclass(frozen=True, kw_only=True)
class SeriesView(View):
    """A panel of a metric over time; `since` is where its fall began, in percent across.

    `labels` are bars below, as high as a period has labels.
    """

    since: float | None
    labels: str


def _scale(several: Iterable[Series]) -> Axis:
    """One scale for a metric of some series."""
    numbers = (one.row[end] for series in several for one in series.points for end in _ENDS)
    return fit_axis(numbers, (None, None))


def _times(names: Sequence[str], most: int) -> Axis:
    """Places of periods, with so many ticks; dates are as short as tells them apart."""
    dates, one_year = all(name.count("-") == 2 for name in names), len({n[:4] for n in names}) == 1
    cut = slice(0, None) if not dates else slice(5, None) if one_year else slice(0, 7)
    shown = range(0, len(names), -(-len(names) // most))
    texts = tuple(names[i][cut] for i in shown)
    return Axis(0.0, float(max(len(names) - 1, 1)), tuple(map(float, shown)), texts)


def _runs(points: Sequence[Point]) -> Iterator[list[tuple[float, Any, Any, Any]]]:
    """Estimates at their places, in stretches without a gap."""
    known = [one for one in points if one.row["value"] is not None]
    for _, run in groupby(enumerate(known), lambda pair: pair[1].at - pair[0]):
        ends = [(float(one.at), *(one.row[end] for end in _ENDS)) for _, one in run]
        # One by itself is a short line.
        yield ends if len(ends) > 1 else [(ends[0][0] + d, *ends[0][1:]) for d in (-0.3, 0.3)]


def _view(series: Series, time: str, names: Sequence[str], up: Axis, group: str = "") -> SeriesView:
    """Estimates with their band, bars for the labels of each period, the level before dashed.

    A panel of a group is smaller, and has no tooltips.
    """
    points, change = series.points, series.change
    height, ticks = _SMALL if group else _LARGE
    panel = Panel(_times(names, ticks), up, height)
    texts = [
        f"{one.period['name']}: {one.text}, {plural(one.period['n_labeled'], 'label')} of "
        f"{plural(one.period['n_items'], 'item')}"
        + ("" if one.fall is None else f", P(fall) {probability(one.fall)}")
        for one in points
    ]
    labels = [(100 * panel.x.at(one.at), one.period["n_labeled"]) for one in points]
    tallest = max(number for _, number in labels)
    since = change and change["since"]
    one_year = len({n[:4] for n in names}) == 1 and names[0].count("-") == 2
    return SeriesView(
        **vars(panel),
        title=f"{series.metric} of {series.model}{group and f', {group}'}",
        x_name=f"{time}, {names[0][:4]}" if one_year else time,
        y_name="" if group else series.metric,
        runs=[*_runs(points)],
        dashed=panel.level(change["before"] if change else None),
        strips=() if group else strips_at(panel, [one.at for one in points], texts),
        description="; ".join(texts[-3:]),
        since=None if since is None else 100 * panel.x.at(names.index(since) - 0.5),
        # Bars at the foot, as high as the square roots of numbers.
        labels="".join(
            f"M{x:.1f} {height}v-{_LABELS * (n / tallest) ** 0.5:.1f}" for x, n in labels if n
        ),
    )


# The whole ----------------------------------------------------------------------------------------


def _classifiers(report: Report, names: Sequence[str], most: int) -> Iterator[Node]:
    """Each classifier: its metrics over time, then each by period, and by group."""
    time, of_groups = report["time"], dict[Any, dict[str, Series]]()
    for part in report["subgroups"]:
        for key, one in series_of(report, part, names).items():
            of_groups.setdefault(key, {})[str(part["subgroup"])] = one
    legend = Legend([
        ("median", "estimate"), ("band", f"{percent(report['confidence_level'])} interval"),
        ("chance", _AGAINST[report["against"]]), ("since", "since it fell"),
        ("labels", "labels of a period"),
    ])  # fmt: skip
    every = series_of(report, report, names).values()
    for model, several in grouped(every, attrgetter("model")).items():
        panels = [
            Drawing("curve", _view(one, time, names, _scale([one])), one.metric) for one in several
        ]
        body: list[Node] = [legend, Group("panels", panels)]
        for one in several:
            last = {point.period["name"]: point for point in one.points[-_MOST_PERIODS:]}
            earlier = len(one.points) - len(last)
            note = f"{plural(earlier, 'earlier period')}: in the JSON" if earlier else ""
            title = f"{one.metric}, period by period"
            body.append(Fold(title, [_table(title, "period", last, note)]))
            if groups := of_groups.get(one[:2]):
                up, title = _scale(groups.values()), f"{one.metric} by group"
                small = [
                    Drawing("curve", _view(own, time, names, up, group), name(group))
                    for group, own in [*groups.items()][:most]
                ]
                body.append(Section(title, [Group("panels small", small)], on="page"))
                last = {group: own.points[-1] for group, own in groups.items()}
                title = f"{title}, the last period"
                body.append(Fold(title, [_table(title, "group", last)]))
        yield Section(name(model), body)
    left_out = sum(max(len(groups) - most, 0) for groups in of_groups.values())
    if left_out:
        yield Para(f"{count(left_out)} panels of groups are left out of this page; their numbers "
                   "are in the JSON and the table.", "soft", on="page")  # fmt: skip


def document(report: Report, *, level: int = 0) -> Document:
    """All that is said of `Monitoring.to_dict`."""
    periods, against = report["periods"], _AGAINST[report["against"]]
    names = [period["name"] for period in periods]
    names = sorted([*names, *report["gaps"]]) if report["gaps"] else names
    fall = f"that the metric is worse by more than {report['tolerance']:g} than {against}"
    moved = [
        f"{period['name']}: {enumerated([*map(name, period['moved'])], 4)}"
        for period in periods
        if period["moved"]
    ]
    answer, *rest = map(sentence, verdicts(report))
    terms = {
        "Gap": f"Periods without items ({', '.join(report['gaps'])}) are white: nothing is "
        "estimated there.",
        "By group": "The items of a group are estimated by themselves, from its own labels. They "
        "are compared with its own first periods or reference. With many groups one falls by "
        "chance more often than one in twenty.",
        "Estimate and interval": "What a score means walks from period to period. Labels of a "
        "period move it and its neighbours, and a period without labels is less certain.",
        "P(fall)": f"The probability {fall}.",
        "P(class | scores), the mix of items": "A metric falls because scores mean something else "
        "than before, or because other items come, of which the classifier was always less sure. "
        "The second part is what the old meaning of the scores says of the new items.",
    }
    known = {"Gap": report["gaps"], "By group": report["subgroups"]}
    return Document(
        "Is it still as good?",
        report,
        counts(report) | {
            "Periods": len(periods),
            "Time": f"{name(report['time'])}, {periods[0]['name']} to {periods[-1]['name']}",
        },
        answer=[answer],
        body=[
            Section("The other metrics, classifiers and groups", [Listing(rest)]),
            *_classifiers(report, names, _DRAWN[level]),
            *([Section("What moved, seen without a label", [
                Para("Numbers of a period that lie outside of what the periods before it foretell, "
                     "at 5% for a year of weekly looks.", "soft"),
                Listing(moved),
            ])] if moved else []),
        ],
        terms={term: meaning for term, meaning in terms.items() if known.get(term, True)},
        foot=[
            f"{percent(report['confidence_level'])} intervals; P(fall): probability {fall}; "
            f"{made_by(report)}"
        ],
    )  # fmt: skip
