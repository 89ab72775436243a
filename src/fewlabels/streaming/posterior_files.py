"""P(label) of every row as Parquet, one file per unit, each written whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fewlabels.errors import UsageError, one_line
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

ITEM = "item"
_RUN = b"fewlabels.run"
_PART = re.compile(r"part-\d{5,}\.parquet")
Write = Callable[[str, int, Predictions, LabelPosterior], None]


@dataclass(frozen=True)
class PosteriorFiles:
    """A folder of files part-00000.parquet, part-00001.parquet, ...

    Columns: `file` and `row`, which say where a row comes from (rows of a file count from 0);
    `item` and `domain`, where there are such; `likeliest`, the class of largest probability, the
    first of equals; `known`, whether the label was given; and `p__<method>__<class>`. Every file
    says in its footer which run wrote it: `run`.
    """

    folder: str
    method: str
    classes: tuple[Any, ...]
    run: str = ""

    def start(self, done: int = 0, *, resumed: bool = False) -> bool:
        """Make the folder, with the files of the first `done` units and no others.

        Gives whether it has all of those; if it does not, or there is something else in it, it is
        left as it is.

        Raises
        ------
        UsageError
            If it cannot be written to, holds what this run did not write, or holds files and the
            run is not one that goes on.
        """
        folder = Path(self.folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            there = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
            for path in there:
                if not (resumed and self._ours(path)):
                    raise UsageError(
                        f"--posterior {self.folder!r} holds files already ({path.name})"
                        + (" that are not of this run" if resumed else "")
                        + "; name a new folder, or empty it"
                    )
            keep = [self.path(number) for number in range(done)]
            if not set(keep) <= set(there):
                return False
            drafts = folder.glob(".part-*") if resumed else ()
            for path in [*(p for p in there if p not in keep), *drafts]:
                path.unlink()
            probe = folder / f".{secrets.token_hex(8)}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise self._refused(error) from None
        return True

    def _ours(self, path: Path) -> bool:
        """Whether a file is one that this run wrote."""
        if _PART.fullmatch(path.name) is None:
            return False
        try:
            known = pq.read_schema(path).metadata or {}
        except (OSError, pa.ArrowException):
            return False
        return bool(known.get(_RUN) == self.run.encode())

    def path(self, number: int) -> Path:
        """The file of a unit."""
        return Path(self.folder) / f"part-{number:05d}.parquet"

    @contextmanager
    def writing(self, number: int) -> Iterator[Write]:
        """Write the rows of a unit; the file appears when all of them are written.

        Raises
        ------
        UsageError
            Where the system refuses to write (a full disk, say).
        """
        draft = Path(self.folder) / f".part-{number:05d}.{secrets.token_hex(8)}"
        writer: pq.ParquetWriter | None = None

        def write(file: str, first_row: int, rows: Predictions, posterior: LabelPosterior) -> None:
            nonlocal writer
            table = self._table(file, first_row, rows, posterior)
            if writer is None:
                writer = pq.ParquetWriter(draft, table.schema, compression="zstd")
            writer.write_table(table)

        try:
            yield write
            if writer is not None:
                writer.close()
                # A checkpoint will say that this part is done: it must outlast a power cut, too.
                with draft.open("rb") as written:
                    os.fsync(written.fileno())
                os.replace(draft, self.path(number))
        except OSError as error:
            raise self._refused(error) from None
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
        classes = pa.array(self._class_values)
        columns["likeliest"] = classes.take(pa.array(p.argmax(axis=1)))
        columns["known"] = rows.labeled
        for k, c in enumerate(self.classes):
            columns[f"p__{self.method}__{c}"] = p[:, k]
        table = pa.table({key: pa.array(c) for key, c in columns.items()})
        return table.replace_schema_metadata({_RUN: self.run.encode()})

    @property
    def _class_values(self) -> list[Any]:
        if all(isinstance(c, (int, np.integer)) for c in self.classes):
            return [int(c) for c in self.classes]
        return [str(c) for c in self.classes]

    def _refused(self, error: OSError) -> UsageError:
        reason = getattr(error, "strerror", None) or str(error)
        return UsageError(
            f"cannot write to --posterior {self.folder!r}: {one_line(reason)}; make room there, or "
            "name another folder; what was written is whole, and --resume goes on after it"
        )
