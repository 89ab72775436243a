"""What a method reports beside the estimates: error rates and sharing of them, and beliefs.

Heat maps are tables of numbers whose cells have a strength of colour. They come from the part
`votes` of a report. Beliefs are diagnostics of a mixture: `answered_by`, a list of {"member",
"share", "says"}, where "says" is a sentence about the member and its share; and `reference`, whose
`weight` is the share of all members that use reference data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewlabels.report.blocks import Report
from fewlabels.report.words import (
    aligned,
    cell_width,
    count,
    enumerated,
    escape_control,
    fit,
    number_format,
    percent,
    plural,
    probability,
    short_names,
    style,
    wrap,
)

_ROOMY = 10
"""With at most so many columns, three decimals fit."""

_MOST_NAMES = 12
_MOST_GROUPS = 20
_NEVER = 0.005
"""Probabilities below this one are written as 0."""

_SETTLED = 0.05
"""A grouping with a smaller share of the draws is one of very many, and tells little."""

_ROOM = (12, 6)
"""Widths of a classifier's name: the largest that fits, at least the last."""

_DOMAIN = 24

ANSWERED_BY = "What the answer rests on"

_MOST_MEMBERS = 6
"""With more members the rest is one entry."""

_LITTLE = 0.1
"""A reference of less weight is hardly used."""


@dataclass(frozen=True)
class Cell:
    """A number and how strong its colour is, from 0 to 1; None where there is no number."""

    text: str
    heat: float | None
    title: str


@dataclass(frozen=True)
class HeatMap:
    """A table whose cells are coloured by their numbers.

    `corner` names the rows and the columns; `ends` are the numbers at both ends of the colours.
    A page has `first` above the rows' names, tooltips if `told`, and the colours as a `ramp`.
    """

    caption: str
    corner: tuple[str, str]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    ends: tuple[str, str]
    notes: tuple[str, ...] = ()
    first: str = ""
    told: bool = True
    ramp: bool = True

    @classmethod
    def from_table(
        cls,
        caption: str,
        corner: tuple[str, str],
        rows: Sequence[Any],
        columns: Sequence[Any],
        cell: Callable[[int, int], Cell],
        ends: tuple[str, str] = ("0", "1"),
        notes: Sequence[str] = (),
    ) -> HeatMap:
        """The table whose cell in row i and column j is `cell(i, j)`."""
        places = range(len(columns))
        cells = tuple((name, tuple(cell(i, j) for j in places)) for i, name in enumerate(rows))
        return cls(caption, corner, tuple(columns), cells, ends, tuple(notes))

    @property
    def dense(self) -> bool:
        """Whether the columns are too many for names that run across."""
        return len(self.columns) > _ROOMY

    def table(self, width: int) -> list[str]:
        """The table as text; empty where it does not fit."""
        rows = short_names([name for name, _ in self.rows], _DOMAIN)
        for room in range(_ROOM[0], _ROOM[1] - 1, -1):
            columns = short_names(self.columns, room)
            table = [["", *(columns[name] for name in self.columns)]]
            table += [[rows[name], *(cell.text for cell in cells)] for name, cells in self.rows]
            lines = aligned(table, "lr")
            if cell_width(lines[0]) <= width:
                return lines
        return []

    def lines(self, width: int) -> Iterator[str]:
        """The same below a gap and a heading; nothing where it does not fit."""
        if table := self.table(width):
            notes = "".join(f"; {note}" for note in self.notes)
            yield from ["", *wrap(f"{self.caption} (posterior mean){notes}", width), *table]


