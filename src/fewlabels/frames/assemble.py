"""From columns with roles to the arrays of `Predictions`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from fewlabels.door import UNKNOWN
from fewlabels.errors import InputError
from fewlabels.frames.classes import Classes, decide_classes
from fewlabels.frames.names import Names
from fewlabels.frames.roles import Roles
from fewlabels.frames.table import NOTHING, Table
from fewlabels.frames.values import group_text
from fewlabels.kernels.arrays import Array, Floats
from fewlabels.wording import quoted


def assemble(
    table: Table,
    roles: Roles,
    explicit: tuple[Any, ...] | None = None,
    voted: Collection[str] = (),
) -> tuple[dict[str, Any], Classes]:
    """Arguments of `Predictions` from the columns of a table, and the classes there are.

    Parameters
    ----------
    explicit
        The classes in order, where the caller gives them.
    voted
        Texts of the classes that long votes beside the table name.

    Raises
    ------
    InputError
        If a cell does not hold what its column's role asks for.
    """
    if table.n_rows == 0 and table is not NOTHING:
        raise InputError("there are no rows; a file needs at least one item")
    texts = class_columns(table, roles)
    seen = {text for column in texts.values() for text in column.occurring()}
    classes = decide_classes(roles, explicit, seen | set(voted))
    return arguments_of(table, roles, classes, texts), classes


def class_columns(table: Table, roles: Roles) -> dict[str, Names]:
    """The columns whose texts are classes: labels and hard predictions."""
    named = [roles.label, *roles.votes.values()]
    return {column: Names.of(table, column) for column in named if column is not None}


def arguments_of(
    table: Table, roles: Roles, classes: Classes, texts: dict[str, Names]
) -> dict[str, Any]:
    """Arguments of `Predictions`, where the classes are known; `texts` is emptied on the way."""
    by_column = {column: t.class_indices(classes, table.place) for column, t in texts.items()}
    texts.clear()
    groups, notes = _groups(table, roles)
    return {
        "probabilities": _probabilities(table, roles, classes),
        "labels": None if roles.label is None else by_column[roles.label],
        "votes": _matrix(
            [by_column[roles.votes[m]] if m in roles.votes else None for m in roles.models],
            np.full(table.n_rows, UNKNOWN, dtype=np.int8),
        ),
        "scores": _matrix(
            [table.numbers(roles.scores[m]) if m in roles.scores else None for m in roles.models],
            np.full(table.n_rows, np.nan),
        ),
        "histogram": _matrix(
            [_counts(table, roles.histogram[c]) for c in classes.texts if c in roles.histogram],
            np.empty(0),
        ),
        "domain": None if roles.domain is None else _group(table, roles.domain),
        "weight": None if roles.weight is None else table.numbers(roles.weight),
        "groups": groups,
        "models": roles.models,
        "classes": classes.names,
        "notes": (*classes.notes, *roles.notes, *notes),
    }


def _probabilities(table: Table, roles: Roles, classes: Classes) -> Floats | None:
    if not (roles.probabilities or roles.mapped):
        return None
    size = len(classes.texts)
    # An explicit list of one class is refused by Predictions, which sees the shape below.
    p = np.full((table.n_rows, len(roles.models), size), np.nan)
    for j, model in enumerate(roles.models):
        by_class = roles.probabilities.get(model) or _in_order(roles.mapped.get(model, ()), classes)
        for k, text in enumerate(classes.texts):
            if text in by_class:
                p[:, j, k] = table.numbers(by_class[text])
            elif by_class and size == 2:
                np.subtract(1.0, table.numbers(by_class[classes.texts[1 - k]]), out=p[:, j, k])
    return p


def _counts(table: Table, column: str) -> Floats:
    """How many annotators chose a class; nobody, where the cell is empty."""
    counts = table.numbers(column)
    whole = (counts >= 0) & (counts == np.floor(counts)) & (counts < np.inf)
    wrong = np.flatnonzero(~whole & ~np.isnan(counts))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"column {quoted(column)} must hold whole numbers of annotators, 0 or more; got "
            f"{counts[row]:g} in {table.place(row)}: correct it, or leave the cell empty"
        )
    return np.nan_to_num(counts)


def _in_order(columns: Sequence[str], classes: Classes) -> dict[str, str]:
    """Class -> column of a classifier whose columns the caller has put in order."""
    return dict(zip(classes.texts[-len(columns) :] if columns else (), columns, strict=True))


def _matrix(columns: Sequence[Array | None], absent: Array) -> Array | None:
    """Columns side by side, shape (n, M); None where there is none."""
    if all(column is None for column in columns):
        return None
    return np.stack([absent if column is None else column for column in columns], axis=1)


def _groups(table: Table, roles: Roles) -> tuple[dict[str, Array], list[str]]:
    """Groups by name, and a note for each column that was offered and cannot be one."""
    groups, notes = {}, []
    for name in roles.groups:
        try:
            groups[name] = _group(table, name)
        except InputError as error:
            if roles.groups_asked:
                raise
            notes.append(f"not kept as a group: {error}")
    return groups, notes


def _group(table: Table, column: str) -> Array:
    """Group of each item as text, shape (n,); None where none is given."""
    codes, values = table.categories(column)
    texts = np.array([*(group_text(value) for value in values), None], dtype=object)
    return texts[codes]
