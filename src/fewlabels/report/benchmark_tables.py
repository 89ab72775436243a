"""The tables of a benchmark as grids of text, which Markdown, HTML and the terminal lay out."""

from __future__ import annotations

import itertools
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fewlabels.report import benchmark_words as bw
from fewlabels.report.words import count

Table = Mapping[str, Any]

_CURVE_SIZES = (10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000)


@dataclass(frozen=True)
class GridCell:
    """A number, what follows it in a softer voice, and the marks on it."""

    text: str
    spread: str = ""
    strong: bool = False
    mark: str = ""

    @property
    def whole(self) -> str:
        """Number and spread."""
        return f"{self.text} {self.spread}" if self.spread else self.text


@dataclass(frozen=True)
class GridRow:
    """A method, or another thing that has a row."""

    name: str
    cells: tuple[GridCell, ...]
    floor: bool = False


@dataclass(frozen=True)
class Grid:
    """A table: groups of columns (heading, number of columns), their headings, and the rows.

    `flat` are headings that say it all where there is no row of groups above them; `notes` are
    footnotes as (mark, text); `folded` grids are of second rank.
    """

    title: str
    caption: str
    corner: str
    groups: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    flat: tuple[str, ...]
    rows: tuple[GridRow, ...]
    notes: tuple[tuple[str, str], ...] = ()
    folded: bool = False


@dataclass(frozen=True)
class _Part:
    """Columns of a grid that show the same thing of each cell."""

    heading: str
    short: str
    write: Callable[[bw.Cell], tuple[str, str]]
    strong: bool = False
    footnote: Callable[[bw.Cell, str], str] = lambda cell, method: ""


def grids(table: Table, summary: bw.Summary) -> list[Grid]:
    """The grids of one table of the summary."""
    if table["kind"] == "pairs":
        return [_pairs(table)]
    unit = bw.error_unit(summary, table["metric"])
    made = [_grid(table, _parts(table, unit))]
    if table["kind"] == "methods":
        points = ", points" if unit == "points" else ""
        bias = _Part(
            f"Bias{points}{_over(table)}", "bias", lambda c: (bw.signed_text(c["bias"], unit), "")
        )
        title = f"{bw.place(table)}: bias (mean signed error)"
        made.append(replace(_grid(table, [bias]), title=title, folded=True))
    if table.get("curve"):
        made.append(_curve(table, unit))
    return made


def glance(summary: bw.Summary) -> Grid:
    """Each method over all comparisons."""
    columns = ("least error", "RMAE", "values", "time per run")
    most = max((entry["n_ratios"] for entry in summary["glance"]), default=0)
    marks = _Marks()
    rows = [
        GridRow(
            bw.method_name(entry["method"]),
            (
                GridCell(bw.NOTHING if entry["floor"] else count(entry["n_best"])),
                GridCell(bw.ratio_text(entry["rmae"]), mark=marks.of(_fewer(entry, most))),
                GridCell(f"{count(entry['n_known'])} of {count(entry['n_columns'])}"),
                GridCell(bw.seconds_text(entry["seconds"])),
            ),
            entry["floor"],
        )
        for entry in summary["glance"]
    ]
    caption = (
        "Over all comparisons (columns of the tables): in how many of "
        f"{count(summary['glance'][0]['n_contested'])} a method has the least error or one within "
        "a standard error of it (those in which only one method has a value are left out), its "
        "geometric mean RMAE, in how many it has a value, and the time of fit and metrics."
    )
    return Grid("", caption, "method", (), columns, columns, tuple(rows), marks.notes)


def _fewer(entry: Mapping[str, Any], most: int) -> str:
    """Said of a mean ratio over fewer comparisons than others have: it is of another mixture."""
    if not 0 < entry["n_ratios"] < most:
        return ""
    return (
        f"mean over {count(entry['n_ratios'])} of {count(most)} comparisons only: not to be "
        "compared with rows that have all"
    )


