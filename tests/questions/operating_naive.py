"""Curves and thresholds by loops over items, and label models that say what a test tells them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import fewlabels as fl
from fewlabels.evaluation.draws import POPULATION, LabelWeights
from fewlabels.methods.base import FittedLabelModel, LabelModel
from fewlabels.posterior import LabelPosterior, draw_labels
from fewlabels.questions.question import OneClassifier

GRID = [(g + 0.5) / 100 for g in range(100)]
NEAR = 1e-12


@dataclass(frozen=True)
class Table:
    """Parameter draws that are a table, (n, K, D)."""

    chances: np.ndarray

    @property
    def size(self) -> int:
        return self.chances.shape[2]

    def prepare(self) -> None:
        pass

    def block(self, index, rows):
        return self.chances[rows][:, :, index]


@dataclass(frozen=True)
class Told(LabelModel):
    """A label model whose posterior is made by a function of the predictions."""

    make: Callable[[fl.Predictions], LabelPosterior]

    def fit(self, predictions, rng):
        return _Fitted(self.make)


@dataclass(frozen=True)
class _Fitted(FittedLabelModel):
    make: Callable[[fl.Predictions], LabelPosterior]

    def posterior(self, predictions):
        return self.make(predictions)


def table(predictions: fl.Predictions, draws: int, seed: int, sharpness: float = 1.0) -> Table:
    """Some parameter draws that keep known labels."""
    rng = np.random.default_rng(seed)
    order = np.argsort(predictions.keys)  # whatever the order of the rows, an item keeps its own
    n, k = predictions.n_items, predictions.n_classes
    chances = np.empty((n, k, draws))
    chances[order] = rng.dirichlet(np.full(k, sharpness), (n, draws)).transpose(0, 2, 1)
    rows = np.flatnonzero(predictions.labeled)
    chances[rows] = 0.0
    chances[rows, predictions.labels[rows]] = 1.0
    return Table(chances)


def told(draws: int = 30, seed: int = 0, interval_draws: int | None = None, **fields: Any) -> Told:
    """A posterior of random parameter draws; `interval_draws`: so many others for the intervals."""

    def make(predictions: fl.Predictions) -> LabelPosterior:
        parameters = table(predictions, draws, seed)
        other = (
            None if interval_draws is None else table(predictions, interval_draws, seed + 1, 0.5)
        )
        return LabelPosterior(
            parameters.chances.mean(axis=2),
            parameters,
            predictions.keys,
            salt=seed,
            interval_parameters=other,
            **fields,
        )

    return Told(make)


def question_of(predictions: fl.Predictions, method: Any, estimand: str) -> OneClassifier:
    """What is asked where nothing else is said."""
    return OneClassifier.from_arguments(
        predictions, None, None, method, None, level=0.9, estimand=estimand,
        random_state=0, workers=None, progress=None,
    )  # fmt: skip


def random_world(seed: int, n: int = 40, *, scores: bool = False) -> fl.Predictions:
    """Ties, sampling weights with a zero, missing scores, some labels."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.4
    s = np.round(1 / (1 + np.exp(-rng.normal(2.0 * truth - 1, 1.0))), 1)
    s = (s - 0.5) * 7 if scores else s
    s[rng.choice(n, 4, replace=False)] = np.nan
    weight = rng.choice([0.0, 0.5, 1.0, 2.5], n, p=[0.1, 0.3, 0.3, 0.3])
    labels = np.where(rng.random(n) < 0.3, truth, -1)
    given = {"scores": s[:, None]} if scores else {"probabilities": s[:, None]}
    return fl.Predictions(**given, labels=labels, weight=weight, models=["a"])


