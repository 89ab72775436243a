"""Label shift: whether classes are as frequent among unlabeled items as among labeled ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.counter_based import uniforms
from fewlabels.kernels.interval_draws import ends
from fewlabels.kernels.simplex import linear_pool, mean_probability
from fewlabels.methods.base import LabelModel
from fewlabels.methods.ensembles.ensembles import TemperedEnsemble
from fewlabels.predictions import Predictions
from fewlabels.shifts.covariate import ImportanceWeights, importance
from fewlabels.shifts.label_shift_model import FittedLabelShift, LabelShift
from fewlabels.shifts.sampling_test import (
    POWER,
    Sizes,
    compared,
    distances,
    energy_distances,
    first_and_random,
    mean_differences,
    p_value,
)
from fewlabels.shifts.traits import Split, beliefs, points

_IMPUTATIONS = 10

LEARN_FREQUENCIES = frozenset(
    {
        *("ssme-kde", "ssme-kde-marginal", "ssme-flow", "spe", "dawid-skene", "agreement-rates"),
        *("bee", "cbee", "hcbee", "cbcc", "confusion-bee", "confusion-cbee", "confusion-hcbee"),
        *("vote-selection", "crowd-svm", "majority-vote"),
    }
)
"""Methods that learn how frequent the classes are from all items, labeled or not.

Under label shift their P(class | scores) of unlabeled items is right as it is.
"""

UNLEARNED = frozenset({"ensemble"})
"""Methods that take the classifiers at their word: labels, and their frequencies, do not matter."""

_NOT_ADJUSTED = LEARN_FREQUENCIES | UNLEARNED | {"labeled", "autoeval", "active-testing"}
"""Methods that have no P(class | scores), learned from labels alone, to adjust."""


class ClassShift(NamedTuple):
    """Class frequencies of the labeled and the unlabeled items, as a label model has them.

    `predictions` are what the model was fitted to. `own` says whether it is the method that was
    asked for; where that learns no P(class | scores) from labels, or not as it stands, it is the
    tempered ensemble of whatever the classifiers give.
    """

    predictions: Predictions
    fitted: FittedLabelShift
    own: bool

    @staticmethod
    def of(
        predictions: Predictions, method: str, model: LabelModel, rng: np.random.Generator
    ) -> ClassShift:
        """Fit the method's model, or the tempered ensemble."""
        own = method not in _NOT_ADJUSTED
        given = predictions if own else _believing(predictions)
        fitted = LabelShift(model if own else TemperedEnsemble()).fit(given, rng)
        return ClassShift(given, fitted, own)


def _believing(predictions: Predictions) -> Predictions:
    """The same items with a probability of whatever each classifier gives, votes and scores too."""
    return Predictions(
        beliefs(predictions),
        predictions.labels,
        histogram=predictions.histogram,
        weight=predictions.weight,
        models=predictions.models,
        classes=predictions.classes,
        positive=predictions.positive,
    )


def class_importance(predictions: Predictions, fitted: FittedLabelShift) -> ImportanceWeights:
    """Weights of the labeled items by class: estimated frequency over that among the labels."""
    labeled, labels = Split.of(predictions).labeled, predictions.labels
    of_class = labeled & (labels >= 0)
    counts = np.bincount(labels[of_class], minlength=predictions.n_classes)
    share = np.maximum(counts, 1) / max(counts.sum(), 1)
    by_class: Floats = fitted.frequencies.target.mean(axis=0) / share
    raw = np.ones(predictions.n_items)
    raw[of_class] = by_class[labels[of_class]]
    return importance(raw, labeled)


@dataclass(frozen=True, eq=False)
class LabelShiftFit:
    """Class frequencies of the labeled and the unlabeled items, and whether they differ.

    Of all K classes: `labeled` among the labels, `unlabeled` estimated with its interval `low` to
    `high`, `weights` q / p with theirs; `black_box` and `regularised` are the weights of BBSE and
    RLLS. `p_value` tests that the frequencies are the same, `fit_p_value` that label shift is all
    there is: a small one says that it is not. `detectable` is the change of a class's frequency
    that the test would find in four cases of five.
    """

    labeled: Floats
    unlabeled: Floats
    low: Floats
    high: Floats
    weights: Floats
    weights_low: Floats
    weights_high: Floats
    black_box: Floats
    regularised: Floats
    p_value: float
    fit_p_value: float
    detectable: Floats


