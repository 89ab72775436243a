"""What a source is: which files, of which kind. Decided by content, not by the file's name."""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewlabels.errors import InputError, UsageError
from fewlabels.frames.compression import ENDINGS
from fewlabels.frames.content import file_kind
from fewlabels.frames.standard_input import (
    DASH,
    FORMATS,
    NAME,
    is_standard_input,
    standard_input,
)
from fewlabels.frames.wording import told_of
from fewlabels.wording import did_you_mean, listed, one_line, quoted

SUFFIXES = (
    *(f"{table}{ending}" for table in (".csv", ".tsv") for ending in ("", *ENDINGS)),
    *(".parquet", ".pq", ".npz"),
)
"""Endings of the files that are read of a folder."""

FURTHER_SUFFIXES = (
    *(f"{rows}{ending}" for rows in (".jsonl", ".ndjson") for ending in ("", *ENDINGS)),
    *(".json", ".feather", ".arrow", ".xlsx", ".xls", ".ods"),
)
"""Endings of those that are read where there are none of the others: notes may lie beside them."""

_URL = re.compile(r"(?:https?|ftp|s3|s3a|gs|gcs|hf|abfss?|az|hdfs)://")
_MOST_NEIGHBOURS = 10_000


@dataclass(frozen=True)
class Located:
    """Files of one kind in order of their names, and what to call them.

    `sheet` is the one of a workbook that was asked for.
    """

    kind: str
    files: tuple[Path, ...]
    name: str
    sheet: str | None = None


def locate(source: Any) -> Located | None:
    """Find the files of a path; None if the source is no path.

    `-` is standard input. Behind a `#` stands what a path alone does not say: the sheet of a
    workbook (`book.xlsx#Sheet 2`), or the format of standard input (`-#tsv`).

    Raises
    ------
    InputError
        If there is nothing to read, it may not be read, or it is of no kind that is read here.
    UsageError
        If the path is empty.
    """
    if not isinstance(source, (str, Path)):
        return None
    if not str(source):
        raise UsageError("the path of the file is empty")
    name = str(source)
    if isinstance(source, str) and is_standard_input(source):
        with told_of(NAME):
            return _standard_input(source)
    with told_of(name):
        if isinstance(source, str) and _URL.match(source):
            raise InputError("is a URL, and files are read from disk; download it first")
        path = Path(source)
        try:
            if path.is_dir():
                return _folder(path, name)
            if not path.exists():
                return _sheet(name)
            if not path.is_file():
                raise InputError("is not a regular file; save it as a file first")
            return Located(file_kind(path), (path,), name)
        except (OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(_reason(error)) from None


def path_of(source: str) -> str:
    """The path alone, without the sheet behind it.

    Examples
    --------
    >>> path_of("book.xlsx#Sheet 2"), path_of("file.csv")
    ('book.xlsx', 'file.csv')
    """
    path, mark, _ = source.rpartition("#")
    return path if mark and not os.path.exists(source) else source


def _standard_input(source: str) -> Located:
    said = source.removeprefix(DASH).removeprefix("#") or None
    format_name = said if said in FORMATS else None
    path = standard_input(format_name)
    kind = file_kind(path)
    sheet = None if format_name is not None else said
    if sheet is not None and kind != "Excel":
        raise InputError(f"is {kind}, which has no sheet {quoted(sheet)}; leave it out")
    if format_name is not None and FORMATS[format_name] != kind:
        raise InputError(f"is {kind}, and --format says {format_name}; leave it out")
    return Located(kind, (path,), NAME, sheet)


def _sheet(name: str) -> Located:
    """The sheet of a workbook, where that is what a path that does not exist means."""
    base, mark, sheet = name.rpartition("#")
    path = Path(base)
    if not mark or not path.is_file():
        raise InputError(_no_such_file(Path(base if mark else name)))
    kind = file_kind(path)
    if kind != "Excel":
        raise InputError(f"no such file; {path.name} is {kind}, which has no sheets")
    return Located(kind, (path,), name, sheet)


def _no_such_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"no such file; there is no folder {quoted(str(folder))}"
    with os.scandir(folder) as entries:
        names = [entry.name for entry in itertools.islice(entries, _MOST_NEIGHBOURS)]
    near = did_you_mean(path.name, names) or _by_stem(path, names)
    return f"no such file; {near}".rstrip("; ")


def _by_stem(path: Path, names: list[str]) -> str:
    """The same name with another ending, as a question."""
    stems = {name.partition(".")[0].lower(): name for name in names}
    near = stems.get(path.name.partition(".")[0].lower())
    return f"did you mean {quoted(near)}?" if near else ""


def folder_files(folder: Path) -> list[Path]:
    """The files of a folder that are read, in order of their names.

    Raises
    ------
    InputError
        If there are none, or one is there twice: as it is, and compressed.
    """
    files = sorted(
        file
        for file in folder.iterdir()
        if file.name.lower().endswith((*SUFFIXES, *FURTHER_SUFFIXES))
        and not file.name.startswith((".", "_"))
        and file.is_file()
    )
    first = [file for file in files if file.name.lower().endswith(SUFFIXES)]
    found = first or files
    names = {file.name for file in found}
    for name in names:
        twice = [f"{name}{ending}" for ending in ENDINGS if f"{name}{ending}" in names]
        if twice:
            raise InputError(f"holds {name} and {twice[0]}, which are the same rows; remove one")
    if not found:
        raise InputError(
            "is a folder without files to read; it needs .csv, .tsv, .parquet, .npz, .jsonl, "
            ".json, .feather, .xlsx or .ods"
        )
    return found


def _folder(path: Path, name: str) -> Located:
    files = folder_files(path)
    kinds: dict[str, str] = {}
    for file in files:
        with told_of(one_line(file.name)):
            kinds.setdefault(file_kind(file), file.name)
    if len(kinds) > 1:
        shown = [f"{file} is {kind}" for kind, file in kinds.items()]
        raise InputError(
            f"holds files of several kinds ({listed(shown)}); name one file, or sort them"
        )
    return Located(next(iter(kinds)), tuple(files), name)


def _reason(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "may not be read (permission denied); change its permissions"
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"
