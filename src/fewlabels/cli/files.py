"""The files that a run reads and writes, as its options name them: none is both, none two outputs.

An option says what its value names (`Role`), so that no new option is forgotten. Before the work
all outputs are proven writable (`check_files`); after it all are written whole, or none
(`write_outputs`).
"""

from __future__ import annotations

import filecmp
import json
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from fewlabels.errors import FewlabelsError, InputError, UsageError

Role = Literal["read", "pictures", "written", "text", "edited", "table", "folder", "record"]
"""What a path is to a run: `read` (data or anything else, a folder too), a folder of `pictures`,
`written` by a function that gets its path, a `text`, a text that may be `edited` by hand and so is
never replaced by another, a `table` of the kind that its ending says, a `folder` of files that are
written, or a `record`, which is read and added to."""

_WRITTEN = ("written", "text", "edited", "table")

Writer = Callable[[Path], Any]

READ = ("read", "pictures")
"""Roles whose paths may be named more than once."""

_DASH = "-"

PRINTED = ("--json", "--markdown")
"""Options whose path may be -, for standard output."""


class Named(NamedTuple):
    """A path, the option that names it, and its role."""

    option: str
    path: str
    role: Role


def check_files(named: Iterable[Named]) -> None:
    """Refuse outputs that are read, or named twice, and those that cannot be written.

    Files are compared by their place on disk, whatever leads to it: another spelling, a link. So
    are those of a folder that is read, and standard input.
    """
    files = [one for one in named if one.option not in PRINTED or one.path != _DASH]
    outputs = [one for one in files if one.role not in READ]
    for one in outputs:
        if "://" in one.path and one.role in ("table", "folder"):
            from fewlabels.data.databases import target_table

            target_table(one.path)
            continue
        if one.role == "table":
            from fewlabels.data.write import table_kind

            table_kind(one.path)
        if one.role in _WRITTEN:
            _check_writable(one)
        elif one.role == "folder" and (not one.path or "\0" in one.path):
            raise UsageError(f"{one.option} must name a folder; got {one.path!r}")
    # What is read need not be a file.
    plain = (_without_mark(one) for one in files if one.role in READ and outputs)
    read = [
        one for one in plain if one.path == _DASH or "://" in one.path or os.path.exists(one.path)
    ]
    taken: dict[Hashable, str] = {}
    for one in read:
        taken |= dict.fromkeys(_read_paths(one), "the input file")
    for one in outputs:
        place = _identity(one.path)
        words = taken.get(place) if place is not None else None
        if one.role in _WRITTEN and _like_data(one.path):
            words = words or next(
                ("in the input folder" for another in read if _part_of(one, another)), None
            )
        elif one.role == "folder":
            within = (
                another
                for another in (*read, *outputs)
                if another is not one and _below(another.path, one.path)
            )
            words = words or next(
                (f"the folder of {another.option} {another.path!r}" for another in within), None
            )
        if words is not None:
            other = "folder" if one.role == "folder" else "file"
            raise UsageError(f"{one.option} {one.path!r} is {words} too; name another {other}")
        taken[place] = f"the file of {one.option}"


def _without_mark(one: Named) -> Named:
    """The path without the part behind its `#`."""
    if "#" not in one.path or "://" in one.path:
        return one
    from fewlabels.data.sources import path_of

    return one._replace(path=_DASH if one.path.startswith("-#") else path_of(one.path))


def _read_paths(one: Named) -> Iterator[Hashable]:
    """The place of what is read, and of the files of a folder."""
    path = one.path
    if path == _DASH:
        with suppress(OSError, ValueError, AttributeError):  # closed, or no file
            yield _place(os.fstat(sys.stdin.fileno()))
        return
    yield _identity(path)
    if one.role == "read" and os.path.isdir(path):
        from fewlabels.data.sources import locate

        with suppress(FewlabelsError):  # said where it is read
            located = locate(path, [])
            yield from map(_identity, () if located is None else map(str, located.files))


def _identity(path: str) -> Hashable:
    """What tells a file or folder from others; None for a device, which any number may write to."""
    try:
        return _place(os.stat(path))
    except (OSError, ValueError):
        return _real(path)


def _place(status: os.stat_result) -> Hashable:
    identified = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return (status.st_dev, status.st_ino) if identified else None


