"""One text per class and per group, whatever type a file holds it in."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

# No leading zero: 007 and 7 may well be two codes.
_INTEGRAL = re.compile(r"(-?(?:0|[1-9][0-9]*))(?:\.0*)?")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]*)?")
_MOST_DIGITS = 18


def class_text(value: Any) -> str:
    """The text of a class or label: 1, 1.0 and "1" are one; null and NaN are the empty text.

    Examples
    --------
    >>> class_text(1.0), class_text(" 1 "), class_text(True), class_text(None)
    ('1', '1', 'true', '')
    """
    text = (group_text(value) or "").strip()
    integral = _INTEGRAL.fullmatch(text)
    if integral is None:
        return text
    return "0" if integral[1] == "-0" else integral[1]


def group_text(value: Any) -> str | None:
    """The text of a group: strings as they are, 1 and 1.0 as 1; None for null, NaN and blank.

    Examples
    --------
    >>> group_text("1.0"), group_text(1.0), group_text(0.5), group_text("")
    ('1.0', '1', '0.5', None)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return None
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isfinite(value) and value == int(value):
            return str(int(value))
    return str(value)


def shown_number(value: float) -> str:
    """A number as a file has it: the fewest digits that are this number, of single precision too.

    Examples
    --------
    >>> shown_number(66.6), shown_number(float(np.float32(66.6))), shown_number(3.0)
    ('66.6', '66.6', '3.0')
    """
    with np.errstate(over="ignore", under="ignore"):
        single = np.float32(value)
    return str(single) if float(single) == value else repr(float(value))


def in_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Numbers by value, then the rest by alphabet.

    Examples
    --------
    >>> in_order({"b", "10", "9", "a"})
    ('9', '10', 'a', 'b')
    """
    return tuple(sorted(texts, key=_rank))


def _rank(text: str) -> tuple[bool, float, str]:
    number = _NUMBER.fullmatch(text)
    return (number is None, float(text) if number else 0.0, text)


def class_names(texts: Iterable[str]) -> tuple[int, ...] | tuple[str, ...]:
    """Integers when every class is written as one, else the texts.

    Examples
    --------
    >>> class_names(["0", "1"]), class_names(["0", "x"])
    ((0, 1), ('0', 'x'))
    """
    names = tuple(texts)
    if all(_INTEGRAL.fullmatch(t) and "." not in t and len(t) <= _MOST_DIGITS for t in names):
        return tuple(int(t) for t in names)
    return names
