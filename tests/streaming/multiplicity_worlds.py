"""Votes with many equal items, item by item and as rows that stand for several of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import fewlabels as fl


def votes_of(
    n: int = 600,
    errors: tuple[float, ...] = (0.1, 0.2, 0.15, 0.3),
    n_classes: int = 2,
    missing: float = 0.1,
    labeled: int = 40,
    seed: int = 0,
    **columns: Any,
) -> fl.Predictions:
    """Votes with these error rates; a random part of the items has its label."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, n_classes + 1)
    truth = rng.choice(n_classes, size=n, p=shares / shares.sum())
    off = rng.integers(1, n_classes, size=(n, len(errors)))
    wrong = rng.random(off.shape) < errors
    votes = np.where(wrong, (truth[:, None] + off) % n_classes, truth[:, None])
    votes[rng.random(votes.shape) < missing] = -1
    labels = np.where(rng.permutation(n) < labeled, truth, -1)
    return fl.Predictions(votes=votes, labels=labels, classes=list(range(n_classes)), **columns)


def scored(n: int = 600, labeled: int = 60, seed: int = 0, **columns: Any) -> fl.Predictions:
    """Probabilities of two classifiers on a coarse grid, so that many items are equal."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(int)
    logit = rng.normal(3 * truth[:, None] - 1.5, 1.5, (n, 2))
    p = np.round(1 / (1 + np.exp(-logit)), 1).clip(0.03, 0.97)
    labels = np.where(rng.permutation(n) < labeled, truth, -1)
    return fl.Predictions(p, labels, **columns)


def compressed(predictions: fl.Predictions) -> fl.Predictions:
    """One row per distinct item, with how many items it stands for."""
    columns = [predictions.labels.astype(str)]
    for block in (predictions.probabilities, predictions.votes, predictions.scores):
        if block is not None:
            columns += list(block.reshape(len(block), -1).T.astype(str))
    columns += [group.astype(str) for group in predictions.groups.values()]
    if predictions.domain is not None:
        columns.append(predictions.domain.astype(str))
    columns.append(predictions.weight.astype(str))
    _, first, times = np.unique(
        np.stack(columns, axis=1), axis=0, return_index=True, return_counts=True
    )
    order = np.argsort(first)
    return predictions.take(first[order]).with_multiplicity(times[order].astype(float))
