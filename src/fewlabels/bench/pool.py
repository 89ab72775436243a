"""Cells on every core: whoever computes one keeps it, so that a kill loses that at hand alone."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from threadpoolctl import threadpool_limits

from fewlabels.bench.cells import Body, Cell
from fewlabels.bench.folder import writing
from fewlabels.bench.parts import Parts
from fewlabels.errors import InputError
from fewlabels.streaming.executors import Failed, not_while_starting

Job = tuple[Cell, ...]
"""Cells that share a split, computed one after another by one worker."""

_MEND = "go on with `resume` and fewer `workers`"
_GUARD = (
    "a worker process ended too early; a script that runs a benchmark with several workers "
    "must do so under `if __name__ == '__main__':`"
)


class Computer(Protocol):
    """What computes cells; it may keep what cells share."""

    def run(self, cell: Cell) -> Body:
        """Compute a cell; what a method cannot do is part of the answer."""
        ...


@dataclass
class _Worker:
    """Computes jobs with a computer of its own, which it makes where it works, and keeps cells."""

    make: Callable[[], Computer]
    folder: Path
    parts: Parts | None
    computer: Computer | None = field(default=None, init=False)

    def __call__(self, job: Job) -> list[tuple[Cell, Body]]:
        try:
            return list(self.each(job))
        except MemoryError:
            raise InputError(
                "a worker ran out of memory: go on with `resume`, fewer `workers`"
            ) from None

    def each(self, job: Job) -> Iterator[tuple[Cell, Body]]:
        self.computer = self.computer or self.make()
        for cell in job:
            body = self.computer.run(cell)
            if self.parts is not None:
                with writing(self.folder):
                    self.parts.write(cell, body)
            yield cell, body


def run_jobs(
    jobs: Sequence[Job],
    make: Callable[[], Computer],
    workers: int,
    folder: Path,
    parts: Parts | None = None,
) -> Generator[tuple[Cell, Body], None, None]:
    """Every cell with what it found, in whatever order jobs finish, kept among the parts before.

    Each worker computes with a computer of its own, from `make`, which can be pickled. No answer
    depends on `workers`; one of them computes in this process.

    Raises
    ------
    InputError
        If workers are killed again and again, or run out of memory; if a part cannot be written.
    """
    worker = _Worker(make, folder, parts)
    count = min(workers, len(jobs))
    if count <= 1:
        with threadpool_limits(limits=1):
            for job in jobs:
                yield from worker.each(job)
        return
    from fewlabels.streaming.process_executor import ProcessExecutor

    not_while_starting()
    with ProcessExecutor(count, mend=_MEND, guard=_GUARD) as executor:
        for answer in executor.as_they_come(worker, jobs):
            if isinstance(answer, Failed):
                raise answer.error
            yield from answer
