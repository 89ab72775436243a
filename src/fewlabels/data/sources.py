"""What a source is: which files, of which kind, decided by content; and those files opened."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from fewlabels.data.binary import open_feather, open_parquet
from fewlabels.data.cells import open_json, open_workbook
from fewlabels.data.content import ENDINGS, file_kind
from fewlabels.data.databases import TableAt, keep_rows, open_table, query_rows
from fewlabels.data.delimited import NO_HEADER, open_delimited
from fewlabels.data.label_record import ENDING
from fewlabels.data.limits import refuse_wide
from fewlabels.data.logs import IN_FOLDERS, check_format, open_log, recognised, record_of
from fewlabels.data.logs.columns import LogOptions, criteria_of
from fewlabels.data.native import open_frame
from fewlabels.data.stores import (
    STORES,
    File,
    StoredFile,
    base_of,
    file_at,
    is_database,
    is_pattern,
    kept_here,
    split_options,
    temporary_folder,
)
from fewlabels.data.table import Derived, NoHeaderError, Source, Table, concatenate, naming_file
from fewlabels.data.where import Condition, Filter, FilteredSource, refuse_no_row, rows_of
from fewlabels.errors import (
    InputError,
    UsageError,
    did_you_mean,
    listed,
    one_line,
    quoted,
    redacted,
    unknown,
)

DASH = "-"
"""What stands for standard input where a path is asked for."""

NAME = "standard input"

FORMATS = {
    "csv": "CSV", "tsv": "CSV", "jsonl": "JSON", "json": "JSON", "parquet": "Parquet",
    "feather": "Feather", "npz": "NPZ", "excel": "Excel",
}  # fmt: skip
"""What may be said of it -> the kind of the file."""

_kept: list[tuple[Any, Path]] = []
"""The stream that was read as standard input last, and the file with what it held."""


def is_standard_input(source: str) -> bool:
    """Whether a path stands for standard input: `-`, or with more behind it, as `-#tsv`."""
    return source == DASH or source.startswith(f"{DASH}#")


def standard_input(format_name: str | None = None) -> Path:
    """A file with all of standard input, which can be read only once."""
    if format_name is not None and format_name not in FORMATS:
        raise UsageError(unknown("format", format_name, FORMATS))
    stream = getattr(sys.stdin, "buffer", None)
    if not _kept or stream is not _kept[0][0]:
        if stream is None or stream.closed or sys.stdin.isatty():
            raise InputError("has nothing to read; send a file: fewlabels ... - < FILE")
        path = temporary_folder() / "standard-input"
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file, 1 << 20)
        _kept[:] = [(stream, path)]
    # The ending tells a tab for a delimiter, and what the content must be.
    ending = "" if format_name in (None, "excel") else f".{format_name}"
    path = _kept[0][1]
    _kept[:] = [(stream, path.rename(path.with_suffix(ending)))]
    return _kept[0][1]


SUFFIXES = (".csv", ".tsv", ".parquet", ".pq", ".npz")
"""Endings of the files that are read of a folder, before those of compression."""

FURTHER_SUFFIXES = (".jsonl", ".ndjson", ".json", ".feather", ".arrow", ".xlsx", ".xls", ".ods")
"""Endings of those that are read where there are none of the others: notes may lie beside them."""

TEXTS = (".txt", ".tab")
"""Endings of those that are read, if their text is a table, where there is nothing else."""

_PACKED = (*ENDINGS, ".xz", ".lz4", ".zip", ".br", ".7z")
"""Endings of compressed files; parts that end so are read, or refused, and never passed over."""

_IN_PLACE = tuple(ending for ending in SUFFIXES if ending != ".npz")
"""Endings of what is read of an object store without a copy."""

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_MOST_NEIGHBOURS = 10_000

_LOGGED, _MOST_LOGS = (".eval", ".json", ".jsonl"), 1_000
"""Endings of logs in a folder, and how many of them are read at most."""

LOG, SQL = "log", "SQL"
"""The kinds of what a tool has logged, and of a table of a database."""

_NULL = "__HIVE_DEFAULT_PARTITION__"
"""A folder's value that stands for none."""


