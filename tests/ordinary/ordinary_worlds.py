"""Made items whose truth is known, and what a right reader takes from a file of them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, roc_auc_score

Array = NDArray[Any]


@dataclass(frozen=True)
class Classifier:
    """One classifier as a data scientist would take it from the file.

    `names` are the acceptable ones, none where any will do; `kinds` likewise, of probabilities,
    hard and score. The accuracy is that of hard predictions or of the largest probability, the
    area that of scores or of the positive probability, both on the labeled items.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    accuracy: float | None = None
    roc_auc: float | None = None


@dataclass(frozen=True)
class Reading:
    """What is in a file: a label per row (None: unknown), the classes, the classifiers.

    `answers` are what the classifiers are judged by: the labels, or, where the file has none, the
    truth that was kept out of it. `groups` must stay groups.
    """

    path: Path
    labels: Sequence[str | None]
    answers: Sequence[str | None]
    classes: tuple[str, ...]
    classifiers: tuple[Classifier, ...]
    positive: str | None = None
    groups: tuple[str, ...] = ()
    weighted: bool = False

    @property
    def n_labels(self) -> int:
        return sum(label is not None for label in self.labels)


@dataclass(frozen=True)
class OrdinaryFile:
    """A file that people have.

    `refusal` holds words that the one line of a refusal must have, where two readings are honestly
    possible. `votes` says that the rows are votes, so that `labels` are those of items.
    """

    name: str
    about: str
    write: Callable[[Path], Reading]
    refusal: tuple[str, ...] = ()
    votes: bool = False

    @property
    def ambiguous(self) -> bool:
        return bool(self.refusal)


@dataclass
class World:
    """Items of two or more classes, the positive one last of two, of which some are labeled."""

    seed: int
    classes: tuple[str, ...]
    n: int = 400
    labeled: int = 50
    shares: tuple[float, ...] | None = None
    weight: Array | None = None
    rng: np.random.Generator = field(init=False)
    truth: Array = field(init=False)
    known: Array = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.truth = self.rng.choice(len(self.classes), self.n, p=self.shares)
        self.known = np.zeros(self.n, bool)
        self.known[self.rng.choice(self.n, self.labeled, replace=False)] = True

    def text(self, hard: Array) -> list[str]:
        return [self.classes[k] for k in hard]

    def labels(self, blank: Any = "", names: Sequence[Any] | None = None) -> list[Any]:
        names = names or self.classes
        return [
            names[k] if known else blank for k, known in zip(self.truth, self.known, strict=True)
        ]

    def predict(self, accuracy: float) -> Array:
        """Hard predictions that are right this often."""
        others = self.rng.integers(1, len(self.classes), self.n)
        wrong = (self.truth + others) % len(self.classes)
        return np.where(self.rng.random(self.n) < accuracy, self.truth, wrong)

    def probabilities(self, noise: float, decimals: int = 4, pull: float = 1.5) -> Array:
        """(n, K) rounded probabilities; the largest is ahead, so that rounding makes no tie."""
        probabilities = np.zeros((self.n, len(self.classes)))
        redo = np.ones(self.n, bool)
        while redo.any():
            logits = noise * self.rng.standard_normal((int(redo.sum()), len(self.classes)))
            logits[np.arange(len(logits)), self.truth[redo]] += pull
            exponents = np.exp(logits)
            probabilities[redo] = exponents / exponents.sum(axis=1, keepdims=True)
            ordered = np.sort(probabilities, axis=1)
            redo = ordered[:, -1] - ordered[:, -2] < 0.06
        return probabilities.round(decimals)

    def scores(self, distance: float, decimals: int = 3) -> Array:
        """Real values, larger for the last class."""
        return (distance * self.truth + self.rng.standard_normal(self.n)).round(decimals)

    def hard(self, names: Iterable[str], predicted: Array) -> Classifier:
        return Classifier(tuple(names), ("hard",), accuracy=self._accuracy(predicted))

    def probable(self, names: Iterable[str], probabilities: Array, *kinds: str) -> Classifier:
        """Of (n, K) probabilities; `kinds` where others than "probabilities" are right too."""
        area = self._area(probabilities[:, 1]) if len(self.classes) == 2 else None
        accuracy = self._accuracy(probabilities.argmax(axis=1))
        return Classifier(tuple(names), kinds or ("probabilities",), accuracy, area)

    def score(self, names: Iterable[str], scores: Array) -> Classifier:
        return Classifier(tuple(names), ("score",), roc_auc=self._area(scores))

    def read(self, path: Path, *classifiers: Classifier, **more: Any) -> Reading:
        """The reading of a file that holds one row per item, in order."""
        labels = more.pop("labels", self.labels(None))
        return Reading(
            path=path,
            labels=labels,
            answers=labels if any(label is not None for label in labels) else self.labels(None),
            classes=self.classes,
            classifiers=classifiers,
            positive=self.classes[1] if len(self.classes) == 2 else None,
            weighted=self.weight is not None,
            **more,
        )

    def _accuracy(self, predicted: Array) -> float:
        weight = None if self.weight is None else self.weight[self.known]
        truth = self.truth[self.known]
        return float(accuracy_score(truth, predicted[self.known], sample_weight=weight))

    def _area(self, scores: Array) -> float:
        weight = None if self.weight is None else self.weight[self.known]
        truth = self.truth[self.known] == 1
        return float(roc_auc_score(truth, scores[self.known], sample_weight=weight))


def save(
    path: Path,
    columns: Mapping[str, Sequence[Any]],
    *,
    encoding: str = "utf-8",
    **dialect: Any,
) -> Path:
    """Write columns as delimited text."""
    with path.open("w", newline="", encoding=encoding) as file:
        out = csv.writer(file, lineterminator="\n", **dialect)
        out.writerow(columns)
        out.writerows(zip(*columns.values(), strict=True))
    return path


def both(positive: Array) -> Array:
    """P(positive) as (n, 2)."""
    return np.column_stack([1 - positive, positive])


def family(prefix: str, classes: Sequence[str], probabilities: Array, order: Sequence[int] = ()):
    """A column per class, named by it, in the order given."""
    columns = order or range(len(classes))
    return {f"{prefix}{classes[k]}": probabilities[:, k].tolist() for k in columns}
