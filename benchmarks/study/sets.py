"""Sets of classifiers with all labels known: real ones below the data, made ones from a seed."""

from __future__ import annotations

import hashlib
import inspect
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.folder import replace_file
from fewlabels.data import read_predictions
from fewlabels.errors import InputError
from fewlabels.estimating import estimate
from fewlabels.kernels.arrays import Floats
from fewlabels.metrics.registry import resolve
from fewlabels.predictions import Predictions
from study.protocol import METRICS

FAMILIES = (
    "classification", "quantiles", "blobs", "shapes", "friedman", "sparse", "manifold", "hastie",
    "digits", "tumours", "wine",
)  # fmt: skip
"""Names of `families.FAMILIES`, which cost an import of scikit-learn; a test holds them equal."""

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


_NELL = "nell/data.parquet"
REAL = {
    "CivilComments": Source("ssme_civilcomments/data.parquet", ("CORAL_seed1", "CORAL_seed2")),
    "Adult": Source("adult/predictions_test.parquet"),
    "CIFAR-10": Source("cifar10/data.parquet"),
    "Mix-MNIST": Source(
        "mixed_lh/mixed_mnist_predictions.parquet", group=("partition", "test"), majority=True
    ),
    "NELL animal": Source(_NELL, domain="animal"),
    "NELL city": Source(_NELL, domain="city"),
    "NELL drug": Source(_NELL, domain="drug"),
    "NELL river": Source(_NELL, domain="river"),
}
"""Real sets; of NELL's 15 categories four, 9.4% to .5% positive."""


@dataclass(frozen=True, eq=False)
class StudySet:
    """A set of classifiers: predictions with all labels, and truth (M, metrics) on all items.

    `family` is "" for a real one.
    """

    name: str
    family: str
    predictions: Predictions
    truth: Floats
    digest: str

    def facts(self) -> dict[str, Any]:
        """Size, classes, classifiers and prevalence, as plain JSON values."""
        p = self.predictions
        return {
            "name": self.name,
            "family": self.family,
            "n_items": p.n_items,
            "n_models": p.n_models,
            "n_classes": p.n_classes,
            "prevalence": float(np.mean(p.labels == 1)) if p.n_classes == 2 else None,
            "accuracy": [float(self.truth[:, 0].min()), float(self.truth[:, 0].max())],
            "digest": self.digest,
        }


def known_sets(data: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Every set that can be had -> its family, and a line for each real one that is not there."""
    found, notes = {}, []
    for name, source in REAL.items():
        if _place(source, data) is None:
            notes.append(f"{name} is left out: there is no {source.file} below the data")
        else:
            found[name] = ""
    return found | {name: family for name, (family, _) in MADE.items()}, notes


def _place(source: Source, data: Sequence[str]) -> Path | None:
    places = (Path(folder) / source.file for folder in data)
    return next((p for p in places if p.is_file()), None)


def load(name: str, data: Sequence[str], cache_folder: Path) -> StudySet:
    """A set by its name; a made one is made once, and kept in the folder.

    Raises
    ------
    InputError
        If a real one is not there any more.
    """
    if name in MADE:
        return _made(name, cache_folder)
    place = _place(REAL[name], data)
    if place is None:
        raise InputError(f"{REAL[name].file} of set {name!r} is not there any more; bring it back")
    return _with_truth(name, "", _real(place, REAL[name]))


def load_kept(name: str, data: Sequence[str], cache_folder: Path) -> StudySet | None:
    """A set that is there already; None if not: nothing is trained.

    A made one may be of any recipe: its digest says which parts are of it.
    """
    if name in MADE:
        found = _kept(cache_folder / f"{name}.npz", None)
        return None if found is None else _with_truth(name, MADE[name][0], found)
    return None if _place(REAL[name], data) is None else load(name, data, cache_folder)


def _real(place: Path, source: Source) -> Predictions:
    keep = () if source.group is None else (source.group[0],)
    read = read_predictions(place, keep=keep)
    if source.group is not None:
        column, value = source.group
        read = read.take(np.flatnonzero(read.groups[column] == value))
    if source.domain:
        assert read.domain is not None
        read = read.take(np.flatnonzero(read.domain == source.domain))
    labels = read.labels
    if source.majority:
        assert read.histogram is not None
        labels = read.histogram.argmax(axis=1)
    gives = [bool(column.all()) for column in read.has_probabilities.T]
    kept = [m for m, g in zip(read.models, gives, strict=True) if g and m not in source.left_out]
    some = read.select_models(kept)
    return Predictions(some.probabilities, labels, models=kept, classes=list(some.classes))


def _made(name: str, folder: Path) -> StudySet:
    family, seed = MADE[name]
    path, recipe = folder / f"{name}.npz", recipe_of(name)
    found = _kept(path, recipe)
    if found is None:
        from study.families import make_set

        found = make_set(family, seed).predictions
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, lambda place: _keep(place, found, recipe))
    return _with_truth(name, family, found)


def _keep(place: Path, predictions: Predictions, recipe: str) -> None:
    assert predictions.probabilities is not None
    with place.open("wb") as file:  # by its name savez would add a suffix
        np.savez(
            file, probabilities=predictions.probabilities, labels=predictions.labels, recipe=recipe
        )


def _kept(path: Path, recipe: str | None) -> Predictions | None:
    """A made set as it was kept; None if it is not there, damaged, or of another recipe.

    `recipe` None takes any.
    """
    try:
        with path.open("rb") as file, np.load(file) as said:  # a damaged one is closed too
            if recipe is not None and str(said["recipe"]) != recipe:
                return None
            p, labels = said["probabilities"], said["labels"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    models = [f"m{j + 1}" for j in range(p.shape[1])]
    return Predictions(p, labels, models=models, classes=list(range(p.shape[2])))


@cache
def recipe_of(name: str) -> str:
    """Hash of what makes a set: its name, the recipe's source, and the library it calls."""
    import sklearn

    from study import families

    said = (name, inspect.getsource(families), sklearn.__version__, np.__version__)
    return hashlib.blake2b(repr(said).encode(), digest_size=10).hexdigest()


def _with_truth(name: str, family: str, predictions: Predictions) -> StudySet:
    found = estimate(
        predictions, "labeled", list(METRICS), confidence_level=None, estimand="sample", workers=1
    )
    truth = np.array([r.value for r in found.rows]).reshape(predictions.n_models, len(METRICS))
    said = hashlib.blake2b(repr(predictions.models).encode(), digest_size=10)
    for block in (predictions.probabilities, predictions.labels):
        assert block is not None
        said.update(np.ascontiguousarray(block).tobytes())
    return StudySet(name, family, predictions, truth, said.hexdigest())


METRIC_OBJECTS = tuple(resolve(list(METRICS)).values())
"""The metrics of the study, for their bounds."""
