"""Learned ensemble: a mixture of beliefs whose weights very many sets of classifiers taught."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from fewlabels.errors import UsageError
from fewlabels.models.agreement_ensemble import BELIEFS as ANCHORED
from fewlabels.models.base import FittedLabelModel, LabelModel, check_count
from fewlabels.models.belief_mixture import DIAGNOSTICS, Belief, fit_beliefs
from fewlabels.models.method import Method
from fewlabels.predictions import Predictions
from fewlabels.wording import unknown

_FILE = "learned_prior.json"

ANCHORED_WEIGHT = 0.75
"""Prior weight of the beliefs of `agreement-ensemble`: the sets that taught the others were made by
scikit-learn, and other data are not everything."""

STRETCH, _STRETCH_LABELS, _LEAST_LABELS = 0.2, 20, 5
"""By what share intervals are widened at 20 labels; less with more, as the square root. Beliefs are
about other sets, and a normal approximation is too narrow with few labels: on 33 other made sets,
each judged without its family, 90% intervals of 20 labels hold about 90% so."""


@dataclass(frozen=True)
class LearnedEnsemble(LabelModel):
    """The pooled classifiers under beliefs that other sets of classifiers made credible.

    Beliefs differ in which pool they take, in how sharp they expect it to be (as its probabilities
    say, as the classifiers' agreement says, or sharper), and in how much they let labels correct it
    for a class or for a classifier. Three quarters of the prior weight are with the sixteen beliefs
    of `agreement-ensemble`; the rest is shared as the metrics of many sets of classifiers, whose
    labels are all known, were predicted best from few labels (`benchmarks/ensemble_prior.py`). The
    labels at hand weigh all of them by their evidence.

    Parameters
    ----------
    n_draws
        Parameter draws for values; intervals take twice as many.
    left_out
        A family of sets (`fewlabels.bench.study.families`): the weights are then those learned
        without it, by which a study judges the method on that family.
    """

    n_draws: int = 200
    left_out: str | None = None

    def __post_init__(self) -> None:
        check_count("n_draws", self.n_draws)
        families = [name for name in _table()["weights"] if name]
        if self.left_out is not None and self.left_out not in families:
            raise UsageError(unknown("family", self.left_out, families))

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Find the mode and the evidence of each belief, and draw parameters."""
        beliefs = beliefs_of(self.left_out)
        return fit_beliefs(
            "learned-ensemble", beliefs, [b.weight for b in beliefs], self.n_draws, predictions,
            rng, stretch=_stretch,
            copies_agree=False,
            assumption="what is usual among sets of classifiers with such agreement",
        )  # fmt: skip


def _stretch(n_labels: float) -> float:
    return 1 + STRETCH * float(np.sqrt(_STRETCH_LABELS / max(n_labels, _LEAST_LABELS)))


@cache
def beliefs_of(left_out: str | None = None) -> tuple[Belief, ...]:
    """Beliefs and the weights that all families taught, or all but one."""
    table = _table()
    learned = zip(table["weights"][left_out or ""], table["beliefs"], strict=True)
    anchored = [b._replace(weight=ANCHORED_WEIGHT * b.weight) for b in ANCHORED]
    share = 1 - ANCHORED_WEIGHT
    return (*anchored, *(Belief(share * weight, *shape) for weight, shape in learned if weight > 0))


@cache
def _table() -> Mapping[str, Any]:
    text = files("fewlabels.models").joinpath(_FILE).read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


METHOD = Method(
    "learned-ensemble",
    LearnedEnsemble,
    "the pooled classifiers, under beliefs that very many other sets of classifiers taught",
    "The classifiers' probabilities are pooled. Several beliefs say how sharp that pool is (as its "
    "probabilities claim, as the classifiers' agreement suggests, sharper or less) and how far "
    "labels may correct it for a class or a classifier. How credible each belief is was learned on "
    "hundreds of other sets of classifiers whose labels are all known; the labels at hand then "
    "weigh them. Every item gets a probability for each class, and every metric is computed from "
    "those.",
    (
        "labeled items are a random sample of all items",
        "items of equal scores have equal class probabilities, whether labeled or not",
        "the set of classifiers is of a kind with those that the prior was learned on, until "
        "labels say otherwise",
    ),
    (
        "all classifiers share the same mistakes and there are few labels: agreement then "
        "overstates accuracy",
        "one classifier is far better than the rest and labels are fewer than about 20",
        "labeled items were picked for being hard, or easy",
    ),
    "learned ensemble: fewlabels documentation, after Shanmugam et al. (2025)",
    diagnostics=DIAGNOSTICS,
    chosen_by_score="yes, where they were picked by the scores of the classifiers pooled: given "
    "these, only the label itself informs the coefficients",
)
