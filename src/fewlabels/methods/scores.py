"""Scores: the one number by which a classifier ranks items, in the units of the file."""

from __future__ import annotations

import numpy as np
from scipy.special import logit

from fewlabels.kernels.arrays import Floats
from fewlabels.predictions import Predictions

CLIP = 1e-5
"""Probabilities are clipped to [1e-5, 1 - 1e-5] before they become logits."""


def is_probability(predictions: Predictions, j: int) -> bool:
    """Whether classifier j is ranked by its probabilities, which go before its scores."""
    return bool(predictions.has_probabilities[:, j].any())


def score_of(predictions: Predictions, j: int, positive: int = 1) -> Floats:
    """What classifier j ranks items by, in the units of the file, (n,); NaN where missing.

    P(class `positive`) where the classifier gives probabilities, else its score, turned round where
    that is not the class that it is larger for.
    """
    if predictions.probabilities is not None and is_probability(predictions, j):
        return predictions.probabilities[:, j, positive]
    if predictions.scores is None:
        return np.full(predictions.n_items, np.nan)
    scores = predictions.scores[:, j]
    return scores if predictions.classes[positive] == predictions.positive else -scores


def margin(scores: Floats, *, probability: bool) -> Floats:
    """Scores on the whole real line: logits of probabilities, other scores as they are."""
    if not probability:
        return scores
    out: Floats = logit(np.clip(scores, CLIP, 1 - CLIP))
    return out
