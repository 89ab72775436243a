"""An experiment: which cells a protocol asks for, and how one is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

import fewlabels as fl
from bench.datasets import Reading, read_datasets
from bench.protocol import FLOOR, REFERENCE, TRAINED, Protocol
from bench.semisynthetic import read_tables
from bench.splits import draw, generator, items_needed, released, seed_of, uniform
from bench.world import FAILED, Body, Cell, DatasetFacts, Job, World, failure, measured, truth_level
from fewlabels import FewlabelsError, InputError, Predictions, Status
from fewlabels.methods.settings import make as model_of

Array = np.ndarray
_MOST_KEPT = 64


def read_worlds(
    sources: Sequence[str], reading: Reading, protocol: Protocol
) -> tuple[Sequence[World], list[str]]:
    """Every data set that fits the protocol, and a line for each file that does not."""
    if protocol.design == TRAINED:
        return read_tables(sources, protocol, reading.columns.get("label", "label"))
    return read_datasets(sources, protocol, reading)


def shown(model: Any, items: Predictions, labeled: Array) -> tuple[Predictions, Any]:
    """What a label model gets to see of items whose labels are all known.

    The labels of some, `labeled` (n,); a model that chooses itself gets an oracle and as many.
    """
    if not {"oracle", "budget"} <= {f.name for f in fields(model)}:
        return items.revealing(labeled), model
    asking = replace(model, oracle=lambda rows: items.labels[rows], budget=int(labeled.sum()))
    return items.with_labels(np.full(items.n_items, -1)), asking


def plan(protocol: Protocol, worlds: Sequence[World]) -> tuple[list[Job], list[str]]:
    """Jobs of all data sets, and a line for each size that a data set is too small for."""
    jobs: list[Job] = []
    lines: list[str] = []
    for world in worlds:
        facts = world.facts
        sizes, too_large = fitting(protocol, facts)
        lines += too_large
        if not sizes:
            continue
        jobs.append((Cell("traits", facts.name),))
        curve = curve_sizes(protocol, facts)
        truths = {truth_level(protocol.factor, level): protocol.runs for level in world.levels}
        if curve:
            truths[""] = max(truths.get("", 0), protocol.curve_runs)
        jobs += [
            (Cell("truth", facts.name, level, run=run),)
            for level, runs in truths.items() for run in range(runs)
        ]  # fmt: skip
        jobs += [
            tuple(Cell("estimates", facts.name, level, *size, run, method)
                  for method in [*protocol.methods, FLOOR])
            for run in range(protocol.runs) for level in world.levels for size in sizes
        ]  # fmt: skip
        jobs += [(Cell("curve", facts.name, n_labeled=n),) for n in curve]
    if not jobs:
        raise InputError(f"nothing can run: {'; '.join(lines)}")
    return jobs, lines


def curve_sizes(protocol: Protocol, facts: DatasetFacts) -> list[int]:
    """Sizes of the labels-only curve that a data set has the items for.

    Other classifiers than those of the data set have no use for it.
    """
    if protocol.design == TRAINED or protocol.factor == "subset" or not protocol.curve_runs:
        return []
    last = min(protocol.curve_last, facts.n_half - 2)
    sizes = range(protocol.curve_first, last + 1, protocol.curve_step)
    return [n for n in sizes if n >= len(facts.classes)]


def fitting(protocol: Protocol, facts: DatasetFacts) -> tuple[list[tuple[int, int]], list[str]]:
    """Sizes that a data set can serve, and a line for each that it cannot."""
    able, lines = [], []
    for n_labeled in protocol.n_labeled:
        for n_unlabeled in protocol.n_unlabeled:
            needed, k = items_needed(protocol.sampler, n_labeled, n_unlabeled), len(facts.classes)
            if k <= n_labeled and needed <= facts.n_half:
                able.append((n_labeled, n_unlabeled))
                continue
            why = f"needs {needed:,} items, and a run draws from {facts.n_half:,}; ask for fewer"
            why = f"one label of each of {k} classes needs more labels" if n_labeled < k else why
            size = f"n_labeled {n_labeled:,} with n_unlabeled {n_unlabeled:,}"
            lines.append(f"{facts.name}: {size}: {why}")
    return able, lines


def gaps_by_item(estimates: fl.Estimates, predictions: Predictions) -> Array:
    """Mean over items of |P(event) - its probability| of each classifier, (M,) (SSME, E.2).

    The event is that of `ece`: class 1 of two, of more that the predicted class is right. Where
    nothing is put into bins nothing cancels within one, so that it is at least the ECE of
    expected labels.
    """
    p, k = predictions.probabilities, predictions.n_classes
    out = np.full(predictions.n_models, np.nan)
    for j in range(predictions.n_models):
        own = estimates.posterior.of(j)
        rows = np.flatnonzero(~np.isnan(p[:, j, 0]))
        rows = rows[own.speaks_of(rows)]
        if len(rows):
            event = np.ones(len(rows), np.int64) if k == 2 else p[rows, j].argmax(axis=1)
            out[j] = np.abs(own.probabilities[rows, event] - p[rows, j, event]).mean()
    return out


class Bench:
    """Computes the cells of a protocol; what cells of one run share is kept for the next."""

    def __init__(self, worlds: Mapping[str, World], protocol: Protocol) -> None:
        self.worlds = worlds
        self.protocol = protocol
        self.metrics = fl.metrics.resolve(list(protocol.metrics))
        kept = lru_cache(maxsize=_MOST_KEPT)
        self._half = kept(lambda dataset, run: worlds[dataset].halves(run)[0])
        self._whole = kept(self._everything)
        self._items = kept(self._drawn)

    def run(self, cell: Cell) -> Body:
        """Compute a cell; what a method cannot do is part of the answer."""
        world = self.worlds[cell.dataset]
        if cell.kind == "traits":
            return {"rows": [], "traits": world.traits()}
        try:
            compute = {"estimates": self._estimates, "truth": self._truth, "curve": self._curve}
            return compute[cell.kind](world, cell)
        except InputError as error:
            return failure(FAILED, error, cell.run)

    def _truth(self, world: World, cell: Cell) -> Body:
        items = world.predictions(world.halves(cell.run)[1], cell.level, cell.run)
        groups, values = measured(items, self.protocol.metrics, world.by)
        return {
            "rows": self._rows(cell.run, groups, items.models, values),
            "traits": world.traits_of_run(cell.level, cell.run, items),
        }

    def _curve(self, world: World, cell: Cell) -> Body:
        """Metrics of labels alone, drawn as the sampler labels items."""
        protocol, n_classes = self.protocol, len(world.facts.classes)
        everything, named = self._whole(cell.dataset)
        rows: list[Any] = []
        for run in range(protocol.curve_runs):
            half = self._half(cell.dataset, run)
            rng = generator("curve", protocol.seed, cell.dataset, cell.n_labeled, run)
            others = min(protocol.n_unlabeled[0], len(half) - cell.n_labeled - 2)
            size = (cell.n_labeled, others, n_classes)
            try:
                if protocol.sampler == "released":
                    split = released(world.labels, half, *size, lambda rng=rng: rng)
                else:
                    split = uniform(world.labels, half, *size, rng)
            except InputError:
                continue  # a class is too rare for this draw
            items = everything.take(split.rows[split.labeled])
            groups, values = measured(items, protocol.metrics, world.by)
            # As with method "labeled", a group without labels falls back to all of them.
            values = values[[groups.index(g) if g in groups else 0 for g in named]]
            rows += self._rows(run, named, items.models, values)
        return {"rows": rows, "traits": []}

    def _estimates(self, world: World, cell: Cell) -> Body:
        protocol = self.protocol
        items, labeled = self._items(cell._replace(method=""))
        predictions, model = items, model_of(REFERENCE)
        if cell.method != FLOOR:
            predictions, model = shown(model_of(cell.method), items, labeled)
        # The paper's metrics of drawn labels are those of these very items.
        estimand = protocol.estimand
        if protocol.factor == "labels":
            estimand = "sample" if cell.level == "drawn" else "population"
        try:
            found = fl.estimate(
                predictions, model, list(protocol.metrics), by=list(world.by) or None,
                confidence_level=protocol.confidence_level, estimand=estimand, workers=1,
                # Levels share it: little else differs between them than what they vary.
                random_state=seed_of(
                    "fit", protocol.seed, cell.dataset, cell.n_labeled, cell.n_unlabeled, cell.run,
                    cell.method,
                ),
            )  # fmt: skip
        except FewlabelsError as error:
            return failure(Status.NOT_APPLICABLE, error, cell.run)
        except MemoryError:
            raise
        except Exception as error:
            # A benchmark outlives a method's failure and records it.
            return failure(FAILED, error, cell.run)
        groups = [group.group or "" for group in found.groups]
        shape = (len(groups), predictions.n_models, len(self.metrics))
        value, low, high, status = (
            np.array([getattr(row, name) for row in found.rows], dtype=object).reshape(shape)
            for name in ("value", "low", "high", "status")
        )
        if cell.level == "by-item" and protocol.factor == "labels":
            # No metric has such an estimate but those of calibration.
            value, status = np.full(shape, np.nan, object), np.full(shape, Status.NOT_APPLICABLE)
            for place, metric in enumerate(self.metrics.values()):
                if "ece" in metric.name:
                    value[0, :, place] = gaps_by_item(found, predictions)
                    status[0, :, place] = Status.OK
        rows = self._rows(cell.run, groups, predictions.models, value, low, high, status)
        return {"rows": rows, "traits": []}

    def _rows(
        self, run: int, groups: Sequence[str], models: Sequence[str], value: Array,
        low: Any = None, high: Any = None, status: Any = None,
    ) -> list[list[Any]]:  # fmt: skip
        """Rows of values (groups, M, metrics), as plain values in the order of `cells.ROW`."""
        places = [(g, m, n) for g in groups for m in models for n in self.metrics]
        nothing = np.full(value.size, np.nan)
        ends = (nothing if end is None else end for end in (low, high))
        numbers = (np.asarray(v, dtype=float).ravel().tolist() for v in (value, *ends))
        if status is None:
            known = np.isfinite(np.asarray(value, dtype=float))
            status = np.where(known, str(Status.OK), str(Status.UNDEFINED))
        said = [str(s) for s in np.ravel(status)]
        return [
            [run, *place, *values, state, ""]
            for place, *values, state in zip(places, *numbers, said, strict=True)
        ]

    def _everything(self, dataset: str) -> tuple[Predictions, list[str]]:
        """All items of a data set, and the names of its groups."""
        world = self.worlds[dataset]
        everything = world.predictions(np.arange(len(world.labels)), "", 0)
        return everything, measured(everything, self.protocol.metrics, world.by)[0]

    def _drawn(self, cell: Cell) -> tuple[Predictions, Array]:
        """The items of a run, and which of them are labeled."""
        world = self.worlds[cell.dataset]
        split = draw(
            self.protocol.sampler, world.labels, self._half(cell.dataset, cell.run),
            cell.n_labeled, cell.n_unlabeled, len(world.facts.classes), run=cell.run,
            seed=self.protocol.seed, dataset=cell.dataset,
        )  # fmt: skip
        return world.predictions(split.rows, cell.level, cell.run), split.labeled
