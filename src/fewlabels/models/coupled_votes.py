"""What the coupled models of votes share: how strongly they couple, and how that is found."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fewlabels.models.checks import check_choice
from fewlabels.models.vote_heldout import SELECTIONS, Selection, chosen_strengths
from fewlabels.models.vote_model import Strength, VoteModel, check_strength
from fewlabels.predictions import Predictions


@dataclass(frozen=True)
class CoupledVoteModel(VoteModel):
    """A model of votes with a concentration alpha; see `CBEE` for the parameters."""

    concentration: Strength = 1.0
    selection: Selection = "folds"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_strength("concentration", self.concentration)
        check_choice("selection", self.selection, SELECTIONS)

    @property
    def strengths(self) -> tuple[Strength, Strength]:
        """alpha; there is no gamma."""
        return self.concentration, 1.0

    def with_strengths(self, predictions: Predictions, rng: np.random.Generator) -> VoteModel:
        """Choose alpha by held-out likelihood where that is asked for."""
        if self.concentration != "held-out":
            return self
        return chosen_strengths(
            lambda alpha, gamma: replace(self, concentration=alpha),
            self.selection,
            predictions,
            rng,
        )
