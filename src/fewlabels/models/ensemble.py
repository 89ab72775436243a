"""Ensemble: the averaged classifier is taken at its word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewlabels.errors import Status
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.simplex import linear_pool, mean_probability, softmax
from fewlabels.models.base import FittedLabelModel, LabelModel, probabilities_of, with_probabilities
from fewlabels.models.method import Method
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


METHOD = Method(
    "ensemble",
    Ensemble,
    "the averaged classifier, taken at its word",
    "The classifiers' probabilities are averaged and taken as the truth about every item "
    "without a label.",
    ("the averaged classifier is calibrated",),
    ("it is not: labels do not correct it",),
    "baseline in Shanmugam et al. (2025)",
)
