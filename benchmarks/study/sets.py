"""Sets of classifiers with all labels known: real ones below the data, made ones from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import fewlabels as fl
from bench.world import measured
from study.families import FAMILIES, make_set

METRICS = (
    "accuracy", "balanced_accuracy", "f1", "roc_auc", "average_precision", "ece", "brier",
)  # fmt: skip

SEEDS = (9000, 9001, 9002, 9003)
"""Seeds of the made sets; priors were learned on others, below 1,000."""

MADE = {f"{family}-{seed}": (family, seed) for seed in SEEDS for family in FAMILIES}


@dataclass(frozen=True)
class Source:
    """Where a real set is below the data.

    `left_out` are classifiers that are none: by the set's description they are degenerate.
    `domain` and `group` (column and value) choose its rows; `majority` takes the class that most
    annotators chose, where items have no class of their own.
    """

    file: str
    left_out: tuple[str, ...] = ()
    domain: str = ""
    group: tuple[str, str] | None = None
    majority: bool = False


REAL = {
    "CivilComments": Source("ssme_civilcomments/data.parquet", ("CORAL_seed1", "CORAL_seed2")),
    "Adult": Source("adult/predictions_test.parquet"),
    "CIFAR-10": Source("cifar10/data.parquet"),
    "Mix-MNIST": Source(
        "mixed_lh/mixed_mnist_predictions.parquet", group=("partition", "test"), majority=True
    ),
    **{f"NELL {kind}": Source("nell/data.parquet", domain=kind)
       for kind in ("animal", "city", "drug", "river")},
}  # fmt: skip
"""Real sets; of NELL's 15 categories four, 9.4% to .5% positive."""


@dataclass(frozen=True, eq=False)
class StudySet:
    """Predictions with all labels, and truth (M, metrics) on all items; `family` "" if real."""

    name: str
    family: str
    predictions: fl.Predictions
    truth: np.ndarray

    def facts(self) -> dict[str, Any]:
        """Size, classes, classifiers and prevalence, as plain JSON values."""
        p = self.predictions
        return {
            "family": self.family, "n_items": p.n_items, "n_models": p.n_models,
            "n_classes": p.n_classes,
            "prevalence": float(np.mean(p.labels == 1)) if p.n_classes == 2 else None,
            "accuracy": [float(self.truth[:, 0].min()), float(self.truth[:, 0].max())],
        }  # fmt: skip


def chosen(asked: Sequence[str], data: Path) -> list[str]:
    """Sets by name, family, "real" or "made", or all; of the real ones those below the data."""
    known = {
        name: ("real", name) for name, source in REAL.items() if (data / source.file).is_file()
    }
    known |= {name: ("made", name, family) for name, (family, _) in MADE.items()}
    unknown = set(asked) - {word for words in known.values() for word in words}
    if unknown:
        raise SystemExit(f"error: no set {', '.join(sorted(unknown))}; have {', '.join(known)}")
    return [name for name, words in known.items() if not asked or set(words) & set(asked)]


@lru_cache(maxsize=64)
def load(name: str, data: Path) -> StudySet:
    """A set by its name, kept for the next time; a made one is trained."""
    family = MADE[name][0] if name in MADE else ""
    predictions = make_set(*MADE[name]).predictions if family else _real(data, REAL[name])
    return StudySet(name, family, predictions, truth_of(predictions, METRICS))


def truth_of(predictions: fl.Predictions, metrics: Sequence[str]) -> np.ndarray:
    """Metrics (M, metrics) by all labels."""
    return measured(predictions, metrics)[1][0]


def whole(file: Path, keep: str | None = None, left_out: Sequence[str] = ()) -> fl.Predictions:
    """The classifiers of a file that give probabilities of every item, but for some."""
    read = fl.read_predictions(file, keep=() if keep is None else (keep,))
    gives = zip(read.models, read.has_probabilities.all(axis=0), strict=True)
    return read.select_models([name for name, all_ in gives if all_ and name not in left_out])


def _real(data: Path, source: Source) -> fl.Predictions:
    column, value = source.group or (None, None)
    read = whole(data / source.file, column, source.left_out)
    if column is not None:
        read = read.take(np.flatnonzero(read.groups[column] == value))
    if source.domain:
        read = read.take(np.flatnonzero(read.domain == source.domain))
    labels = read.histogram.argmax(axis=1) if source.majority else read.labels
    return fl.Predictions(
        read.probabilities, labels, models=read.models, classes=list(read.classes)
    )
