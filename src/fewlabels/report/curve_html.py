"""Curves and thresholds as pages of HTML, and their figures as one file of SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewlabels.report.blocks import Report
from fewlabels.report.curve_plot import (
    HEIGHT,
    View,
    curve_view,
    recalibration_view,
    threshold_view,
)
from fewlabels.report.curves import (
    ThresholdBlock,
    curve_blocks,
    interval,
    level,
    status_note,
    who,
)
from fewlabels.report.html import render
from fewlabels.report.words import clean, fit


@dataclass(frozen=True)
class Sheet:
    """Pixels of the figures in a file of their own: panels side by side."""

    count: int

    side: int = 46
    plot: int = 380
    above: int = 14
    margin: int = 24
    top: int = 84
    gap: int = 32

    @property
    def panel(self) -> int:
        """Width of a panel."""
        return self.side + self.plot

    @property
    def panel_height(self) -> int:
        """Height of a panel with its scale."""
        return self.above + HEIGHT + 44

    @property
    def width(self) -> int:
        """Width of the sheet."""
        return 2 * self.margin + self.count * self.panel + (self.count - 1) * self.gap

    @property
    def height(self) -> int:
        """Height of the sheet."""
        return self.top + self.panel_height + self.margin

    def x(self, k: int) -> int:
        """Left edge of panel k."""
        return self.margin + k * (self.panel + self.gap)

    @property
    def inside(self) -> int:
        """Width between the margins."""
        return self.width - 2 * self.margin

    @staticmethod
    def fitted(text: str, pixels: int, room: int) -> str:
        """As much of a line as there is room for, at so many pixels a character."""
        return fit(clean(text), room // pixels)


_SHEETS = ("curve_series.css", "curve.css")
"""Styles of a part of another page."""


def render_curves_html(
    report: Report, picture: Mapping[str, Any] | None = None, *, fragment: bool = False
) -> str:
    """One curve, or several from one fit, as a page that needs no other file and no script.

    `report` is the dictionary of `Curve.report` or `Curves.report`. `picture` is that of
    `Curve.picture`; without it the page does not show what a score means.
    """
    shown = curve_blocks(report)
    return _render(
        "curve.html.j2",
        report,
        fragment,
        blocks=shown,
        views=[curve_view(block, report) for block in shown],
        prevalence=interval(report.get("prevalence")),
        recalibration=recalibration_view(report, picture) if picture else None,
    )


def render_threshold_html(report: Report, *, fragment: bool = False) -> str:
    """Where to put the threshold, as a page that needs no other file and no script.

    `report` is the dictionary of `Thresholds.report`.
    """
    block = ThresholdBlock(report)
    return _render(
        "threshold.html.j2",
        report,
        fragment,
        block=block,
        asked=any(rate.asked for rate in block.rates),
        # Where no draw meets the conditions the line would lie on the axis.
        view=threshold_view(block) if block.verdict in ("met", "unlikely") else None,
    )


def render_svg(report: Report) -> str:
    """The figures of a report of curves or thresholds as a file of SVG, with selectable text."""
    views: Sequence[View]
    if report["what"] == "threshold":
        block = ThresholdBlock(report)
        views, title = [threshold_view(block)], f"{report['model']}: {block.conditions}"
    else:
        views = [curve_view(block, report) for block in curve_blocks(report)]
        title = f"{report['model']}: {level(report)} bands"
    return render(
        "curve.svg.j2", title=title, subtitle=who(report), views=views, sheet=Sheet(len(views))
    )


def _render(template: str, report: Report, fragment: bool, **shown: Any) -> str:
    return render(
        template,
        _SHEETS if fragment else None,
        report=report,
        level=level(report),
        note=status_note(report),
        scored=report["unit"] == "probability",
        **shown,
    )
