"""The baselines again: slow, plain, and read from the papers; nothing here is the library's code.

Votes are (n, M) class indices, -1 where a classifier said nothing; labels (n,), -1 unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from reference_naive import log_ratios
from scipy.special import expit, logsumexp, softmax

# Dawid and Skene (1979): equations 2.3 (confusion), 2.4 (shares), 2.5 (labels)


def vote_shares(votes: np.ndarray, K: int, weights: Sequence[float] | None = None) -> np.ndarray:
    """Share of every class among an item's votes, each as heavy as its classifier: (n, K)."""
    n, M = votes.shape
    weights = [1.0] * M if weights is None else weights
    shares = np.zeros((n, K))
    for i in range(n):
        for j in range(M):
            if votes[i, j] >= 0:
                shares[i, votes[i, j]] += weights[j]
        total = shares[i].sum()
        shares[i] = shares[i] / total if total > 0 else 1 / K
    return shares


def clamp(T: np.ndarray, labels: np.ndarray) -> np.ndarray:
    T = T.copy()
    for i in np.flatnonzero(labels >= 0):
        T[i] = np.eye(T.shape[1])[labels[i]]
    return T


def confusion(T: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """P(classifier j votes l | class k), shape (M, K, K); 0 where a class has no weight."""
    (n, K), M = T.shape, votes.shape[1]
    out = np.zeros((M, K, K))
    for j in range(M):
        for i in range(n):
            if votes[i, j] >= 0:
                out[j, :, votes[i, j]] += T[i]
        for k in range(K):
            total = out[j, k].sum()
            out[j, k] = out[j, k] / total if total > 0 else 0
    return out


def naive_dawid_skene(
    votes: np.ndarray, labels: np.ndarray, K: int, iterations: int, tolerance: float = -1.0
) -> np.ndarray:
    """P(label), (n, K), after so many EM steps (each M, E, clamp) from the shares of the votes."""
    n, M = votes.shape
    T = clamp(vote_shares(votes, K), labels)
    for _ in range(iterations):
        share, pi = T.mean(axis=0), confusion(T, votes)
        new = np.zeros((n, K))
        for i in range(n):
            for k in range(K):
                product = share[k]
                for j in range(M):
                    if votes[i, j] >= 0:
                        product *= pi[j, k, votes[i, j]]
                new[i, k] = product
            new[i] /= new[i].sum()
        new = clamp(new, labels)
        change = np.abs(new - T).mean()
        T = new
        if change <= tolerance:
            break
    return T


def dawid_skene_log_likelihood(T: np.ndarray, votes: np.ndarray, labels: np.ndarray) -> float:
    """log P(votes, known labels) at the parameters that T implies."""
    share, pi = T.mean(axis=0), confusion(T, votes)
    total = 0.0
    for i in range(len(votes)):
        terms = []
        for k in range(T.shape[1]) if labels[i] < 0 else [labels[i]]:
            product = share[k]
            for j in range(votes.shape[1]):
                if votes[i, j] >= 0:
                    product *= pi[j, k, votes[i, j]]
            terms.append(product)
        total += math.log(sum(terms))
    return total


# beta calibration: logit P(y = 1 | s) = a log s - b log(1 - s) + c


def clip(p: np.ndarray) -> np.ndarray:
    return np.clip(p, 1e-6, 1 - 1e-6)


class CalibrationGrid:
    """The posterior of (log a, log b, c) on a grid; normal priors centred at identity."""

    def __init__(
        self, p: np.ndarray, y: np.ndarray, slope_sd: float, offset_sd: float, points: int = 45
    ) -> None:
        t = np.linspace(-5, 5, points)
        la, lb, c = np.meshgrid(slope_sd * t, slope_sd * t, offset_sd * t, indexing="ij")
        self.a, self.b, self.c = np.exp(la.ravel()), np.exp(lb.ravel()), c.ravel()
        log_post = -0.5 * sum(
            np.square(x / sd) for x, sd in ((la, slope_sd), (lb, slope_sd), (c, offset_sd))
        )
        log_post = log_post.ravel()
        for s, label in zip(clip(p), y, strict=True):
            q = self.at(s)
            log_post = log_post + np.log(np.maximum(q if label == 1 else 1 - q, 1e-300))
        self.weight = np.exp(log_post - logsumexp(log_post))
        edge = (np.abs(t) > 4.7).nonzero()[0]
        cube = self.weight.reshape(points, points, points)
        self.on_the_edge = max(
            cube[edge].sum(), cube[:, edge].sum(), cube[:, :, edge].sum()
        )  # the grid must hold the posterior

    def at(self, s: float) -> np.ndarray:
        """P(y = 1 | s) at every point of the grid."""
        return expit(self.a * np.log(s) - self.b * np.log1p(-s) + self.c)

    def moments(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and standard deviation of P(y = 1 | s), for each of p (n,)."""
        each = [self.at(s) for s in clip(p)]
        mean = np.array([q @ self.weight for q in each])
        square = np.array([(q * q) @ self.weight for q in each])
        return mean, np.sqrt(np.maximum(square - mean**2, 0))

    def maps(self, size: int, rng: np.random.Generator) -> Iterator[tuple[float, float, float]]:
        for g in rng.choice(len(self.weight), size, p=self.weight):
            yield self.a[g], self.b[g], self.c[g]


# PPI++ (Angelopoulos, Duchi, Zrnic 2023): the mean


def ppi_mean(y: np.ndarray, f: np.ndarray, f_unlabeled: np.ndarray, lam: float) -> float:
    """Lambda times the mean proxy of the unlabeled, plus the labeled mean of (y - lambda f)."""
    return float(lam * f_unlabeled.mean() + (y - lam * f).mean())


def ppi_lambdas(y: np.ndarray, f: np.ndarray, f_unlabeled: np.ndarray) -> dict[str, float]:
    """Example 6.1: cov(y, f) / ((1 + n/N) var f), for every way to estimate the two moments."""
    n, N = len(y), len(f_unlabeled)
    every = np.concatenate([f, f_unlabeled])
    out = {}
    for ddof in (0, 1):
        covariance = np.cov(y, f, ddof=ddof)[0, 1]
        for where, values in {"labeled": f, "unlabeled": f_unlabeled, "all": every}.items():
            for ddof_f in (0, 1):
                lam = covariance / ((1 + n / N) * values.var(ddof=ddof_f))
                out[f"ddof {ddof} over ddof {ddof_f} of {where}"] = lam
        # the two samples' variances apart: var_l / n + var_u / N
        both = f.var(ddof=ddof) / n + f_unlabeled.var(ddof=ddof) / N
        out[f"ddof {ddof}, each sample its own variance"] = covariance / n / both
    return out


# active testing (Kossen et al. 2021): the levelled unbiased risk estimator


def lure_weights(q: Sequence[float], N: int) -> np.ndarray:
    """w_m = 1 + (N - M)/(N - m) (1 / ((N - m + 1) q_m) - 1), m = 1..M; 1 where all are taken."""
    M = len(q)
    out = []
    for m, q_m in enumerate(q, start=1):
        first = (N - M) / (N - m) if m < N else 0.0
        out.append(1 + first * (1 / ((N - m + 1) * q_m) - 1))
    return np.array(out)


def pick_probabilities(asked: Sequence[int], score: np.ndarray) -> list[float]:
    """q_m: the picked item's share of the score of those that were left when it was picked."""
    left = np.ones(len(score), dtype=bool)
    q = []
    for i in asked:
        q.append(score[i] / score[left].sum())
        left[i] = False
    return q


# pseudo-label: scikit-learn's logistic regression from scores to labels


def naive_pseudo_label(P: np.ndarray, labels: np.ndarray, features: str) -> np.ndarray:
    """P(label), (n, K), of `LogisticRegression()` fitted to the labeled items, labels kept."""
    from sklearn.linear_model import LogisticRegression

    n, M, K = P.shape
    if features == "log-ratios":
        X = log_ratios(P)
    elif K == 2:
        X = P[:, :, 1]
    else:
        X = P.reshape(n, M * K)
    known = labels >= 0
    regression = LogisticRegression().fit(X[known], labels[known])
    out = np.zeros((n, K))
    out[:, regression.classes_] = regression.predict_proba(X)
    return clamp(out, labels)


# worlds


def soft_accuracy(Q: np.ndarray, hard: np.ndarray) -> float:
    """Mean probability of the predicted class."""
    return float(np.mean([Q[i, hard[i]] for i in range(len(Q))]))


def gaussian_posterior(s: np.ndarray, mean: np.ndarray, sd: float, share: np.ndarray) -> np.ndarray:
    """P(class | s) of one-dimensional Gaussians with a common standard deviation: (n, K)."""
    return softmax(np.log(share) - 0.5 * ((s[:, None] - mean) / sd) ** 2, axis=1)
