"""The figures of a benchmark's page, drawn by matplotlib: a panel per metric, a line per method."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Sheet

from bench.errors import Errors, natural, rank_correlation, scale
from bench.protocol import FLOOR, REFERENCE
from bench.tables import factor_name, level_name, place_name, plural, points, together

KINDS = {
    "error-by-labels": "Error against the number of labels",
    "error-by-accuracy": "Error against the mean accuracy of the classifiers",
    "error-by-calibration": "Error against the mean calibration error of the classifiers",
    "error-by-level": "Error by {factor}",
    "labeled-curve": "Error of the labels alone against their number",
    "error-by-correlation": "Error against the correlation of the classifiers' errors",
}
_SE = "Shaded: one standard error over the runs, to both sides."
_TREND = (
    "Points are means of about as many sets each, shaded is one standard error; behind a name is "
    "the rank correlation."
)
ABOUT = {
    "error-by-labels": _SE,
    "error-by-level": _SE,
    "labeled-curve": "Each method stands where its error at the fewest labels meets the curve of "
    "the labels alone; behind its name is the number of labels there.",
}
_MARKERS = "osD^vPX*<>"
_COLOURS = ("#0b62a8", "#b34c06", "#2c7a3f", "#7a3fa0", "#a8275d", "#5d6b12")

BINS = 8
"""At most so many points of a trend; each holds about as many runs."""

_FULL = 5
"""Points that a bin should hold, or its mean is all noise."""


@dataclass
class Panel:
    """Lines of one plot: label -> frame with x, mean and se; `marks` are label -> (x, y)."""

    title: str
    x: str
    y: str
    lines: dict[str, pd.DataFrame]
    ticks: list[str] | None = None
    marks: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass
class Figure:
    """Panels that one file holds: their kind, in words too, and where they are of."""

    kind: str
    place: str
    panels: list[Panel]
    about: str = ""
    heading: str = ""

    @property
    def title(self) -> str:
        """Kind and place."""
        return f"{self.heading}: {self.place}"

    @property
    def slug(self) -> str:
        """A name that any file system takes."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.kind} {self.place}".lower()).strip("-")[:80]


