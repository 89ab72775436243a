"""fl.compare: which classifier is best, how far that is known, and how they fail together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewlabels.checks.arguments import RandomState, few_enough, seed_of
from fewlabels.comparison.compare import Comparison, Together
from fewlabels.comparison.draws import GroupGap
from fewlabels.data.inputs import predictions_of
from fewlabels.data.reading_lines import left_out
from fewlabels.errors import UsageError, gravest_first, quoted, unknown
from fewlabels.estimates import Estimates, Selected, group_name
from fewlabels.estimating import run_question
from fewlabels.evaluation.differences import comparison, errors_together, gap, group_gaps
from fewlabels.evaluation.evaluator import Estimand
from fewlabels.kernels.arrays import Frozen
from fewlabels.kernels.blocks import using_workers
from fewlabels.kernels.interval_draws import Interval
from fewlabels.methods.base import LabelModel
from fewlabels.metrics.registry import resolve
from fewlabels.pipeline import Question, aligned_reference, check_settings
from fewlabels.predictions import Predictions
from fewlabels.report.shown import Result, plain_values


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons(Frozen, Result):
    """What `fewlabels.compare` returns.

    `comparisons` maps (metric, group) to a comparison, with group None for all items; `group_gaps`
    maps (metric, column) to each classifier's gaps between the groups of a column; `together` maps
    a group to the joint errors of these classifiers. Groups without anything to compare are left
    out, with `warnings`.
    """

    estimates: Estimates
    comparisons: Mapping[tuple[str, str | None], Comparison]
    group_gaps: Mapping[tuple[str, str], tuple[GroupGap, ...]]
    together: Mapping[str | None, Together]
    warnings: tuple[str, ...]

    _page = "comparison"

    def get(self, metric: str, group: Selected = None) -> Comparison:
        """The comparison by one metric, of all items or a group; `UsageError` if there is none."""
        group = group_name(group)
        match = self.comparisons.get((metric, group))
        if match is None:
            where = "of all items" if group is None else f"in group {quoted(group)}"
            metrics = ", ".join(dict.fromkeys(m for m, _ in self.comparisons))
            raise UsageError(f"no comparison by {quoted(metric)} {where}; compared by: {metrics}")
        return match

    def gap(self, model: str, metric: str, group_a: str, group_b: str) -> Interval:
        """Metric of a classifier in group a minus that in group b, with the interval."""
        return gap(self.estimates, model, metric, group_a, group_b)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the command line as a dictionary; NaN and infinities are None."""
        out = self.estimates.to_dict()
        for name in ("estimates", "comparison", "diagnostics"):
            del out[name]
        # How the method was fitted is for `estimate` to say; how it was set, for both.
        if "settings" in self.estimates.diagnostics:
            out["diagnostics"] = {"settings": self.estimates.diagnostics["settings"]}
        gaps = [
            {"metric": metric, "column": column, **dataclasses.asdict(difference)}
            for (metric, column), item in self.group_gaps.items()
            for difference in item
        ]
        compared = [
            item.to_dict() | {"standings": self._standings(item)}
            for item in self.comparisons.values()
        ]
        together = [item.to_dict() for item in self.together.values()]
        lists = {"comparisons": compared, "group_gaps": gaps, "together": together}
        plain: dict[str, Any] = plain_values(out | lists | {"warnings": self.warnings})
        return plain

    def _standings(self, entry: Comparison) -> list[dict[str, Any]]:
        """Ranks with values and intervals."""
        out = []
        for standing in entry.standings:
            row = self.estimates.get(standing.model, entry.metric, entry.group)
            out.append(dataclasses.asdict(standing) | {"low": row.low, "high": row.high})
        return out

    def _columns(self) -> dict[str, Any]:
        """A row per metric, group and place in its ranking."""
        rows = [
            {"metric": entry.metric, "group": entry.group, **standing}
            for entry in self.comparisons.values()
            for standing in self._standings(entry)
        ]
        names = (
            "metric", "group", "model", "value", "low", "high", "probability_best",
            "expected_rank", "expected_loss", "may_be_best",
        )  # fmt: skip
        return {name: [row[name] for row in rows] for name in names}


