"""Rows of a report put together by what they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Row = TypeVar("Row")


def grouped(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    """Rows by their key, in the order in which they come."""
    out: dict[Any, list[Row]] = {}
    for row in rows:
        out.setdefault(key(row), []).append(row)
    return out
