"""Methods that ask for labels of their own choice: active testing (LURE), and its surrogate.

Both ask where they expect to learn most of the classifiers' mistakes. Active testing then undoes
the bias of its choice by weights; the active surrogate takes what a model learned for true.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from fewlabels.checks.arguments import whole
from fewlabels.errors import InputError, Status, UsageError
from fewlabels.kernels.arrays import Bools, Floats, Ints, UInts
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.counter_based import uniforms
from fewlabels.kernels.importance import lure_weights
from fewlabels.kernels.interval_draws import pseudo_observations
from fewlabels.methods.base import (
    FittedLabelModel,
    LabelModel,
    places_of,
    with_evidence,
    with_probabilities,
)
from fewlabels.methods.baselines.plain import Ensemble
from fewlabels.methods.ensembles.ensembles import TemperedEnsemble
from fewlabels.posterior import Fixed, LabelPosterior, Means
from fewlabels.predictions import Predictions

_ORDER_SALT, _ROWS_SALT = 0xAC71, 0xAC72
_BLOCK = 2**22

Oracle = Callable[[Ints], Any]
"""Given indices of items (m,), their labels: class indices (m,)."""


@dataclass(frozen=True)
class _Asking(LabelModel):
    """A method that asks an oracle for `budget` labels, if there is one."""

    oracle: Oracle | None = None
    budget: int | None = None

    def __post_init__(self) -> None:
        if self.budget is not None:
            whole("budget", self.budget)
        if self.oracle is not None and not callable(self.oracle):
            raise UsageError(f"`oracle` must be a function of item indices; got {self.oracle!r}")

    def _labels_of(self, pool: Ints) -> int:
        """How many of the items without a label to ask for."""
        return min(20 if self.budget is None else self.budget, len(pool))


def _asked_in(keys: UInts, asked: UInts) -> tuple[Bools, Ints, list[int]]:
    """Which items were asked for (n,), the rank of each among these, and their indices in order."""
    place = places_of(keys, asked)
    there = np.flatnonzero(place >= 0)
    return place >= 0, place[there], there[np.argsort(place[there], kind="stable")].tolist()


class Acquisition(NamedTuple):
    """Items in the order in which their labels were asked for, and their LURE weights."""

    keys: UInts  # identities of the items (m,)
    labels: Ints  # (m,)
    weights: Floats  # (m,)
    pool: UInts  # identities of all items that might have been asked for (N,)
    first: Floats  # the weight that each would have had, asked for first (N,)


@dataclass(frozen=True)
class ActiveTesting(_Asking):
    """Picks items by their expected loss, asks for their labels, and undoes the bias of the pick.

    The m-th of M items is drawn from those left of the pool of N with probability q_m in
    proportion to the loss that a surrogate expects there; with the weights of the levelled
    unbiased risk estimator (LURE), w_m = 1 + (N-M)/(N-m) (1/((N-m+1) q_m) - 1), the mean of w_m
    times the loss is unbiased for the pool. One set of items serves all classifiers: expected
    losses are averaged over them.

    Without an oracle nothing is asked: the labels there are count as a random sample, whose
    weights are 1, and the items to label next are among the diagnostics.

    Source: Kossen, Farquhar, Gal, Rainforth (2021), equation 6 (LURE: Farquhar et al. 2021).

    Parameters
    ----------
    oracle
        Called once with the indices of the picked items (m,); gives their labels, class indices.
    budget
        How many labels to ask for; 20 unless given, at most the items without a label.
    surrogate
        Label model whose posterior gives the expected losses (the averaged classifier).
    uniform_share
        Share of the expected loss that is spread evenly over the items, so that no item is all
        but never picked: a confident surrogate that is wrong there would blow up the weights.
    weighted
        Whether the bias of the pick is undone; else picked items count as a random sample does.
    """

    surrogate: LabelModel = field(default_factory=Ensemble)
    uniform_share: float = 0.1
    weighted: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.uniform_share <= 1:
            raise UsageError(
                f"`uniform_share` must be above 0 and at most 1; got {self.uniform_share!r}"
            )

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Pick the items and ask the oracle for their labels."""
        if isinstance(self.surrogate, Ensemble):
            with_probabilities(predictions, "active-testing")  # its refusal names this method
        surrogate = self.surrogate.fit(predictions, rng)
        salt = int(rng.integers(2**63))
        pool = np.flatnonzero(~predictions.labeled)
        budget = self._labels_of(pool)
        # Probability of a mistake, averaged over the classifiers with a prediction there.
        p, hard = surrogate.posterior(predictions).marginals()[pool], predictions.hard[pool]
        right = np.take_along_axis(p, np.maximum(hard, 0), axis=1)
        count = (hard >= 0).sum(axis=1)
        loss = np.where(hard >= 0, 1 - right, 0.0).sum(axis=1) / np.maximum(count, 1)
        even = max(float(loss.mean()), np.finfo(float).tiny) if len(loss) else 1.0
        loss = (1 - self.uniform_share) * loss + self.uniform_share * even
        picked, weights = pick(predictions.keys[pool], loss, budget, salt)
        picked = pool[picked]
        acquired = None
        if self.oracle is not None:
            labels = answers(self.oracle, picked, predictions.n_classes)
            size = np.full(len(pool), len(pool))
            first = lure_weights(loss / loss.sum(), size, drawn=budget) if len(pool) else loss
            if not self.weighted:
                weights, first = np.ones(len(picked)), np.ones(len(pool))
            acquired = Acquisition(
                predictions.keys[picked], labels, weights, predictions.keys[pool], first
            )
        return _FittedActiveTesting(surrogate, acquired, predictions.keys[picked], salt)


