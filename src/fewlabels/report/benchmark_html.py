"""A benchmark's page of HTML, and its figures as files of SVG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fewlabels.report import benchmark_notes as notes
from fewlabels.report import benchmark_words as bw
from fewlabels.report.benchmark_plot import LEADER, View, views
from fewlabels.report.benchmark_tables import glance, sections
from fewlabels.report.html import environment

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


@dataclass(frozen=True)
class Sheet:
    """Pixels of a figure in a file of its own: panels in at most two columns."""

    count: int
    plot_height: int

    side: int = 40
    labels: int = 190
    above: int = 16
    margin: int = 24
    top: int = 64
    gap: int = 28

    @property
    def columns(self) -> int:
        """Panels side by side."""
        return min(2, max(1, self.count))

    @property
    def plot(self) -> int:
        """Width of the plot itself."""
        return 250 if self.columns == 2 else 420

    @property
    def panel(self) -> int:
        """Width of a panel."""
        return self.side + self.plot + self.labels

    @property
    def panel_height(self) -> int:
        """Height of a panel with its scale."""
        return self.above + self.plot_height + 44

    @property
    def width(self) -> int:
        """Width of the sheet."""
        return 2 * self.margin + self.columns * self.panel + (self.columns - 1) * self.gap

    @property
    def height(self) -> int:
        """Height of the sheet."""
        rows = -(-self.count // self.columns)
        return self.top + rows * (self.panel_height + self.gap)

    def x(self, k: int) -> int:
        """Left edge of panel k."""
        return self.margin + k % self.columns * (self.panel + self.gap)

    def y(self, k: int) -> int:
        """Upper edge of panel k."""
        return self.top + k // self.columns * (self.panel_height + self.gap)


def figure_title(figure: Mapping[str, Any]) -> str:
    """Kind and place of a figure."""
    kind, place = bw.kind_title(bw.FIGURES, figure), bw.place(figure)
    return f"{kind}: {place}" if place else kind


def render_svg(figure: Mapping[str, Any], summary: bw.Summary) -> str:
    """One figure as a file of SVG: selectable text, light and dark, a title and a description."""
    drawn = views(figure, summary)
    sheet = Sheet(len(drawn), drawn[0].height if drawn else 0)
    return (
        environment()
        .get_template("benchmark.svg.j2")
        .render(title=figure_title(figure), views=drawn, sheet=sheet, leader=LEADER)
        .lstrip()
    )


def render_page(summary: bw.Summary) -> str:
    """The whole benchmark as a page that needs no other file, no network and no script."""
    protocol = summary["protocol"]
    return (
        environment()
        .get_template("benchmark.html.j2")
        .render(
            summary=summary,
            heading=protocol.get("title") or protocol.get("name") or "Benchmark",
            headline=notes.headline(summary),
            facts=notes.facts(summary),
            settings=notes.settings(summary),
            command=summary.get("command"),
            notes=notes.notes(summary),
            reading=notes.reading(summary),
            datasets=[notes.data_set(dataset) for dataset in summary["datasets"]],
            glance=glance(summary) if summary["glance"] else None,
            figures=[_figure(figure, summary) for figure in summary["figures"]],
            sections=_sections(summary),
            leader=LEADER,
        )
        .lstrip()
    )


def _figure(figure: Mapping[str, Any], summary: bw.Summary) -> dict[str, str | list[View]]:
    fewest = figure["n_labeled"] if figure["kind"] == "labeled-curve" else None
    at = f" at {fewest} labels" if fewest is not None else ""
    return {
        "kind": bw.kind_title(bw.FIGURES, figure),
        "place": bw.place(figure),
        "about": _ABOUT.get(figure["kind"], _ABOUT["trend"]).format(fewest=at),
        "views": views(figure, summary),
    }


def _sections(summary: bw.Summary) -> list[dict[str, Any]]:
    found = []
    for title, tables in sections(summary):
        kind = tables[0][0]["kind"]
        folded = kind in _SECOND and kind != summary["tables"][0]["kind"]
        grids = [grid for _, part in tables for grid in part]
        found.append({"title": title, "grids": grids, "folded": folded})
    return found
