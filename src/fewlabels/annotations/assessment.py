"""assess(): every loss of every classifier against the label histograms, by any group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fewlabels import __version__, report
from fewlabels.annotations.inputs import (
    checked_bins,
    checked_counts,
    checked_level,
    checked_seed,
)
from fewlabels.annotations.parts import (
    DIAGRAMS,
    Asked,
    Judged,
    Part,
    PartSums,
    items_by,
)
from fewlabels.annotations.statistics import DISAGREEMENT, LabelStatistic, concentrations
from fewlabels.annotations.statistics import statistic as resolve
from fewlabels.errors import InputError, UsageError
from fewlabels.estimates import Estimate
from fewlabels.evaluation.status import Reasons
from fewlabels.groups import Group, all_and_groups
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.blocks import using_workers
from fewlabels.kernels.label_histograms import Annotated, Scheme
from fewlabels.predictions import Predictions
from fewlabels.shown import Estimated, frame, plain_values
from fewlabels.sources import predictions_of
from fewlabels.wording import listed, unknown


@dataclass(frozen=True, eq=False, repr=False)
class Assessment(Estimated):
    """What `assess` returns.

    `rows` are ordered: all items first, then the groups; classifiers as given; metrics as in
    `METRICS`, then those of the statistics. A row's `value` is NaN where it is undefined; `low` and
    `high` are NaN without a confidence level. `reliability`, `disagreement_reliability` and
    `dispersion` are those of all items, by classifier.
    """

    _page = "annotations"

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
                "classes": [plain_class(c) for c in self.classes],
                "positive": str(self.classes[1]) if len(self.classes) == 2 else None,
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
        return report.render_annotations(self.to_dict(), width)

    def _in_brief(self) -> dict[str, Any]:
        return self.to_dict()

    def _reported(self) -> dict[str, Any]:
        return self.to_dict()

    def save_html(self, path: str | Path) -> None:
        """Write the report as one self-contained HTML file.

        Raises
        ------
        InputError
            If the path cannot be written.
        """
        report.save_page("annotations", self.to_dict(), path)


def plain_class(value: Any) -> Any:
    """A class as JSON says it."""
    return value if isinstance(value, (int, float)) else str(value)


def assess(
    predictions: Any,
    *,
    by: str | Sequence[str] | None = None,
    bins: int = 15,
    statistics: str | LabelStatistic | Sequence[str | LabelStatistic] = (),
    concentration: Any = None,
    confidence_level: float | None = 0.95,
    random_state: int | None = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    columns: Any = None,
    positive: Any = None,
) -> Assessment:
    """Assess every classifier with probabilities against the label distribution.

    Parameters
    ----------
    predictions
        `Predictions`, or the path or frame that `read_predictions` would read. With a label
        histogram, or labels: a known label counts as one label where the item has no
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
    columns, positive
        As for `fewlabels.estimate`.

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
    predictions = predictions_of(predictions, columns, positive)
    level, seed = checked_level(confidence_level), checked_seed(random_state)
    asked = Asked(
        Scheme(checked_bins(bins), dispersion=True), statistics_of(statistics), level, seed
    )
    question = _Question(
        predictions, label_counts(predictions), asked, _alpha(concentration, predictions)
    )
    facts = question.facts()
    facts.check()
    with using_workers(workers):
        return assessed(asked, facts, _parts(question, all_and_groups(predictions, by), progress))


class Facts(NamedTuple):
    """What is known of all items together.

    `sizes` maps a number of labels, 0 included, to how many items have it; `given` (M,) is whether
    a classifier has any probabilities, `own` (M,) how many labeled items it has them for.
    """

    n_items: int
    n_labeled: int
    sizes: Mapping[int, int]
    given: Bools
    own: Ints
    models: tuple[str, ...]
    classes: tuple[Any, ...]
    notes: tuple[str, ...] = ()
    concentration: tuple[str, ...] = ()

    @property
    def n_annotated(self) -> int:
        """Items with a label."""
        return sum(items for labels, items in self.sizes.items() if labels)

    def check(self) -> None:
        """Refuse what nothing can be said of.

        Raises
        ------
        InputError
            If there is no label, or no classifier has probabilities.
        """
        if not self.n_annotated:
            raise InputError(
                "no item has a label; give how many annotators chose each class (`histogram`, in a "
                "file: columns h__<class>), or `labels`"
            )
        if not self.given.any():
            raise InputError(
                "no classifier has probabilities, which the losses of label histograms are of; "
                "pass `probabilities` (in a file: columns p__<model>__<class>)"
            )


