"""The folder of a benchmark: never over a person's files, one process at a time; and its manifest.

Every file is there whole or not at all, but that of the finished cells, which grows by lines.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.cells import Body, Cell, DatasetFacts
from bench.protocol import Protocol, from_plain
from fewlabels import __version__
from fewlabels.errors import InputError, UsageError, listed, one_line, quoted

MANIFEST = "manifest.json"
CELLS = "cells.jsonl"
LOCK = ".lock"
WRITTEN = (
    "results.parquet", "traits.parquet", "report.md", "figures", CELLS, MANIFEST, LOCK,
)  # fmt: skip
"""What a benchmark, its page included, writes into its folder."""

FORMAT = 2
"""Of the manifest and the cells; before 2 each cell was a file in a folder of parts."""

_TEMPORARY = ".tmp"

_LONGEST = 300
_REASONS = {
    errno.EACCES: "permission is denied",
    errno.EPERM: "permission is denied",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.ENOTDIR: "a part of the path is a file",
    errno.EEXIST: "a file is in the way",
    errno.EISDIR: "a folder is in the way",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EIO: "the disk fails",
}


def folder_of(out: str | Path | None, name: str) -> Path:
    """Where a benchmark of this name goes.

    Raises
    ------
    UsageError
        If it is empty, or a file.
    """
    if out is None:
        return Path(f"benchmark-{name}")
    if not str(out) or "\0" in str(out):
        raise UsageError(f"`out` must name a folder; got {quoted(str(out))}")
    if os.path.lexists(out) and not os.path.isdir(out):
        raise UsageError(f"`out` {quoted(str(out), _LONGEST)} is a file; name a folder")
    return Path(out)


def check_free(folder: Path) -> None:
    """Refuse a folder with a benchmark in it, or with files that no benchmark wrote.

    Raises
    ------
    UsageError
        Naming what is there.
    """
    found = [name for name in WRITTEN if os.path.lexists(folder / name)]
    where = quoted(str(folder), _LONGEST)
    if _is_manifest(folder / MANIFEST):
        # A kill before the first cell leaves a manifest alone; beginning again loses nothing.
        if any_cells(folder) or "results.parquet" in found:
            _refuse_older(json.loads((folder / MANIFEST).read_bytes()), folder)
            raise UsageError(
                f"`out` {where} holds parts of a benchmark already; go on with it by `resume`, or "
                "name another `out`"
            )
        return
    # The lock is opened, never written: a kill before the manifest leaves it empty.
    lock = folder / LOCK
    theirs = [n for n in found if n != LOCK or not lock.is_file() or lock.stat().st_size]
    if theirs:
        raise UsageError(
            f"`out` {where} holds {listed(theirs)}, which no benchmark wrote; name another `out`, "
            "so that nothing is overwritten"
        )


def any_cells(folder: Path) -> bool:
    """Whether a folder holds finished cells of some benchmark, be they of an older format."""
    with suppress(OSError):
        return (folder / CELLS).stat().st_size > 0
    return (folder / "parts").is_dir()


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """The folder is there, and no other process computes in it.

    The lock goes with the process, however it ends. Systems without `fcntl` have none.

    Raises
    ------
    UsageError
        If one does.
    InputError
        If the system refuses.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("a")
    with lock:
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass
        except OSError:
            raise UsageError(
                f"another process runs a benchmark in {one_line(str(folder))}; wait for it, or "
                "name another `out`"
            ) from None
        # What a run that was killed left half written.
        for path in folder.glob(f".*{_TEMPORARY}"):
            with suppress(OSError):
                path.unlink(missing_ok=True)
        yield


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """What the system refuses in the block is one line, which says what is kept."""
    try:
        yield
    except OSError as error:
        mend = (
            "what is finished is kept: mend that, and go on with `resume`"
            if any_cells(folder)
            else "mend that, or name another `out`"
        )
        raise InputError(
            f"cannot write in {one_line(str(folder))}: {reason(error)}; {mend}"
        ) from None


def reason(error: OSError) -> str:
    """What went wrong, in words."""
    if error.errno in _REASONS:
        return _REASONS[error.errno]
    text = re.sub(r"\[errno \d+\] ?", "", error.strerror or str(error), flags=re.IGNORECASE)
    return one_line(text, 200) or "the system refuses"