def error_map(report: Report) -> HeatMap | None:
    """Error rates by domain and classifier; None where the report has none."""
    rates = (report.get("votes") or {}).get("error_rates")
    if not rates:
        return None
    models, domains = rates["models"], rates["domains"]
    defined = [v for row in rates["value"] for v in row if v is not None]
    top = max(defined, default=0.0) or 1.0
    write = number_format(defined) if len(models) <= _ROOMY else "{:.2f}".format

    def cell(d: int, m: int) -> Cell:
        value, votes = rates["value"][d][m], rates["n_votes"][d][m]
        who = f"{domains[d]}, {models[m]}"
        if value is None:
            return Cell("-", None, f"{who}: {'not known' if votes else 'no votes'}")
        exact = number_format([value])
        ends = f"{exact(rates['low'][d][m])} to {exact(rates['high'][d][m])}"
        text = f"{exact(value)}, {percent(rates['level'])} interval {ends}; {plural(votes, 'vote')}"
        return Cell(write(value), value / top, f"{who}: {text}")

    notes = [
        f"the {len(names)} of {plural(total, what)} with the largest mean error rate"
        for names, total, what in (
            (domains, rates["n_domains"], "domain"), (models, rates["n_models"], "classifier"),
        )
        if len(names) < total
    ]  # fmt: skip
    corner, ends = ("domain", "classifier"), ("0", number_format([top])(top))
    caption = "Error rates by domain and classifier"
    return HeatMap.from_table(caption, corner, domains, models, cell, ends, notes)


def similarity_maps(report: Report) -> tuple[HeatMap, ...]:
    """Probabilities that domains, and classifiers, share error rates; none if none ever do."""

    def similarity_map(entry: Mapping[str, Any]) -> HeatMap:
        names, what, matrix = entry["names"], entry["of"], entry["matrix"]

        def cell(i: int, j: int) -> Cell:
            if i == j:
                return Cell("", None, str(names[i]))
            return share_cell(matrix[i][j], f"{names[i]} and {names[j]}")

        total = plural(entry["n_names"], what)
        note = f"the {len(names)} of {total} that share most with another"
        caption = f"{what.capitalize()}s that share error rates"
        notes = [note] if len(names) < entry["n_names"] else ()
        return HeatMap.from_table(caption, (what, what), names, names, cell, notes=notes)

    return tuple(
        similarity_map(entry)
        for entry in (report.get("votes") or {}).get("similarity") or ()
        if any((v or 0.0) >= _NEVER for i, row in enumerate(entry["matrix"]) for v in row[:i])
    )


def share_cell(value: float | None, title: str) -> Cell:
    """A share of the colour that it is."""
    if value is None:
        return Cell("-", None, f"{title}: not known")
    return Cell("0" if value < _NEVER else f"{value:.2f}", value, f"{title}: {value:.3f}")


@dataclass(frozen=True)
class Partition:
    """Which domains or classifiers share error rates, in words.

    `heading` says how reliable the grouping is, `parts` has one part per group; `settled` is False
    if the draws agree on no grouping, so that one says little.
    """

    heading: str
    parts: tuple[str, ...]
    settled: bool


def partition(report: Report) -> Partition | None:
    """The most probable partition; None where the report has none."""
    diagnostics: Mapping[str, Any] = report.get("diagnostics") or {}
    entry = diagnostics.get("partition")
    if not isinstance(entry, Sequence) or not entry:
        return None
    axes = [what for what in ("domain", "classifier") if f"{what}_similarity" in diagnostics]
    one, many = "classifier", "classifiers"
    if len(axes) > 1:
        one, many = "pair of domain and classifier", "pairs of domain and classifier"
    elif axes == ["domain"]:
        one, many = "domain", "domains"
    share = diagnostics.get("partition_probability")
    settled = share is None or share >= _SETTLED
    heading = f"the most probable grouping has probability {probability(share)}"
    if not settled:
        heading = f"no grouping of the {many} stands out: {heading}"
    groups = sorted((group for group in entry if len(group) > 1), key=len, reverse=True)
    alone = len(entry) - len(groups)
    if not groups:
        return Partition(heading, (f"no two {many} share their error rates",), settled)
    sentences = [
        f"{enumerated(list(map(str, group)), _MOST_NAMES, 'more')} share their error rates"
        for group in groups[:_MOST_GROUPS]
    ]
    if len(groups) > _MOST_GROUPS:
        sentences.append(f"so do {plural(len(groups) - _MOST_GROUPS, 'more group')}")
    if alone:
        stand = f"other {one} stands" if alone == 1 else f"other {many} stand"
        sentences.append(f"{count(alone)} {stand} alone")
    return Partition(heading, tuple(sentences), settled)


