"""The score lists on which curves are measured: 24 of the SPE experiment, and others.

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

# Of these very items and at 90%, as the papers have it.
OF_THESE = {"confidence_level": 0.9, "estimand": "sample"}
sample_curve = partial(fl.curve, **OF_THESE)

TASKS = (*(f"optdigits_{digit}" for digit in range(10)), "magic_g_1", "spambase_1")
SPE_LISTS = tuple(f"{task} {model}" for task in TASKS for model in ("logreg", "linsvm"))

_ADULT = ["logreg", "hgb", "rf100", "gnb", "knn25", "tree_overfit", "logreg_demog", "logreg_200"]
# By the set's own description two more of its classifiers are degenerate.
_CIVIL = ["CORAL", "ERM", "ERM_seed1", "ERM_seed2", "IRM", "IRM_seed1", "IRM_seed2"]
_CIFAR = ["lenet5_netcal", "wrn16_4_netcal", "smallcnn_e4"]
_CLASSES = (0, 3, 8)  # aeroplanes, cats, ships
OTHER_LISTS = (
    *(f"adult {model} 1" for model in _ADULT),
    *(f"civilcomments {model} 1" for model in _CIVIL),
    *(f"cifar10 {model} {k}" for model in _CIFAR for k in _CLASSES),
)
_FILES = {
    "adult": "adult/predictions_test.parquet",
    "civilcomments": "ssme_civilcomments/data.parquet",
    "cifar10": "cifar10/data.parquet",
}
# The paper's own kind of data: images, and scores of linear classifiers. Features as they are,
# where scores of a class are near normal, and standardised, where they are not.
DIGIT_LISTS = tuple(
    f"digits_{features}_{digit} {model}"
    for features in ("raw", "scaled")
    for digit in range(10)
    for model in ("logreg", "linsvm")
)
_DIGITS_TRAIN = 200

OTHER_ITEMS = 2_000
"""Items of the other lists that a trial draws."""


class Scores(NamedTuple):
    """Scores (n,) of the items of a trial and their labels (n,), in the order of labeling."""

    values: Floats
    labels: Ints
    probability: bool

    def show(self, shown: int | Ints | Bools) -> fl.Predictions:
        """Predictions with the labels of the first few items, or of these."""
        known = np.full(len(self.labels), -1)
        rows = np.arange(shown) if isinstance(shown, int) else shown
        known[rows] = self.labels[rows]
        columns = {"probabilities" if self.probability else "scores": self.values[:, None]}
        return fl.Predictions(labels=known, models=["classifier"], classes=(0, 1), **columns)

    def truth(self) -> fl.Curve:
        """The curve of these items by all their labels."""
        return sample_curve(self.show(len(self.labels)), method="labeled", workers=1)


def task_of(name: str) -> str:
    """What lists are dependent by: the task, or the list itself where others have none."""
    return name.split()[0] if name in SPE_LISTS or name in DIGIT_LISTS else name


def stream(*key: str | int) -> np.random.Generator:
    """Random numbers of their own for whatever these words and numbers name."""
    return np.random.default_rng([SEED, *(crc32(str(part).encode()) for part in key)])


def draw(data: Path, name: str, trial: int) -> Scores:
    """The items of a trial, in the order in which they are labeled."""
    every = _load(data, name)
    rows = stream(name, trial).permutation(len(every.labels))
    if name in OTHER_LISTS:
        rows = rows[:OTHER_ITEMS]
    return Scores(every.values[rows], every.labels[rows], every.probability)


@lru_cache(maxsize=1)
def _load(data: Path, name: str) -> Scores:
    """All items of a list."""
    if name in SPE_LISTS:
        task, model = name.split()
        found = pyarrow.parquet.read_table(
            data / "spe_scores" / "data.parquet",
            columns=["label", f"s__{model}"],
            filters=[("task", "=", task)],
        )
        return Scores(_column(found, f"s__{model}"), _column(found, "label").astype(int), False)
    if name in DIGIT_LISTS:
        return _digits(*name.split())
    folder, model, positive = name.split()
    column = f"p__{model}__{positive}"
    found = pyarrow.parquet.read_table(data / _FILES[folder], columns=["label", column])
    labels = (_column(found, "label") == int(positive)).astype(int)
    return Scores(_column(found, column), labels, True)


def _digits(task: str, model: str) -> Scores:
    """scikit-learn's digits, one against the rest: 200 to train on, the scores of the others."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    _, features, digit = task.split("_")
    x, y = load_digits(return_X_y=True)
    order = stream("digits").permutation(len(y))
    train, rest = order[:_DIGITS_TRAIN], order[_DIGITS_TRAIN:]
    if features == "scaled":
        x = StandardScaler().fit(x[train]).transform(x)
    classifiers = {
        "logreg": LogisticRegression(C=0.01, max_iter=5_000),
        "linsvm": LinearSVC(C=0.001, random_state=0, max_iter=100_000),
    }
    own = (y == int(digit)).astype(int)
    fitted = classifiers[model].fit(x[train], own[train])
    return Scores(fitted.decision_function(x[rest]).astype(float), own[rest], False)


def _column(table: pyarrow.Table, name: str) -> Floats:
    return table[name].to_numpy().astype(np.float64)
