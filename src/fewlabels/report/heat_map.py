"""Heat maps as tables of numbers: error rates, confusion matrices, and who behaves like whom."""

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
    number_format,
    percent,
    plural,
    probability,
    short_names,
    wrap,
)

_ROOMY = 10
"""Up to so many columns there is room for three decimals."""

_MOST_NAMES = 12
_MOST_GROUPS = 20
_NEVER = 0.005
"""Probabilities below this one are written as 0."""

_SETTLED = 0.05
"""A grouping that fewer of the draws have is one of very many, none of which tells much."""

DRAWN = {
    "error_rates": ("error_rate",),
    "similarity": ("domain_similarity", "classifier_similarity"),
    "partition": ("partition", "partition_probability"),
}
"""Diagnostics that a figure shows better than a list of numbers does."""

_ROOM = (12, 6)
"""Columns that a classifier's name may take: as many as there is room for, at least the last."""

_DOMAIN = 24


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
    """

    caption: str
    corner: tuple[str, str]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    ends: tuple[str, str]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
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


@dataclass(frozen=True)
class Partition:
    """Who shares error rates: groups of names, and how many stand alone.

    `settled` is False where the draws agree on no grouping, so that one says little.
    """

    probability: str
    settled: bool
    groups: tuple[str, ...]
    n_hidden: int
    n_alone: int
    nouns: tuple[str, str]

    @property
    def heading(self) -> str:
        """How far the grouping can be relied on, in words."""
        most = f"the most probable grouping has probability {self.probability}"
        return most if self.settled else f"no grouping of the {self.nouns[1]} stands out: {most}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The grouping in words, one part per group."""
        if not self.groups:
            return (f"no two {self.nouns[1]} share their error rates",)
        said = [f"{group} share their error rates" for group in self.groups]
        if self.n_hidden:
            said.append(f"so do {plural(self.n_hidden, 'more group')}")
        if self.n_alone:
            who = f"{count(self.n_alone)} other {self.nouns[self.n_alone > 1]}"
            said.append(f"{who} {'stands' if self.n_alone == 1 else 'stand'} alone")
        return tuple(said)


def error_map(report: Report) -> HeatMap | None:
    """Error rates by domain and classifier; None where the report has none."""
    found = _part(report, "error_rates")
    if not found:
        return None
    models, domains = found["models"], found["domains"]
    known = [v for row in found["value"] for v in row if v is not None]
    top = max(known, default=0.0) or 1.0
    write = number_format(known) if len(models) <= _ROOMY else _two_decimals

    def cell(d: int, m: int) -> Cell:
        value, votes = found["value"][d][m], found["n_votes"][d][m]
        who = f"{domains[d]}, {models[m]}"
        if value is None:
            said = "no votes" if not votes else "not known"
            return Cell("-", None, f"{who}: {said}")
        exact = number_format([value])
        ends = f"{exact(found['low'][d][m])} to {exact(found['high'][d][m])}"
        told = f"{exact(value)}, {percent(found['level'])} interval {ends}; {plural(votes, 'vote')}"
        return Cell(write(value), value / top, f"{who}: {told}")

    notes = [
        f"the {len(names)} of {plural(total, what)} with the largest mean error rate"
        for names, total, what in (
            (domains, found["n_domains"], "domain"), (models, found["n_models"], "classifier"),
        )
        if len(names) < total
    ]  # fmt: skip
    corner, ends = ("domain", "classifier"), ("0", number_format([top])(top))
    caption = "Error rates by domain and classifier"
    return HeatMap.of(caption, corner, domains, models, cell, ends, notes)


def confusion_maps(report: Report) -> tuple[HeatMap, ...]:
    """How often each classifier says what of which class."""
    found = _part(report, "confusion")
    classes = tuple(found.get("classes") or ())

    def confusion_map(model: str, matrix: Sequence[Sequence[float | None]]) -> HeatMap:
        def cell(i: int, j: int) -> Cell:
            return _share(matrix[i][j], f"of class {classes[i]}, predicted {classes[j]}")

        return HeatMap.of(model, ("class", "predicted"), classes, classes, cell)

    return tuple(confusion_map(e["model"], e["matrix"]) for e in found.get("matrices") or ())