@dataclass(frozen=True, eq=False)
class Selection:
    """A source and which of its rows are read; see `source`."""

    place: Any
    where: Condition | None = None
    query: str | None = None

    @classmethod
    def of(cls, place: Any) -> Selection:
        """The place itself where it says which rows, else all of it."""
        return place if isinstance(place, cls) else cls(place)

    def __str__(self) -> str:
        text = redacted(str(self.place)) if isinstance(self.place, str | Path) else ""
        return f"{text or 'the connection'} (query)" if self.query is not None else text

    @cached_property
    def kept(self) -> tuple[Path, ...]:
        """The rows of what is read only once, as files of this disk."""
        query = self.query
        if query is None:
            query = TableAt.of(self.place).query
        return keep_rows(query_rows(self.place, query, self.where))


def source(place: Any, *, where: str | None = None, query: str | None = None) -> Selection:
    """A source of rows, for any function that takes a path or frame.

    Parameters
    ----------
    place
        A path, a folder, a pattern (`data/**/*.parquet`), an address (`s3://bucket/folder`,
        `sqlite:///file.db#table`), a frame in memory, or, with `query`, an open connection of the
        DBAPI or SQLAlchemy.
    where
        Which rows: comparisons of columns with values, joined by `and`, `or`, `not`; files whose
        folders (`date=2026-09-07`) rule them out are not opened, and a database chooses its rows.
    query
        Which rows of a database, in its SQL. They are read once, and kept on disk meanwhile.

    Raises
    ------
    UsageError
        If `where` is no condition, or there is a query of what is no database.

    Examples
    --------
    >>> import sqlite3
    >>> connection = sqlite3.connect(":memory:")
    >>> _ = connection.execute("create table items (label text, p__net__yes real)")
    >>> rows = [("no", 0.2), ("yes", 0.9), (None, 0.7)]
    >>> _ = connection.executemany("insert into items values (?, ?)", rows)
    >>> import fewlabels as fl
    >>> fl.read_predictions(fl.source(connection, query="select * from items")).n_items
    3
    """
    if isinstance(place, Selection):
        if query is not None or (place.where and where):
            raise UsageError("a source that says which rows has no second `where` or `query`")
        return place if where is None else replace(place, where=Condition.parse(where))
    file = isinstance(place, str | Path) and not is_database(place)
    frame = not isinstance(place, str | Path) and not _is_connection(place)
    if query is not None and (file or frame):
        raise UsageError(
            f"`query` chooses rows of a database, and {quoted(str(place)) if file else 'this'} is "
            "none; use `where` for files and frames"
        )
    if query is None and _is_connection(place):
        raise UsageError("a connection needs `query`: source(connection, query='select ...')")
    return Selection(place, None if where is None else Condition.parse(where), query)


def chosen(place: Any, where: str | None, query: str | None) -> Any:
    """The place itself, or the rows of it that are chosen."""
    plain = where is None and query is None and not _is_connection(place)
    return place if plain else source(place, where=where, query=query)


def typed(place: Any) -> tuple[str | None, str]:
    """FILE as the command line says the same source, and its options; None where it cannot."""
    selection = Selection.of(place)
    said = {"--where": selection.where and selection.where.text, "--query": selection.query}
    options = "".join(f" {flag} {shlex.quote(value)}" for flag, value in said.items() if value)
    file = selection.place
    return redacted(str(file)) if isinstance(file, str | Path) else None, options


def _is_connection(place: object) -> bool:
    """Whether it is an open connection, or makes one; told by its kind, as frames have columns."""
    ways = ("cursor", "exec_driver_sql", "raw_connection")
    return any(hasattr(type(place), way) for way in ways)


