"""Processes of this machine: one that dies is replaced, and its unit done again."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import TypeVar

from fewlabels.errors import FewlabelsError, InputError, UsageError, one_line
from fewlabels.streaming.executors import (
    IN_FLIGHT,
    MAIN_GUARD,
    Executor,
    Failed,
    answer_bytes,
    answer_of,
    as_they_come,
    in_order,
    load_function,
)
from fewlabels.streaming.interrupts import deaf_children, die_with_parent

T = TypeVar("T")
R = TypeVar("R")

TRIES = 5
"""How often a unit is begun before its workers' deaths are taken to be its doing."""

_READY, _FUNCTION, _UNIT = b"ready", b"function", b"unit"


class ProcessExecutor(Executor):
    """Worker processes; one thread here waits on each.

    `mend` ends the line about workers that die again and again, `guard` is the whole line about
    those that never began. The threads keep the workers busy while results are looked at, and a
    death is seen at once, by the one thread that knows which unit it was.
    """

    name = "processes"

    def __init__(
        self, workers: int, *, mend: str = "use fewer `workers`", guard: str = MAIN_GUARD
    ) -> None:
        self.workers, self._mend, self._guard = workers, mend, guard
        self._threads = ThreadPoolExecutor(workers, "fewlabels")
        self._seats = [_Seat() for _ in range(workers)]
        self._free: SimpleQueue[_Seat] = SimpleQueue()
        try:
            # All at once, so that they load their modules side by side.
            for seat in self._seats:
                seat.start()
                self._free.put(seat)
        except BaseException:
            self.close()
            raise

    def map(self, function: Callable[[T], R], units: Sequence[T]) -> Iterator[R | Failed]:
        """As `Executor.map`."""
        yield from in_order(self._submits(function), units, IN_FLIGHT * self.workers)

    def as_they_come(self, function: Callable[[T], R], units: Sequence[T]) -> Iterator[R | Failed]:
        """As `map`, but in whatever order units finish: nobody waits for a slow one."""
        yield from as_they_come(self._submits(function), units, IN_FLIGHT * self.workers)

    def close(self) -> None:
        """Kill the workers."""
        for seat in self._seats:
            seat.close()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for seat in self._seats:
            seat.disconnect()

    def _submits(self, function: Callable[[T], R]) -> Callable[[T], Future[R | Failed]]:
        payload = _pickled(function)

        def submit(unit: T) -> Future[R | Failed]:
            return self._threads.submit(self._work, payload, _pickled(unit))

        return submit

    def _work(self, function: bytes, unit: bytes) -> R | Failed:
        seat = self._free.get()
        try:
            for _ in range(TRIES):
                try:
                    packed = seat.ask(function, unit)
                except (EOFError, OSError):
                    death = seat.replace(self._guard)
                else:
                    return answer_of(packed)
        finally:
            self._free.put(seat)
        raise InputError(
            f"{TRIES} worker processes ended ({death}) while they worked on the same piece of the "
            f"data; the machine may be out of memory: {self._mend}"
        )


class _Seat:
    """A place for a worker process, and the process that has it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # between the thread that replaces and the one that closes
        self._closed = False
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._function: bytes | None = None  # what the process has; compared by identity
        self._ready = False

    def start(self) -> None:
        """Start a process."""
        with self._lock:
            if self._closed:
                raise CancelledError
            # A fork would copy the locks of our threads; "spawn" is the same on every system.
            context = multiprocessing.get_context("spawn")
            self.disconnect()
            self._connection, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,), daemon=True)
            self._process, self._function, self._ready = process, None, False
            with deaf_children():
                try:
                    process.start()
                except OSError as error:
                    raise _no_process(error) from None
            theirs.close()

    def ask(self, function: bytes, unit: bytes) -> bytes:
        """What the process answers; EOFError or OSError if it dies."""
        connection = self._connection
        assert connection is not None
        if not self._ready:
            self._ready = connection.recv_bytes() == _READY
        # The process reads all that is sent before it answers, so neither waits for the other.
        if self._function is not function:
            connection.send_bytes(_FUNCTION)
            connection.send_bytes(function)
            self._function = function
        connection.send_bytes(_UNIT)
        connection.send_bytes(unit)
        return connection.recv_bytes()

    def replace(self, guard: str) -> str:
        """Put another process here; gives how the one before ended.

        One that ended by itself before it began is the fault of a script without a guard.
        """
        with self._lock:
            code = self._end()
        if not self._ready and code is not None and code >= 0 and not self._closed:
            raise InputError(guard)
        self.start()
        return f"by {signal.Signals(-code).name}" if code and code < 0 else f"exit code {code}"

    def close(self) -> None:
        """Kill the process; no other comes."""
        with self._lock:
            self._closed = True
            if self._process is not None and self._process.pid is not None:
                self._process.kill()
                self._end()

    def disconnect(self) -> None:
        """Close our end; not while a thread waits on it."""
        if self._connection is not None:
            self._connection.close()

    def _end(self) -> int | None:
        """Wait for a process that has ended, or is about to, and forget it."""
        assert self._process is not None
        self._process.join(10)
        return self._process.exitcode


def _serve(connection: Connection) -> None:
    """What a worker does: read a function, then answer unit after unit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where there is no mask
    die_with_parent()
    # For the libraries that are loaded from now on; those that are there are told below.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    from threadpoolctl import threadpool_limits

    try:
        connection.send_bytes(_READY)
        while True:
            kind, content = connection.recv_bytes(), connection.recv_bytes()
            if kind == _FUNCTION:
                function = load_function(content)
                threadpool_limits(limits=1)
            else:
                connection.send_bytes(answer_bytes(function, content))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the executor is gone


def _pickled(value: object) -> bytes:
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"cannot be sent to another process: {one_line(str(error))}; define it in a module, or "
            "use the engine 'threads'"
        ) from None


def _no_process(error: OSError) -> FewlabelsError:
    return InputError(
        f"cannot start a worker process: {error.strerror or error}; use fewer `workers`"
    )
