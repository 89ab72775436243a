"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TEMPORARY = ".tmp"
LOCK = ".lock"


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file beside `path`, then put it in its place.

    A reader, or whoever comes after a kill, sees the old file or the new one, never a part.

    Raises
    ------
    OSError
        If the system refuses (a full disk, say); nothing is left behind then.
    """
    # One process writes into a folder at a time, and its number tells two apart all the same.
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        write(temporary)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def replace_text(path: Path, text: str) -> None:
    """`replace_file` with a text."""
    replace_file(path, lambda place: _write(place, text))


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files of a run that was killed."""
    for path in folder.glob(f".*{TEMPORARY}"):
        with suppress(OSError):
            path.unlink(missing_ok=True)


@contextmanager
def alone_in(folder: Path) -> Iterator[bool]:
    """Hold a folder against other processes; gives whether it was free.

    The lock goes with the process, however it ends. Systems without `fcntl` have none.
    """
    try:
        import fcntl
    except ImportError:
        yield True
        return
    with (folder / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
