"""Learned ensemble: a mixture of beliefs whose weights very many sets of classifiers taught."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

import numpy as np

from fewlabels.errors import UsageError
from fewlabels.models.base import FittedLabelModel, LabelModel, check_count
from fewlabels.models.belief_mixture import DIAGNOSTICS, Belief, IndexName, fit_beliefs
from fewlabels.models.method import Method
from fewlabels.predictions import Predictions
from fewlabels.wording import unknown

_FILE = "learned_prior.json"

_POOLS: tuple[IndexName, ...] = ("raw", "calibrated")

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

REFERENCE = 0.5
"""Prior weight of beliefs that rest on a reference, where there is one."""

STRETCH, _STRETCH_LABELS, _LEAST_LABELS = 0.05, 20, 5
"""By what share intervals are widened at 20 labels; less with more, as the square root. On 100 sets
of real tables, each judged without its fold, 90% intervals of accuracy, AUC, average precision and
ECE held 86 to 95% without it, at 20, 50 and 100 labels (docs/default.md)."""


@dataclass(frozen=True)
class LearnedEnsemble(LabelModel):
    """Every classifier by its own kind, under beliefs that other sets of classifiers taught.

    A probability counts as it is, a score by a rising map, a vote as P(class | vote). Beliefs
    differ in what they rest on (a pool of all classifiers, one of them alone, all but one, a latent
    class that explains scores or votes without any label, reference data), in how sharp they expect
    it to be, and in how much they let labels correct it for a class or for a classifier. Three
    quarters of the prior weight are shared as the metrics of many sets of classifiers, whose labels
    are all known, were predicted best from few labels (`benchmarks/ensemble_prior.py`); the rest is
    even over the kinds. The labels at hand weigh all of them by their evidence.

    Parameters
    ----------
    n_draws
        Parameter draws for values; intervals take twice as many.
    left_out
        A family of the sets that weights were learned from: the weights are then those learned
        without it, by which the method can be judged on that family.
    reference
        Labeled items of the same classifiers and classes from elsewhere, in the order of those at
        hand (`fewlabels.sources.reference_of`): what they teach is one more thing to rest on, that
        the labels at hand can overrule.
    """

    n_draws: int = 200
    left_out: str | None = None
    reference: Predictions | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_count("n_draws", self.n_draws)
        families = [name for name in _table()["weights"] if name]
        if self.left_out is not None and self.left_out not in families:
            raise UsageError(unknown("family", self.left_out, families))
        if self.reference is not None and not self.reference.n_labeled:
            raise UsageError("`reference` must hold labeled items; none of its items has a label")

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Find the mode and the evidence of each belief, and draw parameters."""
        beliefs = beliefs_of(self.left_out)
        return fit_beliefs(
            "learned-ensemble", beliefs, [b.weight for b in beliefs], self.n_draws, predictions,
            rng, stretch=_stretch,
            copies_agree=False,
            every_kind=True,
            reference=self.reference,
            assumption="what is usual among sets of classifiers with such agreement",
        )  # fmt: skip


def _stretch(n_labels: float) -> float:
    return 1 + STRETCH * float(np.sqrt(_STRETCH_LABELS / max(n_labels, _LEAST_LABELS)))


@cache
def beliefs_of(left_out: str | None = None) -> tuple[Belief, ...]:
    """Beliefs and the weights that all families taught, or all but one; a reference has half."""
    table = _table()
    learned = table["weights"][left_out or ""]
    shapes = [
        Belief(weight, *shape) for weight, shape in zip(learned, table["beliefs"], strict=True)
    ]
    kinds = [_kind(belief) for belief in shapes]
    even = 1 / (len(set(kinds)) - 1)
    usual = (1 - REFERENCE) * (1 - WIDE_WEIGHT)
    learned_beliefs = (
        belief._replace(
            weight=REFERENCE * belief.weight
            if kind == "reference"
            else usual * ((1 - EVEN) * belief.weight + EVEN * even / kinds.count(kind))
        )
        for belief, kind in zip(shapes, kinds, strict=True)
    )
    wide = (b._replace(weight=(1 - REFERENCE) * WIDE_WEIGHT * b.weight) for b in WIDE)
    return (*learned_beliefs, *wide)


def _kind(belief: Belief) -> str:
    """What a belief rests on; the two pools are one kind."""
    return "pool" if belief.pool in ("raw", "calibrated") else belief.pool


@cache
def _table() -> Mapping[str, Any]:
    text = files("fewlabels.models").joinpath(_FILE).read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


METHOD = Method(
    "learned-ensemble",
    LearnedEnsemble,
    "all classifiers by their own kind, under beliefs that the labels weigh",
    "Probabilities count as they are, scores by a rising map, votes by how often they are right. "
    "The answer may rest on all classifiers pooled, on one of them alone, on all but one, or on "
    "what their agreement says without any label; each as sharp as it claims, or sharper, or less. "
    "How credible each of these beliefs is was learned on hundreds of other sets of classifiers "
    "whose labels are all known; the labels at hand then weigh them. Every item gets a probability "
    "for each class, and every metric is computed from those.",
    (
        "labeled items are a random sample of all items",
        "items of equal scores have equal class probabilities, whether labeled or not",
        "the set of classifiers is of a kind with those that the prior was learned on, until "
        "labels say otherwise",
    ),
    (
        "all classifiers share the same mistakes and there are few labels: agreement then "
        "overstates accuracy",
        "labeled items were picked for being hard, or easy",
    ),
    "learned ensemble: fewlabels documentation, after Shanmugam et al. (2025)",
    diagnostics=DIAGNOSTICS,
    learns_from="everything",
    guarded=True,
    chosen_by_score="yes, where they were picked by the scores of the classifiers pooled: given "
    "these, only the label itself informs the coefficients",
)
