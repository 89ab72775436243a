"""Processes of this machine: one per thread of a pool, with a pipe to it that nobody else holds.

A process that dies ends its pipe at once, even in the middle of an answer: its thread starts
another, and asks that one the same. Ctrl-C reaches every process of a terminal; the workers leave
it to the one that started them, and end with it.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any, TypeVar

from fewlabels.errors import InputError, UsageError, one_line
from fewlabels.streaming.executors import (
    IN_FLIGHT,
    MAIN_GUARD,
    NO_MAIN_GUARD,
    Executor,
    Failed,
    answer_bytes,
    answer_of,
    in_order,
    load_function,
)

T = TypeVar("T")
R = TypeVar("R")

TRIES = 10
"""How many workers may die, one after another, while they work on one unit."""

_GLANCE = 2.0  # seconds between two looks at whether workers are frozen
_GRACE = 10.0  # seconds for one that is out of step to end by itself

# Exit codes of a process that found itself running the main script, and failed there.
_NEVER_BEGAN = (NO_MAIN_GUARD, 1)


class ProcessExecutor(Executor):
    """A pool of worker processes.

    `mend` ends the line about workers that die again and again, `guard` is the whole line about
    those that never began.
    """

    name = "processes"

    def __init__(
        self, workers: int, *, mend: str = "use fewer `workers`", guard: str = MAIN_GUARD
    ) -> None:
        self.workers, self._mend, self._guard = workers, mend, guard
        self._answered = False
        self._closed = threading.Event()
        self._starting = threading.Lock()  # and what is asked of the system about its children
        self._started: list[_Worker] = []
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._threads = ThreadPoolExecutor(workers, "fewlabels")
        try:
            for _ in range(workers):  # they load their modules side by side
                worker = _Worker()
                self._start(worker)
                self._started.append(worker)
                self._idle.put(worker)
        except InputError:
            self.close()
            raise
        threading.Thread(target=self._end_frozen, daemon=True).start()

    def map(
        self, function: Callable[[T], R], units: Sequence[T], in_flight: int = IN_FLIGHT
    ) -> Iterator[R | Failed]:
        """As `Executor.map`, with `in_flight` units per worker."""
        packed = _pickled(function)
        yield from in_order(
            lambda unit: self._threads.submit(self._answer, packed, _pickled(unit)),
            units,
            in_flight * self.workers,
        )

    def close(self) -> None:
        """Kill the workers."""
        with self._starting:
            self._closed.set()
            for worker in self._started:
                worker.process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for worker in self._started:
            worker.end()

    def _answer(self, function: bytes, unit: bytes) -> Any:
        """The answer to a unit, however many workers die meanwhile, within reason."""
        worker = self._idle.get()
        try:
            packed = self._ask(worker, function, unit)
        finally:
            self._idle.put(worker)
        return answer_of(packed)

    def _ask(self, worker: _Worker, function: bytes, unit: bytes) -> bytes:
        for _ in range(TRIES):
            try:
                packed = worker.ask(function, unit)
            except (EOFError, OSError, MemoryError):
                code = self._start(worker)
                if not self._answered and code in _NEVER_BEGAN:
                    raise InputError(self._guard) from None
            else:
                self._answered = True
                return packed
        death = f"by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        raise InputError(
            f"{TRIES} worker processes ended ({death}) while they worked on the same piece of "
            f"the data; the machine may be out of memory: {self._mend}"
        )

    def _start(self, worker: _Worker) -> int:
        """Start a worker, or another in its place; the exit code of the one before."""
        with self._starting:
            code = worker.end()
            if self._closed.is_set():
                raise InputError("the workers were stopped")
            try:
                with deaf_children():
                    worker.start()
            except OSError as error:
                raise InputError(
                    f"cannot start a worker process: {error.strerror or error}; use fewer `workers`"
                ) from None
            return code

    def _end_frozen(self) -> None:
        """End workers that are frozen (SIGSTOP) from one look to the next: they never answer.

        Who freezes a whole run, by Ctrl-Z, has stopped this process, too.
        """
        before: set[Any] = set()
        while not self._closed.wait(_GLANCE):
            frozen = {worker.process for worker in self._started if worker.is_frozen()}
            for process in frozen & before:
                process.kill()
            before = frozen


class _Worker:
    """A process, begun anew as often as it dies, and the pipe to it."""

    process: Any = None
    pipe: Connection[Any, Any]

    def start(self) -> None:
        # A fork would copy the locks of our threads; "spawn" is the same on every system.
        context = multiprocessing.get_context("spawn")
        pipe, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,), daemon=True)
        with theirs:
            process.start()
        self.process, self.pipe = process, pipe
        self._function: bytes | None = None

    def ask(self, function: bytes, unit: bytes) -> bytes:
        """`answer_bytes` of a function, which is sent once."""
        self.pipe.send((None if function is self._function else function, unit))
        self._function = function
        return self.pipe.recv_bytes()

    def end(self) -> int:
        """Its exit code; one that has not died ends as soon as it finds nobody there."""
        if self.process is None:
            return 0
        self.pipe.close()
        self.process.join(_GRACE)
        self.process.kill()
        self.process.join()
        return self.process.exitcode

    def is_frozen(self) -> bool:
        """Whether it is stopped by a signal, as far as the system (Linux) says."""
        try:
            with open(f"/proc/{self.process.pid}/stat", "rb") as file:
                return file.read().rpartition(b")")[2].split()[0] == b"T"
        except (OSError, IndexError):
            return False


# --- in a worker ------------------------------------------------------------------------------


def _work(pipe: Connection[Any, Any]) -> None:
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where there is no mask
    # For the libraries that are loaded from now on; those that come with a function are told below.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    threading.Thread(target=_die_with_parent, daemon=True).start()
    function: Any = None  # comes with the first unit
    with suppress(EOFError, OSError):  # nobody is there any more
        while True:
            packed, unit = pipe.recv()
            if packed is not None:
                function = load_function(packed)
                threadpool_limits(limits=1)
            pipe.send_bytes(answer_bytes(function, unit))


def _die_with_parent() -> None:
    """End when the process that started this one does, even by SIGKILL in mid-work."""
    parent: Any = multiprocessing.parent_process()
    wait([parent.sentinel])
    os._exit(1)


# --- in the process that asks -------------------------------------------------------------------


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes and threads that this thread starts meanwhile never hear Ctrl-C.

    A mask, not a handler: it goes with the thread, so that any thread may set it, and holds in the
    child from its first moment. Systems without masks (Windows) are left as they are.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Started by the first process, the tracker would lift the mask of the thread that starts it.
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _pickled(value: object) -> bytes:
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"cannot be sent to another process: {one_line(str(error))}; define it in a module, or "
            "use the engine 'threads'"
        ) from None
