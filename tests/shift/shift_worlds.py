"""Made-up classifiers whose labeled and unlabeled items differ in a known way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

import fewlabels as fl


def classified(
    rng: np.random.Generator, n: int, frequencies: Any, models: int = 3, strength: float = 2.0
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (n, M, K) and classes (n,) of items with these class frequencies."""
    k = len(frequencies)
    truth = rng.choice(k, n, p=frequencies)
    logits = strength * np.eye(k)[truth][:, None, :] + rng.normal(size=(n, 1, k))
    own = rng.normal(size=(n, models, k)) * np.linspace(0.5, 1.5, models)[:, None]
    return softmax(logits + own, axis=2), truth


@dataclass(frozen=True, eq=False)
class ShiftedWorld:
    """Labeled items first; `truth` (n,) of all."""

    probabilities: np.ndarray
    truth: np.ndarray
    n_labeled: int

    @property
    def shown(self) -> np.ndarray:
        """The labels that are known, (n,); -1 of other items."""
        return np.where(np.arange(len(self.truth)) < self.n_labeled, self.truth, -1)

    def predictions(self, **options: Any) -> fl.Predictions:
        """The world as it is given to an estimator."""
        return fl.Predictions(self.probabilities, self.shown, **options)


def label_shifted(
    seed: int, n_labeled: int, source: Any, target: Any, n_unlabeled: int = 600, models: int = 3
) -> ShiftedWorld:
    """Class frequencies differ, the scores within a class do not."""
    rng = np.random.default_rng([seed, n_labeled])
    mine = classified(rng, n_labeled, source, models)
    others = classified(rng, n_unlabeled, target, models)
    p, y = (np.concatenate(pair) for pair in zip(mine, others, strict=True))
    return ShiftedWorld(p, y, n_labeled)


def confident_labeled(
    seed: int, n_labeled: int, frequencies: Any, n_unlabeled: int = 600, strength: float = 6.0
) -> ShiftedWorld:
    """Items are labeled where the averaged classifier is sure."""
    rng = np.random.default_rng([seed, n_labeled, 1])
    p, y = classified(rng, n_labeled + n_unlabeled, frequencies)
    weight = np.exp(strength * p.mean(axis=1).max(axis=1))
    chosen = rng.choice(len(y), n_labeled, replace=False, p=weight / weight.sum())
    order = np.concatenate([chosen, np.setdiff1d(np.arange(len(y)), chosen)])
    return ShiftedWorld(p[order], y[order], n_labeled)
