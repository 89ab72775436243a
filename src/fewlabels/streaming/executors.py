"""Executors of pieces of work: threads of this process, other processes, or Dask's workers.

Results come in the order of the pieces, whatever the executor and the number of workers. Dask is in
`dask_executor`.

Each thread of a pool has one process, with a pipe that no other process holds. If the process dies,
even in the middle of an answer, its pipe ends at once: the thread starts another one and asks it
again. In a pool of `concurrent.futures` one death would break the whole. Ctrl-C reaches every
process of a terminal; the workers leave it to their parent, and end with it.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeVar

from fewlabels.errors import FewlabelsError, InputError, UsageError, one_line, unknown
from fewlabels.kernels.blocks import available_workers, one_blas_thread, reporting, using_workers

T = TypeVar("T")
R = TypeVar("R")
T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

ENGINES = ("threads", "processes", "dask")
Engine = Literal["threads", "processes", "dask"]

IN_FLIGHT = 2
"""Units per worker handed out, or done and waiting to be fetched: this limits the memory."""


class Failed(NamedTuple):
    """What a unit answered instead of a result."""

    error: FewlabelsError

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle would call the class with the message alone, which not all of ours can be.
        return _failed, (type(self.error), str(self.error))


class Raised(NamedTuple):
    """An error that is no unit's answer, to be raised in the calling process."""

    error: BaseException


class Executor(ABC):
    """A place where units are worked on; a context manager that leaves nothing running."""

    name: str
    workers: int

    @abstractmethod
    def map(self, function: Callable[[T], R], units: Sequence[T]) -> Iterator[R | Failed]:
        """Results of `function` on every unit, in the order of the units.

        At most `IN_FLIGHT` units per worker are under way or wait to be asked for. The function and
        the units can be pickled; what the function holds is sent once per worker. A FewlabelsError
        that it raises is the unit's answer: `Failed`.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop the workers; what they are doing is lost."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class ThreadExecutor(Executor):
    """Threads of this process; BLAS has one thread in each."""

    name = "threads"

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers, "fewlabels")

    def map(self, function: Callable[[T], R], units: Sequence[T]) -> Iterator[R | Failed]:
        """As `Executor.map`; here nothing is pickled."""

        def submit(unit: T) -> Pending[R | Failed]:
            return self._pool.submit(copy_context().run, attempt, function, unit)

        # One more than work at a time: results that wait are in this process's memory.
        with one_blas_thread():
            yield from in_order(submit, units, self.workers + 1)

    def close(self) -> None:
        """Wait for the units under way: a thread cannot be stopped."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def open_executor(
    engine: Engine = "threads", workers: int | None = None, scheduler: str | None = None
) -> Executor:
    """Make an executor of `workers` workers; None is one per available processor.

    For "dask" `scheduler` is the address of a running scheduler; None starts a cluster of processes
    on this machine, which ends with the executor.
    """
    if engine not in ENGINES:
        raise UsageError(unknown("engine", engine, ENGINES))
    if workers is not None and workers < 1:
        raise UsageError(f"`workers` must be 1 or more; got {workers}")
    if scheduler is not None and engine != "dask":
        raise UsageError(f"`scheduler` goes with the engine 'dask'; got it with '{engine}'")
    if scheduler is not None and workers is not None:
        raise UsageError(
            "`workers` and `scheduler` exclude each other: a running cluster has its workers; "
            "leave one of them out"
        )
    if engine == "threads":
        return ThreadExecutor(workers or available_workers())
    not_while_starting()
    if engine == "processes":
        return ProcessExecutor(workers or available_workers())
    from fewlabels.streaming.dask_executor import open_dask

    return open_dask(workers or available_workers(), scheduler)


