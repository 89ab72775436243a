"""The figures of a benchmark's page, drawn by matplotlib: a panel per metric, a line per method."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Sheet

from bench.errors import Errors, natural, rank_correlation, scale
from bench.protocol import FLOOR, REFERENCE
from bench.tables import factor_name, level_name, place_name, points, together, trait_name
from runs import save_svg

_MARKERS = "osD^vPX*<>"
_COLOURS = ("#0b62a8", "#b34c06", "#2c7a3f", "#7a3fa0", "#a8275d", "#5d6b12")

BINS = 8
"""At most so many points of a trend; each holds about as many runs."""

_FULL = 5
"""Points that a bin should hold, or its mean is all noise."""


class Panel(NamedTuple):
    """Lines of one plot: label -> frame with x, mean and se; `marks` are label -> (x, y).

    `y` names what is no error, which is drawn as points.
    """

    title: str
    x: str
    metric: str
    lines: dict[str, pd.DataFrame]
    ticks: Sequence[str] = ()
    marks: Mapping[str, tuple[float, float]] = {}
    y: str = ""


class Figure(NamedTuple):
    """Panels that one file holds, and where they are of."""

    kind: str
    title: str
    panels: list[Panel]

    @property
    def slug(self) -> str:
        """A name that any file system takes."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.kind} {self.title}".lower()).strip("-")[:80]


def draw(figure: Figure, path: Path, styles: Sequence[str]) -> None:
    """Write a figure as SVG, the same for the same numbers.

    `styles` are names in an order that fixes colour and marker, the same in every figure.
    """
    columns = min(2, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    with mpl.rc_context({"font.size": 9}):
        sheet = Sheet(figsize=(5.2 * columns, 3.1 * rows), layout="constrained")
        axes = sheet.subplots(rows, columns, squeeze=False).ravel()
        for panel, place in zip(figure.panels, axes, strict=False):
            _draw_panel(panel, place, styles)
        for place in axes[len(figure.panels) :]:
            place.set_axis_off()
        save_svg(sheet, path)


def _draw_panel(panel: Panel, axes: Axes, styles: Sequence[str]) -> None:
    for k, (label, line) in enumerate(panel.lines.items()):
        name = label.partition("  ")[0]
        k = styles.index(name) if name in styles else k
        style = {"color": _COLOURS[k % len(_COLOURS)]}
        if name == FLOOR:
            style = {"color": "#7d8a9c", "linestyle": ":"}
        x, y, se = (line[c].to_numpy(dtype=float) for c in ("x", "mean", "se"))
        marker = _MARKERS[k % len(_MARKERS)] if len(x) <= 12 and name != FLOOR else None
        if panel.y:
            style["linestyle"], marker = "", marker or "."
        axes.plot(x, y, label=label, marker=marker, markersize=4, linewidth=1.4, **style)
        if not panel.y:
            axes.fill_between(x, y - np.nan_to_num(se), y + np.nan_to_num(se), alpha=0.13, **style)
    for label, (x, y) in panel.marks.items():
        axes.annotate(label, (x, y), textcoords="offset points", xytext=(4, 3), fontsize=7)
        axes.plot([x], [y], "o", color="#1a212c", markersize=3)
    if panel.ticks:
        axes.set_xticks(range(len(panel.ticks)), panel.ticks)
    unit = "error, points" if scale(panel.metric) != 1 else "error"
    axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y or unit)
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def _over(part: pd.DataFrame, name: str, x: pd.Series, ticks: Sequence[str] = ()) -> list[Panel]:
    """Mean error of every method, with its standard error, against `x`; one panel per metric."""
    panels = []
    for metric, of_metric in part.assign(x=x).groupby("metric", sort=False):
        by = of_metric[of_metric["mean"].notna()].groupby("method", sort=False)
        lines = {str(method): own[["x", "mean", "se"]] for method, own in by}
        panels.append(Panel(metric, name, metric, lines, ticks))
    return panels


def _by_labels(errors: Errors) -> Iterator[tuple[str, list[Panel]]]:
    """Error against the number of labels."""
    for place, part in together(errors.of_all, "dataset", "factor", "level", "n_unlabeled"):
        if part["n_labeled"].nunique() > 1:
            yield place_name(place), _over(part, "labels", part["n_labeled"])


def _by_level(errors: Errors) -> Iterator[tuple[str, list[Panel]]]:
    """Error against what the protocol varies, evenly spaced."""
    cells = errors.of_all[errors.of_all["factor"] != ""]
    for place, part in together(cells, "dataset", "factor", "n_unlabeled", "n_labeled"):
        factor, levels = place["factor"], sorted(part["level"].unique(), key=natural)
        if len(levels) > 1:
            names, x = [level_name(factor, v) for v in levels], part["level"].map(levels.index)
            yield place_name(place), _over(part, factor_name(factor), x, names)


def ratios(errors: Errors) -> Iterator[tuple[str, list[Panel]]]:
    """Error over that of the labels alone, at the fewest labels, by data set (SSME, Figure 2)."""
    cells = errors.of_all[errors.of_all["factor"] == ""]
    cells = cells[cells["n_labeled"] == cells["n_labeled"].min()]
    cells = cells.assign(mean=cells["rmae"], se=0.0)
    names = list(dict.fromkeys(cells["dataset"]))
    panels = _over(cells, "", cells["dataset"].map(names.index), names)
    yield "", [panel._replace(y="error over that of labels alone") for panel in panels]


