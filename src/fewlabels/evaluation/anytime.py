"""Confidence sequences: intervals that hold whenever one stops, though looked at after every label.

For every possible mean m of the N items a gambler bets against it as labels come in, with money
that a fair game would not multiply: where m is the mean, wealth is a martingale that starts at 1,
and exceeds 1 / alpha at any time with probability alpha at most (Ville). The means against which no
gambler has got so rich are a confidence sequence: it holds at all looks together, so it may be
looked at, and stopped at, at will. Two gamblers:

Bets on each item (Waudby-Smith and Ramdas 2024; drawn with unequal probabilities: Shekhar, Xu,
Lipton, Liang, Ramdas 2023). Item t has the value f_t in [0, 1] and was drawn with probability q_t
from those that were left; s_t is the sum of f / N over the items seen before. Then f_t / (N q_t)
has the mean m - s_t, and

    wealth = prod_t (1 + lambda_t d_t),   d_t = f_t / (N q_t) - (m - s_t) - beta_t (g_t - E g_t),

g_t = h_t / (N q_t) with h what the classifiers' pool expects of f, whose mean E g_t is known: a
control variate. lambda_t is mean / (variance + mean^2) of the d before, beta_t the slope of f on h
before, and half of the money is on either side of m.

A mixture of all shares, for values 0 and 1 drawn evenly (Waudby-Smith and Ramdas 2020): after S
ones and F zeros of n, the prior probability of N m ones over their posterior probability, under a
Beta(1/2, 1/2) of their share. For infinitely many items that is B(a + S, b + F) / (B(a, b) m^S
(1 - m)^F). Where it applies, the wealth is the mean of both.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, gammaln

from fewlabels.errors import InputError, UsageError
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.simplex import linear_pool, mean_probability
from fewlabels.metrics.base import Metric
from fewlabels.metrics.plans import view_of
from fewlabels.metrics.registry import METRICS
from fewlabels.predictions import Predictions

_GRID = 1000
"""Means that are tried: steps of .001, or of 1 / N where these are fewer. An interval reaches one
step beyond the means that are left."""

_BET = 20.0
"""Largest bet; with larger ones the true mean could be excluded for lying between two of the
grid."""

_SHARE = 0.5
"""Share of the wealth that may be lost in one bet."""

_PRIOR = 0.5


class DrawnValues(NamedTuple):
    """Items as they were drawn: value f, what the pool expected h, q and how many left, (T,) each.

    `expected` (T,) is the mean over the items of h of those that were left. `least` is the smallest
    that q times the number left can be: 1 where items are drawn evenly.
    """

    values: Floats
    proxy: Floats
    expected: Floats
    probability: Floats
    left: Ints
    n_items: int
    least: float


def confidence_sequence(draws: DrawnValues, level: float) -> tuple[Floats, Floats]:
    """Ends of the interval for the mean of f over the items, after each draw, (T,) each.

    They hold at all T looks together with probability `level`. A mean once excluded stays excluded.
    """
    size = min(draws.n_items, _GRID)
    grid = np.linspace(0, 1, size + 1)
    log_wealth = _bets(draws, grid)
    if draws.least >= 1 and bool(np.isin(draws.values, (0.0, 1.0)).all()):
        log_wealth = np.logaddexp(log_wealth, _mixture(draws, grid)) - np.log(2)
    # A mean that the values seen rule out is excluded at once; the grid is within half a step.
    n, half = draws.n_items, 0.5 / size + 1e-12
    seen = np.cumsum(draws.values)[:, None] / n
    rest = (n - np.arange(1, len(seen) + 1))[:, None] / n
    log_wealth[(grid < seen - half) | (grid > seen + rest + half)] = np.inf
    retained = np.maximum.accumulate(log_wealth, axis=0) < -np.log(1 - level)
    step = 1 / size
    # Where the true mean lies between two points of the grid, none may be left: it is near both.
    best = log_wealth.argmin(axis=1)
    retained[np.arange(len(retained)), best] = True
    low = np.maximum(grid[retained.argmax(axis=1)] - step, 0.0)
    high = np.minimum(grid[size - retained[:, ::-1].argmax(axis=1)] + step, 1.0)
    return np.maximum.accumulate(low), np.minimum.accumulate(high)


def _bets(draws: DrawnValues, grid: Floats) -> Floats:
    """Log wealth of bets against every mean, after each draw, (T, G)."""
    n = draws.n_items
    weight = 1 / (n * draws.probability)
    before = np.concatenate([[0.0], np.cumsum(draws.values)[:-1]]) / n
    top = draws.left / n / draws.least  # the most that 1 / (N q) can be
    out = np.empty((len(weight), len(grid)))
    up, down = np.zeros(len(grid)), np.zeros(len(grid))
    total, square = np.zeros(len(grid)), np.full(len(grid), 0.25)
    slope = _Slope()
    for t in range(len(weight)):
        beta = slope.value
        # What is left of the sum of f / N, under each mean, and bounds of d.
        mean = np.clip(grid - before[t], 0.0, None)
        shift = beta * draws.expected[t] - mean
        d = weight[t] * (draws.values[t] - beta * draws.proxy[t]) + shift
        lowest = -beta * top[t] + shift if beta > 0 else shift
        highest = top[t] + shift
        average = total / (t + 1)
        bet = average / (square / (t + 1) + average**2)
        rise = np.clip(bet, 0.0, np.minimum(_SHARE / np.maximum(-lowest, 1e-9), _BET))
        fall = np.clip(-bet, 0.0, np.minimum(_SHARE / np.maximum(highest, 1e-9), _BET))
        up += np.log1p(rise * d)
        down += np.log1p(-fall * d)
        out[t] = np.logaddexp(up, down) - np.log(2)
        total += d
        square += (d - total / (t + 1)) ** 2
        slope.add(draws.proxy[t], draws.values[t])
    return out


class _Slope:
    """Slope of f on h over the items seen, shrunk towards 0; between 0 and 1."""

    def __init__(self) -> None:
        self.n, self.sums, self.products, self.squares = 0, np.zeros(2), 0.0, 0.0

    @property
    def value(self) -> float:
        """Least squares, with one pseudo-item of each variance a quarter and no covariance."""
        if self.n < 2:
            return 0.0
        h, f = self.sums / self.n
        covariance = self.products - self.n * h * f
        return float(np.clip(covariance / (self.squares - self.n * h**2 + 0.25), 0.0, 1.0))

    def add(self, h: float, f: float) -> None:
        """Count another item."""
        self.n += 1
        self.sums += (h, f)
        self.products += h * f
        self.squares += h * h


def _mixture(draws: DrawnValues, grid: Floats) -> Floats:
    """Log of prior over posterior probability of every mean, after each draw, (T, G)."""
    n, ones = draws.n_items, np.round(grid * draws.n_items)
    count = np.arange(1.0, len(draws.values) + 1)[:, None]
    some = np.cumsum(draws.values)[:, None]
    prior = _beta_binomial(ones, np.array(n), np.array(0.0), np.array(0.0))
    with np.errstate(invalid="ignore"):
        posterior = _beta_binomial(ones - some, n - count, some, count - some)
    possible = (ones >= some) & (ones - some <= n - count)
    return np.where(possible, prior - posterior, np.inf)


def _beta_binomial(k: Floats, n: Floats, ones: Floats, zeros: Floats) -> Floats:
    """Log P(k ones of n more), after so many ones and zeros; arbitrary where k is impossible."""
    a, b = _PRIOR + ones, _PRIOR + zeros
    k = np.clip(k, 0, n)
    choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    out: Floats = choose + betaln(k + a, n - k + b) - betaln(a, b)
    return out


# --- of predictions -------------------------------------------------------------------------------


GUARDED = tuple(
    name
    for name, metric in METRICS.items()
    if metric.per_item is not None and all(map(math.isfinite, metric.bounds))
)
"""Metrics that have an interval which holds at every look: means of what each label shows."""


def anytime(
    predictions: Predictions, metric: Metric, rows: Ints, probability: Floats, left: Ints, *,
    level: float, least: float = 1.0,
) -> dict[str, tuple[Floats, Floats]]:  # fmt: skip
    """Confidence sequences of every classifier's metric on these items: low and high, (T,) each.

    The metric is a mean over items with bounds, such as accuracy. `rows`, `probability` and `left`,
    (T,) each, are the items in the order drawn, which all have labels, the probability of each
    draw, and how many items were left. `least` is the smallest that probability times left can be:
    1 where items are drawn evenly. Items that had labels before are not among the rows, and the
    mean leaves them out.
    """
    low, high = metric.bounds
    if metric.per_item is None or not np.isfinite([low, high]).all():
        raise UsageError(
            "an interval that may be looked at after each label is of means over the items with "
            "bounds, such as accuracy or brier"
        )
    if (predictions.labels[rows] < 0).any():
        raise InputError("an item that was drawn has no label; leave it out")
    before = predictions.labeled.copy()
    before[rows] = False
    places = np.flatnonzero(~before)
    at, n = np.searchsorted(places, rows), len(places)
    p, out = pooled(predictions)[places], dict[str, tuple[Floats, Floats]]()
    for j, name in enumerate(predictions.models):
        # An item without a prediction of this classifier counts 0: the mean is of those with one.
        provided = np.flatnonzero(predictions.provides(metric.needs)[places, j])
        if not len(provided):
            continue
        value = np.zeros_like(p)
        view = view_of(predictions, places[provided], j)
        value[provided] = (metric.per_item(view) - low) / (high - low)
        expected = (p * value).sum(axis=1)
        seen = np.concatenate([[0.0], np.cumsum(expected[at])[:-1]])
        ends = confidence_sequence(
            DrawnValues(
                values=value[at, predictions.labels[rows]],
                proxy=expected[at],
                expected=(expected.sum() - seen) / n,
                probability=probability,
                left=left,
                n_items=n,
                least=least,
            ),
            level,
        )
        scale = n / len(provided)
        lower, upper = (low + (high - low) * np.minimum(scale * end, 1.0) for end in ends)
        out[name] = lower, upper
    return out


def pooled(predictions: Predictions) -> Floats:
    """Mean of what all classifiers say of each item, (n, K): probabilities, votes and ranks."""
    n, k = predictions.n_items, predictions.n_classes
    total, count = np.zeros((n, k)), np.zeros(n)
    if predictions.probabilities is not None:
        p = predictions.probabilities
        provided = ~np.isnan(p[:, :, 0])
        total += linear_pool(p, mean_probability(p)) * provided.sum(axis=1)[:, None]
        count += provided.sum(axis=1)
    if predictions.is_sparse or predictions.given_votes is not None:
        votes = predictions.vote_counts @ np.tile(np.eye(k), (predictions.n_models, 1))
        total, count = total + votes, count + votes.sum(axis=1)
    if predictions.scores is not None:
        for scores in predictions.scores.T:
            scored = ~np.isnan(scores)
            rank = np.searchsorted(np.sort(scores[scored]), scores, "right") / max(scored.sum(), 1)
            total[scored] += np.stack([1 - rank[scored], rank[scored]], axis=1)
            count += scored
    return total / np.maximum(count, 1)[:, None]
