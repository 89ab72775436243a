"""One row that gives all that the columns can give: what the data allow, before any is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fewlabels.data.roles import Roles
from fewlabels.predictions import Predictions


def example_of(roles: Roles, classes: Sequence[Any]) -> Predictions:
    """One labeled row of the classifiers that there are columns of."""
    m, k = len(roles.models), len(classes)
    p = np.full((1, m, k), np.nan)
    votes, scores = np.full((1, m), -1), np.full((1, m), np.nan)
    for j, model in enumerate(roles.models):
        if model in roles.probabilities or model in roles.mapped or model in roles.confidence:
            p[0, j] = 1 / k
        if model in roles.votes:
            votes[0, j] = 0
        if model in roles.scores:
            scores[0, j] = 0.0
    return Predictions(
        p if roles.probabilities or roles.mapped or roles.confidence else None,
        [-1 if roles.label is None else 0],
        votes=votes if roles.votes else None,
        scores=scores if roles.scores else None,
        histogram=np.ones((1, k)) if roles.histogram else None,
        models=roles.models,
        classes=classes,
        positive=classes[1] if k == 2 else None,
    )
