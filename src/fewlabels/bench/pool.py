"""Processes that compute cells: results come back cell by cell, and no worker outlives us."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Protocol

from threadpoolctl import threadpool_limits

from fewlabels.bench.cells import Body, Cell
from fewlabels.engine.interrupts import die_with_parent
from fewlabels.errors import FewlabelsError, InputError
from fewlabels.wording import one_line

Job = tuple[Cell, ...]
"""Cells that share a split, computed one after another by one worker."""

_READY, _DONE = "ready", "done"


class Computer(Protocol):
    """What computes cells; it may keep what cells share."""

    def run(self, cell: Cell) -> Body:
        """Compute a cell; what a method cannot do is part of the answer."""
        ...


def run_jobs(
    jobs: Sequence[Job], make: Callable[[], Computer], workers: int
) -> Generator[tuple[Cell, Body], None, None]:
    """Every cell with what it found, in whatever order cells finish.

    Each worker computes with a computer of its own, from `make`, which can be pickled. No answer
    depends on `workers`; one of them computes in this process.

    Raises
    ------
    InputError
        If a worker is killed, or runs out of memory.
    """
    if workers <= 1 or len(jobs) <= 1:
        bench = make()
        with threadpool_limits(limits=1):
            for job in jobs:
                for cell in job:
                    yield cell, bench.run(cell)
        return
    with _started(min(workers, len(jobs)), make) as started:
        yield from _served(deque(jobs), started)


def _served(
    waiting: deque[Job], started: Mapping[Connection, BaseProcess]
) -> Iterator[tuple[Cell, Body]]:
    """Hand jobs to whoever is free; give what comes back."""
    busy = set(started)
    while busy:
        for connection in wait(list(busy)):
            assert isinstance(connection, Connection)
            try:
                kind, *rest = connection.recv()
                if kind == _READY and waiting:
                    connection.send(waiting.popleft())
                    continue
            except (EOFError, OSError):
                raise InputError(_death(started[connection])) from None
            if kind == _DONE:
                yield Cell(*rest[0]), rest[1]
            elif kind == _READY:
                busy.discard(connection)
            else:
                raise InputError(rest[0]) if rest[1] else RuntimeError(rest[0])


def _death(process: BaseProcess) -> str:
    process.join(5)
    code = process.exitcode
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return (
            f"a worker process was killed ({name}); the machine may be out of memory: go on with "
            "`resume` and fewer `workers`"
        )
    return (
        "a worker process ended too early; a script that runs a benchmark with several workers "
        "must do so under `if __name__ == '__main__':`"
    )


@contextmanager
def _started(count: int, make: Callable[[], Computer]) -> Iterator[dict[Connection, BaseProcess]]:
    """Worker processes, which are gone when the block ends, however it does."""
    # A fork would copy our threads' locks; "spawn" is the same on every system.
    context = multiprocessing.get_context("spawn")
    started: dict[Connection, BaseProcess] = {}
    try:
        with _deaf_to_interrupts():
            for _ in range(count):
                ours, theirs = context.Pipe()
                process: BaseProcess = context.Process(target=_work, args=(theirs,), daemon=True)
                process.start()
                theirs.close()
                started[ours] = process
        # Not as arguments: `start` waits forever for a process that dies before it reads them.
        for connection, process in started.items():
            try:
                connection.send(make)
            except OSError:
                raise InputError(_death(process)) from None
        yield started
    finally:
        for process in started.values():
            process.terminate()
        for connection, process in started.items():
            process.join()
            connection.close()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that start now ignore Ctrl-C from their first moment: it is ours to handle."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


def _work(connection: Connection) -> None:
    """What a worker does: ask for a job, send back each cell, ask again."""
    die_with_parent()
    try:
        bench: Computer = connection.recv()()
        with threadpool_limits(limits=1):
            while True:
                connection.send((_READY,))
                for cell in connection.recv():
                    connection.send((_DONE, tuple(cell), bench.run(cell)))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except MemoryError:
        connection.send(
            ("error", "a worker ran out of memory: go on with `resume`, fewer `workers`", True)
        )
    except Exception as error:
        known = isinstance(error, FewlabelsError)
        connection.send(("error", _said(error), known))


def _said(error: Exception) -> str:
    import traceback

    if isinstance(error, FewlabelsError):
        return one_line(str(error))
    return "".join(traceback.format_exception(error))
