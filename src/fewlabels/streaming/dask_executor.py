"""Dask: workers of this machine, or of a cluster that runs already."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future as Promise
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from typing import Any, TypeVar
from uuid import uuid4

from fewlabels import __version__
from fewlabels.errors import InputError, MissingExtraError, UsageError, one_line, quoted
from fewlabels.kernels.blocks import one_blas_thread
from fewlabels.streaming.executors import (
    IN_FLIGHT,
    MAIN_GUARD,
    Executor,
    Failed,
    Pending,
    answer_bytes,
    answer_of,
    deaf_children,
    in_order,
    load_function,
)

T = TypeVar("T")
R = TypeVar("R")

TRIES = 5
"""How often a unit is restarted after its workers died."""

_REMOVALS = 20  # of a folder that is not empty yet
_PATIENCE = 10  # seconds for a scheduler to answer, and for its first worker

_GLANCE = 2  # seconds between two looks at whether there are workers at all
# Seconds after which a worker that died counts as gone: Dask replaces it, but not if it dies while
# it is still being started. And seconds without any, after which the work is given up.
_REPLACED, _LONELY = 6, 30

_DEATHS = (
    "Dask workers ended again and again while they worked on the same piece of the data; "
    "they may be out of memory: use fewer `workers`, or larger ones"
)

_SETTINGS = {
    # Units that merely waited on a worker that died are blamed, too.
    "distributed.scheduler.allowed-failures": 10,
    "distributed.admin.large-graph-warning-threshold": "1TB",
    "distributed.worker.multiprocessing-method": "spawn",
    # It would drop the copies of the function that workers are about to need.
    "distributed.scheduler.active-memory-manager.start": False,
    # Pages over HTTP would show anybody what goes on.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}

_HERE = "127.0.0.1"


class DaskExecutor(Executor):
    """A client of a Dask cluster, and the cluster itself if it is ours."""

    name = "dask"

    def __init__(self, client: Any, workers: int, belongings: ExitStack) -> None:
        self.workers = workers
        self._client = client
        self._belongings = belongings
        self._full = self._looked = self._seen = time.monotonic()

    def map(self, function: Callable[[T], R], units: Sequence[T]) -> Iterator[R | Failed]:
        """As `Executor.map`."""
        # A task and not scattered data, which would be lost with the worker that has them. Every
        # worker fetches its result once, and keeps it.
        shared = self._submit("function", load_function, _pickled(function))
        # The scheduler gives units to those that have it: all of them, if nothing happens now.
        with suppress(Exception):
            self._client.replicate([shared])

        def submit(unit: T) -> Pending[R | Failed]:
            future = self._submit("unit", answer_alone, shared, _pickled(unit))
            return _Unit(future, self._look_after_workers)

        yield from in_order(submit, units, IN_FLIGHT * self.workers)

    def close(self) -> None:
        """Leave the cluster; end it if it is ours."""
        self._belongings.close()

    def _look_after_workers(self) -> None:
        """Replace our workers that are gone for good; without any, waiting would never end."""
        now = time.monotonic()
        if now - self._looked < _GLANCE:
            return
        if now - self._looked > _REPLACED:  # nobody waited, so nobody knows
            self._full = self._seen = now
        self._looked = now
        there = len(self._client.nthreads())
        if there:
            self._seen = now
        if there >= self.workers:
            self._full = now
        if now - self._seen > _LONELY:
            raise InputError(_DEATHS)
        cluster = self._client.cluster
        if cluster is not None and now - self._full > _REPLACED:
            cluster.scale(len(cluster.worker_spec) + self.workers - there)
            self._full = now

    def _submit(self, name: str, function: Callable[..., Any], *given: Any) -> Any:
        import dask

        # Bytes, in which Dask looks for nothing.
        with dask.config.set(_SETTINGS):
            return self._client.submit(
                function, *given, key=f"fewlabels-{name}-{uuid4().hex}", pure=False
            )


class _Unit:
    """A unit handed out to the cluster."""

    def __init__(self, future: Any, look: Callable[[], None]) -> None:
        self._future = future
        self._look = look

    def result(self) -> Any:
        """Its answer, however many workers die meanwhile, within reason."""
        from distributed import KilledWorker

        for _ in range(TRIES):
            try:
                packed = self._wait()
            except KilledWorker:
                self._future.retry()
            except InputError:
                raise
            except Exception as error:
                # What units raise is in their answers: this is the cluster's own trouble.
                raise _trouble(error) from None
            else:
                return answer_of(packed)
        raise InputError(_DEATHS)

    def _wait(self) -> Any:
        """What the cluster gives, with a look now and then at whether it has workers."""
        while True:
            try:
                return self._future.result(timeout=_GLANCE)
            except TimeoutError:
                continue
            finally:
                self._look()

    def cancel(self) -> object:
        """Tell the cluster that the result is no longer needed."""
        return self._future.cancel()


def open_dask(workers: int, scheduler: str | None) -> DaskExecutor:
    """A cluster on this machine, or (given its address) one that runs."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise MissingExtraError("dask", "dask") from None

    # In a thread that is deaf to Ctrl-C, as then are all threads and processes begun from there.
    # The main thread hears it, and lets what was begun come to its end.
    def make() -> DaskExecutor:
        with deaf_children(), ExitStack() as belongings:
            belongings.enter_context(_silence())
            if scheduler is None:
                return DaskExecutor(_local(workers, belongings), workers, belongings.pop_all())
            client = _connect(scheduler, belongings)
            check_workers(client, scheduler)
            return DaskExecutor(client, sum(client.nthreads().values()), belongings.pop_all())

    with ThreadPoolExecutor(1) as thread:
        made = thread.submit(make)
        try:
            return made.result()
        except KeyboardInterrupt:
            made.add_done_callback(_close)
            raise


