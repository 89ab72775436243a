"""SSME-KDE-M: SSME-KDE of one classifier at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fewlabels.models.base import FittedLabelModel, LabelModel, with_probabilities
from fewlabels.models.method import Method
from fewlabels.models.per_model import fit_each
from fewlabels.models.ssme_kde import METHOD as JOINT
from fewlabels.models.ssme_kde import SSMEKDE
from fewlabels.predictions import Predictions


@dataclass(frozen=True)
class SSMEKDEMarginal(LabelModel):
    """One mixture of kernel densities per classifier, in K-1 dimensions each.

    Source: Shanmugam et al. (2025), SSME-KDE-M.

    Parameters
    ----------
    mixture
        Bandwidth, epochs and the other settings of every mixture.
    """

    mixture: SSMEKDE = field(default_factory=SSMEKDE)

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Fit a mixture to every classifier alone."""
        served, _ = with_probabilities(predictions, "ssme-kde-marginal")
        return fit_each(self.mixture, served, rng)


METHOD = Method(
    "ssme-kde-marginal",
    SSMEKDEMarginal,
    "SSME-KDE of one classifier at a time",
    "For each classifier alone, the density of its scores in each class is estimated by kernels; "
    "EM starts from what the classifier itself says and alternates between the items' class "
    "probabilities and these densities. Known labels stay.",
    (
        "labeled items are a random sample of all items",
        "items of near scores tend to share their class",
        "the classifier is roughly calibrated: EM starts from what it says",
    ),
    (
        "the classifier is over- or under-confident: nothing but the labels contradicts it",
        "several classifiers are at hand: what they say of each other is not used",
    ),
    "Shanmugam, Sadhuka, Raghavan, Guttag, Berger, Pierson (NeurIPS 2025), SSME-KDE-M",
    diagnostics=JOINT.diagnostics,
    exempt=JOINT.exempt,
)
