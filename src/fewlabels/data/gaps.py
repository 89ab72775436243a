"""Files of a set in which predictions are missing that the other files have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
