"""Where pieces of work are done: threads of this process, other processes, or Dask.

Results come in the order of the pieces, so neither the executor nor the number of workers shows.
"""

from __future__ import annotations

import multiprocessing
import pickle
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeVar

from fewlabels.errors import FewlabelsError, UsageError, unknown
from fewlabels.kernels.blocks import (
    available_workers,
    one_blas_thread,
    reporting,
    using_workers,
)

T = TypeVar("T")
R = TypeVar("R")
T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

ENGINES = ("threads", "processes", "dask")
Engine = Literal["threads", "processes", "dask"]

IN_FLIGHT = 2
"""Units per worker that are handed out, or done and not yet asked for: memory is bounded by it."""


class Failed(NamedTuple):
    """What a unit answered instead of a result."""

    error: FewlabelsError

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle would call the class with the message alone, which not all of ours can be.
        return _failed, (type(self.error), str(self.error))


class Raised(NamedTuple):
    """An error that is no unit's answer, on its way to the process that asked."""

    error: BaseException


class Executor(ABC):
    """A place where units are worked on; a context manager that leaves nothing running."""

    name: str
    workers: int

    @abstractmethod
    def map(self, function: Callable[[T], R], units: Sequence[T]) -> Iterator[R | Failed]:
        """Results of `function` on every unit, in the order of the units.

        At most `IN_FLIGHT` units per worker are under way or wait to be asked for.

        Parameters
        ----------
        function
            Picklable, such as a `functools.partial` of a function of a module; what it holds is
            sent once per worker. A FewlabelsError that it raises is the unit's answer: `Failed`.
        units
            Anything that can be pickled.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop the workers; what they are doing is lost."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
    """Make an executor.

    Parameters
    ----------
    engine
        "threads", "processes" of this machine, or "dask".
    workers
        How many; None = one per available processor.
    scheduler
        Dask alone: the address of a running scheduler, whose workers then do the work; None = a
        cluster of processes on this machine, which ends with the executor.
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
        from fewlabels.streaming.processes import ProcessExecutor

        return ProcessExecutor(workers or available_workers())
    from fewlabels.streaming.dask_executor import open_dask

    return open_dask(workers or available_workers(), scheduler)


def not_while_starting() -> None:
    """End a worker process that is about to start workers of its own, without a word.

    A script without `if __name__ == "__main__":` runs again in each process that it starts. The
    process that started this one says so, once; a traceback of each would bury that.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(NO_MAIN_GUARD)


NO_MAIN_GUARD = 77
"""Exit code of a worker process that found itself running the main script."""

MAIN_GUARD = (
    "worker processes ended before they began; a script that uses the engine 'processes' or "
    "'dask' must do so under `if __name__ == '__main__':`"
)


class Pending(Protocol[R_co]):
    """A unit handed out."""

    def result(self) -> R_co:
        """Wait for its answer."""
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
    """The pickled function, in a worker; if it cannot be had, one that says why."""
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
