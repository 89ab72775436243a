"""The estimates as a table of text, with a small forest plot of plain ASCII."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fewlabels.errors import Status
from fewlabels.report.answered_by import answered_lines, reference_trust
from fewlabels.report.axis import Axis
from fewlabels.report.blocks import (
    NOT_APPLICABLE,
    Block,
    Gap,
    Report,
    Row,
    applicable,
    blocks,
    common_axis,
    ranking,
    status_notes,
)
from fewlabels.report.comparison import comparison_lines
from fewlabels.report.headline import first_lines, warnings
from fewlabels.report.heat_map import heat_lines
from fewlabels.report.ink import Role, ink
from fewlabels.report.words import (
    NARROWEST,
    as_text,
    bulleted,
    cell_width,
    clean,
    count,
    enumerated,
    fit,
    pad,
    percent,
    probability,
    short_names,
    speaks_of,
    wrap,
)

_INDENT = 2
_GAP = 2
_GUTTER = 2  # Between tables that lie beside each other.
_WIDEST = 10_000  # More columns than any terminal has.
_NAMES = (10, 18)  # Columns of the names, if they need them: at least; before the plot is wide.
_PLOT = (10, 16, 36)  # Columns of the plot: at least; before long names get more; at most.


def render_text(report: Report, width: int = 80) -> str:
    """What was read, what decides how far to trust it, and a table per group and metric.

    Classifiers are in the order of the first metric, the best first. Where there is room, two
    metrics lie beside each other.

    `report` is the dictionary of `Estimates.report`.
    """
    width = max(width, NARROWEST)
    applying, unfit = applicable(blocks(report))
    order = ranking(applying)
    groups: dict[str | None, list[Block]] = {}
    for block in applying:
        groups.setdefault(block.group, []).append(block.in_order(order).abridged())
    overall = [found for group, found in groups.items() if group is None]
    columns = {True: _columns(overall, width)}
    columns[False] = _columns([f for group, f in groups.items() if group is not None], width)
    lines = list(_head(report, width))
    for group, found in groups.items():
        if group is not None:
            heading = fit(clean(group) + _size(report, group), width)
            lines += ["", ink(heading, "title"), "=" * cell_width(heading)]
        lines += _tables(found, columns[group is None])
    lines += heat_lines(report, width)
    lines += answered_lines(report, width)
    lines += _foot(report, applying, unfit, width)
    return as_text(lines)


def _head(report: Report, width: int) -> Iterator[str]:
    yield from first_lines(report, width)
    trust = reference_trust(report)
    if trust is not None:
        yield from (ink(f"  {line}", "soft") for line in wrap(trust, width - 2, "  "))
    deciding, _ = warnings(report)
    if deciding is not None:
        yield from (ink(line, "warning") for line in wrap(f"! {deciding}", width, "  "))


def _tables(found: Sequence[Block], columns: Sequence[_Side]) -> Iterator[str]:
    """The tables of a group, in rows of as many as lie beside each other."""
    for start in range(0, len(found), len(columns)):
        shown = list(zip(found[start:], columns, strict=False))
        tables = [_table(block, side.layout, side.width) for block, side in shown]
        yield ""
        # Headings of several lines must not push the rows of one table below those of the other.
        for part in zip(*tables, strict=True):
            for lines in itertools.zip_longest(*part, fillvalue=""):
                cells = (
                    pad(line, side.width) for line, (_, side) in zip(lines, shown, strict=True)
                )
                yield (" " * _GUTTER).join(cells)


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
    role: Role | None = None

    @property
    def width(self) -> int:
        return max(map(cell_width, [self.heading, *self.cells]))

    def lines(self) -> list[str]:
        heading, *cells = (
            pad(text, self.width, right=self.right) for text in [self.heading, *self.cells]
        )
        inked = cells if self.role is None else [ink(cell, self.role) for cell in cells]
        return [ink(heading, "soft"), *inked]


@dataclass(frozen=True)
class _Layout:
    """What blocks that belong together have in common, so that their columns line up."""

    scales: Mapping[str, Axis]
    extras: int
    name: int
    plot: int


@dataclass(frozen=True)
class _Side:
    """Tables below one another, and the columns they have."""

    layout: _Layout
    width: int


def _columns(groups: Sequence[Sequence[Block]], width: int) -> list[_Side]:
    """Two sides where every table fits with all it has, and no name is cut; else one."""
    sides = [[block for found in groups for block in found[k::2]] for k in (0, 1)]
    if all(sides):
        least = [max(map(_least, side)) for side in sides]
        spare = width - _GUTTER - sum(least)
        if spare >= 0:
            rooms = (least[0] + spare // 2, least[1] + spare - spare // 2)
            pairs = zip(sides, rooms, strict=True)
            return [_Side(_layout(side, room), room) for side, room in pairs]
    everything = [block for found in groups for block in found]
    return [_Side(_layout(everything, width), width)] if everything else []


def _least(block: Block) -> int:
    """Columns that a table needs with all it has."""
    name = max(cell_width(clean(row.model)) for row in block.rows)
    if name > _NAMES[1]:
        return _WIDEST
    plot = sum(map(len, common_axis([block]).ends)) + 1
    return name + _GAP + plot - _room(block, 2, 0)


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
    columns = [*_numbers(block, extras), *_status(block)]
    return width - _INDENT - sum(column.width + _GAP for column in columns)


def _table(block: Block, layout: _Layout, width: int) -> tuple[list[str], list[str]]:
    """The heading of a table, and its rows."""
    better = f" ({block.preference})" if block.preference else ""
    # The description is said once, with all items.
    about = f": {block.description}" if block.description and block.group is None else ""
    first, *rest = wrap(clean(block.metric) + better + about, width)
    name = clean(block.metric)
    heading = [ink(name, "title") + ink(first.removeprefix(name), "soft")]
    heading += [ink(line, "soft") for line in rest]
    names = short_names([row.model for row in block.rows], layout.name)
    columns = [_Column("", list(names.values())), *_numbers(block, layout.extras)]
    if layout.plot:
        columns.append(_plots(block, layout.scales[block.metric], layout.plot))
    columns += _status(block)
    lines = [
        " " * _INDENT + (" " * _GAP).join(cells)
        for cells in zip(*(column.lines() for column in columns), strict=True)
    ]
    if block.gap is not None:
        lines[1 + block.gap.after : 1 + block.gap.after] = _left_out(block.gap, width)
    return heading, lines


def _left_out(gap: Gap, width: int) -> list[str]:
    """Say that rows are not shown, and where they are."""
    told = f"... {count(gap.n_hidden)} of {count(gap.n_rows)} classifiers are not shown; "
    lines = wrap(f"{told}the JSON and the HTML report have all", width - _INDENT)
    return [" " * _INDENT + line for line in lines]


def _numbers(block: Block, extras: int) -> list[_Column]:
    return [_estimates(block), *itertools.islice(_extras(block), extras)]


def _status(block: Block) -> list[_Column]:
    """The statuses other than "ok", where there are any."""
    cells = ["" if row.status == Status.OK else clean(row.status) for row in block.rows]
    return [_Column("status", cells, role="warning")] if any(cells) else []


def _estimates(block: Block) -> _Column:
    figures = [block.figures(row) for row in block.rows]
    room = max((len(block.write(r.value)) for r in block.rows if r.value is not None), default=0)
    cells = [f"{pad(value, room, right=True)} {interval}" for value, interval in figures]
    of_level = "" if block.level is None else f" [{percent(block.level)} interval]"
    return _Column(f"{pad('value', room)}{of_level}", cells)


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


def _foot(
    report: Report, shown: Sequence[Block], unfit: Sequence[str], width: int
) -> Iterator[str]:
    truth = ", x truth, * both" if any(block.has_truth for block in shown) else ""
    legend = [f"o estimate, |--| interval{truth}"] if shown else []
    yield ""
    for line in [*legend, _made(report)]:
        yield from (ink(part, "soft") for part in wrap(line, width))
    for status, message in status_notes(report, shown):
        yield from wrap(f"{status}: {message}", width, "  ")
    if unfit:
        names = enumerated(unfit)
        why = report.get("status_messages", {}).get(NOT_APPLICABLE)
        yield from wrap(f"not applicable here: {names}" + (f" ({why})" if why else ""), width, "  ")
    yield from comparison_lines(report, width)
    _, others = warnings(report)
    applying = any(row.status == NOT_APPLICABLE for block in shown for row in block.rows)
    said = [text for text in others if applying or not text.startswith(NOT_APPLICABLE)]
    yield from bulleted(ink("Warnings", "title"), said, width)


def _made(report: Report) -> str:
    """How the estimates were made, and what they speak of."""
    estimand = f"intervals {speaks_of(report)}"
    if report.get("against") == "distribution":
        estimand += ", against the distribution of annotators' labels"
    return (
        f"{percent(report['confidence_level'])} {estimand}; method {report['method']}, seed "
        f"{report['seed']}, fewlabels {report['fewlabels']}; classes: "
        f"{', '.join(clean(c) for c in report['classes'])}"
    )
