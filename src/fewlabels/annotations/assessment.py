"""assess(): every loss of every classifier against the label histograms, by any group."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fewlabels import __version__
from fewlabels.annotations.diagrams import disagreement_rows, dispersion_rows, reliability_rows
from fewlabels.annotations.inputs import (
    checked_bins,
    checked_counts,
    checked_level,
    checked_seed,
)
from fewlabels.annotations.losses import METRICS, intervals, losses
from fewlabels.annotations.statistic_losses import METRICS as STATISTIC_METRICS
from fewlabels.annotations.statistic_losses import score
from fewlabels.annotations.statistics import DISAGREEMENT, LabelStatistic, concentrations
from fewlabels.annotations.statistics import statistic as resolve
from fewlabels.errors import InputError, Status, UsageError
from fewlabels.estimates import Estimate, frame, plain_values
from fewlabels.groups import Group, all_and_groups
from fewlabels.kernels.arrays import Array, Floats
from fewlabels.kernels.blocks import using_workers
from fewlabels.kernels.label_histograms import Annotated, Scheme, Sums, sums_of
from fewlabels.predictions import Predictions
from fewlabels.wording import listed, unknown

FEW = 20
"""Fewer annotated items than this are few."""


@dataclass(frozen=True, eq=False)
class Assessment:
    """What `assess` returns.

    `rows` are ordered: all items first, then the groups; classifiers as given; metrics as in
    `METRICS`, then those of the statistics. A row's `value` is NaN where it is undefined; `low` and
    `high` are NaN without a confidence level. `reliability`, `disagreement_reliability` and
    `dispersion` are those of all items, by classifier.
    """

    rows: tuple[Estimate, ...]
    seed: int
    n_items: int
    n_labeled: int
    n_annotated: int
    n_labels: int
    labels_per_item: Mapping[int, int]
    models: tuple[str, ...]
    classes: tuple[Any, ...]
    reliability: tuple[Mapping[str, Any], ...] = field(repr=False)
    disagreement_reliability: tuple[Mapping[str, Any], ...] = field(repr=False)
    dispersion: tuple[Mapping[str, Any], ...] = field(repr=False)
    diagnostics: Mapping[str, Any] = field(repr=False)
    warnings: tuple[str, ...]

    def get(self, model: str, metric: str, group: str | None = None) -> Estimate:
        """The row of one classifier, metric and group.

        Raises
        ------
        UsageError
            If there is no such row.
        """
        try:
            return self._index[model, metric, group]
        except KeyError:
            groups = dict.fromkeys(row.group for row in self.rows if row.group)
            raise UsageError(
                f"no estimate of metric {metric!r} for model {model!r} in group {group!r}; models: "
                f"{listed(self.models, 20)}; metrics: "
                f"{listed(dict.fromkeys(row.metric for row in self.rows), 60)}; groups: "
                f"{listed(groups or ['none'], 20)}"
            ) from None

    @cached_property
    def _index(self) -> dict[tuple[str, str, str | None], Estimate]:
        return {(row.model, row.metric, row.group): row for row in self.rows}

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the command line as a dictionary; NaN and infinities are None."""
        out: dict[str, Any] = plain_values(
            {
                "fewlabels": __version__,
                "method": "label-histograms",
                "seed": self.seed,
                "n_items": self.n_items,
                "n_labeled": self.n_labeled,
                "n_annotated": self.n_annotated,
                "n_labels": self.n_labels,
                "labels_per_item": self.labels_per_item,
                "models": self.models,
                "classes": [_plain_class(c) for c in self.classes],
                "estimates": [row._asdict() for row in self.rows],
                "reliability": self.reliability,
                "disagreement_reliability": self.disagreement_reliability,
                "dispersion": self.dispersion,
                "diagnostics": self.diagnostics,
                "warnings": self.warnings,
            }
        )
        return out

    def to_frame(self, backend: str | None = None) -> Any:
        """The rows as a table of kind `backend`: "pandas", "polars" or "pyarrow".

        Without `backend` it is the first of these that is installed.
        """
        columns = {name: [getattr(row, name) for row in self.rows] for name in Estimate._fields}
        columns["status"] = [str(s) for s in columns["status"]]
        return frame(columns, backend, texts=("group",))

    def summary(self, width: int = 80) -> str:
        """The losses and what they mean as text in lines of at most `width` columns."""
        from fewlabels.report.annotations_text import render_annotations

        return render_annotations(self.to_dict(), width)

    def __str__(self) -> str:
        return self.summary()

    def save_html(self, path: str | Path) -> None:
        """Write the report as one self-contained HTML file.

        Raises
        ------
        InputError
            If the path cannot be written.
        """
        from fewlabels.report.annotations_html import save_annotations_html

        save_annotations_html(self.to_dict(), path)