def identity(place: Any) -> str:
    """What tells a source from others, without passwords."""
    if isinstance(place, Selection):
        return repr((identity(place.place), place.where and place.where.text, place.query))
    if isinstance(place, str) and _URL.match(place):
        return redacted(place)
    return str(Path(place).resolve()) if isinstance(place, str | Path) else str(id(place))


@dataclass(frozen=True)
class Located:
    """Files of one kind in order of their names, and what to call them.

    `fragment` is what stands behind the `#` of the path; `form` is the format of a log. The folders
    `name=value` of `base` are columns; files that are `kept` are others in the next command.
    """

    kind: str
    files: tuple[Any, ...]
    name: str
    fragment: str | None = None
    notes: tuple[str, ...] = ()
    form: str | None = None
    base: File | None = None
    where: Condition | None = None
    kept: bool = False

    @property
    def opener(self) -> Callable[[Any, str], Any]:
        """What opens a file by its place and name."""
        if self.fragment == NO_HEADER and self.kind == "CSV":
            return partial(open_delimited, header=False)
        if self.fragment is not None and self.kind == "Excel":
            return partial(open_workbook, sheet=self.fragment)
        return OPENERS[self.kind]

    def shown(self, file: Any) -> str:
        """What messages call a file of several."""
        return one_line(file.name if self.base is None else str(file.relative_to(self.base)))

    def filter(self, file: Any) -> Filter:
        """The columns that the folders of a file give, and the condition on its rows."""
        return Filter({} if self.base is None else folder_columns(file, self.base), self.where)

    @classmethod
    def of_file(cls, path: File, name: str, fragment: str | None = None) -> Located:
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
    """The files of a path, but for those to be `skipped`, if any may be; None if it is no path."""
    selection = Selection.of(source)
    if selection.query is not None or is_database(selection.place):
        return _of_database(selection)
    if not isinstance(selection.place, (str, Path)):
        return None
    located = _of_path(selection.place, skipped, selection.where)
    if selection.where is not None and located.kind == "NPZ":
        raise InputError(
            f"{located.name}: holds arrays, and --where is about columns; save a table"
        )
    return replace(located, where=selection.where)


def _of_database(selection: Selection) -> Located:
    """A table by the ranges of its keys, or the rows of what has none, kept as files."""
    name = str(selection)
    with naming_file(name):
        if selection.query is None:
            table = open_table(TableAt.of(selection.place, selection.where), name)
            if table is not None:
                return Located(SQL, (table,), name)
        return Located("Parquet", selection.kept, name, kept=True)


def _of_path(source: str | Path, skipped: list[BadFile] | None, where: Condition | None) -> Located:
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
        elsewhere = isinstance(source, str) and STORES.match(source) is not None
        if isinstance(source, str) and _URL.match(source) and not elsewhere:
            raise InputError(
                "is a URL, and files are read from disk, object stores (s3://, gs://, abfs://) and "
                "databases (sqlite://, postgresql://, duckdb://; others in Python, by "
                "fewlabels.source(connection, query=...)); download it first"
            )
        try:
            if elsewhere:
                return _of_store(str(source), redacted(name), skipped, where)
            path = Path(source)
            if path.is_dir():
                return _folder(path, name, skipped, where)
            if not path.exists():
                if is_pattern(_divided(name)[0]):
                    return _of_pattern(name, name, skipped, where)
                return _behind_a_mark(name)
            if not path.is_file():
                raise InputError("is not a regular file; save it as a file first")
            return Located.of_file(path, name)
        except InputError:
            raise
        except PermissionError:
            mend = "may not be read (permission denied); change its permissions"
            raise InputError(mend) from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"cannot be read: {why}") from None


