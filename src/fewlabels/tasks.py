"""Several tasks of the same items: every task by itself, all their rows, and the tasks' mean.

A task is fitted, judged and measured as if it were alone (`pipeline.estimate_in_memory`): tasks
share no curve, as the same score may mean little in one and much in another. What they share are
items. Row weights are drawn by item, so that draw d of every task is of one bootstrap of the items;
micro averages are metrics of all rows under the joined posterior, and of T tasks with draws m_td

macro_d = sum_t m_td / T.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fewlabels.data.inputs import one_at_a_time
from fewlabels.errors import InputError, Status, UsageError, gravest_first, listed, quoted
from fewlabels.estimates import Estimate, Estimates, GroupSize
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.blocks import step
from fewlabels.kernels.interval_draws import interval
from fewlabels.methods.joined import JoinedPosteriors, Salted
from fewlabels.metrics.registry import resolve
from fewlabels.pipeline import Checks, Question, estimate_in_memory
from fewlabels.predictions import Predictions

MACRO = "macro average"
"""The value of the column of tasks in rows of the mean over tasks."""

_GRAVEST_FIRST = (
    Status.UNDEFINED, Status.NOT_CONVERGED, Status.CONTRADICTED, Status.FEW_LABELS,
    Status.ASSUMPTION, Status.OK,
)  # fmt: skip


def estimate_tasks(
    question: Question, items: Predictions, progress: Callable[[int, int], None] | None = None
) -> Estimates:
    """Estimates of every task of these items, which are held in memory, and of all together.

    Raises
    ------
    UsageError
        Where the question is one about a single task.
    InputError
        Where a method cannot be fitted to a task; the message names it.
    """
    assert items.task is not None
    if items.histogram is not None:
        raise one_at_a_time(items.tasks, "counts of annotators (columns h__<class>)")
    for what, held in (("`shift`", question.shift), ("`reference`", question.reference)):
        if held is not None:
            raise one_at_a_time(items.tasks, what)
    alone, salt = replace(question, by=()), int(np.random.default_rng(question.seed).integers(2**63))
    each, checked = dict[str, Estimates](), list[Checks]()
    for name in items.tasks:
        step(f"task {name}")
        own = items.of_task(name, together=True)
        try:
            setup = alone.setup(own)
            fitted = Salted(setup.fit(alone, own), salt)
            checked.append(Checks.of(alone, setup, own))
            each[name] = estimate_in_memory(
                alone, setup, own, fitted, progress=progress, checks=checked[-1]
            )
        except (InputError, UsageError) as error:
            raise type(error)(f"task {quoted(name)}: {error}") from None
    parts = [one.judged_by for one in each.values()]
    fitted_to_all = None
    if all(part.infers for part in parts):
        fitted_to_all = JoinedPosteriors(parts, list(items.tasks.values()))
    rest = replace(question, by=tuple(c for c in question.columns if c != items.task))
    checks = Checks(
        {},
        [],
        random=all(one.random for one in checked),
        given_labels={model for one in checked for model in one.given_labels},
        suspect=any(one.suspect for one in checked),
    )
    setup = rest.setup(items)
    together = estimate_in_memory(
        rest, setup, items, fitted_to_all, progress=progress, checks=checks
    )
    return with_tasks(together, items.task, each)


def with_tasks(together: Estimates, column: str, each: Mapping[str, Estimates]) -> Estimates:
    """The estimates of all rows with those of every task, as groups of a column, and their mean."""
    rows: list[Estimate] = []
    draws, paired, sizes = dict(together.draws), dict(together.paired), list[GroupSize]()
    for name, one in each.items():
        group = f"{column}={name}"
        rows += [row._replace(group=group) for row in one.rows]
        draws |= {(metric, group): values for (metric, _), values in one.draws.items()}
        paired |= {(metric, group): values for (metric, _), values in one.paired.items()}
        sizes.append(one.groups[0]._replace(group=group))
    mean, of_mean, notes = _macro(together, column, each)
    first = [row for row in together.rows if row.group is None]
    others = [row for row in together.rows if row.group is not None]
    size = together.groups[0]._replace(group=f"{column}={MACRO}")
    own_rows = {f"{column}={name}": r for name, r in (together.predictions.tasks).items()}
    diagnostics = {name: _own(one) for name, one in each.items()}
    return replace(
        together,
        rows=(*first, *rows, *mean, *others),
        draws=draws | of_mean,
        paired=paired,
        groups=(together.groups[0], *sizes, size, *together.groups[1:]),
        group_rows={column: own_rows, **together.group_rows},
        warnings=tuple(gravest_first([*_warnings(each), *together.warnings, *notes])),
        diagnostics={**together.diagnostics, "tasks": diagnostics},
    )


def _own(one: Estimates) -> dict[str, object]:
    return {"method": one.method, **one.diagnostics}


def _warnings(each: Mapping[str, Estimates]) -> Iterator[str]:
    """Every warning once, with the tasks that it is about unless it is about all."""
    about: dict[str, list[str]] = {}
    for name, one in each.items():
        for warning in one.warnings:
            about.setdefault(warning, []).append(name)
    for warning, names in about.items():
        yield warning if len(names) == len(each) else f"{warning} (task {listed(names, 4)})"


def _macro(
    together: Estimates, column: str, each: Mapping[str, Estimates]
) -> tuple[list[Estimate], dict[tuple[str, str | None], Floats], list[str]]:
    """The mean over tasks of every metric and classifier, its draws, and what it leaves out."""
    group, level = f"{column}={MACRO}", together.confidence_level
    metrics = resolve(list(together.directions))
    rows, draws, left = list[Estimate](), dict[tuple[str, str | None], Floats](), dict[str, list[str]]()
    for j, model in enumerate(together.models):
        for name, metric in metrics.items():
            own = {task: one.get(model, name) for task, one in each.items()}
            there = {t: r for t, r in own.items() if r.status is not Status.NOT_APPLICABLE}
            if not there:
                rows.append(own[next(iter(own))]._replace(group=group))
                continue
            if len(there) < len(own):
                left[model] = [task for task in own if task not in there]
            value = float(np.mean([row.value for row in there.values()]))
            drawn = [each[task].draws[name, None][:, j] for task in there]
            size = min(map(len, drawn))
            mean = np.mean([values[:size] for values in drawn], axis=0)
            low, high = interval(np.array([value]), mean[:, None], level, metric.bounds)
            status = min((row.status for row in there.values()), key=_GRAVEST_FIRST.index)
            rows.append(Estimate(model, name, group, value, float(low[0]), float(high[0]), level, status))
            of_all = draws.setdefault((name, group), np.full((size, len(together.models)), np.nan))
            of_all[:, j] = mean[: len(of_all)]
    notes = [
        f"the macro average of {model} is over the tasks of which it has predictions, without "
        f"{listed(tasks, 5)}"
        for model, tasks in left.items()
    ]
    return rows, draws, notes
