"""Writing the record of labels: an event is on the disk before anybody hears that it is saved.

One process at a time writes to a record. Bytes go to the place where the last whole line ends, so a
line that was cut short, by a crash or a full disk, is written over and never followed.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from fewlabels.data.label_record import (
    Decision,
    Event,
    Header,
    LabelRecord,
    Ledger,
    read_record,
)
from fewlabels.data.table import told_of
from fewlabels.errors import InputError, UsageError, listed, quoted


class NotSavedError(UsageError):
    """An event could not be written; the record is what it was before."""


class Journal:
    """A record that is open for writing, and what stands in it.

    Parameters
    ----------
    path
        The file, which is made where there is none.
    header
        Of which items it is; a record of other ones is refused.

    Raises
    ------
    InputError
        If there is a file that is no record, or one of other items or classes.
    UsageError
        If it cannot be written, or another page writes to it.
    """

    def __init__(self, path: str | Path, header: Header) -> None:
        self.path = Path(path)
        self.torn = 0
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | _CLOSE_ON_EXEC, 0o666)
        except OSError as error:
            raise UsageError(
                f"--labels {str(path)!r} cannot be written: {error.strerror}; name a file in a "
                "folder that exists and is writable"
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
        size = os.fstat(self._file).st_size
        self.ledger = Ledger()
        self._end = 0
        if not size:
            self.header = header
            self._put(header.line())
            _sync_folder(self.path.parent)
            self.n_events = 0
            return
        record = read_record(self.path)
        self.header, self.torn, self._end = record.header, record.torn, record.size
        with told_of(str(self.path)):
            _refuse_other(record, header)
        self.n_events = record.n_events
        self.ledger = record.ledger

    @property
    def decisions(self) -> dict[str, Decision]:
        """What stands of every item that was decided, in the order of the decisions."""
        return self.ledger.decisions

    def add(self, event: Event) -> None:
        """Write an event, and come back when it is on the disk.

        Raises
        ------
        NotSavedError
            If it could not be written.
        """
        self._put(event.line())
        self.n_events += 1
        self.ledger.take(event)

    def _put(self, line: bytes) -> None:
        try:
            os.lseek(self._file, self._end, os.SEEK_SET)
            rest = line
            while rest:
                rest = rest[os.write(self._file, rest) :]
            # What a longer line that was cut short has left behind.
            os.ftruncate(self._file, self._end + len(line))
            os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise NotSavedError(
                f"{self.path} cannot be written: {error.strerror}; what was saved before is there, "
                "make room and try again"
            ) from None
        self._end += len(line)

    def close(self) -> None:
        """Let others write to the record."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()


def _refuse_other(record: LabelRecord, header: Header) -> None:
    """Refuse to go on with a record of other items, or other classes.

    Raises
    ------
    InputError
        With what differs.
    """
    own = record.header
    if (own.items, own.digest) != (header.items, header.digest):
        raise InputError(
            f"is the record of another file, {quoted(own.file)}: its {own.items:,} items (column "
            f"{quoted(own.item)}) are not the {header.items:,} of {quoted(header.file)}; name "
            "another record with --labels"
        )
    if set(own.classes) != set(header.classes):
        raise InputError(
            f"is a record of the classes {listed(own.classes)}, and {quoted(header.file)} has "
            f"{listed(header.classes)}; say them with --classes, or name another record with "
            "--labels"
        )


def _sync_folder(folder: Path) -> None:
    """Let the disk know of a new file in the folder, where the system can."""
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
        """Whether nobody else holds the lock; the system lets go of it with the process."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks: nobody can be told apart
            return True
        return True
