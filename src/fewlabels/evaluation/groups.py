"""Groups of items: all of them, then each value of the requested columns.

Columns of up to `MAX_GROUPS` values give groups that are measured one by one, and compared; those
of up to `MOST_GROUPS` give groups that are all measured in one pass
(`evaluator.measure_many_groups`).

The way of `--by`, whose flag is made from the field `by` of `cli/input.Settings`: `Settings.groups`
-> `cli/estimate.estimate` -> `estimating.estimate` (`many_and_few`) ->
`pipeline.estimate_in_memory` (`groups_by_column`) -> `pipeline.build_estimates`, which for each
group calls `Evaluator.measure`, then `guard.guarded_rows`. Columns of many groups go to
`pipeline.with_many_groups`; in streams `streaming/tally._groups` finds the groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewlabels.checks.arguments import group_value
from fewlabels.errors import UsageError, unknown
from fewlabels.kernels.arrays import Array, Ints
from fewlabels.metrics.plans import Chosen
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

MAX_GROUPS = 50

GROUP_DRAWS = 200
"""Draws behind the intervals of each group of a column with many."""

MOST_GROUPS = 10_000
"""Groups of a column, at most."""

LEAST_EACH = 10
"""Items of a group on average, where there are many: with fewer it is more often a column of
names."""


class Group(NamedTuple):
    """Name ("column=value", None for all items) and rows of a group."""

    name: str | None
    rows: Ints


@dataclass(frozen=True, eq=False)
class ManyGroups:
    """The groups of a column: names by first appearance, and the group of each item (n,)."""

    name: str
    names: tuple[str, ...]
    codes: Ints


def all_and_groups(predictions: Predictions, by: str | Sequence[str] | None) -> list[Group]:
    """All items first, then the groups of each column by first appearance."""
    return all_and(predictions, groups_by_column(predictions, by))


def all_and(predictions: Predictions, groups: Mapping[str, Mapping[str, Ints]]) -> list[Group]:
    """All items first, then the groups of each column."""
    everything = Group(None, np.arange(predictions.n_items))
    return [everything, *(Group(*named) for rows in groups.values() for named in rows.items())]


def groups_by_column(
    predictions: Predictions, by: str | Sequence[str] | None, most: int | None = None
) -> dict[str, dict[str, Ints]]:
    """Column -> name of a group, by first appearance -> its items; of at most so many groups."""
    if by is not None and not isinstance(by, Iterable):
        raise UsageError(f"`by` must be the name of a group, or several; got {by!r}")
    out: dict[str, dict[str, Ints]] = {}
    for column in dict.fromkeys([by] if isinstance(by, str) else () if by is None else by):
        codes, names = _codes(_column(predictions, column))
        most = MAX_GROUPS if most is None else most
        if len(names) > most:
            raise UsageError(
                f"group {column!r} has {len(names)} values, more than {most}; group them "
                "first, or leave it out of `by`"
            )
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(names) + 1))
        out[column] = {
            f"{column}={name}": np.sort(order[ends[i] : ends[i + 1]])
            for i, name in enumerate(names)
        }
    return out


def many_and_few(
    items: Predictions, by: Sequence[str]
) -> tuple[tuple[str, ...], tuple[ManyGroups, ...]]:
    """The columns of at most `MAX_GROUPS` groups, and those of more."""
    few, many = list[str](), list[ManyGroups]()
    for column in by:
        codes, names = values_of(items, column)
        if len(names) > MOST_GROUPS:
            raise UsageError(
                f"group {column!r} has {len(names):,} values, more than {MOST_GROUPS:,}; group "
                "them first, or leave it out of `by`"
            )
        if len(names) > MAX_GROUPS and len(names) * LEAST_EACH > items.size:
            raise UsageError(
                f"group {column!r} has {len(names):,} values, more than {MAX_GROUPS}, and "
                f"{items.size / len(names):.2g} items of each: too few to say much of them "
                f"({LEAST_EACH} would do); group them, or say by `cluster` that rows go together"
            )
        if len(names) <= MAX_GROUPS:
            few.append(column)
        else:
            many.append(ManyGroups(column, tuple(f"{column}={name}" for name in names), codes))
    return tuple(few), tuple(many)


def refuse_many_groups(
    items: Predictions, method: str, metrics: Chosen, posterior: LabelPosterior, why: str
) -> None:
    """Refuse methods, inputs and metrics that many groups at once do not support.

    `posterior` may be of some of the items; `why` names another requested result that needs the
    items of each group by themselves, and is empty if there is none.
    """
    in_memory = [name for name, m in metrics.items() if m.in_memory]
    if not posterior.infers:
        why = f"method {method!r}"
    elif items.histogram is not None:
        why = "counts of annotators"
    elif items.multiplicity is not None or items.is_sparse:
        why = "rows that stand for several items, or sparse votes,"
    elif in_memory:
        why = f"metric {in_memory[0]!r}"
    if why:
        raise UsageError(
            f"more than {MAX_GROUPS} groups of a column are estimated in one pass, which {why} "
            "does not go with; leave one of them out, or group the values first"
        )


def values_of(predictions: Predictions, column: str) -> tuple[Ints, list[str]]:
    """Code of each item's value in a column, by first appearance, and the values' names."""
    return _codes(_column(predictions, column))


def _column(predictions: Predictions, column: str) -> Array:
    if column in predictions.groups:
        return predictions.groups[column]
    if column == "domain" and predictions.domain is not None:
        return predictions.domain
    registered = [*predictions.groups, *(["domain"] if predictions.domain is not None else [])]
    none = "there is none (beside arrays: Predictions(..., groups={'NAME': values}))"
    raise UsageError(unknown("group", column, registered, none))


def _codes(values: Array) -> tuple[Ints, list[str]]:
    """Code of each value in order of first appearance, and the values' names."""
    there, index = values.tolist(), dict[str, int]()
    if len({*map(type, there)}) > 1:  # 1, 1.0 and True are equal, and named apart
        there = list(map(group_value, there))
    code = {
        value: index.setdefault(group_value(value), len(index)) for value in dict.fromkeys(there)
    }
    codes = np.fromiter(map(code.__getitem__, there), np.int64, len(there))
    return codes, list(index)
