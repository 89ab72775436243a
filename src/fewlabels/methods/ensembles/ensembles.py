"""The ensembles: tables of beliefs about classifiers, which the labels weigh.

One model (`belief_mixture`), three tables: the averaged classifier is nearly calibrated (tempered),
or as right as the classifiers agree (agreement), or what very many sets of classifiers taught
(learned).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from fewlabels.checks.arguments import whole
from fewlabels.errors import UsageError, unknown
from fewlabels.methods.base import FittedLabelModel, LabelModel
from fewlabels.methods.ensembles.belief_mixture import Belief, fit_beliefs
from fewlabels.methods.ensembles.pooled_index import PoolName
from fewlabels.methods.group_curves import with_group_curves
from fewlabels.predictions import Predictions

_POOLS: tuple[PoolName, ...] = ("raw", "calibrated")

# --- the averaged classifier is nearly calibrated -------------------------------------------


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
        whole("n_draws", self.n_draws)
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


# --- the classifiers are right together as often as they agree --------------------------------

_SLOPES = ((0.7, 1.0, 0.15, 0.2), (0.3, 1.2, 0.6, 0.5))  # weight, mean, sd, sd of the offsets
_DEVIATIONS = (  # weight, and sds of the gap, the deviations and the votes
    (0.40, 0.0, 0.0, 0.0),
    (0.25, 0.2, 0.2, 0.5),
    (0.20, 0.4, 0.4, 1.0),
    (0.15, 0.8, 1.0, 2.0),
)

AGREEMENT_BELIEFS = tuple(
    Belief(share * among / 2, pool, True, slope, slope_sd, offset_sd, gap, deviation, vote)
    for pool in _POOLS
    for share, slope, slope_sd, offset_sd in _SLOPES
    for among, gap, deviation, vote in _DEVIATIONS
)

AGREEMENT_INFLATION = 1.2
"""By what factor its intervals are widened: a normal approximation at the mode is too narrow with
few labels. `learned-ensemble` draws from the posterior itself and is not widened."""


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
        Parameter draws for values; intervals take twice as many, stretched by
        `AGREEMENT_INFLATION`.
    """

    n_draws: int = 200

    def __post_init__(self) -> None:
        whole("n_draws", self.n_draws)

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Find the mode and the evidence of each belief, and draw parameters."""
        return fit_beliefs(
            "agreement-ensemble", AGREEMENT_BELIEFS, [b.weight for b in AGREEMENT_BELIEFS],
            self.n_draws, predictions, rng, inflation=AGREEMENT_INFLATION,
            assumption="the belief that the classifiers are right together as often as they agree",
        )  # fmt: skip


# --- what other sets of classifiers taught --------------------------------------------------

EVEN = 0.25
"""Prior weight that is spread evenly over the kinds of beliefs, whatever was learned: the sets of
classifiers that taught the rest are not everything."""

WIDE_WEIGHT = 0.1
"""Prior weight of beliefs in pools that are far off: much too timid or sure, or shifted for a
class, as where classes have other shares than in training. Sets that teach are seldom so."""

WIDE = tuple(
    Belief(1 / 18, pool, False, slope, slope_sd, 2.5, deviation_sd=deviation, vote_sd=vote)
    for pool, (slope, slope_sd), (deviation, vote) in product(
        _POOLS, ((1.0, 0.4), (2.5, 1.0), (5.0, 2.0)), ((0.0, 0.0), (0.3, 0.8), (1.0, 2.0))
    )
)

OPEN_WEIGHT = 0.3
"""Prior weight, of what is not wide, of the beliefs below, which no sets of classifiers taught."""

OPEN = (
    # The classifier that is judged differs from the pool of all: what the labels say of the items
    # on which it disagrees moves it alone, and by no less where the others are many.
    *(
        Belief(0.7 / 4, "beside", True, 1.0, slope_sd, 0.4, deviation_sd=deviation, vote_sd=1.5)
        for slope_sd, deviation in product((0.2, 0.5), (0.7, 0.0))
    ),
    # Ranks are pooled, for probabilities that are calibrated wildly.
    *(
        Belief(0.3 / 3, "ranks", False, slope, slope_sd, offset_sd)
        for slope, slope_sd, offset_sd in ((1.2, 0.4, 2.0), (2.5, 0.8, 3.0), (5.0, 2.0, 3.0))
    ),
)

GRADED_WEIGHT = 3.0
"""Prior weight of the beliefs below, where all vote and classes have an order, beside the .5 of
those above that need no reference. Where the order means nothing, labels soon say so."""

GRADED = tuple(
    # Errors have in common how far they go. Slopes are per sd of the grades: 1, hardly related, to
    # 10, exact; the judge may be lenient, and right or far off more often than the slope says.
    Belief(
        GRADED_WEIGHT / 12, "near", False, slope, slope, offset_sd,
        vote_sd=vote, grade_sd=slope, distance_sd=slope,
    )
    for slope, vote, offset_sd in product((1.0, 3.0, 10.0), (0.0, 3.0), (0.3, 1.0))
)  # fmt: skip

REFERENCE = 0.5
"""Prior weight of beliefs that rest on a reference, where there is one."""


@dataclass(frozen=True)
class LearnedEnsemble(LabelModel):
    """Every classifier by its own kind, under beliefs that other sets of classifiers taught.

    A probability counts as it is, a score by a rising map, a vote as P(class | vote). Beliefs
    differ in what they rest on (a pool of all classifiers, one of them alone, all but one, a latent
    class that explains scores or votes without any label, reference data), in how sharp they expect
    it to be, and in how much they let labels correct it for a class or for a classifier. Three
    quarters of the prior weight are shared as the metrics of many sets of classifiers, whose labels
    are all known, were predicted best from few labels (`benchmarks/ensemble_prior.py`); the rest is
    even over the kinds. Of classes that have an order further beliefs say how far off errors are,
    which labels of all grades teach together (`GRADED`). The labels at hand weigh all of them by
    their evidence.

    Parameters
    ----------
    n_draws
        Parameter draws for values; intervals take twice as many.
    left_out
        A family of the sets that weights were learned from: the weights are then those learned
        without it, by which the method can be judged on that family.
    reference
        Labeled items of the same classifiers and classes from elsewhere, in the order of those at
        hand (`fewlabels.data.inputs.reference_of`): what they teach is one more thing to rest on,
        that the labels at hand can overrule.
    """

    n_draws: int = 200
    left_out: str | None = None
    reference: Predictions | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        whole("n_draws", self.n_draws)
        families = [name for name in _table()["weights"] if name]
        if self.left_out is not None and self.left_out not in families:
            raise UsageError(unknown("family", self.left_out, families))
        if self.reference is not None and not self.reference.n_labeled:
            raise UsageError("`reference` must hold labeled items; none of its items has a label")

    @property
    def grouped(self) -> bool:
        """Yes: `methods.group_curves`."""
        return True

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Find the mode and the evidence of each belief, draw parameters, and effects of groups."""
        beliefs = (*beliefs_of(self.left_out), *GRADED)
        fitted = fit_beliefs(
            "learned-ensemble", beliefs, [b.weight for b in beliefs], self.n_draws, predictions,
            rng,
            copies_agree=False,
            every_kind=True,
            reference=self.reference,
            assumption="what is usual among sets of classifiers with such agreement",
        )  # fmt: skip
        return with_group_curves(fitted, predictions, rng)