def label_shift_fit(
    classes: ClassShift, rng: np.random.Generator, sizes: Sizes, level: float
) -> LabelShiftFit:
    """Estimate and test the shift of the class frequencies.

    The test of equal frequencies is exact: where P(score | class) is the same, they are equal
    only if the scores are distributed equally, so random subsets of all items say how far the
    mean pooled probabilities of as many items stray (a score test of the frequencies).

    The test of fit draws the unlabeled items' classes from the fitted model and permutes who is
    labeled within each class: the energy distances within classes, summed, among those of random
    subsets of each class. Twice the mean p-value of several drawings is a p-value (Rueschendorf
    1982), where the fitted model is right.
    """
    chosen, n_labeled = compared(classes.predictions, sizes)
    p = beliefs(chosen)
    pool = linear_pool(p, mean_probability(p))
    every = first_and_random(rng, chosen.n_items, n_labeled, sizes.permutations)
    drawn = mean_differences(pool, every)
    fitted = classes.fitted
    posterior = fitted.posterior(chosen).probabilities
    values, interval = fitted.frequencies, fitted.interval_frequencies
    low, high = ends(interval.target, level)
    w_low, w_high = ends(interval.weights, level)
    hard, k = pool.argmax(axis=1), pool.shape[1]
    of_class = np.flatnonzero(chosen.labels[:n_labeled] >= 0)
    labels, predicted = chosen.labels[of_class], hard[of_class]
    bbse, rlls = (
        black_box_weights(predicted, labels, hard[n_labeled:], k, ridge=ridge)
        for ridge in (0.0, 1 / max(len(labels), 1))
    )
    counts = np.bincount(labels, minlength=k)
    return LabelShiftFit(
        labeled=counts / max(counts.sum(), 1),
        unlabeled=values.target.mean(axis=0),
        low=low,
        high=high,
        weights=np.median(values.weights, axis=0),
        weights_low=w_low,
        weights_high=w_high,
        black_box=bbse,
        regularised=rlls,
        p_value=_score_test(drawn, pool),
        fit_p_value=_fit_test(chosen, points(p), posterior, n_labeled, rng, sizes),
        detectable=_detectable(drawn[1:], pool, posterior),
    )


def black_box_weights(
    predicted: Ints, labels: Ints, target: Ints, n_classes: int, *, ridge: float = 0.0
) -> Floats:
    """Class weights w (K,) that turn the confusion matrix into the target's predictions.

    With C the joint frequencies of prediction and label where labels are known, and m those of
    the predictions elsewhere: minimise |C w - m|^2 + ridge |w - 1|^2 over w >= 0. Without a ridge
    it is BBSE, Lipton, Wang, Smola (2018), equation 2, where C is invertible and w >= 0; with one,
    RLLS, Azizzadenesheli et al. (2019), section 2.1. A class that no label has keeps weight 1.

    Parameters
    ----------
    predicted, labels
        Hard predictions and classes of the items with labels, (n,).
    target
        Hard predictions of the items without, (u,).
    """
    cells = np.bincount(predicted * n_classes + labels, minlength=n_classes**2)
    joint = cells.reshape(n_classes, n_classes) / max(len(labels), 1)
    shares = np.bincount(target, minlength=n_classes) / max(len(target), 1)
    gap = shares - joint.sum(axis=1)
    there = joint.any(axis=0)
    design = np.concatenate([joint[:, there], np.sqrt(ridge) * np.eye(int(there.sum()))])
    out = np.ones(n_classes)
    if there.any():
        goal = np.concatenate([gap, np.zeros(int(there.sum()))])
        out[there] += lsq_linear(design, goal, bounds=(-1.0, np.inf), method="bvls").x
    return np.maximum(out, 0.0)


def _score_test(drawn: Floats, pool: Floats) -> float:
    """P-value of the mean differences in the first row, in units of the pool's covariance."""
    inverse = np.linalg.pinv(np.cov(pool.T), rcond=1e-6, hermitian=True)
    size = np.einsum("bk,kl,bl->b", drawn, inverse, drawn)
    return p_value(float(size[0]), size[1:])


def _detectable(drawn: Floats, pool: Floats, posterior: Floats) -> Floats:
    """Change of each class's frequency that moves the mean pool by 2.8 standard errors, (K,)."""
    out = np.full(pool.shape[1], np.inf)
    for k in range(pool.shape[1]):
        r = posterior[:, k]
        if 0 < r.sum() < len(r):
            inside = (pool[:, k] * r).sum() / r.sum()
            apart = inside - (pool[:, k] * (1 - r)).sum() / (1 - r).sum()
            if apart > 1e-9:
                out[k] = POWER * drawn[:, k].std() / apart
    return np.minimum(out, 1.0)


def _fit_test(
    chosen: Predictions,
    places: Floats,
    posterior: Floats,
    n_labeled: int,
    rng: np.random.Generator,
    sizes: Sizes,
) -> float:
    """P-value of label shift as the only difference; 1 where no class can tell."""
    apart = distances(places)
    salt = int(rng.integers(2**62))
    u = uniforms(chosen.keys, np.arange(_IMPUTATIONS), salt)
    labels = (u[:, None, :] > np.cumsum(posterior, axis=1)[:, :-1, None]).sum(axis=1)
    known = chosen.labels >= 0
    labels[known] = chosen.labels[known][:, None]
    count = max(sizes.permutations // _IMPUTATIONS, 99)
    each = [_within(apart, labels[:, i], n_labeled, rng, count) for i in range(_IMPUTATIONS)]
    return min(2 * float(np.mean(each)), 1.0)


def _within(
    apart: Floats, labels: Array, n_labeled: int, rng: np.random.Generator, count: int
) -> float:
    """P-value of the energy distances within classes, weighted by their labeled items."""
    total = np.zeros(count + 1)
    for k in np.unique(labels[:n_labeled]):
        rows = np.flatnonzero(labels == k)
        size = int((rows < n_labeled).sum())
        if size < len(rows):
            own = apart[np.ix_(rows, rows)]
            every = first_and_random(rng, len(rows), size, count)
            # n m / (n + m) brings the distance of any sizes to one scale under the null.
            scale = size * (len(rows) - size) / len(rows)
            total += scale * energy_distances(own, every)
    return p_value(float(total[0]), total[1:])
