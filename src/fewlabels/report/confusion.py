"""Confusion matrices and disagreements of classifiers and labels as text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fewlabels.report.words import (
    NARROWEST,
    UNDEFINED,
    aligned,
    as_text,
    cell_width,
    count,
    escape_control,
    fitted,
    percent,
    plural,
    short_names,
    style,
    wrap,
)

MOST_MATRICES = 12
"""Classifiers whose matrices are shown; the JSON has all."""

_MIXED_UP, _FIRST, _NAME = 8, 10, 16

Matrix = Mapping[str, Any]


def counted_items(matrix: Matrix) -> str:
    """What the numbers of the cells are."""
    if matrix["counted"] == "labeled":
        return f"counts of the {plural(matrix['n_labeled'], 'labeled item')}"
    return f"estimated numbers of all {plural(matrix['n_items'], 'item')}"


def cell_count(matrix: Matrix, cell: Mapping[str, Any]) -> str:
    """The number of items in a cell: counted among the labeled, or estimated of all."""
    if matrix["counted"] == "labeled":
        return f"{cell['labeled']:,}"
    return UNDEFINED if cell["value"] is None else f"{matrix['n_items'] * cell['value']:,.0f}"


def cell_text(matrix: Matrix, cell: Mapping[str, Any], *, ends: bool = True) -> str:
    """The number of items with its interval; of counts, the share of items with that."""
    number, low, high = cell_count(matrix, cell), cell["low"], cell["high"]
    if not ends or low is None:
        return number
    if matrix["counted"] == "labeled":
        return f"{number}, {_interval(cell, 'value')}"
    return f"{number} [{matrix['n_items'] * low:,.0f}, {matrix['n_items'] * high:,.0f}]"


def cell_title(matrix: Matrix, cell: Mapping[str, Any]) -> str:
    """Everything about a cell, in words."""
    shares = [
        f"{_interval(cell, 'value')} of all items",
        f"{_interval(cell, 'of_label')} of those labeled {cell['label']}",
        f"{_interval(cell, 'of_predicted')} of those predicted {cell['predicted']}",
        f"{plural(cell['labeled'], 'labeled item')}",
    ]
    return f"label {cell['label']}, predicted {cell['predicted']}: {'; '.join(shares)}"


def _share(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.0%}"


def _interval(cell: Mapping[str, Any], name: str, *, ends: bool = True) -> str:
    low, high = ("low", "high") if name == "value" else (f"{name}_low", f"{name}_high")
    if not ends or cell[low] is None:
        return _share(cell[name])
    return f"{_share(cell[name])} [{_share(cell[low])}, {_share(cell[high])}]"


def render_confusion(report: Matrix, width: int = 80) -> str:
    """The matrices as text; `report` is the dictionary of `ConfusionMatrices.to_dict`."""
    width = max(width, NARROWEST)
    foot = (
        f"{percent(report['confidence_level'])} intervals; method {report['method']}, seed "
        f"{report['seed']}, fewlabels {report['fewlabels']}"
    )
    return as_text([*confusion_lines(report, width), "", *wrap(foot, width)])


def confusion_lines(matrix: Matrix, width: int) -> Iterator[str]:
    """A heading, then for each classifier a table, or what it mixes up most where none fits."""
    where = "" if matrix["group"] is None else f" of {escape_control(matrix['group'])}"
    heading = (
        f"Confusion matrices{where}: label in rows, prediction in columns; {counted_items(matrix)} "
        "[interval]; found is the share of the label's items predicted so, right that of the "
        "prediction's"
    )
    yield from (style(line, "title") for line in wrap(heading, width))
    each = itertools.groupby(matrix["cells"], key=lambda cell: cell["model"])
    some = [(model, list(cells)) for model, cells in each]
    for model, cells in some[:MOST_MATRICES]:
        yield ""
        status = "" if cells[0]["status"] == "ok" else f" ({cells[0]['status']})"
        yield style(f"{escape_control(model)}{status}", "title")
        yield from _matrix(matrix, cells, width)
    if len(some) > MOST_MATRICES:
        yield f"... {count(len(some) - MOST_MATRICES)} more classifiers; the JSON has all"


def _matrix(matrix: Matrix, cells: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    k = len(matrix["classes"])
    names = [*short_names(list(map(str, matrix["classes"])), _NAME).values()]
    rows = [cells[i : i + k] for i in range(0, len(cells), k)]
    for ends in (True, False):
        table = [["", *names, "found"]]
        for i, row in enumerate(rows):
            cells_of_row = [cell_text(matrix, cell, ends=ends) for cell in row]
            table.append([names[i], *cells_of_row, _interval(row[i], "of_label", ends=ends)])
        right = (_interval(rows[i][i], "of_predicted", ends=ends) for i in range(k))
        lines = [f"  {line}".rstrip() for line in aligned([*table, ["right", *right, ""]], "lr")]
        if max(map(cell_width, lines)) <= width:
            yield from lines
            if ends:
                return
            break
    mixed = [c for c in cells if c["label"] != c["predicted"] and c["value"]]
    for cell in sorted(mixed, key=lambda c: -c["value"])[:_MIXED_UP]:
        said = f"{cell['label']} called {cell['predicted']}: {cell_text(matrix, cell)}"
        yield from (f"  {line}" for line in wrap(escape_control(said), width - 2, "  "))


def render_disagreements(report: Mapping[str, Any], width: int = 80) -> str:
    """How many there are, and the first; `report` is that of `Disagreements.to_dict`."""
    width, columns = max(width, NARROWEST), report["columns"]
    total = len(columns["row"])
    between = total - report["with_label"]
    head = (
        f"{plural(total, 'disagreement')} on {plural(report['n_items'], 'item')}: "
        f"{count(report['with_label'])} with the label ({count(report['suspect'])} labels suspect),"
        f" {count(between)} between classifiers that are {percent(report['confident'])} sure"
    )
    answers = [name for name in columns if name.startswith("y__")][:3]
    named = list(columns)[1 : list(columns).index("differ")][:1] or ["row"]
    shown = [*named, "label", *answers, "strength", "suspect"]
    table = [[name.removeprefix("y__") for name in shown]]
    for place in range(min(total, _FIRST)):
        cells = [columns[name][place] for name in shown]
        table.append(["-" if c is None else escape_control(str(c)) for c in cells])
    rows = fitted(table, "l" * len(shown), width, most=24) if total else ()
    left = total - _FIRST
    more = [f"... {count(left)} more in the table"] if left > 0 else []
    return as_text([*(style(line, "title") for line in wrap(head, width)), *rows, *more])
