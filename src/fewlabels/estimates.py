"""Estimates: one row per classifier, metric and group, with interval and trust."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from fewlabels import __version__
from fewlabels.comparison import (
    Comparison,
    Difference,
    GroupGap,
    Residuals,
    Together,
    compare,
    group_gap,
    paired_interval,
    probability_best,
    with_discrepancy,
)
from fewlabels.errors import MissingExtraError, Status, UsageError
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.shown import Estimated
from fewlabels.wording import listed, unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewlabels.posterior import LabelPosterior
    from fewlabels.predictions import Predictions

ITEM = "item"
"""The group whose values name the items, where the predictions have it."""

MOST_COMPARED = 30
"""Of more classifiers a report compares none (pairs are their square); joint errors are of them."""


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


class Reference(NamedTuple):
    """How many labeled items from elsewhere there are, and the classifiers that they speak of."""

    n_items: int
    models: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Estimated):
    """What `fewlabels.estimate` returns.

    `rows` are ordered: all items, then groups by first appearance; classifiers as given; metrics as
    asked. `draws` maps (metric, group) to posterior draws (D, M), paired over the classifiers.
    `directions` maps a metric to +1 (larger is better), -1 or 0. `judged` are the `predictions` as
    they were judged: weighted against a shift, or with annotators' distributions for labels; it is
    what pictures and comparisons are made from, and `judged_by` its posterior. Of items that were
    estimated from in parts it is a sample, and where no item is held (`streamed`) so are the
    `predictions`. `label_posterior` is `posterior`, or computes it when somebody asks.
    `residuals` are those of the labeled items, by which differences between classifiers are
    corrected, and allow for the method's being wrong (`comparison/discrepancy.py`); None where they
    are taken as the method gives them.
    """

    _page = "estimates"

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
    label_posterior: LabelPosterior | Callable[[], LabelPosterior] = field(repr=False)
    diagnostics: Mapping[str, Any]
    warnings: tuple[str, ...]
    predictions: Predictions = field(repr=False)
    describe: Callable[[Estimates], dict[str, Any]] = field(repr=False)
    judged: Predictions = field(repr=False)
    judged_by: LabelPosterior = field(repr=False)
    residuals: Mapping[tuple[str, str | None], Residuals] | None = field(default=None, repr=False)
    streamed: bool = False
    reference: Reference | None = None

    @cached_property
    def posterior(self) -> LabelPosterior:
        """What the method knows of the labels of the `predictions`."""
        made = self.label_posterior
        return made() if callable(made) else made

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the command line as a dictionary; NaN and infinities are None."""
        compared = {name: c.to_dict() for name, c in self.comparisons().items()}
        return self._facts() | {"comparison": plain_values(compared)}

    def _facts(self) -> dict[str, Any]:
        facts = {
            "fewlabels": __version__,
            "method": self.method,
            "estimand": self.estimand,
            "against": self.against,
            "seed": self.seed,
            "confidence_level": self.confidence_level,
            "n_items": self.n_items,
            "n_labeled": self.n_labeled,
            "n_annotated": self.n_annotated,
            "reference": None if self.reference is None else self.reference._asdict(),
            "groups": [group._asdict() for group in self.groups],
            "models": list(self.models),
            "classes": self._class_values,
            "positive": self.positive,
            "reading": list(self.predictions.reading),
            "estimates": [row._asdict() for row in self.rows],
            "diagnostics": dict(self.diagnostics),
            "warnings": list(self.warnings),
        }
        return {name: plain_values(value) for name, value in facts.items()}

    @cached_property
    def report(self) -> dict[str, Any]:
        """Everything that a report shows, as a dictionary of plain values (computed once)."""
        return plain_values(self.to_dict() | self.describe(self))

    def _in_brief(self) -> dict[str, Any]:
        info = {metric: {"direction": way} for metric, way in self.directions.items()}
        return self._facts() | {"metric_info": info}

    def _reported(self) -> dict[str, Any]:
        return self.report

    def to_frame(self, backend: str | None = None) -> Any:
        """The rows as a table of kind `backend`: "pandas", "polars" or "pyarrow".

        Without `backend` it is the first of these that is installed.
        """
        columns = {name: [getattr(row, name) for row in self.rows] for name in Estimate._fields}
        columns["status"] = [str(s) for s in columns["status"]]
        return frame(columns, backend, texts=("group",))

    def labels_frame(self, backend: str | None = None) -> Any:
        """The likeliest class of every item, as a table of kind `backend` (see `to_frame`).

        Columns: `item`, the group of that name, else its number from 0; `domain`, if any;
        `likeliest`, the first class of largest probability, which is not called a label, lest it
        be read back as known; `known`, whether the label was given; `p__<method>__<class>`.

        Raises
        ------
        UsageError
            If the method says nothing of the labels of single items.
        """
        texts = () if self.predictions.domain is None else ("domain",)
        return frame(self.label_columns(), backend, texts)

    def label_columns(self) -> dict[str, list[Any]]:
        """What `labels_frame` shows, by column.

        Raises
        ------
        UsageError
            If the method says nothing of the labels of single items.
        """
        posterior, predictions = self.posterior, self.predictions
        if self.streamed:
            raise UsageError(
                "a stream's items are not held; write their class probabilities to files with "
                "`posterior` (--posterior FOLDER)"
            )
        if posterior.means is not None or posterior.support is not None:
            raise UsageError(
                f"method {self.method!r} says nothing of the labels of single items; take one that "
                "infers them, such as 'tempered-ensemble' for probabilities or 'dawid-skene' for "
                "hard predictions"
            )
        p = posterior.marginals()
        out = predictions.item_names or {ITEM: list(range(predictions.n_items))}
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
    def positive(self) -> str | None:
        """The positive class, as text; None with more than two."""
        return str(self.classes[1]) if len(self.classes) == 2 else None

    def summary(self, width: int = 80) -> str:
        """The estimates as a table of text."""
        from fewlabels.report import render_text

        return render_text(self.report, width=width)

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

        Classifiers for which the metric is undefined or not applicable, or whose estimate the
        labels contradict, get 0; where they contradict all, NaN.
        """
        direction = self._direction(metric)
        goodness = self._paired(metric, group)[1] * direction
        aside = self._contradicted(metric, group)
        goodness[:, [model in aside for model in self.models]] = np.nan
        return dict(zip(self.models, probability_best(goodness).tolist(), strict=True))

    def difference(self, a: str, b: str, metric: str, group: str | None = None) -> Difference:
        """Metric of `a` minus metric of `b`, with the interval of paired draws.

        Not quite the difference of the two values: labels say more of a difference than of each.
        """
        for model in (a, b):
            self.get(model, metric, group)
        values, draws = self._paired(metric, group)
        i, j = self.models.index(a), self.models.index(b)
        value, gap = float(values[i] - values[j]), draws[:, i] - draws[:, j]
        return paired_interval(value, gap, self.confidence_level)

    def compare(
        self, metric: str, group: str | None = None, models: Sequence[str] | None = None
    ) -> Comparison:
        """Ranking, paired differences, who cannot be told apart, and the labels that would do it.

        Parameters
        ----------
        models
            The classifiers to compare; None: all. Of fewer, more can be told apart.

        Raises
        ------
        UsageError
            If the metric is unknown or without direction, there is no such group or classifier,
            there are no draws, or fewer than two classifiers to compare.
        """
        chosen = self._chosen(models)
        if (metric, group, chosen) not in self._compared:
            self._compared[metric, group, chosen] = self._compare(metric, group, chosen)
        return self._compared[metric, group, chosen]

    def _chosen(self, models: Sequence[str] | None) -> tuple[str, ...]:
        """Some of the classifiers, each once; None: all."""
        for model in models or ():
            if model not in self.models:
                raise UsageError(unknown("model", model, self.models))
        return self.models if models is None else tuple(dict.fromkeys(models))

    def _compare(self, metric: str, group: str | None, models: tuple[str, ...]) -> Comparison:
        direction, (values, draws) = self._direction(metric), self._paired(metric, group)
        size = next(g for g in self.groups if g.group == group)
        columns = [self.models.index(model) for model in models]
        variance = self._item_variance(metric, group) if len(draws) else None
        return compare(
            models,
            np.array([self.get(model, metric, group).value for model in models]),
            draws[:, columns],
            direction,
            level=self.confidence_level,
            metric=metric,
            group=group,
            item_variance=None if variance is None else variance[np.ix_(columns, columns)],
            n_labeled=size.n_labeled or self._n_annotated(group),
            n_unlabeled=size.n_items - size.n_labeled if self.estimand == "sample" else None,
            contradicted=self._contradicted(metric, group),
            paired=values[columns],
        )

    def _paired(self, metric: str, group: str | None) -> tuple[Floats, Floats]:
        """Values (M,) and draws (D, M) whose differences hold, whatever all of them share."""
        if (metric, group) not in self._pairs:
            draws = self._draws(metric, group)
            values = np.array([self.get(model, metric, group).value for model in self.models])
            variance = None
            if self.residuals is not None and len(draws):
                variance = self._item_variance(metric, group)
            if variance is not None and self.residuals is not None:
                # By goodness and whatever the name, so that accuracy and error rate say the same.
                way = self.directions[metric] or 1
                seed = crc32(f"{self.seed} {group}".encode(errors="surrogateescape"))
                residuals = self.residuals.get((metric, group))
                if residuals is not None:
                    draws = residuals.draws
                    residuals = residuals._replace(value=way * residuals.value)
                values, draws = (
                    way * found
                    for found in with_discrepancy(
                        way * values, way * draws, variance, residuals, seed
                    )
                )
            self._pairs[metric, group] = values, draws
        return self._pairs[metric, group]

    def _contradicted(self, metric: str, group: str | None) -> frozenset[str]:
        """Classifiers whose estimate the labels speak against."""
        of = (metric, group, Status.CONTRADICTED)
        return frozenset(r.model for r in self.rows if (r.metric, r.group, r.status) == of)

    def gap(self, model: str, metric: str, group_a: str, group_b: str) -> Difference:
        """Metric of a classifier in one group minus that in another, with the interval.

        Draw d of both groups has the same parameters of the label model, so what these leave open
        for both alike cancels; items of disjoint groups are drawn independently. NaN for a group
        of which the method knows nothing (`labeled`, where it has no label).

        Raises
        ------
        UsageError
            If there is no such classifier, metric or group.
        """
        values, draws = self._of_groups(model, metric, [group_a, group_b])
        gap = draws[:, 0] - draws[:, 1]
        return paired_interval(float(values[0] - values[1]), gap, self.confidence_level)

    def group_gaps(self, metric: str, column: str) -> tuple[GroupGap, ...]:
        """Largest minus smallest metric over the groups of a column, per classifier.

        Raises
        ------
        UsageError
            If the metric is unknown, or the estimates were not made by this column.
        """
        if column not in self._by_column:
            said = unknown("group", column, self.columns, "estimate with `by` to have groups")
            raise UsageError(said)
        names = list(self._by_column[column])
        return tuple(
            group_gap(model, names, *self._of_groups(model, metric, names), self.confidence_level)
            for model in self.models
        )

    def together(self, group: str | None = None, models: Sequence[str] | None = None) -> Together:
        """How classifiers fail together: joint errors, majority vote, best choice per item.

        `models` are some of the classifiers; None: all.

        Raises
        ------
        UsageError
            If there is no such group or classifier, fewer than two classifiers with hard
            predictions, or no posterior over labels.
        """
        from fewlabels.evaluation.joint_errors import joint_errors

        chosen = frozenset(self._chosen(models))
        if (group, chosen) not in self._together:
            self._together[group, chosen] = joint_errors(
                self.judged, self.judged_by, self._rows_of(group),
                population=self.estimand == "population", level=self.confidence_level,
                n_draws=max((len(d) for d in self.draws.values()), default=0),
                method=self.method, group=group, models=chosen,
            )  # fmt: skip
        return self._together[group, chosen]

    @cached_property
    def _pairs(self) -> dict[tuple[str, str | None], tuple[Floats, Floats]]:
        return {}

    @cached_property
    def _compared(self) -> dict[tuple[str, str | None, tuple[str, ...]], Comparison]:
        return {}

    @cached_property
    def _together(self) -> dict[tuple[str | None, frozenset[str]], Together]:
        return {}

    def _of_groups(self, model: str, metric: str, names: Sequence[str]) -> tuple[Floats, Floats]:
        """Values (G,) and draws (D, G) of a classifier; NaN where the method knows nothing."""
        values = np.array([self.get(model, metric, name).value for name in names])
        j = self.models.index(model)
        draws = np.stack([self._draws(metric, name)[:, j] for name in names], axis=1)
        support = self.judged_by.support
        if support is not None:
            # Such a group has the values of all items, which say nothing of how it differs.
            blind = [not support[self._rows_of(name)].any() for name in names]
            values[blind], draws[:, blind] = np.nan, np.nan
        return values, draws

    def _rows_of(self, group: str | None) -> Ints:
        """The items of a group, among those that are `judged`."""
        if group is None:
            return np.arange(self.judged.n_items)
        for found in self._by_column.values():
            if group in found:
                return found[group]
        known = [g.group for g in self.groups if g.group]
        raise UsageError(unknown("group", group, known, "estimate with `by` to have groups"))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose groups there are."""
        return tuple(self._by_column)

    @cached_property
    def _by_column(self) -> dict[str, dict[str, Ints]]:
        """Column -> name of the group -> its items."""
        from fewlabels.groups import groups_by_column

        names = [g.group for g in self.groups if g.group]
        return {
            column: {str(group.name): group.rows for group in found}
            for column, found in groups_by_column(self.judged, names).items()
        }

    def _n_annotated(self, group: str | None) -> int:
        if self.against != "distribution" or self.judged.histogram is None:
            return 0
        counts = self.judged.histogram[self._rows_of(group)]
        return int((counts.sum(axis=1) > 0).sum())

    def _item_variance(self, metric: str, group: str | None) -> Floats | None:
        from fewlabels.evaluation.item_variance import item_variance

        if (metric, group) not in self._variances:
            found = item_variance(self.judged, self.judged_by, metric, self._rows_of(group))
            self._variances[metric, group] = found
        return self._variances[metric, group]

    @cached_property
    def _variances(self) -> dict[tuple[str, str | None], Floats | None]:
        return {}

    def comparisons(self) -> dict[str, Comparison]:
        """Comparisons by every metric with a direction, where there is something to compare.

        Of more than 30 classifiers none is made: their pairs are too many to list.
        """
        out: dict[str, Comparison] = {}
        for metric, direction in self.directions.items():
            if direction and 1 < len(self.models) <= MOST_COMPARED:
                with contextlib.suppress(UsageError):
                    out[metric] = self.compare(metric)
        return out

    def _direction(self, metric: str) -> int:
        direction = self.directions.get(metric)
        if direction is None:
            raise UsageError(unknown("metric", metric, self.directions))
        if direction == 0:
            raise UsageError(f"metric {metric!r} does not say whether larger or smaller is better")
        return direction

    def _draws(self, metric: str, group: str | None) -> Floats:
        try:
            return self.draws[metric, group]
        except KeyError:
            groups = listed(g.group for g in self.groups if g.group) or "none"
            raise UsageError(
                f"no draws of metric {metric!r} in group {group!r}; groups: {groups}"
            ) from None


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
