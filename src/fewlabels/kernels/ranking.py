"""AUC and average precision of many label weightings of one ranking at once.

A ranking is a code per item: items of equal score share a code, larger code = larger score.
Weights are summed per code once; everything after that is a cumulative sum over codes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.weighting import loops_for

LOGIT_BINS, _FEWEST_BINS = 4096, 512
_LOGIT_RANGE = 16.0

TOP, _PLACES = 2048, 2**18
"""This many of the highest scores share no bin with others: the path through a bin misses that a
positive among n items counts in its own precision, an error of 1 / (2 n). With many classes there
are fewer, so that all rankings together have _PLACES places (error of average precision 3e-4 with
1,000 classes)."""


def n_places(classes: int) -> tuple[int, int]:
    """How many of the highest scores have a place of their own, and bins of the others."""
    share = min(_PLACES / (classes * TOP), 1)
    bins = max(int(LOGIT_BINS * share), _FEWEST_BINS)
    return bins * TOP // LOGIT_BINS, bins


def dense_codes(scores: Floats | Ints) -> tuple[Ints, int]:
    """One code per distinct score: codes (n,) in ascending order of score, and their number."""
    values, codes = np.unique(scores, return_inverse=True)
    return codes.ravel().astype(np.int64), len(values)


def logit_codes(probabilities: Floats, bins: int = LOGIT_BINS) -> tuple[Ints, int]:
    """Codes in 4096 bins uniform in logit from -16 to 16: the same for any part of the data.

    With average precision interpolated inside a bin the errors are about 1e-6 (AUC) and 1e-5
    (average precision), far below sampling error; bins uniform in probability lose 1e-2.
    """
    tiny = 1 / (1 + np.exp(_LOGIT_RANGE))
    p = np.clip(probabilities, tiny, 1 - tiny)
    position = (np.log(p) - np.log1p(-p) + _LOGIT_RANGE) * (bins / (2 * _LOGIT_RANGE))
    return np.clip(position.astype(np.int64), 0, bins - 1), bins


def logit_edges(bins: int = LOGIT_BINS) -> Floats:
    """Probabilities between the bins of `logit_codes`, (bins + 1,)."""
    edges: Floats = 1 / (1 + np.exp(-np.linspace(-_LOGIT_RANGE, _LOGIT_RANGE, bins + 1)))
    edges[0], edges[-1] = 0.0, 1.0
    return edges


def quantile_codes(
    scores: Floats, bins: int = LOGIT_BINS, times: Floats | None = None
) -> tuple[Ints, int]:
    """Codes for scores of any scale: logit bins of each score's quantile among the scores.

    Every score is there as often as `times` (n,) says, or once.
    """
    codes, size = dense_codes(scores)
    count = np.bincount(codes, times, minlength=size)
    middle = (np.cumsum(count) - 0.5 * count) / count.sum()
    return logit_codes(middle[codes], bins)


def quantile_steps(scores: Floats, bins: int = LOGIT_BINS) -> tuple[Floats, Ints]:
    """Distinct scores (u,) of a sample, ascending, and the codes (u,) of `quantile_codes`."""
    values, first = np.unique(scores, return_index=True)
    return values, quantile_codes(scores, bins)[0][first]


def codes_at(steps: tuple[Floats, Ints], scores: Floats) -> Ints:
    """Codes of any scores by a sample's steps: that of the largest step at or below the score.

    The code is rounded down between steps, so scores between two of them tie with the lower one.
    """
    values, codes = steps
    place = np.searchsorted(values, scores, side="right") - 1
    return codes[np.maximum(place, 0)]


def top_codes(
    scores: Floats, code_others: Callable[[Floats], tuple[Ints, int]], top: int = TOP
) -> tuple[Ints, int]:
    """Codes that tell the highest scores apart, and below them are those `code_others`."""
    codes, size = code_others(scores)
    cut = np.partition(scores, -top)[-top] if len(scores) > top else -np.inf
    highest = np.flatnonzero(scores >= cut)
    highest_codes, count = dense_codes(scores[highest])
    codes[highest] = size + highest_codes
    return codes, size + count


def places(codes: Ints, size: int) -> tuple[Ints, int]:
    """Place (n,) of each code among those that are there, from the highest down; how many are.

    Codes lie below `size`.
    """
    there = np.flatnonzero(np.bincount(codes, minlength=size))[::-1]
    place = np.empty(size, dtype=np.int64)
    place[there] = np.arange(len(there))
    return place[codes], len(there)


def ranked_apart(scores: Floats, above: Bools) -> float:
    """Standard errors by which the scores (n,) of some rank apart from the others (Mann-Whitney).

    NaN are left out; 0 where either side has none.
    """
    known = ~np.isnan(scores)
    m, n = int(above[known].sum()), int((~above[known]).sum())
    if not min(m, n):
        return 0.0
    _, place, count = np.unique(scores[known], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    area = (ranks[above[known]].sum() - m * (m + 1) / 2) / (m * n)
    ties = float((count.astype(float) ** 3 - count).sum()) / ((m + n) * (m + n - 1))
    variance = (m + n + 1 - ties) / (12 * m * n)
    return float(abs(area - 0.5) / np.sqrt(variance)) if variance > 0 else 0.0


def holds_several(scores: Floats, place: Array, size: int) -> Bools:
    """Which places hold more than one score, (size,)."""
    one = np.empty(size)
    one[place] = scores
    out: Bools = np.bincount(place, scores != one[place], minlength=size) > 0
    return out


def group_areas(positive: Floats, total: Floats, ends: Ints, several: Bools, cells: int) -> Floats:
    """Areas of the rankings whose weights lie between `ends` (S + 1), (2, S, D).

    `cells`: how much is done in all, which says whether it is worth loading compiled loops.
    """
    out = np.empty((2, len(ends) - 1, positive.shape[1]))
    loops = loops_for(cells)
    if loops is not None:
        loops.areas(positive, total, ends, several, _SMALL, out)
        return out
    for s, (start, stop) in enumerate(pairwise(ends.tolist())):
        some = slice(start, stop)
        out[:, s] = areas(positive[some], total[some], several=several[some])
    return out


def areas(positive: Floats, total: Floats, *, several: bool | Bools = False) -> Floats:
    """Area under the ROC curve and average precision, (2, D).

    `positive` (G, D) is the weight of the positive class, `total` (G, D) or (G, 1) that of all, per
    code from the highest score down. The first gives ties half credit; the second takes precision
    at the end of each group of ties, as scikit-learn does. Codes that are bins of `several` scores
    (all, or (G,)) have precision integrated along the straight path through the bin.
    """
    if not len(positive):
        return np.full((2, positive.shape[1]), np.nan)
    hits, taken = np.cumsum(positive, axis=0), np.cumsum(total, axis=0)
    positives = hits[-1].copy()
    rest = taken[-1] - positives
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = hits / taken
        if taken[0].min() <= 0:
            precision[~(precision >= 0)] = 0.0  # nothing is taken yet
        step = np.einsum("gd,gd->d", positive, precision)
        bins = np.broadcast_to(several, len(positive))
        if bins.any():
            taken = np.broadcast_to(taken, positive.shape)
            step += _within_bins(positive, total, hits, taken, precision, bins)
        hits -= 0.5 * positive
        pairs = np.einsum("gd,gd->d", total - positive, hits)
        return np.stack([pairs / (positives * rest), step / positives])


_SMALL = 0.125
"""A bin of at most this share of what lies above it goes by Simpson's rule (error 1e-6)."""


