"""Every result as a figure for a slide: 16:9, legible at the back of a room, the answer its title.

It is made of the result's document: what a page draws in one of its sections, matplotlib draws.
"""

from __future__ import annotations

import importlib
import io
import itertools
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from warnings import catch_warnings, filterwarnings

from fewlabels.errors import MissingExtraError, UsageError, unknown
from fewlabels.report import document as said
from fewlabels.report.axis import Axis, Profile, Scale, View, fit_axis
from fewlabels.report.blocks import Report
from fewlabels.report.html import DOCUMENTS, document_of
from fewlabels.report.words import escape_control, fit, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fewlabels.report.diagnostics import HeatMap

_INCHES = (12.8, 7.2)
_MOST_ROWS, _MOST_PANELS, _MOST_NUMBERS, _MOST_LETTERS = 20, 6, 9, 170
_INK, _SOFT, _RULE, _OWN, _OTHER = "#1a212c", "#556070", "#dde1e7", "#0b62a8", "#b34c06"
_STYLE = {
    "font.size": 17, "text.color": _INK, "axes.labelcolor": _SOFT, "axes.edgecolor": _RULE,
    "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": _RULE, "xtick.color": _SOFT,
    "ytick.color": _INK, "xtick.major.size": 0, "ytick.major.size": 0, "xtick.major.pad": 8,
    "ytick.major.pad": 8, "lines.linewidth": 3, "text.parse_math": False,
    "axes.titlelocation": "left", "axes.titlesize": 16, "figure.facecolor": "white",
    "figure.constrained_layout.w_pad": 0.12,
}  # fmt: skip
_SAMPLES = {"band": "band", "chance": "dashed", "diagonal": "dashed", "since": "shaded"}
"""What samples of a page's legends are here."""

# A name may have full stops.
_SENTENCE = re.compile("(?:\x02[^\x04]*\x04|\\.(?! )|[^.\x02])+\\.?")
_SHARES = Axis(0.0, 1.0, (), ())
Draw = Callable[["Axes"], None]


class _Part(NamedTuple):
    """What can be drawn: the sections around it, what it may be asked for by, what it shows."""

    path: tuple[str, ...]
    caption: str
    metric: str
    legend: str
    draw: Draw


