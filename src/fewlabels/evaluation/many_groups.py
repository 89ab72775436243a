"""Thousands of groups in one pass over the items.

Whole groups go in blocks, whose statistics are summed by group: what is measured is that of any
group (`evaluator`), of `DRAWS` draws, of which no more is kept than the ends of intervals. So time
is linear in the items, and memory that of some blocks. A group with as many items as a block is
measured by itself.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fewlabels.errors import Status, UsageError
from fewlabels.estimates import Estimate, GroupSize
from fewlabels.evaluation.evaluator import (
    Evaluator,
    Measured,
)
from fewlabels.evaluation.groups import MAX_GROUPS, Group, values_of
from fewlabels.evaluation.guard import LEAST_OF_DRAWS, Guard
from fewlabels.evaluation.status import FEW_IN_GROUP, Reasons, judge
from fewlabels.kernels.arrays import Bools, Ints
from fewlabels.kernels.blocks import map_blocks, report, using_workers
from fewlabels.kernels.interval_draws import interval
from fewlabels.metrics.base import Metric
from fewlabels.metrics.plans import Chosen
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

MOST_GROUPS = 10_000
"""Groups of a column, at most."""

LEAST_EACH = 10
"""Items of a group on average, where there are many: less is more often a column of names."""

DRAWS, VALUE_DRAWS = 200, 50
"""Draws behind intervals, and parameter draws behind values, of a column of many groups."""

_CELLS = 2**21
"""Label weights of a block."""


@dataclass(frozen=True, eq=False)
class ManyGroups:
    """The groups of a column: names by first appearance, and the group of each item (n,)."""

    names: tuple[str, ...]
    codes: Ints


def many_and_few(
    items: Predictions, by: Sequence[str]
) -> tuple[tuple[str, ...], tuple[ManyGroups, ...]]:
    """The columns of at most 50 groups, and those of more.

    Raises
    ------
    UsageError
        If a column is unknown, or has more than 10,000 values, or as many as names of items.
    """
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
                f"({LEAST_EACH} would do); group the values first, or leave it out of `by`"
            )
        if len(names) <= MAX_GROUPS:
            few.append(column)
        else:
            many.append(ManyGroups(tuple(f"{column}={name}" for name in names), codes))
    return tuple(few), tuple(many)


def refuse_many_groups(
    items: Predictions, method: str, metrics: Chosen, posterior: LabelPosterior, why: str
) -> None:
    """Refuse what is not measured of many groups at once.

    Parameters
    ----------
    posterior
        Of some of the items.
    why
        What else is asked that needs the items of each group by themselves; empty if nothing is.

    Raises
    ------
    UsageError
        If there is any.
    """
    own = [name for name, m in metrics.items() if m.in_memory]
    if posterior.means is not None or posterior.observed is not None:
        why = f"method {method!r}"
    elif items.histogram is not None:
        why = "counts of annotators"
    elif items.multiplicity is not None or items.is_sparse:
        why = "rows that stand for several items, or sparse votes,"
    elif own:
        why = f"metric {own[0]!r}"
    if why:
        raise UsageError(
            f"more than {MAX_GROUPS} groups of a column are estimated in one pass, which {why} "
            "does not go with; leave one of them out, or group the values first"
        )


# --- all groups of a column -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ManyMeasurer:
    """Estimates of all groups of a column.

    `posterior_of` gives the posterior of any of the items, `guard` is that of the labeled items,
    or None.
    """

    items: Predictions
    posterior_of: Callable[[Predictions], LabelPosterior]
    metrics: Chosen
    level: float | None
    guard: Guard | None
    labeled: Evaluator

    def rows(
        self, many: ManyGroups, reasons: Reasons
    ) -> tuple[list[Estimate], tuple[GroupSize, ...]]:
        """Estimates in the order of the groups, and the groups' sizes."""
        n_groups, labeled = len(many.names), self.items.labeled
        sizes = np.bincount(many.codes, minlength=n_groups)
        known = np.bincount(many.codes[labeled], minlength=n_groups)
        held = many.codes[labeled]
        by_group = np.argsort(held, kind="stable")
        ends = np.searchsorted(held[by_group], np.arange(n_groups + 1))
        order = np.argsort(many.codes, kind="stable")
        starts = np.cumsum(sizes) - sizes
        height = max(_CELLS // (DRAWS * self.items.n_classes), 1)
        blocks = _blocks(sizes, height)

        def run(block: slice) -> list[dict[str, Measured]]:
            with using_workers(1):
                first, last = starts[block.start], starts[block.stop - 1] + sizes[block.stop - 1]
                return self._measure(np.sort(order[first:last]), many.codes, block, height)

        out, counts = list[Estimate](), _Counts(n_groups)
        for block, found in zip(blocks, map_blocks(run, blocks), strict=True):
            for g, measured in zip(range(block.start, block.stop), found, strict=True):
                own = by_group[ends[g] : ends[g + 1]]
                group = Group(many.names[g], np.sort(own))
                out += self._estimates(group, measured, int(sizes[g]), int(known[g]), counts)
            report(block.stop, n_groups)
        for sentence in counts.sentences(many.names[0].partition("=")[0], n_groups):
            reasons.add(sentence)
        return out, tuple(map(GroupSize, many.names, sizes.tolist(), known.tolist()))

    def _measure(
        self, rows: Ints, codes: Ints, block: slice, height: int
    ) -> list[dict[str, Measured]]:
        """Values (M,) and draws (D, M) of every group of a block."""
        rows = rows[np.argsort(codes[rows], kind="stable")]
        part = self.items.take(rows).keeping(()).as_part(keys=self.items.keys[rows])
        group, n_groups = codes[rows] - block.start, block.stop - block.start
        posterior = self.posterior_of(part)
        posterior.prepare()
        if len(rows) > height:  # a single group
            whole = Evaluator(part, posterior, self.metrics, "population", self.level)
            return [whole.measure(np.arange(len(rows)))]
        every = Evaluator(part, posterior, self.metrics, "population", self.level)
        weighty = np.flatnonzero(part.weight > 0)
        draws = DRAWS if self.level is not None else 0
        found = every.groups(weighty, group[weighty], n_groups, draws)
        return [
            {name: Measured.of(own.value[:, g], own.draws[:, :, g]) for name, own in found.items()}
            for g in range(n_groups)
        ]

    def _estimates(
        self, group: Group, measured: dict[str, Measured], size: int, known: int, counts: _Counts
    ) -> Iterator[Estimate]:
        """Rows of a group, moved to its labels where these speak against the method."""
        against: dict[str, Bools] = {}
        if self.guard is not None and known >= LEAST_OF_DRAWS:
            guarded = self.guard.of_group(group, measured, size)
            measured = guarded.measured
            against = {name: self.guard.contradicts(guarded, name) for name in self.metrics}
        stated = float("nan") if self.level is None else self.level
        ends = {
            name: interval(measured[name].value, measured[name].draws, stated, metric.bounds)
            for name, metric in self.metrics.items()
        }
        counts.few += known < FEW_IN_GROUP
        counts.contradicted += any(mask.any() for mask in against.values())
        for j, model in enumerate(self.items.models):
            for name, metric in self.metrics.items():
                value = float(measured[name].value[j])
                low, high = (float(end[j]) for end in ends[name])
                status = self._status(group, metric, j, value, known)
                if name in against and against[name][j]:
                    status = Status.CONTRADICTED
                counts.undefined += status is Status.UNDEFINED
                yield Estimate(model, name, group.name, value, low, high, stated, status)

    def _status(self, group: Group, metric: Metric, j: int, value: float, known: int) -> Status:
        """As `status.judge`, without a look at the labels where these are few by their number."""
        posterior = self.labeled.posterior.of(j)
        if not self.items.gives(metric.needs)[j]:
            return Status.NOT_APPLICABLE
        if not np.isfinite(value):
            return Status.UNDEFINED
        if posterior.status is Status.NOT_CONVERGED:
            return posterior.status
        if not self.items.n_labeled:
            return posterior.status
        if known < FEW_IN_GROUP or not self.labeled.predictions.gives(metric.needs)[j]:
            return Status.FEW_LABELS
        model = self.items.models[j]
        labeled = self.labeled
        return judge(labeled.predictions, labeled.posterior, group, metric, model, value).status


@dataclass
class _Counts:
    """What is to be said of many groups: of how many it holds, not of which."""

    n_groups: int
    few: int = 0
    contradicted: int = 0
    undefined: int = 0

    def sentences(self, column: str, n_groups: int) -> Iterator[str]:
        """One for each kind of doubt."""
        of = f"of the {n_groups:,} groups of {column}"
        if self.few:
            yield f"few-labels: {self.few:,} {of} have fewer than {FEW_IN_GROUP} labeled items"
        if self.contradicted:
            yield (
                f"contradicted: in {self.contradicted:,} {of} the labels and the method disagree "
                "on a metric; get more labels"
            )
        if self.undefined:
            yield (
                f"undefined: {self.undefined:,} estimates {of}, whose items do not define them "
                "(a class is absent or never predicted)"
            )
        yield (
            f"the {n_groups:,} groups of {column} are estimated from {DRAWS} draws each; their "
            "differences are not compared"
        )


def _blocks(sizes: Ints, height: int) -> list[slice]:
    """Consecutive groups of at most so many items together; of one group where it has more."""
    out, start, total = list[slice](), 0, 0
    for g, size in enumerate(sizes.tolist()):
        if g > start and total + size > height:
            out.append(slice(start, g))
            start, total = g, 0
        total += size
    out.append(slice(start, len(sizes)))
    return out