class _Question(NamedTuple):
    predictions: Predictions
    counts: Array
    asked: Asked
    alpha: Mapping[int, Floats]

    def facts(self) -> Facts:
        p = self.predictions
        labeled = np.asarray(self.counts.any(axis=1))
        return Facts(
            p.n_items,
            p.n_labeled,
            items_by(self.counts.sum(axis=1).astype(np.int64)),
            np.asarray(p.has_probabilities.any(axis=0)),
            np.asarray((labeled[:, None] & p.has_probabilities).sum(axis=0)),
            p.models,
            p.classes,
            p.notes,
            tuple(p.models[j] for j in sorted(self.alpha)),
        )

    def judged(self, model: int, group: Group) -> Judged | None:
        """Annotated items of a group with the predictions of one classifier."""
        p = self.predictions
        rows = group.rows[
            self.counts[group.rows].any(axis=1)
            & p.has_probabilities[group.rows, model]
            & (p.weight[group.rows] > 0)
        ]
        if not len(rows):
            return None
        assert p.probabilities is not None
        weight, z, alpha = p.weight[rows], p.probabilities[rows, model], self.alpha.get(model)
        equal = (weight == weight[0]).all()
        of_rows = None if alpha is None else alpha[rows]
        data = Annotated(self.counts[rows], z, None, None if equal else weight)
        return Judged(data, lambda phi: phi.expected(z, of_rows))


def label_counts(predictions: Predictions) -> Array:
    """Label counts (n, K): the histogram, else one for a known label.

    Raises
    ------
    InputError
        If the counts are not whole numbers.
    """
    if predictions.histogram is None:
        counts = np.zeros((predictions.n_items, predictions.n_classes))
    else:
        counts = checked_counts(predictions.histogram).copy()
    alone = np.flatnonzero(predictions.labeled & ~counts.any(axis=1))
    counts[alone, predictions.labels[alone]] = 1
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


def _parts(
    question: _Question, groups: list[Group], progress: Callable[[int, int], None] | None
) -> Callable[[Reasons], Iterator[Part]]:
    p, asked = question.predictions, question.asked
    given = np.flatnonzero(p.has_probabilities.any(axis=0)).tolist()
    classes = tuple(plain_class(c) for c in p.classes)

    def parts(notes: Reasons) -> Iterator[Part]:
        cells = [(group, j) for group in groups for j in given]
        for done, (group, j) in enumerate(cells):
            items = question.judged(j, group)
            sums = None
            if items is not None:
                sums = PartSums.of(items, asked, diagrams=group.name is None)
            yield Part(asked, p.models[j], group.name, classes, sums, items, notes)
            if progress is not None:
                progress(done + 1, len(cells))

    return parts


def assessed(asked: Asked, facts: Facts, parts: Callable[[Reasons], Iterator[Part]]) -> Assessment:
    """Put the parts together: all items first, then the groups, with every classifier each."""
    rows: list[Estimate] = []
    diagrams: dict[str, list[dict[str, Any]]] = {name: [] for name in DIAGRAMS}
    notes = Reasons()
    for part in parts(notes):
        rows += part.rows()
        if part.group is None:
            for name, found in part.diagrams().items():
                diagrams[name] += [{"model": part.model, **row} for row in found]
    labeled = facts.n_annotated
    for j in np.flatnonzero(facts.given).tolist():
        if facts.own[j] < labeled:
            notes.add(
                f"has predictions for {int(facts.own[j]):,} of the {labeled:,} annotated items "
                "only: its losses are of those, and do not compare with others'",
                facts.models[j],
            )
    for j in np.flatnonzero(~facts.given).tolist():
        notes.add("not-applicable: no probabilities, so no losses", facts.models[j])
    labels = {size: items for size, items in sorted(facts.sizes.items()) if size}
    return Assessment(
        rows=tuple(rows),
        seed=asked.seed,
        n_items=facts.n_items,
        n_labeled=facts.n_labeled,
        n_annotated=labeled,
        n_labels=sum(size * items for size, items in labels.items()),
        labels_per_item=labels,
        models=tuple(facts.models[j] for j in np.flatnonzero(facts.given)),
        classes=facts.classes,
        reliability=tuple(diagrams["reliability"]),
        disagreement_reliability=tuple(diagrams["disagreement_reliability"]),
        dispersion=tuple(diagrams["dispersion"]),
        diagnostics={
            "bins": asked.scheme.bins,
            "statistics": [phi.name for phi in asked.statistics],
            "concentration": list(facts.concentration),
            "n_items_of_two_labels": sum(n for size, n in labels.items() if size >= 2),
            "disagreement": _rates(diagrams["disagreement_reliability"]),
        },
        warnings=(*facts.notes, *notes.sentences()),
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