def render_figure(kind: str, report: Report, metric: str | None = None) -> Figure:
    """The report of a kind of result as a figure, by `metric` where there are several.

    `metric` is the title of a section of its page, or of a drawing. The figure is made without
    pyplot, so no window opens and nothing has to be closed.

    Raises
    ------
    UsageError
        If there is no such metric, or nothing to draw.
    MissingExtraError
        If matplotlib is not installed.
    """
    figures, mpl = class_of_figures(), importlib.import_module("matplotlib")
    document = document_of(kind, report)[0] if kind in DOCUMENTS else said.Document("", report)
    chosen = _chosen([*_parts([*document.body, *document.more])], metric)
    drawn, title = chosen[:_MOST_PANELS], ""
    for one in _SENTENCE.findall(" ".join(document.answer) or document.title):
        longer = title + said.MARKS.sub(lambda m: _text(m[1], 28) if m[1] else m[0], one)
        if title and len(longer) > _MOST_LETTERS:
            break
        title = longer
    left_out = f"{len(drawn)} of {len(chosen)} are drawn" if len(drawn) < len(chosen) else ""
    note = [drawn[0].legend, [*document.head, *document.basis, ""][0].rstrip("."), left_out]
    # Panels are told apart by what they are called, or else by their sections.
    same = len({one.caption for one in drawn}) == 1
    down = 1 + (len(drawn) > 3)
    across = math.ceil(len(drawn) / down)
    with mpl.rc_context(_STYLE | {"font.size": 19 - 2 * across}):
        figure = figures(figsize=_INCHES, layout="constrained")
        figure.suptitle(
            _wrapped(title.rstrip(".:"), 66, 3), x=0.01, ha="left", fontsize=23, fontweight="bold"
        )
        figure.supxlabel(_wrapped("; ".join(filter(None, note)), 130, 2), x=0.01, ha="left",
                         fontsize=13, color=_SOFT)  # fmt: skip
        for place, one in enumerate(drawn, 1):
            axes = figure.add_subplot(down, across, place)
            one.draw(axes)
            if len(drawn) > 1:
                axes.set_title(_text(one.path[-1] if same else one.caption, 84 // across))
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


def _text(marked: object, columns: int = 1_000) -> str:
    return fit(escape_control(said.unmarked(str(marked))), columns)


def _wrapped(text: str, columns: int, most: int) -> str:
    lines = textwrap.wrap(_text(text), columns, max_lines=most, placeholder=" ...")
    return "\n".join(lines)


def _parts(
    nodes: Sequence[said.Node], path: tuple[str, ...] = (), caption: str = "", legend: str = ""
) -> Iterator[_Part]:
    """All that can be drawn, in the order of the page."""
    for node in nodes:
        if isinstance(node, said.Legend):
            shown = [f"{_SAMPLES[kind]}: {text}" for kind, text in node.samples if kind in _SAMPLES]
            legend = said.unmarked(", ".join(shown))
        metric, draw = node.block.metric if isinstance(node, said.Forest) else "", _draw(node)
        title, fold = (said.unmarked(getattr(node, of, "")) for of in ("title", "summary"))
        if node.children:
            within = (*path, title) if title else path
            yield from _parts(getattr(node, node.children), within, fold or caption, legend)
        elif draw is not None:
            own = said.unmarked(node.caption) if isinstance(node, said.Drawing) else ""
            yield _Part(path, own or caption, metric, legend, draw)


def _chosen(parts: Sequence[_Part], asked: str | None) -> Sequence[_Part]:
    """What was asked for, or all: of it the first section, or the first drawing of several."""
    if not parts:
        raise UsageError("this result has nothing to draw; see `to_frame()`")
    by_name: dict[str, list[_Part]] = {}
    for one in parts:
        for name in {*one.path, one.caption, one.metric} - {""}:
            by_name.setdefault(name.casefold(), []).append(one)
    found = parts if asked is None else by_name.get(asked.casefold())
    if found is None:
        names = dict.fromkeys(name for one in parts for name in (*one.path, one.caption) if name)
        raise UsageError(unknown("metric", asked, names))
    first = found[0]
    alike = [one for one in found if one.caption == first.caption != ""]
    return max(alike, [one for one in found if one.path == first.path], key=len)


def _draw(node: said.Node) -> Draw | None:
    """What draws a part of a page; None where there is nothing to be drawn."""
    if isinstance(node, said.Forest) and node.rows:
        block, versus = node.block, node.versus or itertools.repeat("")
        rows = [
            (f"{row.model} − {than}" if than else row.model,
             " ".join(filter(None, block.figures(row))), row.numbers)
            for row, than in zip(node.rows, versus, strict=False)
        ]  # fmt: skip
        sure = any(row.has_interval for row in node.rows)
        level = f"{percent(block.level)} intervals" if block.level and sure else ""
        label = ", ".join(filter(None, [block.metric, block.preference, level]))
        return partial(_rows, rows=rows, label=label, axis=node.axis, truth=block.truth_name,
                       zero=node.zero)  # fmt: skip
    if isinstance(node, said.Table) and any(node.bars):
        at = node.bar_at
        rows = [(", ".join(node.head[:at]), node.head[at], ())]
        rows += [(", ".join(row[:at]), row[at], (share,))
                 for row, share in zip(node.rows, node.bars, strict=True)]  # fmt: skip
        return partial(_rows, rows=rows)
    if isinstance(node, said.Drawing):
        makers = {"curve": _curve, "heat": _heat, "reliability": _reliability}
        return partial(makers[node.macro], view=node.view) if node.macro in makers else None
    return None


def _rows(
    axes: Axes, rows: Sequence[tuple[str, str, tuple[float | None, ...]]], label: str = "",
    axis: Axis = _SHARES, truth: str = "", zero: bool = False,
) -> None:  # fmt: skip
    """Rows of a name, a text, and numbers: value, low, high and truth; a bar; none in a heading."""
    (across, down), drawn = _panels(axes), rows[:_MOST_ROWS]
    size = min(18.0, 340 / down / len(drawn)) / (1 + 0.35 * (across - 1))
    if zero:
        axes.axvline(0, color=_SOFT, linewidth=2)
    for at, (_, text, numbers) in enumerate(drawn):
        value, low, high, true = (*numbers, None, None, None, None)[:4]
        if len(numbers) == 1:
            axes.barh(at, value or 0.0, color=_OWN, height=0.6)
        elif value is not None:
            axes.plot(value, at, "o", color=_OWN, ms=11, mec="white", clip_on=False, zorder=3)
        if low is not None and high is not None:
            axes.plot([low, high], [at, at], color=_OWN, linewidth=4, clip_on=False)
        if true is not None:
            axes.plot(true, at, "|", color=_OTHER, ms=size, mew=4, clip_on=False)
            axes.text(true, at - 0.3, truth, color=_OTHER, fontsize=0.8 * size, ha="center")
            truth = ""  # said once
        axes.annotate(_text(text), (1.02, at), xycoords=("axes fraction", "data"), va="center",
                      fontsize=size)  # fmt: skip
    names = [_text(name, 32 - 4 * across) for name, *_ in drawn]
    axes.set_yticks(range(len(drawn)), names, fontsize=size)
    for name, (*_, numbers) in zip(axes.get_yticklabels(), drawn, strict=True):
        name.set_fontweight("normal" if numbers else "bold")
    _scale(axes, "x", axis, across)
    axes.set_ylim(len(drawn) - 0.4, -0.7)
    more = f"{len(rows) - len(drawn):,} more rows are not drawn" if len(rows) > len(drawn) else ""
    axes.set_xlabel(_wrapped("; ".join(filter(None, [label, more])), 80 // across, 2))
    axes.grid(visible=False, axis="y")


def _panels(axes: Axes) -> tuple[int, int]:
    """How many panels are side by side, and below one another."""
    grid = axes.get_subplotspec().get_gridspec()  # type: ignore[union-attr]
    return grid.ncols, grid.nrows


def _scale(axes: Axes, which: str, axis: Axis, step: int) -> None:
    """The ends of a page's scale, and every so manieth of its ticks."""
    axes.set(**{f"{which}lim": (axis.low, axis.high)})
    getattr(axes, f"set_{which}ticks")(axis.ticks[::step], axis.labels[::step])


def _curve(axes: Axes, view: View, mark: str = "") -> None:
    """Lines with their bands, points to be seen, and what is shaded."""
    x, y, (across, down) = view.x.axis, view.y.axis, _panels(axes)
    since = getattr(view, "since", None)
    if since is not None:
        axes.axvspan(x.low + since / 100 * (x.high - x.low), x.high, color=_OTHER, alpha=0.15, lw=0)
    for line in filter(None, view.dashed):
        axes.plot(*zip(*line, strict=True), "--", color=_SOFT, linewidth=2)
    for run in filter(None, view.runs):
        at, value, low, high = ([math.nan if n is None else n for n in part]
                                for part in zip(*run, strict=True))  # fmt: skip
        axes.fill_between(at, low, high, color=_OWN, alpha=0.25, linewidth=0)
        axes.plot(at, value, color=_OWN, marker=mark, ms=9)
    for left, up, text in view.points:
        axes.plot(left, up, "o", color=_OWN, ms=16, mec="white", clip_on=False)
        high, right = view.y.at(up) > 0.9, view.x.at(left) > 0.5
        axes.annotate(
            _text(text), (left, up), (0, -14 if high else 14), textcoords="offset points",
            fontweight="bold", color=_OWN, ha="right" if right else "left",
            va="top" if high else "bottom",
        )  # fmt: skip
    _scale(axes, "x", x, 1 + across // 3)
    _scale(axes, "y", y, down)
    axes.set(xlabel=_text(view.x_name, 80 // across), ylabel=_text(view.y_name, 40 // down))


def _reliability(axes: Axes, view: Profile) -> None:
    """How often the event occurs at each predicted probability."""
    unit = Scale(fit_axis([0.0, 1.0], (0.0, 1.0)))
    bins = [(b.predicted / 100, b.observed / 100, *(end if end is None else end / 100
             for end in (b.low, b.high))) for b in view.bins]  # fmt: skip
    _curve(axes, View(
        x=unit, y=unit, height=0, title="", x_name=f"predicted {view.kind}", y_name="observed",
        runs=[bins], dashed=[[(0, 0), (1, 1)]], strips=(), description="",
    ), mark="o")  # fmt: skip


def _heat(axes: Axes, view: HeatMap) -> None:
    """Cells as colours, and as numbers where there is room."""
    from matplotlib.colors import LinearSegmentedColormap

    names, cells = zip(*view.rows, strict=True)
    numbers = [[math.nan if cell.heat is None else cell.heat for cell in row] for row in cells]
    shades = LinearSegmentedColormap.from_list("page", ["white", _OWN])
    axes.imshow(numbers, cmap=shades, vmin=0, vmax=1, aspect="auto")
    n = len(view.columns)
    size = min(17.0, 150 / n) / (1 + 0.35 * (_panels(axes)[0] - 1))
    for i, j in itertools.product(range(len(names)), range(n)) if n <= _MOST_NUMBERS else ():
        colour = _INK if (cells[i][j].heat or 0.0) < 0.55 else "white"
        axes.text(j, i, cells[i][j].text.partition(" [")[0], ha="center", va="center",
                  color=colour, fontsize=size)  # fmt: skip
    columns, names = ([_text(name, 12) for name in some] for some in (view.columns, names))
    axes.set_xticks(range(n), columns, fontsize=size, rotation=90 * (n > 4))
    axes.set_yticks(range(len(names)), names, fontsize=size)
    axes.set(xlabel=view.corner[1], ylabel=view.corner[0])
    axes.grid(visible=False)
