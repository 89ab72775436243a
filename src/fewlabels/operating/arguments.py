"""Arguments that all questions about one classifier share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fewlabels.errors import UsageError
from fewlabels.evaluation.evaluator import INTERVAL_DRAWS, MOST_DRAWS
from fewlabels.models.base import refuse_multiplicity
from fewlabels.pipeline import check_settings, seed_of
from fewlabels.predictions import Predictions

Progress = Callable[[int, int], None]


def checked(
    predictions: Predictions, confidence_level: Any, estimand: Any, workers: Any, random_state: Any
) -> int:
    """The seed, where all of them are as they must be.

    Raises
    ------
    UsageError
        If one is not.
    """
    if confidence_level is None:
        raise UsageError("`confidence_level` must be between 0 and 1; got None")
    check_settings(confidence_level, estimand, workers)
    refuse_multiplicity(predictions, "this question")
    return seed_of(random_state)


def draws_for(level: float) -> int:
    """How many draws an interval takes: more for levels whose ends lie further out."""
    return min(max(INTERVAL_DRAWS, 50 * math.ceil(0.4 / (1 - level))), MOST_DRAWS)


def silent(done: int, total: int) -> None:
    """Show no progress."""
