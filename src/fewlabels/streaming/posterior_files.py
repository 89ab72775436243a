"""P(label) of every row as Parquet, one file per unit, each written whole or not at all."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fewlabels.data.binary import parquet_batches
from fewlabels.data.databases import target_table, writing_tables
from fewlabels.data.stores import is_database
from fewlabels.errors import UsageError, one_line, redacted
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.streaming.checkpoint import default_folder

ITEM = "item"
_RUN = b"fewlabels.run"
Write = Callable[[str, int, Predictions, LabelPosterior], None]


_LAST_FILES = 20
"""Tenths of a second in which a worker that is stopped ends its last file."""


@dataclass(frozen=True)
class PosteriorFolder:
    """A folder that exists once all its files do; until then they are in a draft.

    The draft is beside it, for a rename must stay on one file system; or inside, if the folder
    exists and so may be a disk of its own; or, of a `table` of a database, beside the checkpoints.
    A resumed run finds the draft again.
    """

    name: str

    draft: Path = field(init=False)
    """Where the files are until they are whole."""

    table: str | None = field(init=False, default=None, repr=False)
    """The address of the table that the rows go to at last, instead of the folder."""

    def __post_init__(self) -> None:
        if is_database(self.name):
            target_table(self.name)
            object.__setattr__(self, "table", self.name)
            digest = hashlib.blake2b(redacted(self.name).encode(), digest_size=12).hexdigest()
            object.__setattr__(self, "name", str(default_folder() / f"posterior-{digest}"))
        target = Path(os.path.realpath(self.name))
        inside = target / ".unfinished"
        beside = target.with_name(f".{target.name[:50]}.unfinished")
        object.__setattr__(self, "draft", inside if target.is_dir() else beside)

    def place(self) -> None:
        """Let the draft take its place."""
        if self.table is not None:
            with writing_tables({self.table: self.batches}):
                pass
            self.discard()
            return
        draft, target = self.draft, Path(os.path.realpath(self.name))
        try:
            for path in draft.glob(".*"):
                path.unlink()  # of a worker that was killed
            if draft.parent != target:
                os.rename(draft, target)
                return
            parts = sorted(path.name for path in draft.iterdir())
            for name in parts:
                os.replace(draft / name, target / name)
            for path in self._there():
                if path.name not in parts:
                    path.unlink()  # of this run when there were more
            draft.rmdir()
        except OSError as error:
            raise self.refused(error) from None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of all files of the draft, in their order."""
        for path in sorted(self.draft.glob("part-*")):
            yield from parquet_batches(path, pq.read_schema(path).names)

    def discard(self) -> None:
        """Delete the draft, in which workers that were stopped may still put a last file."""
        for _ in range(_LAST_FILES):
            with suppress(OSError):
                for path in self.draft.iterdir():
                    path.unlink(missing_ok=True)
                self.draft.rmdir()
            if not self.draft.exists():
                return
            time.sleep(0.1)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Exclude other processes meanwhile; the lock ends with the process."""
        with ExitStack() as stack:
            try:
                self.draft.mkdir(parents=True, exist_ok=True)
                stack.enter_context(_locked(self.draft, self.name))
            except OSError as error:
                raise self.refused(error) from None
            try:
                yield
            finally:
                with suppress(OSError):  # unless there is something in it to go on from
                    self.draft.rmdir()

    def check(self, run: str | None) -> None:
        """Refuse a folder with files, unless they are those of the resumed run."""
        for path in self._there():
            if run is None or not _is_of(path, run):
                raise UsageError(
                    f"--posterior {self.name!r} holds files already ({path.name})"
                    + ("" if run is None else " that are not of this run")
                    + "; name a new folder, or empty it"
                )

    def _there(self) -> list[Path]:
        try:
            found = sorted(Path(self.name).iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self.refused(error) from None
        return [path for path in found if not path.name.startswith(".")]

    def refused(self, error: OSError) -> UsageError:
        """The message about what the system refuses."""
        reason = getattr(error, "strerror", None) or str(error)
        return UsageError(
            f"cannot write to --posterior {self.name!r}: {one_line(reason)}; make room there, or "
            "name another folder; what was written is whole, and --resume goes on after it"
        )


@contextmanager
def _locked(folder: Path, name: str) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # systems without such locks
        yield
        return
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise UsageError(
            f"another process writes to --posterior {name!r}; wait for it, or name another folder"
        ) from None
    try:
        yield
    finally:
        os.close(lock)


def _is_of(path: Path, run: str) -> bool:
    """Whether this run wrote the file."""
    try:
        known = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowException):
        return False
    return bool(known.get(_RUN) == run.encode())


@dataclass(frozen=True)
class PosteriorFiles:
    """Files part-00000.parquet, part-00001.parquet, ... of a folder.

    Columns: `file` and `row`, which say where a row comes from (rows of a file count from 0);
    `item` and `domain`, where there are such; `likeliest`, the class of largest probability, the
    first of equals; `known`, whether the label was given; and `p__<method>__<class>`. Every file
    says in its footer which run wrote it: `run`.
    """

    folder: PosteriorFolder
    method: str
    classes: tuple[Any, ...]
    run: str = ""

    def start(self, done: int = 0) -> bool:
        """Make the draft, with the files of the first `done` units and no others.

        Gives whether it has all of those; if it does not, it is left as it is.
        """
        draft = self.folder.draft
        try:
            draft.mkdir(parents=True, exist_ok=True)
            there = set(draft.glob("*part-*"))
            keep = {self.path(number) for number in range(done)}
            if not all(path in there and _is_of(path, self.run) for path in keep):
                return False
            for path in there - keep:
                path.unlink()
            probe = draft / f".part-{secrets.token_hex(8)}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise self.folder.refused(error) from None
        return True

    def path(self, number: int) -> Path:
        """The file of a unit."""
        return self.folder.draft / f"part-{number:05d}.parquet"

    @contextmanager
    def writing(self, number: int) -> Iterator[Write]:
        """Write the rows of a unit; the file appears when all of them are written."""
        path = self.path(number)
        draft = path.with_name(f".part-{number:05d}.{secrets.token_hex(8)}")
        writer: pq.ParquetWriter | None = None

        def write(file: str, first_row: int, rows: Predictions, posterior: LabelPosterior) -> None:
            nonlocal writer
            table = self._table(file, first_row, rows, posterior)
            if writer is None:
                writer = pq.ParquetWriter(
                    draft, table.schema, compression="zstd", write_page_checksum=True
                )
            writer.write_table(table)

        try:
            yield write
            if writer is not None:
                writer.close()
                # A checkpoint will say that this part is done: it must outlast a power cut, too.
                with draft.open("rb") as written:
                    os.fsync(written.fileno())
                os.replace(draft, path)
        except OSError as error:
            raise self.folder.refused(error) from None
        finally:
            with suppress(OSError, ValueError, pa.ArrowException):
                if writer is not None and writer.is_open:
                    writer.close()
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def _table(
        self, file: str, first_row: int, rows: Predictions, posterior: LabelPosterior
    ) -> pa.Table:
        n, p = rows.n_items, posterior.probabilities
        name = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), [file])
        columns: dict[str, Any] = {"file": name, "row": np.arange(first_row, first_row + n) + 1}
        for name, values in rows.item_names.items():
            columns[name] = pa.array(values, pa.string())
        if rows.domain is not None:
            domain = [None if d is None else str(d) for d in rows.domain.tolist()]
            columns["domain"] = pa.array(domain, pa.string())
        whole = all(isinstance(c, (int, np.integer)) for c in self.classes)
        classes = pa.array([int(c) if whole else str(c) for c in self.classes])
        columns["likeliest"] = classes.take(pa.array(p.argmax(axis=1)))
        columns["known"] = rows.labeled
        for k, c in enumerate(self.classes):
            columns[f"p__{self.method}__{c}"] = p[:, k]
        table = pa.table({key: pa.array(c) for key, c in columns.items()})
        return table.replace_schema_metadata({_RUN: self.run.encode()})
