"""Whether the scores and the labels look as the fitted densities say they should."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, expit

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.simplex import two_classes
from fewlabels.methods.spe.families import Points
from fewlabels.methods.spe.mixture import ScoreData, ScoreMixture

LEVEL = 0.05
"""Share of worlds that follow the model in which the check is to object all the same."""

_ORDER = 6
_SIMULATIONS = 4000
_STEP = 1e-4
_NODES = 1000
_LEAST_LEFT = 0.02


@dataclass(frozen=True)
class Fit:
    """Two p-values, and what the discrepancies look like.

    `scores` is of Neyman's smooth test of all scores against the mixture, `labels` of the labels
    against P(positive | score) as it is without the label in question; 1 where there is nothing
    to test. The largest gap between the distribution functions is `distance`, at score `at` (on
    the fit's own scale), where the model puts the share `expected` below and the items `observed`.
    """

    scores: float
    labels: float
    distance: float
    at: float
    expected: float
    observed: float

    @property
    def alarming(self) -> bool:
        """Whether either test objects, at half the level each."""
        return min(self.scores, self.labels) < LEVEL / 2


def check_fit(
    mixture: ScoreMixture,
    mode: Floats,
    data: ScoreData,
    labeled_odds: Floats,
    labels: Ints,
    rng: np.random.Generator,
) -> Fit:
    """Test the mixture at its mode (q,), and the labels (L,) by log-odds (L, D) of the draws."""
    points, weight = _together(data)
    model = _distribution(mixture, mode[None], points)[:, 0]
    # The middle of each step, so that neither side of it counts as a gap.
    seen = (np.cumsum(weight) - weight / 2) / weight.sum()
    worst = int(np.argmax(np.abs(model - seen)))
    return Fit(
        smooth_test(mixture, mode, data),
        surprise_of_labels(two_classes(expit(labeled_odds)), labels, rng),
        float(abs(model[worst] - seen[worst])),
        float(points.x[worst]),
        float(model[worst]),
        float(seen[worst]),
    )


def _together(data: ScoreData) -> tuple[Points, Floats]:
    """All scores and their weights, by ascending score."""
    x = np.concatenate([data.positive.x, data.negative.x, data.open.x])
    weight = np.concatenate([data.positive_weight, data.negative_weight, data.open_weight])
    order = np.argsort(x, kind="stable")
    return Points(x[order]), weight[order]


def _distribution(mixture: ScoreMixture, theta: Floats, points: Points) -> Floats:
    """P(score <= x) in the mixture, (n, D)."""
    one, zero = mixture.survival(points.x, theta)
    share = expit(theta[:, -1])
    return 1 - share * one - (1 - share) * zero


def smooth_test(mixture: ScoreMixture, mode: Floats, data: ScoreData) -> float:
    """P-value of Neyman's smooth test of all scores against the mixture with fitted parameters.

    The means of the first Legendre polynomials h of F(x) have covariance (I - B J^-1 B') / n:
    fitting takes up what of h moves with the parameters, B = E[h d log f / d theta], and J is the
    information about them in an item, of its label where that is known, and of the prior.
    Expectations are under the model: estimates from the sample make such tests object too often.
    Source: Rayner, Thas, Best (2009), Smooth Tests of Goodness of Fit, chapters 4 and 6.
    """
    points, weight = _together(data)
    n = weight.sum() ** 2 / (weight**2).sum()
    order = int(min(_ORDER, n // 25))
    if order < 1:
        return 1.0
    u = np.clip(_distribution(mixture, mode[None], points)[:, 0], 0, 1)
    mean = (weight / weight.sum()) @ _legendre(u, order)
    nodes = (np.arange(_NODES) + 0.5) / _NODES
    h = _legendre(nodes, order)
    # Scores at these quantiles of the mixture, by interpolation of its distribution.
    grid = np.concatenate([np.geomspace(1e-8, 1e-3, 64), np.linspace(1e-3, 3, 6000)[1:]])
    below = np.maximum.accumulate(_distribution(mixture, mode[None], Points(grid))[:, 0])
    at = Points(np.interp(nodes, below, grid))
    # Derivatives by the parameters: of each item's log-likelihood, and of the prior's slope.
    q = len(mode)
    ends = np.concatenate([mode + _STEP * np.eye(q), mode - _STEP * np.eye(q)])

    def item_scores(odds: float) -> Floats:
        each = mixture.item_log_likelihood(at, ends, np.full(_NODES, odds))
        return (each[:, :q] - each[:, q:]) / (2 * _STEP)

    marginal, one, zero = (item_scores(odds) for odds in (0.0, np.inf, -np.inf))
    slopes = mixture.log_prior(ends)[1]
    hessian = -(slopes[:q] - slopes[q:]) / (2 * _STEP)
    values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    of_prior = (vectors * np.maximum(values, 0)) @ vectors.T
    known = (data.positive_weight.sum() + data.negative_weight.sum()) / data.total
    share = expit(mixture.log_odds(at, mode[None]))
    information = (1 - known) * marginal.T @ marginal
    information += known * ((one * share).T @ one + (zero * (1 - share)).T @ zero)
    information = information / _NODES + of_prior / n
    cross = h.T @ marginal / _NODES
    taken = cross @ np.linalg.lstsq(information, cross.T, rcond=1e-12)[0]
    values, vectors = np.linalg.eigh(np.eye(order) - (taken + taken.T) / 2)
    # What the parameters take up whole is no evidence, and must not be divided by.
    left = values > _LEAST_LEFT
    if not left.any():
        return 1.0
    statistic = n * ((vectors[:, left].T @ mean) ** 2 / values[left]).sum()
    return float(chdtrc(int(left.sum()), statistic))


def _legendre(u: Floats, order: int) -> Floats:
    """Legendre polynomials of degree 1 .. order, orthonormal on [0, 1], (n, order)."""
    columns: Floats = np.polynomial.legendre.legvander(2 * u - 1, order)[:, 1:].astype(np.float64)
    return columns * np.sqrt(2 * np.arange(1, order + 1) + 1)


def surprise_of_labels(p: Floats, labels: Ints, rng: np.random.Generator) -> float:
    """P-value of the labels (L,), each predicted from the other labels and all scores; 1 of none.

    Given draws of P(class) (L, K, D), the draws without item i's own label weigh as 1 / p of that
    label, so that its probability is a harmonic mean. What is tested is the sum of the logarithms,
    against labels drawn from these predictions.
    """
    rows, sharp = np.arange(len(labels)), np.clip(p, 1e-12, 1.0)
    weights = 1 / sharp[rows, labels]
    told = (sharp * weights[:, None, :]).mean(axis=2)
    told /= told.sum(axis=1, keepdims=True)
    cost = -np.log(np.maximum(told, 1e-12))
    surprise = cost[rows, labels].sum()
    total = np.zeros(_SIMULATIONS)
    for q, each in zip(np.cumsum(told, axis=1), cost, strict=True):
        drawn = np.searchsorted(q[:-1], rng.random(_SIMULATIONS), side="right")
        total += each[drawn]
    return float((1 + (total >= surprise - 1e-9).sum()) / (1 + _SIMULATIONS))


def gap_in_words(fit: Fit, score: float) -> str:
    """The discrepancy, in words; `score` is where it is largest, in file units."""
    parts = []
    if fit.scores < LEVEL / 2:
        parts.append(
            f"{fit.observed:.1%} of the scores are below {score:.4g}, and the densities say "
            f"{fit.expected:.1%} (p = {max(fit.scores, 1e-4):.2g})"
        )
    if fit.labels < LEVEL / 2:
        parts.append(
            "the labels contradict the probabilities that the densities give their items "
            f"(p = {max(fit.labels, 1e-4):.2g})"
        )
    return "; ".join(parts)
