"""The estimates as forest plots of matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewlabels.errors import MissingExtraError, UsageError
from fewlabels.report.blocks import Block, Report, Row, blocks
from fewlabels.report.words import clean, fit, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINT = "#0072B2"
_TRUTH = "#D55E00"
_ROW_INCHES = 0.28
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
    metrics = metrics if metric is None else [metric]
    parts = {name: [block for block in shown if block.metric == name] for name in metrics}
    rows = max((sum(len(b.rows) + 1 for b in part) for part in parts.values()), default=1)
    height = min(_TALLEST_INCHES, 1.2 + _ROW_INCHES * rows)
    figure = Figure(figsize=(1.5 + 4.2 * max(1, len(metrics)), height), layout="constrained")
    for number, (name, part) in enumerate(parts.items(), 1):
        _draw(figure.add_subplot(1, len(parts), number), part, names=number == 1)
        del name
    return figure


def _draw(axes: Axes, part: list[Block], *, names: bool) -> None:
    places: list[float] = []
    labels: list[str] = []
    place = 0.0
    for block in part:
        if block.group is not None:
            place += 1
            places.append(place - 0.15)
            labels.append(fit(clean(block.group), 40))
        for row in block.rows:
            place += 1
            _row(axes, row, place)
            places.append(place)
            labels.append(fit(clean(row.model), 32))
