"""Excel and OpenDocument workbooks, through python-calamine: one sheet of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewlabels.errors import FewlabelsError, InputError, MissingExtraError
from fewlabels.frames.cells import Cells, column_of
from fewlabels.frames.values import group_text
from fewlabels.wording import did_you_mean, listed, quoted


def open_workbook(path: Path, name: str, sheet: str | None = None) -> Cells:
    """Read a sheet of a workbook: the one that is asked for, or the only one with a table.

    Raises
    ------
    InputError
        If it cannot be read, there is no such sheet, or several sheets hold tables.
    MissingExtraError
        If python-calamine is not installed.
    """
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise MissingExtraError("python-calamine", "excel") from None
    # Broken bytes raise what they will, and its panics are no exceptions but for their base.
    try:
        with path.open("rb") as file:
            chosen, start, rows = _chosen_sheet(CalamineWorkbook.from_filelike(file), sheet)
    except (FewlabelsError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except MemoryError:
        raise InputError("does not fit into memory") from None
    except BaseException as error:
        raise InputError(
            f"cannot be read as a workbook, it is damaged or cut short ({error}); write it again"
        ) from None
    return _table(rows, start, name, chosen)


_Sheet = tuple[str, int, list[list[Any]]]
"""Name, row of the first filled cell (from 0), and the rows of cells from there on."""


def _chosen_sheet(book: Any, sheet: str | None) -> _Sheet:
    names: list[str] = book.sheet_names
    if sheet is not None:
        if sheet not in names:
            raise InputError(
                f"has no sheet {quoted(sheet)}; {did_you_mean(sheet, names)}the sheets are "
                f"{listed(map(quoted, names))}"
            )
        return _cells(book, sheet)
    filled = [found for found in (_cells(book, name) for name in names) if found[2]]
    # A note is one column, or nothing below the first row.
    tables = [s for s in filled if len(s[2]) > 1 and sum(cell != "" for cell in s[2][0]) > 1]
    if len(tables) > 1:
        raise InputError(
            f"has {len(tables)} sheets with tables ({listed(quoted(s[0]) for s in tables)}); "
            f"choose one with --sheet, in Python as FILE#{tables[0][0]}"
        )
    if not filled:
        raise InputError("has no sheet with anything in it")
    return (tables or filled)[0]


def _cells(book: Any, name: str) -> _Sheet:
    sheet = book.get_sheet_by_name(name)
    return name, sheet.start[0] if sheet.start else 0, sheet.to_python(skip_empty_area=True)


def _table(rows: Sequence[Sequence[Any]], start: int, name: str, sheet: str) -> Cells:
    if not rows:
        raise InputError(f"has nothing in the sheet {quoted(sheet)}")
    header = [(group_text(cell) or "").strip() for cell in rows[0]]
    # Rows and columns that were emptied or formatted are part of a sheet without holding anything.
    kept = [i for i in range(1, len(rows)) if any(cell != "" for cell in rows[i])]
    width = len(header)
    while width and not header[width - 1] and all(rows[i][width - 1] == "" for i in kept):
        width -= 1
    columns = tuple(
        (header[k], column_of([None if rows[i][k] == "" else rows[i][k] for i in kept]))
        for k in range(width)
    )
    return Cells(
        name, columns, len(kept), lambda row: f"row {start + kept[row] + 1} of the sheet {sheet!r}"
    )