def _within_bins(
    positive: Floats, total: Floats, hits: Floats, taken: Floats, precision: Floats, bins: Bools
) -> Floats:
    """What integration adds to precision at the end of bins, (D,).

    Through a bin precision is (c + x t) / (N + x m) for x in 0..1, with c and N above the bin and t
    and m in it: times t and integrated, t (t/m + (c - N t/m) log(1 + m/N) / m).
    """
    above = taken - total
    large = np.flatnonzero(bins & (total > _SMALL * above).any(axis=1))
    small = bins.copy()
    small[large] = False
    t, c, n, m = (
        positive[small],
        hits[small],
        taken[small],
        np.broadcast_to(total, positive.shape)[small],
    )
    last = precision[small]
    middle = (c - 0.5 * t) / (n - 0.5 * m)
    first = (c - t) / (n - m)
    moved = np.where(m > 0, (first + 4 * middle + last) / 6 - last, 0.0)
    out: Floats = np.einsum("gd,gd->d", t, moved)
    t, c, n, m = (
        positive[large],
        hits[large],
        taken[large],
        np.broadcast_to(total, positive.shape)[large],
    )
    rate, before = t / m, n - m
    bend = (c - t - before * rate) * np.log1p(m / before) / m
    bend[before <= 0] = 0.0
    return out + np.where(m > 0, t * (rate + bend - precision[large]), 0.0).sum(axis=0)
