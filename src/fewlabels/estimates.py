"""Estimates: one row per classifier, metric and group, with interval and trust."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from fewlabels import __version__, report
from fewlabels.checks.arguments import group_value
from fewlabels.comparison.draws import paired_interval, probability_best
from fewlabels.errors import Status, UsageError, listed, plain_name, unknown
from fewlabels.kernels.arrays import Floats, Frozen, Ints
from fewlabels.kernels.interval_draws import Interval
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.report.html import render_page, render_text
from fewlabels.report.shown import Result, brief, frame, plain_values, with_some_groups

ITEM = "item"
"""The group whose values name the items, where the predictions have it."""

MOST_COMPARED = 30
"""With more classifiers than this a report shows neither comparisons nor joint errors, as the
number of pairs is their square."""


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
    """The number of labeled items from elsewhere, and the classifiers with predictions of them."""

    n_items: int
    models: tuple[str, ...]


class Paired(NamedTuple):
    """Values (M,) and draws (D, M) of a metric whose differences hold, whatever all share.

    `item_variance` is the variance of one labeled item's part in each difference, (M, M); None
    where it was not needed.
    """

    values: Floats
    draws: Floats
    item_variance: Floats | None


OF_TABLE = ("comparison", "status_messages", "method_info", "metric_info", "best", "together")
"""Details that a table shows beside the estimates; a page shows more."""

IN_JSON = ("confusion",)
"""What is in the JSON where it was asked for (`showing`)."""


class Describe(Protocol):
    """Looks at the items behind estimates when somebody asks (`evaluation.details.Details`)."""

    def __call__(self, estimates: Estimates, names: Sequence[str] | None) -> Mapping[str, Any]:
        """Parts of what a report shows, by name, or all (None), in plain values."""

    def confusion(self, estimates: Estimates, group: str | None) -> Result:
        """Confusion matrices."""

    def disagreements(self, estimates: Estimates, confident: float) -> Result:
        """Items on which classifiers and labels, or confident classifiers, differ."""


Selected = str | Mapping[str, Any] | None
"""A group: its name, "column=value", or {column: value}; None is all items."""


def group_name(group: Selected) -> str | None:
    """The name of a group that may be given as {column: value}; groups are of one column each."""
    if not isinstance(group, Mapping):
        return group
    if len(group) != 1:
        raise UsageError(f"`group` must be one column and its value, as groups are; got {group!r}")
    ((column, value),) = group.items()
    return f"{column}={group_value(value)}"


class EstimateTable(Result):
    """A result of many estimates."""

    rows: tuple[Estimate, ...]

    def get(self, model: str, metric: str, group: Selected = None) -> Estimate:
        """The row of one classifier, metric and group: "language=es", or {"language": "es"}.

        Raises
        ------
        UsageError
            If there is no such row.
        """
        group = group_name(group)
        for row in self.rows:
            if (row.model, row.metric, row.group) == (model, metric, group):
                return row
        models, metrics, groups = (
            dict.fromkeys(getattr(row, part) for row in self.rows if getattr(row, part))
            for part in ("model", "metric", "group")
        )
        raise UsageError(
            f"no estimate of metric {metric!r} for model {model!r} in group {group!r}; models: "
            f"{listed(models, 20)}; metrics: {listed(metrics, 60)}; groups: "
            f"{listed(groups or ['none'], 20)}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Frozen, EstimateTable):
    """What `fewlabels.estimate` returns.

    `rows` are ordered: all items, then groups by first appearance; classifiers as given; metrics as
    asked. `draws` maps (metric, group) to posterior draws (D, M), paired over the classifiers.
    `directions` maps a metric to +1 (larger is better), -1 or 0. `judged` are the `predictions` as
    they were judged: weighted against a shift, or with annotators' distributions for labels; it is
    what pictures and comparisons are made from, and `judged_by` its posterior. Of items that were
    estimated from in parts it is a sample, and where no item is held (`streamed`) so are the
    `predictions`. `label_posterior` is `posterior`, or computes it when somebody asks.
    `group_rows` has the items of each group among the `judged`, by column and name.
    `paired` has the values and draws whose differences hold, by metric and group, where these are
    not simply those of the estimates. `describe` makes parts of what a report shows beside the
    estimates, in plain values, when somebody looks; `beside` are more of them.
    """

    _page = "estimates"
    _row_fields = Estimate._fields

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
    judged: Predictions = field(repr=False)
    judged_by: LabelPosterior = field(repr=False)
    group_rows: Mapping[str, Mapping[str, Ints]] = field(default_factory=dict, repr=False)
    paired: Mapping[tuple[str, str | None], Paired] = field(default_factory=dict, repr=False)
    describe: Describe | None = field(default=None, repr=False)
    beside: Mapping[str, Any] = field(default_factory=dict, repr=False)
    streamed: bool = False
    reference: Reference | None = None

    @cached_property
    def posterior(self) -> LabelPosterior:
        """Posterior of the labels of the `predictions`."""
        made = self.label_posterior
        return made() if callable(made) else made

    def to_dict(self, *, flat: bool = False) -> dict[str, Any]:
        """The JSON of the command line as a dictionary; NaN and infinities are None.

        With `flat` it is numbers by name, `model/metric`, `model/metric_low`, `model/metric_high`,
        for whatever logs numbers; what is undefined is left out.
        """
        if flat:
            return report.flat_numbers(self._facts())
        asked = {name: self.beside[name] for name in IN_JSON if name in self.beside}
        return self._facts() | self._parts(["comparison"]) | asked

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
            "classes": [plain_name(c) for c in self.classes],
            "positive": self.positive,
            "reading": list(self.predictions.reading),
            "estimates": [row._asdict() for row in self.rows],
            "diagnostics": dict(self.diagnostics),
            "warnings": list(self.warnings),
        }
        return {name: plain_values(value) for name, value in facts.items()}

    def report(self) -> dict[str, Any]:
        """Everything that a page shows, in plain values, made anew."""
        return with_some_groups(self._metadata() | self._parts(None) | dict(self.beside))

    def _parts(self, names: Sequence[str] | None) -> dict[str, Any]:
        """Parts of what a report shows beside the estimates; None: all."""
        return dict(self.describe(self, names)) if self.describe else {}

    def __repr__(self) -> str:
        # Without what takes time: comparisons and details of the items.
        shown = with_some_groups(self._metadata())
        return brief(
            type(self).__name__, lambda width: render_text("estimates", shown, width, brief=True)
        )

    def _metadata(self) -> dict[str, Any]:
        info = {metric: {"direction": way} for metric, way in self.directions.items()}
        return self._facts() | {"metric_info": info}

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
        if not posterior.infers:
            raise UsageError(
                f"method {self.method!r} says nothing of the labels of single items; take one that "
                "infers them, such as 'tempered-ensemble' for probabilities or 'dawid-skene' for "
                "hard predictions"
            )
        p = posterior.marginals()
        out = predictions.item_names or {ITEM: list(range(predictions.n_items))}
        if predictions.domain is not None:
            out["domain"] = [None if d is None else str(d) for d in predictions.domain.tolist()]
        classes = [plain_name(c) for c in self.classes]
        if len({isinstance(c, str) for c in classes}) > 1:  # A column is of one kind.
            classes = [str(c) for c in classes]
        out["likeliest"] = [classes[k] for k in p.argmax(axis=1).tolist()]
        out["known"] = predictions.labeled.tolist()
        return out | {
            f"p__{self.method}__{c}": p[:, k].tolist() for k, c in enumerate(self.classes)
        }

    @property
    def positive(self) -> str | None:
        """The positive class, as text; None with more than two."""
        return str(self.classes[1]) if len(self.classes) == 2 else None

    def _report_of_text(self) -> dict[str, Any]:
        return with_some_groups(self._metadata() | self._parts(OF_TABLE) | dict(self.beside))

    def to_markdown(self) -> str:
        """The estimates as tables of Markdown, for a pull request or the page of a CI job."""
        return report.render_markdown(self._metadata())

    def to_model_index(
        self, model: str, dataset: str, task: str = "text-classification"
    ) -> dict[str, Any]:
        """The `model-index` of a model card: the metrics of one classifier, with intervals.

        Raises
        ------
        UsageError
            If there is no such classifier.
        """
        if model not in self.models:
            raise UsageError(unknown("model", model, self.models))
        return report.model_index(self._facts(), model, dataset, task)

    def to_mlflow(self, folder: str = "fewlabels") -> None:
        """Log the numbers as metrics of the active run of MLflow, the report as its artifacts.

        Raises
        ------
        UsageError
            If MLflow is not installed.
        """
        try:
            import mlflow
        except ImportError:
            raise UsageError(
                "`to_mlflow` needs MLflow: pip install mlflow-skinny; or log to_dict(flat=True)"
            ) from None
        mlflow.log_metrics(self.to_dict(flat=True))
        mlflow.log_dict(self.to_dict(), f"{folder}/estimates.json")
        mlflow.log_text(render_page("estimates", self.report()), f"{folder}/report.html")

    def confusion(self, group: Selected = None) -> Result:
        """The confusion matrix of each classifier, of all items or of a group, with intervals.

        Cells are shares of all items under the label posterior (of the labeled ones where the
        method speaks of these alone), of those with the label, and of those with the prediction.

        Raises
        ------
        UsageError
            If there is no such group, more than 20 classes, no classifier that gives classes, or
            the method has no label posterior.
        """
        return self._described().confusion(self, group_name(group))

    def disagreements(self, confident: float = 0.7) -> Result:
        """The items on which classifiers and labels differ, or `confident` classifiers.

        The most telling come first: suspect labels, then the rest by the product of the two sides'
        probabilities of their class (1 for a label); a hard prediction has that with which it is
        right.

        Raises
        ------
        UsageError
            If the items are not held, or no classifier gives classes.
        """
        return self._described().disagreements(self, confident)

    def showing(self, **parts: Any) -> Estimates:
        """These estimates with `parts` in what text, page and JSON show beside them."""
        return replace(self, beside={**self.beside, **parts})

    def _described(self) -> Describe:
        assert self.describe is not None, "made by `estimate`"
        return self.describe

    def probability_best(self, metric: str, group: Selected = None) -> dict[str, float]:
        """P(this classifier is the best) per classifier, from paired draws; ties are shared.

        Classifiers for which the metric is undefined or not applicable, or whose estimate the
        labels contradict, get 0; of several of which at most one is left, NaN.
        """
        direction, group = self.direction(metric), group_name(group)
        goodness = self.pairs(metric, group).draws * direction
        aside = self.contradicted(metric, group)
        goodness[:, [model in aside for model in self.models]] = np.nan
        best = probability_best(goodness)
        if len(self.models) > 1 == np.isfinite(goodness).any(axis=0).sum():  # the best of what?
            best = np.full_like(best, np.nan)
        return dict(zip(self.models, best.tolist(), strict=True))

    def difference(self, a: str, b: str, metric: str, group: Selected = None) -> Interval:
        """Metric of `a` minus metric of `b`, with the interval of paired draws.

        Not quite the difference of the two values: labels say more of a difference than of each.
        """
        group = group_name(group)
        for model in (a, b):
            self.get(model, metric, group)
        values, draws, _ = self.pairs(metric, group)
        i, j = self.models.index(a), self.models.index(b)
        value, gap = float(values[i] - values[j]), draws[:, i] - draws[:, j]
        return paired_interval(value, gap, self.confidence_level)

    def pairs(self, metric: str, group: Selected = None) -> Paired:
        """Values and draws of all classifiers whose differences hold.

        Raises
        ------
        UsageError
            If there are no draws of this metric and group.
        """
        group = group_name(group)
        draws = self.draws_of(metric, group)
        if (metric, group) in self.paired:
            return self.paired[metric, group]
        by_model = {r.model: r.value for r in self.rows if (r.metric, r.group) == (metric, group)}
        values = np.array([by_model[model] for model in self.models])
        return Paired(values, draws, None)

    def contradicted(self, metric: str, group: str | None) -> frozenset[str]:
        """Classifiers whose estimate the labels speak against."""
        wanted = (metric, group, Status.CONTRADICTED)
        return frozenset(r.model for r in self.rows if (r.metric, r.group, r.status) == wanted)

    def direction(self, metric: str) -> int:
        """+1 where larger values of a metric are better, -1 where smaller ones are.

        Raises
        ------
        UsageError
            If the metric is unknown, or says of no value that it is better.
        """
        direction = self.directions.get(metric)
        if direction is None:
            raise UsageError(unknown("metric", metric, self.directions))
        if direction == 0:
            raise UsageError(f"metric {metric!r} does not say whether larger or smaller is better")
        return direction

    def draws_of(self, metric: str, group: str | None) -> Floats:
        """Draws (D, M) of a metric in a group.

        Raises
        ------
        UsageError
            If there are none.
        """
        try:
            return self.draws[metric, group]
        except KeyError:
            groups = listed(g.group for g in self.groups if g.group) or "none"
            raise UsageError(
                f"no draws of metric {metric!r} in group {group!r}; groups: {groups}"
            ) from None
