"""What the tests of the baselines share: asking the library, worlds of votes, means, an oracle."""

from __future__ import annotations

import numpy as np
from reference_baselines_naive import as_probabilities, vote_world
from reference_worlds import World
from scipy.special import expit

import fewlabels as fl


def infer(model: fl.models.LabelModel, predictions: fl.Predictions, seed: int = 0):
    return model.infer(predictions, np.random.default_rng(seed))


def marginals(model: fl.models.LabelModel, predictions: fl.Predictions, seed: int = 0):
    return infer(model, predictions, seed).marginals()


def value(predictions: fl.Predictions, method, name: str = "accuracy", j: int = 0, **options):
    """One point estimate, without an interval."""
    options = {"estimand": "sample", "confidence_level": None} | options
    estimates = fl.estimate(predictions, method=method, metrics=[name], **options)
    return estimates.get(predictions.models[j], name).value


# --------------------------------------------------------------------------------------------
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


# --------------------------------------------------------------------------------------------
# metrics that are means over items

MEANS = ("accuracy", "error_rate", "brier", "log_loss")


def per_item(name: str, P: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The metric of every item by itself, for one classifier's P (n, 2)."""
    right = P.argmax(axis=1) == y
    return {
        "accuracy": right.astype(float),
        "error_rate": 1.0 - right,
        "brier": (P[:, 1] - y) ** 2,
        "log_loss": -np.log(np.where(y == 1, P[:, 1], P[:, 0])),
    }[name]


def proxies(name: str, P: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Expectation of the metric of every item under P(class) = mean."""
    zero, one = (per_item(name, P, np.full(len(P), k)) for k in (0, 1))
    return mean[:, 0] * zero + mean[:, 1] * one


def ppi_parts(w: World, name: str, j: int, proxy: str = "ensemble"):
    """Metric and proxy of the labeled, proxy of the unlabeled."""
    known = w.shown >= 0
    P = w.P[:, j]
    f = proxies(name, P, w.P.mean(axis=1) if proxy == "ensemble" else P)
    return per_item(name, P[known], w.shown[known]), f[known], f[~known]


def drawn_world(n: int, rng: np.random.Generator, sharper: float) -> tuple[np.ndarray, np.ndarray]:
    """P (n, 2, 2) of an over- or under-confident pair, and labels drawn from the true posterior."""
    logit = rng.normal(0.5, 1.5, n)
    truth = (rng.random(n) < expit(logit)).astype(int)
    p = expit(sharper * logit[:, None] + rng.normal(0, 0.7, (n, 2)))
    return np.stack([1 - p, p], axis=2), truth


def covered(method_of, estimand: str, labeled: int, sharper: float, runs: int, level: float):
    """Share of intervals that hold the truth, by metric; N = 400."""
    rng = np.random.default_rng([labeled, int(10 * sharper)])
    P, truth = drawn_world(200_000, rng, sharper)
    names = ("accuracy", "brier")
    true = {k: per_item(k, P[:, 0], truth).mean() for k in names}
    hits = dict.fromkeys(names, 0)
    for r in range(runs):
        rows = rng.choice(len(P), 400, replace=False)
        y = truth[rows]
        model, shown = method_of(y, labeled)
        estimates = fl.estimate(
            fl.Predictions(P[rows], shown), method=model, metrics=[*names],
            estimand=estimand, confidence_level=level, random_state=r,
        )  # fmt: skip
        for k in names:
            row = estimates.get("model0", k)
            aim = true[k] if estimand == "population" else per_item(k, P[rows, 0], y).mean()
            hits[k] += row.low <= aim <= row.high
    return {k: hits[k] / runs for k in names}


class Oracle:
    """Answers from the truth and keeps what it was asked."""

    def __init__(self, truth: np.ndarray) -> None:
        self.truth, self.asked = truth, []

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        self.asked.append(np.array(rows))
        return self.truth[rows]
