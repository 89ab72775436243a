"""How good, how calibrated and how alike the classifiers of a set are."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from fewlabels.bench.world import measured
from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.kernels.simplex import additive_log_ratio, clip
from fewlabels.metrics.registry import resolve
from fewlabels.predictions import Predictions


def quality(predictions: Predictions) -> dict[str, float]:
    """Mean accuracy and mean calibration error over the classifiers, by all labels."""
    accuracy, ece = _mean(measured(predictions, resolve(["accuracy", "ece"]))).tolist()
    return {"mean_accuracy": accuracy, "mean_ece": ece}


def likeness(predictions: Predictions) -> dict[tuple[str, str], dict[str, float]]:
    """Of every pair of classifiers, how their scores and their mistakes go together.

    score_correlation: of their log-ratios; score_correlation_within_class: the same after each
    class's mean is taken off (what is left when the label is known); error_correlation: phi of
    being wrong; agreement: share of items with the same hard prediction. With more than two
    classes correlations are means over the log-ratios.
    """
    p = predictions.probabilities
    assert p is not None
    present = predictions.has_probabilities
    wrong = (predictions.hard != predictions.labels[:, None]).astype(float)
    found = {}
    for a, b in combinations(range(predictions.n_models), 2):
        both = present[:, a] & present[:, b]
        scores = [additive_log_ratio(clip(p[both, j][:, None])) for j in (a, b)]
        labels = predictions.labels[both]
        within = [_within(s, [labels == k for k in range(predictions.n_classes)]) for s in scores]
        found[predictions.models[a], predictions.models[b]] = {
            "score_correlation": _correlation(*scores),
            "score_correlation_within_class": _correlation(*within),
            "error_correlation": _correlation(wrong[both, a][:, None], wrong[both, b][:, None]),
            "agreement": float(_mean(predictions.hard[both, a] == predictions.hard[both, b])),
        }
    return found


def _within(scores: Floats, members: list[Bools]) -> Floats:
    """Scores without the mean of their class."""
    out = scores.copy()
    for rows in members:
        if rows.any():
            out[rows] -= scores[rows].mean(axis=0)
    return out


def _correlation(a: Floats, b: Floats) -> float:
    """Mean over columns of Pearson's correlation; NaN where one side never changes."""
    if len(a) < 2:
        return float("nan")
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    scale = np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0))
    moves = scale > 0
    if not moves.any():
        return float("nan")
    return float(((a * b).sum(axis=0)[moves] / scale[moves]).mean())


def _mean(values: Floats | Bools) -> Floats:
    """Mean over the first axis of what is known."""
    values = np.asarray(values, dtype=float)
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    out: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return out
