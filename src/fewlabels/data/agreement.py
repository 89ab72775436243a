"""Whether two columns go together: agreement beyond chance, ranks, Cramer's V."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fewlabels.kernels import ranking
from fewlabels.kernels.arrays import Array, Floats

if TYPE_CHECKING:
    from fewlabels.predictions import Predictions

_LEAST_TOGETHER = 10
"""Rows that two columns must share before their agreement says anything."""

_TOGETHER = 0.4
"""Cramer's V, corrected for its bias (Bergsma 2013), from which two columns go together."""

_APART = 3.0
"""Standard errors by which two columns go together rather than by chance."""

_ALIKE = 0.2
"""Rank correlation of two scores from which they may be of one thing."""


def kappa(one: Array, other: Array, k: int) -> float | None:
    """Cohen's kappa of two columns of k classes (-1: none); None on too few rows."""
    both = (one >= 0) & (other >= 0)
    if both.sum() < _LEAST_TOGETHER:
        return None
    a, b = (np.bincount(x[both], minlength=k) / both.sum() for x in (one, other))
    chance = float(a @ b)
    if chance >= 1:
        return None
    return (float((one[both] == other[both]).mean()) - chance) / (1 - chance)


def no_better_than_chance(said: Array, labels: Array) -> bool:
    """Whether two columns of classes (-1: none) surely agree no better than chance, or hardly."""
    # So it is where the upper 95% limit of kappa, whose deviation is sqrt(a (1 - a) / n) / (1 - c)
    # at agreement a and chance c, is that of no agreement to speak of.
    both = (said >= 0) & (labels >= 0)
    one, other, n = said[both], labels[both], int(both.sum())
    k = int(max(one.max(initial=0), other.max(initial=0))) + 1
    value = kappa(one, other, k)
    if value is None:
        return False
    chance = float(np.bincount(one, minlength=k) @ np.bincount(other, minlength=k)) / n**2
    agreed = float((one == other).mean())
    return value + 1.64 * float(np.sqrt(agreed * (1 - agreed) / n)) / (1 - chance) <= _NO_USE


def ranks_no_better_than_chance(scores: Floats, labels: Array) -> bool:
    """Whether scores surely rank one of two classes (0, 1; -1: none) hardly above the other."""
    # As `no_better_than_chance`, with 2 AUC - 1 and the Mann-Whitney deviation in place of kappa.
    known = (labels >= 0) & ~np.isnan(scores)
    m, n = int((known & (labels == 1)).sum()), int((known & (labels == 0)).sum())
    if min(m, n) < 2 or m + n < _LEAST_TOGETHER:
        return False
    gini = 2 * order_auc(scores, known & (labels == 1), known & (labels == 0)) - 1
    return gini + 1.64 * float(np.sqrt((m + n + 1) / (3 * m * n))) <= _NO_USE


def useless(predictions: Predictions) -> list[str]:
    """Classifiers that the known labels surely put hardly above chance, or below."""
    found, rows = list[str](), np.flatnonzero(predictions.labeled)
    if predictions.is_sparse or not len(rows):
        return found
    labels, k = predictions.labels[rows], predictions.n_classes
    hard, shares = predictions.gives("hard"), predictions.gives("probabilities")
    for j, model in enumerate(predictions.models):
        numbers = predictions.probabilities if shares[j] else predictions.scores
        if k == 2 and predictions.gives("ranking")[j] and numbers is not None:
            of_item = numbers[rows, j, 1] if shares[j] else numbers[rows, j]
            # Scores are larger for the positive class, whichever that is.
            above = predictions.classes[1] if shares[j] else predictions.positive
            is_above = labels == predictions.classes.index(above)
            found += [model] * ranks_no_better_than_chance(of_item, is_above.astype(np.int64))
        elif hard[j]:
            said = predictions.hard_of(rows, j).astype(np.int64)
            found += [model] * no_better_than_chance(said, labels)
    return found


_NO_USE = 0.2
"""Kappa, or 2 AUC - 1, up to which agreement is not that of a classifier with its labels."""


