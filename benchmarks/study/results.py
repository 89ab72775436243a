"""What a study found: the runs of every cell, in memory and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.cells import Body, Cell
from bench.folder import replace_text
from fewlabels import __version__
from fewlabels.errors import listed
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.report.shown import plain_values
from study.protocol import FIGURES, METRICS, Study
from study.statistics import Figure, coverage, mean

JSON = "cells.json"


class Place(NamedTuple):
    """A set and its sizes, where methods are compared."""

    set: str
    n_labeled: int
    n_unlabeled: int


@dataclass(frozen=True, eq=False)
class Runs:
    """One method at one place.

    `runs` (R,) rise; `values` (R, figures, metrics) are means over the classifiers of a run;
    `seconds` (R,); `messages` say why runs failed.
    """

    runs: Ints
    values: Floats
    seconds: Floats
    messages: tuple[str, ...]

    def figure(self, name: str, metric: str) -> Floats:
        """One figure of every run, (R,)."""
        return self.values[:, FIGURES.index(name), METRICS.index(metric)]


@dataclass(frozen=True, eq=False, repr=False)
class StudyResults:
    """Everything a study found; `table` maps a place and a method to its runs.

    `sets` maps a set to its facts (`sets.StudySet.facts`); `notes` say what was left out.
    """

    study: Study
    sets: Mapping[str, Mapping[str, Any]]
    table: Mapping[tuple[Place, str], Runs]
    notes: tuple[str, ...]
    folder: Path

    def __repr__(self) -> str:
        methods = listed(self.study.methods)
        return f"StudyResults: {len(self.sets)} sets, {len(self.places)} places; methods: {methods}"

    @property
    def places(self) -> list[Place]:
        """Every place, in the order of the sets and sizes."""
        order = {name: k for k, name in enumerate(self.study.sets)}
        return sorted({p for p, _ in self.table}, key=lambda p: (order[p.set], *p[1:]))

    def usual(self, name: str) -> int:
        """Unlabeled items where methods and sets are compared, on this set."""
        return self.study.usual(int(self.sets[name]["n_items"]))

    def is_usual(self, place: Place) -> bool:
        """Whether a place has as many unlabeled items as methods and sets are compared at."""
        return place.n_unlabeled == self.usual(place.set)

    def methods_at(self, place: Place) -> list[str]:
        """Methods that have runs at a place."""
        named = (*self.study.methods, *self.study.others)
        return [m for m in named if (place, m) in self.table]

    def paired(
        self, place: Place, a: str, b: str, figure: str, metric: str
    ) -> tuple[Floats, Floats]:
        """A figure of two methods on the runs that both have, each (R,)."""
        first, second = self.table[place, a], self.table[place, b]
        _, i, j = np.intersect1d(first.runs, second.runs, return_indices=True)
        return first.figure(figure, metric)[i], second.figure(figure, metric)[j]

    def cells(self) -> Iterator[dict[str, Any]]:
        """Every cell as plain values: each figure's mean and standard error over the runs."""
        for place in self.places:
            for method in self.methods_at(place):
                runs = self.table[place, method]
                for metric in METRICS:
                    yield (
                        dict(place._asdict())
                        | {"method": method, "metric": metric, "runs": len(runs.runs)}
                        | {"seconds": mean(runs.seconds).value, "messages": list(runs.messages)}
                        | {
                            name: dict(zip(("mean", "se"), _figure(name, x)[:2], strict=True))
                            | ({"median": _median(x)} if name.startswith("width") else {})
                            for name in FIGURES
                            if len(x := runs.figure(name, metric))
                        }
                    )

    def save(self) -> None:
        """Write every cell to the folder.

        Raises
        ------
        OSError
            If the system refuses.
        """
        said = {
            "fewlabels": __version__,
            "study": self.study.plain(),
            "sets": list(self.sets.values()),
            "notes": list(self.notes),
            "cells": list(self.cells()),
        }
        replace_text(self.folder / JSON, json.dumps(plain_values(said), indent=0) + "\n")


def _figure(name: str, values: Floats) -> Figure:
    return coverage(values) if name.startswith("coverage") else mean(values)


def _median(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")


def collect(found: Iterable[tuple[Cell, Body]]) -> dict[tuple[Place, str], Runs]:
    """The parts of every place and method as one."""
    grouped: dict[tuple[Place, str], list[Body]] = {}
    for cell, body in sorted(found, key=lambda pair: pair[0]):
        place = Place(cell.dataset, cell.n_labeled, cell.n_unlabeled)
        grouped.setdefault((place, cell.method), []).append(body)
    return {key: _joined(bodies) for key, bodies in grouped.items()}


def _joined(bodies: list[Body]) -> Runs:
    values = np.concatenate([np.array(b["estimate"], dtype=float) for b in bodies])
    return Runs(
        np.concatenate([np.array(b["runs"], dtype=np.int64) for b in bodies]),
        values.reshape(-1, len(FIGURES), len(METRICS)),
        np.concatenate([np.array(b["seconds"], dtype=float) for b in bodies]),
        tuple(dict.fromkeys(b["message"] for b in bodies if b["message"])),
    )
