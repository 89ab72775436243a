"""What may happen to a record while a page is up: each does it, and mends it in the end.

`copy` is what was saved so far, which the page offers.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

Patch = pytest.MonkeyPatch
Fault = Callable[[Path, bytes, Patch], AbstractContextManager[None]]


@contextmanager
def moved(path: Path, copy: bytes, patch: Patch) -> Iterator[None]:
    path.rename(path.with_name("aside"))
    yield
    path.with_name("aside").rename(path)


@contextmanager
def deleted(path: Path, copy: bytes, patch: Patch) -> Iterator[None]:
    path.unlink()
    yield
    path.write_bytes(copy)


@contextmanager
def cut(path: Path, copy: bytes, patch: Patch) -> Iterator[None]:
    os.truncate(path, len(copy) - 10)
    yield
    path.write_bytes(copy)


@contextmanager
def written_to(path: Path, copy: bytes, patch: Patch) -> Iterator[None]:
    with path.open("ab") as file:
        file.write(b"mine\n")
    yield
    os.truncate(path, len(copy))


@contextmanager
def written_over(path: Path, copy: bytes, patch: Patch) -> Iterator[None]:
    """By as many bytes."""
    path.write_bytes(bytes(len(copy)))
    yield
    path.write_bytes(copy)


@contextmanager
def linked(path: Path, copy: bytes, patch: Patch) -> Iterator[None]:
    with moved(path, copy, patch):
        path.with_name("other").write_bytes(copy[:-1])
        path.symlink_to("other")
        yield
        path.unlink()


@contextmanager
def replaced(path: Path, copy: bytes, patch: Patch) -> Iterator[None]:
    path.with_name("other").write_bytes(copy.replace(b"fine", b"rude"))
    path.with_name("other").replace(path)
    yield
    path.with_name("again").write_bytes(copy)
    path.with_name("again").replace(path)


@contextmanager
def a_folder(path: Path, copy: bytes, patch: Patch) -> Iterator[None]:
    with moved(path, copy, patch):
        path.mkdir()
        yield
        path.rmdir()


@contextmanager
def full(path: Path, copy: bytes, patch: Patch) -> Iterator[None]:
    def write(file: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with patch.context() as patched:
        patched.setattr(os, "write", write)
        yield


@contextmanager
def moved_while_synced(path: Path, copy: bytes, patch: Patch) -> Iterator[None]:
    aside = path.with_name("aside")

    def fsync(file: int) -> None:
        if not aside.exists():
            path.rename(aside)

    with patch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        yield
    aside.rename(path)


@contextmanager
def closed(path: Path, copy: bytes, patch: Patch) -> Iterator[None]:
    path.chmod(0)
    yield
    path.chmod(0o600)


@contextmanager
def closed_folder(path: Path, copy: bytes, patch: Patch) -> Iterator[None]:
    path.parent.chmod(0o500)
    yield
    path.parent.chmod(0o700)


@contextmanager
def late(path: Path, copy: bytes, patch: Patch) -> Iterator[None]:
    with patch.context() as patched:
        patched.setattr(os, "fsync", lambda file: time.sleep(0.005))
        yield


@contextmanager
def copied(path: Path, copy: bytes, patch: Patch) -> Iterator[None]:
    """As by an editor that writes a file anew."""
    path.with_name("again").write_bytes(copy)
    path.with_name("again").replace(path)
    yield


LOST: list[Fault] = [moved, deleted, cut, written_to, written_over, linked, replaced, a_folder,
                     moved_while_synced]  # fmt: skip
KEPT: list[Fault] = [full, closed, closed_folder, late, copied]
