"""The score lists on which curves are measured: one class against the rest, linear classifiers.

A list is one classifier's scores of all items, with every label. Which items of a list are used
in a trial, and in what order they are labeled, depends on the name of the list and on the number of
the trial alone, so that all methods and all parts see the same.
"""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pyarrow.parquet

import fewlabels as fl
from fewlabels.kernels.arrays import Bools, Floats, Ints
from parts import SEED
from score_lists import LINEAR, linear_scores

# Of these very items and at 90%, as the papers have it.
OF_THESE = {"confidence_level": 0.9, "estimand": "sample"}
sample_curve = partial(fl.curve, **OF_THESE)

TASKS = (*(f"optdigits_{digit}" for digit in range(10)), "magic_g_1", "spambase_1")
SPE_LISTS = tuple(f"{task} {model}" for task in TASKS for model in LINEAR)
SATIMAGE_LISTS = tuple(f"satimage_{label} {model}" for label in "123457" for model in LINEAR)


class Scores(NamedTuple):
    """Scores (n,) of the items of a trial and their labels (n,), in the order of labeling."""

    values: Floats
    labels: Ints

    def show(self, shown: int | Ints | Bools) -> fl.Predictions:
        """Predictions with the labels of the first few items, or of these."""
        known = np.full(len(self.labels), -1)
        rows = np.arange(shown) if isinstance(shown, int) else shown
        known[rows] = self.labels[rows]
        return fl.Predictions(
            scores=self.values[:, None], labels=known, models=["classifier"], classes=(0, 1)
        )

    def truth(self) -> fl.Curve:
        """The curve of these items by all their labels."""
        return sample_curve(self.show(len(self.labels)), method="labeled", workers=1)


def set_of(name: str) -> str:
    """The data set of a list."""
    return name.partition("_")[0]


def stream(*key: str | int) -> np.random.Generator:
    """Random numbers of their own for whatever these words and numbers name."""
    return np.random.default_rng([SEED, *(crc32(str(part).encode()) for part in key)])


def draw(data: Path, name: str, trial: int) -> Scores:
    """The items of a trial, in the order in which they are labeled."""
    every = _load(data, name)
    rows = stream(name, trial).permutation(len(every.labels))
    return Scores(every.values[rows], every.labels[rows])


@lru_cache(maxsize=1)
def _load(data: Path, name: str) -> Scores:
    """All items of a list: satimage's are made here from its table, the others are a file's."""
    task, model = name.split()
    if name in SATIMAGE_LISTS:
        return Scores(*linear_scores(*task.split("_"), model))
    found = pyarrow.parquet.read_table(
        data / "spe_scores" / "data.parquet", columns=["label", f"s__{model}"],
        filters=[("task", "=", task)],
    )  # fmt: skip
    values, labels = (found[c].to_numpy().astype(np.float64) for c in (f"s__{model}", "label"))
    return Scores(values, labels.astype(int))
