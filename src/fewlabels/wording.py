"""Names and values inside one-line messages; imports nothing heavy, for a fast start."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

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


def plain_name(value: object) -> str | int | float:
    """A class as a report holds it: a number, or its name."""
    return value if isinstance(value, (int, float)) else str(value)


def no_level(level: object) -> str:
    """Say that a confidence level is none, and what a percentage would be.

    Examples
    --------
    >>> no_level(95.0)
    '`confidence_level` must be between 0 and 1; got 95.0 (95% is 0.95)'
    """
    percent = isinstance(level, (int, float)) and 1 < level < 100
    meant = f" ({level:g}% is {level / 100:g})" if percent else ""  # type: ignore[operator]
    return f"`confidence_level` must be between 0 and 1; got {level!r}{meant}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a question with a space behind it, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {quoted(near[0])}? " if near else ""


def unknown(kind: str, name: object, known: Iterable[str], none: str = "there is none") -> str:
    """Say that a name is not among those known: the nearest one, and all of them."""
    choices = list(known)
    choose = f"choose from {listed(choices, 60)}" if choices else none
    return f"unknown {kind} {quoted(name)}; {did_you_mean(str(name), choices)}{choose}"
