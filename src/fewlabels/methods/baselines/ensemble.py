"""Ensemble: the averaged classifier is taken at its word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewlabels.errors import Status
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.simplex import linear_pool, mean_probability
from fewlabels.methods.base import (
    FittedLabelModel,
    LabelModel,
    probabilities_of,
    with_evidence,
    with_probabilities,
)
from fewlabels.posterior import Fixed, LabelPosterior
from fewlabels.predictions import Predictions


@dataclass(frozen=True)
class Ensemble(LabelModel):
    """P(label | scores) = mean probability of the classifiers (a baseline of the SSME paper).

    Labels are kept, and teach nothing about the other items.
    """

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Nothing is learned; `rng` seeds the draws of labels."""
        served, p = with_probabilities(predictions, "ensemble")
        return _FittedEnsemble(served.models, mean_probability(p), int(rng.integers(2**63)))


@dataclass(frozen=True, eq=False)
class _FittedEnsemble(FittedLabelModel):
    models: tuple[str, ...]
    average: Floats
    salt: int

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        p = probabilities_of(predictions, self.models, "ensemble")
        pool = linear_pool(p, self.average)
        probabilities = with_evidence(pool, predictions.evidence)
        return LabelPosterior(
            probabilities,
            Fixed(probabilities),
            predictions.keys,
            salt=self.salt,
            value_from="marginals",
            status=Status.ASSUMPTION,
            warnings=(
                "assumption: the mean of the classifiers' probabilities is taken as true; "
                "labels do not correct it",
            ),
        )
