"""Groups of items: all of them, then each value of the columns asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fewlabels.errors import UsageError
from fewlabels.kernels.arrays import Array, Ints
from fewlabels.predictions import Predictions
from fewlabels.wording import unknown

MAX_GROUPS = 50


class Group(NamedTuple):
    """Name ("column=value", None for all items) and rows of a group."""

    name: str | None
    rows: Ints


def all_and_groups(predictions: Predictions, by: str | Sequence[str] | None) -> list[Group]:
    """All items first, then the groups of each column by first appearance.

    Raises
    ------
    UsageError
        If a column is unknown, or has more than 50 values.
    """
    groups = [Group(None, np.arange(predictions.n_items))]
    if by is not None and not isinstance(by, Iterable):
        raise UsageError(f"`by` must be the name of a group, or several; got {by!r}")
    for column in dict.fromkeys([by] if isinstance(by, str) else by or ()):
        codes, names = _codes(_column(predictions, column))
        if len(names) > MAX_GROUPS:
            raise UsageError(
                f"group {column!r} has {len(names)} values, more than {MAX_GROUPS}; group them "
                "first, or leave it out of `by`"
            )
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(names) + 1))
        groups += [
            Group(f"{column}={name}", np.sort(order[ends[i] : ends[i + 1]]))
            for i, name in enumerate(names)
        ]
    return groups


def groups_by_column(predictions: Predictions, names: Iterable[str]) -> dict[str, list[Group]]:
    """The groups of each column, from the names of all the groups that there are.

    A column's name may hold "=", and so may a value. So a name is of the shortest column that it
    can begin with and whose groups are all among the names.
    """
    there = list(names)
    left, out = dict.fromkeys(there), dict[str, list[Group]]()
    for name in there:
        for column in _columns_before(predictions, name) if name in left else ():
            if column in out or len(_codes(_column(predictions, column))[1]) > MAX_GROUPS:
                continue
            found = all_and_groups(predictions, column)[1:]
            if all(group.name in left for group in found) and name in {g.name for g in found}:
                out[column] = found
                for group in found:
                    left.pop(group.name or "", None)
                break
    return out


def _columns_before(predictions: Predictions, name: str) -> list[str]:
    """The columns that a group's name can begin with, shortest first."""
    parts = name.split("=")
    begun = ["=".join(parts[:end]) for end in range(1, len(parts))]
    known = {*predictions.groups, *(["domain"] if predictions.domain is not None else [])}
    return [column for column in begun if column in known]


def values_of(predictions: Predictions, column: str) -> tuple[Ints, list[str]]:
    """Code of each item's value in a column, by first appearance, and the values' names.

    Raises
    ------
    UsageError
        If the column is unknown.
    """
    return _codes(_column(predictions, column))


def _column(predictions: Predictions, column: str) -> Array:
    if column in predictions.groups:
        return predictions.groups[column]
    if column == "domain" and predictions.domain is not None:
        return predictions.domain
    known = [*predictions.groups, *(["domain"] if predictions.domain is not None else [])]
    raise UsageError(unknown("group", column, known, "the predictions have none"))


def _codes(values: Array) -> tuple[Ints, list[str]]:
    """Code of each value in order of first appearance, and the values' names."""
    index: dict[str, int] = {}
    texts = [_text(v) for v in values.tolist()]
    codes = np.array([index.setdefault(t, len(index)) for t in texts], dtype=np.int64)
    return codes, list(index)


def _text(value: Any) -> str:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # pandas' missing values
        return "null"
    if isinstance(value, float):
        if value != value:  # NaN is the one number that differs from itself
            return "null"
        return str(int(value)) if value.is_integer() else str(value)
    return str(value)
