"""All cells of a benchmark, in jobs of cells that share a split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fewlabels.bench import methods
from fewlabels.bench.cells import Cell
from fewlabels.bench.pool import Job
from fewlabels.bench.protocol import Protocol
from fewlabels.bench.results import DatasetFacts
from fewlabels.bench.splits import items_needed
from fewlabels.bench.variants import truth_level
from fewlabels.bench.world import World
from fewlabels.errors import InputError, UsageError, listed

MOST_CELLS = 3_000_000
"""Each is a file and a few hundred bytes of memory."""

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
    rows = [*protocol.methods, methods.FLOOR]
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
    if protocol.design == "trained sets":
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
