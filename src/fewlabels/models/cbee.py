"""CBEE: domains whose classifiers err alike share their error rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fewlabels.kernels.vote_table import DOMAINS, Rules
from fewlabels.models.checks import check_choice
from fewlabels.models.coupled_votes import CoupledVoteModel
from fewlabels.models.method import Method
from fewlabels.models.vote_words import (
    ASSUMES,
    CONFUSION_ASSUMES,
    CONFUSION_HOW,
    COUPLED_DIAGNOSTICS,
    FAILS,
    SOURCE,
)

_SAMPLERS = ("partially collapsed", "uncollapsed", "collapsed then uncollapsed")


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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("sampler", self.sampler, _SAMPLERS)

    def rules(self) -> tuple[Rules, Rules]:
        """Sampler and whether alpha is learned."""
        learn = self.concentration == "learned"
        after = Rules(
            DOMAINS, self.flip, self.sampler == "partially collapsed", False, learn, False
        )
        if self.sampler == "collapsed then uncollapsed":
            return after._replace(collapsed=True, collapsed_labels=True), after
        return after, after


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
    counts_rows=True,
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
    counts_rows=True,
)
