"""What workers are given to do in the tests of executors: functions that they can import."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from fewlabels.errors import InputError, MissingExtraError
from fewlabels.kernels.blocks import available_workers


class OddError(Exception):
    """An error that can be pickled but not unpickled."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"odd {one} {two}")


def square(x: int) -> int:
    return x * x


def who(x: int) -> int:
    return os.getpid()


def slow_first(x: int) -> int:
    time.sleep(0.2 if x == 0 else 0.0)
    return x


def complain(x: int) -> int:
    if x == 1:
        raise InputError("unit 1 is damaged")
    if x == 2:
        raise MissingExtraError("package", "extra")
    return x


def mistake(x: int) -> int:
    raise KeyError(f"unit {x}")


def odd(x: int) -> int:
    raise OddError(x, x)


def cannot_come_back(x: int) -> Any:
    return lambda: x


def threads_inside(x: int) -> tuple[set[int], int]:
    import scipy.linalg  # noqa: F401
    import threadpoolctl

    (np.ones((50, 50)) @ np.ones((50, 50))).sum()
    found = [i for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas"]
    assert found
    return {i["num_threads"] for i in found}, available_workers()


def leave_mark(folder: Path, x: int) -> np.ndarray[Any, Any]:
    (folder / str(x)).touch()
    return np.full(3, x)


class Big:
    """A function whose arrival is counted in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.content = np.ones(100_000)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        (self.folder / f"{os.getpid()}-{time.time_ns()}").touch()

    def __call__(self, x: int) -> tuple[int, float]:
        time.sleep(0.02)
        return os.getpid(), x * self.content.sum()


def die_once(folder: Path, deaths: tuple[int, ...], x: int) -> float:
    """Killed the first time at each of `deaths`; then as any other unit."""
    value = float(np.random.default_rng(x).normal(size=1000).sum())
    try:
        (folder / str(x)).touch(exist_ok=x not in deaths)
    except FileExistsError:
        return value
    if x in deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def die_while_answering(folder: Path, x: int) -> np.ndarray[Any, Any]:
    """Killed the first time while the answer, 400 MB, is on its way."""
    try:
        (folder / str(x)).touch(exist_ok=False)
    except FileExistsError:
        return np.full(3, x)
    threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return np.ones(50_000_000)


def die(x: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return x


def exit_early(x: int) -> int:
    os._exit(3)


def tell_and_sleep(folder: Path, seconds: float, x: int) -> float:
    """Says who works, for whoever wants to kill it."""
    (folder / f"{os.getpid()}").touch()
    value = float(np.random.default_rng(x).normal(size=1000).sum())
    time.sleep(seconds)
    return value