def _real(path: str) -> str:
    """The path with links resolved; an impossible path is refused when it is opened."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return path


def _below(path: str, folder: str) -> tuple[str, ...]:
    """The names from a folder down to a path; none where it is elsewhere."""
    front = _real(folder).rstrip(os.sep) + os.sep
    real = _real(path)
    return tuple(real[len(front) :].split(os.sep)) if real.startswith(front) else ()


def _part_of(table: Named, folder: Named) -> bool:
    """Whether a table would be read as a part of a folder: in it, or in a folder `name=value`."""
    names = _below(table.path, folder.path) if folder.role == "read" else ()
    return bool(names) and all("=" in name for name in names[:-1])


def _like_data(path: str) -> bool:
    """Whether reading a folder would include a file of this name, except JSON of our own."""
    from fewlabels.data.sources import is_part

    return is_part(os.path.basename(path)) and not path.endswith(".json")


def _check_writable(one: Named) -> None:
    """Fail as writing would, and leave nothing behind."""
    path = one.path
    try:
        if not path:
            raise ValueError("the path is empty")
        if path == _DASH:
            raise ValueError(f"{' and '.join(PRINTED)} alone print; name a file")
        if os.path.isdir(path):
            raise IsADirectoryError(None, "it is a folder")
        if os.path.exists(path) and not os.access(path, os.W_OK):
            raise PermissionError(None, "permission denied")
        if not is_device(path):
            draft = draft_path(path)
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            draft.unlink()
    except (OSError, ValueError) as error:
        raise UsageError(cannot_write(f"{one.option} {path!r}", error)) from None


def cannot_write(what: str, error: OSError | ValueError) -> str:
    """Say that something cannot be written, and why."""
    reason = getattr(error, "strerror", None) or str(error)
    return f"cannot write {what}: {reason}; name a file in a folder that exists and is writable"


def is_device(path: str) -> bool:
    """Whether the path is a pipe, terminal or /dev/null, which a rename would destroy."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def draft_path(path: str) -> Path:
    """Where a file is written until it is whole."""
    if is_device(path):
        return Path(tempfile.gettempdir()) / f"fewlabels-{secrets.token_hex(8)}"
    # Beside the target that links lead to: a rename must not cross file systems or cut a link.
    # Random, so that two runs do not meet; short, so that a long name still has room.
    target = Path(os.path.realpath(path))
    return target.with_name(f".{target.name[:50]}.{secrets.token_hex(8)}")


def table_writer(
    path: str,
    columns: Callable[[], Mapping[str, Any]],
    *,
    raw: bool,
    key: Sequence[str] = (),
) -> Writer:
    """Write columns as a table of the kind that the ending of `path` says.

    What is for a table of a database gives its rows instead; `write_outputs` writes them. Rows that
    are there stay, where columns of texts, `key`, tell them from those that are written.
    """
    if "://" in path:
        from fewlabels.data.databases import KeptRows
        from fewlabels.data.write import batches_of_columns

        return lambda _: KeptRows(batches_of_columns(columns()), tuple(key))

    def write(draft: Path) -> None:
        from fewlabels.data.write import batches_of_columns, kept_beside, table_kind, write_batches

        kind, batches = table_kind(path), batches_of_columns(columns())
        if key and os.path.isfile(path):
            batches = kept_beside(Path(path), batches, key)
        write_batches(batches, draft, kind, raw=raw)

    return write


def text_writer(text: Callable[[], str]) -> Writer:
    """Write a text as it is."""

    def write(draft: Path) -> None:
        draft.write_text(text(), encoding="utf-8")

    return write


def json_text(value: Mapping[str, Any]) -> str:
    """Strict JSON (no NaN, plain ASCII) with a line break at the end."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def write_outputs(
    writers: Mapping[str, Writer],
    last: Callable[[], object] | None = None,
    edited: Collection[str] = (),
) -> None:
    """Write all files, or none of them.

    Each writer gets the path of a temporary file in the folder of its target. When all have
    succeeded, `last` too, and devices have taken theirs, the temporary files take the targets'
    places; where one cannot, what was there before is put back. Files that somebody may have
    edited, `edited`, are not replaced: if one has other content, nothing is written. Tables of
    databases are written with `last`, in a transaction that ends when all else is in its place.
    """
    written: dict[str, Path] = {}
    tables = {path: partial(rows, Path()) for path, rows in writers.items() if "://" in path}
    if tables:
        writers = {path: write for path, write in writers.items() if path not in tables}
        last = partial(_with_tables, tables, last)
    try:
        for path, write in writers.items():
            written[path] = draft_path(path)
            try:
                write(written[path])
            except InputError as error:  # the page's writer knows only the draft's name
                raise InputError(str(error).replace(str(written[path]), path)) from None
            with written[path].open("rb") as draft:
                os.fsync(draft.fileno())  # some disks say only here that they are full
        for path in edited:
            if os.path.isfile(path) and not filecmp.cmp(path, written[path], shallow=False):
                raise UsageError(
                    f"{path!r} is there and says something else, which somebody may have written; "
                    "name another file, or move that one away"
                )
        # What a device has taken cannot be taken back: it comes before whatever can.
        for path in filter(is_device, written):
            with written[path].open("rb") as source, open(path, "wb") as device:
                shutil.copyfileobj(source, device)
        with ExitStack() as drafts, ExitStack() as undo:
            for path in [path for path in written if not is_device(path)]:
                _put(written[path], path, drafts, undo)
            if last is not None:
                last()
            undo.pop_all()
    except OSError as error:
        raise UsageError(cannot_write(f"{path!r}", error)) from None
    finally:
        for temporary in written.values():
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _with_tables(tables: Mapping[str, Any], last: Callable[[], object] | None) -> None:
    from fewlabels.data.databases import writing_tables

    with writing_tables(tables):
        if last is not None:
            last()


def _put(temporary: Path, path: str, drafts: ExitStack, undo: ExitStack) -> None:
    """Let a file take its target's place; `undo` puts back what was there, which `drafts` drops."""
    target = os.path.realpath(path)
    if not os.path.exists(target):
        os.replace(temporary, target)
        undo.callback(os.unlink, target)
        return
    shutil.copymode(target, temporary)
    before = draft_path(path)
    drafts.callback(before.unlink, missing_ok=True)
    try:
        os.link(target, before)
    except OSError:  # a file system without links
        shutil.copy2(target, before)
    os.replace(temporary, target)
    undo.callback(os.replace, before, target)
