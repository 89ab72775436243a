"""From columns with roles to the arrays of `Predictions`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewlabels.door import UNKNOWN
from fewlabels.errors import InputError
from fewlabels.frames.classes import Classes, decide_classes
from fewlabels.frames.roles import Roles
from fewlabels.frames.table import Table
from fewlabels.frames.values import class_text, group_text
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.wording import listed, quoted


def assemble(table: Table, roles: Roles, explicit: tuple[Any, ...] | None = None) -> dict[str, Any]:
    """Arguments of `Predictions` from the columns of a table.

    Parameters
    ----------
    explicit
        The classes in order, where the caller gives them.

    Raises
    ------
    InputError
        If a cell does not hold what its column's role asks for.
    """
    if table.n_rows == 0:
        raise InputError("there are no rows; a file needs at least one item")
    named = [roles.label, *roles.votes.values()]
    texts = {column: _Texts.of(table, column) for column in named if column is not None}
    seen = {text for column in texts.values() for text in column.occurring()}
    classes = decide_classes(roles, explicit, seen)
    by_column = {column: _indices(column, t, classes, table) for column, t in texts.items()}
    del texts
    groups, notes = _groups(table, roles)
    return {
        "probabilities": _probabilities(table, roles, classes),
        "labels": None if roles.label is None else by_column[roles.label],
        "votes": _matrix(
            [by_column[roles.votes[m]] if m in roles.votes else None for m in roles.models],
            np.full(table.n_rows, UNKNOWN),
        ),
        "scores": _matrix(
            [table.numbers(roles.scores[m]) if m in roles.scores else None for m in roles.models],
            np.full(table.n_rows, np.nan),
        ),
        "histogram": _matrix(
            [table.numbers(roles.histogram[c]) for c in classes.texts if c in roles.histogram],
            np.empty(0),
        ),
        "domain": None if roles.domain is None else _group(table, roles.domain),
        "weight": None if roles.weight is None else table.numbers(roles.weight),
        "groups": groups,
        "models": roles.models,
        "classes": classes.names,
        "notes": (*classes.notes, *roles.notes, *notes),
    }


@dataclass(frozen=True)
class _Texts:
    """A column of class names: codes, shape (n,), into their texts; -1 = null."""

    codes: Ints
    texts: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, column: str) -> _Texts:
        codes, values = table.categories(column)
        return cls(codes, tuple(class_text(v) for v in values))

    def occurring(self) -> set[str]:
        """The texts that some row has (a categorical column may list others)."""
        count = np.bincount(self.codes + 1, minlength=len(self.texts) + 1)[1:]
        return {text for text, times in zip(self.texts, count, strict=True) if times}


def _indices(column: str, texts: _Texts, classes: Classes, table: Table) -> Ints:
    """Class index per item, shape (n,)."""
    index = [classes.find(text) for text in texts.texts]
    out: Ints = np.array([-2 if i is None else i for i in index] + [UNKNOWN])[texts.codes]
    strangers = np.flatnonzero(out == -2)
    if strangers.size:
        row = int(strangers[0])
        raise InputError(
            f"{quoted(texts.texts[texts.codes[row]])} in column {quoted(column)}, "
            f"{table.place(row)}, is not a class; the classes are {listed(classes.texts)}: correct "
            "it, leave it empty, or name all classes with --classes"
        )
    return out


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