def answered_by(report: Report) -> tuple[str, list[tuple[str, float]]] | None:
    """A sentence on the first member, and all with their shares, the largest first.

    The smallest are put together; None if the method has none.
    """
    weights = (report.get("diagnostics") or {}).get("answered_by")
    if not weights:
        return None
    weights = sorted(weights, key=lambda member: -member["share"])
    members = [(member["member"], member["share"]) for member in weights]
    others = members[_MOST_MEMBERS:]
    if len(others) > 1:
        rest = plural(len(others), "other"), sum(share for _, share in others)
        members = [*members[:_MOST_MEMBERS], rest]
    return weights[0]["says"], members


def reference_trust(report: Report) -> str | None:
    """How far the labels support the reference data, as a sentence; None without any."""
    trust = (report.get("diagnostics") or {}).get("reference")
    weight = trust.get("weight") if isinstance(trust, Mapping) else None
    if weight is None:
        return None
    share = probability(weight)
    if not (report["n_labeled"] or report.get("n_annotated")):
        return f"without labels nothing tests the reference data; their weight is {share}"
    hardly = "hardly " if weight < _LITTLE else ""
    return f"the labels {hardly}support the reference data: weight {share}"


def anytime_table(report: Report) -> tuple[str, list[str], list[list[str]]] | None:
    """Intervals that hold whenever one stops: a heading, columns, and rows; None without any."""
    entry = (report.get("diagnostics") or {}).get("anytime")
    if not entry:
        return None
    ends: Mapping[str, Mapping[str, Sequence[float]]] = entry["intervals"]
    level = percent(entry["confidence_level"])
    heading = (
        f"Intervals that stay valid however often you look and whenever you stop ({level}, from "
        f"the {plural(entry['labels'], 'label')} that were drawn, for all items)"
    )
    rows = []
    for model in dict.fromkeys(m for intervals in ends.values() for m in intervals):
        cells = [ends[metric].get(model) for metric in ends]
        shown = [
            "-" if c is None else " to ".join(number_format(c)(end) for end in c) for c in cells
        ]
        rows.append([escape_control(model), *shown])
    return heading, ["", *ends], rows


def diagnostics(report: Report) -> dict[str, Any]:
    """What is known of the fit, other than what is shown as figures or in words."""
    votes = report.get("votes") or ()
    elsewhere = {
        "answered_by": True,
        "anytime": True,
        "error_rate": "error_rates" in votes,
        "domain_similarity": "similarity" in votes,
        "classifier_similarity": "similarity" in votes,
        "partition": partition(report),
        "partition_probability": partition(report),
    }
    entries: Mapping[str, Any] = report.get("diagnostics") or {}
    return {name: value for name, value in entries.items() if not elsewhere.get(name)}


def diagnostics_lines(report: Report, width: int) -> Iterator[str]:
    """Error rates where they fit, the most probable partition, the beliefs; each below a gap."""
    chart, groups, beliefs = error_map(report), partition(report), answered_by(report)
    whenever = anytime_table(report)
    if whenever is not None:
        heading, columns, some = whenever
        names = short_names([row[0] for row in some], _DOMAIN)
        table = [columns, *([names[row[0]], *row[1:]] for row in some)]
        yield from ["", *(style(line, "title") for line in wrap(heading, width))]
        yield from (fit(line, width) for line in aligned(table, "lr"))
    if chart is not None:
        yield from chart.lines(width)
    if groups is not None:
        yield from ["", *wrap(groups.heading[:1].upper() + groups.heading[1:], width)]
        for one in groups.parts if groups.settled else ():
            yield from wrap(f"- {one}", width, "  ")
    if beliefs is not None:
        sentence, members = beliefs
        yield from ["", style(ANSWERED_BY, "title"), *wrap(sentence, width)]
        rows = [[fit(escape_control(name), 36), probability(share)] for name, share in members]
        taken = max(map(cell_width, aligned(rows, "lr")))
        bar = min(40, width - taken - 2)
        bars = ["#" * round(share * bar) for _, share in members]
        yield from aligned([[*row, bar] for row, bar in zip(rows, bars, strict=True)], "lrl")