def pick(keys: UInts, loss: Floats, budget: int, salt: int) -> tuple[Ints, Floats]:
    """Places of the picked items among the pool (m,), in order, and their LURE weights (m,).

    Drawing one after the other without replacement is the order of Gumbel-perturbed logarithms,
    which belong to the items.
    """
    u = uniforms(keys, np.arange(1), salt ^ _ORDER_SALT)[:, 0]
    order = np.argsort(-(np.log(loss) - np.log(-np.log(u))), kind="stable")
    # What is left when the m-th is drawn, summed from the last to keep every digit.
    left = np.cumsum(loss[order][::-1])[::-1]
    picked = order[:budget]
    q = loss[picked] / left[:budget]
    return picked, lure_weights(q, len(keys) - np.arange(budget), len(keys))


def answers(oracle: Oracle, picked: Ints, n_classes: int) -> Ints:
    """The oracle's labels of the picked items, (m,): a class index each."""
    labels = np.asarray(oracle(picked))
    are_whole = labels.dtype.kind in "iub" or (
        labels.dtype.kind == "f"
        and bool((np.isfinite(labels) & (labels == np.round(labels))).all())
    )
    if labels.shape != picked.shape:
        raise InputError(
            f"the oracle was asked for the labels of {len(picked)} items and gave an array of "
            f"shape {labels.shape}; give one class index for each"
        )
    if not are_whole or (labels < 0).any() or (labels >= n_classes).any():
        raise InputError(
            f"the oracle gave a label that is no class index from 0 to {n_classes - 1}; "
            "translate class names to their places in `predictions.classes`"
        )
    return labels.astype(np.int64)


