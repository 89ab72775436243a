"""Differences of estimates: between classifiers, between groups, and joint errors.

Functions of finished estimates: of their rows and paired draws, and where items count, of the
predictions and the posterior that they were made from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from fewlabels.checks.conditions import NOT_RANDOM
from fewlabels.comparison.compare import Comparison, Together, compare
from fewlabels.comparison.draws import (
    GroupGap,
    Residuals,
    group_gap,
    paired_interval,
    with_discrepancy,
)
from fewlabels.errors import UsageError, unknown
from fewlabels.estimates import MOST_COMPARED, Estimates, Paired
from fewlabels.evaluation.item_variance import item_variance
from fewlabels.evaluation.joint_errors import Accuracies, joint_errors
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.interval_draws import Interval


def allowing_for_discrepancy(
    estimates: Estimates, residuals: Mapping[tuple[str, str | None], Residuals]
) -> dict[tuple[str, str | None], Paired]:
    """Values and draws whose differences allow for model error, by metric and group.

    `residuals` are those of the labeled items; where there are none, no label says anything of the
    differences.
    """
    out: dict[tuple[str, str | None], Paired] = {}
    variances = {
        group: item_variance(estimates.judged, estimates.judged_by, estimates.directions, rows)
        for group, rows in _rows_by_group(estimates).items()
    }
    for (metric, group), draws in estimates.draws.items():
        # A group without a row in the sample of a stream uses the variance of all items.
        variance = variances.get(group, variances[None]).get(metric)
        if variance is None or not len(draws):
            continue
        # By goodness and whatever the name, so that accuracy and error rate say the same.
        way = estimates.directions[metric] or 1
        seed = crc32(f"{estimates.seed} {group}".encode(errors="surrogateescape"))
        observed = residuals.get((metric, group))
        if observed is not None:
            draws = observed.draws
            observed = observed._replace(value=way * observed.value)
        values = estimates.pairs(metric, group).values
        moved, spread = with_discrepancy(way * values, way * draws, variance, observed, seed)
        out[metric, group] = Paired(way * moved, way * spread, variance)
    return out


def comparison(
    estimates: Estimates,
    metric: str,
    group: str | None = None,
    models: Sequence[str] | None = None,
) -> Comparison:
    """Ranking, paired differences, classifiers that cannot be told apart, and labels still needed.

    `models` are the classifiers to compare (None: all). Of fewer, more can be told apart.
    """
    chosen, direction = _chosen(estimates, models), estimates.direction(metric)
    values, draws, variance = estimates.pairs(metric, group)
    size = next(g for g in estimates.groups if g.group == group)
    columns = [estimates.judged.place[model] for model in chosen]
    variance = None if variance is None else variance[np.ix_(columns, columns)]
    if variance is None and len(draws):
        by_group, judged = _rows_by_group(estimates), estimates.judged
        rows = by_group.get(group, by_group[None])  # a mean over groups is of all items
        variance = item_variance(judged, estimates.judged_by, [metric], rows, columns).get(metric)
    return compare(
        chosen,
        np.array([estimates.get(model, metric, group).value for model in chosen]),
        draws[:, columns],
        direction,
        level=estimates.confidence_level,
        metric=metric,
        group=group,
        item_variance=variance,
        n_labeled=size.n_labeled or _n_annotated(estimates, group),
        n_unlabeled=size.n_items - size.n_labeled if estimates.estimand == "sample" else None,
        contradicted=estimates.contradicted(metric, group),
        paired=values[columns],
    )


def comparisons(estimates: Estimates) -> dict[str, Comparison]:
    """Comparisons by every metric with a direction, where there is something to compare.

    There is none with more than 30 classifiers, whose pairs are too many to list.
    """
    out: dict[str, Comparison] = {}
    for metric, direction in estimates.directions.items():
        if direction and 1 < len(estimates.models) <= MOST_COMPARED:
            with contextlib.suppress(UsageError):
                out[metric] = comparison(estimates, metric)
    return out


def gap(estimates: Estimates, model: str, metric: str, group_a: str, group_b: str) -> Interval:
    """Metric of a classifier in one group minus that in another, with the interval.

    Draw d of both groups has the same parameters of the label model, so their uncertainty cancels
    as far as it is common to both; items of disjoint groups are drawn independently. NaN for a
    group of which the method knows nothing (`labeled`, where it has no label).
    """
    rows = _rows_by_group(estimates)
    values, draws = _group_draws(estimates, model, metric, [group_a, group_b], rows)
    drawn = draws[:, 0] - draws[:, 1]
    return paired_interval(float(values[0] - values[1]), drawn, estimates.confidence_level)


def group_gaps(estimates: Estimates, metric: str, column: str) -> tuple[GroupGap, ...]:
    """Largest minus smallest metric over the groups of a column, per classifier."""
    groups = estimates.group_rows
    if column not in groups:
        raise UsageError(unknown("group", column, groups, "estimate with `by` to have groups"))
    rows, level = groups[column], estimates.confidence_level
    names = list(rows)
    return tuple(
        group_gap(model, names, *_group_draws(estimates, model, metric, names, rows), level)
        for model in estimates.models
    )


def errors_together(
    estimates: Estimates, group: str | None = None, models: Sequence[str] | None = None
) -> Together:
    """How classifiers fail together: joint errors, majority vote, best choice per item.

    `models` are some of the classifiers; None: all.
    """
    rows, accuracy = _rows_of(estimates, group), None
    if "accuracy" in estimates.directions and estimates.judged_by.speaks_of(rows).any():
        aside = estimates.contradicted("accuracy", group)
        accuracy = Accuracies(
            np.array([estimates.get(model, "accuracy", group).value for model in estimates.models]),
            estimates.draws_of("accuracy", group),
            np.array([model in aside for model in estimates.models]),
        )
    return joint_errors(
        estimates.judged,
        estimates.judged_by,
        rows,
        accuracy=accuracy,
        random=NOT_RANDOM not in estimates.diagnostics,
        population=estimates.estimand == "population",
        level=estimates.confidence_level,
        n_draws=max((len(d) for d in estimates.draws.values()), default=0),
        method=estimates.method,
        group=group,
        models=frozenset(_chosen(estimates, models)),
    )


def _chosen(estimates: Estimates, models: Sequence[str] | None) -> tuple[str, ...]:
    """Some of the classifiers, each once; None: all."""
    for model in models or ():
        if model not in estimates.judged.place:
            raise UsageError(unknown("model", model, estimates.models))
    return estimates.models if models is None else tuple(dict.fromkeys(models))


def _group_draws(
    estimates: Estimates, model: str, metric: str, names: Sequence[str],
    rows: Mapping[Any, Ints],
) -> tuple[Floats, Floats]:  # fmt: skip
    """Values (G,) and draws (D, G) of a classifier; NaN where the method knows nothing."""
    values = np.array([estimates.get(model, metric, name).value for name in names])
    j, posterior = estimates.models.index(model), estimates.judged_by
    draws = np.stack([estimates.draws_of(metric, name)[:, j] for name in names], axis=1)
    # Such a group has the values of all items, which do not show how it differs.
    blind = [not posterior.speaks_of(rows[name]).any() for name in names]
    values[blind], draws[:, blind] = np.nan, np.nan
    return values, draws


def _rows_of(estimates: Estimates, group: str | None) -> Ints:
    """The items of a group."""
    if group is None:
        return np.arange(estimates.judged.n_items)
    rows = _rows_by_group(estimates)
    if group in rows:
        return rows[group]
    registered = [g.group for g in estimates.groups if g.group]
    raise UsageError(unknown("group", group, registered, "estimate with `by` to have groups"))


def _rows_by_group(estimates: Estimates) -> dict[str | None, Ints]:
    """The items of all, and of each group."""
    rows: dict[str | None, Ints] = {None: np.arange(estimates.judged.n_items)}
    for groups in estimates.group_rows.values():
        rows.update(groups)
    return rows


def _n_annotated(estimates: Estimates, group: str | None) -> int:
    if estimates.against != "distribution" or estimates.judged.histogram is None:
        return 0
    if group is None:
        return estimates.n_annotated
    counts = estimates.judged.histogram[_rows_of(estimates, group)]
    return int((counts.sum(axis=1) > 0).sum())
