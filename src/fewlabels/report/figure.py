"""Every result as a figure for a slide: 16:9, legible at the back of a room, the answer its title.

It is made of the result's document: what a page draws in one of its sections, matplotlib draws.
"""

from __future__ import annotations

import importlib
import io
import json
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil, nan
from typing import TYPE_CHECKING, Any, NamedTuple
from warnings import catch_warnings, filterwarnings

from fewlabels.errors import MissingExtraError, UsageError, unknown
from fewlabels.report import document as said
from fewlabels.report.axis import Axis, View
from fewlabels.report.blocks import PREFERENCES, Report
from fewlabels.report.html import document_of
from fewlabels.report.words import escape_control, fit, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INCHES, _MOST_ROWS, _MOST_PANELS, _MOST_NUMBERS, _MOST_LETTERS = (12.8, 7.2), 20, 6, 9, 170
_INK, _SOFT, _RULE, _OWN, _OTHER = "#1a212c", "#556070", "#dde1e7", "#0b62a8", "#b34c06"
_STYLE = {
    "text.color": _INK, "axes.labelcolor": _SOFT, "axes.edgecolor": _RULE, "grid.color": _RULE,
    "xtick.color": _SOFT, "ytick.color": _INK, "figure.facecolor": "white", "axes.grid": True,
    "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
    "xtick.major.size": 0, "ytick.major.size": 0, "xtick.major.pad": 8, "ytick.major.pad": 8,
    "axes.titlelocation": "left", "axes.titlesize": 16, "figure.constrained_layout.w_pad": 0.12,
    "lines.linewidth": 3, "lines.markeredgecolor": "white", "text.parse_math": False,
}  # fmt: skip
_DRAWN = {"band": "band", "chance": "dashed", "diagonal": "dashed", "since": "shaded"}


class _Part(NamedTuple):
    """What can be drawn: the sections around it, what it may be asked for by, what it shows."""

    path: tuple[str, ...]
    caption: str
    names: tuple[str, ...]
    legend: str
    draw: Callable[..., None]  # on axes, of so many across and down


def render_figure(kind: str, report: Report, metric: str | None = None) -> Figure:
    """The report of a kind of result as a figure, by `metric` where there are several.

    `metric` is the title of a section of its page, or of a drawing. Pyplot is left alone. A
    character that no font of the system has is drawn as a square.

    Raises
    ------
    UsageError
        If there is no such metric, or nothing to draw.
    MissingExtraError
        If matplotlib is not installed.
    """
    class_of_figures()
    families, missing = _fonts(report)
    if missing:
        written = json.dumps(report, ensure_ascii=False)
        report = json.loads(written.translate(dict.fromkeys(missing, "\N{WHITE SQUARE}")))
    return _figure(kind, report, metric, families)


