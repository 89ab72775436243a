"""The main tables of a benchmark for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fewlabels.report import benchmark_words as bw
from fewlabels.report.benchmark_content import headline
from fewlabels.report.benchmark_tables import Grid, GridCell, grids
from fewlabels.report.words import cell_width, clean, fit, pad, percent, wrap

NARROWEST = 60
"""Smaller widths are treated as this one: no table fits there."""

_GAP = 2
_NAMES = 24  # Columns of the methods' names at most, and half of that at least.
_NAME_LINES = 3
_WHOLE = 40  # Columns of a group that may have to be broken.
_MOST_TABLES = 12
_INTERVALS = "intervals"
_JOINTS = re.compile(r"(?=\[)|(?<=,)|(?<=-)")


def render_text(summary: bw.Summary, width: int = 80) -> str:
    """The first kind of table that the protocol asks for, at most twelve, and any of coverage.

    Parameters
    ----------
    summary
        The dictionary of `fewlabels.bench.summary.summarise`.
    width
        Columns of the terminal; less than 60 counts as 60.

    Returns
    -------
    str
        Lines of at most `width` columns, without colour codes. A star marks what is bold
        elsewhere: the least error of a column, and those within a standard error of it.
    """
    width = max(width, NARROWEST)
    tables = summary["tables"]
    # The overview over several data sets comes with the tables that it is a mean of.
    kinds = list(dict.fromkeys(t["kind"] for t in tables))
    main = kinds[: 2 if kinds and kinds[0] in ("overview", "group-ratios") else 1]
    chosen = [grids(t, summary)[0] for t in tables if t["kind"] in main]
    level = summary["protocol"].get("confidence_level")
    coverage = [
        replace(grid, title=f"{grid.title}: {_INTERVALS}{f' of {percent(level)}' if level else ''}")
        for t in tables
        if t["kind"] == "intervals"
        for grid in grids(t, summary)[:1]
    ]
    lines = wrap(headline(summary), width)
    said = ""
    for grid in [*chosen[:_MOST_TABLES], *coverage[:_MOST_TABLES]]:
        # What holds for all tables of a kind is said once.
        grid, said = (
            replace(grid, caption="" if grid.caption == said else grid.caption),
            grid.caption,
        )
        lines += ["", *wrap(grid.title, width), *grid_lines(grid, width)]
    more = sum(max(0, len(part) - _MOST_TABLES) for part in (chosen, coverage))
    if more > 0:
        lines += ["", f"{more} more such tables are in the report."]
    if any(cell.strong for grid in chosen for row in grid.rows for cell in row.cells):
        star = "* the least error of the column, or within a standard error of it"
        lines += ["", *wrap(star, width, "  ")]
    return "\n".join(line.rstrip() for line in lines)


def grid_lines(grid: Grid, width: int) -> Iterator[str]:
    """The groups of columns one below the other where they do not fit side by side."""
    if grid.caption:
        yield from wrap(grid.caption, width)
    longest = max(cell_width(clean(row.name)) for row in grid.rows)
    columns = _widened(grid, [_column(grid, k) for k in range(len(grid.columns))])
    widest = max(map(_width, columns))
    room = min(longest, max(_NAMES // 2, min(_NAMES, width - widest - _GAP)))
    names = bw.labels([row.name for row in grid.rows], room * _NAME_LINES)
    for start, end in _chunks(grid, columns, width - room):
        for heading in _headings(grid, columns, start, end):
            yield (" " * room + heading).rstrip()
        for k, name in enumerate(["", *names.values()]):
            cells = (pad(column[k], _width(column), right=True) for column in columns[start:end])
            first, *rest = _name(name, room)
            yield pad(first, room) + "".join(" " * _GAP + cell for cell in cells)
            yield from rest
    for mark, text in grid.notes:
        yield from wrap(f"[{mark}] {text}", width, "    ")


def _name(name: str, room: int) -> list[str]:
    """A name on as many lines as it takes, broken before a bracket and behind commas and joints."""
    lines = [""]
    for part in _JOINTS.split(name):
        if lines[-1] and cell_width(lines[-1] + part) > room:
            lines.append(" ")
        while cell_width(lines[-1] + part) > room:
            cut = 1
            while cell_width(lines[-1] + part[: cut + 1]) <= room:
                cut += 1
            lines[-1] += part[:cut]
            lines.append(" ")
            part = part[cut:]
        lines[-1] += part
    return lines


def _column(grid: Grid, k: int) -> list[str]:
    cells = [row.cells[k] for row in grid.rows]
    # Stars and marks hang behind the numbers, which must stay below one another.
    room = max(cell_width(_behind(cell)) for cell in cells)
    # Intervals would double the width of the ratios; they are in the report.
    texts = [
        fit(clean(cell.text if "[" in cell.spread else cell.whole), 24) + pad(_behind(cell), room)
        for cell in cells
    ]
    return [fit(clean(grid.columns[k]), 24) + " " * room, *texts]


def _widened(grid: Grid, columns: list[list[str]]) -> list[list[str]]:
    """Room for the heading of a group before its first column, and for its words over each."""
    first = 0
    for heading, size in grid.groups:
        part = columns[first : first + size]
        word = max(map(cell_width, clean(heading).split()), default=0)
        for column in part if size > 1 and _total(part) > _WHOLE else ():
            column[0] = pad(column[0], min(word, _GAP * 5), right=True)
        short = cell_width(clean(heading)) + _GAP - _total(part)
        if short > 0:
            part[0][0] = pad(part[0][0], _width(part[0]) + short, right=True)
        first += size
    return columns


def _behind(cell: GridCell) -> str:
    return ("*" if cell.strong else "") + (f"[{cell.mark}]" if cell.mark else "")


def _width(column: Sequence[str]) -> int:
    return max(map(cell_width, column))


def _chunks(grid: Grid, columns: Sequence[Sequence[str]], room: int) -> Iterator[tuple[int, int]]:
    """Ranges of columns that fit; a group is broken only where it alone does not."""
    start = end = 0
    for size in [size for _, size in grid.groups] or [len(columns)]:
        if start < end and _total(columns[start : end + size]) > room:
            yield start, end
            start = end
        end += size
        while _total(columns[start:end]) > room and end - start > 1:
            fits = sum(_total(columns[start:k]) <= room for k in range(start + 1, end + 1))
            yield start, start + max(1, fits)
            start += max(1, fits)
    if start < end:
        yield start, end


def _total(columns: Sequence[Sequence[str]]) -> int:
    return sum(_width(column) + _GAP for column in columns)


def _headings(grid: Grid, columns: Sequence[Sequence[str]], start: int, end: int) -> list[str]:
    """The names of the groups over their columns, on as many lines as the longest takes."""
    parts, first = [], 0
    for heading, size in grid.groups:
        inside = range(max(first, start), min(first + size, end))
        first += size
        if inside:
            room = sum(_width(columns[k]) + _GAP for k in inside)
            parts.append((wrap(heading, room - _GAP), room))
    height = max((len(lines) for lines, _ in parts), default=0)
    return [
        "".join(
            pad(["", *lines][max(0, k - height + len(lines) + 1)], room, right=True)
            for lines, room in parts
        )
        for k in range(height)
    ]
