"""A file as the pool of a benchmark: all of its rows, or a random sample where they are many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fewlabels.data import read_predictions
from fewlabels.errors import InputError, listed
from fewlabels.kernels.arrays import Bools
from fewlabels.predictions import Predictions

MOST_ITEMS = 200_000
"""Rows of a file that are used at most, unless something else is asked for."""


Fits = Mapping[str, Callable[[Predictions], Bools]]
"""Conditions on rows, in words."""


def _labeled(rows: Predictions) -> Bools:
    return np.asarray(rows.labeled & rows.has_probabilities.any(axis=1))


def _annotated(rows: Predictions) -> Bools:
    if rows.histogram is None:
        return np.zeros(rows.n_items, dtype=bool)
    return np.asarray(rows.histogram.any(axis=1) & rows.has_probabilities.any(axis=1))


LABELED: Fits = {"a label and a prediction": _labeled}
ANNOTATED: Fits = {"annotators' counts and a prediction": _annotated}


class Pool(NamedTuple):
    """Rows to draw from, and what to know of how they were chosen."""

    read: Predictions
    notes: tuple[str, ...]


def read_pool(
    file: Path,
    most: int,
    keep: Sequence[str] | None,
    where: Sequence[tuple[str, str]],
    fits: Fits,
    columns: Mapping[str, Any],
) -> Pool:
    """Read a file; where it has more rows than `most`, a random sample of those that fit.

    The sample depends on what the rows say, not on their order.

    Parameters
    ----------
    where
        Columns and the values that rows must have in them.
    fits
        What rows must have, in words; the first of these that any row has is what is asked of all.

    Raises
    ------
    InputError
        If the file cannot be read, or no row fits.
    """
    if _has_more_rows(file, most):
        found = _sampled(file, most, keep, where, fits, columns)
        if found is not None:
            return found
    return Pool(read_predictions(file, keep=keep, **columns), ())


def _has_more_rows(file: Path, most: int) -> bool:
    if file.suffix.lower() == ".npz":
        return False
    from fewlabels.streaming.units import about_rows

    return about_rows(file) > most


def _sampled(
    file: Path,
    most: int,
    keep: Sequence[str] | None,
    where: Sequence[tuple[str, str]],
    fits: Fits,
    columns: Mapping[str, Any],
) -> Pool | None:
    """The sample; None where a file of about so many rows has no more than that."""
    from fewlabels.streaming.benchmark_files import draw_rows

    def within(fit: Callable[[Predictions], Bools]) -> Callable[[Predictions], Bools]:
        return lambda rows: np.asarray(fit(rows)) & _among(rows, where)

    conditions = {what: within(fit) for what, fit in fits.items()}
    drawn, n_rows = draw_rows(file, most, conditions, keep=keep, **columns)
    if n_rows <= most:
        return None
    for what, (rows, n_fit) in drawn.items():
        if rows is not None:
            used = f"{rows.n_items:,} of" if rows.n_items < n_fit else "all"
            how = ", drawn at random (`most_items`)" if rows.n_items < n_fit else ""
            said = f"{used} the {n_fit:,} rows with {what} are used{how}; there are {n_rows:,} rows"
            return Pool(rows, (said,))
    of = "".join(f" of {column}={value}" for column, value in where)
    raise InputError(
        f"none of its {n_rows:,} rows{of} has {listed(fits, 5)}; name columns of other names with "
        "`label` and `model`"
    )


def _among(rows: Predictions, where: Sequence[tuple[str, str]]) -> Bools:
    """Rows that have all of these values; a missing column is refused later, by its name."""
    out = np.ones(rows.n_items, dtype=bool)
    groups = dict(rows.groups)
    if rows.domain is not None:
        groups["domain"] = rows.domain
    for column, value in where:
        if column in groups:
            out &= np.array([str(v) == value for v in groups[column].tolist()], dtype=bool)
    return out
