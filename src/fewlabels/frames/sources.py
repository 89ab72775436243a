"""Sources of every kind: what `locate` found, opened, and a folder of tables as one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fewlabels.errors import InputError
from fewlabels.frames.delimited import open_delimited
from fewlabels.frames.feather import open_feather
from fewlabels.frames.json_rows import open_json
from fewlabels.frames.locate import Located
from fewlabels.frames.native import open_frame
from fewlabels.frames.parquet import open_parquet
from fewlabels.frames.table import Source, Table, concatenate
from fewlabels.frames.wording import told_of
from fewlabels.frames.workbook import open_workbook
from fewlabels.wording import listed, one_line, quoted

_OPENERS: Mapping[str, Callable[[Path, str], Source]] = {
    "CSV": open_delimited,
    "Parquet": open_parquet,
    "JSON": open_json,
    "Feather": open_feather,
    "Excel": open_workbook,
}


def open_source(source: Any, located: Located | None, argument: str = "source") -> Source:
    """Open what `locate` found (anything but NPZ), or the frame that the argument holds."""
    if located is None:
        return open_frame(source, argument)
    opener = _OPENERS[located.kind]
    if located.sheet is not None:
        opener = partial(open_workbook, sheet=located.sheet)
    parts: list[Source] = []
    for file in located.files:
        with told_of(one_line(file.name) if len(located.files) > 1 else None):
            parts.append(opener(file, one_line(file.name)))
    return parts[0] if len(parts) == 1 else FolderOfTables(located.name, tuple(parts))


@dataclass(frozen=True)
class FolderOfTables:
    """Several files with the same columns, in any order, as one."""

    name: str
    parts: tuple[Source, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the first file, which every other must have too."""
        first = self.parts[0]
        for part in self.parts[1:]:
            odd = sorted(set(first.names) ^ set(part.names))
            if odd:
                raise InputError(
                    f"{first.name} and {part.name} differ in the columns "
                    f"{listed(map(quoted, odd))}; make them agree"
                )
        return first.names

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns of every file."""
        tables = []
        for part in self.parts:
            with told_of(part.name):
                tables.append(part.read(numbers, texts))
        return concatenate(tables, [part.name for part in self.parts])