def label_weights(q: OneClassifier, size: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the items that count, and the weight of (not positive, positive), draw by draw.

    Shapes (n,) and (n, 2, size). Of the bootstrap two more items follow, above and below all
    thresholds: one of them is the pseudo-observation, whose mass is not on any other.
    """
    rows = np.flatnonzero(~np.isnan(q.scores) & (q.predictions.weight > 0))
    rows = rows[q.posterior.speaks_of(rows)]
    posterior, out = q.posterior, np.zeros((len(rows), 2, size))
    own = LabelWeights(q.predictions, posterior, rows, rows[:0], size)
    for d in range(size):
        index = np.array([d])
        if kind == "bootstrap":
            drawn = own.drawn(POPULATION, index)
            y = np.broadcast_to(drawn.labels, (len(rows), 1))[:, 0]
            w = np.eye(q.predictions.n_classes)[y] * drawn.rows
        else:
            interval_draws = posterior.interval_parameters if kind == "interval" else None
            parameters = interval_draws or posterior.parameters
            p = parameters.block(index % parameters.size, rows)
            y = draw_labels(p, q.predictions.keys[rows], index, posterior.salt)[:, 0]
            y = np.where(q.predictions.labels[rows] >= 0, q.predictions.labels[rows], y)
            w = np.eye(q.predictions.n_classes)[y] * q.predictions.weight[rows, None]
        out[:, 1, d] = w[:, q.positive]
        out[:, 0, d] = w.sum(axis=1) - w[:, q.positive]
    if kind != "bootstrap":
        return q.scores[rows], out
    out = np.concatenate([out, np.zeros((2, 2, size))])
    unseen = own.placed(POPULATION, np.arange(size))
    if unseen is not None:
        for _, d, called, mass, _ in zip(*unseen, strict=True):
            rest = mass.sum() - mass[q.positive]
            out[len(rows) + (called != q.positive), :, d] = rest, mass[q.positive]
    return np.append(q.scores[rows], [np.inf, -np.inf]), out


def counts(scores: np.ndarray, w: np.ndarray) -> list[tuple[float, float, float]]:
    """Threshold, TP, FP of one draw (n, 2), from the highest threshold down."""
    out = []
    for t in sorted(set(scores[np.isfinite(scores)].tolist()), reverse=True):
        above = scores >= t
        out.append((t, w[above, 1].sum(), w[above, 0].sum()))
    return out


def precision_at_recall(scores: np.ndarray, w: np.ndarray) -> list[float] | None:
    """One draw's precision at each recall of the grid; None without a positive."""
    positives = w[:, 1].sum()
    if positives <= 0:
        return None
    every = [*counts(scores, w), (-np.inf, positives, w[:, 0].sum())]
    return [next(tp / (tp + fp) for _, tp, fp in every if tp / positives >= r - NEAR) for r in GRID]


def tpr_at_fpr(scores: np.ndarray, w: np.ndarray) -> list[float] | None:
    """One draw's ROC curve on the grid, on straight lines."""
    negatives, positives = w.sum(axis=0)
    if positives <= 0 or negatives <= 0:
        return None
    path = [(0.0, 0.0), *((fp / negatives, tp / positives) for _, tp, fp in counts(scores, w))]
    path.append((1.0, 1.0))
    out = []
    for x in GRID:
        left = max(i for i, (a, _) in enumerate(path) if a <= x + NEAR)
        a, b = path[left]
        c, d = path[min(left + 1, len(path) - 1)]
        out.append(b if c <= a else b + (d - b) * (x - a) / (c - a))
    return out


READ = {"precision-recall": precision_at_recall, "roc": tpr_at_fpr}


def shortest(values: np.ndarray, level: float) -> tuple[float, float]:
    """The shortest interval that holds a share `level` of the values, of equals the lowest."""
    ordered = sorted(values[~np.isnan(values)].tolist())
    inside = min(math.ceil(level * (len(ordered) + 1)), len(ordered))
    ends = [(ordered[i], ordered[i + inside - 1]) for i in range(len(ordered) - inside + 1)]
    least = min(high - low for low, high in ends)
    return next(pair for pair in ends if pair[1] - pair[0] <= least + 1e-8)


def naive_curve(
    q: OneClassifier, kind: str, size: int, value: str, interval: str, level: float = 0.9
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Low, median and high, and how many of the interval's draws are undefined."""
    drawn = {}
    for name in {value, interval}:
        scores, w = label_weights(q, size, name)
        drawn[name] = [READ[kind](scores, w[:, :, d]) for d in range(size)]
    fine = {name: np.array([c for c in each if c is not None]) for name, each in drawn.items()}
    middle = np.median(fine[value], axis=0)
    low, high = np.transpose([shortest(each, level) for each in fine[interval].T])
    undefined = sum(c is None for c in drawn[interval])
    return np.minimum(low, middle), middle, np.maximum(high, middle), undefined