def _parts(table: Table, unit: str) -> list[_Part]:
    kind, over = table["kind"], _over(table)
    points = ", points" if unit == "points" else ""
    error = _Part(f"Error{points}{over}", "", _writes_error(unit), strong=True, footnote=_missing)
    if kind in ("overview", "group-ratios"):

        def mean_ratio(cell: bw.Cell) -> tuple[str, str]:
            spread = "" if cell["sd"] is None else f"± {bw.ratio_text(cell['sd'])}"
            return bw.ratio_text(cell["mean"]), spread

        return [_Part(f"Mean RMAE{over}", "", mean_ratio, strong=True, footnote=_missing)]
    if kind == "associations":
        return [_Part("", "", lambda c: (bw.correlation_text(c["mean"]), ""), footnote=_missing)]
    if kind == "intervals":
        return [
            _Part(f"Coverage{over}", "coverage", _writes_coverage),
            _Part(
                f"Mean width{points}{over}",
                "width",
                lambda c: (bw.error_text(c["width"], unit), ""),
            ),
        ]
    if kind == "effective-sizes":
        heading = f"ESS (sizes within a standard error){over}"
        return [_Part(heading, "ESS", _writes_size_range, footnote=_own_size)]
    if kind != "methods":
        return [error]
    cells = [c for row in table["rows"] for c in row["cells"] if c]
    wanted = [
        error,
        _Part(f"RMAE{over}", "RMAE", _writes_ratio),
        _Part(f"ESS{over}", "ESS", lambda c: (bw.size_text(c), ""), footnote=_own_size),
    ]
    known = (True, any(c["rmae"] is not None for c in cells), any(c["ess"] for c in cells))
    return list(itertools.compress(wanted, known))


def _grid(table: Table, parts: Sequence[_Part]) -> Grid:
    headings = [_heading(column, table) for column in table["columns"]]
    full = [_full_heading(column, table) for column in table["columns"]]
    marks = _Marks()
    rows = [
        GridRow(
            bw.method_name(row["method"]),
            tuple(
                _cell(cell, row["method"], part, marks) for part in parts for cell in row["cells"]
            ),
            row["floor"],
        )
        for row in table["rows"]
    ]
    return Grid(
        bw.place(table),
        _caption(table),
        "method",
        tuple((part.heading, len(headings)) for part in parts if part.heading),
        tuple(h for _ in parts for h in headings),
        tuple(f"{part.short} {h}".strip() for part in parts for h in full),
        tuple(rows),
        marks.notes,
    )


