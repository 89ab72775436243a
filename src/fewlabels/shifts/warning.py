"""The sentence in `estimate` where labeled items do not look like a random sample."""

from __future__ import annotations

import numpy as np

from fewlabels.models.label_shift import sides
from fewlabels.models.registry import METHODS
from fewlabels.predictions import Predictions
from fewlabels.shifts.analysis import worst
from fewlabels.shifts.sampling_test import FEWEST_LABELS, GLANCE, QUICK, sampling_test

ALPHA = 0.01
_WORTH_A_LOOK = 0.1
_SALT = 0x5A3B


def not_a_random_sample(predictions: Predictions, method: str) -> str | None:
    """What differs between labeled and unlabeled items, and what to do; None where nothing shows.

    A hundred permutations decide whether a thousand are worth their time: the level stays below
    .01. Nothing is said with fewer than 5 labels; where sampling weights differ, which may undo how
    items were chosen; and of active testing, which knows how they were. The items
    themselves are the seed, so that a warning does not come and go with the seed of estimates.
    """
    known, others = sides(predictions)
    if predictions.size_of(known) < FEWEST_LABELS or not others.any() or method == "active-testing":
        return None
    weight = predictions.weight[predictions.weight > 0]
    if (weight != weight[:1]).any():
        return None
    # Sums of keys wrap around and do not depend on the order of the items.
    rng = np.random.default_rng([_SALT, int(predictions.keys.sum())])
    if sampling_test(predictions, rng, GLANCE).p_value > _WORTH_A_LOOK:
        return None
    test = sampling_test(predictions, rng, QUICK)
    if test.p_value >= ALPHA:
        return None
    return (
        "shift: labeled items do not look like a random sample of all items (p = "
        f"{_p(test.p_value)}): {worst(test)}; {_consequence(method)}; shift='auto' (--shift auto) "
        "corrects by weights, `fewlabels shift` and docs/shift.md say more"
    )


def _consequence(method: str) -> str:
    known = METHODS.get(method)
    if known is not None and known.chosen_by_score.startswith("yes"):
        return f"{method} allows for items chosen by their scores, not for any other choice"
    return "estimates may be off by more than their intervals say"


def _p(value: float) -> str:
    return f"{value:.3f}".lstrip("0")
