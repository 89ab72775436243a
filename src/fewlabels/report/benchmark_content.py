"""What the report of a benchmark says, before Markdown and HTML lay it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fewlabels.report import benchmark_notes as notes
from fewlabels.report import benchmark_words as bw
from fewlabels.report.benchmark_plot import View, views
from fewlabels.report.benchmark_tables import Grid, glance, sections

_SECOND = frozenset({"classifiers"})
"""Kinds of tables that are folded, many of them and of second rank, unless they are the content."""

_ABOUT = {
    "error-by-labels": "Shaded: one standard error over the runs, to both sides.",
    "error-by-level": "Shaded: one standard error over the runs, to both sides.",
    "labeled-curve": "Each method stands where its error{fewest} meets the curve of the labels "
    "alone; behind its name is the number of labels there.",
    "trend": "Points are means of about as many sets each, shaded is one standard error; behind a "
    "name is the rank correlation.",
}


class Figure(NamedTuple):
    """A figure: what it shows, where, how to read it, its panels, and what its file is called."""

    kind: str
    place: str
    about: str
    views: list[View]
    slug: str

    @property
    def title(self) -> str:
        """Kind and place."""
        return f"{self.kind}: {self.place}" if self.place else self.kind


class Section(NamedTuple):
    """Tables of one kind."""

    title: str
    grids: list[Grid]
    folded: bool = False


@dataclass(frozen=True)
class Content:
    """A report in its parts; `about_figures` is said once where figures are files of their own."""

    name: str
    title: str
    source: str
    headline: str
    facts: list[tuple[str, str]]
    settings: list[tuple[str, str]]
    command: str
    notes: list[str]
    reading: list[tuple[str, str]]
    datasets: list[str]
    glance: Grid | None
    figures: list[Figure]
    sections: list[Section]
    about_figures: str = ""


def content_of(summary: bw.Summary) -> Content:
    """The report of a benchmark of errors, from what `fewlabels.bench.summarise` gives."""
    protocol = summary["protocol"]
    return Content(
        protocol.get("name") or "",
        protocol.get("title") or "",
        protocol.get("source") or "",
        notes.headline(summary),
        notes.facts(summary),
        notes.settings(summary),
        summary.get("command") or "",
        notes.notes(summary),
        notes.reading(summary),
        [notes.data_set(dataset) for dataset in summary["datasets"]],
        glance(summary) if summary["glance"] else None,
        [_figure(figure, summary) for figure in summary["figures"]],
        list(_sections(summary)),
    )


def _figure(figure: Mapping[str, Any], summary: bw.Summary) -> Figure:
    fewest = figure["n_labeled"] if figure["kind"] == "labeled-curve" else None
    at = f" at {fewest} labels" if fewest is not None else ""
    about = _ABOUT.get(figure["kind"], _ABOUT["trend"]).format(fewest=at)
    return Figure(
        bw.kind_title(bw.FIGURES, figure), bw.place(figure), about, views(figure, summary),
        slug_of(figure),
    )  # fmt: skip


def slug_of(figure: Mapping[str, Any]) -> str:
    """What tells a figure from others, as words of a file's name."""
    parts = [figure["kind"], figure["dataset"], figure["level"]]
    parts += [figure["n_labeled"], figure["n_unlabeled"] or None]
    return "-".join(str(part) for part in parts if part not in (None, ""))


def _sections(summary: bw.Summary) -> list[Section]:
    found = []
    for title, tables in sections(summary):
        kind = tables[0][0]["kind"]
        folded = kind in _SECOND and kind != summary["tables"][0]["kind"]
        found.append(Section(title, [grid for _, part in tables for grid in part], folded))
    return found