def hidden_matrices(report: Report) -> int:
    """Classifiers whose confusion matrix is not shown, for there are too many."""
    found = _part(report, "confusion")
    return found["n_models"] - len(found["matrices"]) if found else 0


def similarity_maps(report: Report) -> tuple[HeatMap, ...]:
    """How probably domains, and classifiers, share error rates; none where nobody ever does."""
    found = (report.get("votes") or {}).get("similarity") or ()
    return tuple(_similarity_map(entry) for entry in found if _ever(entry["matrix"]))


def _ever(matrix: Sequence[Sequence[float | None]]) -> bool:
    """Whether any two different ones are alike."""
    return any((v or 0.0) >= _NEVER for i, row in enumerate(matrix) for v in row[:i])


def _similarity_map(entry: Mapping[str, Any]) -> HeatMap:
    names, what = entry["names"], entry["of"]

    def cell(i: int, j: int) -> Cell:
        value = entry["matrix"][i][j]
        if i == j:
            return Cell("", None, str(names[i]))
        return _share(value, f"{names[i]} and {names[j]}")

    total = plural(entry["n_names"], what)
    notes = [f"the {len(names)} of {total} that share most with another"]
    return HeatMap.of(
        f"{what.capitalize()}s that share error rates",
        (what, what),
        names,
        names,
        cell,
        notes=notes if len(names) < entry["n_names"] else (),
    )


def _share(value: float | None, title: str) -> Cell:
    if value is None:
        return Cell("-", None, f"{title}: not known")
    return Cell("0" if value < _NEVER else _two_decimals(value), value, f"{title}: {value:.3f}")


def _two_decimals(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def partition(report: Report) -> Partition | None:
    """The most probable partition; None where the report has none."""
    diagnostics: Mapping[str, Any] = report.get("diagnostics") or {}
    blocks = diagnostics.get("partition")
    if not isinstance(blocks, Sequence) or not blocks:
        return None
    together = sorted((block for block in blocks if len(block) > 1), key=len, reverse=True)
    share = diagnostics.get("partition_probability")
    of = [what for what in ("domain", "classifier") if f"{what}_similarity" in diagnostics]
    return Partition(
        probability(share),
        share is None or share >= _SETTLED,
        tuple(
            enumerated(list(map(str, block)), _MOST_NAMES, "more")
            for block in together[:_MOST_GROUPS]
        ),
        max(len(together) - _MOST_GROUPS, 0),
        sum(len(block) == 1 for block in blocks),
        ("pair of domain and classifier", "pairs of domain and classifier")
        if len(of) > 1
        else ("domain", "domains")
        if of == ["domain"]
        else ("classifier", "classifiers"),
    )


def drawn(report: Report) -> set[str]:
    """The diagnostics that the page shows as figures or in words."""
    there = set(report.get("votes") or ()) | ({"partition"} if partition(report) else set())
    return {name for part in there for name in DRAWN.get(part, ())}


def _part(report: Report, name: str) -> Mapping[str, Any]:
    votes: Mapping[str, Any] = report.get("votes") or {}
    found: Mapping[str, Any] = votes.get(name) or {}
    return found


def heat_lines(report: Report, width: int) -> Iterator[str]:
    """The table of error rates where it fits, and the most probable partition; each with a gap."""
    chart = error_map(report)
    if chart is not None:
        yield from heat_table(chart, width)
    found = partition(report)
    if found is not None:
        yield from ["", *wrap(found.heading[:1].upper() + found.heading[1:], width)]
        for part in found.parts if found.settled else ():
            yield from wrap(f"- {part}", width, "  ")


def heat_table(chart: HeatMap, width: int) -> Iterator[str]:
    """A heat map as a table of numbers with a gap above; nothing where it does not fit."""
    rows = short_names([name for name, _ in chart.rows], _DOMAIN)
    for room in range(_ROOM[0], _ROOM[1] - 1, -1):
        names = short_names(chart.columns, room)
        table = [["", *names.values()]]
        table += [[rows[name], *(cell.text for cell in cells)] for name, cells in chart.rows]
        lines = list(aligned(table, [False, *(True for _ in names)]))
        if cell_width(lines[0]) <= width:
            break
    else:
        return
    notes = "".join(f"; {note}" for note in chart.notes)
    yield from ["", *wrap(f"{chart.caption} (posterior mean){notes}", width)]
    yield from lines
