"""Some of the numbers that made a page, kept in the repository so that they can be found again.

Of the cells of a call of `runs.run_jobs` a few are drawn at random that take little time, and a few
numbers of each. Where a sample is to be run again, its cells run and no others.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CELLS, NUMBERS, SECONDS = 8, 2, 60.0
"""Cells of a sample, numbers of a cell, and processor time that a sample may take."""
TOLERANCE = 1e-6
"""How much two numbers may differ that are one, relative."""

_NO_NUMBERS = frozenset({"seconds", "settings", "fewlabels"})
"""Names of cells and of what they find that say how or when."""

Row = dict[str, Any]
Kept = Mapping[str, Any]
"""A sample: how many `cells` the call has, how many of them ran `anew`, the `seconds` that those of
the sample took, `rooms` of the package that cells imported (None: unknown), and the `sample`."""


class Taken(SystemExit):
    """A call has run its sample again, and has nothing else to go on with."""


@dataclass
class Sampler:
    """Draws the samples of the calls of a command, or runs them again.

    `again` has samples by the names of calls, or None; `defaults` are those of the command's
    options meanwhile. `found` are samples that were drawn, by call; `differ` says what changed.
    """

    again: Mapping[str, Kept] | None = None
    defaults: Mapping[str, Path] = field(default_factory=dict)
    found: dict[str, Kept] = field(default_factory=dict)
    differ: list[str] = field(default_factory=list)

    def draw(
        self, call: str, cells: Sequence[Row], lines: Sequence[Row], anew: int, rooms: set[str]
    ) -> None:
        """Keep some numbers of cells that are cheap, of the cheapest at least."""
        rng, costs = random.Random(call), [_cost(line) for line in lines]
        most, used, some = max(SECONDS, min(costs, default=0.0)), 0.0, []
        for k in rng.sample(range(len(cells)), len(cells)):
            if len(some) < CELLS and used + costs[k] <= most:
                own = {name: value for name, value in lines[k].items() if name not in cells[k]}
                every = {n: float(f"{v:.9g}") for n, v in numbers(own) if not v.is_integer()}
                chosen = rng.sample(sorted(every), min(NUMBERS, len(every)))
                if chosen:
                    used += costs[k]
                    told = {name: every[name] for name in sorted(chosen)}
                    some.append({"cell": _bare(cells[k]), "numbers": told})
        self.found[call] = {"cells": len(cells), "anew": anew, "seconds": round(used, 1),
                            "rooms": sorted(rooms), "sample": some}  # fmt: skip

    def run_again(
        self, call: str, cells: Sequence[Row],
        run: Callable[[Sequence[Row]], Iterator[tuple[Row, set[str]]]],
    ) -> None:  # fmt: skip
        """Run the sample of a call, if there is one, and note the numbers that changed."""
        assert self.again is not None
        sample = self.again.get(call, {}).get("sample", [])
        there = {json.dumps(_bare(cell)): cell for cell in cells}
        known = [one for one in sample if json.dumps(one["cell"]) in there]
        self.differ += [f"{one['cell']}: no such cell now" for one in sample if one not in known]
        again, rooms = run([there[json.dumps(one["cell"])] for one in known]), set[str]()
        for one, (found, imported) in zip(known, again, strict=True):
            rooms |= imported
            now = dict(numbers(found))
            self.differ += [
                f"{one['cell']}: {name} was {old:g} and is {now.get(name, math.nan):g}"
                for name, old in one["numbers"].items()
                if not math.isclose(now.get(name, math.nan), old, rel_tol=TOLERANCE)
            ]
        if sample:
            self.found[call] = {"rooms": rooms}
        raise Taken


current: Sampler | None = None
"""The sampler of the command that runs."""


@contextmanager
def using(sampler: Sampler | None) -> Iterator[None]:
    """Let calls be sampled by it; None while a cell runs cells of its own."""
    global current
    before, current = current, sampler
    try:
        yield
    finally:
        current = before


def numbers(value: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """All numbers with a point in values of JSON, by where they stand."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            if name not in _NO_NUMBERS:
                yield from numbers(part, f"{place}/{name}")
    elif isinstance(value, list):
        for k, part in enumerate(value):
            yield from numbers(part, f"{place}/{k}")
    elif isinstance(value, float):
        yield place[1:], value


def _bare(cell: Row) -> Row:
    said = {name: value for name, value in cell.items() if name not in _NO_NUMBERS}
    bare: Row = json.loads(json.dumps(said, default=lambda value: value.item()))
    return bare


def _cost(line: Row) -> float:
    seconds = line.get("seconds") or 0.0
    return float(sum(seconds.values()) if isinstance(seconds, Mapping) else seconds)
