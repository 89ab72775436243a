"""The report of a benchmark as Markdown that is also pleasant to read as text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence

from fewlabels.report.benchmark_content import Content
from fewlabels.report.benchmark_tables import Grid, GridCell
from fewlabels.report.words import cell_width, clean, pad

# An underscore inside a word is no emphasis, and names are full of them.
_SPECIAL = re.compile(r"[\\`*\[\]<>|~&$#]|(?<![^\W_])_|_(?![^\W_])")


def escaped(text: object) -> str:
    r"""Text that Markdown shows as it is.

    Examples
    --------
    >>> print(escaped("ERM_seed1 | _a_ <b>"))
    ERM_seed1 \| \_a\_ \<b\>
    """
    return _SPECIAL.sub(lambda found: "\\" + found[0], clean(text))


def render_markdown(content: Content, paths: Mapping[str, str]) -> str:
    """The whole report.

    Parameters
    ----------
    paths
        Relative path of each figure -> its title.
    """
    lines = list(_head(content))
    if content.glance:
        lines += ["## At a glance", "", *_grid(content.glance), ""]
    if paths:
        lines += ["## Figures", ""]
    if paths and content.about_figures:
        lines += [escaped(content.about_figures), ""]
    for path, title in paths.items():
        lines += [f"### {escaped(title)}", "", f"![{escaped(title)}]({path})", ""]
    for part in content.sections:
        lines += [f"## {escaped(part.title)}", ""]
        for grid in part.grids:
            lines += section(grid)
    return "\n".join([*lines, *_foot(content)]).rstrip() + "\n"


def _head(content: Content) -> Iterator[str]:
    yield f"# Benchmark: {escaped(content.name)}"
    yield ""
    if content.title:
        yield from [escaped(content.title), ""]
    yield from [f"**{escaped(content.headline)}**", ""]
    for name, value in [*content.facts, *content.settings]:
        yield f"- {name}: {escaped(value)}"
    if content.command:
        yield f"- Command: {escaped(content.command)}"
    yield ""
    if content.notes:
        yield from ["## Please note", ""]
        yield from (f"- {escaped(note)}" for note in content.notes)
        yield ""


def section(grid: Grid) -> Iterator[str]:
    """A table under its title, folded where it is said to be."""
    lines = [*_grid(grid), ""]
    if grid.folded:
        # A line of HTML and an empty one around it, or the table inside would not be one.
        title = f"<summary>{html.escape(clean(grid.title))}</summary>"
        yield from ["<details>", title, "", *lines, "</details>", ""]
        return
    if grid.title:
        yield from [f"### {escaped(grid.title)}", ""]
    yield from lines


def _grid(grid: Grid) -> Iterator[str]:
    if grid.caption:
        yield from [escaped(grid.caption), ""]
    rows = [
        [grid.corner, *map(escaped, grid.flat)],
        *(
            [_name(row.name, row.floor), *(_cell(cell) for cell in row.cells)]
            for row in grid.rows
        ),
    ]  # fmt: skip
    widths = [max(3, *(cell_width(row[k]) for row in rows)) for k in range(len(rows[0]))]
    head, *body = (_line(row, widths) for row in rows)
    rule = ["-" * width if k == 0 else "-" * (width - 1) + ":" for k, width in enumerate(widths)]
    yield from [head, "| " + " | ".join(rule) + " |", *body]
    if grid.notes:
        yield ""
        yield from (f"- <sup>{mark}</sup> {escaped(text)}" for mark, text in grid.notes)


def _name(name: str, floor: bool) -> str:
    return f"*{escaped(name)}*" if floor else escaped(name)


def _cell(cell: GridCell) -> str:
    # Numbers are our own text: a bracket in one begins no link, and "<10" no tag.
    text = f"**{cell.whole}**" if cell.strong else cell.whole
    return text + (f"<sup>{cell.mark}</sup>" if cell.mark else "")


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = [pad(text, width, right=k > 0) for k, (text, width) in
              enumerate(zip(row, widths, strict=True))]  # fmt: skip
    return "| " + " | ".join(padded) + " |"


def _foot(content: Content) -> Iterator[str]:
    yield from ["## How to read this", ""]
    for term, meaning in content.reading:
        yield f"- **{term}.** {escaped(meaning)}"
    yield from ["", "## Data sets", "", *(f"- {escaped(line)}" for line in content.datasets)]
