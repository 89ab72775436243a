"""Bayesian tempered ensemble: the averaged classifier, recalibrated by a few labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewlabels.errors import UsageError
from fewlabels.models.base import FittedLabelModel, LabelModel, check_count
from fewlabels.models.belief_mixture import Belief, fit_beliefs
from fewlabels.models.method import Method
from fewlabels.predictions import Predictions


class Component(NamedTuple):
    """One prior: its weight, sd of the offsets, mean and sd of the slope, sd of the deviations."""

    weight: float
    sa: float
    mb: float
    sb: float
    sw: float


INTERVAL_WEIGHTS = (0.30, 0.20, 0.15, 0.20, 0.15)
"""Weights of the same components for intervals: less belief that the average is calibrated."""

PRIORS = (
    Component(0.70, 0.20, 1.00, 0.18, 0.00),
    Component(0.12, 0.25, 1.00, 0.25, 0.25),
    Component(0.06, 0.40, 0.65, 0.20, 0.40),
    Component(0.06, 0.40, 1.30, 0.40, 0.60),
    Component(0.06, 0.50, 2.00, 0.60, 0.80),
)


@dataclass(frozen=True)
class TemperedEnsemble(LabelModel):
    """P(y=k|s) = softmax_k(a_k + b f_k + sum_j w_j d_jk), with f between two pools of classifiers.

    f is the mean of the linear pool and the (rescaled) log pool of the classifiers, d_j how
    classifier j deviates from them; a, b and w are learned from the labels under a mixture of
    priors, most of whose weight believes the averaged classifier. Parameter uncertainty is that
    of Gaussian (Laplace) approximations, weighted by evidence.

    Parameters
    ----------
    priors
        Mixture components of the prior.
    interval_weights
        Their weights for intervals, flatter than for values: on most sets of classifiers the
        averaged one is less calibrated than the prior believes, and intervals must allow for it.
    n_draws
        Parameter draws for values; intervals take twice as many.
    """

    priors: Sequence[Component] = PRIORS
    interval_weights: Sequence[float] = INTERVAL_WEIGHTS
    n_draws: int = 200

    def __post_init__(self) -> None:
        check_count("n_draws", self.n_draws)
        if len(self.interval_weights) != len(self.priors):
            raise UsageError(
                f"`interval_weights` must have one weight per prior; got "
                f"{len(self.interval_weights)} for {len(self.priors)}"
            )

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Find the mode and the evidence of each component, and draw parameters."""
        beliefs = [
            Belief(c.weight, "raw", False, c.mb, c.sb, c.sa, deviation_sd=c.sw) for c in self.priors
        ]
        return fit_beliefs(
            "tempered-ensemble", beliefs, self.interval_weights, self.n_draws, predictions, rng,
            assumption="the prior belief that the averaged classifier is close to calibrated",
        )  # fmt: skip


METHOD = Method(
    "tempered-ensemble",
    TemperedEnsemble,
    "the averaged classifier, recalibrated by the labels under a sceptical prior",
    "The classifiers' probabilities are averaged. A few coefficients (how much to trust the "
    "average, how much each classifier's deviation from it) are learned from the labels, "
    "starting from the belief that the average is nearly calibrated. Every item then gets a "
    "probability for each class, and every metric is computed from those.",
    (
        "labeled items are a random sample of all items",
        "items of equal scores have equal class probabilities, whether labeled or not",
        "the averaged classifier is roughly calibrated, until labels say otherwise",
    ),
    (
        "all classifiers share the same mistakes and there are few labels",
        "the classifiers together are far from calibrated and labels are fewer than about 20",
        "labeled items were picked for being hard, or easy",
    ),
    "Bayesian tempered ensemble: fewlabels documentation, after Shanmugam et al. (2025)",
    diagnostics={
        "slope": "whether the averaged classifier is sharpened (above 1) or softened (below 1)",
        "slope_sd": "how uncertain that slope is",
        "log_pool_scale": "by how much the mean of the log probabilities is scaled to be as "
        "confident as the mean of the probabilities",
        "component_weights": "how far the labels favour each of the five priors, from the most "
        "trusting to the least",
        "parameter_draws": "how many draws of the coefficients the estimates average over",
    },
    chosen_by_score="yes, where they were picked by the scores of the classifiers pooled: given "
    "these, only the label itself informs the coefficients",
)