# --- files -------------------------------------------------------------------------------------


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file beside `path`, then put it in its place.

    A reader, or whoever comes after a kill, sees the old file or the new one, never a part.

    Raises
    ------
    OSError
        If the system refuses (a full disk, say); nothing is left behind then.
    """
    # One process writes into a folder at a time, and its number tells two apart all the same.
    temporary = path.with_name(f".{path.name}.{os.getpid()}{_TEMPORARY}")
    try:
        write(temporary)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def replace_text(path: Path, text: str) -> None:
    """`replace_file` with a text."""

    def write(place: Path) -> None:
        place.write_text(text, encoding="utf-8")

    replace_file(path, write)


# --- finished cells -----------------------------------------------------------------------------


@dataclass(frozen=True)
class KeptCells:
    """The finished cells of a benchmark, a line each in one file that only grows.

    `settings` maps a data set to the fingerprint of all that its cells depend on besides their
    own keys: a line of another fingerprint is foreign, and its cell is computed again.
    """

    folder: Path
    settings: Mapping[str, str]

    def add(self, cell: Cell, body: Body) -> None:
        """Keep what a cell found.

        Any process of the benchmark may. A line is written at once, behind an end of line: one
        that a kill cut short spoils itself alone.

        Raises
        ------
        InputError
            If the system refuses.
        """
        kept = {"cell": cell, "settings": self.settings[cell.dataset], "body": body}
        content = json.dumps(kept, allow_nan=False, separators=(",", ":")).encode()
        with writing(self.folder), (self.folder / CELLS).open("ab", buffering=0) as file:
            line = b"\n%s %s\n" % (_digest(content), content)
            while line:
                line = line[file.write(line) :]

    def read(self) -> dict[Cell, Body]:
        """What the cells found; damaged and foreign lines are left out, the last of a cell counts.

        Raises
        ------
        InputError
            If the system refuses.
        """
        found = {}
        with writing(self.folder), (self.folder / CELLS).open("a+b") as file:
            file.seek(0)
            for line in file:
                digest, _, content = line.rstrip(b"\n").partition(b" ")
                if not digest or digest != _digest(content):
                    continue
                kept = json.loads(content)
                cell = Cell(*kept["cell"])
                if kept["settings"] == self.settings.get(cell.dataset):
                    found[cell] = kept["body"]
        return found


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=10).hexdigest().encode()


# --- the manifest ------------------------------------------------------------------------------

GROWS = ("methods", "n_labeled", "n_unlabeled", "levels")
"""Fields that a resumed benchmark may add to; `runs` may rise besides."""

_SHOWN = ("title", "source", "tables", "figures")
"""Fields that no cell depends on."""


@dataclass(frozen=True)
class Manifest:
    """A benchmark as it was begun: protocol, data and how they are read."""

    protocol: Protocol
    data: tuple[str, ...]
    reading: Mapping[str, Any]
    datasets: tuple[DatasetFacts, ...] = ()
    skipped: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        """Put it in its folder.

        Raises
        ------
        OSError
            If the system refuses.
        """
        said = {
            "format": FORMAT,
            "fewlabels": __version__,
            "protocol": self.protocol.plain(),
            "data": list(self.data),
            "reading": dict(self.reading),
            "datasets": [d.plain() for d in self.datasets],
            "skipped": list(self.skipped),
        }
        replace_text(folder / MANIFEST, json.dumps(said, indent=2) + "\n")


_FIELDS = {"format", "fewlabels", "protocol", "data", "reading", "datasets", "skipped"}


def _is_manifest(path: Path) -> bool:
    """Whether a file is the manifest of a benchmark, of whatever version."""
    try:
        said = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(said, dict) and set(said) >= _FIELDS


def _refuse_older(manifest: Mapping[str, Any], folder: Path) -> None:
    if manifest["format"] == 1 and set(manifest) >= _FIELDS:
        raise InputError(
            f"{one_line(str(folder / MANIFEST))} is of an older format, with a file for each "
            "finished cell, which cannot go on; name another `out`"
        )


def read_manifest(
    folder: Path,
    parse: Callable[[Mapping[str, Any]], Any] = from_plain,
    kind: str = "a benchmark",
) -> Manifest:
    """The manifest of a benchmark that is to go on, whose protocol `parse` makes of plain values.

    Raises
    ------
    InputError
        If there is none, it is damaged, or another version wrote it.
    """
    where = one_line(str(folder / MANIFEST))
    try:
        said = json.loads((folder / MANIFEST).read_bytes())
        _refuse_older(said, folder)
        if said["format"] != FORMAT or said["fewlabels"] != __version__:
            raise InputError(
                f"{where} was written by fewlabels {said['fewlabels']}, this is {__version__}, and "
                "the two may compute differently; name another `out`"
            )
        return Manifest(
            parse(said["protocol"]),
            tuple(said["data"]),
            said["reading"],
            tuple(DatasetFacts.from_plain(d) for d in said["datasets"]),
            tuple(said["skipped"]),
        )
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{where} is not there: nothing to resume; leave `resume` out") from None
    except OSError as error:
        raise InputError(
            f"{where} cannot be read ({error.strerror}); mend that, or name another `out`"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{where} is no manifest of {kind}, or is damaged; name another `out`"
        ) from None


def grown(before: Protocol, name: str, options: Mapping[str, Any]) -> Protocol:
    """The protocol of a benchmark that goes on, with what is asked for besides.

    What may grow is united with what was there, so that nothing finished is lost; what is not
    asked for stays as it was.

    Raises
    ------
    UsageError
        If something differs that all cells depend on.
    """
    if name != before.name:
        raise UsageError(
            f"`resume`: the folder holds protocol {quoted(before.name)}, not {quoted(name)}; name "
            "another `out`"
        )
    asked = before.with_options(**options)
    changes: dict[str, Any] = {}
    for field in options:
        old, new = getattr(before, field), getattr(asked, field)
        if field in GROWS and not (field == "levels" and before.factor == "subset"):
            changes[field] = union(old, new)
        elif field == "runs":
            changes[field] = max(old, new)
        elif field not in _SHOWN and old != new:
            raise UsageError(
                f"`resume`: {field} was {_shown(old)} and is {_shown(new)} now, and finished cells "
                "depend on it; leave it as it was, or name another `out`"
            )
    return replace(before, **changes)


def places(before: Sequence[str], asked: Sequence[str]) -> tuple[str, ...]:
    """Where the data of a benchmark that goes on are: as before, without what is gone, and new.

    Raises
    ------
    UsageError
        If something is gone and nothing is named.
    """
    gone = [place for place in before if not os.path.exists(place)]
    if gone and not asked:
        raise UsageError(
            f"`resume`: there is nothing at {listed(map(quoted, gone))} any more; if the data "
            "moved, name their new place with `data`"
        )
    return union((place for place in before if place not in gone), asked)


def known_names(before: Sequence[DatasetFacts], now: Sequence[DatasetFacts]) -> list[str]:
    """Names of the data sets of now; one of known content keeps its name, wherever its file is.

    Seeds and parts go by the name, which comes from the file's.

    Raises
    ------
    UsageError
        If two would have one name.
    """
    in_place = {(d.name, d.digest) for d in before} & {(d.name, d.digest) for d in now}
    elsewhere = [d for d in before if (d.name, d.digest) not in in_place]
    names = []
    for dataset in now:
        moved = [] if (dataset.name, dataset.digest) in in_place else elsewhere
        old = next((d for d in moved if d.digest == dataset.digest), None)
        if old is not None:
            elsewhere.remove(old)
        names.append(dataset.name if old is None else old.name)
    double = [(d, n) for k, (d, n) in enumerate(zip(now, names, strict=True)) if n in names[:k]]
    if double:
        dataset, name = double[0]
        raise UsageError(
            f"`resume`: {one_line(dataset.file)} and another file would both be data set "
            f"{quoted(name)}; give the new one another name"
        )
    return names


def check_data(before: Sequence[DatasetFacts], now: Sequence[DatasetFacts]) -> None:
    """Refuse data that are no longer those that finished cells were computed from.

    Raises
    ------
    UsageError
        Naming what differs.
    """
    known = {d.name: d for d in before}
    for dataset in now:
        old = known.pop(dataset.name, dataset)
        if old.digest == dataset.digest:
            # It covers all that results depend on: sets that are trained may get more classifiers.
            continue
        for field, what in (("models", "classifiers"), ("groups", "groups"), ("digest", "content")):
            if getattr(old, field) != getattr(dataset, field):
                raise UsageError(
                    f"`resume`: the {what} of data set {quoted(dataset.name)} ({dataset.file}) "
                    "changed since the benchmark began; name another `out`, or with `data` the new "
                    "place of the unchanged file"
                )
    for name, old in known.items():
        raise UsageError(
            f"`resume`: data set {quoted(name)} ({one_line(old.file)}) is missing; name its new "
            "place with `data`"
        )


def fingerprint(protocol: Protocol, dataset: DatasetFacts) -> str:
    """Hash of all that the cells of a data set depend on besides their own keys."""
    free = {*GROWS, *_SHOWN, "runs"}
    fixed = {k: v for k, v in protocol.plain().items() if k not in free}
    text = json.dumps([FORMAT, __version__, fixed, dataset.digest], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def union(old: Iterable[Any], new: Iterable[Any]) -> tuple[Any, ...]:
    """The old ones in their order, then what is new."""
    return tuple(dict.fromkeys([*old, *new]))


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return one_line(", ".join(map(str, value)), 60) or "nothing"
    return quoted(value) if isinstance(value, str) else str(value)
