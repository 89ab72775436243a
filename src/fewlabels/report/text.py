"""The estimates as a table of text, with a small forest plot of plain ASCII."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fewlabels.report.axis import Axis
from fewlabels.report.blocks import Block, Gap, Report, Row, blocks, common_axis, status_notes
from fewlabels.report.comparison_text import comparison_lines
from fewlabels.report.heat_text import heat_lines
from fewlabels.report.words import (
    cell_width,
    clean,
    count,
    fit,
    pad,
    percent,
    probability,
    short_names,
    wrap,
)

NARROWEST = 60
"""Smaller widths are treated as this one: no table fits there."""

_INDENT = 2
_GAP = 2
_NAMES = (10, 18)  # Columns of the names, if they need them: at least; before the plot is wide.
_PLOT = (10, 16, 36)  # Columns of the plot: at least; before long names get more; at most.

_ESTIMANDS = {
    "population": "for the population that the items come from",
    "sample": "for these very items",
}


def render_text(report: Report, width: int = 80) -> str:
    """The estimates as a table per group and metric.

    Parameters
    ----------
    report
        The dictionary of `Estimates.report`; plain JSON values.
    width
        Columns of the terminal; less than 60 counts as 60.

    Returns
    -------
    str
        Lines of at most `width` columns (wide characters count as two), without colour codes;
        control characters in names are escaped.
    """
    width = max(width, NARROWEST)
    shown = [block.abridged() for block in blocks(report)]
    layouts = {
        overall: _layout(alike, width)
        for overall in (True, False)
        if (alike := [block for block in shown if (block.group is None) == overall])
    }
    lines = list(_head(report, width))
    group: str | None = None
    for block in shown:
        if block.group is not None and block.group != group:
            heading = fit(clean(block.group) + _size(report, block.group), width)
            lines += ["", heading, "=" * cell_width(heading)]
        group = block.group
        lines += ["", *_table(block, layouts[group is None], width)]
    lines += heat_lines(report, width)
    lines += _foot(report, shown, width)
    return "\n".join(line.rstrip() for line in lines)


def _head(report: Report, width: int) -> Iterator[str]:
    facts = [f"fewlabels {report['fewlabels']}", report["method"], f"seed {report['seed']}"]
    yield from wrap(", ".join(facts), width)
    annotated = report.get("n_annotated")
    yield from wrap(
        f"{count(report['n_items'])} items, {count(report['n_labeled'])} labeled"
        + (f", {count(annotated)} with counts of annotators" if annotated else "")
        + f"; classes: {', '.join(clean(c) for c in report['classes'])}"
        + (f" ({clean(report['classes'][1])} is positive)" if len(report["classes"]) == 2 else ""),
        width,
    )
    estimand = f"intervals {_ESTIMANDS.get(report['estimand'], report['estimand'])}"
    if report.get("against") == "distribution":
        estimand += ", against the distribution of annotators' labels"
    yield from wrap(f"{percent(report['confidence_level'])} {estimand}", width)


def _size(report: Report, group: str) -> str:
    """How many items and labels a group has, where the report says so."""
    for size in report.get("groups", ()):
        if size["group"] == group:
            return f" ({count(size['n_items'])} items, {count(size['n_labeled'])} labeled)"
    return ""


@dataclass(frozen=True)
class _Column:
    """A column of the table: its heading and a cell per row."""

    heading: str
    cells: Sequence[str]
    right: bool = False

    @property
    def width(self) -> int:
        return max(map(cell_width, [self.heading, *self.cells]))

    def lines(self) -> list[str]:
        return [pad(text, self.width, right=self.right) for text in [self.heading, *self.cells]]


@dataclass(frozen=True)
class _Layout:
    """What blocks that belong together have in common, so that their columns line up."""

    scales: Mapping[str, Axis]
    extras: int
    name: int
    plot: int


def _layout(alike: Sequence[Block], width: int) -> _Layout:
    """Share the width: all items and groups each have their own layout."""
    members: dict[str, list[Block]] = {}
    for block in alike:
        members.setdefault(block.metric, []).append(block)
    # Groups are compared with one another, so they share a scale; theirs is wider.
    scales = {metric: common_axis(same) for metric, same in members.items()}
    # On a narrow terminal the extras go before the names become unreadable.
    rooms = [min(_room(block, n, width) for block in alike) for n in (2, 1, 0)]
    extras = next((2 - k for k, room in enumerate(rooms) if room >= _NAMES[0]), 0)
    room = rooms[2 - extras]
    longest = max(cell_width(clean(row.model)) for block in alike for row in block.rows)
    least = max(_PLOT[0], *(sum(map(len, axis.ends)) + 1 for axis in scales.values()))
    name = min(longest, max(_NAMES[1], room - _GAP - _PLOT[1]), room - _GAP - least)
    if name < min(longest, _NAMES[0]):
        return _Layout(scales, extras, room, 0)
    return _Layout(scales, extras, name, min(_PLOT[2], room - _GAP - name))


def _room(block: Block, extras: int, width: int) -> int:
    """Columns that are left for names and plot."""
    return width - _INDENT - sum(c.width + _GAP for c in [*_numbers(block, extras), _status(block)])


def _table(block: Block, layout: _Layout, width: int) -> Iterator[str]:
    better = f" ({block.preference})" if block.preference else ""
    # The description is said once, with all items.
    about = f": {block.description}" if block.description and block.group is None else ""
    yield from wrap(clean(block.metric) + better + about, width)
    names = short_names([row.model for row in block.rows], layout.name)
    columns = [_Column("", list(names.values())), *_numbers(block, layout.extras)]
    if layout.plot:
        columns.append(_plots(block, layout.scales[block.metric], layout.plot))
    columns.append(_status(block))
    lines = [
        " " * _INDENT + (" " * _GAP).join(cells)
        for cells in zip(*(column.lines() for column in columns), strict=True)
    ]
    if block.gap is not None:
        lines[1 + block.gap.after : 1 + block.gap.after] = _left_out(block.gap, width)
    yield from lines


def _left_out(gap: Gap, width: int) -> list[str]:
    """Say that rows are not shown, and where they are."""
    told = f"... {count(gap.n_hidden)} of {count(gap.n_rows)} classifiers are not shown; "
    lines = wrap(f"{told}the JSON and the HTML report have all", width - _INDENT)
    return [" " * _INDENT + line for line in lines]


def _numbers(block: Block, extras: int) -> list[_Column]:
    return [_estimates(block), *itertools.islice(_extras(block), extras)]


def _status(block: Block) -> _Column:
    return _Column("status", [clean(row.status) for row in block.rows])


def _estimates(block: Block) -> _Column:
    values = [row.reason if row.value is None else block.write(row.value) for row in block.rows]
    room = max((len(v) for v, r in zip(values, block.rows, strict=True) if r.value is not None),
               default=0)  # fmt: skip
    cells = [
        f"{pad(value, room, right=True)} {_interval(block, row)}"
        for value, row in zip(values, block.rows, strict=True)
    ]
    return _Column(f"{pad('value', room)} [{percent(block.level)} interval]", cells)


def _interval(block: Block, row: Row) -> str:
    return f"[{block.write(row.low)}, {block.write(row.high)}]" if row.has_interval else ""


def _extras(block: Block) -> Iterator[_Column]:
    if block.has_truth:
        cells = ["-" if row.truth is None else block.write(row.truth) for row in block.rows]
        yield _Column("truth", cells, right=True)
    if block.has_best:
        yield _Column("P(best)", [probability(row.best) for row in block.rows], right=True)


def _plots(block: Block, axis: Axis, width: int) -> _Column:
    low, high = axis.ends
    return _Column(
        low + high.rjust(width - len(low)),
        [_plot(row, axis, width) for row in block.rows],
    )


def _plot(row: Row, axis: Axis, width: int) -> str:
    def at(value: float) -> int:
        return round(axis.at(value) * (width - 1))

    cells = [" "] * width
    if row.low is not None and row.high is not None:
        low, high = at(row.low), at(row.high)
        cells[low : high + 1] = "-" * (high - low + 1)
        cells[low] = cells[high] = "|"
    if row.value is not None:
        cells[at(row.value)] = "o"
    if row.truth is not None:
        met = cells[at(row.truth)] == "o"
        cells[at(row.truth)] = "*" if met else "x"
    return "".join(cells)


def _foot(report: Report, shown: Sequence[Block], width: int) -> Iterator[str]:
    if shown:
        truth = ", x truth, * both" if any(block.has_truth for block in shown) else ""
        yield from ["", *wrap(f"o estimate, |--| interval{truth}", width)]
    for status, message in status_notes(report, shown):
        yield from wrap(f"{status}: {message}", width, "  ")
    yield from comparison_lines(report, width)
    yield from _warnings(report, width)


def _warnings(report: Mapping[str, object], width: int) -> Iterator[str]:
    warnings = report.get("warnings") or []
    if isinstance(warnings, Sequence) and warnings:
        yield from ["", "Warnings"]
        for warning in warnings:
            yield from wrap(f"- {warning}", width, "  ")
