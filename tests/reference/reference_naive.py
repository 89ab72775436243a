"""Metrics, the tempered ensemble and the KDE mixture again: slow, plain, and read from the papers.

Nothing here shares code with the library; scikit-learn and scipy do what they can.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import scipy.optimize
import sklearn.metrics as sk
from scipy.special import logsumexp, softmax

METRICS = (
    "accuracy", "balanced_accuracy", "precision", "recall", "specificity", "f1", "roc_auc",
    "average_precision", "ece", "ece_quantile", "top_label_ece", "brier", "log_loss", "error_rate",
)  # fmt: skip
ALIASES = {"auc": "roc_auc", "auprc": "average_precision"}

# metrics of one classifier: P (n, K), hard predictions (n,), labels (n,), weights (n,)


def metric(
    name: str, P: np.ndarray, y: np.ndarray, w: np.ndarray | None = None, hard=None
) -> float:
    """The plain, weighted metric of fully labeled items."""
    n, K = P.shape
    w = np.ones(n) if w is None else w
    hard = P.argmax(axis=1) if hard is None else hard
    average = {"average": "binary" if K == 2 else "macro"}
    match ALIASES.get(name, name):
        case "accuracy":
            return float(sk.accuracy_score(y, hard, sample_weight=w))
        case "error_rate":
            return 1 - float(sk.accuracy_score(y, hard, sample_weight=w))
        case "balanced_accuracy":
            return float(sk.balanced_accuracy_score(y, hard, sample_weight=w))
        case "precision":
            return float(
                sk.precision_score(y, hard, sample_weight=w, zero_division=np.nan, **average)
            )
        case "recall":
            return float(sk.recall_score(y, hard, sample_weight=w, zero_division=np.nan, **average))
        case "f1":
            return float(sk.f1_score(y, hard, sample_weight=w, zero_division=np.nan, **average))
        case "specificity":
            each = [
                sum(w[i] for i in range(n) if y[i] != k and hard[i] != k) / sum(w[y != k])
                for k in range(K)
            ]
            return float(each[1] if K == 2 else np.mean(each))
        case "roc_auc":
            if K == 2:
                return float(sk.roc_auc_score(y, P[:, 1], sample_weight=w))
            return float(
                np.mean([sk.roc_auc_score(y == k, P[:, k], sample_weight=w) for k in range(K)])
            )
        case "average_precision":
            ranked = [1] if K == 2 else range(K)
            return float(
                np.mean(
                    [sk.average_precision_score(y == k, P[:, k], sample_weight=w) for k in ranked]
                )
            )
        case "ece":
            if K == 2:
                return equal_width_ece(P[:, 1], (y == 1).astype(float), w)
            return metric("top_label_ece", P, y, w)
        case "top_label_ece":
            # The label that the probabilities put on top; a vote that differs is no probability.
            return equal_width_ece(P.max(axis=1), (P.argmax(axis=1) == y).astype(float), w)
        case "ece_quantile":
            if K == 2:
                return quantile_ece(P[:, 1], (y == 1).astype(float))
            return quantile_ece(P.max(axis=1), (P.argmax(axis=1) == y).astype(float))
        case "brier":
            if K == 2:
                each = [(P[i, 1] - y[i]) ** 2 for i in range(n)]
            else:
                each = [sum((P[i, k] - (y[i] == k)) ** 2 for k in range(K)) for i in range(n)]
            return float(np.average(each, weights=w))
        case "log_loss":
            eps = np.finfo(np.float64).eps
            each = [-math.log(min(max(P[i, y[i]], eps), 1 - eps)) for i in range(n)]
            return float(np.average(each, weights=w))
    raise KeyError(name)


def equal_width_ece(
    p: np.ndarray, hit: np.ndarray, w: np.ndarray, bins: int = 15, closed: str = "right"
) -> float:
    """sum over bins of (bin weight / total) |mean probability - frequency|."""
    total = 0.0
    for b in range(bins):
        low, high = b / bins, (b + 1) / bins
        if closed == "right":
            inside = (p <= high) & ((p > low) | (b == 0))
        else:
            inside = (p >= low) & ((p < high) | (b == bins - 1))
        if w[inside].sum() > 0:
            gap = np.average(p[inside], weights=w[inside]) - np.average(
                hit[inside], weights=w[inside]
            )
            total += w[inside].sum() / w.sum() * abs(gap)
    return float(total)


def quantile_ece(p: np.ndarray, hit: np.ndarray, bins: int = 10) -> float:
    """Unweighted mean over non-empty bins; edges are quantiles, bins are closed on the right.

    The golden `labeled` and `oracle_pool` rows agree with this to 1e-16, with edges that are
    closed on the left only to 2e-3.
    """
    inner = [np.quantile(p, b / bins) for b in range(1, bins)]
    number = np.array([sum(edge < x for edge in inner) for x in p])
    return float(
        np.mean([abs(p[number == b].mean() - hit[number == b].mean()) for b in sorted(set(number))])
    )


def soft_metric(name: str, P: np.ndarray, Q: np.ndarray) -> float:
    """The metric with soft labels: every item stands K times, with class k and weight Q[i, k]."""
    n, K = P.shape
    if name == "ece":
        return equal_width_ece(P[:, 1], Q[:, 1], np.ones(n))
    if name == "ece_quantile":
        return quantile_ece(P[:, 1], Q[:, 1])
    y = np.tile(np.arange(K), n)
    return metric(name, np.repeat(P, K, axis=0), y, Q.ravel())


# the tempered ensemble, reference/ssme.md section 5

COMPONENTS = (  # weight, sa, mb, sb, sw
    (0.70, 0.20, 1.00, 0.18, 0.00),
    (0.12, 0.25, 1.00, 0.25, 0.25),
    (0.06, 0.40, 0.65, 0.20, 0.40),
    (0.06, 0.40, 1.30, 0.40, 0.60),
    (0.06, 0.50, 2.00, 0.60, 0.80),
)


class NaiveTempered:
    """Indices, MAP by BFGS, evidence, mixture draws. P (n, M, K), NaN where a model is missing."""

    def __init__(self, P: np.ndarray, labels: np.ndarray, rms_over: str = "all") -> None:
        self.n, self.M, self.K = n, M, K = P.shape
        self.labels = labels
        there = ~np.isnan(P[:, :, 0])
        P = np.clip(P, 1e-6, 1 - 1e-6)
        P = P / P.sum(axis=2, keepdims=True)
        c = np.log(P) - np.log(P).mean(axis=2, keepdims=True)
        mean, u, v = (np.zeros((n, K)) for _ in range(3))
        for i in range(n):
            mean[i] = P[i, there[i]].mean(axis=0)
            u[i] = np.log(mean[i]) - np.log(mean[i]).mean()
            v[i] = c[i, there[i]].mean(axis=0)
        self.mean = mean
        target = mean.max(axis=1).mean()
        low, high = 1e-9, 1e9
        for _ in range(300):
            s = math.sqrt(low * high)
            if softmax(s * v, axis=1).max(axis=1).mean() < target:
                low = s
            else:
                high = s
        self.s = s
        self.f = (u + s * v) / 2
        self.d = np.zeros((n, M, K))
        for j in range(M):
            rows = there[:, j]
            of_u = u if rms_over == "all" else u[rows]
            rms_u, rms_c = np.sqrt((of_u**2).mean()), np.sqrt((c[rows, j] ** 2).mean())
            self.d[rows, j] = c[rows, j] * rms_u / rms_c
        self._fit()

    def _design(self, i: int, with_w: bool) -> np.ndarray:
        columns = [np.eye(self.K), self.f[i][:, None]]
        if with_w:
            columns.append(self.d[i].T)
        return np.hstack(columns)  # (K, parameters)

    def _fit(self) -> None:
        known = np.flatnonzero(self.labels >= 0)
        self.fits, evidence = [], []
        for weight, sa, mb, sb, sw in COMPONENTS:
            sd = [sa / math.sqrt(2)] * self.K + [sb]
            mu = [0.0] * self.K + [mb]
            if sw > 0:
                sd += [sw / math.sqrt(self.M)] * self.M
                mu += [0.0] * self.M
            A, mu = np.diag(1 / np.square(sd)), np.array(mu)
            X = [self._design(i, sw > 0) for i in known]
            y = self.labels[known]

            def log_likelihood(beta: np.ndarray, X=X, y=y) -> float:
                return sum((x @ beta)[k] - logsumexp(x @ beta) for x, k in zip(X, y, strict=True))

            def minus(beta: np.ndarray, A=A, mu=mu, log_likelihood=log_likelihood) -> float:
                return -log_likelihood(beta) + 0.5 * (beta - mu) @ A @ (beta - mu)

            def gradient(beta: np.ndarray, A=A, mu=mu, X=X, y=y) -> np.ndarray:
                out = A @ (beta - mu)
                for x, k in zip(X, y, strict=True):
                    out = out - x.T @ (np.eye(self.K)[k] - softmax(x @ beta))
                return out

            def hessian(beta: np.ndarray, A=A, X=X) -> np.ndarray:
                out = A.copy()
                for x in X:
                    p = softmax(x @ beta)
                    out = out + x.T @ (np.diag(p) - np.outer(p, p)) @ x
                return out

            found = scipy.optimize.minimize(
                minus, mu, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-9}
            ).x
            assert np.abs(gradient(found)).max() < 1e-6
            H = hessian(found)
            evidence.append(
                math.log(weight)
                + log_likelihood(found)
                - 0.5 * (found - mu) @ A @ (found - mu)
                + 0.5 * np.linalg.slogdet(A)[1]
                - 0.5 * np.linalg.slogdet(H)[1]
            )
            self.fits.append((found, np.linalg.inv(H), sw > 0))
        self.component_weights = softmax(np.array(evidence))

    def draws(self, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """P(label | draw), (n, K) each; labeled rows one-hot."""
        everything = {
            w: np.stack([self._design(i, w) for i in range(self.n)]) for w in (False, True)
        }
        for m in rng.choice(len(self.fits), size, p=self.component_weights):
            mode, covariance, with_w = self.fits[m]
            beta = rng.multivariate_normal(mode, covariance)
            Q = softmax(everything[with_w] @ beta, axis=1)
            known = self.labels >= 0
            Q[known] = np.eye(self.K)[self.labels[known]]
            yield Q


# the KDE mixture, reference/ssme.md section 1


def log_ratios(P: np.ndarray, clip: float = 1e-6) -> np.ndarray:
    """Additive log-ratios of every classifier, last class below, side by side: (n, M (K - 1))."""
    P = np.clip(P, clip, 1 - clip)
    P = P / P.sum(axis=2, keepdims=True)
    M, K = P.shape[1:]
    columns = [np.log(P[:, j, k] / P[:, j, K - 1]) for j in range(M) for k in range(K - 1)]
    return np.stack(columns, axis=1)


def naive_kde_em(
    P: np.ndarray,
    labels: np.ndarray,
    bandwidth: float | np.ndarray,
    epochs: int,
    leave_one_out: bool,
) -> np.ndarray:
    """Marginals after `epochs` times (E-step, clamp, M-step), started from the mean classifier."""
    n, _, K = P.shape
    s = log_ratios(P)
    w = P.mean(axis=1)
    known = labels >= 0
    w[known] = np.eye(K)[labels[known]]
    for _ in range(epochs):
        prior = w.mean(axis=0)
        new = w.copy()
        for i in np.flatnonzero(~known):
            log_joint = np.empty(K)
            for k in range(K):
                terms, weights = [], []
                for j in range(n):
                    if leave_one_out and j == i:
                        continue
                    terms.append(-0.5 * np.sum(((s[i] - s[j]) / bandwidth) ** 2))
                    weights.append(w[j, k])
                log_joint[k] = (
                    np.log(prior[k]) + logsumexp(terms, b=weights) - np.log(np.sum(weights))
                )
            new[i] = softmax(log_joint)
        w = new
    return w
