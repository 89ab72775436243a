"""Made-up items whose truth is known, for every test: probabilities, scores, votes, tables of rows.

A world is a function of its arguments and a seed. What a test changes about one (a class that is
never predicted, scores of 0 and 1) it changes itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import expit, softmax

import fewlabels as fl

# probabilities and scores


@dataclass(frozen=True, eq=False)
class World:
    """Probabilities (n, M, K), all true labels (n,), and those that are shown (-1 = hidden)."""

    P: np.ndarray
    truth: np.ndarray
    shown: np.ndarray

    @property
    def models(self) -> tuple[str, ...]:
        return tuple("abcdefghij"[: self.P.shape[1]])

    def predictions(self, **options: Any) -> fl.Predictions:
        options = {"models": self.models, "labels": self.shown} | options
        return fl.Predictions(self.P, **options)


def rounded(P: np.ndarray) -> np.ndarray:
    """Probabilities with six digits that sum to 1: the same on every processor, as are draws."""
    P = np.round(P, 6)
    P[..., -1] = np.round(1 - P[..., :-1].sum(axis=-1), 6)
    return P


def tenths(P: np.ndarray) -> np.ndarray:
    """Probabilities rounded to one decimal so that every row still sums to 1: many ties."""
    whole = np.floor(P * 10 + 1e-9).astype(int)
    left = 10 - whole.sum(axis=-1)
    order = np.argsort(-(P * 10 - whole), axis=-1)
    rank = np.argsort(order, axis=-1)
    return (whole + (rank < left[..., None])) / 10


def world(
    n: int = 200, models: int = 3, classes: int = 2, labeled: int = 20, seed: int = 0,
    strength: float = 2.0, ties: bool = False,
) -> World:  # fmt: skip
    """Softmax of (strength times the truth + noise shared by the models + their own noise)."""
    rng = np.random.default_rng([seed, n, models, classes, labeled])
    prior = np.linspace(1.5, 1.0, classes)
    truth = rng.choice(classes, n, p=prior / prior.sum())
    logits = strength * np.eye(classes)[truth][:, None, :] + rng.normal(size=(n, 1, classes))
    logits = logits + rng.normal(size=(n, models, classes)) * np.linspace(0.5, 1.5, models)[:, None]
    P = softmax(logits, axis=2)
    if ties:
        P = tenths(P)
    shown = np.full(n, -1)
    chosen = rng.choice(n, labeled, replace=False)
    shown[chosen] = truth[chosen]
    return World(P, truth, shown)


@dataclass(frozen=True, eq=False)
class ScoreWorld:
    """One classifier's scores, every true label, and those that are shown (-1 = hidden)."""

    scores: np.ndarray
    truth: np.ndarray
    shown: np.ndarray
    probability: bool = False

    def predictions(self, **options: Any) -> fl.Predictions:
        """The scores as a file would hold them: P(class 1), or a score."""
        options = {"labels": self.shown, "models": ["a"]} | options
        kind = "probabilities" if self.probability else "scores"
        return fl.Predictions(**{kind: self.scores[:, None]}, **options)

    def with_labels(self, shown: np.ndarray) -> ScoreWorld:
        return replace(self, shown=shown)

    def draws(self, posterior: fl.posterior.LabelPosterior, rng, size: int = 4000) -> np.ndarray:
        """Labels (R, n) drawn from a posterior's own parameter draws."""
        parts = [q[:, :, 1] for _, q in posterior.soft_draws(size)]
        P = np.where(self.shown >= 0, self.shown, np.concatenate(parts))
        return (rng.random(P.shape) < P).astype(int)


def score_world(
    n: int = 200, labeled: int = 20, seed: int = 0, strength: float = 1.5, rate: float = 0.35,
    probability: bool = False, ties: bool = False,
) -> ScoreWorld:  # fmt: skip
    """Normal margins a distance of `strength` apart, somewhat off the natural zero."""
    rng = np.random.default_rng([seed, n, labeled])
    y = (rng.random(n) < rate).astype(int)
    s = strength * (y - 0.5) + rng.normal(0, 1, n) - 0.2
    s = expit(1.7 * s) if probability else 3.0 * s
    if ties:
        s = np.round(s, 1 if probability else 0)
        s = np.clip(s, 0.05, 0.95) if probability else s
    shown = np.full(n, -1)
    chosen = rng.choice(n, labeled, replace=False)
    shown[chosen] = y[chosen]
    return ScoreWorld(s, y, shown, probability)


def drawn_world(n: int, rng: np.random.Generator, sharper: float) -> tuple[np.ndarray, np.ndarray]:
    """P (n, 2, 2) of an over- or under-confident pair, and labels drawn from the true posterior."""
    logit = rng.normal(0.5, 1.5, n)
    truth = (rng.random(n) < expit(logit)).astype(int)
    p = expit(sharper * logit[:, None] + rng.normal(0, 0.7, (n, 2)))
    return np.stack([1 - p, p], axis=2), truth


