"""Error rates by domain and classifier, and who behaves alike, as text."""

from __future__ import annotations

from collections.abc import Iterator

from fewlabels.report.blocks import Report
from fewlabels.report.heat_map import HeatMap, error_map, partition
from fewlabels.report.words import cell_width, clean, fit, pad, short_names, wrap

_INDENT = 2
_GAP = 2
_ROOM = (12, 6)
"""Columns that a classifier's name may take: as many as there is room for, at least the last."""

_DOMAIN = 24


def heat_lines(report: Report, width: int) -> Iterator[str]:
    """The table of error rates where it fits, and the most probable partition; each with a gap."""
    chart = error_map(report)
    if chart is not None:
        yield from heat_table(chart, width)
    found = partition(report)
    if found is not None:
        yield from ["", *wrap(found.heading[:1].upper() + found.heading[1:], width)]
        for part in found.parts if found.settled else ():
            yield from wrap(f"- {part}", width, "  ")


def heat_table(chart: HeatMap, width: int) -> Iterator[str]:
    """A heat map as a table of numbers with a gap above; nothing where it does not fit."""
    rows = short_names([name for name, _ in chart.rows], _DOMAIN)
    first = max(map(cell_width, rows.values()))
    for room in range(_ROOM[0], _ROOM[1] - 1, -1):
        names = short_names(chart.columns, room)
        rooms = [
            max(cell_width(names[column]), *(len(cells[j].text) for _, cells in chart.rows))
            for j, column in enumerate(chart.columns)
        ]
        if _INDENT + first + sum(_GAP + r for r in rooms) <= width:
            break
    else:
        return
    notes = "".join(f"; {note}" for note in chart.notes)
    yield from ["", *wrap(f"{chart.caption} (posterior mean){notes}", width)]
    yield _line("", first, list(names.values()), rooms)
    for name, cells in chart.rows:
        yield _line(rows[name], first, [cell.text for cell in cells], rooms)


def _line(name: str, first: int, cells: list[str], rooms: list[int]) -> str:
    told = (pad(cell, room, right=True) for cell, room in zip(cells, rooms, strict=True))
    return " " * _INDENT + (" " * _GAP).join([pad(fit(clean(name), first), first), *told])
