"""CBEE: domains whose classifiers err alike share their error rates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fewlabels.kernels.vote_table import DOMAINS, Rules
from fewlabels.models.checks import check_choice
from fewlabels.models.method import Method
from fewlabels.models.vote_heldout import SELECTIONS, Selection, chosen_strengths
from fewlabels.models.vote_model import Strength, VoteModel, check_strength
from fewlabels.models.vote_words import (
    ASSUMES,
    CONFUSION_ASSUMES,
    CONFUSION_HOW,
    COUPLED_DIAGNOSTICS,
    FAILS,
    SOURCE,
)
from fewlabels.predictions import Predictions

_SAMPLERS = ("partially collapsed", "uncollapsed", "collapsed then uncollapsed")


@dataclass(frozen=True)
class CBEE(VoteModel):
    """BEE whose domains are clustered by a Dirichlet process: e^d = phi_{z_d}, z ~ CRP(alpha).

    Domains in one cluster share the error rates of all their classifiers. Source: Platanios,
    Dubey, Mitchell (2016), section 4.2. Parameters beyond these are those of `BEE`.

    Parameters
    ----------
    concentration
        alpha: a number, "learned" (Gamma(1, 1) prior, Escobar and West 1995), or "held-out":
        chosen on a grid by held-out likelihood.
    selection
        For "held-out": "folds" (cross-validation) or "split" (one split, a tenth held out: the
        paper's, and noisy).
    sampler
        "partially collapsed": clusters with the rates integrated out, then rates, then labels;
        "uncollapsed": clusters under current rates (Neal 2000, algorithm 2); "collapsed then
        uncollapsed": burn-in with the rates integrated out of labels too, as in the paper.
    """

    concentration: Strength = 1.0
    selection: Selection = "folds"
    sampler: Literal["partially collapsed", "uncollapsed", "collapsed then uncollapsed"] = (
        "partially collapsed"
    )

    name = "cbee"
    one_rate = True
    coupling = DOMAINS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_strength("concentration", self.concentration)
        check_choice("selection", self.selection, SELECTIONS)
        check_choice("sampler", self.sampler, _SAMPLERS)

    @property
    def strengths(self) -> tuple[Strength, Strength]:
        """alpha; there is no gamma."""
        return self.concentration, 1.0

    def rules(self) -> tuple[Rules, Rules]:
        """Sampler and whether alpha is learned."""
        learn = self.concentration == "learned"
        after = Rules(
            DOMAINS, self.flip, self.sampler == "partially collapsed", False, learn, False
        )
        if self.sampler == "collapsed then uncollapsed":
            return after._replace(collapsed=True, collapsed_labels=True), after
        return after, after

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


@dataclass(frozen=True)
class ConfusionCBEE(CBEE):
    """CBEE with confusion matrices: domains in one cluster share those of all their classifiers.

    Parameters are those of `CBEE`. Source: Platanios, Dubey, Mitchell (2016), sections 4.2, 6.
    """

    name = "confusion-cbee"
    one_rate = False


METHOD = Method(
    "cbee",
    CBEE,
    "as bee; domains where the classifiers err alike share their error rates",
    "Every item has an unknown label, and every classifier votes for it except where it errs. "
    "Domains are clustered while labels and error rates are drawn: those in a cluster share the "
    "error rates of all classifiers, so that small domains learn from others.",
    (*ASSUMES, "some domains are alike in the error rates of all classifiers"),
    (*FAILS, "there is one domain: it is then bee"),
    SOURCE,
    diagnostics=COUPLED_DIAGNOSTICS,
    learns_from="hard predictions",
)

CONFUSION_METHOD = Method(
    "confusion-cbee",
    ConfusionCBEE,
    "as confusion-bee; domains where the classifiers err alike share confusion matrices",
    CONFUSION_HOW + " Domains are clustered meanwhile, and share matrices within a cluster.",
    (*CONFUSION_ASSUMES, "some domains are alike in the confusion matrices of all classifiers"),
    (*FAILS, "there is one domain: it is then confusion-bee"),
    SOURCE,
    diagnostics=COUPLED_DIAGNOSTICS,
    learns_from="hard predictions",
)
