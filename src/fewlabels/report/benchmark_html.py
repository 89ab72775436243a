"""A benchmark's page of HTML, and its figures as files of SVG."""

from __future__ import annotations

from dataclasses import dataclass

from fewlabels.report.benchmark_content import Content, Figure
from fewlabels.report.benchmark_plot import LEADER
from fewlabels.report.html import environment


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


def render_svg(figure: Figure) -> str:
    """One figure as a file of SVG: selectable text, light and dark, a title and a description."""
    drawn = figure.views
    sheet = Sheet(len(drawn), drawn[0].height if drawn else 0)
    return (
        environment()
        .get_template("benchmark.svg.j2")
        .render(title=figure.title, views=drawn, sheet=sheet, leader=LEADER)
        .lstrip()
    )


def render_page(content: Content) -> str:
    """The whole benchmark as a page that needs no other file, no network and no script."""
    heading = content.title or content.name or "Benchmark"
    return (
        environment()
        .get_template("benchmark.html.j2")
        .render(**vars(content), heading=heading, leader=LEADER)
        .lstrip()
    )