def _plain_class(value: Any) -> Any:
    return value if isinstance(value, (int, float)) else str(value)


def assess(
    predictions: Predictions,
    *,
    by: str | Sequence[str] | None = None,
    bins: int = 15,
    statistics: str | LabelStatistic | Sequence[str | LabelStatistic] = (),
    concentration: Any = None,
    confidence_level: float | None = 0.95,
    random_state: int | None = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Assessment:
    """Assess every classifier with probabilities against the label distribution.

    Parameters
    ----------
    predictions
        With a label histogram, or labels: a known label counts as one label where the item has no
        histogram. The items' weights are used.
    by
        Names of groups to assess separately as well; "domain" groups by the domain.
    bins
        Number of equal-width bins.
    statistics
        Statistics of several labels to score as well (`statistic`); each classifier predicts what
        its probabilities imply.
    concentration
        alpha0 of each item, shape (n,) for all classifiers, (n, M), or {model: (n,)}: labels are
        then Dirichlet-multinomial(alpha0 p) in the predictions of disagreement and statistics.
        None: multinomial.
    confidence_level
        Of the bootstrap intervals; None computes none.
    random_state
        Seed; None means 0. All classifiers see the same draws.
    workers
        Threads; None: one per available processor.
    progress
        Called with (parts done, parts in all).

    Raises
    ------
    InputError, UsageError
        If no classifier has probabilities, no item a label, counts are not whole numbers, or an
        argument is not what is said here.

    Examples
    --------
    >>> import fewlabels as fl
    >>> predictions = fl.Predictions([[0.9], [0.4]], histogram=[[0, 3], [2, 1]], models=["a"])
    >>> found = fl.annotations.assess(predictions, confidence_level=None)
    >>> round(found.get("a", "EL").value, 3)
    -0.097
    """
    if not isinstance(predictions, Predictions):
        raise UsageError(
            f"`predictions` must be fewlabels.Predictions; got {type(predictions).__name__}"
        )
    level, seed = checked_level(confidence_level), checked_seed(random_state)
    question = _Question(
        predictions,
        _counts(predictions),
        Scheme(checked_bins(bins), dispersion=True),
        statistics_of(statistics),
        _alpha(concentration, predictions),
        level,
        seed,
    )
    if not predictions.has_probabilities.any():
        raise InputError(
            "no classifier has probabilities, which the losses of label histograms are of; pass "
            "`probabilities` (in a file: columns p__<model>__<class>)"
        )
    with using_workers(workers):
        return _assess(question, all_and_groups(predictions, by), progress)


class _Question(NamedTuple):
    predictions: Predictions
    counts: Array
    scheme: Scheme
    statistics: tuple[LabelStatistic, ...]
    alpha: Mapping[int, Floats]
    level: float | None
    seed: int

    def data(self, model: int, rows: Array) -> Annotated:
        """Annotated items of a group with the predictions of one classifier."""
        p = self.predictions
        assert p.probabilities is not None
        weight = p.weight[rows]
        counts, z = self.counts[rows], p.probabilities[rows, model]
        equal = (weight == weight[0]).all()
        return Annotated(
            counts, z, self.expected(DISAGREEMENT, model, rows, z), None if equal else weight
        )

    def expected(self, phi: LabelStatistic, model: int, rows: Array, z: Floats) -> Floats:
        """What a classifier predicts of a statistic."""
        alpha = self.alpha.get(model)
        return phi.expected(z, None if alpha is None else alpha[rows])


def _counts(predictions: Predictions) -> Array:
    """Label counts (n, K): the histogram, else one for a known label."""
    if predictions.histogram is None:
        counts = np.zeros((predictions.n_items, predictions.n_classes))
    else:
        counts = checked_counts(predictions.histogram).copy()
    alone = np.flatnonzero(predictions.labeled & ~counts.any(axis=1))
    counts[alone, predictions.labels[alone]] = 1
    if not counts.any():
        raise InputError(
            "no item has a label; give how many annotators chose each class (`histogram`, in a "
            "file: columns h__<class>), or `labels`"
        )
    return counts


def statistics_of(value: Any) -> tuple[LabelStatistic, ...]:
    """The statistics that `assess` is asked for, by their names or as they are.

    Raises
    ------
    UsageError
        If there is none of a name, two have the same, or one is always assessed.
    """
    many = [value] if isinstance(value, (str, LabelStatistic)) else list(value)
    found = tuple(resolve(one) for one in many)
    names = [phi.name for phi in found]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"`statistics` must have different names; got {name!r} twice")
        if name == DISAGREEMENT.name:
            raise UsageError("disagreement is always assessed; leave it out of `statistics`")
    return found