class _Marks:
    """Footnotes of a table, each text once."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}

    def of(self, text: str) -> str:
        """The mark of a footnote, "" for an empty one."""
        if text and text not in self._marks:
            place = len(self._marks)
            letters = string.ascii_lowercase
            rounds, letter = divmod(place, len(letters))
            self._marks[text] = letters[letter] + (str(rounds + 1) if rounds else "")
        return self._marks.get(text, "")

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        return tuple((mark, text) for text, mark in self._marks.items())


def _missing(cell: bw.Cell, method: str) -> str:
    return bw.footnote(cell)


def _own_size(cell: bw.Cell, method: str) -> str:
    """ESS of the labels alone, read from their own curve, would be n_l and noise."""
    if method != "labeled" or cell.get("ess") is None:
        return ""
    return "labeled is what the others are measured by: its ESS is its own number of labels"


def _cell(cell: bw.Cell | None, method: str, part: _Part, marks: _Marks) -> GridCell:
    if cell is None:
        return GridCell(bw.NOTHING, mark=marks.of("no value: the method was not run here"))
    text, spread = part.write(cell)
    mark = marks.of(part.footnote(cell, method))
    return GridCell(text, spread, part.strong and bool(cell.get("best")), mark)


def _heading(column: Mapping[str, Any], table: Table) -> str:
    value = column["value"]
    match column["what"]:
        case "n_labeled":
            return count(value)
        case "trait":
            return bw.trait_name(value)
        case "mean" if table["kind"] == "groups":
            return "mean of groups"
        case "difference":
            return f"{table['columns'][1]['value']} - {table['columns'][0]['value']}"
        case _:
            return str(value)


def _full_heading(column: Mapping[str, Any], table: Table) -> str:
    text = _heading(column, table)
    match column["what"]:
        case "n_labeled":
            return f"n_l = {text}"
        case "level":
            return bw.level_name(table["factor"], text)
        case _:
            return text


def _over(table: Table) -> str:
    """What the heads of the columns are values of, behind the head of their group."""
    first = table["columns"][0]["what"]
    name = bw.varied(table["factor"]) if first == "level" else {"n_labeled": "n_l ="}.get(first, "")
    return f", {name}" if name else ""


def _caption(table: Table) -> str:
    said = []
    if table["kind"] == "levels" and table["factor"] == "sharpness":
        said.append(
            "The scores p of two classes become p^a / (p^a + (1 - p)^a), of more p^a / sum p^a: "
            "a = 1 leaves them as they are, a larger a makes them surer."
        )
    if table["kind"] == "levels" and table["columns"][-1]["what"] == "difference":
        said.append("The difference is paired by run; ± its standard error.")
    if said:
        return " ".join(said)
    if table["kind"] == "groups":
        return "The mean weighs all groups alike."
    if table["kind"] == "associations":
        return "Spearman's coefficient; positive where the error grows with the trait."
    return ""


def _writes_error(unit: str) -> Callable[[bw.Cell], tuple[str, str]]:
    def write(cell: bw.Cell) -> tuple[str, str]:
        if cell["mean"] is None:
            return bw.NOTHING, ""
        if cell.get("signed"):
            # A difference of levels, where ± is the standard error of a paired mean.
            spread = cell["se"]
            text = bw.signed_text(cell["mean"], unit)
        else:
            spread, text = cell["sd"], bw.error_text(cell["mean"], unit)
        return text, "" if spread is None else f"± {bw.error_text(spread, unit)}"

    return write


def _writes_ratio(cell: bw.Cell) -> tuple[str, str]:
    if cell["rmae"] is None or cell["rmae_low"] is None or cell["rmae_low"] == cell["rmae_high"]:
        return bw.ratio_text(cell["rmae"]), ""
    return (
        bw.ratio_text(cell["rmae"]),
        f"[{bw.ratio_text(cell['rmae_low'])}, {bw.ratio_text(cell['rmae_high'])}]",
    )


def _writes_coverage(cell: bw.Cell) -> tuple[str, str]:
    if cell["coverage"] is None:
        return bw.NOTHING, ""
    error = cell["coverage_se"]
    spread = "" if error is None else f"± {100 * error:.1f}%"
    return f"{100 * cell['coverage']:.1f}%", spread


def _writes_size_range(cell: bw.Cell) -> tuple[str, str]:
    if cell["ess"] is None or cell["ess_low"] is None or cell["ess_low"] == cell["ess_high"]:
        return bw.size_text(cell), ""
    return bw.size_text(cell), f"({count(cell['ess_low'])} to {count(cell['ess_high'])})"


def _curve(table: Table, unit: str) -> Grid:
    """The curve at round sizes; its figure shows all of it."""
    points = {p["x"]: p for p in table["curve"] if p["y"] is not None}
    chosen = [points[n] for n in _CURVE_SIZES if n in points] or list(points.values())[:13]
    errors = [
        (bw.error_text(p["y"], unit), "" if p["se"] is None else bw.error_text(p["se"], unit))
        for p in chosen
    ]
    cells = [GridCell(text, f"± {spread}" if spread else "") for text, spread in errors]
    sizes = tuple(count(p["x"]) for p in chosen)
    points_in = ", points" if unit == "points" else ""
    return Grid(
        f"{bw.place(table, sizes=False)}: the curve",
        "Mean error of the labels alone ± its standard error, by the number of labels.",
        "",
        ((f"Error{points_in}, n_l =", len(sizes)),),
        sizes,
        tuple(f"n_l = {n}" for n in sizes),
        (GridRow("labeled", tuple(cells)),),
        folded=True,
    )


def _pairs(table: Table) -> Grid:
    values = table["values"]
    rows = [
        GridRow(str(model), tuple(GridCell(bw.ratio_text(v)) for v in row))
        for model, row in zip(table["models"], values, strict=True)
    ]
    names = tuple(str(m) for m in table["models"])
    return Grid(
        f"{table['dataset']}, {bw.trait_name(table['trait'])}", "", "classifier", (), names, names,
        tuple(rows),
    )  # fmt: skip


def sections(summary: bw.Summary) -> Iterator[tuple[str, list[tuple[Table, list[Grid]]]]]:
    """Tables of a kind together: the title, and each table with its grids."""
    for (_, title), part in itertools.groupby(
        summary["tables"], key=lambda t: (t["kind"], bw.kind_title(bw.KINDS, t))
    ):
        yield title, [(table, grids(table, summary)) for table in part]
