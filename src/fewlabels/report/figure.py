"""The estimates as forest plots of matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fewlabels.errors import MissingExtraError, UsageError
from fewlabels.report.blocks import Block, Report, Row, blocks
from fewlabels.report.words import clean, fit, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINT = "#0072B2"
_TRUTH = "#D55E00"
_RULE = "#DDDDDD"
_ROW_INCHES = 0.28
_NAME_COLUMNS = 36
_TALLEST_INCHES = 300.0
"""What the file formats of images can hold at a usual resolution."""


def render_figure(report: Report, metric: str | None = None) -> Figure:
    """A forest plot per metric, or of one metric: all items first, then group by group.

    Parameters
    ----------
    report
        The dictionary of `Estimates.report`; plain JSON values.
    metric
        The one metric to plot.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: no window opens and nothing has to be closed; `.savefig(path)`.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    UsageError
        If the metric is not among those estimated.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None

    shown = blocks(report)
    metrics = list(dict.fromkeys(block.metric for block in shown))
    if metric is not None and metric not in metrics:
        raise UsageError(f"unknown metric {metric!r}; estimated here: {', '.join(metrics)}")
    parts = [
        [block for block in shown if block.metric == name]
        for name in (metrics if metric is None else [metric])
    ]
    lines = max((_lines(part) for part in parts), default=1)
    height = min(_TALLEST_INCHES, 1.3 + _ROW_INCHES * lines)
    figure = Figure(figsize=(1.8 + 3.4 * max(1, len(parts)), height), layout="constrained")
    for number, part in enumerate(parts, 1):
        _draw(figure.add_subplot(1, len(parts), number), part, names=number == 1)
    return figure


def _lines(part: Sequence[Block]) -> int:
    return sum(len(block.rows) + (block.group is not None) for block in part)


def _draw(axes: Axes, part: Sequence[Block], *, names: bool) -> None:
    labels: list[tuple[str, bool]] = []
    place = 0
    for block in part:
        if block.group is not None:
            labels.append((block.group, True))
            axes.axhline(place - 0.5, color=_RULE, linewidth=0.8)
            place += 1
        for row in block.rows:
            _draw_row(axes, row, place)
            labels.append((row.model, False))
            place += 1
    first = part[0]
    axes.set_title(clean(first.metric), loc="left", parse_math=False)
    axes.set_xlabel(f"{first.preference or 'value'}, {percent(first.level)} interval")
    axes.set_yticks(range(place))
    _label(axes, labels if names else [("", False)] * place)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(place - 0.5, -0.5)
    axes.grid(axis="x", color=_RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _label(axes: Axes, labels: Sequence[tuple[str, bool]]) -> None:
    # A dollar sign in a name is a dollar sign, not the beginning of a formula.
    texts = axes.set_yticklabels(
        [fit(clean(text), _NAME_COLUMNS) for text, _ in labels], parse_math=False
    )
    for text, (_, heading) in zip(texts, labels, strict=True):
        text.set_fontweight("bold" if heading else "normal")


def _draw_row(axes: Axes, row: Row, place: int) -> None:
    if row.low is not None and row.high is not None:
        axes.plot([row.low, row.high], [place, place], color=_POINT, linewidth=2)
    if row.truth is not None:
        axes.plot([row.truth], [place], "|", color=_TRUTH, markersize=13, markeredgewidth=2)
    if row.value is not None:
        axes.plot([row.value], [place], "o", color=_POINT, markersize=6, markeredgecolor="white")
    else:
        # In the middle of the axes, for there is no place on the scale that would be true.
        axes.annotate(
            row.reason, (0.5, place), xycoords=("axes fraction", "data"), ha="center", va="center"
        )
