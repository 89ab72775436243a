"""HCBEE: classifiers that err alike, within domains and across them, share their error rates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fewlabels.kernels.vote_table import FRANCHISE, TABLES, Rules
from fewlabels.models.checks import check_choice
from fewlabels.models.coupled_votes import CoupledVoteModel
from fewlabels.models.method import Method
from fewlabels.models.vote_heldout import chosen_strengths
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


@dataclass(frozen=True)
class CBCC(CoupledVoteModel):
    """BEE whose classifiers are clustered within every domain by itself, by CRP(alpha).

    Clustered Bayesian classifier combination (Moreno, Teh, Perez-Cruz, Artes-Rodriguez 2015) with
    one error rate per cluster, as Platanios, Dubey, Mitchell (2016) adapt it. Parameters beyond
    these are those of `BEE`.

    Parameters
    ----------
    concentration, selection
        As in `CBEE`.
    sampler
        "collapsed": clusters with the rates integrated out; "uncollapsed": under current rates.
    """

    sampler: Literal["collapsed", "uncollapsed"] = "collapsed"

    name = "cbcc"
    one_rate = True
    coupling = TABLES

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("sampler", self.sampler, ("collapsed", "uncollapsed"))

    def rules(self) -> tuple[Rules, Rules]:
        """Sampler and which concentrations are learned."""
        alpha, gamma = (s == "learned" for s in self.strengths)
        rules = Rules(self.coupling, self.flip, self.sampler == "collapsed", False, alpha, gamma)
        return rules, rules


@dataclass(frozen=True)
class HCBEE(CBCC):
    """BEE with a hierarchical Dirichlet process over error rates (Chinese restaurant franchise).

    In every domain classifiers share tables, CRP(alpha); tables of all domains share dishes,
    CRP(gamma): error rates. Source: Platanios, Dubey, Mitchell (2016), section 4.3 and figure 3;
    Teh, Jordan, Beal, Blei (2006). Parameters beyond these are those of `CBCC`.

    Parameters
    ----------
    top_concentration
        gamma: a number, "learned" or "held-out", as `concentration` is.
    """

    top_concentration: Strength = 1.0

    name = "hcbee"
    coupling = FRANCHISE

    def __post_init__(self) -> None:
        super().__post_init__()
        check_strength("top_concentration", self.top_concentration)

    @property
    def strengths(self) -> tuple[Strength, Strength]:
        """Both: alpha and gamma."""
        return self.concentration, self.top_concentration

    def with_strengths(self, predictions: Predictions, rng: np.random.Generator) -> VoteModel:
        """Choose alpha, gamma or both by held-out likelihood where that is asked for."""
        open_ = [s == "held-out" for s in self.strengths]
        if not any(open_):
            return self

        def made(alpha: float, gamma: float) -> VoteModel:
            return replace(
                self,
                concentration=alpha if open_[0] else self.concentration,
                top_concentration=gamma if open_[1] else self.top_concentration,
            )

        return chosen_strengths(made, self.selection, predictions, rng, both=all(open_))


@dataclass(frozen=True)
class ConfusionHCBEE(HCBEE):
    """HCBEE with confusion matrices as dishes.

    Parameters are those of `HCBEE`. Source: Platanios, Dubey, Mitchell (2016), sections 4.3, 6.
    """

    name = "confusion-hcbee"
    one_rate = False


METHOD = Method(
    "hcbee",
    HCBEE,
    "as bee; classifiers that err alike, in any domain, share their error rates",
    "Every item has an unknown label, and every classifier votes for it except where it errs. "
    "Error rates are clustered while they and the labels are drawn: classifiers of one domain "
    "share tables, and tables of all domains share error rates.",
    (*ASSUMES, "some classifiers are alike, in one domain or in several"),
    (*FAILS, "error rates are all different and items few: it then merges what is not alike"),
    SOURCE,
    diagnostics=COUPLED_DIAGNOSTICS,
    learns_from="hard predictions",
    counts_rows=True,
)

CONFUSION_METHOD = Method(
    "confusion-hcbee",
    ConfusionHCBEE,
    "as confusion-bee; classifiers that err alike, in any domain, share confusion matrices",
    CONFUSION_HOW + " Matrices are clustered meanwhile, within domains and across them.",
    (*CONFUSION_ASSUMES, "some classifiers are alike, in one domain or in several"),
    (*FAILS, "matrices are all different and items few: it then merges what is not alike"),
    SOURCE,
    diagnostics=COUPLED_DIAGNOSTICS,
    learns_from="hard predictions",
    counts_rows=True,
)

CLUSTERED_METHOD = Method(
    "cbcc",
    CBCC,
    "as bee; classifiers that err alike within a domain share their error rates",
    "Every item has an unknown label, and every classifier votes for it except where it errs. "
    "Classifiers of a domain are clustered while labels and error rates are drawn, and share an "
    "error rate within a cluster; each domain by itself.",
    (*ASSUMES, "some classifiers of a domain are alike"),
    (*FAILS, "error rates are all different and items few: it then merges what is not alike"),
    "Moreno et al. (2015), as in " + SOURCE,
    diagnostics=COUPLED_DIAGNOSTICS,
    learns_from="hard predictions",
    counts_rows=True,
)
