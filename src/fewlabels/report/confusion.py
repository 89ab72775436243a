"""Confusion matrices of classifiers, and the items on which classifiers and labels differ."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

from fewlabels.report.blocks import Report, grouped
from fewlabels.report.diagnostics import Cell, HeatMap, share_cell
from fewlabels.report.document import (
    Document,
    Group,
    Node,
    Para,
    Section,
    Table,
    counts,
    name,
    page_only,
    plain,
)
from fewlabels.report.words import (
    UNDEFINED,
    count,
    made_by,
    percent,
    plural,
    with_interval,
)

MOST_MATRICES = 12
"""Classifiers whose matrices are shown; the JSON has all."""

_MOST_ENDS = 5
"""With at most so many classes, the cells of pages show intervals."""

_MIXED_UP, _FIRST = 8, 10

Matrix = Mapping[str, Any]


def parts(report: Report) -> list[Node]:
    """The matrices that were asked for, of all classifiers; else those of a model of votes."""
    if report.get("confusion"):
        return matrices(report["confusion"])
    votes = (report.get("votes") or {}).get("confusion")
    return [page_only(_of_model, votes)] if votes and votes["matrices"] else []


def _of_model(votes: Mapping[str, Any]) -> list[Node]:
    """The matrices of a model of votes."""
    classes = votes["classes"]

    def chart(entry: Matrix) -> HeatMap:
        def cell(i: int, j: int) -> Cell:
            title = f"of class {classes[i]}, predicted {classes[j]}"
            return share_cell(entry["matrix"][i][j], title)

        return HeatMap(entry["model"], ("class", "predicted"), classes, classes, cell)

    about = (
        "Each row is a class, each column what the classifier predicts for its items, over all "
        "domains where it votes: a good classifier has its colour on the diagonal."
    )
    maps = _maps([*map(chart, votes["matrices"])], votes["n_models"])
    return [Section("Confusion matrices", [Para(about, "soft"), *maps])]


def matrices(matrix: Matrix) -> list[Node]:
    """The matrices of `ConfusionMatrices.to_dict`; a text has those of some cells."""
    by_model = grouped(matrix["cells"], itemgetter("model"))
    items = f"estimated numbers of all {plural(matrix['n_items'], 'item')}"
    if matrix["counted"] == "labeled":
        items = f"counts of the {plural(matrix['n_labeled'], 'labeled item')}"
    where = "" if matrix["group"] is None else f" of {name(matrix['group'])}"
    about = (
        f"Each row is a label, each column what the classifier predicts for its items: {items} "
        "[interval]. Found is the share of a label's items predicted so, right that of a "
        "prediction's items."
    )
    colours = (
        "The stronger the colour, the larger the share of the label's items; point at a number for "
        "its intervals."
    )
    some = [*by_model.values()][:MOST_MATRICES]
    charts = [_map(matrix, cells, ends=len(matrix["classes"]) <= _MOST_ENDS) for cells in some]
    lines = [partial(_lines, matrix, cells) for cells in some]
    maps = _maps(charts, len(by_model), lines)
    return [Section(
        f"Confusion matrices{where}",
        [Para(about, "soft"), Para(colours, "soft", on="page"), *maps],
    )]  # fmt: skip


def _maps(
    charts: Sequence[HeatMap], n_models: int, lines: Sequence[Callable[[int], Iterator[Node]]] = ()
) -> list[Node]:
    """Matrices side by side, the colours explained once."""
    shown, hidden = [], n_models - len(charts)
    for chart, text in itertools.zip_longest(charts, lines):
        last = replace(chart, first=chart.corner[0], ramp=chart is charts[-1])
        shown.append(replace(last.drawing(caption=name(chart.caption)), lines=text))
    left = f"The first {len(charts)} classifiers are shown, {count(hidden)} are not."
    return [Group("maps", shown), *([Para(left, "soft")] if hidden else [])]


def _lines(matrix: Matrix, cells: Sequence[Matrix], width: int) -> Iterator[Node]:
    """The matrix as text; what is mixed up most where it does not fit."""
    chart = _map(matrix, cells, ends=True)
    table = [*chart.lines(width)]
    yield from [Para(""), Para(name(chart.caption) + "".join(f" ({n})" for n in chart.notes))]
    yield from table
    if not table:
        yield from _map(matrix, cells, ends=False).lines(width)
        mixed = [c for c in cells if c["label"] != c["predicted"] and c["value"]]
        for cell in sorted(mixed, key=lambda c: -c["value"])[:_MIXED_UP]:
            said = f"{cell['label']} called {cell['predicted']}: {_number(matrix, cell)}"
            yield Para(f"  {plain(said)}")


def _map(matrix: Matrix, cells: Sequence[Matrix], *, ends: bool) -> HeatMap:
    """The matrix of a classifier, with the shares of labels found and of predictions right."""
    classes = [str(name) for name in matrix["classes"]]
    k = len(classes)

    def cell(i: int, j: int) -> Cell:
        if i < k and j < k:
            one = cells[i * k + j]
            shares = [
                f"{_share(one, 'value')} of all items",
                f"{_share(one, 'of_label')} of those labeled {classes[i]}",
                f"{_share(one, 'of_predicted')} of those predicted {classes[j]}",
                plural(one["labeled"], "labeled item"),
            ]
            title = f"label {classes[i]}, predicted {classes[j]}: {'; '.join(shares)}"
            return Cell(_number(matrix, one, ends), one["of_label"], title)
        if i == j:
            return Cell("", None, "")
        what, title = ("of_label", "labeled") if j == k else ("of_predicted", "predicted")
        place = min(i, j)
        share = _share(cells[place * (k + 1)], what, ends)
        return Cell(share, None, f"right of those {title} {classes[place]}")

    rows, columns = [*classes, "right"], [*classes, "found"]
    notes = [] if cells[0]["status"] == "ok" else [cells[0]["status"]]
    return HeatMap(cells[0]["model"], ("label", "predicted"), rows, columns, cell, notes=notes)


def _number(matrix: Matrix, cell: Matrix, ends: bool = True) -> str:
    """The number of items with its interval; of counts, the share of items with that."""
    if matrix["counted"] == "labeled":
        return f"{cell['labeled']:,}" + (f", {_share(cell, 'value')}" if ends else "")
    return _share(cell, "value", ends, lambda share: f"{matrix['n_items'] * share:,.0f}")


def _share(
    cell: Matrix, name: str, ends: bool = True, write: Callable[[float], str] = "{:.0%}".format
) -> str:
    """A share, with its interval."""
    prefix = "" if name == "value" else f"{name}_"
    low, high = (cell[f"{prefix}{end}"] if ends else None for end in ("low", "high"))
    shown = {"value": cell[name], "low": low, "high": high}
    return with_interval(shown, lambda share: UNDEFINED if share is None else write(share))


def document(report: Matrix) -> Document:
    """All that is said of `ConfusionMatrices.to_dict`."""
    return Document(
        "What do the classifiers mix up?",
        report,
        counts(report),
        body=matrices(report),
        foot=[f"{made_by(report)}; {percent(report['confidence_level'])} intervals"],
    )


def disagreements(report: Mapping[str, Any]) -> Document:
    """How many there are, and the first; `report` is that of `Disagreements.to_dict`."""
    columns = report["columns"]
    total, with_label = len(columns["row"]), report["with_label"]
    answers = [column for column in columns if column.startswith("y__")][:3]
    named = list(columns)[1 : list(columns).index("differ")][:1] or ["row"]
    shown = [*named, "label", *answers, "strength", "suspect"]
    rows = zip(*(columns[key] for key in shown), strict=True)
    table = Table(
        [plain(key.removeprefix("y__")) for key in shown],
        [["-" if cell is None else plain(cell) for cell in row] for row in rows][:_FIRST],
        "Disagreements", "l", widest=24,
    )  # fmt: skip
    left = [Para(f"... {count(total - _FIRST)} more in the table")] if total > _FIRST else []
    return Document(
        "Where do classifiers and labels differ?",
        report,
        counts(report) | {
            "Disagreements": total, "With the label": with_label,
            "Labels suspect": report["suspect"],
            f"Between classifiers that are {percent(report['confident'])} sure": total - with_label,
        },
        body=[Section("The most telling", [table, *left])] if total else [],
    )  # fmt: skip
