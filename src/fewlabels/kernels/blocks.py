"""Work in blocks on threads: blocks and order are fixed, so answers do not depend on the workers.

Also progress of long work, and values computed once, without waiting for others.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from itertools import islice
from threading import Event
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np
from threadpoolctl import ThreadpoolController

from fewlabels.kernels.arrays import Ints, read_only

_T = TypeVar("_T")
_R = TypeVar("_R")
Progress = Callable[[int, int], None]

_AHEAD = 2
"""Blocks for each thread that are under way, or done and not taken yet."""

_workers: ContextVar[int | None] = ContextVar("fewlabels_workers", default=None)
_progress: ContextVar[Progress | None] = ContextVar("fewlabels_progress", default=None)

_cancelled: ContextVar[tuple[Event, ...]] = ContextVar("fewlabels_given_up", default=())

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("fewlabels_steps", default=None)


def silent(done: int, total: int) -> None:
    """Show no progress."""


@contextmanager
def using_workers(count: int | None) -> Iterator[None]:
    """Set how many threads share the blocks; None = one per available processor."""
    token = _workers.set(count)
    try:
        yield
    finally:
        _workers.reset(token)


@contextmanager
def reporting(progress: Progress | None) -> Iterator[None]:
    """Report long work done inside to `progress`; None: to none."""
    token = _progress.set(progress)
    try:
        yield
    finally:
        _progress.reset(token)


def report(done: int, total: int) -> None:
    """Report how much of the current step is done."""
    progress = _progress.get()
    if progress is not None:
        progress(done, total)


@contextmanager
def hearing_steps(listener: Callable[[str], None]) -> Iterator[None]:
    """Tell `listener` the name of each step that begins inside."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def step(name: str) -> None:
    """Report the name of the step that begins."""
    listener = _listener.get()
    if listener is not None:
        listener(name)


def go_on() -> None:
    """Called between slices of long work, to end it once it is cancelled."""
    if any(cancelled.is_set() for cancelled in _cancelled.get()):
        raise CancelledError


def available_workers() -> int:
    """How many threads `map_blocks` uses."""
    chosen = _workers.get()
    if chosen is not None:
        return max(chosen, 1)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _controller() -> ThreadpoolController:
    # Finding the libraries reads /proc; once is enough, as the kernels have loaded them by now.
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Hold BLAS to one thread: for many small products its threads cost more than they do."""
    return _controller().limit(limits=1, user_api="blas")


def spans(n: int, size: int) -> list[slice]:
    """Consecutive slices of at most `size` that cover n."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def index_blocks(n: int, size: int) -> list[Ints]:
    """Numbers 0 .. n - 1 in consecutive arrays of at most `size`."""
    return [np.arange(span.start, span.stop) for span in spans(n, size)]


def map_blocks(function: Callable[[_T], _R], blocks: Sequence[_T]) -> Iterator[_R]:
    """Results of `function` on every block, in the order of the blocks.

    Blocks begin only a few ahead of the results that are taken, so that results do not pile up.
    BLAS is held to one thread meanwhile: its own threads inside ours cost ten times.
    """
    with one_blas_thread():
        workers = min(available_workers(), len(blocks))
        if workers <= 1:
            yield from map(function, blocks)
            return
        pool, cancelled = ThreadPoolExecutor(workers), Event()
        wait, ahead = True, iter(blocks)

        def begin(count: int) -> Iterator[Future[_R]]:
            for block in islice(ahead, count):
                context = copy_context()
                context.run(_cancelled.set, (*_cancelled.get(), cancelled))
                yield pool.submit(context.run, function, block)

        try:
            jobs = deque(begin(_AHEAD * workers))
            while jobs:  # what was handed on is not held
                result = jobs.popleft().result()
                jobs.extend(begin(1))
                yield result
                del result
        except KeyboardInterrupt:
            wait = False  # a block may take minutes, and its result is not needed any more
            cancelled.set()
            raise
        finally:
            pool.shutdown(wait=wait, cancel_futures=True)


def collect_blocks(
    function: Callable[[_T], _R], blocks: Sequence[_T], progress: Progress
) -> list[_R]:
    """Results of `map_blocks`, as a list; `progress` hears (blocks done, blocks in all)."""
    results: list[_R] = []
    for result in map_blocks(function, blocks):
        results.append(result)
        progress(len(results), len(blocks))
    return results


T = TypeVar("T")


class computed_once(Generic[T]):  # noqa: N801 - a decorator
    """`functools.cached_property` without its lock.

    Up to Python 3.11 that lock is one for all instances: threads that work on different items
    would wait for each other. Two threads that ask the same instance may both compute the value.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        """Compute the value and keep it in the instance, read-only, hiding this descriptor."""
        if instance is None:
            return self
        value = instance.__dict__[self.name] = read_only(self.function(instance))
        return value
