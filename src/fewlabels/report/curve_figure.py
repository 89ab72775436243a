"""Curves and thresholds as figures of matplotlib."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fewlabels.errors import MissingExtraError
from fewlabels.report.curve_blocks import (
    CurveBlock,
    Report,
    ThresholdBlock,
    curve_blocks,
    interval,
    level,
)
from fewlabels.report.words import clean, fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINE = "#0072B2"
_CHANCE = "#666666"
_RULE = "#DDDDDD"
_TITLE_COLUMNS = 60


def render_curve_figure(report: Report) -> Figure:
    """A panel per curve with its band, or the probability of a condition at each threshold.

    Parameters
    ----------
    report
        The dictionary of `Curve.report`, `Curves.report` or `Thresholds.report`.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: no window opens and nothing has to be closed; `.savefig(path)`.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None

    if report["what"] == "threshold":
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        _draw_thresholds(figure.add_subplot(), ThresholdBlock(report))
        return figure
    shown = curve_blocks(report)
    figure = Figure(figsize=(4.6 * len(shown), 4.2), layout="constrained")
    # A dollar sign in a name is a dollar sign, not the beginning of a formula.
    figure.suptitle(fit(clean(report["model"]), _TITLE_COLUMNS), parse_math=False)
    for number, block in enumerate(shown, 1):
        _draw_curve(figure.add_subplot(1, len(shown), number), block, report)
    return figure


def _draw_curve(axes: Axes, block: CurveBlock, report: Report) -> None:
    places = [point.x for point in block.points]
    low, value, high = (
        [math.nan if number is None else number for number in numbers]
        for numbers in zip(*((p.y.low, p.y.value, p.y.high) for p in block.points), strict=True)
    )
    axes.fill_between(
        places, low, high, color=_LINE, alpha=0.25, linewidth=0, label=f"{level(report)} band"
    )
    axes.plot(places, value, color=_LINE, label="median")
    chance = interval(report.get("prevalence")).value
    if block.kind.name == "roc":
        axes.plot([0, 1], [0, 1], "--", color=_CHANCE, linewidth=1, label="chance")
    elif chance is not None:
        axes.plot([0, 1], [chance, chance], "--", color=_CHANCE, linewidth=1, label="chance")
    axes.set_title(f"{block.kind.area} {block.area.text}", loc="left", fontsize="medium")
    axes.set_xlabel(block.kind.x_name)
    axes.set_ylabel(block.kind.y_name)
    axes.set_xlim(0, 1)
    _frame(axes)
    axes.legend(frameon=False, loc="best")


def _draw_thresholds(axes: Axes, block: ThresholdBlock) -> None:
    report = block.report
    axes.plot(report["thresholds"], report["probability"], color=_LINE)
    if report["best"] is not None:
        axes.plot([report["best"]], [report["best_probability"]], "o", color=_LINE)
    axes.set_title(
        fit(f"{clean(report['model'])}: {block.conditions}", _TITLE_COLUMNS),
        loc="left", fontsize="medium", parse_math=False,
    )  # fmt: skip
    axes.set_xlabel("threshold")
    axes.set_ylabel("probability that the conditions hold")
    _frame(axes)


def _frame(axes: Axes) -> None:
    axes.set_ylim(0, 1.02)
    axes.grid(color=_RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
