"""The demonstration: five classifiers on handwritten digits, 20 labels, and the hidden truth."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewlabels.checks.arrays import UNKNOWN
from fewlabels.errors import UsageError
from fewlabels.kernels.arrays import Ints
from fewlabels.predictions import Predictions

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewlabels.estimates import Estimates

METRICS = ("accuracy", "ece", "roc_auc", "average_precision")

_TRAINING = 797
"""Images for training; the other 1,000 are scored."""


@dataclass(frozen=True)
class Demo:
    """Predictions with few labels, and the labels that were hidden, shape (n,)."""

    predictions: Predictions
    truth: Ints


@dataclass(frozen=True)
class Comparison:
    """Estimates (their report holds the truth too) and how many intervals hold the truth."""

    estimates: Estimates
    truth: Mapping[str, Mapping[str, float]]
    held: int
    intervals: int


def make_demo(labels: int = 20, seed: int = 0) -> Demo:
    """Train five classifiers on small parts of the UCI optdigits and hide most labels.

    Of the 1,000 scored images `labels` keep their label; `seed` decides which, and the training
    parts.
    """
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    images, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(digits))
    training, scored = order[:_TRAINING], order[_TRAINING:]
    if not 0 <= labels <= len(scored):
        raise UsageError(f"`labels` must be between 0 and {len(scored)}; got {labels}")
    pixels = images / 16.0
    probabilities = {}
    # Threads cost small matrices far more than they save.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        # A network that stopped early is a classifier like any other.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, (classifier, size) in _classifiers(seed).items():
            # As many images of every digit; larger parts hold the smaller ones.
            subset = np.concatenate(
                [training[digits[training] == d][: size // 10] for d in range(10)]
            )
            classifier.fit(pixels[subset], digits[subset])
            probabilities[name] = classifier.predict_proba(pixels[scored])
    truth = digits[scored].astype(np.int64)
    labeled = rng.choice(len(scored), labels, replace=False)
    known_labels = np.full(len(scored), UNKNOWN)
    known_labels[labeled] = truth[labeled]
    predictions = Predictions(
        np.stack(list(probabilities.values()), axis=1),
        known_labels,
        models=list(probabilities),
        classes=range(10),
    )
    return Demo(predictions, truth)


def compare(
    demo: Demo, seed: int = 0, progress: Callable[[int, int], None] | None = None
) -> Comparison:
    """Estimate every classifier from the few labels, and compare with the hidden truth."""
    from fewlabels.estimating import estimate

    estimates = estimate(demo.predictions, metrics=METRICS, random_state=seed, progress=progress)
    truth = true_values(demo, METRICS)
    held = sum(row.low <= truth[row.model][row.metric] <= row.high for row in estimates.rows)
    return Comparison(
        replace(estimates, beside={"truth": truth}),
        truth,
        held,
        len(estimates.rows),
    )


def true_values(demo: Demo, metrics: Sequence[str]) -> dict[str, dict[str, float]]:
    """Model -> metric -> value on the scored images, with every label known."""
    from fewlabels.estimating import estimate

    complete = estimate(
        demo.predictions.with_labels(demo.truth),
        method="labeled",
        metrics=metrics,
        estimand="sample",
    )
    truth: dict[str, dict[str, float]] = {model: {} for model in complete.models}
    for row in complete.rows:
        truth[row.model][row.metric] = row.value
    return truth


def save_predictions(demo: Demo, path: str | Path) -> None:
    """Write the data of the demonstration as Parquet, with the native column names."""
    from fewlabels.data.write import write_table

    predictions, probabilities = demo.predictions, demo.predictions.probabilities
    assert probabilities is not None
    columns: dict[str, Any] = {
        "label": [y if y >= 0 else None for y in predictions.labels.tolist()]
    }
    for j, model in enumerate(predictions.models):
        for k, name in enumerate(predictions.classes):
            columns[f"p__{model}__{name}"] = probabilities[:, j, k]
    write_table(columns, Path(path), "parquet")


def _classifiers(seed: int) -> dict[str, tuple[Any, int]]:
    """Name -> (classifier, how many images it learns from): different kinds, different quality."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier

    network = MLPClassifier((64,), solver="lbfgs", alpha=0.1, max_iter=1000, random_state=seed)
    return {
        "naive_bayes": (GaussianNB(var_smoothing=0.01), 150),
        "logistic": (LogisticRegression(max_iter=1000), 100),
        "neighbours": (KNeighborsClassifier(5), 300),
        "forest": (RandomForestClassifier(60, max_depth=5, random_state=seed), 200),
        "network": (network, 400),
    }
