"""Rows of a report in the terms of a document."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from fewlabels.report.document import name

Row = TypeVar("Row")


def grouped(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    """Rows by their key, in the order in which they come."""
    out: dict[Any, list[Row]] = {}
    for row in rows:
        out.setdefault(key(row), []).append(row)
    return out


def within(title: str, group: str | None) -> str:
    """A title, and the group of items that it is about; None: all of them."""
    return title if group is None else f"{title}, {name(group)}"
