"""BEE: an error rate for every classifier and domain, with the labels, from votes alone."""

from __future__ import annotations

from dataclasses import dataclass

from fewlabels.kernels.vote_table import ALONE, Rules
from fewlabels.models.method import Method
from fewlabels.models.vote_model import VoteModel
from fewlabels.models.vote_words import (
    ASSUMES,
    CONFUSION_ASSUMES,
    CONFUSION_HOW,
    DIAGNOSTICS,
    FAILS,
    SOURCE,
)


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


METHOD = Method(
    "bee",
    BEE,
    "one error rate per classifier and domain, from votes alone, by Gibbs sampling",
    "Every item has an unknown label, and every classifier votes for it except where it errs. "
    "Labels, error rates and class shares are drawn in turns, from several chains; each domain by "
    "itself. Known labels stay. Probabilities are not used, only what is predicted.",
    ASSUMES,
    FAILS,
    SOURCE,
    diagnostics=DIAGNOSTICS,
    learns_from="hard predictions",
    counts_rows=True,
)

CONFUSION_METHOD = Method(
    "confusion-bee",
    ConfusionBEE,
    "confusion matrices of the classifiers from votes alone, by Gibbs sampling",
    CONFUSION_HOW + " Each domain is fitted by itself.",
    CONFUSION_ASSUMES,
    FAILS,
    SOURCE,
    diagnostics=DIAGNOSTICS,
    learns_from="hard predictions",
    counts_rows=True,
)
