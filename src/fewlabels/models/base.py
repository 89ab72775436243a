"""LabelModel: predictions and a few labels in, a posterior over the missing labels out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np

from fewlabels.errors import InputError
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


def require_probabilities(predictions: Predictions, method: str) -> Predictions:
    """The classifiers that give probabilities; one line of explanation where none does."""
    with_probabilities = predictions.has_probabilities.any(axis=0)
    if not with_probabilities.any():
        raise InputError(
            f"method {method!r} needs class probabilities (columns p__<model>__<class>), and no "
            "classifier gives any; use method 'labeled', or provide probabilities"
        )
    if with_probabilities.all():
        return predictions
    return predictions.select_models(
        [m for m, has in zip(predictions.models, with_probabilities, strict=True) if has]
    )