def _alpha(value: Any, predictions: Predictions) -> dict[int, Floats]:
    """Concentration (n,) of each classifier that has one, by its index."""
    n, models = predictions.n_items, predictions.models
    if value is None:
        return {}
    if isinstance(value, Mapping):
        for name in value:
            if name not in models:
                raise UsageError(unknown("model", name, models))
        return {models.index(m): concentrations(alpha, n) for m, alpha in value.items()}
    if np.ndim(value) == 2:
        if np.shape(value) != (n, len(models)):
            raise InputError(
                f"`concentration` must have the shape ({n}, {len(models)}), a column per "
                f"classifier; got {np.shape(value)}"
            )
        return {j: concentrations(np.asarray(value)[:, j], n) for j in range(len(models))}
    return dict.fromkeys(range(len(models)), concentrations(value, n))


def _assess(
    question: _Question, groups: list[Group], progress: Callable[[int, int], None] | None
) -> Assessment:
    p = question.predictions
    given = p.has_probabilities.any(axis=0)
    rows: list[Estimate] = []
    diagrams: dict[str, list[dict[str, Any]]] = {name: [] for name in _DIAGRAMS}
    notes = _Notes()
    cells = [(group, j) for group in groups for j in np.flatnonzero(given).tolist()]
    for done, (group, j) in enumerate(cells):
        part = _Part(question, group, j, notes)
        rows += part.rows()
        if group.name is None:
            for name, found in part.diagrams().items():
                diagrams[name] += [{"model": p.models[j], **row} for row in found]
        if progress is not None:
            progress(done + 1, len(cells))
    labeled = question.counts.any(axis=1)
    for j in np.flatnonzero(given).tolist():
        own = int((labeled & p.has_probabilities[:, j]).sum())
        if own < labeled.sum():
            notes.add(
                f"has predictions for {own:,} of the {int(labeled.sum()):,} annotated items only: "
                "its losses are of those, and do not compare with others'",
                p.models[j],
            )
    for j in np.flatnonzero(~given).tolist():
        notes.add("not-applicable: no probabilities, so no losses", p.models[j])
    size = question.counts.sum(axis=1).astype(np.int64)
    many, items = np.unique(size[size > 0], return_counts=True)
    return Assessment(
        rows=tuple(rows),
        seed=question.seed,
        n_items=p.n_items,
        n_labeled=p.n_labeled,
        n_annotated=int((size > 0).sum()),
        n_labels=int(size.sum()),
        labels_per_item=dict(zip(many.tolist(), items.tolist(), strict=True)),
        models=tuple(p.models[j] for j in np.flatnonzero(given)),
        classes=p.classes,
        reliability=tuple(diagrams["reliability"]),
        disagreement_reliability=tuple(diagrams["disagreement_reliability"]),
        dispersion=tuple(diagrams["dispersion"]),
        diagnostics={
            "bins": question.scheme.bins,
            "statistics": [phi.name for phi in question.statistics],
            "concentration": [p.models[j] for j in sorted(question.alpha)],
            "n_items_of_two_labels": int((size >= 2).sum()),
            "disagreement": _rates(diagrams["disagreement_reliability"]),
        },
        warnings=(*p.notes, *notes.sentences()),
    )


