"""LabelModel: predictions and a few labels in, a posterior over the missing labels out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from numbers import Integral
from typing import final

import numpy as np

from fewlabels.errors import InputError, UsageError
from fewlabels.kernels.arrays import Array, Floats
from fewlabels.kernels.simplex import softmax
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions


class FittedLabelModel(ABC):
    """What a label model learned; it applies to any rows of the same classifiers and classes.

    What it computes once for all rows, such as refits, it keeps from the first block of draws on
    (`LabelPosterior.prepare`). It may be pickled, and serves several threads.
    """

    @abstractmethod
    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """Posterior over the labels of these items."""


class LabelModel(ABC):
    """Hyperparameters of a method. Fitting changes nothing here: it returns what was learned."""

    @abstractmethod
    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Learn from predictions and the labels there are."""

    @final
    def infer(
        self, predictions: Predictions, rng: np.random.Generator | int | None = None
    ) -> LabelPosterior:
        """Fit, and give the posterior of the same items."""
        return self.fit(predictions, np.random.default_rng(0 if rng is None else rng)).posterior(
            predictions
        )


def with_probabilities(predictions: Predictions, method: str) -> tuple[Predictions, Floats]:
    """The classifiers that give probabilities, and these (n, M, K).

    Raises
    ------
    InputError
        If no classifier gives any.
    """
    gives = predictions.has_probabilities.any(axis=0)
    if predictions.probabilities is None or not gives.any():
        raise InputError(
            f"method {method!r} needs class probabilities (columns p__<model>__<class>), and no "
            "classifier gives any; provide them, or use a method for hard predictions "
            "('dawid-skene', 'majority-vote') or 'labeled'"
        )
    if gives.all():
        return predictions, predictions.probabilities
    names = [predictions.models[j] for j in np.flatnonzero(gives)]
    return predictions.select_models(names), predictions.probabilities[:, gives]


def probabilities_of(predictions: Predictions, models: Sequence[str], method: str) -> Floats:
    """Probabilities (n, M, K) of the classifiers a model was fitted on; missing ones are NaN.

    Raises
    ------
    InputError
        If these items have no probabilities at all.
    """
    served = predictions.select_models(models)
    if served.probabilities is None:
        raise InputError(f"method {method!r} needs class probabilities, and these items have none")
    return served.probabilities


def with_hard_votes(predictions: Predictions, method: str) -> tuple[Predictions, Array]:
    """The classifiers that give hard predictions, and these (n, M); -1 = missing.

    Raises
    ------
    InputError
        If no classifier gives any.
    """
    gives = predictions.has_hard.any(axis=0)
    if not gives.any():
        raise InputError(
            f"method {method!r} needs hard predictions (columns y__<model>, or probabilities), and "
            "no classifier gives any; use method 'labeled', or provide predictions"
        )
    if gives.all():
        return predictions, predictions.hard
    names = [predictions.models[j] for j in np.flatnonzero(gives)]
    return predictions.select_models(names), predictions.hard[:, gives]


def with_evidence(
    probabilities: Floats, evidence: Floats, floor: float = float(np.finfo(float).tiny)
) -> Floats:
    """Posterior (n, K, ...) from P(label | scores) and the evidence (n, K).

    A known label is one-hot. Softer evidence meets probabilities of at least `floor`: however
    certain the scores, it can speak against them.
    """
    informed = np.flatnonzero((evidence != 0).any(axis=1))
    out = probabilities.copy()
    known = evidence[informed].reshape(-1, evidence.shape[1], *[1] * (out.ndim - 2))
    out[informed] = softmax(np.log(np.maximum(out[informed], floor)) + known)
    return out


def refuse_multiplicity(predictions: Predictions, who: str) -> None:
    """Refuse rows that stand for several items, for those who take every row for one.

    Raises
    ------
    UsageError
        If there are such rows.
    """
    if predictions.multiplicity is not None:
        raise UsageError(
            f"{who} takes every row for one item, and rows stand for several here "
            "(`multiplicity`); give every item a row of its own, or take a method that counts "
            "them, such as 'dawid-skene' or 'labeled'"
        )


def whole_items(predictions: Predictions) -> None:
    """Refuse rows that stand for a part of an item: labels are drawn of whole ones.

    Raises
    ------
    InputError
        If there are such rows.
    """
    times = predictions.times
    broken = np.flatnonzero(times != np.rint(times))
    if broken.size:
        raise InputError(
            f"`multiplicity` must be whole numbers; got {times[broken[0]]} for row {broken[0]} "
            "(from 0)"
        )


def check_count(name: str, value: object) -> None:
    """Refuse a hyperparameter that is not a whole number of at least 1.

    Raises
    ------
    UsageError
        If it is not.
    """
    if not isinstance(value, Integral) or value < 1:
        raise UsageError(f"`{name}` must be a whole number, at least 1; got {value!r}")


# --- checks of hyperparameters ----------------------------------------------------------------


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of the choices.

    Raises
    ------
    UsageError
        Naming all of them.
    """
    if value not in choices:
        raise UsageError(f"`{name}` must be one of {', '.join(choices)}; got {value!r}")


def check_not_negative(name: str, value: object) -> None:
    """Refuse what is not a number of at least 0.

    Raises
    ------
    UsageError
        If it is not.
    """
    if not isinstance(value, (int, float, np.number)) or not 0 <= value < np.inf:
        raise UsageError(f"`{name}` must not be negative; got {value!r}")


def check_positive(name: str, value: object) -> None:
    """Refuse what is not a number above 0.

    Raises
    ------
    UsageError
        If it is not.
    """
    if not isinstance(value, (int, float, np.number)) or not 0 < value < np.inf:
        raise UsageError(f"`{name}` must be a number above 0; got {value!r}")