def check_workers(client: Any, address: str) -> None:
    """Refuse a cluster without workers, or whose workers have another version of fewlabels."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise UsageError(
            f"the Dask scheduler at {address} has no workers; start some with "
            f"`dask worker {address}`"
        ) from None
    # A function inside a function travels as code, not by a name that workers may not know.
    versions = client.run(lambda: import_module("fewlabels").__version__, on_error="return")
    for worker, version in sorted(versions.items()):
        if isinstance(version, ImportError):
            version = "none"
        if version != __version__:
            raise UsageError(
                f"the Dask worker {worker} must have fewlabels {__version__}; got "
                f"{one_line(str(version), 200)}; install the same version there"
            )


def answer_alone(function: Callable[[Any], Any], unit: bytes) -> bytes:
    """On a worker: `answer_bytes` with BLAS held to one thread."""
    with _BLAS:
        return answer_bytes(function, unit)


class _Hold:
    """Limits BLAS to one thread while any thread is inside.

    The limit is per process: if each thread of a worker set and lifted its own, the first to leave
    would lift that of the others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = one_blas_thread()
                self._limit.__enter__()
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.__exit__(None, None, None)


_BLAS = _Hold()


def _local(workers: int, belongings: ExitStack) -> Any:
    """A client of a cluster of our own, with one thread in each process."""
    import dask
    from distributed import Client, LocalCluster, Security

    # Whoever reaches a scheduler or a worker runs code there, and every user of a machine reaches
    # its ports: they answer nobody who does not have this key, which is made for the run.
    try:
        key = Security.temporary()
    except ImportError:
        raise MissingExtraError("cryptography", "dask") from None
    # Modules are imported from the folder of a scheduler: it is not to be one that others share.
    folder = belongings.enter_context(_private_folder())
    with dask.config.set(_SETTINGS | {"temporary-directory": folder}):
        try:
            cluster = LocalCluster(
                name="fewlabels",
                n_workers=workers,
                threads_per_worker=1,
                host=_HERE,
                security=key,
                scheduler_kwargs={"dashboard": False, "dashboard_address": f"{_HERE}:0"},
                config=_SETTINGS,
                silence_logs=logging.CRITICAL,
                local_directory=folder,
                # Units are small by design; Dask's limits would halt a worker on a busy machine.
                memory_limit=0,
            )
        except (RuntimeError, OSError) as error:
            message = one_line(str(error), 300)
            raise InputError(f"{MAIN_GUARD} (Dask says: {message})") from None
        belongings.enter_context(cluster)
        return belongings.enter_context(Client(cluster, set_as_default=False))


@contextmanager
def _private_folder() -> Iterator[str]:
    """A new folder that only this user may enter; it goes, too, where a signal ends the process."""
    folder = tempfile.mkdtemp(prefix="fewlabels-")

    def remove() -> None:
        for _ in range(_REMOVALS):  # of workers that are ending one may still write
            shutil.rmtree(folder, ignore_errors=True)
            if not os.path.exists(folder):
                return
            time.sleep(0.02)

    atexit.register(remove)
    try:
        yield folder
    finally:
        remove()
        atexit.unregister(remove)


def _connect(address: str, belongings: ExitStack) -> Any:
    from distributed import Client
    from distributed.comm import connect

    async def reach() -> None:
        (await asyncio.wait_for(connect(address, timeout=_PATIENCE), _PATIENCE + 1)).abort()

    try:
        # A client waits for ever for who says nothing, and long at its end if there was nobody.
        asyncio.run(reach())
        with warnings.catch_warnings():
            # Of other versions of this and that; what matters is checked.
            warnings.simplefilter("ignore")
            client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except Exception as error:  # whoever is there may answer anything
        # Without the scheme of an address no password is seen in it.
        said = str(error).replace(address.rpartition("://")[2].rpartition("@")[0] + "@", "")
        raise UsageError(
            f"no Dask scheduler answers at {quoted(address)} "
            f"({one_line(said, 200) or 'it says nothing'}); give "
            "the address that `dask scheduler` prints, such as tcp://127.0.0.1:8786"
        ) from None
    return belongings.enter_context(client)


@contextmanager
def _silence() -> Iterator[None]:
    """Keep Dask from writing to the terminal; what matters comes as errors."""
    with ExitStack() as before:
        for name in ("distributed", "tornado"):
            logger = logging.getLogger(name)
            before.callback(setattr, logger, "handlers", logger.handlers)
            before.callback(setattr, logger, "propagate", logger.propagate)
            logger.handlers, logger.propagate = [logging.NullHandler()], False
        yield


def _close(made: Promise[DaskExecutor]) -> None:
    if made.exception() is None:
        made.result().close()


def _pickled(value: object) -> bytes:
    """By value what a worker elsewhere could not import, such as functions of the main script."""
    import cloudpickle

    try:
        return cloudpickle.dumps(value)
    except Exception as error:
        raise UsageError(
            f"cannot be sent to Dask workers: {one_line(str(error))}; use the engine 'threads'"
        ) from None


def _trouble(error: Exception) -> InputError:
    return InputError(
        f"the Dask cluster did not do a piece of the work: {type(error).__name__}: "
        f"{one_line(str(error), 300)}; see whether its scheduler and workers still run"
    )
