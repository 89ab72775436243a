"""Labeled: the labeled items alone, with an interval that does not collapse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewlabels.methods.base import FittedLabelModel, LabelModel
from fewlabels.posterior import Fixed, LabelPosterior
from fewlabels.predictions import Predictions


@dataclass(frozen=True)
class Labeled(LabelModel):
    """Metrics on the labeled items only: what everybody computes today, as a baseline.

    It forms no posterior over the other labels: its marginals there are the class frequencies
    among the labels, and no metric uses them.
    """

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Count the labels; `rng` seeds the intervals."""
        known = predictions.labeled
        times, k = predictions.times[known], predictions.n_classes
        count = np.bincount(predictions.labels[known], times, minlength=k)
        frequency = (count + 0.5) / (count.sum() + 0.5 * len(count))
        return _FittedLabeled(tuple(frequency.tolist()), int(rng.integers(2**63)))


@dataclass(frozen=True)
class _FittedLabeled(FittedLabelModel):
    frequency: tuple[float, ...]
    salt: int

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        probabilities = np.tile(self.frequency, (predictions.n_items, 1))
        rows = np.flatnonzero(predictions.labeled)
        probabilities[rows] = 0.0
        probabilities[rows, predictions.labels[rows]] = 1.0
        return LabelPosterior(
            probabilities,
            Fixed(probabilities),
            predictions.keys,
            salt=self.salt,
            value_from="marginals",
            observed=predictions.labeled,
        )
