"""Confusion matrices of classifiers, and the items on which classifiers and labels differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fewlabels.report.blocks import Report
from fewlabels.report.diagnostics import Cell, HeatMap, share_cell
from fewlabels.report.document import (
    Document,
    Group,
    Node,
    Para,
    Section,
    Table,
    name,
    page_only,
    plain,
)
from fewlabels.report.words import (
    UNDEFINED,
    count,
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

    def of_votes(entry: Matrix) -> HeatMap:
        def cell(i: int, j: int) -> Cell:
            title = f"of class {classes[i]}, predicted {classes[j]}"
            return share_cell(entry["matrix"][i][j], title)

        chart = HeatMap(entry["model"], ("class", "predicted"), classes, classes, cell)
        return replace(chart, first="class")

    about = (
        "Each row is a class, each column what the classifier predicts for its items, over all "
        "domains where it votes: a good classifier has its colour on the diagonal."
    )
    charts = [of_votes(entry) for entry in votes["matrices"]]
    maps = _maps([(chart, None) for chart in charts], votes["n_models"] - len(charts))
    return [Section("Confusion matrices", [Para(about, "soft"), *maps])]


def matrices(matrix: Matrix) -> list[Node]:
    """The matrices of `ConfusionMatrices.to_dict`."""
    by_model: dict[str, list[Matrix]] = {}
    for cell in matrix["cells"]:
        by_model.setdefault(cell["model"], []).append(cell)
    some, ends = [*by_model.items()][:MOST_MATRICES], len(matrix["classes"]) <= _MOST_ENDS
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
    maps = _maps(
        [(_map(matrix, model, cells, ends=ends), (matrix, cells)) for model, cells in some],
        len(by_model) - len(some),
    )
    return [Section(
        f"Confusion matrices{where}",
        [Para(about, "soft"), Para(colours, "soft", on="page"), *maps],
    )]  # fmt: skip


def _maps(
    charts: Sequence[tuple[HeatMap, tuple[Matrix, Sequence[Matrix]] | None]], hidden: int
) -> list[Node]:
    """Matrices side by side, the colours explained once; a text has those of some cells."""
    shown: list[Node] = []
    for place, (chart, source) in enumerate(charts, 1):
        drawing = replace(chart, ramp=place == len(charts)).drawing(caption=name(chart.caption))
        shown.append(replace(drawing, lines=None if source is None else _lines(chart, *source)))
    left = f"The first {len(charts)} classifiers are shown, {count(hidden)} are not."
    return [Group("maps", shown), *([Para(left, "soft")] if hidden else [])]


def _lines(
    chart: HeatMap, matrix: Matrix, cells: Sequence[Matrix]
) -> Callable[[int], Iterator[Node]]:
    """The matrix as text; what is mixed up most where it does not fit."""

    def lines(width: int) -> Iterator[Node]:
        notes = "".join(f" ({note})" for note in chart.notes)
        yield from [Para(""), Para(name(chart.caption) + notes)]
        for ends in (True, False):
            table = [*_map(matrix, chart.caption, cells, ends=ends).lines(width)]
            yield from table
            if table and ends:
                return
        mixed = [c for c in cells if c["label"] != c["predicted"] and c["value"]]
        for cell in sorted(mixed, key=lambda c: -c["value"])[:_MIXED_UP]:
            said = f"{cell['label']} called {cell['predicted']}: {_number(matrix, cell)}"
            yield Para(f"  {plain(said)}")

    return lines


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
    chart = HeatMap(model, ("label", "predicted"), rows, columns, cell, notes=notes)
    return replace(chart, first="label")


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


def document(report: Matrix) -> Document:
    """All that is said of `ConfusionMatrices.to_dict`."""
    foot = (
        f"{percent(report['confidence_level'])} intervals; method {plain(report['method'])}, seed "
        f"{report['seed']}, fewlabels {report['fewlabels']}"
    )
    n, labeled = report["n_items"], report["n_labeled"]
    return Document(
        "What do the classifiers mix up?",
        report,
        head=[f"{plural(n, 'item')}, {count(labeled)} labeled"],
        facts={"Items": n, "Labeled": labeled, "Classes": len(report["classes"])},
        body=matrices(report),
        foot=[foot],
    )


def disagreements(report: Mapping[str, Any]) -> Document:
    """How many there are, and the first; `report` is that of `Disagreements.to_dict`."""
    columns = report["columns"]
    total, with_label = len(columns["row"]), report["with_label"]
    answer = (
        f"{plural(total, 'disagreement')} on {plural(report['n_items'], 'item')}: "
        f"{count(with_label)} with the label ({count(report['suspect'])} labels suspect), "
        f"{count(total - with_label)} between classifiers that are {percent(report['confident'])} "
        "sure"
    )
    answers = [column for column in columns if column.startswith("y__")][:3]
    named = list(columns)[1 : list(columns).index("differ")][:1] or ["row"]
    shown = [*named, "label", *answers, "strength", "suspect"]
    rows = [
        ["-" if columns[key][place] is None else plain(columns[key][place]) for key in shown]
        for place in range(min(total, _FIRST))
    ]
    left = [Para(f"... {count(total - _FIRST)} more in the table")] if total > _FIRST else []
    table = Table([plain(key.removeprefix("y__")) for key in shown], rows, "Disagreements", "l",
                  widest=24)  # fmt: skip
    return Document(
        "Where do classifiers and labels differ?",
        report,
        head=[answer],
        facts={"Items": report["n_items"], "Labeled": report["n_labeled"], "Differ": total,
               "Labels suspect": report["suspect"]},
        body=[Section("The most telling", [table, *left])] if total else [],
    )  # fmt: skip
