"""How results leave Python: as text, pages, frames and plain values.

Words and markup are those of the room `report`, from the same dictionary as its reports.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from fewlabels import report
from fewlabels.errors import MissingExtraError, Status, UsageError


class Shown(ABC):
    """A result with a summary, of which `repr` gives the first lines and a notebook all.

    Attributes
    ----------
    _page
        Whose templates a notebook shows; None: the summary as it is.
    """

    _page: ClassVar[str | None] = None

    @abstractmethod
    def summary(self, width: int = 80) -> str:
        """The answer as text."""

    def _reported(self) -> Mapping[str, Any]:
        """The dictionary that a page is made from."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return report.brief_summary(type(self).__name__, self.summary)

    def _repr_html_(self) -> str:
        if self._page is None:
            return report.summary_fragment(self.summary(width=100))
        return report.render_fragment(self._page, self._reported())


class Estimated(Shown):
    """A result of many estimates, of which `repr` gives the first rows."""

    rows: tuple[Any, ...]

    def to_frame(self, backend: str | None = None) -> Any:
        """The rows as a table of kind `backend`: "pandas", "polars" or "pyarrow".

        Without `backend` it is the first of these that is installed.
        """
        columns = {name: [getattr(row, name) for row in self.rows] for name in self._row_fields}
        columns["status"] = [str(s) for s in columns["status"]]
        return frame(columns, backend, texts=("group",))

    _row_fields: ClassVar[tuple[str, ...]]

    @abstractmethod
    def _in_brief(self) -> Mapping[str, Any]:
        """The estimates and what they are of, in plain values."""

    def __repr__(self) -> str:
        return report.brief_estimates(type(self).__name__, self._in_brief())


def plain_values(value: Any) -> Any:
    """Plain JSON values: no numpy, no NaN, no infinity."""
    if isinstance(value, (str, int)) or value is None:
        return value.value if isinstance(value, Status) else value
    if isinstance(value, float):  # numpy's doubles are floats too
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [plain_values(v) for v in value]
    if isinstance(value, dict | Mapping):  # dictionaries first: the other question is slow
        return {str(k): plain_values(v) for k, v in value.items()}
    # Arrays and scalars of numpy, which is not imported for it.
    if hasattr(value, "tolist"):
        return plain_values(value.tolist())
    return value


def frame(columns: Mapping[str, Any], backend: str | None, texts: Sequence[str] = ()) -> Any:
    """Columns as a table of kind "pandas", "polars" or "pyarrow"; None: the first installed.

    Parameters
    ----------
    texts
        Columns that are text even where all of it is missing.

    Raises
    ------
    UsageError, MissingExtraError
        If there is no such kind, or it is not installed.
    """
    for kind in [backend] if backend else ["pandas", "polars"]:
        with contextlib.suppress(ImportError):
            return _frame(kind, dict(columns), texts)
    if backend:
        raise MissingExtraError(backend, "all")
    return _frame("pyarrow", dict(columns), texts)


def _frame(kind: str, columns: dict[str, Any], texts: Sequence[str]) -> Any:
    if kind == "pandas":
        import pandas

        return pandas.DataFrame(columns)
    if kind == "polars":
        import polars

        return polars.DataFrame(columns, schema_overrides=dict.fromkeys(texts, polars.String))
    if kind == "pyarrow":
        import pyarrow

        return pyarrow.table(
            columns | {name: pyarrow.array(columns[name], pyarrow.string()) for name in texts}
        )
    raise UsageError(f"unknown backend {kind!r}; choose pandas, polars or pyarrow")
