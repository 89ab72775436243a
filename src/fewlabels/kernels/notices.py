"""Notices: lines that a waiting user should read before the wait, not after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str], None]
_listener: ContextVar[Listener | None] = ContextVar("fewlabels_listener", default=None)


@contextmanager
def hearing(listener: Listener | None) -> Iterator[None]:
    """Tell `listener` the first line that is announced inside; None tells nobody."""
    token = _listener.set(None if listener is None else _once(listener))
    try:
        yield
    finally:
        _listener.reset(token)


def announce(line: str) -> None:
    """Send a line to the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(line)


def _once(listener: Listener) -> Listener:
    waiting = [listener]  # `pop` is atomic: blocks of work announce from threads

    def tell(line: str) -> None:
        try:
            first = waiting.pop()
        except IndexError:
            return
        first(line)

    return tell