def _of_store(
    address: str, name: str, skipped: list[BadFile] | None, where: Condition | None
) -> Located:
    """What an object store holds: CSV and Parquet where they are, other kinds copied to disk."""
    if is_pattern(split_options(address)[0]):
        return _of_pattern(address, name, skipped, where)
    path = file_at(address)
    if not path.exists():
        raise InputError("there is no such object")
    if path.is_dir():
        parts = (f for f in path.iterdir(recursive=True) if _ends(f.name, SUFFIXES))
        here: File = path if any(parts) else kept_here(path)
        return _folder(here, name, skipped, where)
    return Located.of_file(path if _ends(path.name, _IN_PLACE) else kept_here(path), name)


def _of_pattern(
    pattern: str, name: str, skipped: list[BadFile] | None, where: Condition | None
) -> Located:
    """The files that a pattern stands for, and those of the folders among them."""
    path, options = split_options(pattern) if STORES.match(pattern) else (pattern, "")
    folder = base_of(path)
    base = file_at(folder + options)
    found: list[File] = []
    for file in sorted(base.glob(path.removeprefix(folder).lstrip("/") if folder != "." else path)):
        if not file.name.startswith((".", "_")):
            found += _parts_below(file) if file.is_dir() else [file]
    if not found:
        raise InputError("no file has such a name; put the pattern in quotes, as in 'data/*.csv'")
    return _of_files(list(dict.fromkeys(found)), base, name, skipped, where)


def path_of(source: str) -> str:
    """The path alone, without what stands behind its `#`, and without a password."""
    if _URL.match(source):
        return redacted(source)
    return source if os.path.exists(source) else _divided(source)[0]


def stem_of(source: str) -> str:
    """What to call the classifier of a file: the name up to its first dot."""
    return Path(path_of(source)).name.partition(".")[0]


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
        found = _folder(path, name, None, None)
        if found.form is None and not (fragment == NO_HEADER and found.kind == "CSV"):
            mend = quoted(f"#{fragment}")
            raise InputError(f"is a folder of tables and no log; leave out {mend}")
        return replace(found, fragment=fragment)
    return Located.of_file(path, name, fragment)


def is_part(name: str) -> bool:
    """Whether a file of a folder is a part by its name, be it one that cannot be read."""
    packed = any(name.lower() == name.lower().partition(".")[0] + ending for ending in _PACKED)
    return packed or _ends(name, (*SUFFIXES, *FURTHER_SUFFIXES))


def _parts_below(folder: File, part: Callable[[str], bool] = is_part) -> list[File]:
    """The parts in a folder and in those of it that are called `name=value`, in order."""
    parts: list[File] = []
    for file in sorted(folder.iterdir()):
        # Not a record of labels beside the data.
        if file.name.startswith((".", "_")) or file.name.endswith(ENDING):
            continue
        if "=" in file.name and file.is_dir():
            parts += _parts_below(file, part)
        elif part(file.name):
            parts.append(file)
    return parts


def _folder_files(folder: File) -> tuple[list[File], tuple[str, ...]]:
    """What there is to read of a folder, in order of the names, and a note on what is left."""
    parts = _parts_below(folder)
    further = [file for file in parts if _ends(file.name, FURTHER_SUFFIXES)]
    chosen = [file for file in parts if file not in further] or further
    if not chosen:
        parts = _parts_below(folder, lambda name: name.lower().endswith(TEXTS))
        chosen = list(filter(_is_table, parts))
        further = parts
    names = {str(file.relative_to(folder)) for file in chosen}
    for name in sorted(names):
        twice = [f"{name}{ending}" for ending in _PACKED if f"{name}{ending}" in names]
        if twice:
            raise InputError(f"holds {name} and {twice[0]}, which are the same rows; remove one")
    if not chosen:
        below = next((f for f in folder.glob("**/*") if _readable(f.name)), None)
        ending = "" if below is None else Path(below.name).suffix
        mend = "" if below is None else f"; for files in its folders: '{folder}/**/*{ending}'"
        raise InputError(
            "is a folder without files to read; it needs .csv, .tsv, .parquet, .npz, .jsonl, "
            f".json, .feather, .xlsx, .ods, or tables in .txt{mend}"
        )
    left = [f.name for f in further if f not in chosen and not _ends(f.name, (".json",))]
    notes = (f"files of other kinds in the folder are not read: {listed(left)}",) * bool(left)
    inner = [f.name for f in sorted(folder.iterdir()) if f.is_dir() and "=" not in f.name]
    inner = [n for n in inner if any(_readable(f.name) for f in (folder / n).iterdir())]
    mend = f"folders in the folder are not read: {listed(inner, 3)} ('{folder}/**/*' reads all)"
    return chosen, (*notes, *((mend,) * bool(inner)))


