"""An experiment: which cells a protocol asks for, and how one is computed.

A cell is a method on a split, the truth of a run, a size of the curve, or the traits of a data
set; jobs are cells that share a split.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from bench.cells import FAILED, Body, Cell, DatasetFacts, Job, body_of, failure
from bench.datasets import Reading, read_datasets
from bench.protocol import (
    BY_ITEM,
    FLOOR,
    REFERENCE,
    TRAINED,
    Protocol,
    asks_for_labels,
)
from bench.semisynthetic import read_tables
from bench.splits import Split, draw, generator, items_needed, released, seed_of, uniform
from bench.world import (
    BINNED,
    World,
    estimand_of,
    gaps_by_item,
    measured_by_group,
    truth_level,
)
from fewlabels.errors import FewlabelsError, InputError, Status, UsageError, listed
from fewlabels.estimating import estimate
from fewlabels.evaluation.groups import all_and_groups
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.methods.base import LabelModel
from fewlabels.methods.settings import make
from fewlabels.metrics.registry import resolve
from fewlabels.predictions import Predictions

_T = TypeVar("_T")
_MOST_KEPT = 64


def read_worlds(
    sources: Sequence[str], reading: Reading, protocol: Protocol
) -> tuple[Sequence[World], list[str]]:
    """Every data set that fits the protocol, and a line for each file that does not.

    Raises
    ------
    UsageError, InputError
        If no file can be used, or none has a classifier that is asked for.
    """
    if protocol.design == TRAINED:
        return read_tables(sources, protocol, reading.columns.get("label"))
    return read_datasets(sources, protocol, reading)


MOST_CELLS = 3_000_000
"""Each is a line of a file and a few hundred bytes of memory."""

_WITH_CURVE = ("", "labels", "sharpness")
"""Factors that leave the classifiers of the data set, whose curve is then of use."""

Size = tuple[int, int]
"""n_labeled, n_unlabeled."""


def plan(protocol: Protocol, worlds: Sequence[World]) -> tuple[list[Job], list[str]]:
    """Jobs of all data sets, and a line for each data set that is too small for some sizes.

    Raises
    ------
    InputError
        If no size fits any data set.
    UsageError
        If the cells are too many.
    """
    sizes = {w.facts.name: fitting(protocol, w.facts) for w in worlds}
    lines = [f"{name}: {line}" for name, (_, said) in sizes.items() for line in said]
    able = [w for w in worlds if sizes[w.facts.name][0]]
    if not able:
        raise InputError(f"nothing can run: {'; '.join(lines)}")
    count = sum(_count(protocol, w, sizes[w.facts.name][0]) for w in able)
    if count > MOST_CELLS:
        raise UsageError(
            f"this makes {count:,} cells (data sets x levels x sizes x runs x methods), more "
            f"than {MOST_CELLS:,}; ask for fewer"
        )
    return [job for w in able for job in _jobs(protocol, w, sizes[w.facts.name][0])], lines


def _jobs(protocol: Protocol, world: World, sizes: Sequence[Size]) -> list[Job]:
    name = world.facts.name
    jobs: list[Job] = [(Cell("traits", name),)]
    for level, runs in _truths(protocol, world).items():
        jobs += [(Cell("truth", name, level, run=run),) for run in range(runs)]
    rows = [*protocol.methods, FLOOR]
    for run in range(protocol.runs):
        for level in world.levels():
            for size in sizes:
                place = ("estimates", name, level, *size, run)
                jobs.append(tuple(Cell(*place, method) for method in rows))
    jobs += [(Cell("curve", name, n_labeled=n),) for n in curve_sizes(protocol, world)]
    return jobs


def _count(protocol: Protocol, world: World, sizes: Sequence[Size]) -> int:
    """How many cells `_jobs` makes."""
    rows = len(protocol.methods) + 1
    estimates = protocol.runs * len(world.levels()) * len(sizes) * rows
    others = 1 + len(curve_sizes(protocol, world))
    return estimates + others + sum(_truths(protocol, world).values())


def curve_sizes(protocol: Protocol, world: World) -> Sequence[int]:
    """Sizes of the labeled-only curve that a data set has the items for."""
    sizes = protocol.curve_sizes
    if protocol.factor not in _WITH_CURVE or protocol.design != "predictions":
        return ()
    least, most = len(world.facts.classes), world.facts.n_half - 2
    return [n for n in sizes[: max(0, (most - sizes.start) // sizes.step + 1)] if n >= least]


def _truths(protocol: Protocol, world: World) -> Mapping[str, int]:
    """Levels that have a truth of their own, and in how many runs each is needed."""
    runs = {truth_level(protocol.factor, level): protocol.runs for level in world.levels()}
    if curve_sizes(protocol, world):
        runs[""] = max(runs.get("", 0), protocol.curve_runs)
    return runs


# --- sizes ----------------------------------------------------------------------------------------


def fitting(protocol: Protocol, facts: DatasetFacts) -> tuple[list[Size], list[str]]:
    """Sizes that a data set can serve, and one line for each reason why it cannot serve others."""
    asked = [(few, many) for few in protocol.n_labeled for many in protocol.n_unlabeled]
    k = len(facts.classes)
    few_labels = [n for n in protocol.n_labeled if n < k]
    large = [s for s in asked if items_needed(protocol.sampler, *s) > facts.n_half]
    lines = []
    if large:
        lines.append(_too_large(protocol, facts, large))
    if few_labels:
        lines.append(
            f"n_labeled {_numbers(few_labels)}: one label of each of {k} classes needs more labels"
        )
    return [s for s in asked if s not in large and s[0] not in few_labels], lines


def _too_large(protocol: Protocol, facts: DatasetFacts, large: Sequence[Size]) -> str:
    """What the sizes need, where the items are, and the most that works."""
    most = max(items_needed(protocol.sampler, *size) for size in large)
    kept = f"half of its {facts.n_items:,} items are kept for the truth"
    if protocol.design == TRAINED:
        kept = f"the others of its {facts.n_items:,} rows are for the truth and for training"
    spare = facts.n_half - items_needed(protocol.sampler, 0, 0)
    able = [n for n in protocol.n_labeled if n <= spare]
    advice = (
        f"the largest `n_unlabeled` that works with n_labeled {_numbers(able)} is "
        f"{spare - max(able):,}"
        if able
        else f"n_labeled and n_unlabeled can be {max(spare, 0):,} together"
    )
    labels, others = (dict.fromkeys(s[place] for s in large) for place in (0, 1))
    up_to = "up to " if len(large) > 1 else ""
    return (
        f"n_labeled {_numbers(labels)} with n_unlabeled {_numbers(others)} needs {up_to}{most:,} "
        f"items, and a run draws from {facts.n_half:,} ({kept}); {advice}"
    )


def _numbers(values: Sequence[int] | Mapping[int, object]) -> str:
    return listed(f"{n:,}" for n in values)


# --- computing -----------------------------------------------------------------------------------


class Bench:
    """Computes the cells of a protocol; what cells of one run share is kept for the next."""

    def __init__(self, worlds: Mapping[str, World], protocol: Protocol) -> None:
        self.worlds = worlds
        self.protocol = protocol
        self.chosen = resolve(list(protocol.metrics))
        self._kept: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

    def run(self, cell: Cell) -> Body:
        """Compute a cell; what a method cannot do is part of the answer."""
        kinds: Mapping[str, Callable[[World, Cell], Body]] = {
            "estimates": self._estimates,
            "truth": self._truth,
            "curve": self._curve,
            "traits": self._traits,
        }
        return kinds[cell.kind](self.worlds[cell.dataset], cell)

    # --- kinds --------------------------------------------------------------------------------

    def _traits(self, world: World, cell: Cell) -> Body:
        return body_of(traits=world.traits())

    def _truth(self, world: World, cell: Cell) -> Body:
        try:
            items = world.predictions(world.halves(cell.run)[1], cell.level, cell.run)
        except InputError as error:
            return failure(FAILED, error, cell.run)
        groups, values = measured_by_group(items, self.chosen, world.by)
        traits = world.traits_of_run(cell.level, cell.run, items)
        return body_of(items.models, list(self.chosen), groups, [cell.run], values, traits=traits)

    def _curve(self, world: World, cell: Cell) -> Body:
        everything = np.arange(len(world.labels))
        whole = self._keep(("whole", cell.dataset), lambda: world.predictions(everything, "", 0))
        groups = self._keep(
            ("groups", cell.dataset),
            lambda: [g.name or "" for g in all_and_groups(whole, world.by)],
        )
        values, seconds = [], []
        for run in range(self.protocol.curve_runs):
            started = time.perf_counter()
            values.append(self._labeled_only(world, whole, groups, cell, run))
            seconds.append(time.perf_counter() - started)
        found = np.stack(values)
        runs = list(range(self.protocol.curve_runs))
        return body_of(
            whole.models, list(self.chosen), groups, runs, found,
            status=np.where(np.isnan(found), str(Status.UNDEFINED), str(Status.OK)),
            seconds=seconds,
        )  # fmt: skip

    def _labeled_only(
        self, world: World, whole: Predictions, groups: Sequence[str], cell: Cell, run: int
    ) -> Floats:
        """Metrics (groups, M, metrics) of labels alone, drawn as the sampler labels items."""
        rows = self._keep(("half", cell.dataset, run), lambda: world.halves(run)[0])
        seed = self.protocol.seed
        rng = generator("curve", seed, cell.dataset, cell.n_labeled, run)
        others = min(self.protocol.n_unlabeled[0], len(rows) - cell.n_labeled - 2)
        size = (cell.n_labeled, others, whole.n_classes)
        try:
            if self.protocol.sampler == "released":
                split = released(world.labels, rows, *size, lambda: rng)
            else:
                split = uniform(world.labels, rows, *size, rng)
        except InputError:
            return np.full((len(groups), whole.n_models, len(self.chosen)), np.nan)
        names, found = measured_by_group(
            whole.take(split.rows[split.labeled]), self.chosen, world.by
        )
        # As with method "labeled", a group without labels falls back to all of them.
        return found[[names.index(g) if g in names else 0 for g in groups]]

    def _estimates(self, world: World, cell: Cell) -> Body:
        try:
            items, split = self._keep(
                (world.facts.name, cell.level, cell.n_labeled, cell.n_unlabeled, cell.run),
                lambda: self._items(world, cell),
            )
        except InputError as error:
            return failure(FAILED, error, cell.run)
        if cell.method == FLOOR:
            predictions, model = items, make(REFERENCE)
        else:
            predictions, model = shown(make(cell.method), items, split.labeled)
        started = time.perf_counter()
        try:
            found = estimate(
                predictions,
                model,
                list(self.protocol.metrics),
                by=world.by or None,
                confidence_level=self.protocol.confidence_level,
                estimand=estimand_of(self.protocol, cell.level),
                random_state=self._seed(cell),
                workers=1,
            )
        except FewlabelsError as error:
            return failure(Status.NOT_APPLICABLE, error, cell.run)
        except MemoryError:
            raise
        except Exception as error:
            # A benchmark outlives a method's failure and records it.
            return failure(FAILED, error, cell.run)
        seconds = time.perf_counter() - started
        groups = [g.group or "" for g in found.groups]
        shape = (len(groups), predictions.n_models, len(self.chosen))
        column = {
            name: np.array([getattr(row, name) for row in found.rows]).reshape(shape)
            for name in ("value", "low", "high")
        }
        status = np.array([str(row.status) for row in found.rows], dtype=object).reshape(shape)
        if self.protocol.factor == "labels" and cell.level == BY_ITEM:
            # No metric has such an estimate but those of calibration.
            by_item = gaps_by_item(found.posterior, predictions)
            column = {name: np.full(shape, np.nan) for name in column}
            status = np.full(shape, str(Status.NOT_APPLICABLE), dtype=object)
            for place, metric in enumerate(self.chosen.values()):
                if metric.name in BINNED:
                    column["value"][0, :, place] = by_item
                    status[0, :, place] = str(Status.OK)
        intervals = self.protocol.confidence_level is not None
        return body_of(
            predictions.models, list(self.chosen), groups, [cell.run], column["value"],
            low=column["low"] if intervals else None, high=column["high"] if intervals else None,
            status=status, seconds=[seconds],
        )  # fmt: skip

    # --- what cells share -----------------------------------------------------------------------

    def _items(self, world: World, cell: Cell) -> tuple[Predictions, Split]:
        rows = self._keep(("half", cell.dataset, cell.run), lambda: world.halves(cell.run)[0])
        split = draw(
            self.protocol.sampler, world.labels, rows, cell.n_labeled, cell.n_unlabeled,
            len(world.facts.classes), run=cell.run, seed=self.protocol.seed, dataset=cell.dataset,
        )  # fmt: skip
        return world.predictions(split.rows, cell.level, cell.run), split

    def _seed(self, cell: Cell) -> int:
        """Levels share it: little else differs between them than what they vary.

        The randomness of single items does: it is keyed by their scores, which sharpening or other
        classifiers change.
        """
        return seed_of(
            "fit", self.protocol.seed, cell.dataset, cell.n_labeled, cell.n_unlabeled, cell.run,
            cell.method,
        )  # fmt: skip

    def _keep(self, key: tuple[Any, ...], make: Callable[[], _T]) -> _T:
        if key not in self._kept:
            self._kept[key] = make()
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        kept: _T = self._kept[key]
        return kept


def shown(model: LabelModel, items: Predictions, labeled: Bools) -> tuple[Predictions, LabelModel]:
    """What a label model gets to see of items whose labels are all known.

    The labels of some, `labeled` (n,); a model that chooses itself gets an oracle and as many.
    """
    if not asks_for_labels(model):
        return items.with_labels(np.where(labeled, items.labels, -1)), model

    def oracle(rows: Ints) -> Ints:
        return items.labels[rows]

    asking: Any = replace(
        model,  # type: ignore[type-var]
        oracle=oracle,
        budget=int(labeled.sum()),
    )
    return items.with_labels(np.full(items.n_items, -1)), asking