def _figure(kind: str, report: Report, metric: str | None, families: Sequence[str]) -> Figure:
    figures, mpl = class_of_figures(), importlib.import_module("matplotlib")
    document = document_of(kind, report)[0]
    chosen = _chosen([*_parts([*said.shown([*document.body, *document.more])])], metric)
    drawn = chosen[:_MOST_PANELS]
    title = said.opening(" ".join(document.answer) or document.title, _MOST_LETTERS)
    title = said.MARKS.sub(lambda m: _text(m[1], 28) if m[1] else m[0], title).rstrip(".:")
    left_out = f"{len(drawn)} of {len(chosen)} are drawn" if len(drawn) < len(chosen) else ""
    read = said.in_line(document.facts)
    note = _lines("; ".join(filter(None, [drawn[0].legend, read, left_out])), 130)
    same = len({one.caption for one in drawn}) == 1  # then sections tell panels apart
    down = 1 + (len(drawn) > 3)
    across = ceil(len(drawn) / down)
    with mpl.rc_context(_STYLE | {"font.size": 19 - 2 * across, "font.family": families}):
        figure = figures(figsize=_INCHES, layout="constrained")
        figure.suptitle(_lines(title, 66, 3), x=0.01, ha="left", fontsize=23, fontweight="bold")
        figure.supxlabel(note, x=0.01, ha="left", fontsize=13, color=_SOFT)
        for place, one in enumerate(drawn, 1):
            axes = figure.add_subplot(down, across, place)
            one.draw(axes, across, down)
            axes.set_title(_text(["", *one.path][-1] if same else one.caption, 84 // across))
    return figure


def class_of_figures() -> type[Figure]:
    """What figures are made of, or a `MissingExtraError`: to ask before the work is done."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None
    return Figure


def _fonts(report: Report) -> tuple[list[str], set[int]]:
    """Families of fonts for what is written in a report, and the characters that none has.

    Names may be of any script: where the usual font lacks a character, others of the system follow.
    """
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

    families: list[str] = [*rcParams["font.family"]]
    missing = {ord(c) for c in json.dumps(report, ensure_ascii=False) if not c.isascii()}
    missing -= get_font(findfont(FontProperties())).get_charmap().keys()
    for font in fontManager.ttflist if missing else ():
        if font.style != "normal" or font.weight != 400 or "Last Resort" in font.name:
            continue  # The last one has boxes for all that is.
        if missing & (found := get_font(font.fname).get_charmap().keys()):
            families.append(font.name)
            missing -= found
    return families, missing


def render_svg(kind: str, report: Report) -> str:
    """The figure of a report as a file of SVG, the same each time; text stays text."""
    class_of_figures()
    figure, out = _figure(kind, report, None, _fonts(report)[0]), io.StringIO()
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "fewlabels"}), catch_warnings():
        # Whoever opens the file may have the characters that are missing here.
        filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def _text(marked: object, columns: int = 1_000) -> str:
    return fit(escape_control(said.unmarked(str(marked))), columns)


def _lines(text: str, columns: int, most: int = 2) -> str:
    wrap = partial(textwrap.wrap, placeholder=" ...", break_on_hyphens=False)
    return "\n".join(wrap(_text(text), columns, max_lines=most))


def _parts(
    nodes: Sequence[said.Node], path: tuple[str, ...] = (), around: str = "", legend: str = ""
) -> Iterator[_Part]:
    """All that can be drawn, in the order of the page; `around` is the summary of a fold."""
    for node in nodes:
        title, fold = (_text(getattr(node, of, "")) for of in ("title", "summary"))
        if isinstance(node, said.Legend):
            known = [(_DRAWN[kind], text) for kind, text in node.samples if kind in _DRAWN]
            legend = ", ".join(map(": ".join, known))
        if hasattr(node, "body"):
            within = (*path, title) if title else path
            yield from _parts(node.body, within, fold or around, legend)
        elif (draw := _draw(node)) is not None:
            caption = _text(node.caption) if isinstance(node, said.Drawing) else ""
            metric = node.block.metric if isinstance(node, said.Forest) else ""
            yield _Part(path, caption or around, (*path, caption, metric), legend, draw)


def _chosen(parts: Sequence[_Part], asked: str | None) -> Sequence[_Part]:
    """What was asked for, or all: of it the first section, or the first drawing of several."""
    by = (asked or "").casefold()
    found = [one for one in parts if by in ("", *map(str.casefold, one.names))]
    if not found:
        nothing = "this result has nothing to draw; see `to_frame()`"
        names = dict.fromkeys(name for one in parts for name in one.names if name)
        raise UsageError(unknown("metric", asked, names) if parts else nothing)
    same = [one for one in found if one.caption == found[0].caption != ""]
    return max(same, [one for one in found if one.path == found[0].path], key=len)


def _draw(node: said.Node) -> Callable[..., None] | None:
    """What draws a part of a page; None where there is nothing to be drawn."""
    if isinstance(node, said.Forest) and node.rows:
        block = node.block
        rows = [(row.model, " ".join(block.figures(row)).strip(), row.numbers) for row in node.rows]
        for k, than in enumerate(node.versus):
            rows[k] = (f"{rows[k][0]} − {than}", *rows[k][1:])
        level = f"{percent(block.level)} intervals" if block.level else ""
        label = ", ".join(filter(None, [block.metric, PREFERENCES[block.direction], level]))
        return partial(_rows, rows, label, node.axis, block.truth_name)
    if isinstance(node, said.Table) and any(node.bars):
        at, bars = node.bar_at, zip(node.rows, node.shares, strict=True)
        label = f"{node.head[at]} by {', '.join(node.head[:at])}"
        rows = [(", ".join(row[:at]), row[at], (share,)) for row, share in bars]
        return partial(_rows, rows, label, Axis(0.0, 1.0, (), ()), "")
    if isinstance(node, said.Drawing) and node.macro in ("curve", "heat", "reliability"):
        view = node.view.view if node.macro == "reliability" else node.view
        return partial(_heat if node.macro == "heat" else _curve, view)
    return None


def _rows(
    rows: Sequence[Any], label: str, axis: Axis, truth: str, axes: Any, across: int, down: int
) -> None:
    """Rows of a name, a text, and numbers: value, low, high and truth, or the share of a bar."""
    drawn, more = rows[:_MOST_ROWS], len(rows) - _MOST_ROWS
    size = min(18.0, 340 / down / len(drawn)) / (1 + 0.35 * (across - 1))
    beside = axes.get_yaxis_transform()
    axes.vlines(0, -1, len(drawn), color=_RULE)
    for at, (_, text, numbers) in enumerate(drawn):
        value, low, high, true = (*numbers, None, None, None, None)[:4]
        if len(numbers) == 1:
            axes.barh(at, value or 0.0, color=_OWN, height=0.6)
        elif value is not None:
            axes.plot(value, at, "o", color=_OWN, markersize=11, clip_on=False, zorder=3)
        if low is not None and high is not None:
            axes.plot([low, high], [at, at], color=_OWN, linewidth=4, clip_on=False)
        if true is not None:
            axes.plot(true, at, "|", color=_OTHER, ms=size, mew=4, mec=_OTHER, clip_on=False)
            axes.text(true, at - 0.3, truth, color=_OTHER, fontsize=0.8 * size, ha="center")
            truth = ""  # said once
        axes.text(1.02, at, _text(text), va="center", size=size, transform=beside)
    axes.set_yticks(range(len(drawn)), [_text(row[0], 32 - 4 * across) for row in drawn], size=size)
    label += f"; {more:,} more rows are not drawn" if more > 0 else ""
    axes.set(xlabel=_lines(label, 80 // across), ylim=(len(drawn) - 0.4, -0.7))
    axes.set_xticks(axis.ticks[::across], axis.labels[::across])
    axes.set_xlim(axis.low, axis.high)
    axes.grid(visible=False, axis="y")


def _curve(view: View, axes: Any, across: int, down: int) -> None:
    """Lines with their bands, points to be seen, and what is shaded."""
    x, y, since = view.x, view.y, getattr(view, "since", None)
    if since is not None:
        axes.axvspan(x.low + since / 100 * (x.high - x.low), x.high, color=_OTHER, alpha=0.15, lw=0)
    for line in filter(None, view.dashed):
        axes.plot(*zip(*line, strict=True), "--", color=_SOFT, linewidth=2)
    for run in filter(None, view.runs):
        at, up, low, high = ([nan if n is None else n for n in c] for c in zip(*run, strict=True))
        axes.fill_between(at, low, high, color=_OWN, alpha=0.25, linewidth=0)
        axes.plot(at, up, color=_OWN, marker="o" if len(run) <= _MOST_ROWS else "", ms=9)
    for left, top, text in view.points:
        axes.plot(left, top, "o", color=_OWN, markersize=16, clip_on=False)
        axes.annotate(_text(text), (left, top), (0, 14), textcoords="offset points", color=_OWN,
                      ha="right" if view.x.at(left) > 0.5 else "left", weight="bold")  # fmt: skip
    axes.set_xticks(x.ticks[:: 1 + across // 3], x.labels[:: 1 + across // 3])
    axes.set_yticks(y.ticks[::down], y.labels[::down])
    axes.set(xlim=(x.low, x.high), xlabel=_text(view.x_name, 80 // across))
    axes.set(ylim=(y.low, y.high), ylabel=_text(view.y_name, 40 // down))


def _heat(view: Any, axes: Any, across: int, down: int) -> None:
    """Cells as colours, and as numbers where there is room."""
    n, own = len(view.columns), [int(_OWN[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    size = min(17.0, 150 / n / down) / (1 + 0.35 * (across - 1))
    heats = [[cell.heat or 0.0 for cell in cells] for _, cells in view.rows]
    axes.imshow([[(*own, heat) for heat in row] for row in heats], aspect="auto")
    for i, (_, cells) in enumerate(view.rows):
        for j, cell in enumerate(cells if n <= _MOST_NUMBERS else ()):
            text, colour = cell.text.partition(" [")[0], "white" if heats[i][j] > 0.55 else _INK
            axes.text(j, i, text, ha="center", va="center", color=colour, fontsize=size)
    columns, rows = ([_text(name, 12) for name in some] for some in (view.columns, dict(view.rows)))
    axes.set_xticks(range(n), columns, fontsize=size, rotation=90 * (n > 4))
    axes.set_yticks(range(len(rows)), rows, fontsize=size)
    axes.set(xlabel=view.corner[1], ylabel=view.corner[0])
    axes.grid(visible=False)
