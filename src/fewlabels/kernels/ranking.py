"""AUC and average precision of many label weightings of one ranking at once.

A ranking is a code per item: items of equal score share a code, larger code = larger score.
Weights are summed per code once; everything after that is a cumulative sum over codes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewlabels.kernels.arrays import Array, Bools, Floats, Ints

LOGIT_BINS = 4096
_LOGIT_RANGE = 16.0


def dense_codes(scores: Floats) -> tuple[Ints, int]:
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


def auc(own: Floats, other: Floats) -> Floats:
    """Area under the ROC curve with half credit for ties, shape (D,).

    Parameters
    ----------
    own, other
        Weight of the positive and the negative class per code, shape (G, D).
    """
    below = np.cumsum(other, axis=0)
    total = below[-1].copy()
    below -= 0.5 * other
    pairs = np.einsum("gd,gd->d", own, below)
    with np.errstate(invalid="ignore", divide="ignore"):
        return pairs / (own.sum(axis=0) * total)


def average_precision(own: Floats, other: Floats, *, interpolate: bool | Bools = False) -> Floats:
    """Average precision: sum over codes of (recall step) x (precision), shape (D,).

    Precision is taken at the end of each group of ties, as scikit-learn does. With `interpolate`
    a code is a bin, and precision is integrated along the straight path through the bin; or only
    those codes are that it marks, (G,), or (G, D) where that differs.
    """
    hits = np.cumsum(own[::-1], axis=0)[::-1]
    taken = np.cumsum((own + other)[::-1], axis=0)[::-1]
    positives = hits[0].copy()
    mark, area = np.asarray(interpolate), np.zeros(own.shape[1])
    bins = np.broadcast_to(mark if mark.ndim < 2 else mark.any(axis=1), len(own))
    if bins.any():
        some = slice(None) if bins.all() else bins
        of = own[some], other[some], hits[some], taken[some]
        piece = _integrated_precision(*of)
        if mark.ndim == 2:
            step = of[0] * np.divide(of[2], of[3], out=np.zeros_like(of[2]), where=of[3] > 0)
            piece = np.where(mark[some], piece, step)
        area += piece.sum(axis=0)
    if not bins.all():
        exact = slice(None) if not bins.any() else ~bins
        own, hits, taken = own[exact], hits[exact], taken[exact]
        precision = np.divide(hits, taken, out=taken, where=taken > 0)  # 0 where nothing is taken
        area += np.einsum("gd,gd->d", own, precision)
    with np.errstate(invalid="ignore", divide="ignore"):
        return area / positives


def _integrated_precision(own: Floats, other: Floats, hits: Floats, taken: Floats) -> Floats:
    # Through a bin: (c + x t) / (N + x m) for x in 0..1, with c and N before the bin and t and m in
    # it; times t and integrated: t (t/m + (c - N t/m) log(1 + m/N) / m).
    mass = own + other
    before = taken - mass
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = own / mass
        bend = (hits - own - before * rate) * np.log1p(mass / before) / mass
        bend[before <= 0] = 0.0
        piece = own * (rate + bend)
    result: Floats = np.where(mass > 0, piece, 0.0)
    return result


def of_hard_labels(
    codes: Ints, size: int, draw: Ints, item: Ints, n_draws: int
) -> tuple[Floats, Floats]:
    """AUC and average precision of unweighted hard labels, each (D,).

    Only the positives are visited: their codes are sorted within each draw, so the cost is
    that of P log P instead of passes over all n items. The numbers are those of `auc` and
    `average_precision` on the same labels, to rounding.

    Parameters
    ----------
    codes
        Code of each item, shape (n,), below `size`.
    draw, item
        Draw and item of every positive label, ordered by draw.
    """
    n = len(codes)
    count = np.bincount(codes, minlength=size)
    at_or_above = np.cumsum(count[::-1])[::-1]
    below = n - at_or_above
    positives = np.bincount(draw, minlength=n_draws)
    # Descending code within each draw: key = draw * size + (size - 1 - code).
    kind: Any = np.int32 if n_draws * size < 2**31 else np.int64
    key: Array = (draw * size).astype(kind) + (size - 1 - codes).astype(kind)[item]
    key.sort()
    last = np.flatnonzero(np.append(key[1:] != key[:-1], len(key) > 0))
    ends = key[last].astype(np.int64)
    group_draw = ends // size
    code = size - 1 - (ends - group_draw * size)
    in_group = np.diff(last, prepend=-1)
    hits = last + 1 - (np.cumsum(positives) - positives)[group_draw]
    area = np.bincount(group_draw, in_group * hits / at_or_above[code], minlength=n_draws)
    # All pairs of a positive with an item below it or tied with it; those among positives sum to
    # P^2 / 2 whatever their order.
    halves: Floats = below + 0.5 * count
    weighted: Array = np.bincount(group_draw, in_group * halves[code], minlength=n_draws)
    pairs: Floats = weighted - 0.5 * positives.astype(np.float64) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return pairs / (positives * (n - positives)), area / positives
