"""What the classifiers say as columns of numbers that can be compared with each other."""

from __future__ import annotations

import numpy as np

from fewlabels.kernels.arrays import Array, Floats
from fewlabels.kernels.ranking import auc, dense_codes
from fewlabels.predictions import Predictions

_MOST_NUMBERS = 200_000
"""Rows times classes that comparisons look at; evenly spread over the file."""


def scores(predictions: Predictions) -> Floats:
    """Score of each class by each classifier, shape (n, M, C); NaN where it gives none.

    Two classes need one score, that of the positive class (C = 1): its probability, else the raw
    score, else the vote. More classes have C = K, and a vote counts as 0 and 1.
    """
    k = predictions.n_classes
    hard = predictions.hard
    out: Floats = (hard[:, :, None] == np.arange(k)).astype(np.float64)
    out[hard < 0] = np.nan
    if k == 2:
        out = out[:, :, 1:]
    if predictions.scores is not None:
        given = predictions.scores[:, :, None]
        # A classifier ranks all items by one thing: scores wherever it has any.
        out = np.where(np.isnan(given).all(axis=0), out, given)
    if predictions.probabilities is not None:
        given = predictions.probabilities if k > 2 else predictions.probabilities[:, :, 1:]
        out = np.where(np.isnan(given).all(axis=0), out, given)
    return out


def sample_rows(n: int, classes: int) -> Array:
    """Rows to look at where all of them would take long, evenly spread."""
    most = max(_MOST_NUMBERS // classes, 1000)
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)


def correlations(values: Floats) -> Floats:
    """Correlation of every two columns over the rows that both have, shape (M, M)."""
    present = ~np.isnan(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = np.nansum(values, axis=0) / present.sum(axis=0)
    x, w = np.nan_to_num(values - middle), present.astype(np.float64)
    size = w.T @ w
    with np.errstate(invalid="ignore", divide="ignore"):
        total = x.T @ w
        square = (x**2).T @ w - total**2 / size
        cross = x.T @ x - total * total.T / size
        # Rounding leaves a constant column with a tiny variance.
        square[square < 1e-20 * np.maximum(size, 1)] = np.nan
        result: Floats = cross / np.sqrt(square * square.T)
    return result


def rank_shares(values: Floats) -> Floats:
    """Mid-rank of each value among those present, in (0, 1), shape (n,); NaN stays NaN."""
    out = np.full(len(values), np.nan)
    present = ~np.isnan(values)
    if present.any():
        codes, size = dense_codes(values[present])
        count = np.bincount(codes, minlength=size)
        out[present] = ((np.cumsum(count) - 0.5 * count) / present.sum())[codes]
    return out


def order_auc(values: Floats, positive: Array, negative: Array) -> float:
    """AUC of the scores, shape (n,), on the items with a score; NaN where a class has none."""
    present = ~np.isnan(values)
    own, other = positive & present, negative & present
    if not (own.any() and other.any()):
        return float("nan")
    codes, size = dense_codes(values[present])
    weights: list[Floats] = [
        np.bincount(codes, chosen[present], minlength=size).astype(np.float64)[:, None]
        for chosen in (own, other)
    ]
    return float(auc(weights[0], weights[1])[0])
