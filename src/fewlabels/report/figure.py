"""Every result as a figure for a slide: 16:9, legible at the back of a room, the answer its title.

A maker reads a report, the dictionary of plain values, and says what to draw: a title, panels and
what they rest on. Panels are forests, bars, curves with bands, and heat maps.
"""

from __future__ import annotations

import importlib
import io
import itertools
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from warnings import catch_warnings, filterwarnings

from fewlabels.errors import MissingExtraError, UsageError, unknown
from fewlabels.report.blocks import Block, Report, Row, blocks, verdict
from fewlabels.report.threshold import cut_text
from fewlabels.report.words import (
    enumerated,
    escape_control,
    fit,
    number_format,
    percent,
    plural,
    probability,
    with_interval,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INCHES = (12.8, 7.2)
_MOST_ROWS, _MOST_PANELS = 20, 6
_NAME_COLUMNS, _TITLE_COLUMNS = 28, 54

_INK, _SOFT, _RULE, _OWN, _OTHER = "#1a212c", "#556070", "#dde1e7", "#0b62a8", "#b34c06"
_LINES = (_OWN, _OTHER, "#3f7d20", "#7a3e9d", "#8a6d00", _SOFT)
"""The colours of the pages, and more for more lines."""

_STYLE = {
    "font.size": 17, "text.color": _INK, "axes.labelcolor": _SOFT, "axes.edgecolor": _RULE,
    "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": _RULE, "xtick.color": _SOFT,
    "ytick.color": _INK, "xtick.major.size": 0, "ytick.major.size": 0, "xtick.major.pad": 8,
    "ytick.major.pad": 8, "lines.linewidth": 3, "text.parse_math": False,
    "axes.titlelocation": "left", "axes.titlesize": 18, "figure.facecolor": "white",
}  # fmt: skip

Panel = Callable[["Axes"], None]


class Made(NamedTuple):
    """What is drawn of a report: the answer, panels side by side, and what they rest on."""

    title: str
    panels: Sequence[Panel]
    note: str


def render_figure(kind: str, report: Report, metric: str | None = None) -> Figure:
    """The report of a kind of result as a figure, by `metric` where there are several.

    It is made without pyplot, so no window opens and nothing has to be closed.

    Raises
    ------
    UsageError
        If there is no such metric, or nothing to draw.
    MissingExtraError
        If matplotlib is not installed.
    """
    figures, mpl = class_of_figures(), importlib.import_module("matplotlib")
    if kind not in _KINDS:
        raise UsageError("this result has nothing to draw; see `to_frame()`")
    title, panels, note = _KINDS[kind](report, metric)
    shown = panels[:_MOST_PANELS]
    note += f"; {len(shown)} of {len(panels)} are drawn" * (len(shown) < len(panels))
    lines = textwrap.wrap(escape_control(title), _TITLE_COLUMNS, max_lines=2, placeholder=" ...")
    with mpl.rc_context(_STYLE):
        figure = figures(figsize=_INCHES, layout="constrained")
        figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=25, fontweight="bold")
        figure.supxlabel(escape_control(note), x=0.01, ha="left", fontsize=13, color=_SOFT)
        down = 1 + (len(shown) > 3)
        for place, panel in enumerate(shown, 1):
            panel(figure.add_subplot(down, math.ceil(len(shown) / down), place))
    return figure


