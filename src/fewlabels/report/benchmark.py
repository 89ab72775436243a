"""A benchmark's summary as files: Markdown, a page of HTML, and figures of SVG."""

from __future__ import annotations

import html
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from fewlabels.report import disagreement
from fewlabels.report.benchmark_content import Content, Figure, content_of
from fewlabels.report.benchmark_plot import LEADER
from fewlabels.report.benchmark_tables import Grid
from fewlabels.report.benchmark_text import render_text as text_of_errors
from fewlabels.report.benchmark_words import Summary
from fewlabels.report.html import environment
from fewlabels.report.markdown import escaped, not_live
from fewlabels.report.words import cell_width, pad

HISTOGRAMS = "histograms"
"""The design of protocols that measure disagreement."""


def render(summary: Summary) -> dict[str, str]:
    """Relative file name -> text: "report.md", "report.html" and "figures/<slug>.svg".

    The Markdown refers to the figures; the page holds them, and needs no other file, no network
    and no script.

    Parameters
    ----------
    summary
        The dictionary of `fewlabels.bench.summarise`; plain JSON values.
    """
    histograms = summary["protocol"].get("design") == HISTOGRAMS
    content = (disagreement.content_of if histograms else content_of)(summary)
    figures: dict[str, str] = {}
    titles: dict[str, str] = {}
    for figure in content.figures:
        path = _path(figure.slug, figures)
        figures[path] = _svg(figure)
        titles[path] = figure.title
    heading = content.title or content.name or "Benchmark"
    page = environment().get_template("benchmark.html.j2")
    return {
        "report.md": "\n".join(_markdown(content, titles)).rstrip() + "\n",
        "report.html": page.render(**vars(content), heading=heading, leader=LEADER).lstrip(),
        **figures,
    }  # fmt: skip


def render_text(summary: Summary, width: int = 80) -> str:
    """The main tables for a terminal of this width."""
    histograms = summary["protocol"].get("design") == HISTOGRAMS
    return (disagreement.render_text if histograms else text_of_errors)(summary, width)


def _path(slug: str, taken: Container[str]) -> str:
    """A short name that any file system takes, not taken yet."""
    slug = re.sub(r"[^a-z0-9]+", "-", slug.lower()).strip("-")[:80].strip("-")
    names = (f"figures/{slug}{number}.svg" for number in ["", *(f"-{k}" for k in range(2, 10_000))])
    return next(name for name in names if name not in taken)


# --- figures of their own ---------------------------------------------------------------------


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


def _svg(figure: Figure) -> str:
    """One figure as a file of SVG: selectable text, light and dark, a title and a description."""
    drawn = figure.views
    sheet = Sheet(len(drawn), drawn[0].height if drawn else 0)
    template = environment().get_template("benchmark.svg.j2")
    return template.render(title=figure.title, views=drawn, sheet=sheet, leader=LEADER).lstrip()


# --- Markdown that is also pleasant to read as text -------------------------------------------


def _markdown(content: Content, figures: Mapping[str, str]) -> Iterator[str]:
    """The lines of the report; `figures` maps their paths to titles."""
    yield from [f"# Benchmark: {escaped(content.name)}", ""]
    if content.title:
        yield from [escaped(content.title), ""]
    yield from [f"**{escaped(content.headline)}**", ""]
    command = [("Command", content.command)] if content.command else []
    for name, value in [*content.facts, *content.settings, *command]:
        yield f"- {name}: {escaped(value)}"
    yield ""
    if content.notes:
        yield from ["## Please note", "", *(f"- {escaped(note)}" for note in content.notes), ""]
    if content.glance:
        yield from ["## At a glance", "", *_grid_lines(content.glance)]
    if figures:
        yield from ["## Figures", ""]
        if content.about_figures:
            yield from [escaped(content.about_figures), ""]
    for path, title in figures.items():
        yield from [f"### {escaped(title)}", "", f"![{escaped(title)}]({path})", ""]
    for section in content.sections:
        yield from [f"## {escaped(section.title)}", ""]
        for grid in section.grids:
            if grid.folded:
                # A line of HTML and an empty one around it, or the table would not be one.
                title = html.escape(not_live(grid.title))
                yield from ["<details>", f"<summary>{title}</summary>", ""]
            elif grid.title:
                yield from [f"### {escaped(grid.title)}", ""]
            yield from _grid_lines(grid)
            yield from ["</details>", ""] if grid.folded else []
    yield from ["## How to read this", ""]
    yield from (f"- **{term}.** {escaped(meaning)}" for term, meaning in content.reading)
    yield from ["", "## Data sets", "", *(f"- {escaped(line)}" for line in content.datasets)]


def _grid_lines(grid: Grid) -> Iterator[str]:
    """A table, its columns below one another, and its footnotes."""
    if grid.caption:
        yield from [escaped(grid.caption), ""]
    rows = [[grid.corner, *map(escaped, grid.flat)]]
    for row in grid.rows:
        name = escaped(row.name)
        # Numbers are our own text: a bracket in one begins no link, and "<10" no tag.
        cells = (
            (f"**{cell.whole}**" if cell.strong else cell.whole)
            + (f"<sup>{cell.mark}</sup>" if cell.mark else "")
            for cell in row.cells
        )
        rows.append([f"*{name}*" if row.floor else name, *cells])
    widths = [max(3, *(cell_width(row[k]) for row in rows)) for k in range(len(rows[0]))]
    rule = ["-" * width if k == 0 else "-" * (width - 1) + ":" for k, width in enumerate(widths)]
    for line in (rows[0], rule, *rows[1:]):
        padded = (pad(t, w, right=k > 0) for k, (t, w) in enumerate(zip(line, widths, strict=True)))
        yield f"| {' | '.join(padded)} |"
    if grid.notes:
        yield ""
        yield from (f"- <sup>{mark}</sup> {escaped(text)}" for mark, text in grid.notes)
    yield ""
