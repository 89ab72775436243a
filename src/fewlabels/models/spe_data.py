"""The scores of one classifier as SPE sees them: normalised, ties spread, sorted by evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from fewlabels.kernels.arrays import Bools, Floats, UInts
from fewlabels.kernels.score_density import Points
from fewlabels.kernels.score_mixture import ClassDensity, ScoreData, ScoreMixture
from fewlabels.models.scores import margin

EXACT_ITEMS = 5_000
"""Up to so many unlabeled items each one is in the likelihood; beyond, they are grouped."""

_GROUPS = 2048
_SPLITS = (0.5, 0.8, 0.9, 0.95, 0.7)
_LEAST_SD = 0.01


@dataclass(frozen=True)
class ScoreScale:
    """The affine map of margins onto [floor, 1].

    Source: Welinder, Welling, Perona (2013), section 4; the floor keeps log x finite.
    """

    logit: bool
    low: float
    high: float
    floor: float

    @classmethod
    def of(cls, scores: Floats, *, logit: bool) -> ScoreScale:
        """The map by the smallest and the largest of these scores (n,), in file units."""
        m = margin(scores, probability=logit)
        return cls(logit, float(m.min()), float(m.max()), 1 / (2 * len(m)))

    def unit(self, scores: Floats) -> Floats:
        """Scores in file units to x > 0; NaN stays NaN, and what lies below the floor comes up."""
        out: Floats = np.maximum(self._affine(scores), self.floor)
        return out

    def cut(self, thresholds: Floats) -> Floats:
        """Thresholds in file units to x; infinite where all or no score is at least as large."""
        x = self._affine(thresholds)
        x = np.where(x <= self.floor, -np.inf, x)
        if self.logit:
            x = np.where(thresholds <= 0, -np.inf, np.where(thresholds > 1, np.inf, x))
        return x

    def score(self, x: float) -> float:
        """A score on the unit interval in file units."""
        m = self.low + (x - self.floor) / (1 - self.floor) * (self.high - self.low)
        return float(expit(m)) if self.logit else m

    def _affine(self, scores: Floats) -> Floats:
        share = (margin(scores, probability=self.logit) - self.low) / (self.high - self.low)
        return self.floor + (1 - self.floor) * share


def spread_ties(x: Floats, keys: UInts) -> Floats:
    """Equal scores spread evenly over the interval that is nearer to them than to any other.

    A density sees an atom as infinitely likely; a rounded or saturated score says no more than
    that it lies somewhere there. The smallest and the largest value keep to the inside.
    """
    order = np.lexsort((keys, x))
    values, first, count = np.unique(x[order], return_index=True, return_counts=True)
    if len(values) in (1, len(x)):
        return x
    edges = np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, values[-1:]])
    group = np.repeat(np.arange(len(values)), count)
    share = (np.arange(len(x)) - first[group] + 0.5) / count[group]
    placed = edges[group] + (edges[group + 1] - edges[group]) * share
    out = x.copy()
    many = count[group] > 1
    out[order[many]] = placed[many]
    return out


def score_data(x: Floats, evidence: Floats, weight: Floats, keys: UInts) -> ScoreData:
    """Sort items by what is known of them: x (n,) > 0, evidence (n, 2), weight (n,).

    Items are put in an order of their own, so that the order of the file does not show. Beyond
    `EXACT_ITEMS`, items without evidence are grouped; see `grouped`.
    """
    order = np.lexsort((keys, x))
    x, weight = spread_ties(x, keys)[order], weight[order]
    with np.errstate(invalid="ignore"):
        odds = (evidence[:, 1] - evidence[:, 0])[order]
    open_ = np.isfinite(odds)
    silent = open_ & (odds == 0)
    if silent.sum() > EXACT_ITEMS:
        plain, mass = grouped(x[silent], weight[silent])
        soft = open_ & ~silent
        open_x = np.concatenate([plain, x[soft]])
        open_weight = np.concatenate([mass, weight[soft]])
        open_odds = np.concatenate([np.zeros(len(plain)), odds[soft]])
    else:
        open_x, open_weight, open_odds = x[open_], weight[open_], odds[open_]
    one, zero = odds == np.inf, odds == -np.inf
    return ScoreData(
        Points(x[one]), weight[one],
        Points(x[zero]), weight[zero],
        Points(open_x), open_weight, open_odds,
    )  # fmt: skip


def grouped(x: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Means and total weights of groups of neighbouring scores, for ascending x (n,).

    No group is wider than 1/2048 of the range or holds more than 1/2048 of the items. The
    log-likelihood is then off by half the variance within groups times the curvature of the log
    density, about n / (24 * 2048^2 sd^2) in all, nearly the same for all parameters in question.
    """
    n = len(x)
    by_width = np.floor((x - x[0]) / (x[-1] - x[0]) * _GROUPS)
    by_count = np.arange(n) * _GROUPS // n
    starts = np.flatnonzero(
        np.r_[True, (by_width[1:] != by_width[:-1]) | (by_count[1:] != by_count[:-1])]
    )
    mass = np.add.reduceat(weight, starts)
    total = np.add.reduceat(weight * x, starts)
    kept = mass > 0
    return total[kept] / mass[kept], mass[kept]


def starting_points(mixture: ScoreMixture, data: ScoreData) -> Floats:
    """Starts of the search for the mode, (6, q): five splits of the scores, and the labels'.

    The last one is missing where a class has fewer than two labels.
    """
    parts = (data.negative, data.positive, data.open)
    x = np.concatenate([p.x for p in parts])
    weight = np.concatenate([data.negative_weight, data.positive_weight, data.open_weight])
    order = np.argsort(x, kind="stable")
    x, weight = x[order], weight[order]
    rank = np.cumsum(weight) / weight.sum()
    starts = []
    for split in _SPLITS:
        low = rank <= split
        if 1 < low.sum() < len(x) - 1:
            starts.append(_start(mixture, x, weight * ~low, weight * low))
    if min(len(data.positive), len(data.negative)) > 1:
        known = np.concatenate([data.positive.x, data.negative.x])
        none = np.zeros(len(data.negative)), np.zeros(len(data.positive))
        one = np.concatenate([data.positive_weight, none[0]])
        zero = np.concatenate([none[1], data.negative_weight])
        if one.sum() > 0 and zero.sum() > 0:
            starts.append(_start(mixture, known, one, zero))
    if not starts:
        starts.append(_start(mixture, x, weight * x, weight * (1 - np.minimum(x, 1))))
    return np.array(starts)


def _start(mixture: ScoreMixture, x: Floats, one: Floats, zero: Floats) -> Floats:
    """Parameters by the moments of the classes, whose weights are given."""

    def moments(density: ClassDensity, weight: Floats) -> Floats:
        mean = float(weight @ x / weight.sum())
        sd = float(np.sqrt(weight @ (x - mean) ** 2 / weight.sum()))
        return density.from_moments(max(mean, _LEAST_SD), max(sd, _LEAST_SD))

    logit = np.log((one.sum() + 1) / (zero.sum() + 1))
    return np.concatenate(
        [moments(mixture.positive, one), moments(mixture.negative, zero), [logit]]
    )


def lacks_a_class(evidence: Floats) -> Bools:
    """Which of the two classes no item's evidence speaks for, (2,)."""
    odds = evidence[:, 1] - evidence[:, 0]
    return np.array([not (odds < 0).any(), not (odds > 0).any()])
