"""Active surrogate estimators: ask for the labels that teach a surrogate most, and believe it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from fewlabels.checks.arguments import whole
from fewlabels.errors import UsageError
from fewlabels.kernels.arrays import Floats, Ints, UInts
from fewlabels.methods.base import FittedLabelModel, LabelModel, places_of
from fewlabels.methods.baselines.active_testing import Oracle, answers, pick
from fewlabels.methods.ensembles.ensembles import TemperedEnsemble
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

_DRAWS = 50
"""Parameter draws behind the disagreement of an item."""


@dataclass(frozen=True)
class ActiveSurrogate(LabelModel):
    """A surrogate P(label | scores) judges the classifiers; its labels are asked for in rounds.

    In each round the surrogate is fitted to the labels so far, and the next are asked for where
    its parameter draws q_d disagree on what a classifier would lose (XWED): with the loss 1[y != h]
    of a classifier that predicts h,

        sum_{y != h} ( mean_d q_dy log q_dy - q_y log q_y ),   q = mean_d q_d,

    averaged over the classifiers. The source asks for the largest one, one at a time; here a
    round's items are drawn in proportion, as the largest of a round would be neighbours. The
    estimate is the surrogate's expected metric over all items, so that it has no weights to blow
    up, and is as wrong as the surrogate.

    Without an oracle it is the surrogate, and the items to label next are among the diagnostics.

    Source: Kossen, Farquhar, Gal, Rainforth (2022), Active Surrogate Estimators, equations 5 and 9.

    Parameters
    ----------
    oracle
        Called once a round with the indices of the picked items (m,); gives their labels.
    budget
        How many labels to ask for; 20 unless given, at most the items without a label.
    rounds
        How many times the surrogate is fitted anew before it is believed.
    surrogate
        Label model that learns from the labels and draws its parameters.
    """

    oracle: Oracle | None = None
    budget: int | None = None
    rounds: int = 5
    surrogate: LabelModel = field(default_factory=TemperedEnsemble)

    def __post_init__(self) -> None:
        whole("rounds", self.rounds)
        if self.budget is not None:
            whole("budget", self.budget)
        if self.oracle is not None and not callable(self.oracle):
            raise UsageError(f"`oracle` must be a function of item indices; got {self.oracle!r}")

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Ask the oracle round by round, and fit the surrogate to what it said.

        Raises
        ------
        InputError
            If an answer of the oracle is not one class index per item.
        """
        seed, salt = int(rng.integers(2**63)), int(rng.integers(2**63))

        def fitted_to(labels: Ints) -> tuple[Predictions, FittedLabelModel]:
            known = predictions.with_labels(labels)
            return known, self.surrogate.fit(known, np.random.default_rng(seed))

        labels = predictions.labels.copy()
        pool = np.flatnonzero(labels < 0)
        budget = min(20 if self.budget is None else self.budget, len(pool))
        sizes = [len(part) for part in np.array_split(np.arange(budget), self.rounds)]
        asked = np.zeros(0, dtype=np.int64)
        known, fitted = fitted_to(labels)
        for number, size in enumerate(sizes if self.oracle is not None else [budget]):
            left = np.setdiff1d(pool, asked)
            if not size:
                continue
            score = _disagreement(fitted.posterior(known), known, left)
            places, _ = pick(predictions.keys[left], score, size, salt ^ number)
            asked = np.concatenate([asked, left[places]])
            if self.oracle is not None:
                labels[left[places]] = answers(self.oracle, left[places], predictions.n_classes)
                known, fitted = fitted_to(labels)
        told = None if self.oracle is None else labels[asked]
        return _FittedSurrogate(fitted, predictions.keys[asked], told)


def _disagreement(posterior: LabelPosterior, predictions: Predictions, rows: Ints) -> Floats:
    """What parameter draws leave open of the losses, averaged over the classifiers, (m,)."""
    _, q = next(iter(posterior.soft_draws(_DRAWS, chunk=_DRAWS)))
    q = q[:, rows]
    mean = q.mean(axis=0)
    # x log x is convex, so that no gap is negative but by rounding.
    gap = np.maximum(_entropic(q).mean(axis=0) - _entropic(mean), 0.0)
    hard = predictions.hard[rows]
    there = hard >= 0
    own = np.take_along_axis(gap, np.maximum(hard, 0), axis=1)
    loss = np.where(there, gap.sum(axis=1, keepdims=True) - own, 0.0).sum(axis=1)
    out: Floats = loss / np.maximum(there.sum(axis=1), 1) + 1e-12
    return out


def _entropic(q: Floats) -> Floats:
    out: Floats = q * np.log(np.maximum(q, np.finfo(float).tiny))
    return out


@dataclass(frozen=True, eq=False)
class _FittedSurrogate(FittedLabelModel):
    fitted: FittedLabelModel
    asked: UInts
    labels: Ints | None

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        place = places_of(predictions.keys, self.asked)
        found = place >= 0
        items = np.flatnonzero(found)[np.argsort(place[found], kind="stable")].tolist()
        if self.labels is None:
            posterior = self.fitted.posterior(predictions)
            said = (
                "active-surrogate has no oracle to ask (give one in Python: "
                "fl.models.ActiveSurrogate(oracle=...)): it is its surrogate; the items to label "
                "next are in the diagnostics"
            )
            facts = {"label_next": items}
        else:
            labels = predictions.labels.copy()
            labels[found] = self.labels[place[found]]
            posterior = self.fitted.posterior(predictions.with_labels(labels))
            said = f"the oracle was asked for {len(self.asked)} labels"
            facts = {"asked": items}
        return replace(
            posterior,
            warnings=(*posterior.warnings, said),
            diagnostics={**posterior.diagnostics, **facts},
        )
