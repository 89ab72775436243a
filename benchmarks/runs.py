"""How scripts are asked, keep the rows of their runs, and pivot them into the tables of pages."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import fewlabels
from curves_parts import ROOT, plain, table
from score_lists import spread

Row = dict[str, Any]


def parser(description: str | None, *, data: bool = False) -> argparse.ArgumentParser:
    """A command line that is described by the head of its script; `data` adds the folder."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if data:
        default = os.environ.get("FEWLABELS_DATA", ROOT.parent / "shared" / "data")
        parser.add_argument("--data", type=Path, default=Path(default))
    return parser


def split(text: str) -> list[str]:
    """What commas separate."""
    return [part.strip() for part in text.split(",") if part.strip()]


def kept_rows(file: Path) -> list[Row]:
    """The rows that a file keeps; none where there is no file."""
    return json.loads(file.read_text(encoding="utf-8"))["rows"] if file.exists() else []


def keep_rows(file: Path, rows: Sequence[Row], **facts: Any) -> None:
    """Write rows with the version and further facts, a line for each row; all or nothing."""
    head = json.dumps({"version": fewlabels.__version__, **facts})[:-1]
    lines = ",\n  ".join(json.dumps(row, separators=(",", ":")) for row in rows)
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_text(f'{head}, "rows": [\n  {lines}\n]}}\n', encoding="utf-8")
    unfinished.replace(file)


def joined(rows: Sequence[Row], order: Mapping[str, Sequence[Any] | None]) -> list[Row]:
    """The last row of every place, sorted by its columns: as listed, or (None) as they come."""
    frame = pd.DataFrame({name: [row[name] for row in rows] for name in order})
    for name, listed in order.items():
        ranks = frame[name].drop_duplicates() if listed is None else listed
        frame[name] = frame[name].map({value: k for k, value in enumerate(ranks)})
    places = frame.drop_duplicates(keep="last").sort_values(list(order))
    return [rows[k] for k in places.index]


def across(
    cells: pd.DataFrame, index: Sequence[str], columns: str, values: str = "text", empty: str = ""
) -> pd.DataFrame:
    """One row per `index` and one column per value of `columns`, in the order they come in."""
    rows, names = cells[[*index]].drop_duplicates(), cells[columns].drop_duplicates()
    wide = cells.set_index([*index, columns])[values].unstack(columns)
    return wide.reindex(index=rows.set_index([*index]).index, columns=list(names)).fillna(empty)


def markdown(wide: pd.DataFrame, head: Sequence[str]) -> str:
    """A pivoted table as Markdown; `head` names the columns of its index."""
    return table(
        [*head, *wide.columns], (row.values() for row in wide.reset_index().to_dict("records"))
    )


def between(page: str, marks: tuple[str, str], text: str) -> str:
    """The page with a text between two marks."""
    before, _, rest = page.partition(marks[0])
    return f"{before}{marks[0]}\n\n{text}\n\n{marks[1]}{rest.partition(marks[1])[2]}"


def read_lines(file: Path) -> list[Row]:
    """The cells that a file of JSON lines keeps; a line that a stop cut short is none."""
    rows = []
    for line in file.read_bytes().splitlines() if file.exists() else []:
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    return rows


def run_missing(
    file: Path, run: Callable[[Row], Row], cells: Iterable[Row], workers: int, what: str = "cells"
) -> list[Row]:
    """Run the cells that a file lacks, each kept as a line as it ends; all that the file keeps.

    A line has the names and values of its cell, and what `run` found.
    """
    there, cells = read_lines(file), list(cells)
    done = {tuple(map(line.get, cells[0])) for line in there} if cells else set()
    missing = [cell for cell in cells if tuple(cell.values()) not in done]
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists() and missing and not file.read_bytes().endswith(b"\n"):
        file.write_text("".join(json.dumps(line) + "\n" for line in there), encoding="utf-8")
    found = map(run, missing) if workers == 1 else spread(run, missing, workers, what)
    for cell, result in zip(missing, found if missing else (), strict=True):
        there.append(cell | result)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(plain(there[-1])) + "\n")
    return there
