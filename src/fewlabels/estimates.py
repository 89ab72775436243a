"""Estimates: one row per classifier, metric and group, with interval and trust."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fewlabels import __version__
from fewlabels.errors import MissingExtraError, Status, UsageError
from fewlabels.kernels.arrays import Floats

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewlabels.posterior import LabelPosterior


class Estimate(NamedTuple):
    """One estimate: value with low <= value <= high; NaN where the metric is undefined."""

    model: str
    metric: str
    group: str | None
    value: float
    low: float
    high: float
    confidence_level: float
    status: Status


class GroupSize(NamedTuple):
    """How many items, and labeled ones, a group has; group None is all items."""

    group: str | None
    n_items: int
    n_labeled: int


class Difference(NamedTuple):
    """Metric of one classifier minus that of another, on the same draws."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Estimates:
    """What `fewlabels.estimate` returns.

    `rows` are ordered: all items first, then the groups by first appearance; classifiers as given;
    metrics as asked. `draws` maps (metric, group) to posterior draws of it, shape (D, M), paired
    over the classifiers. `directions` maps a metric to +1 (larger is better), -1 or 0.
    """

    rows: tuple[Estimate, ...]
    method: str
    estimand: str
    seed: int
    confidence_level: float
    n_items: int
    n_labeled: int
    n_annotated: int
    groups: tuple[GroupSize, ...]
    models: tuple[str, ...]
    classes: tuple[Any, ...]
    directions: Mapping[str, int]
    draws: Mapping[tuple[str, str | None], Floats]
    posterior: LabelPosterior
    diagnostics: Mapping[str, Any]
    warnings: tuple[str, ...]
    describe: Callable[[Estimates], dict[str, Any]] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the command line as a dictionary; NaN and infinities are None."""
        plain: dict[str, Any] = plain_values(self._fields())
        return plain

    def _fields(self) -> dict[str, Any]:
        return {
            "fewlabels": __version__,
            "method": self.method,
            "estimand": self.estimand,
            "seed": self.seed,
            "confidence_level": self.confidence_level,
            "n_items": self.n_items,
            "n_labeled": self.n_labeled,
            "n_annotated": self.n_annotated,
            "groups": [group._asdict() for group in self.groups],
            "models": list(self.models),
            "classes": [c if isinstance(c, (int, float)) else str(c) for c in self.classes],
            "estimates": [row._asdict() for row in self.rows],
            "diagnostics": dict(self.diagnostics),
            "warnings": list(self.warnings),
        }

    @cached_property
    def report(self) -> dict[str, Any]:
        """Everything that a report shows, as a dictionary of plain values (computed once)."""
        return plain_values(self.to_dict() | self.describe(self))

    def to_frame(self, backend: str | None = None) -> Any:
        """The rows as a table of kind `backend`: "pandas", "polars" or "pyarrow".

        Without `backend` it is the first of these that is installed.
        """
        columns = {name: [getattr(row, name) for row in self.rows] for name in Estimate._fields}
        columns["status"] = [str(s) for s in columns["status"]]
        return frame(columns, backend, texts=("group",))

    def summary(self, width: int = 80) -> str:
        """The estimates as a table of text."""
        from fewlabels.report import render_text

        return render_text(self.report, width=width)

    def __str__(self) -> str:
        return self.summary()

    def plot(self, metric: str | None = None) -> Any:
        """A forest plot per metric (or of one), as a matplotlib figure (extra `plot`)."""
        from fewlabels.report import render_figure

        return render_figure(self.report, metric=metric)

    def save_html(self, path: str | Path) -> None:
        """Write the report as one self-contained HTML file."""
        from fewlabels.report import save_html

        save_html(self.report, path)

    def get(self, model: str, metric: str, group: str | None = None) -> Estimate:
        """The row of one classifier, metric and group.

        Raises
        ------
        UsageError
            If there is no such row.
        """
        for row in self.rows:
            if (row.model, row.metric, row.group) == (model, metric, group):
                return row
        raise UsageError(
            f"no estimate of metric {metric!r} for model {model!r} in group {group!r}; models: "
            f"{', '.join(self.models)}; metrics: {', '.join(self.directions)}"
        )

    def probability_best(self, metric: str, group: str | None = None) -> dict[str, float]:
        """P(this classifier is the best) per classifier, from paired draws; ties are shared.

        Classifiers for which the metric is undefined or not applicable get 0.
        """
        direction = self._direction(metric)
        draws = self._draws(metric, group) * direction
        draws = np.where(np.isnan(draws), -np.inf, draws)
        defined = draws[np.isfinite(draws).any(axis=1)]
        if not len(defined):
            return dict.fromkeys(self.models, math.nan)
        best = defined == defined.max(axis=1, keepdims=True)
        share = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
        return dict(zip(self.models, share.tolist(), strict=True))

    def difference(self, a: str, b: str, metric: str, group: str | None = None) -> Difference:
        """Metric of `a` minus metric of `b`, with the interval of paired draws."""
        value = self.get(a, metric, group).value - self.get(b, metric, group).value
        draws = self._draws(metric, group)
        gap = draws[:, self.models.index(a)] - draws[:, self.models.index(b)]
        gap = gap[~np.isnan(gap)]
        if not len(gap) or math.isnan(value):
            return Difference(value, math.nan, math.nan)
        tail = (1 - self.confidence_level) / 2
        low, high = np.quantile(gap, [tail, 1 - tail])
        return Difference(value, min(float(low), value), max(float(high), value))

    def _direction(self, metric: str) -> int:
        direction = self.directions.get(metric)
        if direction is None:
            raise UsageError(
                f"unknown metric {metric!r}; estimated here: {', '.join(self.directions)}"
            )
        if direction == 0:
            raise UsageError(f"metric {metric!r} does not say whether larger or smaller is better")
        return direction

    def _draws(self, metric: str, group: str | None) -> Floats:
        try:
            return self.draws[metric, group]
        except KeyError:
            raise UsageError(f"no draws of metric {metric!r} in group {group!r}") from None


def plain_values(value: Any) -> Any:
    """Plain JSON values: no numpy, no NaN, no infinity."""
    if isinstance(value, Mapping):
        return {str(k): plain_values(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain_values(value.tolist())
    if isinstance(value, np.generic):
        return plain_values(value.item())
    if isinstance(value, Status):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
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