def _readable(name: str) -> bool:
    """Whether a file is read of a folder, where there is nothing else."""
    return is_part(name) or name.lower().endswith(TEXTS)


def _is_table(file: File) -> bool:
    """Whether a text has columns, with names or without."""
    try:
        return (
            file.is_file()
            and file_kind(file) == "CSV"
            and len(open_delimited(file, file.name).names) > 1
        )
    except NoHeaderError:
        return True
    except InputError:
        return False


def _ends(name: str, suffixes: tuple[str, ...]) -> bool:
    """Whether a file ends so, compressed or not."""
    return name.lower().endswith((*suffixes, *(s + end for s in suffixes for end in _PACKED)))


def _check_file(file: File) -> None:
    """Refuse what in a folder is no file: opening a pipe would wait for somebody to write."""
    if file.is_file():
        return
    if file.is_symlink() and not file.exists():
        target = quoted(os.readlink(file), 200)
        raise InputError(f"is a link to {target}, which does not exist; mend or remove the link")
    if file.is_dir():
        raise InputError("is a folder within the folder; name the folder that holds all the files")
    raise InputError("is not a regular file; save it as a file first")


def _folder(
    path: File, name: str, skipped: list[BadFile] | None, where: Condition | None
) -> Located:
    logged = None if isinstance(path, StoredFile) else _folder_of_logs(path, name)
    if logged is not None:
        return logged
    parts, notes = _folder_files(path)
    return _of_files(parts, path, name, skipped, where, notes)


def _of_files(
    parts: Sequence[File], base: File, name: str, skipped: list[BadFile] | None,
    where: Condition | None, notes: tuple[str, ...] = (),
) -> Located:  # fmt: skip
    """Files of one kind, called from a folder."""
    if where is not None:  # before any is opened
        left = [file for file in parts if where.possible(folder_columns(file, base))]
        if not left:
            raise InputError(
                f"none of its {len(parts):,} files has rows where {where.text}; the first is "
                f"{one_line(str(parts[0].relative_to(base)))}"
            )
        parts = left
    kinds: dict[str, str] = {}
    files: list[File] = []
    for file in parts:
        shown = one_line(str(file.relative_to(base)))
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
            kinds.setdefault(kind, shown)
            files.append(file)
    if not files:
        raise InputError(nothing_read(skipped or (), alone=False))
    if len(kinds) > 1:
        shown_kinds = [f"{file} is {kind}" for kind, file in kinds.items()]
        raise InputError(
            f"holds files of several kinds ({listed(shown_kinds)}); name one file, or sort them"
        )
    return Located(next(iter(kinds)), tuple(files), name, notes=notes, base=base)


def folder_columns(file: File, base: File) -> dict[str, str | None]:
    """The columns that the folders `name=value` between a folder and a file in it give."""
    folders = file.relative_to(base).parts[:-1]
    pairs = (part.partition("=") for part in folders if "=" in part)
    texts = {unquote(name): unquote(value) for name, _, value in pairs}
    return {name: None if value == _NULL else value for name, value in texts.items()}