def _rates(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """How often two labels of an item differ, and how often each classifier says they will."""
    out: dict[str, dict[str, float]] = {}
    for row in rows:
        of_model = out.setdefault(row["model"], {"observed": 0.0, "predicted": 0.0, "n_items": 0})
        of_model["observed"] += row["share"] * row["label_frequency"]
        of_model["predicted"] += row["share"] * row["mean_probability"]
        of_model["n_items"] += row["n_items"]
    return out


_DIAGRAMS = ("reliability", "disagreement_reliability", "dispersion")


class _Notes:
    """Reasons in the order they came up, each once, with the classifiers they are about."""

    def __init__(self) -> None:
        self._models: dict[str, dict[str, None]] = {}

    def add(self, reason: str, model: str) -> None:
        self._models.setdefault(reason, {})[model] = None

    def sentences(self) -> list[str]:
        return [f"{reason} ({listed(models, 5)})" for reason, models in self._models.items()]


class _Part:
    """One classifier on one group of items."""

    def __init__(self, question: _Question, group: Group, model: int, notes: _Notes) -> None:
        self.question, self.group, self.model, self.notes = question, group, model, notes
        self.name = question.predictions.models[model]
        labeled = question.counts[group.rows].any(axis=1)
        given = question.predictions.has_probabilities[group.rows, model]
        counted = question.predictions.weight[group.rows] > 0
        self.items = group.rows[labeled & given & counted]
        self.data = question.data(model, self.items) if len(self.items) else None
        self.sums: Sums | None = None if self.data is None else sums_of(self.data, question.scheme)

    def rows(self) -> list[Estimate]:
        """An estimate per metric."""
        out = [self._row(name, *found) for name, found in self._losses().items()]
        for phi in self.question.statistics:
            found = self._scored(phi)
            for metric in STATISTIC_METRICS:
                out.append(self._row(f"{metric}_{phi.name}", *found[metric], phi))
        return out

    def diagrams(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of the diagrams, by name."""
        if self.data is None or self.sums is None:
            return {}
        q, data = self.question, self.data
        assert data.pair is not None
        classes = [_plain_class(c) for c in q.predictions.classes]
        by_class = {
            "reliability": reliability_rows(self.sums, q.level),
            "dispersion": dispersion_rows(self.sums),
        }
        named = {
            name: [row | {"class": classes[row["class"]]} for row in found]
            for name, found in by_class.items()
        }
        of_pairs = disagreement_rows(data.counts, data.pair, data.weight, q.scheme, q.level)
        return named | {"disagreement_reliability": of_pairs}

    def _losses(self) -> dict[str, tuple[float, float, float]]:
        q = self.question
        if self.data is None or self.sums is None:
            return dict.fromkeys(METRICS, (math.nan, math.nan, math.nan))
        value = losses(self.sums, q.scheme)
        ends = {}
        if q.level is not None:
            ends = intervals(self.data, q.scheme, self.sums, q.level, q.seed)
        return {name: (value[name], *ends.get(name, (math.nan, math.nan))) for name in METRICS}

    def _scored(self, phi: LabelStatistic) -> dict[str, tuple[float, float, float]]:
        q, data = self.question, self.data
        # What nobody's labels can tell is not predicted either: large orders take long.
        if data is None or data.counts.sum(axis=1).max() < phi.order:
            return dict.fromkeys(STATISTIC_METRICS, (math.nan, math.nan, math.nan))
        predicted = q.expected(phi, self.model, self.items, data.probabilities)
        found = score(phi, data.counts, predicted, data.weight, q.scheme, q.level, q.seed)
        ends = found.get("intervals", {})
        return {
            name: (found[name], *ends.get(name, (math.nan, math.nan))) for name in STATISTIC_METRICS
        }

    def _row(
        self,
        metric: str,
        value: float,
        low: float,
        high: float,
        phi: LabelStatistic | None = None,
    ) -> Estimate:
        level = math.nan if self.question.level is None else self.question.level
        status = self._status(metric, value, phi)
        return Estimate(self.name, metric, self.group.name, value, low, high, level, status)

    def _status(self, metric: str, value: float, phi: LabelStatistic | None) -> Status:
        where = "" if self.group.name is None else f" in group {self.group.name}"
        if math.isnan(value):
            self.notes.add(f"undefined: {self._why(metric, phi)}{where}", self.name)
            return Status.UNDEFINED
        least = _least_labels(metric, phi)
        size = 0
        if self.data is not None:
            size = int((self.data.counts.sum(axis=1) >= least).sum())
        if size < FEW:
            labels = "a label" if least == 1 else f"{least} labels or more"
            reason = f"few-labels: only {size} item{'s' * (size > 1)} with {labels}{where}"
            self.notes.add(reason, self.name)
            return Status.FEW_LABELS
        return Status.OK

    def _why(self, metric: str, phi: LabelStatistic | None) -> str:
        if self.data is None:
            return "no item with a label and a prediction, so no losses"
        least = _least_labels(metric, phi)
        if phi is None:
            return (
                "EL, DL and the losses of disagreement need items that two annotators or more "
                "labeled, and there is none: ask a second annotator about some items"
            )
        size = self.data.counts.sum(axis=1)
        if (size >= least).any():
            return f"EL_{phi.name} has too many outcomes to sum over; the other losses stand"
        what = "the losses" if least == phi.order else "EL"
        return (
            f"{what} of {phi.name} need items of {least} labels or more, and there is none: ask "
            "more annotators, or take a statistic of fewer labels"
        )


def _least_labels(metric: str, phi: LabelStatistic | None) -> int:
    """How many labels an item needs to count."""
    if phi is not None:
        return 2 * phi.order if metric.startswith("EL_") else phi.order
    return 2 if metric in ("EL", "DL") or "_disagreement" in metric else 1
