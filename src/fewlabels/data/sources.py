"""What a source is: which files, of which kind, decided by content; and those files opened.

Standard input is kept as a file on disk, as it may be read more than once.
"""

from __future__ import annotations

import atexit
import itertools
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fewlabels.data.binary import open_feather, open_parquet
from fewlabels.data.cells import open_json, open_workbook
from fewlabels.data.content import ENDINGS, file_kind
from fewlabels.data.delimited import NO_HEADER, open_delimited
from fewlabels.data.label_record import ENDING
from fewlabels.data.limits import refuse_wide
from fewlabels.data.logs import (
    LogOptions,
    check_format,
    criteria_of,
    open_log,
    recognised,
    record_of,
)
from fewlabels.data.native import open_frame
from fewlabels.data.table import Source, Table, concatenate, naming_file
from fewlabels.errors import InputError, UsageError, did_you_mean, listed, one_line, quoted, unknown

DASH = "-"
"""What stands for standard input where a path is asked for."""

NAME = "standard input"

FORMATS = {
    "csv": "CSV", "tsv": "CSV", "jsonl": "JSON", "json": "JSON", "parquet": "Parquet",
    "feather": "Feather", "npz": "NPZ", "excel": "Excel",
}  # fmt: skip
"""What may be said of it -> the kind of the file."""


class _Kept:
    """What was read of standard input last, and from which stream."""

    stream: Any = None
    path: Path | None = None


def is_standard_input(source: str) -> bool:
    """Whether a path stands for standard input: `-`, or with more behind it, as `-#tsv`."""
    return source == DASH or source.startswith(f"{DASH}#")


def standard_input(format_name: str | None = None) -> Path:
    """A file with all of standard input, which can be read only once.

    `format_name` is one of `FORMATS`, if the content does not tell.
    """
    if format_name is not None and format_name not in FORMATS:
        raise UsageError(unknown("format", format_name, FORMATS))
    stream = getattr(sys.stdin, "buffer", None)
    if _Kept.path is None or stream is not _Kept.stream:
        if stream is None or stream.closed or sys.stdin.isatty():
            raise InputError("has nothing to read; send a file: fewlabels ... - < FILE")
        folder = tempfile.mkdtemp(prefix="fewlabels-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path = Path(folder) / "standard-input"
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file, 1 << 20)
        _Kept.path, _Kept.stream = path, stream
    # The ending tells a tab for a delimiter, and what the content must be.
    ending = "" if format_name in (None, "excel") else f".{format_name}"
    _Kept.path = _Kept.path.rename(_Kept.path.with_suffix(ending))
    return _Kept.path


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

_PACKED = (*ENDINGS, ".xz", ".lz4", ".zip", ".br", ".7z")
"""Endings of compressed files; parts that end so are read, or refused, and never passed over."""

_URL = re.compile(r"(?:https?|ftp|s3|s3a|gs|gcs|hf|abfss?|az|hdfs)://")
_MOST_NEIGHBOURS = 10_000

_LOGGED, _MOST_LOGS = (".eval", ".json", ".jsonl"), 1_000
"""Endings of logs in a folder, and how many of them are read at most."""


LOG = "log"
"""The kind of what a tool has logged."""


@dataclass(frozen=True)
class Located:
    """Files of one kind in order of their names, and what to call them.

    `fragment` is what stands behind the `#` of the path: the sheet of a workbook, the options of a
    log (`logs.LogOptions`), or that a table has no header (`NO_HEADER`). `form` is the format of a
    log, whose `kind` is `LOG` whatever its files are. `notes` say what of a folder is not read.
    """

    kind: str
    files: tuple[Path, ...]
    name: str
    fragment: str | None = None
    notes: tuple[str, ...] = ()
    form: str | None = None

    @classmethod
    def of_file(cls, path: Path, name: str, fragment: str | None = None) -> Located:
        """One file: a table, or the log of a tool, told by its content or by what is said."""
        kind = file_kind(path)
        if fragment == NO_HEADER and kind == "CSV":
            return cls(kind, (path,), name, fragment)
        plain = fragment is None or kind == "Excel"
        options = LogOptions() if plain else LogOptions.parse(fragment)
        form = recognised(path, kind)
        if options.form is not None:
            form = check_format(options.form, path, kind)
        if form is not None:
            return cls(LOG, (path,), name, fragment, form=form)
        if fragment is not None and kind != "Excel":
            raise InputError(
                f"is {kind}, which has no sheet {quoted(fragment)}, and no log of a tool; leave it "
                "out"
            )
        return cls(kind, (path,), name, fragment)


