"""Groups of items: all of them, then each value of the columns asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fewlabels.checks.arguments import is_missing
from fewlabels.errors import UsageError, unknown
from fewlabels.kernels.arrays import Array, Ints
from fewlabels.predictions import Predictions

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
    return all_and(predictions, groups_by_column(predictions, by))


def all_and(predictions: Predictions, groups: Mapping[str, Mapping[str, Ints]]) -> list[Group]:
    """All items first, then the groups of each column."""
    everything = Group(None, np.arange(predictions.n_items))
    return [everything, *(Group(*named) for rows in groups.values() for named in rows.items())]


def groups_by_column(
    predictions: Predictions, by: str | Sequence[str] | None
) -> dict[str, dict[str, Ints]]:
    """Column -> name of a group, by first appearance -> its items.

    Raises
    ------
    UsageError
        If a column is unknown, or has more than 50 values.
    """
    if by is not None and not isinstance(by, Iterable):
        raise UsageError(f"`by` must be the name of a group, or several; got {by!r}")
    out: dict[str, dict[str, Ints]] = {}
    for column in dict.fromkeys([by] if isinstance(by, str) else by or ()):
        codes, names = _codes(_column(predictions, column))
        if len(names) > MAX_GROUPS:
            raise UsageError(
                f"group {column!r} has {len(names)} values, more than {MAX_GROUPS}; group them "
                "first, or leave it out of `by`"
            )
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(names) + 1))
        out[column] = {
            f"{column}={name}": np.sort(order[ends[i] : ends[i + 1]])
            for i, name in enumerate(names)
        }
    return out


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
    if is_missing(value):
        return "null"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value)
    return str(value)
