"""Columns of names: a code per row, and the texts that the codes stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewlabels.door import UNKNOWN
from fewlabels.errors import InputError
from fewlabels.frames.classes import Classes
from fewlabels.frames.table import Place, Table
from fewlabels.frames.values import class_text
from fewlabels.kernels.arrays import Array, Ints
from fewlabels.wording import listed, quoted


@dataclass(frozen=True)
class Names:
    """A column of names: codes, shape (n,), into texts, all different; -1 = null."""

    column: str
    codes: Ints
    texts: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, column: str, text: Callable[[Any], str | None] = class_text) -> Names:
        """Read a column; `text` gives the text of a value, None where it is none."""
        codes, values = table.categories(column)
        index: dict[str, int] = {}
        known = [text(value) for value in values]
        place = [-1 if t is None else index.setdefault(t, len(index)) for t in known]
        # The last entry is that of code -1.
        return cls(column, np.array([*place, -1], dtype=np.int64)[codes], tuple(index))

    def counts(self) -> dict[str, int]:
        """The texts that some row has (a categorical column may list others), and in how many."""
        count = np.bincount(self.codes + 1, minlength=len(self.texts) + 1)[1:]
        found = zip(self.texts, count.tolist(), strict=True)
        return {text: times for text, times in found if times}

    def class_indices(self, classes: Classes, place: Place) -> Array:
        """Class index per row, shape (n,), in the smallest integers that hold them; -1 = unknown.

        Raises
        ------
        InputError
            If a text is no class.
        """
        index = [classes.find(text) for text in self.texts]
        small = np.min_scalar_type(-max(len(classes.texts), 2))
        table = np.array([-2 if i is None else i for i in index] + [UNKNOWN], dtype=small)
        out: Array = table[self.codes]
        strangers = np.flatnonzero(out == -2)
        if strangers.size:
            row = int(strangers[0])
            raise InputError(
                f"{quoted(self.texts[self.codes[row]])} in column {quoted(self.column)}, "
                f"{place(row)}, is not a class; the classes are {listed(classes.texts)}: correct "
                "it, leave it empty, or name all classes with --classes"
            )
        return out