@dataclass(frozen=True)
class BadFile:
    """A file that was left out, and why."""

    name: str
    reason: str


def nothing_read(skipped: Sequence[BadFile], *, alone: bool) -> str:
    """What is said where no file is left; `alone` where the path is that of a file."""
    if not skipped:
        return "is a folder without files to read"
    first = skipped[0]
    if alone and len(skipped) == 1:
        return first.reason
    return f"none of its {len(skipped):,} files can be read; {first.name}: {first.reason}"


def locate(source: Any, skipped: list[BadFile] | None = None) -> Located | None:
    """Find the files of a path; None if the source is no path.

    `-` is standard input. Text after `#` adds what a path does not say: the sheet of a workbook
    (`book.xlsx#Sheet 2`), the criterion of a log (`run.eval#helpful`), or the format of standard
    input (`-#tsv`). Files of a folder that are no tables, or of another kind than the first, go to
    `skipped`; if it is None, the folder is refused.
    """
    if not isinstance(source, (str, Path)):
        return None
    if not str(source):
        raise UsageError("the path of the file is empty")
    name = str(source)
    if isinstance(source, str) and is_standard_input(source):
        with naming_file(NAME):
            fragment = source.removeprefix(DASH).removeprefix("#") or None
            format_name = fragment if fragment in FORMATS else None
            path = standard_input(format_name)
            if format_name is not None:
                kind = file_kind(path)
                if FORMATS[format_name] != kind:
                    raise InputError(f"is {kind}, and --format says {format_name}; leave it out")
                return Located(kind, (path,), NAME)
            return Located.of_file(path, NAME, fragment)
    with naming_file(name):
        if isinstance(source, str) and _URL.match(source):
            raise InputError("is a URL, and files are read from disk; download it first")
        path = Path(source)
        try:
            if path.is_dir():
                return _folder(path, name, skipped)
            if not path.exists():
                return _behind_a_mark(name)
            if not path.is_file():
                raise InputError("is not a regular file; save it as a file first")
            return Located.of_file(path, name)
        except (OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            if isinstance(error, PermissionError):
                mend = "may not be read (permission denied); change its permissions"
                raise InputError(mend) from None
            raise InputError(
                f"cannot be read: {getattr(error, 'strerror', None) or error}"
            ) from None


def path_of(source: str) -> str:
    """The path alone, without what stands behind its `#`.

    Examples
    --------
    >>> path_of("book.xlsx#Sheet 2"), path_of("file.csv")
    ('book.xlsx', 'file.csv')
    """
    return source if os.path.exists(source) else _divided(source)[0]


def _divided(name: str) -> tuple[str, str | None]:
    """The path and what stands behind its `#`, which may hold more of them, as names may."""
    parts = name.split("#")
    ends = range(1, len(parts))
    end = next((k for k in ends if os.path.exists("#".join(parts[:k]))), 1)
    return "#".join(parts[:end]), "#".join(parts[end:]) if len(parts) > end else None


def _behind_a_mark(name: str) -> Located:
    """The file of a path that does not exist as it stands: more is said behind its `#`."""
    base, fragment = _divided(name)
    path = Path(base)
    if fragment is None or not path.exists():
        folder = path.parent
        if not folder.is_dir():
            raise InputError(f"no such file; there is no folder {quoted(str(folder))}")
        with os.scandir(folder) as entries:
            names = [entry.name for entry in itertools.islice(entries, _MOST_NEIGHBOURS)]
        near = did_you_mean(path.name, names)
        if not near:  # the same name with another ending
            stems = {name.partition(".")[0].lower(): name for name in names}
            same = stems.get(path.name.partition(".")[0].lower())
            near = f"did you mean {quoted(same)}?" if same else ""
        raise InputError(f"no such file; {near}".rstrip("; "))
    if path.is_dir():
        found = _folder(path, name, None)
        if found.form is None and not (fragment == NO_HEADER and found.kind == "CSV"):
            mend = quoted(f"#{fragment}")
            raise InputError(f"is a folder of tables and no log; leave out {mend}")
        return replace(found, fragment=fragment)
    return Located.of_file(path, name, fragment)


def is_part(name: str) -> bool:
    """Whether a file of a folder is a part by its name, be it one that cannot be read.

    Examples
    --------
    >>> [is_part(name) for name in ("a.csv", "a.parquet.zst", "part-0.bz2", "notes.txt.gz")]
    [True, True, True, False]
    """
    name = name.lower()
    stem = next((name.removesuffix(end) for end in _PACKED if name.endswith(end)), None)
    return name.endswith((*SUFFIXES, *FURTHER_SUFFIXES)) or (
        stem is not None and (stem.endswith((*SUFFIXES, *FURTHER_SUFFIXES)) or "." not in stem)
    )


def _folder_files(folder: Path) -> tuple[list[Path], tuple[str, ...]]:
    """What there is to read of a folder, in order of the names, and a note on what is left."""
    parts = sorted(
        file
        for file in folder.iterdir()
        if (is_part(file.name) or (file.is_dir() and "=" in file.name))
        and not file.name.startswith((".", "_"))
        and not file.name.endswith(ENDING)  # a record of labels beside the data
    )
    further = [file for file in parts if _ends(file, FURTHER_SUFFIXES)]
    chosen = [file for file in parts if file not in further] or further
    names = {file.name for file in chosen}
    for name in sorted(names):
        twice = [f"{name}{ending}" for ending in _PACKED if f"{name}{ending}" in names]
        if twice:
            raise InputError(f"holds {name} and {twice[0]}, which are the same rows; remove one")
    if not chosen:
        raise InputError(
            "is a folder without files to read; it needs .csv, .tsv, .parquet, .npz, .jsonl, "
            ".json, .feather, .xlsx or .ods"
        )
    left = [f.name for f in further if f not in chosen and not _ends(f, (".json",))]
    note = f"files of other kinds in the folder are not read: {listed(left)}"
    return chosen, (note,) * bool(left)


def _ends(file: Path, suffixes: tuple[str, ...]) -> bool:
    """Whether a file ends so, compressed or not."""
    name = file.name.lower()
    return name.endswith((*suffixes, *(s + end for s in suffixes for end in _PACKED)))


def _check_file(file: Path) -> None:
    """Refuse what in a folder is no file: opening a pipe would wait for somebody to write."""
    if file.is_file():
        return
    if file.is_symlink() and not file.exists():
        target = quoted(os.readlink(file), 200)
        raise InputError(f"is a link to {target}, which does not exist; mend or remove the link")
    if file.is_dir():
        raise InputError("is a folder within the folder; name the folder that holds all the files")
    raise InputError("is not a regular file; save it as a file first")


def _folder(path: Path, name: str, skipped: list[BadFile] | None) -> Located:
    logged = _folder_of_logs(path, name)
    if logged is not None:
        return logged
    kinds: dict[str, str] = {}
    files: list[Path] = []
    parts, notes = _folder_files(path)
    for file in parts:
        shown = one_line(file.name)
        try:
            with naming_file(shown if skipped is None else None):
                _check_file(file)
                kind = file_kind(file)
            first = next(iter(kinds), kind)
            if skipped is not None and kind != first:
                raise InputError(f"is {kind}, and {kinds[first]} is {first}")
        except (InputError, OSError) as error:
            if skipped is None:
                raise
            skipped.append(BadFile(shown, one_line(str(error))))
        else:
            kinds.setdefault(kind, file.name)
            files.append(file)
    if not files:
        raise InputError(nothing_read(skipped or (), alone=False))
    if len(kinds) > 1:
        shown_kinds = [f"{file} is {kind}" for kind, file in kinds.items()]
        raise InputError(
            f"holds files of several kinds ({listed(shown_kinds)}); name one file, or sort them"
        )
    return Located(next(iter(kinds)), tuple(files), name, notes=notes)


def _folder_of_logs(path: Path, name: str) -> Located | None:
    """The logs of one tool in a folder (of lm-evaluation-harness: a folder per model), if any."""
    below = sorted(path.glob("*/samples_*.jsonl"))
    there = [f for f in below or sorted(path.iterdir()) if f.suffix in _LOGGED and f.is_file()]
    forms: dict[Path, str] = {}
    for file in there[:_MOST_LOGS]:
        with suppress(InputError), naming_file(one_line(file.name)):
            form = recognised(file, file_kind(file))
            if form is not None:
                forms[file] = form
    if not forms:
        return None
    form = next(iter(forms.values()))
    odd = next((file for file in forms if forms[file] != form), None)
    if odd is not None:
        first = next(iter(forms))
        raise InputError(
            f"holds logs of several tools ({first.name}: {form}, {odd.name}: {forms[odd]}); name "
            "one file, or sort them"
        )
    if len(there) > _MOST_LOGS:
        raise InputError(f"holds more than {_MOST_LOGS:,} logs; name one of them")
    left = [file.name for file in there if file not in forms]
    note = f"files in the folder that are no logs of {form} are not read: {listed(left, 3)}"
    return Located(LOG, tuple(forms), name, notes=(note,) * bool(left), form=form)


def by_criterion(source: Any) -> list[tuple[str | None, Any]]:
    """The criteria of a log that people labeled and judges judged, each with the path of it alone.

    A table, and a log of whose criteria one is meant, is one without a name.
    """
    located = locate(source)
    options = LogOptions() if located is None else LogOptions.parse(located.fragment)
    if located is None or located.form is None or options.criteria is not None:
        return [(options.criteria, source)]
    with naming_file(located.name):
        record, _ = record_of(located.files, located.form, located.name)
    both = [one.name for one in criteria_of(record) if one.n_labeled and one.judges]
    if len(both) < 2:
        return [(both[0] if both else None, source)]
    path = path_of(str(source))
    return [(name, f"{path}#{options.under(name)}") for name in both]


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
        frame = open_frame(source, argument)
        refuse_wide(len(frame.names))
        return frame
    if located.form is not None:
        return open_log(
            located.files,
            located.form,
            located.name,
            LogOptions.parse(located.fragment),
            located.notes,
        )
    opener = _OPENERS[located.kind]
    if located.fragment == NO_HEADER:
        opener = partial(open_delimited, header=False)
    elif located.fragment is not None:
        opener = partial(open_workbook, sheet=located.fragment)
    parts: list[Source] = []
    for file in located.files:
        with naming_file(one_line(file.name) if len(located.files) > 1 else None):
            parts.append(opener(file, one_line(file.name)))
            refuse_wide(len(parts[-1].names))
    if len(parts) == 1 and not located.notes:
        return parts[0]
    return FolderOfTables(located.name, tuple(parts), located.notes)


@dataclass(frozen=True)
class FolderOfTables:
    """Several files with the same columns, in any order, as one; `notes` on what is not read."""

    name: str
    parts: tuple[Source, ...]
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the first file, which every other must have too."""
        first = self.parts[0]
        for part in self.parts[1:]:
            odd = sorted(set(first.names) ^ set(part.names))
            if odd:
                mend = "make them agree"
                if set(first.names) & set(part.names):
                    folder = shlex.quote(os.path.join(self.name, str(first.name)))
                    pattern = os.path.join(self.name, f"*{Path(str(first.name)).suffix}")
                    mend += (
                        ", or if each is of another classifier, join them by the item: "
                        f"fewlabels estimate {folder} --join {shlex.quote(pattern)}"
                    )
                raise InputError(
                    f"{first.name} and {part.name} differ in the columns "
                    f"{listed(map(quoted, odd))}; {mend}"
                )
        return first.names

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns of every file."""
        tables = []
        for part in self.parts:
            with naming_file(part.name):
                tables.append(part.read(numbers, texts))
        whole = concatenate(tables, [part.name for part in self.parts])
        whole.notes.extend(self.notes)
        return whole
