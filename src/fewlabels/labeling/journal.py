"""Writing the record of labels: an event is on the disk before it is reported as saved.

One process at a time writes to a record. Bytes go to the place where the last whole line ends, so a
line that was cut short, by a crash or a full disk, is written over and never followed. Before and
after each event the file of the record's name is checked: if it is gone, or lacks the bytes that
were written, the event is not saved. Everything saved is kept in memory as well, for that case.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Self

from fewlabels.data.label_record import (
    ENDING,
    Decision,
    Event,
    Header,
    ItemsHere,
    LabelRecord,
    Ledger,
    ends_with_an_event,
    read_event,
    read_record,
)
from fewlabels.data.table import naming_file
from fewlabels.errors import InputError, UsageError, listed, one_line, quoted


class NotSavedError(UsageError):
    """An event could not be written; the record is what it was before, or `lost`."""

    def __init__(self, message: str, *, lost: bool = False) -> None:
        super().__init__(message)
        self.lost = lost


class Journal:
    """A record that is open for writing, and its content.

    The file is created if it does not exist. One that is no record, or one of other items or
    classes than `header` says, is refused, and so is one that another page writes to. `contents`
    stands for the contents of items that the record decides: see `Items.contents`.
    """

    def __init__(
        self, path: str | Path, header: Header, contents: Mapping[str, str | None] | None = None
    ) -> None:
        self.path = Path(path)
        self.notes: tuple[str, ...] = ()
        self._here = ItemsHere(header.file, header.items, header.digest, contents or {})
        self._made = False
        self._rescue: Path | None = None
        self._rescuing = threading.Lock()
        try:
            if not os.path.exists(self.path):
                with suppress(FileExistsError):  # another page was first
                    _create(Path(os.path.realpath(self.path)), header.line())
                    self._made = True
            self._file = os.open(self.path, os.O_RDWR | _CLOSE_ON_EXEC)
        except (OSError, ValueError) as error:  # a path with a NUL is no value
            raise UsageError(
                f"--labels {str(path)!r} cannot be written: {getattr(error, 'strerror', error)}; "
                "name a file in a folder that exists and is writable"
            ) from None
        try:
            if not stat.S_ISREG(os.fstat(self._file).st_mode):
                raise UsageError(
                    f"--labels {str(path)!r} is no file that keeps what is written; name another"
                )
            self._lock()
            self._begin(header)
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self) -> None:
        if not _locked(self._file):
            raise UsageError(
                f"{self.path}: another page writes to this record; close that one, or name "
                "another record with --labels"
            )

    def _begin(self, header: Header) -> None:
        self.ledger = Ledger()
        self._content, self._tail = bytearray(), b""  # whole lines, and what stands behind them
        self._mark = _mark(os.fstat(self._file))
        if not os.fstat(self._file).st_size:
            self._put(header.line())
        elif ends_with_an_event(content := _content(self._file)):
            os.lseek(self._file, len(content), os.SEEK_SET)
            _write(self._file, b"\n")
            os.fsync(self._file)
        record = read_record(self.path)
        self.header = record.header
        with naming_file(str(self.path)):
            differ = record.match(self._here, all_items=True)
            _refuse_other_classes(record, header)
        self.notes = (*record.notes(self.path), *(f"{self.path}: {note}" for note in differ))
        self.n_events = record.n_events
        self.ledger = record.ledger
        self._mark, content = _mark(os.fstat(self._file)), _content(self._file)
        self._content, self._tail = bytearray(content[: record.size]), content[record.size :]

    @property
    def decisions(self) -> dict[str, Decision]:
        """The current decision on every item that was decided, in the order of the decisions."""
        return self.ledger.decisions

    def add(self, event: Event) -> None:
        """Write an event, and return when it is on the disk.

        What could not be read again is refused, and nothing is written; NotSavedError if writing
        fails.
        """
        line = event.line()
        try:
            read_event(line, self.header)
        except InputError as error:
            raise InputError(f"this cannot be recorded: {error}") from None
        self._put(line)
        self.n_events += 1
        self.ledger.take(event)

    @property
    def content(self) -> bytes:
        """All that was saved, as a record."""
        return bytes(self._content)

    def lost(self) -> str | None:
        """Why the file of the record's name lacks what was saved; None if it has it."""
        try:
            named = os.stat(self.path)
            if _mark(named) == self._mark:
                return None
            wholes = self.content, self.content + self._tail
            same = stat.S_ISREG(named.st_mode) and named.st_size <= len(wholes[1])
            if same and self.path.read_bytes() in wholes:
                return None  # put back, perhaps as a copy
        except FileNotFoundError:
            return "is gone"
        except OSError as error:
            return f"cannot be reached ({error.strerror})"
        return "is not what was written (another file has its name, or something changed it)"

    def whereabouts(self) -> str:
        """A line that says where the labels are; those of a lost record go to a file beside it."""
        n = sum(d.label is not None for d in self.decisions.values())
        what, path = f"{n:,} label{'s' * (n != 1)}", one_line(str(self.path))
        lost = self.lost()
        if lost is None:
            return f"{what} in {path}; the same command goes on"
        if not self.n_events:
            return f"{path} {lost}; it held no label"
        try:
            rescue = one_line(str(self._rescued()))
        except OSError as error:
            return f"{path} {lost}, and what it held cannot be written beside it: {error.strerror}"
        return f"{path} {lost}; {what} in {rescue}, which --labels goes on with"

    def _rescued(self) -> Path:
        stem = self.path.name.removesuffix(ENDING)
        with self._rescuing:
            numbers = count(1)
            while self._rescue is None:
                path = self.path.with_name(f"{stem}.rescued{next(numbers)}{ENDING}")
                with suppress(FileExistsError):
                    _create(path, self.content)
                    self._rescue = path
            return self._rescue

    def _put(self, line: bytes) -> None:
        lost, end = self.lost(), len(self._content)
        if lost is None:
            try:
                self._follow()
                os.lseek(self._file, end, os.SEEK_SET)
                _write(self._file, line)
                # What a longer line that was cut short has left behind.
                os.ftruncate(self._file, end + len(line))
                os.fsync(self._file)
            except OSError as error:
                self._take_back(end)
                raise NotSavedError(
                    f"{self.path} cannot be written: {error.strerror}; what was saved before is "
                    "there, make room and try again"
                ) from None
            if not self._is_by_its_name(end + len(line)):
                self._take_back(end)
                lost = "was moved or changed while it was written"
        if lost is not None:
            raise NotSavedError(
                f"{self.path} {lost}; put it back as it was and try again, or end, and what was "
                "saved before is written to another file",
                lost=True,
            )
        self._content += line
        self._tail, self._rescue, self._mark = b"", None, _mark(os.fstat(self._file))

    def _follow(self) -> None:
        """Switch to the file that has replaced the one that was open."""
        if os.path.samestat(os.stat(self.path), os.fstat(self._file)):
            return
        file = os.open(self.path, os.O_RDWR | _CLOSE_ON_EXEC)
        if not _locked(file):
            os.close(file)
            raise OSError(0, "another page writes to it")
        os.close(self._file)
        self._file = file

    def _is_by_its_name(self, size: int) -> bool:
        try:
            named, held = os.stat(self.path), os.fstat(self._file)
        except OSError:
            return False
        return os.path.samestat(named, held) and named.st_size == held.st_size == size

    def _take_back(self, end: int) -> None:
        """Cut off what was written of a line that is not saved."""
        with suppress(OSError):
            if os.fstat(self._file).st_size > end:
                os.ftruncate(self._file, end)
        with suppress(OSError):
            content = _content(self._file)
            if content[:end] == self._content:
                self._tail, self._mark = content[end:], _mark(os.fstat(self._file))

    def discard(self) -> None:
        """Close it, and remove the file if this journal created it and nothing is in it."""
        if self._made and not self.n_events and self.lost() is None:
            with suppress(OSError):
                os.unlink(self.path)
        self.close()

    def close(self) -> None:
        """Let others write to the record."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _refuse_other_classes(record: LabelRecord, header: Header) -> None:
    """Refuse to go on with a record of other classes."""
    ours = record.header
    if set(ours.classes) != set(header.classes):
        raise InputError(
            f"is a record of the classes {listed(ours.classes)}, and {quoted(header.file)} has "
            f"{listed(header.classes)}; say them with --classes, or name another record with "
            "--labels"
        )


def _mark(status: os.stat_result) -> tuple[int, ...]:
    """Identity and state of a file, to detect that it was replaced or changed."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _content(file: int) -> bytes:
    with open(file, "rb", closefd=False) as opened:
        opened.seek(0)
        return opened.read()


def _write(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]


def _create(path: Path, content: bytes) -> None:
    """Create a file for its owner alone, which appears only when all of it is on the disk."""
    file, draft = tempfile.mkstemp(prefix=".fewlabels-", dir=path.parent)
    try:
        try:
            _write(file, content)
            os.fsync(file)
        finally:
            os.close(file)
        try:
            os.link(draft, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if os.path.lexists(path):
                raise FileExistsError from None
            os.rename(draft, path)
    finally:
        with suppress(OSError):
            os.unlink(draft)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Write the folder's entry of a new file to the disk, where the system can."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)

if sys.platform == "win32":
    import msvcrt

    _FAR = 2**40  # a byte that no record reaches: locked ones cannot be read by others

    def _locked(file: int) -> bool:
        os.lseek(file, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _locked(file: int) -> bool:
        """Whether the lock was free; the system releases it with the process."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks: writers cannot be told apart
            return True
        return True