def bananas(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two classifiers' P(class 1), (n, 2), and the truth: two crescents of logits, far apart.

    The class is which crescent an item lies on; the gap is many times their thickness. The tips
    of the upper one hang below even odds, so that the averaged classifier (the height) mistakes
    one in three of its items: only where the items lie says that they belong together.
    """
    truth = (rng.random(n) < 0.5).astype(int)
    angle = rng.uniform(0, math.pi, n)
    across, up = np.cos(angle), np.sin(angle) - np.where(truth == 1, 0.5, 2.5)
    across, up = (v + rng.normal(0, 0.06, n) for v in (across, up))
    return expit(np.stack([2 * up + across, 2 * up - across], axis=1)), truth


# votes


PI_2 = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]], [[0.7, 0.3], [0.3, 0.7]]])
PI_3 = np.array(
    [
        [[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.0, 0.2, 0.8]],
        [[0.7, 0.2, 0.1], [0.1, 0.9, 0.0], [0.2, 0.1, 0.7]],
        [[0.9, 0.05, 0.05], [0.3, 0.6, 0.1], [0.1, 0.1, 0.8]],
        [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]],
    ]
)


def crowd(n: int, pi: np.ndarray, labeled: int, seed: int = 0, missing: float = 0.0):
    """Predictions of votes, the votes, the truth and the labels shown."""
    rng = np.random.default_rng(seed)
    K = pi.shape[1]
    truth = rng.choice(K, n, p=np.linspace(1.4, 0.6, K) / K)
    votes = vote_world(truth, pi, rng, missing)
    votes[(votes < 0).all(axis=1), 0] = 0
    shown = np.where(np.arange(n) < labeled, truth, -1)
    predictions = fl.Predictions(as_probabilities(votes, K), shown)
    return predictions, votes, truth, shown


def vote_world(
    truth: np.ndarray, pi: np.ndarray, rng: np.random.Generator, missing: float = 0.0
) -> np.ndarray:
    """Votes (n, M) drawn independently from confusion matrices (M, K, K)."""
    M, K, _ = pi.shape
    votes = np.array([[rng.choice(K, p=pi[j, k]) for j in range(M)] for k in truth])
    return np.where(rng.random(votes.shape) < missing, -1, votes)


def as_probabilities(votes: np.ndarray, K: int, sure: float = 0.9) -> np.ndarray:
    """Probabilities (n, M, K) whose argmax is the vote, all as sure."""
    P = np.where(np.eye(K, dtype=bool)[votes], sure, (1 - sure) / (K - 1))
    return np.where((votes >= 0)[:, :, None], P, np.nan)


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
    named = (*predictions.groups.values(), *predictions.clusters.values())
    columns += [values.astype(str) for values in named]
    if predictions.domain is not None:
        columns.append(predictions.domain.astype(str))
    columns.append(predictions.weight.astype(str))
    _, first, times = np.unique(
        np.stack(columns, axis=1), axis=0, return_index=True, return_counts=True
    )
    order = np.argsort(first)
    return predictions.take(first[order]).with_multiplicity(times[order].astype(float))


# rows of a file


def items_table(
    n: int = 1200, k: int = 2, models: int = 2, known: int = 60, seed: int = 0
) -> pa.Table:
    """Scores of classifiers that err alike, a group of three values, and few labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    common = rng.normal(0, 1, (n, k))
    columns: dict[str, Any] = {"label": pa.array(truth, mask=rng.permutation(n) >= known)}
    for j in range(models):
        z = 2.0 * (truth[:, None] == np.arange(k)) + common + rng.normal(0, 1, (n, k))
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        columns |= {f"p__m{j}__{c}": p[:, c] for c in range(k)}
    columns["place"] = np.array(["north", "south", "west"], dtype=object)[rng.integers(3, size=n)]
    return pa.table(columns)


def annotated_table(n: int = 3000, seed: int = 0, digits: int = 6) -> pa.Table:
    """Two classifiers, one of them with gaps; counts, labels beside them, a site, a voter."""
    rng = np.random.default_rng(seed)
    q = rng.beta(0.7, 0.9, n)
    p = {"a": np.clip(q + 0.1 * rng.normal(size=n), 0, 1), "b": rng.beta(1, 1, n)}
    size = rng.integers(0, 5, n)
    yes = rng.binomial(size, q)
    one = rng.random(n) < 0.5
    voter = rng.random(n) < 0.3
    return pa.table(
        {
            "p__a__1": p["a"].round(digits),
            "p__b__1": pa.array(p["b"].round(digits), mask=rng.random(n) < 0.3),
            "y__voter": pa.array((rng.random(n) < q).astype(int), mask=~voter),
            "h__0": size - yes,
            "h__1": yes,
            "label": pa.array((rng.random(n) < q).astype(int), mask=~one),
            "site": rng.choice(["n", "s"], n),
            "weight": rng.integers(0, 4, n) / 2,
        }
    )
