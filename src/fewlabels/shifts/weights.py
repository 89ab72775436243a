"""Importance weights of labeled items: by scores (covariate shift), by class (label shift)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.kernels.importance import effective_size
from fewlabels.kernels.multinomial import fit_map
from fewlabels.kernels.simplex import centred_log, clip, linear_pool, mean_probability, softmax
from fewlabels.predictions import Predictions
from fewlabels.shifts.sampling_test import Split, beliefs, disagreement

_PRIOR_SDS = (0.03, 0.1, 0.3, 1.0, 3.0)
_FOLDS = 5
_MOST = 5000
"""Unlabeled items that the ratio is learned from; the labeled ones are the fewer, and settle it."""


@dataclass(frozen=True, eq=False)
class ImportanceWeights:
    """Weights of the labeled items, mean 1, in the order of the items; 1 for all others, (n,).

    `effective` is how many of them equal weights would be worth, (sum w)^2 / sum w^2, and `capped`
    how many reached the largest weight that is allowed.
    """

    weights: Floats
    n_labeled: int
    effective: float
    capped: int


def importance(raw: Floats, labeled: Bools) -> ImportanceWeights:
    """Weights (n,) of which those of the labeled items are capped and brought to mean 1.

    The cap is sqrt(n_l) times the mean, which lets the bias of capping vanish as labels grow.
    Source: Ionides (2008), truncated importance sampling; Kish (1965), effective sample size.
    """
    out = np.ones(len(labeled))
    w = raw[labeled]
    if not len(w):
        return ImportanceWeights(out, 0, 0.0, 0)
    if w.sum() <= 0:  # of no use at all: every labeled item is of a class that is not there
        w = np.ones(len(w))
    cap = np.sqrt(len(w)) * w.mean()
    capped = int((w > cap).sum())
    w = np.minimum(w, cap)
    w = w / w.mean()
    out[labeled] = w
    return ImportanceWeights(out, len(w), effective_size(w), capped)


def covariate_weights(predictions: Predictions) -> ImportanceWeights:
    """Density ratio p(scores | unlabeled) / p(scores | labeled) at the labeled items.

    By a logistic regression that tells labeled from unlabeled items by the pooled scores, their
    confidence and the classifiers' disagreement (Shimodaira 2000 for the weights; Bickel et al.
    2007 for the classifier). How strongly its slopes are held to 0 is settled by the evidence, so
    that without a shift all weights are near 1. An item's weight comes from fits without it, for
    which two unlabeled items are needed; with fewer, all weights are 1.
    """
    labeled, unlabeled = Split.of(predictions)
    order = np.argsort(predictions.keys)
    unlabeled_rows = order[unlabeled[order]][:_MOST]
    labeled_rows = order[labeled[order]]
    raw = np.ones(predictions.n_items)
    if len(unlabeled_rows) < 2:
        return importance(raw, labeled)
    features = _features(beliefs(predictions))
    fold = np.full(predictions.n_items, -1)
    fold[labeled_rows] = np.arange(len(labeled_rows)) % _FOLDS
    fold[unlabeled_rows] = np.arange(len(unlabeled_rows)) % _FOLDS
    for number in range(min(_FOLDS, len(labeled_rows))):
        own = labeled_rows[fold[labeled_rows] == number]
        rest = labeled_rows[fold[labeled_rows] != number]
        background = unlabeled_rows[fold[unlabeled_rows] != number]
        raw[own] = _ratio(features[rest], features[background], features[own])
    return importance(raw, labeled)


def _features(p: Floats) -> Floats:
    """Pooled log ratios, confidence of the pool, disagreement; standardised, (n, d)."""
    pool = linear_pool(p, mean_probability(p))
    centred = centred_log(clip(pool))
    logs = centred[:, 1:] if centred.shape[1] == 2 else centred  # of two the one says it all
    apart = disagreement(centred_log(clip(p)))
    out = np.column_stack([logs, pool.max(axis=1), apart])
    spread = out.std(axis=0)
    out = (out - out.mean(axis=0))[:, spread > 1e-12] / spread[spread > 1e-12]
    return out


def _ratio(labeled: Floats, unlabeled: Floats, at: Floats) -> Floats:
    """p(x | unlabeled) / p(x | labeled) at some places, averaged over the priors by evidence."""
    x = np.concatenate([labeled, unlabeled])
    one = np.column_stack([np.ones(len(x)), x])
    design = np.stack([np.zeros_like(one), one], axis=1)
    evidence = np.full((len(x), 2), -np.inf)
    evidence[: len(labeled), 1] = 0.0
    evidence[len(labeled) :, 0] = 0.0
    base = np.log(max(len(labeled), 1) / len(unlabeled))
    log_ratios, evidences = [], []
    for sd in _PRIOR_SDS:
        sds = np.array([1.0, *np.full(x.shape[1], sd)])
        mode = fit_map(design, evidence, np.array([base, *np.zeros(x.shape[1])]), sds**-2.0)
        log_ratios.append(base - mode.coefficients[0] - at @ mode.coefficients[1:])
        evidences.append(mode.log_evidence)
    share = softmax(np.array(evidences), axis=0)
    out: Floats = np.exp(share @ np.array(log_ratios))
    return out


def class_importance(predictions: Predictions, frequency: Floats) -> ImportanceWeights:
    """Weights of the labeled items by class: its frequency (K,) over that among the labels."""
    labeled, labels = Split.of(predictions).labeled, predictions.labels
    of_class = labeled & (labels >= 0)
    counts = np.bincount(labels[of_class], minlength=predictions.n_classes)
    share = np.maximum(counts, 1) / max(counts.sum(), 1)
    by_class: Floats = frequency / share
    raw = np.ones(predictions.n_items)
    raw[of_class] = by_class[labels[of_class]]
    return importance(raw, labeled)