def class_of_figures() -> type[Figure]:
    """What figures are made of, or a `MissingExtraError`: to ask before the work is done."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None
    return Figure


def render_svg(kind: str, report: Report) -> str:
    """The figure of a report as a file of SVG, the same each time; text stays text."""
    figure, out = render_figure(kind, report), io.StringIO()
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "fewlabels"}), catch_warnings():
        # Whoever opens the file may have the characters that are missing here.
        filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


# --- panels ---------------------------------------------------------------------------------------


def _forest(
    axes: Axes, rows: Sequence[Row | str], write: Callable[[Any], str], label: str, tick: str = "",
    bars: bool = False,
) -> None:  # fmt: skip
    """A line per row: name, interval or bar, value; a text is a heading; `tick` is the truth."""
    shown = rows[:_MOST_ROWS]
    size = min(18.0, 340 / len(shown))
    for at, row in enumerate(shown):
        if isinstance(row, str):
            continue
        text = row.reason if row.value is None else write(row.value)
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [at, at], color=_OWN, linewidth=4)
            text += f" [{write(row.low)}, {write(row.high)}]"
        if row.truth is not None:
            axes.plot(row.truth, at, "|", color=_OTHER, markersize=size, markeredgewidth=4)
            axes.text(row.truth, at - 0.3, tick, color=_OTHER, fontsize=0.8 * size, ha="center")
            tick = ""  # said once
        if row.value is not None and bars:
            axes.barh(at, row.value, color=_OWN, height=0.6)
        elif row.value is not None:
            axes.plot(row.value, at, "o", color=_OWN, markersize=11, markeredgecolor="white")
        where = ("axes fraction", "data")
        axes.annotate(text, (1.02, at), xycoords=where, va="center", fontsize=size)
    names = [_short(row if isinstance(row, str) else row.model) for row in shown]
    axes.set_yticks(range(len(shown)), names, fontsize=size)
    for name, row in zip(axes.get_yticklabels(), shown, strict=True):
        name.set_fontweight("bold" if isinstance(row, str) else "normal")
    axes.set_ylim(len(shown) - 0.4, -0.7)
    more = len(rows) - len(shown)
    axes.set_xlabel(escape_control(label) + f"; {more:,} more rows are not drawn" * bool(more))
    axes.locator_params(axis="x", nbins=6)
    axes.grid(visible=False, axis="y")


class _Line(NamedTuple):
    """Numbers along an axis, with a band where ends are given; its name stands at its end."""

    x: Sequence[Any]
    y: Sequence[Any]
    low: Sequence[Any] = ()
    high: Sequence[Any] = ()
    name: str = ""
    mark: str = ""


def _curve(
    axes: Axes, lines: Sequence[_Line], labels: tuple[str, str], reference: Any = None,
    title: str = "", limits: tuple[float | None, float | None] = (0, 1.02), point: Any = None,
    ticks: Sequence[str] = (), since: int | None = None,
) -> None:  # fmt: skip
    """Lines with bands; `reference` is a dashed line: x, y, name; `point` likewise."""
    wide = axes.get_subplotspec().get_gridspec().ncols  # type: ignore[union-attr]
    if since is not None:
        axes.axvspan(since - 0.5, len(ticks) - 0.5, color=_OTHER, alpha=0.15, linewidth=0)
    if reference is not None:
        xs, ys, name = reference
        axes.plot(xs, ys, "--", color=_SOFT, linewidth=2)
        axes.text(0.85, 0.85 * ys[1] + 0.15 * ys[0] - 0.03, name, color=_SOFT, va="top")
    for line, colour in zip(lines, itertools.cycle(_LINES), strict=False):
        known = [[math.nan if v is None else v for v in part] for part in line[1:4]]
        if known[1]:
            axes.fill_between(line.x, known[1], known[2], color=colour, alpha=0.25, linewidth=0)
        axes.plot(line.x, known[0], color=colour, marker=line.mark, markersize=9)
        if line.name:
            axes.annotate(
                _short(line.name), (line.x[-1], known[0][-1]), (8, 0), color=colour, va="center",
                textcoords="offset points", fontweight="bold",
            )  # fmt: skip
    if point is not None:
        axes.plot(*point[:2], "o", color=_OWN, markersize=16, markeredgecolor="white")
        axes.annotate(
            point[2], point[:2], (-8, -12), textcoords="offset points", ha="right", va="top",
            fontsize=22, fontweight="bold", color=_OWN,
        )  # fmt: skip
    if ticks:
        places = range(0, len(ticks), math.ceil(len(ticks) / 5))
        axes.set_xticks(places, [fit(escape_control(ticks[k]), 12) for k in places])
    else:
        axes.locator_params(nbins=6 - wide)
    axes.set_ylim(*limits)
    axes.set(
        xlabel=_short(labels[0]), ylabel=_short(labels[1]), title=fit(_short(title), 54 // wide)
    )


def _heat(
    axes: Axes, values: Sequence[Sequence[float | None]], names: Sequence[str], title: str
) -> None:
    """Shares of each row as colours, and as numbers where there is room."""
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("page", ["white", _OWN])
    numbers = [[math.nan if v is None else v for v in row] for row in values]
    axes.imshow(numbers, cmap=shades, vmin=0, vmax=1, aspect="auto")
    for i, j in itertools.product(range(len(names)), repeat=2) if len(names) <= 8 else ():
        share = values[i][j]
        colour = _INK if share is None or share < 0.55 else "white"
        axes.text(j, i, "-" if share is None else f"{share:.0%}", ha="center", color=colour)
    size, shown = min(17.0, 150 / len(names)), [fit(escape_control(name), 10) for name in names]
    axes.set_xticks(range(len(names)), shown, fontsize=size, rotation=90 * (len(names) > 4))
    axes.set_yticks(range(len(names)), shown, fontsize=size)
    axes.set(xlabel="called", ylabel="label", title=_short(title))
    axes.grid(visible=False)


# --- what is drawn of each kind -------------------------------------------------------------------


def _short(name: object) -> str:
    return fit(escape_control(name), _NAME_COLUMNS)


def _spoken(metric: str) -> str:
    return metric.replace("_", " ")


def _chosen(names: Iterable[str], asked: str | None) -> str:
    """The metric that was asked for, or the first one."""
    names = list(dict.fromkeys(names))
    if not names:
        raise UsageError("nothing to draw: no number is known here; see `summary()`")
    if asked is not None and asked not in names:
        raise UsageError(unknown("metric", asked, names))
    return names[0] if asked is None else asked


def _leads(block: Block) -> str:
    """Who is best, and whether that is sure."""
    found, by = verdict(block), _spoken(block.metric)
    if found is None:
        return f"{by} is undefined here"
    who = _short(found.leader.model)
    said = " ".join(filter(None, block.figures(found.leader)))
    if found.certainty == "contradicted":
        return f"The labels contradict every estimate of {by}"
    if found.certainty in ("alone", "unordered"):
        return f"{by} of {who}: {said}"
    if found.certainty in ("clear", "left", "likely") or not found.rivals:
        return f"{who} is {'probably ' * (found.certainty == 'likely')}best by {by}: {said}"
    return f"{who} leads by {by} with {said}, not surely"


def _note(report: Report, *more: str) -> str:
    level, labeled = report.get("confidence_level"), report.get("n_labeled")
    parts = [
        *more, f"{percent(level)} intervals" if level else "", plural(report["n_items"], "item"),
        "" if labeled is None else f"{labeled:,} labeled", str(report.get("method") or ""),
        f"fewlabels {report['fewlabels']}" if "fewlabels" in report else "",
    ]  # fmt: skip
    return "; ".join(filter(None, parts))


def _listed(
    block: Block, report: Report, title: str = "", rows: Sequence[Row | str] = ()
) -> Made:  # fmt: skip
    """The rows of a block, or these, as a forest."""
    rows = rows or block.rows
    label = ", ".join(filter(None, [_spoken(block.metric), block.preference]))
    write = number_format(n for row in rows if isinstance(row, Row) for n in row.numbers)
    panel = partial(_forest, rows=rows, write=write, label=label, tick=block.truth_name)
    return Made(title or _leads(block), [panel], _note(report))


def _rows(entries: Iterable[Mapping[str, Any]], name: str, *more: str) -> tuple[Row, ...]:
    """Rows of entries with value and interval; `more` are the keys of P(best) and truth."""
    return tuple(
        Row(_spoken(str(one[name])), one["value"], one.get("low"), one.get("high"),
            one.get("status", "ok"), *(one[key] for key in more))
        for one in entries
    )  # fmt: skip


def _estimates(report: Report, metric: str | None, losses: bool = False) -> Made:
    shown = blocks(report)
    usual = [b.metric for b in shown if losses and b.metric == "EL"]
    chosen = _chosen([*usual, *(block.metric for block in shown)], metric)
    first, *groups = (block for block in shown if block.metric == chosen)
    if losses:
        first = replace(first, direction=1 if chosen == "accuracy" else -1)
    ranked = first.ranked()
    rows: list[Row | str] = [*ranked]
    for block in groups:
        rows += [str(block.group), *block.in_order([row.model for row in ranked])]
    return _listed(first, report, rows=rows)


def _compared(report: Report, metric: str | None) -> Made:
    entries = {one["metric"]: one for one in report["comparisons"] if one["group"] is None}
    one = entries[_chosen(entries, metric)]
    rows = tuple(
        Row(s["model"], s["value"], s["low"], s["high"], "ok", s["probability_best"])
        for s in one["standings"]
    )
    block = Block(
        one["metric"], None, rows, one["confidence_level"], direction=one["direction"],
        ranking=tuple(one["ranking"]),
    )  # fmt: skip
    return _listed(block, report, rows=block.ranked())


def _scores(report: Report, metric: str | None) -> Made:
    criteria = {one["criterion"] or one["what"]: one for one in report["criteria"]}
    one = criteria[_chosen(criteria, metric)]
    entries = [
        {**row, "who": ", ".join(filter(None, [row["way"], row["judge"]]))} for row in one["rows"]
    ]
    block = Block(one["what"], None, _rows(entries, "who"), report["confidence_level"])
    last = block.rows[-1]  # of all that is known
    title = f"{one['what']}: {' '.join(block.figures(last))} by {last.model}"
    return _listed(block, {**one, "confidence_level": report["confidence_level"]}, title)


def _agreement(report: Report, metric: str | None) -> Made:
    of_all = [e for e in report["estimates"] if e["annotator"] is None and e["other"] is None]
    block = Block("1 is perfect", None, _rows(of_all, "metric"), 0.95)
    same = next(one["value"] for one in of_all if one["metric"] == "agreement")
    title = f"Two who label an item say the same in {probability(same)} of cases"
    return _listed(block, {**report, "confidence_level": of_all[0]["confidence_level"]}, title)


_SAID = {
    "fpr": "false-positive rate", "tpr": "true-positive rate", "average_precision":
    "average precision", "roc_auc": "area under the ROC curve",
}  # fmt: skip


def _curves(report: Report, metric: str | None) -> Made:
    lines = report["curves"] if report["what"] == "curves" else {report["kind"]: report}
    kinds = [*lines] if metric is None else [_chosen(lines, metric)]
    panels = []
    for kind in kinds:
        line, roc = lines[kind], kind == "roc"
        x, y = ("fpr", "tpr") if roc else ("recall", "precision")
        share = (report.get("prevalence") or {}).get("value")
        ends = [0, 1] if roc else [share, share]
        panels.append(partial(
            _curve, lines=[_Line(line[x], line[y], line["low"], line["high"])],
            labels=(_SAID.get(x, x), _SAID.get(y, y)),
            reference=None if ends[0] is None else ([0, 1], ends, "chance"),
        ))  # fmt: skip
    area = lines[kinds[0]]["area"]
    what = _SAID.get(area["metric"], area["metric"])
    title = f"{_short(report['model'])}: {what} {with_interval(area)}"
    return Made(title, panels, _note(report))


def _threshold(report: Report, metric: str | None) -> Made:
    best, met, who = report["best"], report["best_probability"], _short(report["model"])
    asked, point = " and ".join(report["conditions"]), None
    title = f"{who}: no threshold is known for {asked}"
    if best is not None:
        cut = cut_text(report["thresholds"], best)
        point = best, met, cut
        title = f"{who}: threshold {cut} meets {asked} with {probability(met)} probability"
    lines = [_Line(report["thresholds"], report["probability"])]
    labels = ("threshold", "probability that it is met")
    return Made(title, [partial(_curve, lines=lines, labels=labels, point=point)], _note(report))


def _monitoring(report: Report, metric: str | None) -> Made:
    ticks = [str(period["name"]) for period in report["periods"]]
    places = {f"{report['time']}={name}": place for place, name in enumerate(ticks)}
    periods = [row for row in report["estimates"] if row["group"] in places]
    chosen = _chosen([row["metric"] for row in periods], metric)
    periods = [row for row in periods if row["metric"] == chosen]
    ends = [row[key] for row in periods for key in ("value", "low", "high") if row[key] is not None]
    limits = (min(ends), max(ends)) if len({*ends}) > 1 else (None, None)
    fell = [c for c in report["changes"] if c["metric"] == chosen and c["since"] is not None]
    since, panels = {one["model"]: ticks.index(str(one["since"])) for one in fell}, []
    for model in report["models"]:
        rows = [row for row in periods if row["model"] == model]
        value, low, high = ([row[key] for row in rows] for key in ("value", "low", "high"))
        line = _Line([places[row["group"]] for row in rows], value, low, high, mark="o")
        panels.append(partial(
            _curve, lines=[line], labels=(str(report["time"]), _spoken(chosen)), title=model,
            ticks=ticks, since=since.get(model), limits=limits,
        ))  # fmt: skip
    title = f"No sign that {_spoken(chosen)} has fallen"
    if fell:
        one = max(fell, key=lambda one: one["probability"])
        title = (
            f"{_spoken(chosen)} of {_short(one['model'])} has {'' if one['alarm'] else 'perhaps '}"
            f"fallen since {one['since']}, by {one['fall']:.3f}"
        )
    return Made(title, panels, _note(report, "shaded: since it fell" if fell else ""))


def _backtest(report: Report, metric: str | None) -> Made:
    model = None if len(report["models"]) > 1 else report["models"][0]
    rows = [row for row in report["rows"] if row["model"] == model and row["group"] is None]
    chosen = _chosen([row["metric"] for row in rows], metric)
    rows = [row for row in rows if row["metric"] == chosen]
    lines = []
    for method in report["methods"]:
        own = [row for row in rows if row["method"] == method]
        x, y = ([row[key] for row in own] for key in ("n_labeled", "error"))
        lines.append(_Line(x, y, name=method, mark="o"))
    known = [row for row in rows if row["error"] is not None]
    title = f"No error in {_spoken(chosen)} is known"
    if known:
        least = min(known, key=lambda row: (-row["n_labeled"], row["error"]))
        title = (
            f"{least['method']} errs least in {_spoken(chosen)}: by {least['error']:.3f} with "
            f"{plural(least['n_labeled'], 'label')}"
        )
    panel = partial(_curve, lines=lines, labels=("labels", "mean error"), limits=(0, None))
    note = _note({**report, "confidence_level": None}, plural(report["n_runs"], "run"))
    return Made(title, [panel], note)


def _calibrated(report: Report, metric: str | None) -> Made:
    bins: dict[tuple[str, str], list[Any]] = {}
    for one in report["bins"]:
        bins.setdefault((one["model"], one["event"]), []).append(one)
    panels, keys = [], ("predicted", "observed", "low", "high")
    for (model, event), rows in bins.items():
        x, y, low, high = ([r[key] for r in rows if r["observed"] is not None] for key in keys)
        panels.append(partial(
            _curve, lines=[_Line(x, y, low, high, mark="o")], reference=([0, 1], [0, 1], ""),
            title=model, labels=(f"predicted P({event})", "observed"),
        ))  # fmt: skip
    return Made(_estimates(report, metric, losses=True).title, panels, _note(report))


def _recalibrated(report: Report, metric: str | None) -> Made:
    fitted = report["calibrations"]
    usual = [one["change"]["loss"] for one in fitted if one["change"]]
    known = [loss for one in fitted for loss, n in one["before"].items() if n is not None]
    loss = _chosen([*usual, *known], metric)
    entries = [
        {**one, "value": (one["after"] or {}).get(loss), "before": one["before"].get(loss),
         "best": None}
        for one in fitted
    ]  # fmt: skip
    rows = _rows(entries, "model", "best", "before")
    block = Block(f"{loss} after the calibration", None, rows, 0.95, truth_name="before")
    sure = [one["change"] for one in fitted if one["change"] and one["change"]["beyond_chance"]]
    better = sum(change["difference"] < 0 for change in sure)
    title = f"Calibration makes {better} of {plural(len(fitted), 'classifier')} surely better"
    return _listed(block, report, title)


def _shift(report: Report, metric: str | None) -> Made:
    name, level = "share of the unlabeled items", report["confidence_level"]
    entries = [
        {**c, "value": c["unlabeled"], "best": None} for c in report["label_shift"]["classes"]
    ]
    rows = _rows(entries, "class", "best", "labeled")
    if not rows:
        name = "difference in standard deviations"
        rows = tuple(Row(d["words"], d["effect"], None, None, "ok") for d in report["differences"])
    _chosen([name] if rows else [], None)
    block = Block(name, None, rows, level, truth_name="labeled")
    return _listed(block, report, re.split("[.:] ", report["statement"])[0])


def _next(report: Report, metric: str | None) -> Made:
    gains = any(report["gain"])
    names = [f"row {item + 1:,}" for item in report["items"]]
    values = report["gain" if gains else "drawn"]
    rows = [Row(name, v, None, None, "ok") for name, v in zip(names, values, strict=True)]
    _chosen(names, None)
    label = "share of the variance that its label would take" if gains else "how probably drawn"
    panel = partial(_forest, rows=rows, write="{:.1%}".format, label=label, bars=True)
    return Made(f"Label next: {enumerated(names, 3)}", [panel], _note(report))


def _confusion(report: Report, metric: str | None) -> Made:
    names, panels, right = [str(c) for c in report["classes"]], [], {}
    for model in dict.fromkeys(cell["model"] for cell in report["cells"]):
        own = [cell for cell in report["cells"] if cell["model"] == model]
        cells = {(str(cell["label"]), str(cell["predicted"])): cell for cell in own}
        values = [[cells[a, b]["of_label"] for b in names] for a in names]
        right[model] = sum(cells[a, a]["value"] or 0.0 for a in names)
        panels.append(partial(_heat, values=values, names=names, title=model))
    best = max(right, key=lambda model: right[model])
    title = f"{_short(best)} calls {probability(right[best])} of the items what their label says"
    return Made(title, panels, _note(report, "shares of the items of a label"))


_KINDS: Mapping[str, Callable[[Report, str | None], Made]] = {
    "estimates": _estimates,
    "annotations": partial(_estimates, losses=True),
    "agreement": _agreement,
    "backtest": _backtest,
    "calibration": _recalibrated,
    "calibration-curve": _calibrated,
    "comparison": _compared,
    "confusion": _confusion,
    "curves": _curves,
    "label-next": _next,
    "monitoring": _monitoring,
    "ranking": _estimates,
    "score": _scores,
    "shift": _shift,
    "threshold": _threshold,
}
"""What makes the figure of each kind of result."""
