"""What a method reports beside the estimates: error rates and sharing of them, and beliefs.

Heat maps are tables of numbers whose cells have a strength of colour. They come from the part
`votes` of a report. Beliefs are diagnostics of a mixture: `answered_by`, a list of {"member",
"share", "says"}, where "says" is a sentence about the member and its share; and `reference`, whose
`weight` is the share of all members that use reference data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rich.cells import cell_len

from fewlabels.report.blocks import Report
from fewlabels.report.document import (
    Drawing,
    Fold,
    Group,
    Listing,
    Node,
    Para,
    Section,
    Table,
    plain,
    sentence,
)
from fewlabels.report.words import (
    count,
    enumerated,
    fact,
    number_format,
    percent,
    plural,
    probability,
    short_names,
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
    """A table whose `cell` in row i and column j is coloured by its number.

    `corner` names what is down and across; `ends` are the numbers at both ends of the colours. A
    page has `first` above the rows' names, tooltips if `told`, and the colours as a `ramp`; a text
    has the `note`.
    """

    caption: str
    corner: tuple[str, str]
    down: Sequence[Any]
    columns: Sequence[Any]
    cell: Callable[[int, int], Cell]
    ends: tuple[str, str] = ("0", "1")
    notes: Sequence[str] = ()
    first: str = ""
    told: bool = True
    ramp: bool = True
    note: str = ""

    @cached_property
    def rows(self) -> list[tuple[Any, list[Cell]]]:
        """The name and the cells of each row."""
        places = range(len(self.columns))
        return [(name, [self.cell(i, j) for j in places]) for i, name in enumerate(self.down)]

    @property
    def dense(self) -> bool:
        """Whether the columns are too many for names that run across."""
        return len(self.columns) > _ROOMY

    def lines(self, width: int) -> Iterator[Table]:
        """The table as text; nothing where it does not fit."""
        rows = short_names(self.down, _DOMAIN)
        for room in range(_ROOM[0], _ROOM[1] - 1, -1):
            columns = short_names(self.columns, room)
            table = [["", *(columns[name] for name in self.columns)]]
            table += [[rows[name], *(cell.text for cell in cells)] for name, cells in self.rows]
            if sum(max(map(cell_len, column)) + 2 for column in zip(*table, strict=True)) <= width:
                yield Table(table[0], table[1:], self.caption, note=self.note)
                return

    def drawing(self, most: int = _ROOMY**3, caption: str = "") -> Drawing:
        """The picture; of more than `most` columns cells do not say more."""
        told = len(self.columns) <= most
        return Drawing("heat", replace(self, told=told), caption, self.lines)


def error_map(rates: Mapping[str, Any]) -> HeatMap:
    """Error rates by domain and classifier."""
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
    return HeatMap(caption, corner, domains, models, cell, ends, notes)


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
        return HeatMap(caption, (what, what), names, names, cell, notes=notes)

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


def partition(report: Report) -> tuple[str, tuple[str, ...], bool] | None:
    """Which domains or classifiers share error rates, in words; None where that is not known.

    How reliable the most probable grouping is, a sentence per group, and False if the draws agree
    on no grouping, so that one says little.
    """
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
        return heading, (f"no two {many} share their error rates",), settled
    sentences = [
        f"{enumerated(list(map(str, group)), _MOST_NAMES, 'more')} share their error rates"
        for group in groups[:_MOST_GROUPS]
    ]
    if len(groups) > _MOST_GROUPS:
        sentences.append(f"so do {plural(len(groups) - _MOST_GROUPS, 'more group')}")
    if alone:
        stand = f"other {one} stands" if alone == 1 else f"other {many} stand"
        sentences.append(f"{count(alone)} {stand} alone")
    return heading, tuple(sentences), settled


# --- as parts of a document -----------------------------------------------------------------------


def rates(report: Report, most: int) -> list[Node]:
    """Error rates by domain and classifier, where they fit; `most` columns say more."""
    chart = error_map(report["votes"]["error_rates"])
    notes = "".join(f"; {note}" for note in chart.notes)
    more = ""
    if len(chart.columns) <= most:
        interval = f"{percent(report['confidence_level'])} interval"
        more = f" Point at a number for its {interval} and the votes behind it."
    about = (
        f"The estimated error rate of each classifier in each domain{notes}. The stronger the "
        f'colour, the more errors.{more} "-" is where a classifier never votes.'
    )
    drawing = replace(chart, note=f"posterior mean{notes}").drawing(most)
    return [Section(chart.caption, [Para(about, "soft", on="page"), drawing])]


def alike(report: Report, most: int) -> list[Node]:
    """Which domains or classifiers share error rates: the likeliest grouping, and by pairs."""
    groups, charts = partition(report), similarity_maps(report)
    over_others = "error_rates" in (report.get("votes") or ())
    parts: list[Node] = []
    if groups is not None:
        heading, points = sentence(groups[0]), Listing([*map(plain, groups[1])])
        if groups[2]:
            parts += [Para(heading), points]
        else:
            tell = " The probabilities below tell more than it does." if charts else ""
            parts += [
                Para(heading, on="text"),
                Para(heading + tell, on="page"),
                Fold("The most probable grouping all the same", [points], printed=False,
                     style="plain", on="page"),
            ]  # fmt: skip
    for chart in charts:
        others = "classifiers" if chart.corner[0] == "domain" else "domains"
        over = f", on average over the {others}" if over_others else ""
        notes = "".join(f"; {note}" for note in chart.notes)
        about = (
            f"The probability that two of them share their error rates{over}{notes}. Those alike "
            "stand side by side."
        )
        parts.append(Section(
            chart.caption, [Para(about, "soft"), chart.drawing(most)], on="page",
        ))  # fmt: skip
    return [Section("Which are alike", parts)] if parts else []


def members(weights: Sequence[Mapping[str, Any]]) -> list[Node]:
    """The members of a mixture with their shares, the largest first; of many the rest together."""
    weights = sorted(weights, key=lambda member: -member["share"])
    shares = [(member["member"], member["share"]) for member in weights]
    others = shares[_MOST_MEMBERS:]
    if len(others) > 1:
        rest = plural(len(others), "other"), sum(share for _, share in others)
        shares = [*shares[:_MOST_MEMBERS], rest]
    table = Table(
        ["Part", "Share"], [[member, probability(share)] for member, share in shares],
        "Share of each part in the answer", bars=[share for _, share in shares], full=1.0,
        widest=36,
    )  # fmt: skip
    return [Section("What the answer rests on", [Para(sentence(plain(weights[0]["says"]))), table])]


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


def anytime(entry: Mapping[str, Any]) -> list[Node]:
    """Intervals that hold whenever one stops."""
    ends: Mapping[str, Mapping[str, Sequence[float]]] = entry["intervals"]
    about = (
        "Intervals that stay valid however often you look and whenever you stop "
        f"({percent(entry['confidence_level'])}, from the {plural(entry['labels'], 'label')} that "
        "were drawn, for all items)."
    )
    rows = []
    for model in dict.fromkeys(m for intervals in ends.values() for m in intervals):
        cells = [ends[metric].get(model) for metric in ends]
        rows.append([model, *(
            "-" if c is None else " to ".join(number_format(c)(end) for end in c) for c in cells
        )])  # fmt: skip
    table = Table(["", *ends], rows, "Intervals valid at any time", widest=_DOMAIN)
    return [Section("Valid whenever you stop labeling", [Para(about, "soft"), table])]


def _details(report: Report) -> dict[str, Any]:
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


def method(report: Report) -> list[Node]:
    """What the method does, assumes, and knows of its fit."""
    info: Mapping[str, Any] = report.get("method_info") or {}
    title = f": {plain(info['title'])}" if info.get("title") else ""
    summary = info.get("summary") or f"the estimates were made by {report['method']}"
    parts: list[Node] = [Para(sentence(plain(summary)))]
    if info.get("how"):
        parts.append(Para(plain(info["how"])))
    columns: list[Node] = [
        Group("", [Section(heading, [Listing([*map(plain, info[key])])])])
        for heading, key in (("It assumes", "assumes"), ("It fails when", "fails_when"))
        if info.get(key)
    ]
    if columns:
        parts.append(Group("columns", columns))
    if info.get("source"):
        parts.append(Para(f"Source: {plain(info['source'])}", "soft"))
    details, meanings = _details(report), report.get("diagnostic_info") or {}
    if details:
        rows = [
            [spoken(name), plain(fact(value)), *[plain(meanings.get(name, ""))] * bool(meanings)]
            for name, value in details.items()
        ]
        head = ["Name", "Value", *["Meaning"] * bool(meanings)]
        table = Table(head, rows, "Diagnostics", "l")
        parts.append(Fold("Diagnostics of the fit", [table], style="plain"))
    return [Section(f"The method{title}", parts)]


def spoken(name: object) -> str:
    """The name of a value as words."""
    return str(name).replace("_", " ")
