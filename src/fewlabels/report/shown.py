"""Forms of results: text, pages, frames and plain values.

Words and markup are those of the room `report`, from the same dictionary as its reports.
"""

from __future__ import annotations

import contextlib
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from fewlabels import report
from fewlabels.errors import MissingExtraError, Status, UsageError
from fewlabels.report.html import render_text

_LINES, _WIDTH = 12, 80
"""Of a result in brief."""


def brief(name: str, summary: Callable[[int], str]) -> str:
    """The first lines of a summary, which is made to a width."""
    head = f"{name}: "
    first, *rest = (line for line in summary(_WIDTH - len(head)).split("\n") if line.strip())
    lines = [head + first, *rest]
    if len(lines) > _LINES:
        more = f"  ... {len(lines) - _LINES + 1:,} more lines; print() shows all"
        lines = [*lines[: _LINES - 1], more]
    return "\n".join(lines)


class HasSummary(ABC):
    """Base of what a document tells of: `repr` shows its first lines, a notebook all of it.

    `_page` names the kind of document.
    """

    _page: ClassVar[str]

    @abstractmethod
    def _report_of_text(self) -> Mapping[str, Any]:
        """The report that the summary is made from; a part of it if that is enough."""

    def summary(self, width: int = 80) -> str:
        """The answer as text in lines of at most `width` columns."""
        return render_text(self._page, self._report_of_text(), width)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return brief(type(self).__name__, self.summary)

    def _repr_html_(self) -> str:
        return report.render_fragment(self._page, self._report_of_text())


class Result(HasSummary):
    """The answer to a question: text, table, plain values and a page.

    `_row_fields` are the columns of the table of `rows`; `_text_columns` are text even if all of it
    is missing.
    """

    _row_fields: ClassVar[tuple[str, ...]]
    _text_columns: ClassVar[tuple[str, ...]] = ("group",)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The answer in plain values; NaN and infinities are None."""

    def report(self) -> dict[str, Any]:
        """Everything that a page shows, in plain values, made anew."""
        return self.to_dict()

    def to_frame(self, backend: str | None = None) -> Any:
        """The answer as a table of kind `backend`: "pandas", "polars" or "pyarrow".

        Without `backend` it is the first of these that is installed.
        """
        columns = self._columns()
        return frame(columns, backend, [name for name in self._text_columns if name in columns])

    def plot(self, metric: str | None = None) -> Any:
        """A figure for a slide, 16:9, by `metric` where there are several: matplotlib's `Figure`.

        Raises
        ------
        UsageError
            If there is nothing to draw, or no such metric.
        MissingExtraError
            If matplotlib is not installed (extra `plot`).
        """
        return report.render_figure(self._page, self._report_of_text(), metric)

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write the answer as one self-contained HTML file.

        Raises
        ------
        InputError
            If the path cannot be written.
        """
        report.save_page(self._page, self.report(), path, **self._beside_report())

    def _repr_html_(self) -> str:
        return report.render_fragment(self._page, self.report())

    def _report_of_text(self) -> Mapping[str, Any]:
        return self.report()

    def _beside_report(self) -> Mapping[str, Any]:
        """What a page of its own shows beside the report."""
        return {}

    def _columns(self) -> dict[str, Any]:
        """The columns of the table; by default a row for each of `rows`."""
        rows: Sequence[Any] = self.rows  # type: ignore[attr-defined]
        columns = {name: [getattr(row, name) for row in rows] for name in self._row_fields}
        if "status" in columns:
            columns["status"] = [str(status) for status in columns["status"]]
        return columns


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
    """Columns as a table of kind "pandas", "polars" or "pyarrow"; None: the first one installed.

    Columns in `texts` are text even if all of it is missing.
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


# --- many groups ----------------------------------------------------------------------------------


MOST_GROUPS = 50
"""Groups of a column that are all shown."""

LARGEST, WORST = 10, 10
"""Groups shown of a column with more: the largest and the worst."""


def with_some_groups(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report with the estimates of some groups of each column that has many.

    The worst groups are those whose interval has the worst "better end", by the first metric that
    has a direction and the classifier that is best on all items; so a small group with a wide
    interval is not among them.
    """
    columns: dict[str, list[Mapping[str, Any]]] = {}
    for size in report["groups"]:
        if size["group"] is not None:
            columns.setdefault(size["group"].partition("=")[0], []).append(size)
    left_out, sentences = set[str](), list[str]()
    for column, sizes in columns.items():
        if len(sizes) <= MOST_GROUPS:
            continue
        largest = sorted(sizes, key=lambda size: -size["n_items"])[:LARGEST]
        names = {size["group"] for size in sizes}
        what, worst = _worst(report, names)
        left_out |= names - {size["group"] for size in largest} - {*worst}
        sentences.append(
            f"{column} has {len(sizes):,} groups: shown are the {LARGEST} largest"
            f"{what}; the others are in the JSON"
        )
    if not sentences:
        return dict(report)
    return {
        **report,
        "estimates": [row for row in report["estimates"] if row["group"] not in left_out],
        "warnings": [*report["warnings"], *sentences],
    }


def _worst(report: Mapping[str, Any], names: set[str]) -> tuple[str, list[str]]:
    """The worst of some groups, and by what."""
    ways = {m: info["direction"] for m, info in report["metric_info"].items() if info["direction"]}
    metric = next(iter(ways), None)
    known = [row for row in report["estimates"]
             if row["metric"] == metric and row["value"] is not None]  # fmt: skip
    overall = [row for row in known if row["group"] is None]
    if metric is None or not overall:
        return "", []
    way = ways[metric]
    end, model = "high" if way > 0 else "low", max(overall, key=lambda r: way * r["value"])["model"]
    groups = [
        r for r in known if r["model"] == model and r["group"] in names and r[end] is not None
    ]
    worst = [row["group"] for row in sorted(groups, key=lambda row: way * row[end])[:WORST]]
    return f" and the {len(worst)} where {metric} of {model} is clearly worst", worst
