"""All cells of a benchmark, in jobs of cells that share a split."""

from __future__ import annotations

from collections.abc import Iterator

from fewlabels.bench import methods
from fewlabels.bench.cells import Cell
from fewlabels.bench.pool import Job
from fewlabels.bench.protocol import Protocol
from fewlabels.bench.splits import check_size
from fewlabels.bench.variants import truth_level
from fewlabels.bench.world import World
from fewlabels.errors import InputError

_WITH_CURVE = ("", "labels", "sharpness")
"""Factors that leave the classifiers of the data set, whose curve is then of use."""


def plan(protocol: Protocol, world: World) -> tuple[list[Job], list[str]]:
    """Jobs of one data set, and a line for each size that it is too small for."""
    name, skipped = world.facts.name, []
    sizes = []
    for n_labeled in protocol.n_labeled:
        for n_unlabeled in protocol.n_unlabeled:
            try:
                check_size(
                    protocol.sampler, world.facts.n_half, n_labeled, n_unlabeled,
                    len(world.facts.classes),
                )  # fmt: skip
                sizes.append((n_labeled, n_unlabeled))
            except InputError as error:
                skipped.append(f"{name}: {error}")
    if not sizes:
        return [], skipped
    jobs: list[Job] = [(Cell("traits", name),)]
    jobs += [(cell,) for cell in _truths(protocol, world)]
    rows = [*protocol.methods, methods.FLOOR]
    for run in range(protocol.runs):
        for level in world.levels():
            for size in sizes:
                place = ("estimates", name, level, *size, run)
                jobs.append(tuple(Cell(*place, method) for method in rows))
    jobs += [(Cell("curve", name, n_labeled=n),) for n in curve_sizes(protocol, world)]
    return jobs, skipped


def curve_sizes(protocol: Protocol, world: World) -> list[int]:
    """Sizes of the labeled-only curve that a data set has the items for."""
    if protocol.factor not in _WITH_CURVE or protocol.design != "predictions":
        return []
    least, most = len(world.facts.classes), world.facts.n_half - 2
    return [n for n in protocol.curve_sizes if least <= n <= most]


def _truths(protocol: Protocol, world: World) -> Iterator[Cell]:
    runs = {truth_level(protocol.factor, level): protocol.runs for level in world.levels()}
    if curve_sizes(protocol, world):
        runs[""] = max(runs.get("", 0), protocol.curve_runs)
    for level, count in runs.items():
        for run in range(count):
            yield Cell("truth", world.facts.name, level, run=run)
