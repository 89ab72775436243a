"""LabelModel: predictions and a few labels in, a posterior over the missing labels out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np

from fewlabels.errors import InputError
from fewlabels.kernels.arrays import Floats
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions


class FittedLabelModel(ABC):
    """What a label model learned; it applies to any rows of the same classifiers and classes."""

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
            "classifier gives any; use method 'labeled', or provide probabilities"
        )
    if gives.all():
        return predictions, predictions.probabilities
    names = [predictions.models[j] for j in np.flatnonzero(gives)]
    return predictions.select_models(names), predictions.probabilities[:, gives]
