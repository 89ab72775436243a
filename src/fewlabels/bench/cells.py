"""A cell: the least that is computed, kept and resumed; and how one is computed."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fewlabels.bench import methods
from fewlabels.bench.protocol import Protocol
from fewlabels.bench.seeds import generator, seed_of
from fewlabels.bench.splits import Split, draw, released, uniform
from fewlabels.bench.variants import estimand_of
from fewlabels.bench.world import World, measured_by_group
from fewlabels.errors import FewlabelsError, InputError, Status, one_line
from fewlabels.estimating import estimate
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.methods.base import LabelModel
from fewlabels.metrics.registry import resolve
from fewlabels.predictions import Predictions

Body = dict[str, Any]
"""What a cell found, as plain JSON values; see `body_of`."""

_T = TypeVar("_T")

FAILED = "failed"
_MOST_KEPT = 64


class Cell(NamedTuple):
    """What is computed at once.

    kind is "estimates" (one method on one split), "truth" (the other half of a run), "curve" (all
    draws of one size of the labeled-only curve) or "traits" (of a data set). What does not apply
    is "", 0, or -1 for the run.
    """

    kind: str
    dataset: str
    level: str = ""
    n_labeled: int = 0
    n_unlabeled: int = 0
    run: int = -1
    method: str = ""


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
        groups = self._keep(("groups", cell.dataset), lambda: _groups_of(whole, world.by))
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
        predictions, model = _asked(cell.method, items, split)
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
                details=False,
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
        intervals = self.protocol.confidence_level is not None
        return body_of(
            predictions.models, list(self.chosen), groups, [cell.run], column["value"],
            low=column["low"] if intervals else None, high=column["high"] if intervals else None,
            status=np.array([str(row.status) for row in found.rows]), seconds=[seconds],
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


def _asked(method: str, items: Predictions, split: Split) -> tuple[Predictions, LabelModel]:
    """What a method gets to see: the labels of the split, or an oracle that it asks for them."""
    if method == methods.FLOOR:
        return items, methods.make(methods.REFERENCE)
    return shown(methods.make(method), items, split.labeled)


def shown(model: LabelModel, items: Predictions, labeled: Bools) -> tuple[Predictions, LabelModel]:
    """What a label model gets to see of items whose labels are all known.

    The labels of some, `labeled` (n,); a model that chooses itself gets an oracle and as many.
    """
    if not methods.asks_for_labels(model):
        return items.with_labels(np.where(labeled, items.labels, -1)), model

    def oracle(rows: Ints) -> Ints:
        return items.labels[rows]

    asking: Any = replace(
        model,  # type: ignore[type-var]
        oracle=oracle,
        budget=int(labeled.sum()),
    )
    return items.with_labels(np.full(items.n_items, -1)), asking


def _groups_of(predictions: Predictions, by: Sequence[str]) -> list[str]:
    from fewlabels.evaluation.groups import all_and_groups

    return [g.name or "" for g in all_and_groups(predictions, by)]


def body_of(
    models: Sequence[str] = (),
    metrics: Sequence[str] = (),
    groups: Sequence[str] = (),
    runs: Sequence[int] = (),
    estimates: Floats | None = None,
    *,
    low: Floats | None = None,
    high: Floats | None = None,
    status: Any = (),
    message: str = "",
    seconds: Sequence[float] = (),
    traits: Sequence[tuple[str, int, str, float]] = (),
) -> Body:
    """Axes, and values (runs, groups, M, metrics) as flat lists; NaN is None.

    A cell that gave nothing has no models, one run, a `status` and a `message`.
    """
    return {
        "models": list(models),
        "metrics": list(metrics),
        "groups": list(groups),
        "runs": list(runs),
        "estimate": _plain(estimates),
        "low": _plain(low),
        "high": _plain(high),
        "status": status if isinstance(status, str) else np.ravel(status).tolist(),
        "message": message,
        "seconds": list(seconds),
        "traits": [[*trait[:3], *(_plain(np.array([trait[3]])) or [])] for trait in traits],
    }


def failure(status: str, error: Exception, run: int) -> Body:
    """What a cell found that could not be computed."""
    said = str(error) if isinstance(error, FewlabelsError) else f"{type(error).__name__}: {error}"
    return body_of(runs=[run], status=str(status), message=one_line(said), seconds=[0.0])


def _plain(values: Floats | None) -> list[float | None] | None:
    if values is None:
        return None
    flat = np.ravel(values)
    known = np.isfinite(flat)
    return [v if k else None for v, k in zip(flat.tolist(), known.tolist(), strict=True)]