def not_while_starting() -> None:
    """End a worker process that is about to start workers of its own, silently.

    A script without `if __name__ == "__main__":` runs again in each process that it starts. The
    parent process reports this once; tracebacks of all children would hide it.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(NO_MAIN_GUARD)


NO_MAIN_GUARD = 77
"""Exit code of a worker process that ran the main script again."""

MAIN_GUARD = (
    "worker processes ended before they began; a script that uses the engine 'processes' or "
    "'dask' must do so under `if __name__ == '__main__':`"
)


class Pending(Protocol[R_co]):
    """A unit handed out."""

    def result(self) -> R_co:
        """Wait for the answer."""
        ...

    def cancel(self) -> object:
        """Forget it, if nobody began."""
        ...


def in_order(submit: Callable[[T], Pending[R]], units: Sequence[T], window: int) -> Iterator[R]:
    """Answers in the order of the units, with at most `window` units handed out at a time."""
    remaining = iter(units)
    waiting: deque[Pending[R]] = deque()
    try:
        waiting.extend(submit(unit) for unit in islice(remaining, window))
        while waiting:
            answer = waiting.popleft().result()
            # Before the answer is looked at, so that nobody is idle meanwhile.
            waiting.extend(submit(unit) for unit in islice(remaining, 1))
            yield answer
    finally:
        for pending in waiting:
            pending.cancel()


def attempt(function: Callable[[T], R], unit: T) -> R | Failed:
    """One unit on one processor: its result, or the FewlabelsError that is its answer."""
    # Units are what is parallel here, and their own progress would tell of none in particular.
    with using_workers(1), reporting(None):
        try:
            return function(unit)
        except FewlabelsError as error:
            # Without the traceback, whose frames hold the unit's arrays.
            return _failed(type(error), str(error))


def load_function(packed: bytes) -> Callable[[Any], Any]:
    """The pickled function, in a worker; if it cannot be loaded, one that raises the reason."""
    try:
        return pickle.loads(packed)  # noqa: S301  # from the process that started us
    except Exception as error:
        return partial(_raise, error)


def answer_bytes(function: Callable[[Any], Any], unit: bytes) -> bytes:
    """In a worker: what `attempt` gives for a pickled unit, or the `Raised` error, pickled."""
    try:
        answer = attempt(function, pickle.loads(unit))  # noqa: S301
        return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        trace = "".join(traceback.format_exception(error))
        error.add_note(f"In a worker process:\n{trace}")
        try:
            packed = pickle.dumps(Raised(error), pickle.HIGHEST_PROTOCOL)
            pickle.loads(packed)  # noqa: S301  # an error may be pickled and not unpickled
        except Exception:
            return pickle.dumps(Raised(RuntimeError(trace)), pickle.HIGHEST_PROTOCOL)
        return packed


def answer_of(packed: bytes) -> Any:
    """The answer in `answer_bytes`; raises what was raised."""
    answer = pickle.loads(packed)  # noqa: S301  # from a worker of ours
    if isinstance(answer, Raised):
        raise answer.error
    return answer


def _failed(kind: type[FewlabelsError], message: str) -> Failed:
    # Not through `__init__`, which may want other things than the message.
    return Failed(kind.__new__(kind, message))


def _raise(error: Exception, unit: object) -> Any:
    raise error


TRIES = 10
"""How many workers in a row may die while working on one unit."""

_GLANCE = 2.0  # seconds between two looks at whether workers are frozen
_GRACE = 10.0  # seconds for one that is out of step to end by itself

# Exit codes of a process that found itself running the main script, and failed there.
_NEVER_BEGAN = (NO_MAIN_GUARD, 1)


class ProcessExecutor(Executor):
    """A pool of worker processes.

    `mend` ends the message about workers that keep dying, `guard` is the message about workers that
    never started.
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
        """End workers that stay frozen (SIGSTOP) between two checks: they never answer.

        If a whole run is frozen by Ctrl-Z, this process is stopped, too.
        """
        before: set[Any] = set()
        while not self._closed.wait(_GLANCE):
            frozen = {worker.process for worker in self._started if worker.is_frozen()}
            for process in frozen & before:
                process.kill()
            before = frozen


class _Worker:
    """A process, restarted whenever it dies, and the pipe to it."""

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
        """Its exit code; a process that still runs ends when its pipe closes."""
        if self.process is None:
            return 0
        self.pipe.close()
        self.process.join(_GRACE)
        self.process.kill()
        self.process.join()
        return self.process.exitcode

    def is_frozen(self) -> bool:
        """Whether it is stopped by a signal, if the system (Linux) can tell."""
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
    """End when the parent process does, even by SIGKILL."""
    parent: Any = multiprocessing.parent_process()
    wait([parent.sentinel])
    os._exit(1)


# --- in the process that asks -------------------------------------------------------------------


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes and threads started by this thread meanwhile ignore Ctrl-C.

    It is a signal mask, not a handler: it belongs to the thread, so any thread may set it, and a
    child has it from its start. Systems without masks (Windows) are left as they are.
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