def agreement_within(codes: Array, groups: Array) -> tuple[float, float]:
    """How often two rows of a group have one code, and two rows of all by chance."""
    k = int(codes.max()) + 1
    seen = np.unique(groups.astype(np.int64) * k + codes, return_counts=True)[1]
    sizes = np.unique(groups, return_counts=True)[1]
    share = np.bincount(codes, minlength=k) / len(codes)
    pairs = int((sizes * (sizes - 1)).sum())
    return float((seen * (seen - 1)).sum() / max(pairs, 1)), float(share @ share)


def rank_shares(values: Floats) -> Floats:
    """Mid-rank of each value among those present, in (0, 1), shape (n,); NaN stays NaN."""
    out, present = np.full(len(values), np.nan), ~np.isnan(values)
    if present.any():
        codes, size = ranking.dense_codes(values[present])
        count = np.bincount(codes, minlength=size)
        out[present] = ((np.cumsum(count) - 0.5 * count) / present.sum())[codes]
    return out


def order_auc(values: Floats, positive: Array, negative: Array) -> float:
    """AUC of the scores (n,): the mean ranks of the two, as shares, differ by it less one half."""
    own, other = (values[of & ~np.isnan(values)] for of in (positive, negative))
    if not (len(own) and len(other)):
        return float("nan")
    shares = rank_shares(np.concatenate([own, other]))
    return float(0.5 + shares[: len(own)].mean() - shares[len(own) :].mean())


def ranked_apart(numbers: Array, labels: Array) -> float | None:
    """By how many standard errors one class's numbers rank above the other's (Mann-Whitney)."""
    known = (labels >= 0) & ~np.isnan(numbers)
    above = labels[known] == 1
    m, n = int(above.sum()), int((~above).sum())
    if min(m, n) < 2 or m + n < _LEAST_TOGETHER:
        return None
    return ranking.ranked_apart(numbers[known], above)


def no_labels(scores: Sequence[Floats] | Floats) -> str | None:
    """Why nothing tells how good scores (M, n) are without labels; None where they rank alike."""
    # Scores of one thing rank the items alike; numbers that do not are of several things.
    ranks = np.stack([ranking.dense_codes(np.nan_to_num(one))[0] for one in scores]).astype(float)
    if len(ranks) > 1 and (ranks.std(axis=1) > 0).all():
        alike = np.corrcoef(ranks) - np.eye(len(ranks))
        if (alike.max(axis=1) > _ALIKE).all():
            return None
    what = "one column of scores" if len(ranks) == 1 else "scores that do not rank the items alike"
    return f"it has no labels, and {what}, so that nothing tells how good they are"


def cut_apart(numbers: Array, predicted: Array, positive: int) -> bool:
    """Whether two predicted classes (-1: none) are numbers below and above some value."""
    predicted = np.where(np.isnan(numbers), -1, predicted)
    above, below = numbers[predicted == positive], numbers[predicted == 1 - positive]
    enough = min(len(above), len(below)) > 1 and len(above) + len(below) >= _LEAST_TOGETHER
    return bool(enough and below.max() <= above.min())


def go_together(one: Array, other: Array) -> bool:
    """Whether codes (0 is an empty cell) go with known codes (-1 unknown) beyond chance."""
    known = other >= 0
    n, k = int(known.sum()), int(other.max(initial=0)) + 1
    seen = np.bincount(one[known] * k + other[known], minlength=(one.max(initial=0) + 1) * k)
    table = seen.reshape(-1, k)
    table = table[table.any(1)][:, table.any(0)]
    if n < _LEAST_TOGETHER or min(table.shape) < 2:
        return False
    chance = table.sum(1, keepdims=True) * table.sum(0) / n
    squared = float(((table - chance) ** 2 / chance).sum())
    sizes = np.array(table.shape)
    free = float((sizes - 1).prod())
    most = float((sizes - (sizes - 1) ** 2 / (n - 1)).min()) - 1
    beyond = max(squared - free * n / (n - 1), 0) / n
    return beyond > _TOGETHER**2 * most and squared > free + _APART * np.sqrt(2 * free)
