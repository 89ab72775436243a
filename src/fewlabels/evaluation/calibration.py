"""What labels alone say of calibration: errors without what chance adds to them, and a test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, logit, ndtr

from fewlabels.kernels.arrays import Floats, Ints, UInts
from fewlabels.metrics.calibration import Norm

_STEPS = 4_001
"""Places at which an integral over the largest of several gaps is evaluated."""

SIMULATIONS = 1_999
"""Labelings that a test compares the labels with."""

_CLIP = 1e-6
_CELLS = 2**22


class LabeledBins(NamedTuple):
    """The labeled items in bins (B,): weight, mean confidence, frequency, how many they are worth.

    The latter two are undefined where there are none.
    """

    total: Floats
    predicted: Floats
    frequency: Floats
    size: Floats


def jeffreys(frequency: Floats, size: Floats, level: float) -> tuple[Floats, Floats]:
    """Jeffreys' intervals of frequencies of so many labels, from 0 or to 1 where all agree."""
    hits, misses = frequency * size, (1 - frequency) * size
    low, high = (betaincinv(hits + 0.5, misses + 0.5, (1 + side * level) / 2) for side in (-1, 1))
    return np.where(hits > 0, low, hits), np.where(misses > 0, high, 1 - misses)


def debiased_error(bins: LabeledBins, norm: Norm) -> float:
    """A calibration error of labeled items without what chance adds to it.

    Of each bin b: its share w of the weight, mean confidence s, frequency y, number of labels n.
    With v = y (1 - y) / (n - 1), the variance of y, the square of the norm "l2" is

        sum_b w_b ((s_b - y_b)^2 - v_b)

    (Kumar, Liang, Ma 2019, section 4; Ferro and Fricker 2012, of the reliability in a Brier score).
    For "l1" and "max" what N(s_b - y_b, v_b) in place of s_b - y_b gives on average is as far above
    the plain error as that is above the truth, so that the estimate is 2 plain - mean (ibid.; their
    code draws, here the means are exact). A bin of one label has v = s (1 - s), its variance if it
    is calibrated. Below 0 it is 0; without labels it is undefined.
    """
    if not (bins.total > 0).any():
        return math.nan
    w, s, y, n = (column[bins.total > 0] for column in bins)
    alone = n <= 1
    v = np.where(alone, s * (1 - s), y * (1 - y) / np.where(alone, 1.0, n - 1))
    w, gap, spread = w / w.sum(), np.abs(s - y), np.sqrt(np.maximum(v, 1e-300))
    if norm == "l2":
        return math.sqrt(max(float(w @ (gap**2 - v)), 0.0))
    if norm == "l1":
        z = gap / spread
        # Mean of |N(gap, v)|, the folded normal distribution.
        folded = spread * math.sqrt(2 / math.pi) * np.exp(-(z**2) / 2) + gap * (2 * ndtr(z) - 1)
        plain, mean = w @ gap, w @ folded
    else:
        # Mean of the largest: the integral of P(some |N(gap, v)| > t) over t.
        t = np.linspace(0.0, float((gap + 9 * spread).max()), _STEPS)[:, None]
        below = ndtr((t - gap) / spread) - ndtr((-t - gap) / spread)
        plain, mean = gap.max(), np.trapezoid(1 - below.prod(axis=1), t[:, 0])
    return max(float(2 * plain - mean), 0.0)


class CalibrationTest(NamedTuple):
    """The statistic of a test of calibration, and how probable one as large is by chance."""

    statistic: float
    p_value: float


def calibration_test(
    p: Floats, labels: Ints, events: Sequence[tuple[Ints, Floats]], seed: int,
    weight: Floats, together: UInts,
) -> CalibrationTest:  # fmt: skip
    """Whether labels (n,) look like draws from the probabilities p (n, K).

    Of each event (the class in question (n,), its probability q (n,)) that comes true or not,
    y (n,), the score test of intercept 0 and slope 1 in logit P(y = 1) = a + b logit q (Cox 1958),
    with the weights w (n,) of labels that were drawn with unequal probabilities (by stratum):

        u' I^-1 u,   u = sum_i w_i (y_i - q_i) x_i,   I = sum_i w_i^2 q_i (1 - q_i) x_i x_i',
        x_i = (1, logit q_i)

    and of several events the largest. Its distribution is not the chi-squared one of many labels,
    but that of labels drawn from p, 1,999 times: the level holds for any number of them (Barnard
    1963). Rows of one key in `together` (n,) are drawn together, as labels in clusters go. It sees
    probabilities that are too high, too low, too extreme or too timid.
    """
    _, first, units = np.unique(together, return_index=True, return_inverse=True)
    units = np.argsort(np.argsort(first))[units]  # by first appearance
    rng = np.random.default_rng(seed)
    ends = np.cumsum(p, axis=1)[:, :-1]

    def statistics(drawn: Ints) -> Floats:
        largest = np.zeros(len(drawn))
        for event, q in events:
            q = np.clip(q, _CLIP, 1 - _CLIP)
            x = np.column_stack([np.ones(len(q)), logit(q)]) * weight[:, None]
            information = (x * (q * (1 - q))[:, None]).T @ x
            u = ((drawn == event) - q) @ x
            # Where all probabilities are equal there is no slope.
            each = np.einsum("di,ij,dj->d", u, np.linalg.pinv(information, hermitian=True), u)
            largest = np.maximum(largest, each)
        return largest

    value = statistics(labels[None])[0]
    beyond, size = 0, max(_CELLS // p.size, 1)
    for start in range(0, SIMULATIONS, size):
        uniform = rng.random((min(size, SIMULATIONS - start), len(first), 1))[:, units]
        drawn = (uniform > ends).sum(axis=2)
        beyond += int((statistics(drawn) >= value * (1 - 1e-9)).sum())
    return CalibrationTest(float(value), (1 + beyond) / (1 + SIMULATIONS))
