"""Names and values of a file inside one-line messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from fewlabels.errors import InputError

_LONGEST_MESSAGE = 1000


def one_line(text: str, limit: int = _LONGEST_MESSAGE) -> str:
    r"""Escape what would break a line or steer a terminal, and cut what is too long to read.

    Examples
    --------
    >>> print(one_line("a\nb"))
    a\nb
    """
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def quoted(value: object, limit: int = 60) -> str:
    """A name or value as a message shows it: in quotes if text, escaped, cut if long."""
    text = repr(value[: 2 * limit] if isinstance(value, str) else value)
    return text if len(text) <= limit else text[: limit - 4] + "...'"


def listed(values: Iterable[object], limit: int = 8) -> str:
    """Some values, and how many more there are."""
    items = list(values)
    shown = ", ".join(one_line(str(v), 60) for v in items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit:,} more"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a question with a space behind it, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {quoted(near[0])}? " if near else ""


@contextmanager
def told_of(name: str | None) -> Iterator[None]:
    """Put the file's name before the message of an `InputError`, and keep it to one line."""
    try:
        yield
    except InputError as error:
        message = str(error) if name is None else f"{name}: {error}"
        raise InputError(one_line(message)) from None
    except MemoryError:
        where = "" if name is None else f"{name}: "
        raise InputError(f"{where}does not fit into memory; read fewer columns or rows") from None