def _labeled_curve(errors: Errors) -> Iterator[tuple[str, list[Panel]]]:
    """The labels-only curve, and where the methods stand on it at the fewest labels."""
    cells = errors.of_all[errors.of_all["factor"] == ""]
    cells = cells[cells["ess"].notna() & (cells["n_labeled"] == cells["n_labeled"].min())]
    curves = errors.curves[errors.curves["group"] == ""].dropna(subset="mean")
    for dataset, own in curves.groupby("dataset"):
        panels = []
        for metric, curve in own.groupby("metric"):
            line = curve.assign(x=curve["n_labeled"])[["x", "mean", "se"]]
            line[["mean", "se"]] *= scale(metric)
            here = cells[(cells["dataset"] == dataset) & (cells["metric"] == metric)]
            marks = {
                f"{c['method']}  {c['ess_bound']}{c['ess']:,.0f}": (c["ess"], c["mean"])
                for c in here[here["method"] != REFERENCE].to_dict("records")
            }
            panels.append(Panel(metric, "labels", metric, {REFERENCE: line}, marks=marks))
        yield str(dataset), panels


def _by_trait(errors: Errors, trait: str, *, pooled: bool) -> Iterator[tuple[str, list[Panel]]]:
    """Error against a trait: of each level, or (pooled) of all together."""
    runs = errors.runs[errors.runs["group"] == ""]
    runs = runs.assign(within="" if pooled else runs["level"])
    for place, part in together(runs, "dataset", "factor", "n_unlabeled", "n_labeled"):
        panels = []
        for (metric, level), own in part.groupby(["metric", "within"], sort=False):
            lines = _trend(points(errors, own, trait), scale(metric))
            if lines:
                title = f"{metric}, {level_name(place['factor'], level)}" if level else metric
                panels.append(Panel(title, trait_name(trait), metric, lines))
        if panels:
            yield place_name(place), panels


def _trend(found: pd.DataFrame, unit: float) -> dict[str, pd.DataFrame]:
    """A line per method: mean error by bins of the trait, and in its name their rank correlation.

    Bins end at quantiles, or between the values where these are few.
    """
    values = found.drop_duplicates(["level", "run"])["x"].to_numpy(dtype=float)
    edges = np.unique(values)
    if len(edges) <= BINS:
        edges = (edges[1:] + edges[:-1]) / 2
    else:
        bins = min(BINS, max(2, len(values) // _FULL))
        edges = np.unique(np.quantile(values, np.arange(1, bins) / bins))
    lines = {}
    for method, own in found.dropna(subset="error").groupby("method", sort=False):
        where = np.searchsorted(edges, own["x"].to_numpy(dtype=float), side="right")
        grouped = own.assign(error=own["error"] * unit).groupby(where)
        error, rank = grouped["error"], rank_correlation(own["x"], own["error"])
        name = f"{method}  {'' if math.isnan(rank) else f'{rank:+.2f}'}"
        line = {"x": grouped["x"].mean(), "mean": error.mean(), "se": error.sem()}
        lines[name] = pd.DataFrame(line)
    return lines


_SE = "Shaded: one standard error over the runs, to both sides."
_TREND = (
    "Points are means of about as many sets each, shaded is one standard error; behind a name is "
    "the rank correlation."
)
Make = Callable[[Errors], Iterator[tuple[str, list[Panel]]]]
FIGURES: Mapping[str, tuple[str, str, Make]] = {
    "error-by-labels": ("Error against the number of labels", _SE, _by_labels),
    "error-by-level": ("Error by {factor}", _SE, _by_level),
    "ratios": ("Error relative to that of the labels alone", "At the fewest labels.", ratios),
    "labeled-curve": (
        "Error of the labels alone against their number",
        "Each method stands where its error at the fewest labels meets the curve of the labels "
        "alone; behind its name is the number of labels there.",
        _labeled_curve,
    ),
    "error-by-accuracy": (
        "Error against the mean accuracy of the classifiers", _TREND,
        partial(_by_trait, trait="mean_accuracy", pooled=False),
    ),
    "error-by-calibration": (
        "Error against the mean calibration error of the classifiers", _TREND,
        partial(_by_trait, trait="mean_ece", pooled=False),
    ),
    "error-by-correlation": (
        "Error against the correlation of the classifiers' errors", _TREND,
        partial(_by_trait, trait="error_correlation", pooled=True),
    ),
}  # fmt: skip
"""The kinds of figures: their title, what to say below, and what makes them."""


def figures(errors: Errors) -> Iterator[tuple[str, str, Figure]]:
    """Title, what to say below, and figure of all that a protocol asks for."""
    protocol = errors.results.protocol
    for kind in protocol.figures:
        title, about, make = FIGURES[kind]
        for place, panels in make(errors):
            heading = f"{title.format(factor=factor_name(protocol.factor))}: {place}"
            yield heading, about, Figure(kind, place, panels)
