"""The report of a benchmark as Markdown that is also pleasant to read as text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence

from fewlabels.report import benchmark_words as bw
from fewlabels.report.benchmark_notes import data_set, facts, headline, notes, reading, settings
from fewlabels.report.benchmark_tables import Grid, GridCell, glance, sections
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


def render_markdown(summary: bw.Summary, figures: Mapping[str, str]) -> str:
    """The whole report.

    Parameters
    ----------
    summary
        The dictionary of `fewlabels.bench.summary.summarise`.
    figures
        Relative path of each figure -> its title.
    """
    lines = [*_head(summary), *_notes(summary)]
    if summary["glance"]:
        lines += ["## At a glance", "", *_grid(glance(summary)), ""]
    if figures:
        lines += ["## Figures", ""]
    for path, title in figures.items():
        lines += [f"### {escaped(title)}", "", f"![{escaped(title)}]({path})", ""]
    for title, tables in sections(summary):
        lines += [f"## {escaped(title)}", ""]
        for _, grids in tables:
            for grid in grids:
                lines += section(grid)
    return "\n".join([*lines, *_foot(summary)]).rstrip() + "\n"


def _head(summary: bw.Summary) -> Iterator[str]:
    protocol = summary["protocol"]
    yield f"# Benchmark: {escaped(protocol.get('name') or '')}"
    yield ""
    if protocol.get("title"):
        yield from [escaped(protocol["title"]), ""]
    yield from [f"**{escaped(headline(summary))}**", ""]
    for name, value in [*facts(summary), *settings(summary)]:
        yield f"- {name}: {escaped(value)}"
    if summary.get("command"):
        yield f"- Command: {escaped(summary['command'])}"
    yield ""


def _notes(summary: bw.Summary) -> Iterator[str]:
    found = notes(summary)
    if found:
        yield from ["## Please note", ""]
        yield from (f"- {escaped(note)}" for note in found)
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


def _foot(summary: bw.Summary) -> Iterator[str]:
    yield from ["## How to read this", ""]
    for term, meaning in reading(summary):
        yield f"- **{term}.** {escaped(meaning)}"
    yield from ["", "## Data sets", ""]
    for dataset in summary["datasets"]:
        yield f"- {escaped(data_set(dataset))}"
