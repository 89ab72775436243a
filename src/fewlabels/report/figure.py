"""Estimates, backtests, curves and thresholds as figures of matplotlib."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING
from warnings import catch_warnings, filterwarnings

from fewlabels.errors import MissingExtraError, UsageError
from fewlabels.report.blocks import Block, Report, Row, blocks
from fewlabels.report.curves import curve_blocks
from fewlabels.report.document import unmarked
from fewlabels.report.one_classifier import Interval, level
from fewlabels.report.threshold import ThresholdBlock
from fewlabels.report.words import escape_control, fit, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_BLUE = "#0072B2"
_TRUTH = "#D55E00"
_RULE = "#DDDDDD"
_ROW_INCHES = 0.28
_NAME_COLUMNS = 36
_TALLEST_INCHES = 300.0
"""Largest height that image formats can hold at a usual resolution."""

_CHANCE = "#666666"
_TITLE_COLUMNS = 60


def render_figure(report: Report, metric: str | None = None) -> Figure:
    """A forest plot per metric, or of `metric` alone: all items first, then each group.

    `report` is the dictionary of `Estimates.report`. The figure is made without pyplot, so no
    window opens and nothing has to be closed; save it with `savefig`.
    """
    shown = blocks(report)
    metrics = list(dict.fromkeys(block.metric for block in shown))
    if metric is not None and metric not in metrics:
        raise UsageError(f"unknown metric {metric!r}; estimated here: {', '.join(metrics)}")
    panels = [
        [block for block in shown if block.metric == name]
        for name in (metrics if metric is None else [metric])
    ]
    lines = max(
        (sum(len(b.rows) + (b.group is not None) for b in panel) for panel in panels), default=1
    )
    height = min(_TALLEST_INCHES, 1.3 + _ROW_INCHES * lines)
    figure = _blank(1.8 + 3.4 * max(1, len(panels)), height)
    for number, panel in enumerate(panels, 1):
        _draw(figure.add_subplot(1, len(panels), number), panel, names=number == 1)
    return figure


def _blank(width: float, height: float) -> Figure:
    """A figure of so many inches, made without pyplot."""
    return class_of_figures()(figsize=(width, height), layout="constrained")


def class_of_figures() -> type[Figure]:
    """What figures are made of, or a `MissingExtraError`: to ask before the work is done."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None
    return Figure


def _draw(axes: Axes, blocks: Sequence[Block], *, names: bool) -> None:
    """The forest of one metric: a line per classifier, and one per name of a group."""
    labels: list[tuple[str, bool]] = []
    rows: list[tuple[int, Row]] = []
    for block in blocks:
        if block.group is not None:
            axes.axhline(len(labels) - 0.5, color=_RULE, linewidth=0.8)
            labels.append((block.group, True))
        for row in block.rows:
            rows.append((len(labels), row))
            labels.append((row.model, False))
    spans = [(at, r.low, r.high) for at, r in rows if r.low is not None and r.high is not None]
    if spans:
        axes.hlines(*zip(*spans, strict=True), color=_BLUE, linewidth=2)
    truths = [(row.truth, at) for at, row in rows if row.truth is not None]
    if truths:
        axes.plot(*zip(*truths, strict=True), "|", color=_TRUTH, markersize=13, markeredgewidth=2)
    values = [(row.value, at) for at, row in rows if row.value is not None]
    if values:
        axes.plot(*zip(*values, strict=True), "o", color=_BLUE, markersize=6, markeredgecolor="w")
    for at, row in rows:
        if row.value is None:
            # In the middle, for there is no place on the scale that would be true.
            where = ("axes fraction", "data")
            axes.annotate(row.reason, (0.5, at), xycoords=where, ha="center", va="center")
    first = blocks[0]
    axes.set_title(escape_control(first.metric), loc="left", parse_math=False)
    of_level = "" if first.level is None else f", {percent(first.level)} interval"
    axes.set_xlabel(f"{first.preference or 'value'}{of_level}")
    axes.set_yticks(range(len(labels)))
    # A dollar sign in a name is a dollar sign, not the beginning of a formula.
    texts = axes.set_yticklabels(
        [fit(escape_control(text), _NAME_COLUMNS) if names else "" for text, _ in labels],
        parse_math=False,
    )
    for text, (_, heading) in zip(texts, labels, strict=True):
        text.set_fontweight("bold" if heading else "normal")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(axis="x", color=_RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)


