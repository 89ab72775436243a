"""The folder of a benchmark: never over a person's files, one process at a time."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from fewlabels.bench import manifest
from fewlabels.bench.files import LOCK, alone_in
from fewlabels.bench.parts import any_parts
from fewlabels.errors import InputError, UsageError, listed, one_line, quoted

PARTS = "parts"
WRITTEN = (
    "results.csv", "results.parquet", "traits.csv", "report.md", "report.html", "figures", PARTS,
    manifest.NAME, LOCK,
)  # fmt: skip
"""What a benchmark, its report included, writes into its folder."""

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
    if manifest.is_one(folder / manifest.NAME):
        # A kill before the first part leaves a manifest alone; beginning again loses nothing.
        if any_parts(folder / PARTS) or "results.csv" in found:
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


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """The folder is there, and no other process computes in it.

    Raises
    ------
    UsageError
        If one does.
    InputError
        If the system refuses.
    """
    with ExitStack() as stack:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            alone = stack.enter_context(alone_in(folder))
        if not alone:
            raise UsageError(
                f"another process runs a benchmark in {one_line(str(folder))}; wait for it, or "
                "name another `out`"
            )
        yield


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """What the system refuses in the block is one line, which says what is kept."""
    try:
        yield
    except OSError as error:
        kept = False
        with suppress(OSError):
            kept = any_parts(folder / PARTS)
        mend = (
            "what is finished is kept: mend that, and go on with `resume`"
            if kept
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