def _folder_of_logs(path: Path, name: str) -> Located | None:
    """The logs of one tool in a folder (of some tools: in a folder per model), if any."""
    below = sorted(file for pattern in IN_FOLDERS for file in path.glob(pattern))
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
    """The criteria of a log that people labeled and judges judged, each with its path."""
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


OPENERS: Mapping[str, Callable[[Any, str], Any]] = {
    "CSV": open_delimited, "Parquet": open_parquet, "JSON": open_json, "Feather": open_feather,
    "Excel": open_workbook, SQL: lambda table, _: table,
}  # fmt: skip


def open_source(source: Any, located: Located | None, argument: str = "source") -> Source:
    """Open what `locate` found (anything but NPZ), or the frame that the argument holds."""
    if located is None:
        selection = Selection.of(source)
        if isinstance(selection.place, FirstRows):
            return selection.place
        frame = open_frame(selection.place, argument)
        refuse_wide(len(frame.names))
        return _rows_of(frame, selection.where)
    if located.form is not None:
        options = LogOptions.parse(located.fragment)
        log = open_log(located.files, located.form, located.name, options, located.notes)
        return _rows_of(log, located.where)
    parts: list[Source] = []
    for file in located.files:
        shown = located.shown(file)
        with naming_file(shown if len(located.files) > 1 else None):
            parts.append(filtered(located.opener(file, shown), located, file)[0])
            refuse_wide(len(parts[-1].names))
    if len(parts) == 1 and not located.notes:
        return parts[0]
    return FolderOfTables(located.name, tuple(parts), located.notes, located.where)


def open_beside(
    source: Any, located: Located | None, argument: str = "source"
) -> tuple[Source, Located | None]:
    """Open one of several files that tell each other's columns, which it need not name."""
    try:
        return open_source(source, located, argument), located
    except NoHeaderError:
        if located is None or len(located.files) > 1:
            raise
        unnamed = replace(located, fragment=NO_HEADER)
        return open_source(source, unnamed, argument), unnamed


@dataclass(frozen=True, eq=False)
class FirstRows(Derived):
    """The first rows of a source, with all its columns, which are read once."""

    inner: Source
    most: int

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.inner.names

    @cached_property
    def single(self) -> list[str]:
        """Columns whose names occur once."""
        return [name for name, times in Counter(self.names).items() if times == 1]

    @cached_property
    def _held(self) -> Table:
        held = list[pa.RecordBatch]()
        for batch in rows_of(self.inner, self.single):
            held.append(batch.select(self.single).slice(0, self.most - sum(map(len, held))))
            if sum(map(len, held)) >= self.most:
                break
        comma = getattr(self.inner, "delimiter", None) == ";"
        return Table.of_batches(held, self.single, decimal_comma=comma)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Some columns, of which a file's texts are told for numbers when these are taken."""
        return replace(self._held, names=tuple(dict.fromkeys([*numbers, *texts])), notes=[])


def filtered(part: Any, located: Located, file: Any) -> tuple[Source, Filter]:
    """A file with the columns of its folders and with its chosen rows alone, and what does that."""
    if located.base is None and located.where is None:
        return part, Filter()
    chosen = located.filter(file).of_columns(part.names)
    return (FilteredSource(part, chosen, len(located.files) == 1) if chosen else part), chosen


def _rows_of(part: Source, where: Condition | None) -> Source:
    return part if where is None else FilteredSource(part, Filter({}, where).of_columns(part.names))


@dataclass(frozen=True)
class FolderOfTables:
    """Several files with the same columns, in any order, as one; `notes` on what is not read."""

    name: str
    parts: tuple[Source, ...]
    notes: tuple[str, ...] = ()
    where: Condition | None = None

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
            with naming_file(part.name):
                tables.append(part.read(numbers, texts))
        whole = concatenate(tables, [part.name for part in self.parts])
        refuse_no_row(whole.n_rows, self.where)
        whole.notes.extend(self.notes)
        return whole