def render_curve_figure(report: Report) -> Figure:
    """A panel per curve with its band, or the probability of a condition at each threshold.

    `report` is that of `Curve`, `Curves` or `Thresholds`. For the figure see `render_figure`.
    """
    if report["what"] == "threshold":
        thresholds = ThresholdBlock(report)
        figure = _blank(6.4, 4.2)
        axes = figure.add_subplot()
        axes.plot(report["thresholds"], report["probability"], color=_BLUE)
        if report["best"] is not None:
            axes.plot([report["best"]], [report["best_probability"]], "o", color=_BLUE)
        title = f"{escape_control(report['model'])}: {unmarked(thresholds.conditions)}"
        title = fit(title, _TITLE_COLUMNS)
        axes.set_title(title, loc="left", fontsize="medium", parse_math=False)
        axes.set_xlabel("threshold")
        axes.set_ylabel("probability that the conditions hold")
    else:
        shown = curve_blocks(report)
        figure = _blank(4.6 * len(shown), 4.2)
        # A dollar sign in a name is a dollar sign, not the beginning of a formula.
        figure.suptitle(fit(escape_control(report["model"]), _TITLE_COLUMNS), parse_math=False)
        prevalence = Interval.from_source(report.get("prevalence")).value
        for number, block in enumerate(shown, 1):
            axes = figure.add_subplot(1, len(shown), number)
            places = [point.x for point in block.points]
            value, low, high = (
                [math.nan if number is None else number for number in numbers]
                for numbers in zip(*(point.y for point in block.points), strict=True)
            )
            axes.fill_between(
                places, low, high,
                color=_BLUE, alpha=0.25, linewidth=0, label=f"{level(report)} band",
            )  # fmt: skip
            axes.plot(places, value, color=_BLUE, label="median")
            start, end = (0, 1) if block.kind.name == "roc" else (prevalence, prevalence)
            if start is not None and end is not None:
                axes.plot([0, 1], [start, end], "--", color=_CHANCE, linewidth=1, label="chance")
            axes.set_title(f"{block.kind.area} {block.area.text}", loc="left", fontsize="medium")
            axes.set_xlabel(block.kind.x_name)
            axes.set_ylabel(block.kind.y_name)
            axes.set_xlim(0, 1)
            axes.legend(frameon=False, loc="best")
    for axes in figure.axes:
        axes.set_ylim(0, 1.02)
    return _ruled(figure)


def render_svg(report: Report) -> str:
    """The figure of curves or thresholds as a file of SVG, the same each time; text stays text."""
    figure = render_curve_figure(report)
    from matplotlib import rc_context

    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "fewlabels"}), catch_warnings():
        # Whoever opens the file may have the characters that are missing here.
        filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def render_backtest_figure(report: Report) -> Figure:
    """A panel per metric: the error by the number of labels, a line per method, of all items.

    `report` is the dictionary of `Backtest.to_dict`; the error is the mean of the classifiers.
    """
    model = None if len(report["models"]) > 1 else report["models"][0]
    rows = [row for row in report["rows"] if row["model"] == model and row["group"] is None]
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    figure = _blank(4.6 * len(metrics), 4.2)
    for number, metric in enumerate(metrics, 1):
        axes = figure.add_subplot(1, len(metrics), number)
        for method in report["methods"]:
            of = [row for row in rows if row["metric"] == metric and row["method"] == method]
            errors = [math.nan if row["error"] is None else row["error"] for row in of]
            axes.plot([row["n_labeled"] for row in of], errors, "o-", label=method)
        axes.set_title(escape_control(metric), loc="left", fontsize="medium", parse_math=False)
        axes.set_xlabel("labels")
        axes.set_ylabel("mean error")
        axes.set_xticks(report["labels"])
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, loc="best")
    return _ruled(figure)


def _ruled(figure: Figure) -> Figure:
    """The figure with a grid behind its panels, which have two axes each."""
    for axes in figure.axes:
        axes.grid(color=_RULE, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    return figure
