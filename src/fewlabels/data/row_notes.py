"""What is worth a note about rows: files that lack predictions, and rows that are fewer items."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from fewlabels.data.profiles import item_in_name
from fewlabels.data.roles import Roles
from fewlabels.data.table import Names, Source, group_text
from fewlabels.errors import listed, one_line, quoted
from fewlabels.kernels.arrays import Ints
from fewlabels.predictions import Predictions

_MANY = 0.01
"""Share of a file's rows from which missing predictions are many."""


def gaps_of_files(
    files: Sequence[str], rows: Ints, given: Ints, models: Sequence[str]
) -> tuple[str, ...]:
    """Say which files lack many predictions of a classifier where most files lack none.

    Missing predictions are nothing wrong by themselves; in one file alone they may be a damaged
    or half-written part.

    Parameters
    ----------
    rows
        Rows of each file, (F,).
    given
        Rows of each file with a prediction of each classifier, (F, M).
    """
    missing = rows[:, None] - given
    there = rows > 0
    odd = (missing > _MANY * rows[:, None]) & there[:, None]
    odd &= 2 * (missing[there] == 0).sum(axis=0) >= max(there.sum(), 2)
    said = []
    for j in np.flatnonzero(odd.any(axis=0)).tolist():
        which = np.flatnonzero(odd[:, j]).tolist()
        where = [f"{one_line(files[i])} ({missing[i, j]:,} of {rows[i]:,} rows)" for i in which]
        said.append(
            f"predictions of {quoted(models[j])} are missing in {listed(where, 3)}, and in "
            f"{(missing[there, j] == 0).sum():,} of the {there.sum():,} files none are: see "
            "whether those files are whole"
        )
    return tuple(said)


def with_gaps(predictions: Predictions, files: Sequence[tuple[str, int]]) -> Predictions:
    """The predictions with a note on such gaps; `files` are names and rows, in order of the rows.

    Rows behind those of the files, of items that have votes alone, belong to none.
    """
    if len(files) < 2:
        return predictions
    rows = np.array([n for _, n in files])
    says = predictions.has_hard | predictions.provides("ranking")
    starts = np.cumsum(rows) - rows
    given = np.array(
        [says[start : start + n].sum(axis=0) for start, n in zip(starts, rows, strict=True)]
    )
    found = gaps_of_files([name for name, _ in files], rows, given, predictions.models)
    return predictions.noting((*predictions.notes, *found)) if found else predictions


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
