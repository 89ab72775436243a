"""Rows that are fewer items: the column that names these, and how many they are."""

from __future__ import annotations

import shlex

import numpy as np

from fewlabels.data.profiles import UNITS, name_words
from fewlabels.data.roles import Roles
from fewlabels.data.table import Names, Source, group_text
from fewlabels.errors import quoted

_FEWEST = 10
"""Fewer values are rather kinds of items than items, unless the column is said to name these."""

_ROWS_EACH = 1.2
"""Rows per item, on average, from which a column that nobody named is told of."""


def repeated_items(source: Source, roles: Roles, *, of_head: bool = False) -> tuple[str, ...]:
    """Say that rows are fewer items, where a column names these and no clusters are given.

    Of several columns that may name them the one of fewest values counts: a patient, not a scan.

    Parameters
    ----------
    of_head
        Whether the source gives first rows alone.
    """
    if roles.clusters:
        return ()
    free = [roles.item] if roles.item is not None else [*roles.groups, *roles.ignored]
    named = [
        c for c in dict.fromkeys(free)
        if c is not None and (c == roles.item or UNITS & {*name_words(c)[-1:]})
    ]  # fmt: skip
    if not named:
        return ()
    found: list[tuple[int, int, str]] = []
    table = source.read((), named)
    for column in named:
        codes = Names.of(table, column, group_text).codes
        alone = int((codes < 0).sum())
        items = len(np.unique(codes)) - (alone > 0) + alone
        each, fewest = (1.0, 2) if column == roles.item else (_ROWS_EACH, _FEWEST)
        if items >= fewest and len(codes) > items and len(codes) >= each * items:
            found.append((items, len(codes), column))
    if not found:
        return ()
    items, rows, column = min(found)
    where = "" if column == "item" else f" (column {quoted(column)})"
    return (
        f"{'the first ' * of_head}{rows:,} rows are {items:,} items{where}, and every row counts "
        f"as one by itself: say --cluster {shlex.quote(column)}",
    )
