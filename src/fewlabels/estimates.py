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
    from fewlabels.predictions import Predictions

ITEM = "item"
"""The group whose values name the items, where the predictions have it."""


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
    `predictions` are those that the estimates are of.
    """

    rows: tuple[Estimate, ...]
    method: str
    estimand: str
    seed: int
    confidence_level: float
    against: str
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
    predictions: Predictions = field(repr=False)
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
            "against": self.against,
            "seed": self.seed,
            "confidence_level": self.confidence_level,
            "n_items": self.n_items,
            "n_labeled": self.n_labeled,
            "n_annotated": self.n_annotated,
            "groups": [group._asdict() for group in self.groups],
            "models": list(self.models),
            "classes": self._class_values,
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

    def labels_frame(self, backend: str | None = None) -> Any:
        """The likeliest class of every item, as a table of kind `backend` (see `to_frame`).

        Columns: `item`, the group of that name, else the number of the item from 0; `domain`,
        where there is one; `likeliest`, the class of largest probability, the first of equals;
        `known`, whether the label was given; and `p__<method>__<class>`, the probability of each
        class. `likeliest` is not called a label, so that whoever reads the table back takes no
        guess for a known label.

        Raises
        ------
        UsageError
            If the method says nothing of the labels of single items.
        """
        return frame(self.label_columns(), backend, texts=("domain",) * self._has_domain)

    def label_columns(self) -> dict[str, list[Any]]:
        """What `labels_frame` shows, by column.

        Raises
        ------
        UsageError
            If the method says nothing of the labels of single items.
        """
        posterior, predictions = self.posterior, self.predictions
        if posterior.means is not None or posterior.support is not None:
            raise UsageError(
                f"method {self.method!r} says nothing of the labels of single items; take one that "
                "infers them, such as 'tempered-ensemble' for probabilities or 'dawid-skene' for "
                "hard predictions"
            )
        p = posterior.marginals()
        names = predictions.groups.get(ITEM)
        out: dict[str, list[Any]] = {
            ITEM: list(range(predictions.n_items)) if names is None else names.tolist()
        }
        if predictions.domain is not None:
            out["domain"] = [None if d is None else str(d) for d in predictions.domain.tolist()]
        classes = self._class_values
        if len({isinstance(c, str) for c in classes}) > 1:  # A column is of one kind.
            classes = [str(c) for c in classes]
        out["likeliest"] = [classes[k] for k in p.argmax(axis=1).tolist()]
        out["known"] = predictions.labeled.tolist()
        return out | {
            f"p__{self.method}__{c}": p[:, k].tolist() for k, c in enumerate(self.classes)
        }

    @property
    def _class_values(self) -> list[Any]:
        """The classes as plain values: numbers stay numbers, the rest is text."""
        return [c if isinstance(c, (int, float)) else str(c) for c in self.classes]

    @property
    def _has_domain(self) -> bool:
        return self.predictions.domain is not None

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