@dataclass(frozen=True, eq=False)
class _FittedActiveTesting(FittedLabelModel):
    surrogate: FittedLabelModel
    acquired: Acquisition | None
    suggested: UInts
    salt: int

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        labels, weights = predictions.labels.copy(), np.ones(predictions.n_items)
        if predictions.label_weight is not None:
            weights = predictions.label_weight
        asked = np.zeros(predictions.n_items, dtype=bool)
        if self.acquired is not None:
            asked, place, _ = _asked_in(predictions.keys, self.acquired.keys)
            place_in_pool = places_of(predictions.keys, self.acquired.pool)
            weights = np.where(place_in_pool >= 0, self.acquired.first[place_in_pool], 1.0)
            labels[asked] = self.acquired.labels[place]
            weights[asked] = self.acquired.weights[place]
        probabilities = with_evidence(
            self.surrogate.posterior(predictions).marginals(), predictions.evidence
        )
        probabilities[asked] = np.eye(predictions.n_classes)[labels[asked]]
        few = self.acquired is not None and int((labels >= 0).sum()) < 5
        return Means(
            probabilities,
            Fixed(probabilities),
            predictions.keys,
            salt=self.salt,
            value_from="marginals",
            observed=labels >= 0,
            estimator=_LevelledRisk(predictions, labels, weights, asked, self.salt),
            status=Status.FEW_LABELS if few else Status.OK,
            warnings=self._warnings(few),
            diagnostics=self._diagnostics(predictions),
        )

    def _warnings(self, few: bool) -> tuple[str, ...]:
        if self.acquired is None:
            return (
                "active-testing has no oracle to ask (give one in Python: "
                "fl.models.ActiveTesting(oracle=...)): the labels there are count as a random "
                "sample; the items to label next are in the diagnostics",
            )
        asked = f"the oracle was asked for {len(self.acquired.keys)} labels"
        return (asked, "few-labels: the oracle gave fewer than 5 labels") if few else (asked,)

    def _diagnostics(self, predictions: Predictions) -> dict[str, Any]:
        _, _, items = _asked_in(predictions.keys, self.suggested)
        if self.acquired is None:
            return {"label_next": items}
        squares = float((self.acquired.weights**2).sum())
        effective = float(self.acquired.weights.sum()) ** 2 / squares if squares else 0.0
        return {"asked": items, "effective_labels": effective}


