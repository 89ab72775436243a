"""How scripts are asked, keep the rows of their runs, and pivot them into the tables of pages."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import fewlabels
from curves_parts import ROOT, table

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
