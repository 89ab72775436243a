"""Histograms of confidences, from which the quantiles of all rows follow."""

from __future__ import annotations

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.ranking import logit_codes, logit_edges
from fewlabels.metrics.base import ScoreView
from fewlabels.predictions import Predictions

BINS = 2**14
_GRID = 10_001


def histograms(rows: Predictions) -> Ints:
    """Rows by P(class 1), or that of the likeliest class, for every classifier, (M, BINS)."""
    out = np.zeros((rows.n_models, BINS), dtype=np.int64)
    if rows.probabilities is None:
        return out
    for j in range(rows.n_models):
        p = rows.probabilities[rows.has_probabilities[:, j], j]
        confidence = p[:, 1] if rows.n_classes == 2 else p.max(axis=1)
        out[j] = np.bincount(logit_codes(confidence, BINS)[0], minlength=BINS)
    return out


def as_view(counts: Ints) -> ScoreView | None:
    """Scores with the quantiles of a histogram (BINS,), as of two classes; None if it is empty."""
    total = counts.sum()
    if not total:
        return None
    edges = logit_edges(BINS)
    reached = np.concatenate([[0], np.cumsum(counts)]) / total
    full = np.flatnonzero(np.diff(reached) > 0)
    # Between full bins the quantile jumps; within one it moves evenly.
    place = np.searchsorted(reached[full + 1], np.linspace(0, 1, _GRID)).clip(max=len(full) - 1)
    start, share = reached[full[place]], np.diff(reached)[full[place]]
    inside = np.clip((np.linspace(0, 1, _GRID) - start) / share, 0, 1)
    score: Floats = edges[full[place]] * (1 - inside) + edges[full[place] + 1] * inside
    return ScoreView(2, np.column_stack([1 - score, score]))
