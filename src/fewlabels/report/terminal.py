"""A document as text for a terminal, by rich."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Column
from rich.table import Table as Grid
from rich.text import Text

from fewlabels.errors import decides, without_commands
from fewlabels.report import document as said
from fewlabels.report.document import (
    Document,
    Listing,
    Node,
    Para,
    Role,
    Section,
    Terms,
    in_line,
    parted,
    pieces,
    shown,
    unmarked,
)
from fewlabels.report.html import ADVICE
from fewlabels.report.words import STYLED, count, escape_control, plural, probability, short_names

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES: dict[Role, str] = {
    "": "", "title": "bold", "soft": "dim", "warning": "yellow", "error": "red", "good": "green",
}  # fmt: skip
_NARROWEST = 60
"""Smallest width of a text: no table fits into less."""

_INDENT, _GAP = 2, 2
_LEAST_NAME = 8
_MOST_WARNINGS = 3
_PLOT = (10, 16, 0.45)
"""Columns of a plot of intervals: with fewer it is left out; before names get more; at most such a
share of the width."""


def render_text(document: Document, width: int = 80) -> str:
    """A document in lines of at most `width` columns; less than 60 count as 60."""
    nodes: list[Node] = [Para(in_line(document.facts), "title")]
    nodes += (Para(f"  {line}", "soft") for line in document.reading)
    warnings = document.noted
    first = bool(warnings) and decides(warnings[0])
    advised = [*_advised(warnings[: first + _MOST_WARNINGS])]
    if first:
        nodes.append(Para(f"! {advised.pop(0)}", "warning"))
    for group in (document.answer, document.basis):
        nodes += [Para(""), Para(" ".join(group))] if any(group) else []
    nodes += [*document.body, *document.more]
    if document.explained:
        nodes.append(Section("What the words mean", [Terms(document.terms)]))
    if document.foot:
        nodes += [Para(""), *(Para(line, "soft") for line in document.foot)]
    if left := warnings[first + _MOST_WARNINGS :]:
        advised.append(f"and {count(len(left))} more: the JSON and the HTML report have all")
    return render_parts([*nodes, Section("Warnings", [Listing(advised)])], max(width, _NARROWEST))


def _advised(warnings: Sequence[str]) -> Iterator[str]:
    """Warnings, each kind with what to do about it, once."""
    advice = dict(ADVICE)
    for text in warnings:
        what = advice.pop(text.partition(": ")[0], "")  # type: ignore[call-overload]
        yield f"{text.rstrip('.')}. What to do: {what}." if what else text


def render_parts(nodes: Iterable[Node], width: int = 80) -> str:
    """Parts of a document below one another, in lines of at most `width` columns."""
    colour = STYLED.get()
    console = Console(
        file=(out := io.StringIO()), width=width, color_system="standard" if colour else None,
        force_terminal=colour, highlight=False, markup=False, emoji=False, legacy_windows=False,
        _environ={},
    )  # fmt: skip
    for node in shown(nodes, "text"):
        for part in _lines(node, width):
            # A line of a drawing, such as a command to paste, is longer rather than broken.
            console.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))
    # Blanks at the end of a line go, colours stay.
    blanks = r"(?m)[ \t]++(?=(?:[ \t]|\x1b\[[\d;]*m)*$)"
    return without_commands(re.sub(blanks, "", out.getvalue()).strip("\n"))


def _plain(text: str) -> str:
    """Text whose joined emoji stand apart: rich counts one of them, most terminals show all."""
    return re.sub("(?<=[\U0001f000-\U0001faff\ufe0f])\u200d", "", escape_control(text))


def _text(sentence: str, role: Role = "") -> RenderableType:
    """A sentence, which rich breaks into lines; blanks in front of it are in front of each."""
    text = Text(style=_STYLES[role])
    for kind, piece in pieces(" ".join(sentence.split())):
        written = f"`{piece}`" if kind == "typed" else _plain(piece)
        text.append(written, "bold" if kind == "strong" else "")
    indent = len(sentence) - len(sentence.lstrip(" "))
    return Padding(text, (0, 0, 0, indent)) if indent else text


@singledispatch
def _lines(node: Node, width: int) -> Iterator[RenderableType]:
    """A part of a document, as renderables one below the other."""
    raise TypeError(node)


@_lines.register(said.Para)
def _(node: said.Para, width: int) -> Iterator[RenderableType]:
    yield _text(node.text, node.role)


@_lines.register(said.Listing)
def _(node: said.Listing, width: int) -> Iterator[RenderableType]:
    for item in node.items:
        point = Grid.grid("", Column(overflow="fold"), padding=0)
        point.add_row("- ", _text(item))
        yield point


@_lines.register(said.Terms)
def _(node: said.Terms, width: int) -> Iterator[RenderableType]:
    yield from (_text(f"{term}: {meaning}") for term, meaning in node.meanings.items())


@_lines.register(said.Legend)
def _(node: said.Legend, width: int) -> Iterator[RenderableType]:
    return iter(())


@_lines.register(said.Drawing)
def _(node: said.Drawing, width: int) -> Iterator[RenderableType]:
    for part in node.lines(width) if node.lines else ():
        yield from [Text(part, no_wrap=True)] if isinstance(part, str) else _lines(part, width)


@_lines.register(said.Section)
@_lines.register(said.Fold)
@_lines.register(said.Group)
def _(node: Any, width: int) -> Iterator[RenderableType]:
    inside = [part for one in node.body for part in _lines(one, width)]
    if not inside:
        return
    if not isinstance(node, said.Group):
        yield ""
        heading = node.title if isinstance(node, said.Section) else node.summary
        yield _text(heading + (f" ({node.aside})" if node.aside else ""), "title")
    yield from inside


class _Column(NamedTuple):
    """Cells below a heading, set to a side in the colour of a role."""

    head: str
    cells: Sequence[str]
    side: str = "l"
    role: Role = ""

    @property
    def wide(self) -> int:
        """Columns of a terminal that it takes; a heading may have several lines."""
        return max(cell_len(line) for cell in (self.head, *self.cells) for line in cell.split("\n"))

    def aligned(self, ends: bool) -> _Column:
        """Numbers, and if they are shown the ends of their intervals, below one another."""
        pairs = [parted(cell) for cell in self.cells]
        wide, far = (max(map(cell_len, part), default=0) for part in zip(*pairs, strict=True))
        if not far:
            return self
        cells = (" " * (wide - cell_len(n)) + n + (" " + e.ljust(far)) * ends for n, e in pairs)
        return self._replace(cells=[*cells])


@_lines.register(said.Table)
def _(node: said.Table, width: int) -> Iterator[RenderableType]:
    rows, names = node.rows[: node.most], node.names
    head, *cells = ([_plain(unmarked(cell)) for cell in row] for row in (node.head, *rows))
    columns = [_Column(one, [row[k] for row in cells], node.side(k)) for k, one in enumerate(head)]
    if any(chip not in ("", "ok") for chip in node.chips):
        chips = ["" if chip == "ok" else chip for chip in node.chips[: len(rows)]]
        columns.append(_Column("status", chips))
    if rows and node.wrapped:
        titles = [head] if any(head) else []
        yield _folding([*titles, *zip(*(c.cells for c in columns), strict=True)], node.sides)
    elif rows:
        whole = [c if k < names else c.aligned(True) for k, c in enumerate(columns)]
        narrow = _room(whole, names, width) < _least(whole, names)
        if narrow and node.whole:
            for row in zip(*(c.cells for c in columns), strict=True):
                yield ""
                yield _text(", ".join(row[:names]))
                pairs = [(c.head, cell) for c, cell in zip(columns, row, strict=True)]
                yield _folding([pair for pair in pairs[names:] if pair[1]], "l")
        else:
            far = [k for k, c in enumerate(columns) if any(parted(cell)[1] for cell in c.cells)]
            kept = next((k for k in far if k >= names), 0)
            some = [c if k < names else c.aligned(k == kept) for k, c in enumerate(columns)]
            yield _grid(some if narrow else whole, names, node.widest, width)
    if node.most is not None and len(node.rows) > node.most:
        left_out = plural(len(node.rows) - node.most, "more row")
        yield _text(f"  ... {left_out}: the JSON and the page have all")
    if node.note:
        yield _text(f"  ({node.note})")


def _folding(rows: Iterable[Sequence[str]], sides: str) -> RenderableType:
    """Cells below one another, which take lines where they do not fit."""
    grid = Grid.grid("", padding=(0, _GAP, 0, 0))
    for k, row in enumerate(rows):
        for side in sides.ljust(len(row), sides[-1]) if not k else "":
            grid.add_column(justify="right" if side == "r" else "left", overflow="fold")
        grid.add_row("", *map(Text, row))
    return grid


def _least(columns: Sequence[_Column], names: int) -> int:
    """Columns of a terminal that a name has at least."""
    return min(_LEAST_NAME, max((cell_len(n) for c in columns[:names] for n in c.cells), default=0))


def _room(columns: Sequence[_Column], names: int, width: int) -> int:
    """Columns of a terminal that there are for a name beside all else."""
    gaps = _INDENT + _GAP * (len(columns) - 1)
    return (width - gaps - sum(c.wide for c in columns[names:])) // max(names, 1)


def _grid(columns: Sequence[_Column], names: int, widest: int, width: int) -> RenderableType:
    """Cells below one another. Where they do not fit, names are shortened, then columns go."""
    least = _least(columns, names)
    while _room(columns, names, width) < least and len(columns) - names > 1:
        columns = columns[:-1]
    room = _room(columns, names, width)
    every = list(dict.fromkeys(name for c in columns[:names] for name in c.cells))
    short = short_names(every, max(min(room, widest // max(names, 1)), least)) if names else {}
    grid = Grid(box=None, show_edge=False, pad_edge=False, padding=(0, _GAP, 0, 0),
                header_style=_STYLES["soft"])  # fmt: skip
    grid.add_column("", width=_INDENT - _GAP)
    for k, c in enumerate(columns):
        grid.add_column(
            Text(c.head if k >= names or cell_len(c.head) <= room else ""), no_wrap=True,
            justify="right" if c.side == "r" else "left", overflow="crop", vertical="bottom",
            style=_STYLES[c.role],
        )  # fmt: skip
    for row in zip(*(c.cells for c in columns), strict=True):
        grid.add_row("", *(Text(short[cell] if k < names else cell) for k, cell in enumerate(row)))
    return grid


@_lines.register(said.Forest)
def _(node: said.Forest, width: int) -> Iterator[RenderableType]:
    block, names = node.block, 2 if node.versus else 1
    first, between, last = block.ends(node.rows, node.ends)
    rows = [*first, *last] if between else [*node.rows]
    places = [node.rows.index(row) for row in rows]
    first_of, _, second = node.who.partition(" − ") if node.versus else ("", "", "")
    columns = [_Column(first_of, [_plain(row.model) for row in rows])]
    if node.versus:
        columns.append(_Column(f"- {second}", [_plain(node.versus[k]) for k in places]))
    columns += [
        _Column("value", [block.figures(row)[0] for row in rows], "r"),
        _Column("" if block.level is None else f"[{100 * block.level:.6g}%]",
                [block.figures(row)[1] for row in rows]),
    ]  # fmt: skip
    if block.has_truth:
        truths = ["-" if row.truth is None else block.write(row.truth) for row in rows]
        columns.append(_Column(block.truth_name, truths, "r"))
    if block.has_best:
        columns.append(_Column("P(best)", [probability(row.best) for row in rows], "r"))
    extras = [(head, [cells[k] for k in places]) for head, cells in node.extras]
    columns += [_Column(_folded(head, cells), cells, "r") for head, cells in extras]
    statuses = ["" if row.status == "ok" else row.status for row in rows]
    columns += [_Column("status", statuses, "l", "warning")] if any(statuses) else []
    longest = max(c.wide for c in columns[:names])
    # Names in full come before a wide plot.
    taken = sum(c.wide + _GAP for c in columns[names:])
    room = width - taken - names * _GAP - _INDENT
    plot = min(
        int(_PLOT[2] * width), room - names * min(longest, max(18, (room - _PLOT[1]) // names))
    )
    low, high = node.axis.ends
    if plot >= max(_PLOT[0], len(low) + len(high) + 1):
        drawn = [_plot(row, node.axis, plot, node.zero) for row in rows]
        scale = low + high.rjust(plot - len(low))
        columns.insert(len(columns) - any(statuses), _Column(scale, drawn))
    yield _grid(columns, names, max(longest, 1) * names, width)
    if between:
        hidden = f"{count(len(between))} of {count(len(node.rows))} rows are not shown"
        yield _text(f"  ... {hidden}; the JSON and the HTML report have all")


def _folded(head: str, cells: Sequence[str]) -> str:
    """A heading of several words in two lines, where it is wider than all that is below it."""
    room, words = max(map(cell_len, cells), default=0), head.split()
    ways = [f"{' '.join(words[:k])}\n{' '.join(words[k:])}" for k in range(1, len(words))]
    wide = cell_len(head) > room and ways
    return min(ways, key=lambda way: _Column(way, ()).wide) if wide else head


def _plot(row: Any, axis: Any, width: int, zero: bool = False) -> str:
    """A row of a forest: zero where it matters, interval, estimate, truth."""
    low, value, high, truth = (
        None if number is None else round(axis.at(number) * (width - 1))
        for number in (row.low, row.value, row.high, row.truth)
    )
    cells = [" "] * width
    if zero:
        cells[round(axis.at(0) * (width - 1))] = ":"
    if low is not None and high is not None:
        cells[low : high + 1] = "-" * (high - low + 1)
        cells[low] = cells[high] = "|"
    if value is not None:
        cells[value] = "o"
    if truth is not None:
        cells[truth] = "*" if truth == value else "x"
    return "".join(cells)