@dataclass(frozen=True, eq=False)
class _LevelledRisk:
    """The estimator: weighted mean loss of the asked items, plain mean of labels known before."""

    predictions: Predictions
    labels: Ints
    weights: Floats
    asked: Bools
    salt: int

    def estimate(
        self, values: Floats, rows: Ints, *, best: float, size: int, population: bool
    ) -> tuple[float, Floats]:
        """Best value minus (plus) the mean loss, and its Bayesian bootstrap; see `MeanEstimator`.

        All items, of equal sampling weight: the unbiased mean of w_m times the loss. Otherwise the
        same divided by the sum of the weights, as how many of the asked are there is chance.
        """
        labels, keys = self.labels[rows], self.predictions.keys[rows]
        labeled = np.flatnonzero(labels >= 0)
        if not len(labeled):
            return float("nan"), np.full(size, np.nan)
        labeled = labeled[np.argsort(keys[labeled])]
        sampling = self.predictions.weight[rows]
        # How many items each labeled one stands for: the asked for the pool, others for one.
        asked, lure = self.asked[rows[labeled]], self.weights[rows[labeled]]
        pool = float((~self.predictions.labeled[rows]).sum())
        weight = np.where(asked, pool / max(int(asked.sum()), 1), 1.0) * sampling[labeled]
        unbiased = len(rows) == self.predictions.n_items and bool((sampling == sampling[0]).all())
        norm = weight if unbiased else weight * lure
        loss = weight * lure * np.abs(best - values[labeled, labels[labeled]])
        side = 1.0 if best > 0 else -1.0
        plain = best - side * float(loss.sum() / norm.sum())

        drawn = pseudo_observations(np.random.default_rng([self.salt]), values.shape[1], size)
        place = np.argsort(keys)[(drawn.place * len(rows)).astype(np.int64)]
        of_labels, given = rows[labeled], self.predictions
        mass = drawn.mass * weight.sum() / given.worth(of_labels, weight).rows
        # What has not been seen weighs what it would have weighed: much, where no loss is expected.
        heavy = self.weights[rows[place]]
        unseen = (mass * np.abs(best - values[place])).sum(axis=1) * heavy
        total = mass.sum(axis=1) * (1.0 if unbiased else heavy)
        bootstrap = given.bootstrap(of_labels, np.ones(len(labeled)), self.salt ^ _ROWS_SALT)
        sums = np.empty((2, size))
        for draw in spans(size, max(_BLOCK // len(labeled), 1)):
            e = bootstrap(np.arange(draw.start, draw.stop))
            sums[:, draw] = loss @ e, norm @ e
        draws = best - side * (sums[0] + unseen) / (sums[1] + total)
        if not population and len(labeled) == len(rows):
            draws = np.full(size, plain)
        return plain, draws


# --- the surrogate believed ---------------------------------------------------------------------


_DRAWS = 50
"""Parameter draws behind the disagreement of an item."""


@dataclass(frozen=True)
class ActiveSurrogate(_Asking):
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

    rounds: int = 5
    surrogate: LabelModel = field(default_factory=TemperedEnsemble)

    def __post_init__(self) -> None:
        whole("rounds", self.rounds)
        super().__post_init__()

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Ask the oracle round by round, and fit the surrogate to what it said."""
        seed, salt = int(rng.integers(2**63)), int(rng.integers(2**63))

        def fitted_to(labels: Ints) -> tuple[Predictions, FittedLabelModel]:
            labeled = predictions.with_labels(labels)
            return labeled, self.surrogate.fit(labeled, np.random.default_rng(seed))

        labels = predictions.labels.copy()
        pool = np.flatnonzero(labels < 0)
        budget = self._labels_of(pool)
        sizes = [len(part) for part in np.array_split(np.arange(budget), self.rounds)]
        asked = np.zeros(0, dtype=np.int64)
        labeled, fitted = fitted_to(labels)
        for number, size in enumerate(sizes if self.oracle is not None else [budget]):
            left = np.setdiff1d(pool, asked)
            if not size:
                continue
            score = _disagreement(fitted.posterior(labeled), labeled, left)
            places, _ = pick(predictions.keys[left], score, size, salt ^ number)
            asked = np.concatenate([asked, left[places]])
            if self.oracle is not None:
                labels[left[places]] = answers(self.oracle, left[places], predictions.n_classes)
                labeled, fitted = fitted_to(labels)
        answered = None if self.oracle is None else labels[asked]
        return _FittedSurrogate(fitted, predictions.keys[asked], answered)


def _disagreement(posterior: LabelPosterior, predictions: Predictions, rows: Ints) -> Floats:
    """What parameter draws leave open of the losses, averaged over the classifiers, (m,)."""
    _, q = next(iter(posterior.soft_draws(_DRAWS, chunk=_DRAWS)))
    q = q[:, rows]
    mean = q.mean(axis=0)
    # x log x is convex, so that no gap is negative but by rounding.
    least = np.finfo(float).tiny
    each, together = (p * np.log(np.maximum(p, least)) for p in (q, mean))
    gap = np.maximum(each.mean(axis=0) - together, 0.0)
    hard = predictions.hard[rows]
    there = hard >= 0
    voted = np.take_along_axis(gap, np.maximum(hard, 0), axis=1)
    loss = np.where(there, gap.sum(axis=1, keepdims=True) - voted, 0.0).sum(axis=1)
    out: Floats = loss / np.maximum(there.sum(axis=1), 1) + 1e-12
    return out


@dataclass(frozen=True, eq=False)
class _FittedSurrogate(FittedLabelModel):
    fitted: FittedLabelModel
    asked: UInts
    labels: Ints | None

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        asked, place, items = _asked_in(predictions.keys, self.asked)
        if self.labels is None:
            posterior = self.fitted.posterior(predictions)
            note = (
                "active-surrogate has no oracle to ask (give one in Python: "
                "fl.models.ActiveSurrogate(oracle=...)): it is its surrogate; the items to label "
                "next are in the diagnostics"
            )
            facts = {"label_next": items}
        else:
            labels = predictions.labels.copy()
            labels[asked] = self.labels[place]
            posterior = self.fitted.posterior(predictions.with_labels(labels))
            note = f"the oracle was asked for {len(self.asked)} labels"
            facts = {"asked": items}
        return replace(
            posterior,
            warnings=(*posterior.warnings, note),
            diagnostics={**posterior.diagnostics, **facts},
        )