@cache
def beliefs_of(left_out: str | None = None) -> tuple[Belief, ...]:
    """Beliefs and the weights that all families taught, or all but one; a reference has half."""
    table = _table()
    learned = table["weights"][left_out or ""]
    shapes = [
        Belief(weight, *shape) for weight, shape in zip(learned, table["beliefs"], strict=True)
    ]
    # What a belief rests on; the two pools are one kind.
    kinds = ["pool" if b.pool in _POOLS else b.pool for b in shapes]
    even = 1 / (len(set(kinds)) - 1)
    usual = (1 - REFERENCE) * (1 - WIDE_WEIGHT)
    learned_beliefs = (
        belief._replace(
            weight=REFERENCE * belief.weight
            if kind == "reference"
            else usual
            * (1 - OPEN_WEIGHT)
            * ((1 - EVEN) * belief.weight + EVEN * even / kinds.count(kind))
        )
        for belief, kind in zip(shapes, kinds, strict=True)
    )
    opened = (b._replace(weight=usual * OPEN_WEIGHT * b.weight) for b in OPEN)
    wide = (b._replace(weight=(1 - REFERENCE) * WIDE_WEIGHT * b.weight) for b in WIDE)
    return (*learned_beliefs, *opened, *wide)


@cache
def _table() -> Mapping[str, Any]:
    file = files("fewlabels.methods.ensembles").joinpath("learned_prior.json")
    table: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return table
