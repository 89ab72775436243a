"""A document as text for a terminal, by rich."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from fewlabels.report import document as said
from fewlabels.report.document import Document, Node, parted, shown, unmarked
from fewlabels.report.words import (
    NARROWEST,
    STYLES,
    Role,
    cell_width,
    count,
    escape_control,
    has_style,
    plural,
    probability,
    short_names,
    wrap,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

_INDENT, _GAP = 2, 2
_LEAST_NAME = 8
_PLOT = (10, 36)
"""Columns of a plot of intervals: with fewer it is left out."""


def render_text(document: Document, width: int = 80) -> str:
    """A document in lines of at most `width` columns; less than 60 count as 60."""
    width = max(width, NARROWEST)
    parts: list[Any] = [_text(line, width, "title") for line in document.head if line]
    if document.deciding:
        parts += [_text(f"! {document.deciding}", width, "warning")]
    for group in (document.answer, document.basis):
        parts += ["", _text(" ".join(group), width)] if group else []
    for part in shown([*document.body, *document.more], "text"):
        parts += _lines(part, width)
    if document.foot:
        parts += ["", *(_text(line, width, "soft") for line in document.foot)]
    if document.warnings:
        parts += ["", _text("Warnings", width, "title"), *_points(document.warnings, width)]
    return written(parts, width)


def written(parts: Sequence[Any], width: int) -> str:
    """Renderables of rich below one another, as text of so many columns."""
    colour = has_style()
    console = Console(
        file=io.StringIO(), width=width, color_system="standard" if colour else None,
        force_terminal=colour, highlight=False, markup=False, emoji=False, legacy_windows=False,
        _environ={},
    )  # fmt: skip
    for part in parts:
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().split("\n")).strip("\n")


def _style(role: Role | None) -> str:
    return STYLES[role] if role else ""


def _text(sentence: str, width: int, role: Role | None = None, hanging: str = "") -> Text:
    """A sentence in lines, broken as all texts are: rich counts other columns for joined emoji."""
    said = unmarked(sentence)
    front = " " * (len(said) - len(said.lstrip(" ")))
    lines = [front + line for line in wrap(said, width - len(front), hanging)]
    return Text("\n".join(lines), _style(role), no_wrap=True, overflow="ignore")


def _points(sentences: Sequence[str], width: int) -> Iterator[Text]:
    """Sentences behind their marks, which stand alone in front."""
    return (_text(f"- {one}", width, hanging="  ") for one in sentences)


@singledispatch
def _lines(node: Node, width: int) -> Iterator[RenderableType]:
    """A part of a document, as renderables one below the other."""
    raise TypeError(node)


@_lines.register(said.Para)
def _(node: said.Para, width: int) -> Iterator[RenderableType]:
    yield _text(node.text, width, "soft" if node.role else None)


@_lines.register(said.Listing)
def _(node: said.Listing, width: int) -> Iterator[RenderableType]:
    yield from _points(node.items, width)


@_lines.register(said.Terms)
def _(node: said.Terms, width: int) -> Iterator[RenderableType]:
    pairs = node.meanings.items()
    yield _folding([[escape_control(unmarked(text)) for text in pair] for pair in pairs], "ll")


@_lines.register(said.Legend)
def _(node: said.Legend, width: int) -> Iterator[RenderableType]:
    return iter(())


@_lines.register(said.Drawing)
def _(node: said.Drawing, width: int) -> Iterator[RenderableType]:
    yield from (Text(line, no_wrap=True) for line in (node.lines(width) if node.lines else ()))


@_lines.register(said.Section)
@_lines.register(said.Fold)
@_lines.register(said.Group)
def _(node: Any, width: int) -> Iterator[RenderableType]:
    inside = [part for one in shown(node.body, "text") for part in _lines(one, width)]
    if not inside:
        return
    if not isinstance(node, said.Group):
        yield ""
        heading = node.title if isinstance(node, said.Section) else node.summary
        yield _text(heading + (f" ({node.aside})" if node.aside else ""), width, "title")
    yield from inside


@_lines.register(said.Preformatted)
def _(node: said.Preformatted, width: int) -> Iterator[RenderableType]:
    yield from (Text(line, no_wrap=True) for line in node.text.split("\n"))


@_lines.register(said.Table)
def _(node: said.Table, width: int) -> Iterator[RenderableType]:
    rows = node.rows[: node.most]
    cells = [[escape_control(unmarked(cell)) for cell in row] for row in rows]
    head, names = [*node.head], node.names
    if any(chip not in ("", "ok") for chip in node.chips):
        head.append("status")
        cells = [[*row, "" if chip == "ok" else chip]
                 for row, chip in zip(cells, node.chips, strict=False)]  # fmt: skip
    sides = [node.side(k) for k in range(len(node.head))] + ["l"] * (len(head) - len(node.head))
    rows = _aligned(cells, names)
    narrow = _room([head, *rows], names, width) < _least(rows, names)
    if node.wrapped:
        yield _folding([head, *cells], sides)
    elif narrow and node.whole:
        for row in cells:
            yield ""
            yield _text(", ".join(row[:names]), width)
            pairs = zip(head[names:], row[names:], strict=True)
            yield _folding([["", *pair] for pair in pairs if pair[1]], "lll")
    else:
        rows = _aligned(cells, names, 1) if narrow else rows
        yield _grid(head, rows, sides, width, names=names, widest=node.widest)
    if node.most is not None and len(node.rows) > node.most:
        left_out = plural(len(node.rows) - node.most, "more row")
        yield _text(f"  ... {left_out}: the JSON and the page have all", width)
    if node.note:
        yield _text(f"  ({node.note})", width)


def _folding(rows: Sequence[Sequence[str]], sides: Sequence[str]) -> RenderableType:
    """Cells below one another, which take lines where they do not fit."""
    grid = Grid.grid(padding=(0, _GAP, 0, 0))
    for side in sides:
        grid.add_column(justify="right" if side == "r" else "left", overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))
    return grid


def _aligned(
    rows: Sequence[Sequence[str]], names: int, most: int | None = None
) -> list[Sequence[str]]:
    """Rows whose numbers and intervals are below one another; intervals of `most` columns alone."""
    columns, kept = [], 0
    for k, column in enumerate(zip(*rows, strict=True)):
        pairs = [parted(cell) for cell in column]
        wide, far = (max(map(cell_width, part)) for part in zip(*pairs, strict=True))
        if k >= names and far:
            kept += 1
            shown = most is None or kept <= most
            pairs = [(" " * (wide - cell_width(n)) + n, " " + e.ljust(far)) for n, e in pairs]
            column = tuple(number + ends * shown for number, ends in pairs)
        columns.append(column)
    return list(zip(*columns, strict=True))


def _least(rows: Sequence[Sequence[str]], names: int) -> int:
    """Columns that a name has at least."""
    return min(_LEAST_NAME, max((cell_width(n) for row in rows for n in row[:names]), default=0))


def _room(table: Sequence[Sequence[str]], names: int, width: int) -> int:
    """Columns that there are for a name beside all else."""
    others = [max(map(cell_width, column)) for column in zip(*table, strict=True)][names:]
    gaps = _INDENT + _GAP * (len(table[0]) - 1)
    return (width - gaps - sum(others)) // max(names, 1)


def _grid(
    head: Sequence[str], rows: Sequence[Sequence[str]], sides: Sequence[str], width: int,
    *, names: int = 1, widest: int = 32, roles: Sequence[Role | None] = (),
) -> RenderableType:  # fmt: skip
    """Cells below one another. Where they do not fit, names are shortened, then columns go."""
    every = list(dict.fromkeys(name for row in rows for name in row[:names]))
    least, columns = _least(rows, names), len(head)
    while True:
        room = _room([row[:columns] for row in (head, *rows)], names, width)
        if room >= least or columns - names <= 1:
            break
        columns -= 1
    short = short_names(every, max(min(room, widest // max(names, 1)), least)) if names else {}
    grid = Grid(box=None, show_edge=False, pad_edge=False, padding=(0, _GAP, 0, 0),
                header_style=STYLES["soft"])  # fmt: skip
    grid.add_column("", width=_INDENT - _GAP)
    for k, heading in enumerate(head[:columns]):
        grid.add_column(
            Text(heading if k >= names or cell_width(heading) <= room else ""), no_wrap=True,
            justify="right" if sides[k] == "r" else "left", overflow="crop",
            style=_style(roles[k]) if roles else "",
        )  # fmt: skip
    for row in rows:
        cut = [*(short[cell] for cell in row[:names]), *row[names:columns]]
        grid.add_row("", *map(Text, cut))
    return grid


@_lines.register(said.Forest)
def _(node: said.Forest, width: int) -> Iterator[RenderableType]:
    block = node.block
    first, between, last = block.ends(node.rows, node.ends)
    rows = [*first, *last] if between else [*node.rows]
    level = "" if block.level is None else f"[{100 * block.level:.6g}%]"
    columns: list[tuple[str, list[str], str, Role | None]] = [
        ("", [row.model for row in rows], "l", None),
        ("value", [block.figures(row)[0] for row in rows], "r", None),
        (level, [block.figures(row)[1] for row in rows], "l", None),
    ]
    if block.has_truth:
        truths = ["-" if row.truth is None else block.write(row.truth) for row in rows]
        columns.append((block.truth_name, truths, "r", None))
    if block.has_best:
        columns.append(("P(best)", [probability(row.best) for row in rows], "r", None))
    places = [node.rows.index(row) for row in rows]
    columns += [(head, [cells[k] for k in places], "r", None) for head, cells in node.extras]
    statuses = ["" if row.status == "ok" else row.status for row in rows]
    if any(statuses):
        columns.append(("status", statuses, "l", "warning"))
    taken = sum(max(map(cell_width, [head, *cells])) + _GAP for head, cells, *_ in columns[1:])
    longest = max((cell_width(escape_control(row.model)) for row in rows), default=0)
    plot = min(_PLOT[1], width - taken - min(longest, 18) - _INDENT - _GAP)
    low, high = node.axis.ends
    if plot >= max(_PLOT[0], len(low) + len(high) + 1):
        drawn = [_plot(row, node.axis, plot) for row in rows]
        columns.insert(-1 if any(statuses) else len(columns),
                       (low + high.rjust(plot - len(low)), drawn, "l", None))  # fmt: skip
    heads, cells, sides, roles = zip(*columns, strict=True)
    written_rows = [[escape_control(cell) if k == 0 else cell for k, cell in enumerate(row)]
                    for row in zip(*cells, strict=True)]  # fmt: skip
    yield _grid(heads, written_rows, sides, width, widest=max(longest, 1), roles=roles)
    if between:
        hidden = f"{count(len(between))} of {count(len(node.rows))} rows are not shown"
        yield _text(f"  ... {hidden}; the JSON and the HTML report have all", width)


def _plot(row: Any, axis: Any, width: int) -> str:
    """A row of a forest: interval, estimate, truth."""
    low, value, high, truth = (
        None if number is None else round(axis.at(number) * (width - 1))
        for number in (row.low, row.value, row.high, row.truth)
    )
    cells = [" "] * width
    if low is not None and high is not None:
        cells[low : high + 1] = "-" * (high - low + 1)
        cells[low] = cells[high] = "|"
    if value is not None:
        cells[value] = "o"
    if truth is not None:
        cells[truth] = "*" if truth == value else "x"
    return "".join(cells)
