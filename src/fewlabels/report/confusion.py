"""Confusion matrices of classifiers as tables of text and of pages, and disagreements as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fewlabels.report.blocks import Report
from fewlabels.report.diagnostics import Cell, HeatMap, share_cell
from fewlabels.report.words import (
    NARROWEST,
    UNDEFINED,
    as_text,
    count,
    escape_control,
    fitted,
    percent,
    plural,
    style,
    with_interval,
    wrap,
)

MOST_MATRICES = 12
"""Classifiers whose matrices are shown; the JSON has all."""

_MOST_ENDS = 5
"""With at most so many classes, the cells of pages show intervals."""

_MIXED_UP, _FIRST = 8, 10

Matrix = Mapping[str, Any]


def confusion_maps(report: Report) -> tuple[list[HeatMap], int, str]:
    """Confusion matrix of each classifier, the number of those left out, and what they are of.

    Those that were asked for, of all classifiers; else those of a model of votes.
    """
    if asked := report.get("confusion"):
        some, ends = _by_model(asked), len(asked["classes"]) <= _MOST_ENDS
        maps = [_map(asked, *one, ends=ends) for one in some[:MOST_MATRICES]]
        return maps, len(some) - len(maps), _items(asked)
    votes = (report.get("votes") or {}).get("confusion") or {"matrices": (), "n_models": 0}

    def of_votes(entry: Matrix) -> HeatMap:
        def cell(i: int, j: int) -> Cell:
            title = f"of class {classes[i]}, predicted {classes[j]}"
            return share_cell(entry["matrix"][i][j], title)

        classes = votes["classes"]
        return HeatMap.from_table(entry["model"], ("class", "predicted"), classes, classes, cell)

    maps = [of_votes(entry) for entry in votes["matrices"]]
    return maps, votes["n_models"] - len(maps), ""


def _by_model(matrix: Matrix) -> list[tuple[str, list[Matrix]]]:
    """The cells of each classifier."""
    by_model: dict[str, list[Matrix]] = {}
    for cell in matrix["cells"]:
        by_model.setdefault(cell["model"], []).append(cell)
    return list(by_model.items())


def _map(matrix: Matrix, model: str, cells: Sequence[Matrix], *, ends: bool) -> HeatMap:
    """The matrix of a classifier, with the shares of labels found and of predictions right."""
    classes = [str(name) for name in matrix["classes"]]
    k = len(classes)

    def cell(i: int, j: int) -> Cell:
        if i < k and j < k:
            one = cells[i * k + j]
            return Cell(_number(matrix, one, ends), one["of_label"], _title(matrix, one))
        if i == j:
            return Cell("", None, "")
        what, title = ("of_label", "labeled") if j == k else ("of_predicted", "predicted")
        one = cells[min(i, j) * (k + 1)]
        return Cell(_share(one, what, ends), None, f"right of those {title} {one['label']}")

    notes = [] if cells[0]["status"] == "ok" else [cells[0]["status"]]
    rows, columns = [*classes, "right"], [*classes, "found"]
    return HeatMap.from_table(model, ("label", "predicted"), rows, columns, cell, notes=notes)


def _items(matrix: Matrix) -> str:
    """What the numbers of the cells are."""
    if matrix["counted"] == "labeled":
        return f"counts of the {plural(matrix['n_labeled'], 'labeled item')}"
    return f"estimated numbers of all {plural(matrix['n_items'], 'item')}"


def _number(matrix: Matrix, cell: Matrix, ends: bool = True) -> str:
    """The number of items with its interval; of counts, the share of items with that."""
    if matrix["counted"] == "labeled":
        return f"{cell['labeled']:,}" + (f", {_share(cell, 'value')}" if ends else "")
    return _share(cell, "value", ends, lambda share: f"{matrix['n_items'] * share:,.0f}")


def _title(matrix: Matrix, cell: Matrix) -> str:
    """Everything about a cell, in words."""
    shares = [
        f"{_share(cell, 'value')} of all items",
        f"{_share(cell, 'of_label')} of those labeled {cell['label']}",
        f"{_share(cell, 'of_predicted')} of those predicted {cell['predicted']}",
        f"{plural(cell['labeled'], 'labeled item')}",
    ]
    return f"label {cell['label']}, predicted {cell['predicted']}: {'; '.join(shares)}"


def _share(
    cell: Matrix, name: str, ends: bool = True, write: Callable[[float], str] = "{:.0%}".format
) -> str:
    """A share, with its interval."""
    prefix = "" if name == "value" else f"{name}_"
    low, high = (cell[f"{prefix}{end}"] if ends else None for end in ("low", "high"))
    shown = {"value": cell[name], "low": low, "high": high}
    return with_interval(shown, lambda share: UNDEFINED if share is None else write(share))


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
        f"Confusion matrices{where}: label in rows, prediction in columns; {_items(matrix)} "
        "[interval]; found is the share of the label's items predicted so, right that of the "
        "prediction's"
    )
    yield from (style(line, "title") for line in wrap(heading, width))
    some = _by_model(matrix)
    for model, cells in some[:MOST_MATRICES]:
        chart = _map(matrix, model, cells, ends=True)
        status = "".join(f" ({note})" for note in chart.notes)
        yield from ["", style(f"{escape_control(model)}{status}", "title")]
        if table := chart.table(width):
            yield from table
            continue
        yield from _map(matrix, model, cells, ends=False).table(width)
        mixed = [c for c in cells if c["label"] != c["predicted"] and c["value"]]
        for cell in sorted(mixed, key=lambda c: -c["value"])[:_MIXED_UP]:
            said = f"{cell['label']} called {cell['predicted']}: {_number(matrix, cell)}"
            yield from (f"  {line}" for line in wrap(escape_control(said), width - 2, "  "))
    if len(some) > MOST_MATRICES:
        yield f"... {count(len(some) - MOST_MATRICES)} more classifiers; the JSON has all"


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
    more = [f"... {count(total - _FIRST)} more in the table"] if total > _FIRST else []
    return as_text([*(style(line, "title") for line in wrap(head, width)), *rows, *more])
