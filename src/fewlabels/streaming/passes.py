"""A pass over all units: results added in the order of the units, checkpoints, progress."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from fewlabels.data.sources import BadFile
from fewlabels.errors import FewlabelsError, InputError
from fewlabels.kernels.arrays import Ints, UInts
from fewlabels.streaming.checkpoint import Checkpoint
from fewlabels.streaming.executors import Executor, Failed
from fewlabels.streaming.reading import Batch
from fewlabels.streaming.sketch import counts_of
from fewlabels.streaming.units import Unit

R = TypeVar("R")

COUNT = "counting repeated rows"

SECONDS_BETWEEN = 1.0
"""Seconds between checkpoints, at least."""
SHARE = 20
"""A checkpoint takes at most one part in so many of the time."""


class Progress(NamedTuple):
    """Progress of a pass; bytes are those of the files, rows those of the units done."""

    step: str
    done_bytes: int
    all_bytes: int
    rows: int
    seconds: float

    @property
    def rate(self) -> float:
        """Rows per second; NaN before any is done."""
        return self.rows / self.seconds if self.rows and self.seconds > 0 else float("nan")


class State(Protocol):
    """The sum of the results of units; `pack` packs it if there are checkpoints."""

    def take(self, result: Any) -> int:
        """Add the result of the next unit; how many rows it has."""


S = TypeVar("S", bound=State)
W = TypeVar("W")


class Piece(NamedTuple):
    """A unit, its number, and the number in its file of its first row, where it is known."""

    unit: Unit
    number: int
    first_row: int


class BatchSource(Protocol):
    """Provides the rows of a unit; it is sent to where the work is done."""

    def batches(self, unit: Unit) -> Iterator[Batch]:
        """The rows of a unit, so many at a time."""
        ...


@dataclass(eq=False)
class Counts:
    """Counts (r,) of some rows among `n_rows`."""

    counts: Ints
    n_rows: int = 0

    @staticmethod
    def none(size: int) -> Counts:
        """No row yet."""
        return Counts(np.zeros(size, dtype=np.int64))

    def take(self, other: Counts) -> int:
        """Add those among other rows; how many these are."""
        self.counts += other.counts
        self.n_rows += other.n_rows
        return other.n_rows


class RestartPasses(Exception):  # noqa: N818 - no error: a file counted in turned out bad
    """All passes must be done again, without some file."""


@dataclass(eq=False)
class Passes:
    """Runs passes over the units of a layout.

    A pass may depend on the results of earlier ones. Its checkpoint is therefore valid only for the
    same units as theirs, and a file that turns out bad in it has been counted by them.

    `checkpoint` makes the checkpoint of a pass by its name (None: no checkpoints); with `resume`
    work goes on from them. With `skip`, files that cannot be read are left out and listed in `bad`.
    """

    executor: Executor
    units: tuple[Unit, ...]
    checkpoint: Callable[[str], Checkpoint] | None = None
    resume: bool = False
    skip: bool = False
    progress: Callable[[Progress], None] | None = None
    bad: dict[str, BadFile] = field(default_factory=dict)
    resumed: list[str] = field(default_factory=list)
    _before: str = ""  # digest of the units of the passes that came before
    _kept: float = 0.0

    @property
    def used(self) -> list[Unit]:
        """The units of files that are not left out."""
        return [unit for unit in self.units if unit.path not in self.bad]

    def facts(self, engine: str, skipped: Sequence[BadFile]) -> dict[str, Any]:
        """Diagnostics of files: who did the work, on which files, and which were left out."""
        return {
            "engine": engine,
            "files": len({unit.path for unit in self.used}),
            "parts": len(self.used),
            "skipped_files": len(skipped),
            "resumed": list(self.resumed),
        }

    def run(
        self,
        step: str,
        function: Callable[[Piece], R],
        empty: Callable[[], S],
        n_rows: Sequence[int] | None = None,
        begin: Callable[[int], bool] | None = None,
    ) -> S:
        """The sum of a function's results over all units, of so many rows each if that is known.

        `begin` is called before any work, with the number of units already done, and says whether
        the output that they left elsewhere still exists. If not, they are done again.
        """
        state, saved = empty(), self._saved(step)
        if saved is not None and type(saved.get("state")) is not type(state):
            saved = None  # it holds something else, whoever wrote it
        done = 0 if saved is None else len(saved["done"])
        if begin is not None and not begin(done) and done:
            saved, done = None, 0
            begin(0)
        if saved is not None:
            state = saved["state"]
            self.bad |= self._bad_of(saved)
            self.resumed.append(f"{step}: {done} of {len(self.used)} parts were done already")
        self._fold(step, function, state, done, n_rows)
        self._before = _digest(self.used)
        return state

    def counts(self, rows: BatchSource, ranked: Callable[[Batch], UInts], ranks: UInts) -> Ints:
        """Total counts of rows that may be very frequent, in a pass of its own.

        `ranks` (r,) ascend, `ranked` gives those of the rows that count.
        """
        function, empty = partial(count_unit, rows, ranked, ranks), partial(Counts.none, len(ranks))
        return self.run(COUNT, function, empty).counts

    def fitted(self, step: str) -> Any:
        """What was fitted after the passes so far; None if it has not been kept."""
        saved = self._saved(step)
        return None if saved is None or saved["done"] else saved.get("state")

    def keep_fitted(self, step: str, fitted: object, *, seldom: bool = False) -> None:
        """Keep a fit, so that a run that is killed repeatedly need not repeat it.

        With `seldom`, for a value that grows, it is saved no more often than a pass is.
        """
        now = time.monotonic()
        if seldom and now - self._kept < SECONDS_BETWEEN:
            return
        self._kept = now
        if self.checkpoint is not None:
            with suppress(TypeError):  # a label model of the user's own
                self._save(step, fitted, ())

    def _fold(
        self, step: str, function: Callable[[Piece], R], state: State, start: int,
        n_rows: Sequence[int] | None,
    ) -> None:  # fmt: skip
        units = self.used
        saved = begun = time.monotonic()
        cost = 0.0
        rows, done = 0, sum(unit.n_bytes for unit in units[:start])
        before, total = done, sum(unit.n_bytes for unit in units)
        taken = units[:start]
        todo = pieces(units, n_rows)[start:]
        answers = self.executor.map(function, todo)
        for piece, answer in zip(todo, answers, strict=True):
            unit = piece.unit
            done += unit.n_bytes
            if unit.path in self.bad:
                continue  # the rest of a file that is left out
            if isinstance(answer, Failed):
                self._save(step, state, taken)
                self._leave_out(unit, answer, taken)
                continue
            rows += state.take(answer)
            taken.append(unit)
            now = time.monotonic()
            if self.progress is not None:
                self.progress(Progress(step, done - before, total - before, rows, now - begun))
            if now - saved > max(SECONDS_BETWEEN, SHARE * cost):
                self._save(step, state, taken)
                saved = time.monotonic()
                cost = saved - now
        self._save(step, state, taken)

    def _leave_out(self, unit: Unit, answer: Failed, taken: Sequence[Unit]) -> None:
        """Note that a file is bad, or raise the reason if it may not be left out."""
        # What is no fault of the data (a disk that is full, say) is none of this file either.
        if not self.skip or not isinstance(answer.error, InputError):
            raise answer.error
        reason = str(answer.error).removeprefix(f"{unit.name}: ")
        self.bad[unit.path] = BadFile(unit.name, reason)
        if self._before or any(other.path == unit.path for other in taken):
            self._before = ""
            raise RestartPasses

    def _save(self, step: str, state: object, taken: Sequence[Unit]) -> None:
        if self.checkpoint is None:
            return
        stamps = {unit.path: unit.stamp for unit in self.units}
        value = {
            "before": self._before,
            "done": [_print(unit) for unit in taken],
            "bad": [[p, list(stamps[p]), bad.name, bad.reason] for p, bad in self.bad.items()],
            "state": state,
        }
        self.checkpoint(step).save(value)

    def _saved(self, step: str) -> Mapping[str, Any] | None:
        """The checkpoint, if a run over these units would have written it."""
        saved = None
        if self.resume and self.checkpoint is not None:
            saved = self.checkpoint(step).load()
        try:
            return None if saved is None else self._good_for_these(saved)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None  # whole, and not what a run writes

    def _good_for_these(self, saved: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if saved["before"] != self._before:
            return None
        bad = self._bad_of(saved)
        if len(bad) < len(saved["bad"]) or (bad and not self.skip):
            return None
        if self._before and bad.keys() - self.bad.keys():
            return None
        used = [_print(unit) for unit in self.used if unit.path not in bad]
        done = saved["done"]
        return saved if done == used[: len(done)] else None

    def _bad_of(self, saved: Mapping[str, Any]) -> dict[str, BadFile]:
        """The files that a checkpoint left out and that are still as they were then."""
        stamps = {unit.path: unit.stamp for unit in self.units}
        return {
            path: BadFile(name, reason)
            for path, stamp, name, reason in saved["bad"]
            if stamps.get(path) == tuple(stamp)
        }

    def whole(self, once: Callable[[], W]) -> W:
        """The result of `once`, started again where that helps.

        It is started again if a file turns out bad late, or if a checkpoint is complete but holds
        what no run writes; the latter once, as then nothing is resumed.
        """
        while True:
            try:
                return once()
            except RestartPasses:
                self.resume = False
            except (FewlabelsError, MemoryError):
                raise
            except Exception:
                if not self.resumed:
                    raise
                self.resume, self._before = False, ""
                self.bad.clear()
                self.resumed.clear()

    def clear(self, steps: Sequence[str]) -> None:
        """Delete the checkpoints: the work is done."""
        if self.checkpoint is not None:
            for step in steps:
                self.checkpoint(step).clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.executor.close()


def _print(unit: Unit) -> list[Any]:
    """A fingerprint of a unit and the state of its file."""
    return [unit.path, unit.start, unit.stop, unit.skip, *unit.stamp]


def _digest(units: Sequence[Unit]) -> str:
    """A digest of these units."""
    stamps = json.dumps([_print(unit) for unit in units])
    return hashlib.blake2b(stamps.encode(), digest_size=16).hexdigest()


def count_unit(
    rows: BatchSource, ranked: Callable[[Batch], UInts], ranks: UInts, piece: Piece
) -> Counts:
    """How often rows of these ranks, which ascend, are among the ranked rows of a unit."""
    out = Counts.none(len(ranks))
    for batch in rows.batches(piece.unit):
        out.take(Counts(counts_of(ranked(batch), ranks), batch.predictions.n_items))
    return out


def pieces(units: Sequence[Unit], n_rows: Sequence[int] | None) -> list[Piece]:
    """Units with their numbers and, once the numbers of their rows are known, their places."""
    out, first, path = [], 0, ""
    for number, unit in enumerate(units):
        first, path = (0, unit.path) if unit.path != path else (first, path)
        known = None if unit.filter.where is not None else unit.first_row
        out.append(Piece(unit, number, first if known is None else known))
        first += 0 if n_rows is None else n_rows[number]
    return out
