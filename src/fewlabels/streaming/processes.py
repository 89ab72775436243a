"""Processes of this machine: where one dies the pool is made anew, and what it had is done again.

Ctrl-C reaches every process of a terminal; the workers leave it to the one that started them, and
end with it.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import count
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
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
"""How many workers may die, one after another, while nobody finishes the unit that is waited for.

A death takes all that the pool is doing with it, so a unit may begin again because of another.
"""

_GLANCE = 2.0  # seconds between two looks at whether the workers live
_FUNCTIONS = 4  # that a worker keeps

# Exit codes of a process that found itself running the main script, and failed there.
_NEVER_BEGAN = (NO_MAIN_GUARD, 1)

_numbers = count()


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
        self._at_hand: dict[_Unit, None] = {}
        self._deaths = 0
        self._answered = False
        self._frozen: set[int] = set()
        self._processes: Mapping[int, BaseProcess] = {}
        self._pool = self._open()

    def map(
        self, function: Callable[[T], R], units: Sequence[T], in_flight: int = IN_FLIGHT
    ) -> Iterator[R | Failed]:
        """As `Executor.map`, with `in_flight` units per worker."""
        number, payload = next(_numbers), _pickled(function)
        window = in_flight * self.workers
        yield from in_order(lambda u: _Unit(self, number, payload, _pickled(u)), units, window)

    def close(self) -> None:
        """Kill the workers."""
        self._at_hand.clear()
        self._end()

    def submit(self, unit: _Unit, payload: bytes | None = None) -> None:
        """Hand out a unit, with its function where a worker did not have that."""
        self._at_hand[unit] = None
        try:
            with deaf_children():
                unit.future = self._pool.submit(_work, unit.number, payload, unit.packed)
        except BrokenProcessPool:
            self.renew()

    def finished(self, unit: _Unit) -> None:
        """A unit has its answer, or nobody waits for it."""
        self._at_hand.pop(unit, None)
        self._deaths, self._answered = 0, True

    def forget(self, unit: _Unit) -> None:
        """Nobody waits for a unit: it is not done again."""
        self._at_hand.pop(unit, None)

    def look(self) -> None:
        """End a pool that has lost a worker and does not say so.

        One that is killed while it writes an answer leaves the pool waiting for the rest of that.
        One that is frozen (SIGSTOP) and stays so from one look to the next never answers; who
        freezes a whole run, by Ctrl-Z, has stopped this process, too.
        """
        processes = self._processes.values()
        frozen = {p.pid for p in processes if p.pid is not None and _is_frozen(p.pid)}
        if frozen & self._frozen or any(p.exitcode is not None for p in processes):
            self._end()
        self._frozen = frozen

    def renew(self) -> None:
        """Begin again, after the pool has found itself broken.

        Raises
        ------
        InputError
            If the workers never began, or died again and again.
        """
        self._pool.shutdown(wait=True, cancel_futures=True)
        codes = [p.exitcode for p in self._processes.values() if p.exitcode is not None]
        self._pool = self._open()
        self._deaths += 1
        if not self._answered and any(code in _NEVER_BEGAN for code in codes):
            raise InputError(self._guard)
        if self._deaths >= TRIES:
            self._deaths = 0
            # The pool ends the workers of the one that died by SIGTERM.
            code = next((c for c in codes if c != -signal.SIGTERM), -signal.SIGTERM)
            death = f"by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            raise InputError(
                f"{TRIES} worker processes ended ({death}) while they worked on the same piece of "
                f"the data; the machine may be out of memory: {self._mend}"
            )
        for unit in list(self._at_hand):
            done = unit.future.done() and not unit.future.cancelled()
            if not done or unit.future.exception() is not None:
                self.submit(unit)

    def _open(self) -> ProcessPoolExecutor:
        # A fork would copy the locks of our threads; "spawn" is the same on every system.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(self.workers, context, initializer=_begin)
        self._processes = pool._processes
        try:
            with deaf_children():
                # All at once, so that they load their modules side by side.
                for _ in range(self.workers):
                    pool.submit(_nothing)
        except OSError as error:
            raise InputError(
                f"cannot start a worker process: {error.strerror or error}; use fewer `workers`"
            ) from None
        except BrokenProcessPool:
            pass  # whoever waits for a unit is told
        return pool

    def _end(self) -> None:
        answers: Any = self._pool._result_queue
        processes = list(self._processes.values())
        for process in processes:
            process.kill()
        for process in processes:
            wait([process.sentinel], 10)
        # Or the pool would wait for the rest of an answer that the kill cut short.
        answers._writer.close()
        self._pool.shutdown(wait=True, cancel_futures=True)


class _Unit:
    """A unit handed out to the pool, and what to begin it with again."""

    def __init__(
        self, executor: ProcessExecutor, number: int, payload: bytes, packed: bytes
    ) -> None:
        self.number, self.packed = number, packed
        self.future: Future[bytes | None] = Future()
        self._executor, self._payload = executor, payload
        executor.submit(self)

    def result(self) -> Any:
        """Its answer, however many workers die meanwhile, within reason."""
        while True:
            try:
                packed = self.future.result(_GLANCE)
            except TimeoutError:
                self._executor.look()
            except BrokenProcessPool:
                self._executor.renew()
            else:
                if packed is not None:
                    self._executor.finished(self)
                    return answer_of(packed)
                self._executor.submit(self, self._payload)

    def cancel(self) -> None:
        """Nobody waits for it: if its worker dies, it is not done again."""
        self._executor.forget(self)


# --- in a worker ------------------------------------------------------------------------------

_functions: dict[int, Callable[[Any], Any]] = {}


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where there is no mask
    # For the libraries that are loaded from now on; those that are there are told below.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    """End when the process that started this one does, even by SIGKILL in mid-work."""
    parent: Any = multiprocessing.parent_process()
    wait([parent.sentinel])
    os._exit(1)


def _nothing() -> None:
    pass


def _work(number: int, payload: bytes | None, unit: bytes) -> bytes | None:
    """`answer_bytes` of a function that is sent once; None where it has not come yet."""
    from threadpoolctl import threadpool_limits

    if number not in _functions:
        if payload is None:
            return None
        if len(_functions) == _FUNCTIONS:
            del _functions[min(_functions)]
        _functions[number] = load_function(payload)
        threadpool_limits(limits=1)
    return answer_bytes(_functions[number], unit)


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


def _is_frozen(process: int) -> bool:
    """Whether a process is stopped by a signal, as far as the system (Linux) says."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"
    except (OSError, IndexError):
        return False


def _pickled(value: object) -> bytes:
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"cannot be sent to another process: {one_line(str(error))}; define it in a module, or "
            "use the engine 'threads'"
        ) from None
