"""Several tasks of the same items: every task by itself, all their rows, and the tasks' mean.

A task is fitted, judged and measured as if it were alone (`pipeline.estimate_in_memory`): tasks
share no curve, as the same score may mean little in one and much in another. What they share are
items, and the tasks' errors go together as these do. How far, the labels by themselves say: draws
b_td of a task's metric from its labels alone, by row weights that are the items', have a copula.
The draws m_td of a task are put in the order of its b_td (Iman and Conover 1982), and

macro_d = sum_t m_td / T.

Micro averages are metrics of all rows under the joined posterior, whose draws are moved away from
the value by as much as this order widens the draws of the macro average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fewlabels.data.inputs import one_at_a_time
from fewlabels.errors import InputError, Status, UsageError, gravest_first, listed, quoted
from fewlabels.estimates import Estimate, Estimates, GroupSize, Paired
from fewlabels.evaluation.details import Details
from fewlabels.evaluation.evaluator import (
    Estimand,
    Evaluator,
    Measured,
    n_interval_draws,
    nothing_measured,
)
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.blocks import step
from fewlabels.kernels.interval_draws import inflated, interval
from fewlabels.methods.base import gravest
from fewlabels.methods.baselines.plain import Labeled
from fewlabels.methods.joined import JoinedPosteriors, Salted
from fewlabels.metrics.base import Metric
from fewlabels.metrics.registry import resolve
from fewlabels.pipeline import Checks, Question, estimate_in_memory
from fewlabels.predictions import Predictions

MACRO = "macro average"
"""The value of the column of tasks in rows of the mean over tasks."""


def estimate_tasks(
    question: Question, items: Predictions, progress: Callable[[int, int], None] | None = None
) -> Estimates:
    """Estimates of every task of these items, which are held in memory, and of all together."""
    assert items.task is not None
    if items.histogram is not None:
        raise one_at_a_time(items.tasks, "counts of annotators (columns h__<class>)")
    for what, held in (("`shift`", question.shift), ("`reference`", question.reference)):
        if held is not None:
            raise one_at_a_time(items.tasks, what)
    alone, salt = (
        replace(question, by=()),
        int(np.random.default_rng(question.seed).integers(2**63)),
    )
    each, checked = dict[str, Estimates](), list[Checks]()
    guides: dict[str, dict[str, Measured]] = {}
    for name in items.tasks:
        step(f"task {name}")
        own = items.of_task(name, together=True)
        gives = own.gives("hard") | own.gives("ranking")
        own = own.select_models([m for m, some in zip(own.models, gives, strict=True) if some])
        try:
            setup = alone.setup(own)
            fitted = Salted(setup.fit(alone, own), salt)
            checked.append(Checks.of(alone, setup, own))
            each[name] = estimate_in_memory(
                alone, setup, own, fitted, progress=progress, checks=checked[-1]
            )
        except (InputError, UsageError) as error:
            raise type(error)(f"task {quoted(name)}: {error}") from None
        if each[name].judged_by.infers and own.n_labeled:
            metrics = {n: m for n, m in setup.metrics.items() if not m.in_memory}
            alone_by_labels = Labeled().infer(own, salt)
            level = question.confidence_level
            evaluator = Evaluator(own, alone_by_labels, metrics, "population", level)
            guides[name] = evaluator.measure(np.arange(own.n_items))
    parts = [one.judged_by for one in each.values()]
    fitted_to_all = None
    if all(part.infers for part in parts):
        rows, models = list(items.tasks.values()), [one.models for one in each.values()]
        fitted_to_all = JoinedPosteriors(parts, rows, models)
    rest = replace(question, by=tuple(c for c in question.columns if c != items.task))
    checks = Checks(
        {},
        [],
        random=all(one.random for one in checked),
        given_labels={model for one in checked for model in one.given_labels},
        perhaps_none={model for one in checked for model in one.perhaps_none},
        suspect=any(one.suspect for one in checked),
        lacking=any(one.lacking for one in checked),
    )
    setup = rest.setup(items)
    together = estimate_in_memory(
        rest, setup, items, fitted_to_all, progress=progress, checks=checks
    )
    return with_tasks(together, items.task, each, guides)


def of_streams(
    column: str, each: Mapping[str, Estimates], models: tuple[str, ...], reading: Sequence[str]
) -> Estimates:
    """Estimates of tasks that were read in parts, and of all together.

    Their draws are not of one bootstrap of the items. The mean's interval is the widest that they
    leave, that of tasks which err together: draws are averaged in their order. Micro averages are
    of the tasks' samples, a row of which stands for as many as the task has per row of its sample,
    with draws as much further from the value as the mean's are by this order.
    """
    first = next(iter(each.values()))
    size = GroupSize(None, *(sum(getattr(e, n) for e in each.values()) for n in _SIZES))
    metrics = resolve(list(first.directions))
    level = None if np.isnan(first.confidence_level) else first.confidence_level
    items = _stacked(column, each, models)
    notes = [_OTHER_CLASSES] if items is None else [_OF_SAMPLES] * any(
        e.predictions.n_items < e.n_items for e in each.values()
    )  # fmt: skip
    found = nothing_measured(metrics, n_interval_draws(level), len(models))
    if items is not None:
        parts, whose = [e.judged_by for e in each.values()], [e.models for e in each.values()]
        posterior = JoinedPosteriors(parts, list(items.tasks.values()), whose).posterior(items)
        of_items: Estimand = "sample" if first.estimand == "sample" else "population"
        evaluator = Evaluator(items, posterior, metrics, of_items, level)
        found = evaluator.measure(np.arange(items.n_items))
    rows, names = list[Estimate](), [f"{column}={name}" for name in (*each, MACRO)]
    for j, model in enumerate(models):
        for name, metric in metrics.items():
            own = [_of(one, model, name, "") for one in each.values() if items is not None]
            there = [row for row in own if row.status is not Status.NOT_APPLICABLE]
            value, draws = float(found[name].value[j]), [found[name].draws[:, j]] * bool(there)
            absent = _absent(first, model, name, None)
            row, _ = _mean(there or [absent], draws, metric.bounds, value)
            rows.append(row._replace(group=None))
    together = replace(
        first, rows=tuple(rows), models=models, n_items=size.n_items, n_labeled=size.n_labeled,
        n_annotated=0, groups=(size,), draws={(n, None): m.draws for n, m in found.items()},
        paired={}, group_rows={}, diagnostics={}, warnings=tuple(notes),
        describe=replace(Details.from_metrics(metrics), refused=one_at_a_time(names, "this")),
        predictions=first.predictions.noting(first.predictions.notes, reading),
    )  # fmt: skip
    return with_tasks(together, column, each, {})


def _stacked(
    column: str, each: Mapping[str, Estimates], models: tuple[str, ...]
) -> Predictions | None:
    """The rows that each task holds, as heavy as what they stand for; None if classes differ."""
    held = [one.predictions for one in each.values()]
    if len({one.classes for one in held}) > 1:
        return None
    of_each = [[models.index(m) for m in one.models] for one in held]

    def of_all(blocks: Sequence[Any], tail: tuple[int, ...], absent: Any) -> Any:
        if all(block is None for block in blocks):
            return None
        out = np.full((sum(own.n_items for own in held), len(models), *tail), absent)
        start = 0
        for own, block, place in zip(held, blocks, of_each, strict=True):
            if block is not None:
                out[start : start + own.n_items, place] = block
            start += own.n_items
        return out

    times = np.concatenate([own.times for own in held])
    shares = zip(each.values(), held, strict=True)
    return Predictions(
        of_all([own.probabilities for own in held], (held[0].n_classes,), np.nan),
        np.concatenate([own.labels for own in held]),
        votes=of_all([own.votes for own in held], (), -1),
        scores=of_all([own.scores for own in held], (), np.nan),
        weight=np.concatenate([own.weight * one.n_items / own.times.sum() for one, own in shares]),
        multiplicity=None if all(own.multiplicity is None for own in held) else times,
        groups={column: np.repeat(list(each), [own.n_items for own in held])},
        models=models, classes=held[0].classes, positive=held[0].positive, task=column,
    )  # fmt: skip


_OTHER_CLASSES = (
    "not-applicable: the tasks do not have the same classes, so that there are no micro averages; "
    "name all of them with --classes"
)
_OF_SAMPLES = (
    "micro averages are of a sample of the rows of every task, and their intervals so much wider; "
    "--engine memory takes all rows"
)
_SIZES = ("n_items", "n_labeled")


def with_tasks(
    together: Estimates, column: str, each: Mapping[str, Estimates],
    guides: Mapping[str, Mapping[str, Measured]],
) -> Estimates:  # fmt: skip
    """The estimates of all rows with those of every task, as groups of a column, and their mean.

    `guides` are what the labels of a task say alone; without them draws are averaged as they are,
    or, of streams, in their order.
    """
    rows: list[Estimate] = []
    draws, paired, sizes = dict(together.draws), dict(together.paired), list[GroupSize]()
    for name, one in each.items():
        group = f"{column}={name}"
        for model in together.models:
            rows += [_of(one, model, metric, group) for metric in together.directions]
        place = [one.models.index(m) if m in one.models else -1 for m in together.models]
        for (metric, _), values in one.draws.items():
            wider = np.column_stack([values, np.full(len(values), np.nan)])
            draws[metric, group] = wider[:, place]
        if one.models == together.models:
            paired |= {(metric, group): values for (metric, _), values in one.paired.items()}
        sizes.append(one.groups[0]._replace(group=group))
    group = f"{column}={MACRO}"
    factors: dict[tuple[str, str], float] = {}
    mean, notes, metrics = list[Estimate](), list[str](), resolve(list(together.directions))
    for j, model in enumerate(together.models):
        for metric, of_metric in metrics.items():
            own = {task: _of(one, model, metric, group) for task, one in each.items()}
            there = [t for t, row in own.items() if row.status is not Status.NOT_APPLICABLE]
            drawn = apart = [draws[metric, f"{column}={task}"][:, j] for task in there]
            if together.streamed or guides:
                drawn = [
                    _in_order(values, guides.get(t, {}).get(metric), each[t].models.index(model))
                    for t, values in zip(there, apart, strict=True)
                ]
                factors[model, metric] = _widening(drawn, apart)
            row, of_mean = _mean([own[t] for t in there or own], drawn, of_metric.bounds)
            mean.append(row)
            of_all = np.full((len(of_mean), len(together.models)), np.nan)
            draws.setdefault((metric, group), of_all)[:, j] = of_mean
            if 0 < len(there) < len(own):
                absent = listed([task for task in own if task not in there], 5)
                notes.append(
                    f"the macro average of {model} is over the tasks of which it has predictions, "
                    f"without {absent}"
                )
    for name in metrics if all(one.models == together.models for one in each.values()) else ():
        widest = max((factors.get((model, name), 1.0) for model in together.models), default=1.0)
        paired[name, group] = _mean_of_pairs([one.pairs(name) for one in each.values()], widest)
    together, widened = _widened(together, factors, metrics)
    draws |= widened
    own_rows = together.predictions.tasks if together.predictions.task else {}
    of_tasks = {f"{column}={name}": some for name, some in own_rows.items()}
    return replace(
        together,
        rows=(
            *(row for row in together.rows if row.group is None), *rows, *mean,
            *(row for row in together.rows if row.group is not None),
        ),
        draws=draws,
        paired=paired,
        groups=(
            together.groups[0], *sizes, together.groups[0]._replace(group=group),
            *together.groups[1:],
        ),
        group_rows={**({column: of_tasks} if of_tasks else {}), **together.group_rows},
        warnings=tuple(
            gravest_first(dict.fromkeys([*_warnings(each), *together.warnings, *notes]))
        ),
        diagnostics={
            **together.diagnostics,
            "tasks": {n: {"method": e.method, **e.diagnostics} for n, e in each.items()},
        },
    )  # fmt: skip


def _of(one: Estimates, model: str, metric: str, group: str) -> Estimate:
    """The row of a classifier in a task; not applicable where it has no predictions there."""
    if model in one.models:
        return one.get(model, metric)._replace(group=group)
    return _absent(one, model, metric, group)


def _absent(one: Estimates, model: str, metric: str, group: str | None) -> Estimate:
    """A row that is not applicable."""
    nothing = float("nan"), float("nan"), float("nan"), one.confidence_level
    return Estimate(model, metric, group, *nothing, Status.NOT_APPLICABLE)


def _mean(
    rows: Sequence[Estimate], drawn: Sequence[Floats], bounds: tuple[float, float],
    value: float | None = None,
) -> tuple[Estimate, Floats]:  # fmt: skip
    """The mean of some tasks' estimates, with the gravest status of theirs, and its draws (D,).

    Another `value` of all their rows takes the place of their values' mean.
    """
    if not drawn:
        return rows[0], np.full(1, np.nan)
    size = min(map(len, drawn))
    mean: Floats = np.mean([values[:size] for values in drawn], axis=0)
    level = rows[0].confidence_level
    value = float(np.mean([row.value for row in rows])) if value is None else value
    low, high = interval(np.array([value]), mean[:, None], level, bounds)
    status = gravest(row.status for row in rows)
    row = rows[0]._replace(value=value, low=float(low[0]), high=float(high[0]), status=status)
    return row, mean


def _in_order(drawn: Floats, guide: Measured | None, j: int) -> Floats:
    """Draws (D,) in the order of those of a classifier from labels alone; ascending without."""
    ordered = np.sort(drawn)
    if guide is None or len(guide.draws) < len(drawn) or np.isnan(guide.draws[:, j]).any():
        return ordered
    out: Floats = ordered[np.argsort(np.argsort(guide.draws[: len(drawn), j], kind="stable"))]
    return out


def _widening(ordered: Sequence[Floats], apart: Sequence[Floats]) -> float:
    """By how much the spread of the mean of draws is larger in their order than as they are."""
    if not ordered or not len(ordered[0]):
        return 1.0
    both = [float(np.std(np.mean(draws, axis=0))) for draws in (ordered, apart)]
    return max(both[0] / both[1], 1.0) if both[1] > 0 else 1.0


def _widened(
    together: Estimates, factors: Mapping[tuple[str, str], float], metrics: Mapping[str, Metric]
) -> tuple[Estimates, dict[tuple[str, str | None], Floats]]:
    """Estimates of rows of all tasks with draws further from their values, and these draws."""
    rows, draws = list[Estimate](), {key: d.copy() for key, d in together.draws.items()}
    for row in together.rows:
        factor = factors.get((row.model, row.metric), 1.0)
        if factor > 1 and np.isfinite(row.value):
            column = draws[row.metric, row.group][:, together.models.index(row.model)]
            column[:] = inflated(column[:, None], np.array([row.value]), factor)[:, 0]
            bounds, value = metrics[row.metric].bounds, np.array([row.value])
            low, high = interval(value, column[:, None], row.confidence_level, bounds)
            row = row._replace(low=float(low[0]), high=float(high[0]))
        rows.append(row)
    return replace(together, rows=tuple(rows)), draws


def _mean_of_pairs(each: Sequence[Paired], factor: float) -> Paired:
    """What holds of differences of the tasks' mean; draws are `factor` times as far from it."""
    size = min(len(one.draws) for one in each)
    variances = [one.item_variance for one in each if one.item_variance is not None]
    values = np.mean([one.values for one in each], axis=0)
    return Paired(
        values,
        inflated(np.mean([one.draws[:size] for one in each], axis=0), values, factor),
        np.mean(variances, axis=0) if len(variances) == len(each) else None,
    )


def _warnings(each: Mapping[str, Estimates]) -> Iterator[str]:
    """Every warning once, with the tasks that it is about unless it is about all."""
    about: dict[str, list[str]] = {}
    for name, one in each.items():
        for warning in one.warnings:
            about.setdefault(warning, []).append(name)
    for warning, names in about.items():
        yield warning if len(names) == len(each) else f"{warning} (task {listed(names, 4)})"
