"""Ctrl-C reaches every process of a terminal; the workers leave it to the one that started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any


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


def die_with_parent() -> None:
    """In a worker: end when the process that started it does, even by SIGKILL in mid-work."""

    def watch() -> None:
        parent: Any = multiprocessing.parent_process()
        if parent is not None:
            wait([parent.sentinel])
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
