"""Agreement-anchored ensemble: how often classifiers agree says how far to trust their pool."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewlabels.models.base import FittedLabelModel, LabelModel, check_count
from fewlabels.models.belief_mixture import DIAGNOSTICS, Belief, fit_beliefs
from fewlabels.models.method import Method
from fewlabels.models.pooled_index import PoolName
from fewlabels.predictions import Predictions

_POOLS: tuple[PoolName, ...] = ("raw", "calibrated")
_SLOPES = ((0.7, 1.0, 0.15, 0.2), (0.3, 1.2, 0.6, 0.5))  # weight, mean, sd, sd of the offsets
_DEVIATIONS = (  # weight, and sds of the gap, the deviations and the votes
    (0.40, 0.0, 0.0, 0.0),
    (0.25, 0.2, 0.2, 0.5),
    (0.20, 0.4, 0.4, 1.0),
    (0.15, 0.8, 1.0, 2.0),
)

BELIEFS = tuple(
    Belief(share * among / 2, pool, True, slope, slope_sd, offset_sd, gap, deviation, vote)
    for pool in _POOLS
    for share, slope, slope_sd, offset_sd in _SLOPES
    for among, gap, deviation, vote in _DEVIATIONS
)

STRETCH = 1.2


@dataclass(frozen=True)
class AgreementEnsemble(LabelModel):
    """The pooled classifiers, sharpened as their agreement suggests, and corrected by labels.

    Classifiers that err independently agree as often as their pool is right, so the slope at
    which the pool gives their votes the probability of agreement is where the prior of the slope
    stands. Deviations and votes of each classifier correct the pool for it. Sixteen beliefs (two
    pools, two slopes, four sizes of corrections) are weighed by the labels.

    Parameters
    ----------
    n_draws
        Parameter draws for values; intervals take twice as many, stretched by `STRETCH`.
    """

    n_draws: int = 200

    def __post_init__(self) -> None:
        check_count("n_draws", self.n_draws)

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Find the mode and the evidence of each belief, and draw parameters."""
        return fit_beliefs(
            "agreement-ensemble", BELIEFS, [b.weight for b in BELIEFS], self.n_draws,
            predictions, rng, stretch=lambda n_labels: STRETCH,
            assumption="the belief that the classifiers are right together as often as they agree",
        )  # fmt: skip


METHOD = Method(
    "agreement-ensemble",
    AgreementEnsemble,
    "the pooled classifiers, as sharp as their agreement suggests, corrected by the labels",
    "The classifiers' probabilities are pooled, and the pool is made as confident as the "
    "classifiers agree with each other. Labels then correct how sharp it is, how much each "
    "classifier's deviation from it and each one's vote count. Every item gets a probability for "
    "each class, and every metric is computed from those.",
    (
        "labeled items are a random sample of all items",
        "items of equal scores have equal class probabilities, whether labeled or not",
        "classifiers are right together about as often as they agree, until labels say otherwise",
    ),
    (
        "all classifiers share the same mistakes, or some are copies of others, and there are few "
        "labels: agreement then overstates accuracy",
        "one classifier is far better than the rest and labels are fewer than about 20",
        "labeled items were picked for being hard, or easy",
    ),
    "agreement-anchored tempered ensemble: fewlabels documentation, after Shanmugam et al. (2025)",
    diagnostics=DIAGNOSTICS,
    chosen_by_score="yes, where they were picked by the scores of the classifiers pooled: given "
    "these, only the label itself informs the coefficients",
)
