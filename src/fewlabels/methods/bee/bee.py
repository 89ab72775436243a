"""BEE and what couples its rates: error rates and labels from votes alone, by Gibbs sampling.

Who may share rates: nobody (BEE), domains with each other (CBEE), classifiers within a domain
(CBCC) or over all of them (HCBEE). What is shared: one error rate per classifier, or its confusion
matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from fewlabels.methods.base import check_choice
from fewlabels.methods.bee.heldout import SELECTIONS, Selection, chosen_strengths
from fewlabels.methods.bee.table import ALONE, DOMAINS, FRANCHISE, TABLES, Rules
from fewlabels.methods.bee.vote_model import Strength, VoteModel, check_strength
from fewlabels.predictions import Predictions


@dataclass(frozen=True)
class BEE(VoteModel):
    """p ~ Beta, label ~ Bernoulli(p), error e_j ~ Beta(1, 10), vote_j = label with P 1 - e_j.

    Every domain by itself, by conjugate Gibbs sampling. More than two classes: one error rate per
    classifier, a wrong vote is any other class with equal probability. Source: Platanios, Dubey,
    Mitchell (2016), section 4.1, equations 3 to 5.

    Parameters
    ----------
    class_prior
        Count of every class in the Dirichlet (two classes: Beta) prior of the class shares.
    error_prior
        Counts (alpha_e, beta_e) of errors and hits in the Beta prior of an error rate. The paper's
        (1, 10) expects classifiers to be good; it weighs as much as eleven labels.
    burn_in, sweeps, thin, chains
        Sweeps of each chain before the first draw, sweeps after it, sweeps per kept draw, and
        chains. The paper: one chain, 4000, 2000, 10.
    labeled_at_random
        Whether known labels are of a random sample of the items; else they are left out of the
        class shares.
    flip
        Whether classes may trade names where that is as likely, which takes a chain out of the
        mirror image of the answer.
    constraints
        Logic between the labels of one item in several domains.
    """

    name = "bee"
    one_rate = True

    def rules(self) -> tuple[Rules, Rules]:
        """Nobody shares rates."""
        rules = Rules(ALONE, self.flip, True, False, False, False)
        return rules, rules


@dataclass(frozen=True)
class ConfusionBEE(BEE):
    """BEE with a confusion matrix per classifier: row k ~ Dirichlet, its error rate Beta(1, 10).

    Every class is missed at its own rate, and mistaken for each other class at its own rate.
    Parameters are those of `BEE`. Source: Platanios, Dubey, Mitchell (2016), section 6 (future
    work); Kim, Ghahramani (2012).
    """

    name = "confusion-bee"
    one_rate = False


@dataclass(frozen=True)
class CoupledVoteModel(VoteModel):
    """A model of votes with a concentration alpha; see `CBEE` for the parameters."""

    concentration: Strength = 1.0
    selection: Selection = "folds"
    sampler: str = "collapsed"

    samplers: ClassVar[tuple[str, ...]] = ("collapsed", "uncollapsed")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_strength("concentration", self.concentration)
        check_choice("selection", self.selection, SELECTIONS)
        check_choice("sampler", self.sampler, self.samplers)

    @property
    def strengths(self) -> tuple[Strength, Strength]:
        """alpha; there is no gamma."""
        return self.concentration, 1.0

    def with_strengths(self, predictions: Predictions, rng: np.random.Generator) -> VoteModel:
        """Choose alpha, gamma or both by held-out likelihood where that is asked for."""
        names = ("concentration", "top_concentration")
        open_ = [n for n, s in zip(names, self.strengths, strict=True) if s == "held-out"]
        if not open_:
            return self

        def made(alpha: float, gamma: float) -> VoteModel:
            pair: dict[str, Any] = dict(zip(names, (alpha, gamma), strict=True))
            return replace(self, **{name: pair[name] for name in open_})

        return chosen_strengths(made, self.selection, predictions, rng, both=len(open_) == 2)

    def rules(self) -> tuple[Rules, Rules]:
        """Sampler and which concentrations are learned."""
        alpha, gamma = (s == "learned" for s in self.strengths)
        collapsed = self.sampler in ("collapsed", "partially collapsed")
        rules = Rules(self.coupling, self.flip, collapsed, False, alpha, gamma)
        return rules, rules


@dataclass(frozen=True)
class CBEE(CoupledVoteModel):
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

    sampler: Literal["partially collapsed", "uncollapsed", "collapsed then uncollapsed"] = (
        "partially collapsed"
    )

    name = "cbee"
    one_rate = True
    coupling = DOMAINS
    samplers = ("partially collapsed", "uncollapsed", "collapsed then uncollapsed")

    def rules(self) -> tuple[Rules, Rules]:
        """Burn-in may integrate the rates out of the labels too."""
        rules, after = super().rules()
        if self.sampler == "collapsed then uncollapsed":
            rules = after._replace(collapsed=True, collapsed_labels=True)
        return rules, after


@dataclass(frozen=True)
class ConfusionCBEE(CBEE):
    """CBEE with confusion matrices: domains in one cluster share those of all their classifiers.

    Parameters are those of `CBEE`. Source: Platanios, Dubey, Mitchell (2016), sections 4.2, 6.
    """

    name = "confusion-cbee"
    one_rate = False


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


@dataclass(frozen=True)
class ConfusionHCBEE(HCBEE):
    """HCBEE with confusion matrices as dishes.

    Parameters are those of `HCBEE`. Source: Platanios, Dubey, Mitchell (2016), sections 4.3, 6.
    """

    name = "confusion-hcbee"
    one_rate = False