def compare(
    predictions: Any,
    metric: str | Sequence[str] | None = None,
    *,
    method: str | LabelModel = "auto",
    by: str | Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    estimand: Estimand = "population",
    random_state: RandomState = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    y_true: Any = None,
    reference: Any = None,
    columns: Any = None,
    positive: Any = None,
) -> Comparisons:
    """Compare the classifiers: ranking, paired differences, gaps between groups, joint errors.

    Parameters
    ----------
    predictions
        What the classifiers said, and the labels there are: `Predictions`, or the path or frame
        that `read_predictions` would read. Or the estimates of `fewlabels.estimate`: then those
        are compared, by `metric` or by every one that ranks, and the other settings are theirs.
    metric
        By which metric, or several; None: accuracy, or roc_auc where there are scores alone.
    models
        Names of the classifiers to compare, two or more; None: all. The method still learns from
        all of them.
    method, by, confidence_level, estimand, random_state, workers, progress
        As for `fewlabels.estimate`.
    y_true, reference, columns, positive
        As for `fewlabels.estimate`.

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it: also where a metric says of no value
        that it is better, or there are not two classifiers to compare.

    Examples
    --------
    >>> import numpy as np
    >>> import fewlabels as fl
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(500) < 0.3
    >>> noise = rng.normal(size=(500, 2)) * [1.0, 2.5]
    >>> score = 1 / (1 + np.exp(-(3 * truth[:, None] - 1.5 + noise)))
    >>> labels = np.where(np.arange(500) < 50, truth, -1)
    >>> found = fl.compare(fl.Predictions(score, labels, models=["large", "small"]))
    >>> found.get("accuracy").standings[0].model
    'large'
    """
    if metric is not None:
        check_ranking([metric] if isinstance(metric, str) else metric)
    if isinstance(predictions, Estimates):
        requested = [metric] if isinstance(metric, str) else metric
        chosen = _chosen(models, predictions.models)
        with using_workers(workers):
            return compared(predictions, chosen, requested)
    items = predictions_of(predictions, columns, positive, tasks=True, y_true=y_true)
    elsewhere = aligned_reference(reference, items, method, columns=columns)
    if items.n_models < 2:
        only = "is one" if items.n_models else "is none"
        raise UsageError(_with_hint(f"a comparison needs two classifiers, and there {only}", items))
    usual = "accuracy" if items.has_hard.any() else "roc_auc"
    names = [usual] if metric is None else [metric] if isinstance(metric, str) else list(metric)
    chosen = _chosen(models, items.models)
    check_settings(confidence_level, estimand, workers)
    seed = seed_of(random_state)
    question = Question(method, names, by, confidence_level, estimand, seed=seed)
    estimates = run_question(question.about(items, elsewhere), items, workers, progress)
    with using_workers(workers):
        return compared(estimates, chosen)


def _with_hint(message: str, items: Predictions) -> str:
    """A message that something lacks, and what of the file is not used."""
    return "; ".join([message, *left_out(items.reading)[:3]])


def check_ranking(metrics: Sequence[str]) -> None:
    """Refuse unknown metrics, and metrics without a better direction."""
    for name, metric in resolve(metrics).items():
        if not metric.direction:
            raise UsageError(
                f"metric {quoted(name)} does not say whether larger or smaller is better; compare "
                "by another one"
            )


MOST_PAIRED = 300
"""Most classifiers that are compared: their 45,000 pairs take some seconds."""


def _chosen(models: Sequence[str] | None, registered: Sequence[str]) -> tuple[str, ...] | None:
    named = registered if models is None else [models] if isinstance(models, str) else models
    names = tuple(dict.fromkeys(named))
    few_enough(len(names), MOST_PAIRED, "comparisons of every two")
    if models is None:
        return None
    for name in names:
        if name not in registered:
            raise UsageError(unknown("model", name, registered))
    if len(names) < 2:
        raise UsageError(
            f"`models` names {len(names)} classifier{'s' * (not names)}; name two or more, or "
            "leave it out to compare all"
        )
    return names


def compared(
    estimates: Estimates,
    models: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
) -> Comparisons:
    """All comparisons of these estimates, by some of their metrics."""
    comparisons: dict[tuple[str, str | None], Comparison] = {}
    together: dict[str | None, Together] = {}
    unused = left_out(estimates.predictions.reading)
    messages = gravest_first([*unused, *estimates.warnings])
    if metrics is None:
        metrics = [name for name, direction in estimates.directions.items() if direction]
    for size in estimates.groups:
        for metric in metrics:
            try:
                comparisons[metric, size.group] = comparison(estimates, metric, size.group, models)
            except UsageError as nothing:
                if size.group is None:
                    raise UsageError(_with_hint(str(nothing), estimates.predictions)) from None
                messages.append(str(nothing))
    gaps = {
        (metric, column): tuple(
            difference
            for difference in group_gaps(estimates, metric, column)
            if models is None or difference.model in models
        )
        for metric in metrics
        for column in estimates.group_rows
    }
    for size in estimates.groups:
        try:
            together[size.group] = errors_together(estimates, size.group, models)
        except UsageError as nothing:
            if size.group is None:
                messages.append(str(nothing))
    return Comparisons(estimates, comparisons, gaps, together, tuple(messages))
