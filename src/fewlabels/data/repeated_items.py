"""Rows that are fewer items: the column that names these, and how many they are."""

from __future__ import annotations

import shlex

import numpy as np

from fewlabels.data.profiles import item_in_name
from fewlabels.data.roles import Roles
from fewlabels.data.table import Names, Source, group_text
from fewlabels.errors import quoted

_FEWEST = 10
"""Fewer values are rather kinds of items than items, unless the column is said to name these."""

_ROWS_EACH = 1.2
"""Rows per item, on average, from which a column that nobody named is told of."""


def repeated_items(source: Source, roles: Roles, *, of_head: bool = False) -> tuple[str, ...]:
    """Say that rows are fewer items, where a column names these and no clusters are given.

    The column of the items comes first; of others that of fewest values, a patient and not a scan;
    texts where no column names the items.

    Parameters
    ----------
    of_head
        Whether the source gives first rows alone.
    """
    if roles.clusters:
        return ()
    others = {n: item_in_name(n) for n in (*roles.groups, *roles.ignored) if n != roles.item}
    kinds = [[n for n, much in others.items() if much == kind] for kind in (2, 1)]
    if roles.item is not None:
        kinds = [[roles.item], kinds[0]]
    for named in filter(None, kinds):
        found: list[tuple[int, int, str]] = []
        table = source.read((), named)
        for column in named:
            codes = Names.of(table, column, group_text).codes
            alone = int((codes < 0).sum())
            items, rows = len(np.unique(codes[codes >= 0])) + alone, len(codes)
            fewest, each = (2, 1.0) if column == roles.item else (_FEWEST, _ROWS_EACH)
            if items >= fewest and rows > items and rows >= each * items:
                found.append((items, rows, column))
        if found:
            items, rows, column = min(found)
            where = "" if column == "item" else f" (column {quoted(column)})"
            return (
                f"{'the first ' * of_head}{rows:,} rows are {items:,} items{where}, and every row "
                f"counts as one by itself: say --cluster {shlex.quote(column)}",
            )
    return ()
