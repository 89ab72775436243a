"""Ctrl-C and SIGTERM: one line within two seconds, whatever is running, and no worker left behind.

Python handles a signal when the main thread is between two of its own steps; a product of matrices,
or waiting for a thread that makes one, can delay that for minutes. So another thread listens, and
ends the process if it does not end by itself.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

PATIENCE = 0.8
"""Seconds in which the main thread may end by itself; a second signal ends it at once."""

TO_SHOW = 1.3
"""The same where finished work is shown before the end."""

_TIDYING = 0.6  # seconds for what is to be done at exit: temporary files, for the most part

_USUAL: dict[signal.Signals, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "stopped by SIGTERM"}

_advice: Callable[[], str] = str
_patience = PATIENCE
_said = False
_sender: socket.socket  # when it closes, the watcher knows that the run has ended


class Stopped(KeyboardInterrupt):
    """A signal ended the run; `code` is the exit code by which shells recognise that."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.code = 128 + number
        self.number = number


def advise(advice: Callable[[], str], patience: float = PATIENCE) -> None:
    """Let `advice` give the end of the line, such as how to go on; see `PATIENCE`."""
    global _advice, _patience
    _advice, _patience = advice, patience


def say(number: int) -> None:
    """Print once what the signal did."""
    global _said
    if _said:
        return
    cursor = "\x1b[?25h\r" if sys.stderr.isatty() else ""  # which a progress bar hides
    text = f"{cursor}{_WORDS[signal.Signals(number)]}{_advice()}\n"
    if not _said:  # by another thread, while the advice was made
        _said = True
        with suppress(OSError):
            os.write(2, text.encode(errors="backslashreplace"))


@contextmanager
def heard() -> Iterator[None]:
    """Raise `Stopped` at a signal, after which the process has a second to end.

    For a process that does nothing else. Signals that are ignored, as under nohup, stay so.
    """
    global _sender, _said
    advise(str)
    _said = False
    ours = [number for number, usual in _USUAL.items() if signal.getsignal(number) == usual]
    receiver, _sender = socket.socketpair()
    _sender.setblocking(False)
    before = signal.set_wakeup_fd(_sender.fileno(), warn_on_full_buffer=False)
    for number in ours:
        signal.signal(number, _stop)
    threading.Thread(target=_watch, args=(receiver, ours), daemon=True).start()
    try:
        yield
    except BaseException as error:
        # Or the watcher stays: threads that still work may keep the process from its end.
        if not isinstance(error, Stopped):
            _sender.close()
        raise
    else:
        _sender.close()
    finally:
        signal.set_wakeup_fd(before)
        for number in ours:
            signal.signal(number, _USUAL[number])


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise Stopped(number)


def _watch(receiver: socket.socket, ours: list[signal.Signals]) -> None:
    with receiver:
        number = _next(receiver, ours)
        if number:
            receiver.settimeout(_patience)
            try:
                again = _next(receiver, ours)
            except TimeoutError:
                again = number
            if again:
                _end(number)


def _next(receiver: socket.socket, ours: list[signal.Signals]) -> int:
    """The next of our signals; 0 when the run has ended."""
    while byte := receiver.recv(1):
        if byte[0] in ours:
            return byte[0]
    return 0


def _end(number: int) -> NoReturn:
    with suppress(Exception):
        say(number)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what is torn down in mid-work prints errors
    for child in multiprocessing.active_children():
        child.kill()
    tidying = threading.Thread(target=atexit._run_exitfuncs, daemon=True)
    tidying.start()
    tidying.join(_TIDYING)
    os._exit(128 + number)