def draw(figure: Figure, path: Path, styles: Sequence[str]) -> None:
    """Write a figure as SVG, the same for the same numbers.

    `styles` are names in an order that fixes colour and marker, the same in every figure.
    """
    columns = min(2, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    with mpl.rc_context({"svg.hashsalt": "fewlabels", "svg.fonttype": "none", "font.size": 9}):
        sheet = Sheet(figsize=(5.2 * columns, 3.1 * rows), layout="constrained")
        axes = sheet.subplots(rows, columns, squeeze=False).ravel()
        for panel, place in zip(figure.panels, axes, strict=False):
            _draw_panel(panel, place, styles)
        for place in axes[len(figure.panels) :]:
            place.set_axis_off()
        sheet.savefig(path, format="svg", metadata={"Date": None})


def _draw_panel(panel: Panel, axes: Axes, styles: Sequence[str]) -> None:
    for k, (label, line) in enumerate(panel.lines.items()):
        name = label.partition("  ")[0]
        k = styles.index(name) if name in styles else k
        colour, marker = _COLOURS[k % len(_COLOURS)], _MARKERS[k % len(_MARKERS)]
        floor = name in (FLOOR, "perfect calibration")
        style = {"color": "#7d8a9c", "linestyle": ":"} if floor else {"color": colour}
        x, y, se = (line[c].to_numpy(dtype=float) for c in ("x", "mean", "se"))
        shown = marker if len(x) <= 12 and not floor else None
        axes.plot(x, y, label=label, marker=shown, markersize=4, linewidth=1.4, **style)
        axes.fill_between(x, y - np.nan_to_num(se), y + np.nan_to_num(se), alpha=0.13, **style)
    for label, (x, y) in panel.marks.items():
        axes.annotate(label, (x, y), textcoords="offset points", xytext=(4, 3), fontsize=7)
        axes.plot([x], [y], "o", color="#1a212c", markersize=3)
    if panel.ticks:
        axes.set_xticks(range(len(panel.ticks)), panel.ticks)
    axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def _unit(metric: str) -> str:
    return "error, points" if scale(metric) != 1 else "error"


def _by_labels(errors: Errors) -> Iterator[Figure]:
    """Error against the number of labels; one panel per metric."""
    cells = errors.cells[errors.cells["group"] == ""]
    for place, part in together(cells, "dataset", "factor", "level", "n_unlabeled"):
        if part["n_labeled"].nunique() > 1:
            panels = [
                Panel(str(metric), "labels", _unit(str(metric)),
                      _means(own.assign(x=own["n_labeled"])))
                for metric, own in part.groupby("metric", sort=False)
            ]  # fmt: skip
            yield Figure("error-by-labels", place_name(place), panels)


def _means(cells: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Mean error and standard error of every method over `x`."""
    known = cells[cells["mean"].notna()]
    return {str(m): own[["x", "mean", "se"]] for m, own in known.groupby("method", sort=False)}


def _by_level(errors: Errors) -> Iterator[Figure]:
    """Error against what the protocol varies, evenly spaced."""
    cells = errors.cells[(errors.cells["group"] == "") & (errors.cells["factor"] != "")]
    for place, part in together(cells, "dataset", "factor", "n_unlabeled", "n_labeled"):
        levels = sorted(part["level"].unique(), key=natural)
        if len(levels) > 1:
            names = [level_name(place["factor"], level) for level in levels]
            panels = [
                Panel(str(metric), factor_name(place["factor"]), _unit(str(metric)),
                      _means(own.assign(x=own["level"].map(levels.index))), names)
                for metric, own in part.groupby("metric", sort=False)
            ]  # fmt: skip
            yield Figure("error-by-level", place_name(place), panels)


def _labeled_curve(errors: Errors) -> Iterator[Figure]:
    """The labeled-only curve, and where the methods stand on it at the fewest labels."""
    cells = errors.cells
    for dataset in errors.datasets:
        own = errors.curves[(errors.curves["dataset"] == dataset) & (errors.curves["group"] == "")]
        at = cells[(cells["dataset"] == dataset) & (cells["group"] == "") & (cells["factor"] == "")]
        at = at[at["ess"].notna() & (at["n_labeled"] == at["n_labeled"].min())]
        panels = []
        for metric in errors.metrics:
            curve = own[own["metric"] == metric].dropna(subset="mean")
            if curve.empty:
                continue
            line = curve.assign(x=curve["n_labeled"])[["x", "mean", "se"]]
            line[["mean", "se"]] *= scale(metric)
            here = at[(at["metric"] == metric) & (at["method"] != REFERENCE)]
            marks = {
                f"{c['method']}  {c['ess_bound']}{c['ess']:,.0f}": (c["ess"], c["mean"])
                for c in here.to_dict("records")
            }
            panels.append(Panel(metric, "labels", _unit(metric), {REFERENCE: line}, marks=marks))
        if panels:
            fewest = at["n_labeled"].min()
            title = dataset if at.empty else f"{dataset}, {plural(int(fewest), 'label')}"
            yield Figure("labeled-curve", title, panels)


def _by_trait(errors: Errors, kind: str, trait: str, *, pooled: bool) -> Iterator[Figure]:
    """Error against a trait: of each level, or (pooled) of all together."""
    runs = errors.runs[errors.runs["group"] == ""]
    runs = runs.assign(within="" if pooled else runs["level"])
    for place, part in together(runs, "dataset", "factor", "n_unlabeled", "n_labeled"):
        panels = []
        for (metric, level), own in part.groupby(["metric", "within"], sort=False):
            lines = _trend(points(errors, own, trait), scale(metric))
            if lines:
                title = f"{metric}, {level_name(place['factor'], level)}" if level else metric
                x = trait.replace("_", " ").replace(" ece", " ECE")
                panels.append(Panel(title, x, _unit(metric), lines))
        if panels:
            yield Figure(kind, place_name(place), panels)


def _trend(found: pd.DataFrame, unit: float) -> dict[str, pd.DataFrame]:
    """A line per method: mean error by bins of the trait, and in its name their rank correlation.

    Bins end at quantiles, or between the values where these are few.
    """
    values = found.drop_duplicates(["level", "run"])["x"].to_numpy(dtype=float)
    if not len(values):
        return {}
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
        line = pd.DataFrame({"x": grouped["x"].mean(), "mean": grouped["error"].mean(),
                             "se": grouped["error"].sem()})  # fmt: skip
        rank = rank_correlation(own["x"], own["error"])
        lines[f"{method}  {'' if math.isnan(rank) else f'{rank:+.2f}'}"] = line
    return lines


FIGURES: Mapping[str, Any] = {
    "error-by-labels": _by_labels,
    "error-by-level": _by_level,
    "labeled-curve": _labeled_curve,
} | {
    kind: partial(_by_trait, kind=kind, trait=trait, pooled=pooled)
    for kind, trait, pooled in (
        ("error-by-accuracy", "mean_accuracy", False),
        ("error-by-calibration", "mean_ece", False),
        ("error-by-correlation", "error_correlation", True),
    )
}


def figures(errors: Errors) -> Iterator[Figure]:
    """All figures that a protocol asks for; none where the results have nothing for them."""
    protocol = errors.results.protocol
    for kind in protocol.figures:
        for figure in FIGURES[kind](errors):
            figure.about = ABOUT.get(kind, _TREND)
            figure.heading = KINDS[kind].format(factor=factor_name(protocol.factor))
            yield figure
