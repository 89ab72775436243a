"""Colour of text for a terminal: whoever prints says whether there is any; nobody else has to know.

Texts are plain unless a block of `inked()` is around what makes them: a summary in Python, a file
and a pipe hold no colour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Role = Literal["title", "soft", "warning", "error", "good"]

_CODES: dict[Role, str] = {"title": "1", "soft": "2", "warning": "33", "error": "31", "good": "32"}
_SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")
_INKED: ContextVar[bool] = ContextVar("inked", default=False)


@contextmanager
def inked() -> Iterator[None]:
    """Texts that are made in this block have colour."""
    token = _INKED.set(True)
    try:
        yield
    finally:
        _INKED.reset(token)


def ink(text: str, role: Role) -> str:
    """The text in the colour of its role, or as it is where there is no colour.

    Examples
    --------
    >>> ink("few-labels", "warning")
    'few-labels'
    """
    core = text.strip()
    if not core or not _INKED.get():
        return text
    # Blanks stay without, so that whoever strips lines finds them.
    before, after = text.split(core, 1)
    return f"{before}\x1b[{_CODES[role]}m{core}\x1b[0m{after}"


def without_ink(text: str) -> str:
    """The text without its colours."""
    return _SEQUENCE.sub("", text) if "\x1b" in text else text
