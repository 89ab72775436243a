"""Label shift: whether classes are as frequent among unlabeled items as among labeled ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.interval_draws import ends
from fewlabels.kernels.keyed import uniforms
from fewlabels.kernels.label_shift import black_box_weights
from fewlabels.kernels.simplex import linear_pool, mean_probability
from fewlabels.kernels.two_sample import (
    distances,
    energy_distances,
    mean_differences,
    p_value,
    random_subsets,
)
from fewlabels.models.label_shift import FittedLabelShift
from fewlabels.predictions import Predictions
from fewlabels.shifts.sampling_test import POWER, Sizes, compared
from fewlabels.shifts.traits import beliefs, points

_IMPUTATIONS = 10


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
    predictions: Predictions,
    fitted: FittedLabelShift,
    rng: np.random.Generator,
    sizes: Sizes,
    level: float,
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
    chosen, mine = compared(predictions, sizes)
    believed = beliefs(chosen)
    pool = linear_pool(believed, mean_probability(believed))
    subsets = random_subsets(rng, chosen.n_items, len(mine), sizes.permutations)
    drawn = mean_differences(pool, np.concatenate([mine[None], subsets]))
    posterior = fitted.posterior(chosen).probabilities
    values, doubted = fitted.frequencies, fitted.doubted_frequencies
    low, high = ends(doubted.target, level)
    w_low, w_high = ends(doubted.weights, level)
    labels = chosen.labels[mine]
    hard = pool.argmax(axis=1)
    named = labels >= 0
    said, target = hard[mine][named], hard[len(mine) :]
    ridges = (0.0, 1 / max(int(named.sum()), 1))
    box = [
        black_box_weights(said, labels[named], target, pool.shape[1], ridge=ridge)
        for ridge in ridges
    ]
    counts = np.bincount(labels[named], minlength=pool.shape[1])
    return LabelShiftFit(
        labeled=counts / max(counts.sum(), 1),
        unlabeled=values.target.mean(axis=0),
        low=low,
        high=high,
        weights=np.median(values.weights, axis=0),
        weights_low=w_low,
        weights_high=w_high,
        black_box=box[0],
        regularised=box[1],
        p_value=_score_test(drawn, pool),
        fit_p_value=_fit_test(chosen, points(believed), posterior, mine, rng, sizes),
        detectable=_detectable(drawn[1:], pool, posterior),
    )


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
    mine: Ints,
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
    each = [_within(apart, labels[:, i], len(mine), rng, count) for i in range(_IMPUTATIONS)]
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
            subsets = random_subsets(rng, len(rows), size, count)
            every = np.concatenate([np.arange(size)[None], subsets])
            # n m / (n + m) brings the distance of any sizes to one scale under the null.
            scale = size * (len(rows) - size) / len(rows)
            total += scale * energy_distances(own, every)
    return p_value(float(total[0]), total[1:])
