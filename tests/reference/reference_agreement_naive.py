"""The agreement-anchored tempered ensemble again: slow, plain, and read from its four points.

Nothing here shares code with the library; scipy finds the roots, the modes and the slopes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import scipy.optimize
from scipy.special import log_softmax, logsumexp, softmax

SLOPES = (  # weight, sa, mb / b0, sb / b0
    (0.7, 0.2, 1.0, 0.15),
    (0.3, 0.5, 1.2, 0.60),
)
LEVELS = (  # weight, sg, sw, sv
    (0.40, 0.0, 0.0, 0.0),
    (0.25, 0.2, 0.2, 0.5),
    (0.20, 0.4, 0.4, 1.0),
    (0.15, 0.8, 1.0, 2.0),
)
INFLATION = 1.2


def rms(x: np.ndarray) -> float:
    return math.sqrt((x**2).mean())


def centred(x: np.ndarray) -> np.ndarray:
    return x - x.mean(axis=-1, keepdims=True)


def confidence(x: np.ndarray) -> float:
    return float(softmax(x, axis=-1).max(axis=-1).mean())


def scale_to(x: np.ndarray, target: float) -> float:
    """s > 0 with mean max softmax(s x) = target; the maximum is monotone in s."""
    low, high = 1e-9, 1e9
    for _ in range(300):
        middle = math.sqrt(low * high)
        if confidence(middle * x) < target:
            low = middle
        else:
            high = middle
    return middle


def mean_agreement(votes: np.ndarray, there: np.ndarray) -> float:
    """The share of equal votes among all pairs of classifiers that voted on the same item."""
    equal = pairs = 0
    for i in range(len(votes)):
        for j, other in itertools.combinations(np.flatnonzero(there[i]), 2):
            equal += votes[i, j] == votes[i, other]
            pairs += 1
    return equal / pairs if pairs else math.nan


class NaiveAgreement:
    """P (n, M, K), NaN where a classifier is missing; labels (n,), -1 where hidden.

    A classifier that is missing everywhere is not there at all. An item on which all are missing
    has no part in the pools; its index, deviations and votes are 0, and its label counts.
    """

    def __init__(self, P: np.ndarray, labels: np.ndarray) -> None:
        P = P[:, ~np.isnan(P[:, :, 0]).all(axis=0)]
        self.n, self.M, self.K = P.shape
        self.labels = labels
        self.there = ~np.isnan(P[:, :, 0])
        self.scored = self.there.any(axis=1)
        P = np.clip(P, 1e-6, 1 - 1e-6)
        P = P / P.sum(axis=2, keepdims=True)
        self.c = centred(np.log(P))
        self.mean = self._over_present(P)
        self.mean[~self.scored] = 1 / self.K
        self.target = float(self.mean[self.scored].max(axis=1).mean())
        self.votes = np.where(self.there, np.nan_to_num(P).argmax(axis=2), -1)
        self.agreement = mean_agreement(self.votes, self.there)
        self.e = np.zeros_like(P)
        for i, j in zip(*np.nonzero(self.there), strict=True):
            self.e[i, j] = np.eye(self.K)[self.votes[i, j]] - 1 / self.K
        self.indices = (self._raw(), self._calibrated())
        self.anchors = tuple(self._anchor(f) for f, _, _ in self.indices)
        self._fit()

    def _over_present(self, x: np.ndarray) -> np.ndarray:
        out = np.zeros((self.n, self.K))
        for i in np.flatnonzero(self.scored):
            out[i] = x[i, self.there[i]].mean(axis=0)
        return out

    def _rescaled(self, x: np.ndarray) -> np.ndarray:
        return scale_to(x[self.scored], self.target) * x

    def _finish(
        self, u: np.ndarray, v: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        d = np.zeros_like(c)
        for j in range(self.M):
            rows = self.there[:, j]
            if np.abs(c[rows, j]).max() > 1e-9:  # a classifier that says 1 / K deviates by nothing
                d[rows, j] = c[rows, j] * rms(u[self.scored]) / rms(c[rows, j])
        return (u + v) / 2, (u - v) / 2, d

    def _raw(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        u = centred(np.log(self.mean))
        v = self._over_present(self.c)
        return self._finish(u, self._rescaled(v), self.c)

    def _calibrated(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        d = np.zeros_like(self.c)
        self.t = np.ones(self.M)
        for j in range(self.M):
            rows = self.there[:, j]
            q0, c = self.mean[rows], self.c[rows, j]

            def minus(t: float, q0=q0, c=c) -> float:
                return -(q0 * log_softmax(t * c, axis=1)).sum()

            if np.abs(c).max() > 1e-9:
                self.t[j] = scipy.optimize.minimize_scalar(minus, bracket=(0, 1), tol=1e-12).x
            d[rows, j] = self.t[j] * c
        pool = np.full((self.n, self.K), 1 / self.K)
        pool[self.scored] = self._over_present(softmax(d, axis=2))[self.scored]
        u, v = centred(np.log(pool)), self._over_present(d)
        return self._finish(self._rescaled(u), self._rescaled(v), d)

    def _anchor(self, f: np.ndarray) -> float:
        if math.isnan(self.agreement):  # no two classifiers voted on one item
            return 1.0
        where = np.nonzero(self.there)

        def chance(log_b: float) -> float:
            q = softmax(math.exp(log_b) * f, axis=1)
            return float(q[where[0], self.votes[where]].mean())

        low, high = -2.0, 2.0
        for _ in range(60):
            middle = (low + high) / 2
            if chance(middle) < self.agreement:
                low = middle
            else:
                high = middle
        return min(max(math.exp(middle), 0.2), 6.0) ** (1 - 1 / self.K)

    def _design(self, index: int, rows: np.ndarray) -> np.ndarray:
        """Columns a_1..a_K, b, h, w_1..w_M, v_1..v_M of rows: (rows, K, K + 2 + 2 M)."""
        f, g, d = self.indices[index]
        out = np.zeros((len(rows), self.K, self.K + 2 + 2 * self.M))
        for x, i in zip(out, rows, strict=True):
            x[:] = np.hstack([np.eye(self.K), f[i][:, None], g[i][:, None], d[i].T, self.e[i].T])
        return out

    def _fit(self) -> None:
        known = np.flatnonzero(self.labels >= 0)
        y = self.labels[known]
        self.fits, evidence = [], []
        for index in range(2):
            full = self._design(index, known)
            for slope_weight, sa, mb, sb in SLOPES:
                for level_weight, sg, sw, sv in LEVELS:
                    b0, M = self.anchors[index], self.M
                    sd = np.array(
                        [sa / math.sqrt(2)] * self.K
                        + [sb * b0, sg]
                        + [sw / math.sqrt(M)] * M
                        + [sv / math.sqrt(M)] * M
                    )
                    mu = np.zeros(len(sd))
                    mu[self.K] = mb * b0
                    used = np.flatnonzero(sd > 0)
                    A, mu = np.diag(sd[used] ** -2.0), mu[used]
                    mode, H, log_likelihood = find_mode(full[:, :, used], y, A, mu)
                    evidence.append(
                        math.log(0.5 * slope_weight * level_weight)
                        + log_likelihood
                        - 0.5 * (mode - mu) @ A @ (mode - mu)
                        + 0.5 * np.linalg.slogdet(A)[1]
                        - 0.5 * np.linalg.slogdet(H)[1]
                    )
                    self.fits.append((index, used, mode, np.linalg.inv(H)))
        self.component_weights = softmax(np.array(evidence))

    def draws(self, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """P(label | draw), (n, K) each; labeled rows one-hot."""
        everything = [self._design(index, np.arange(self.n)) for index in range(2)]
        roots = [np.linalg.cholesky(covariance) for *_, covariance in self.fits]
        known = self.labels >= 0
        for m in rng.choice(len(self.fits), size, p=self.component_weights):
            index, used, mode, _ = self.fits[m]
            beta = np.zeros(everything[index].shape[2])
            beta[used] = mode + roots[m] @ rng.normal(size=len(used))
            Q = softmax(everything[index] @ beta, axis=1)
            Q[known] = np.eye(self.K)[self.labels[known]]
            yield Q


def interval(
    h: np.ndarray, m: np.ndarray, shift: float, level: float, bounds: tuple[float, float]
) -> tuple[float, float, float]:
    """Value, low, high from the metric with sampled labels h and with soft labels m, per draw.

    `shift` is what sampling adds to the mean of h.
    """
    point = (m.mean() + np.median(m)) / 2
    shifted = np.quantile(h - shift, [(1 - level) / 2, (1 + level) / 2])
    low, high = np.clip(point + INFLATION * (shifted - point), *bounds)
    return float(point), float(low), float(high)


def find_mode(
    X: np.ndarray, y: np.ndarray, A: np.ndarray, mu: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Mode, Hessian there and log-likelihood there; X (labels, K, parameters)."""
    hit = np.eye(X.shape[1])[y]

    def log_likelihood(beta: np.ndarray) -> float:
        z = X @ beta
        return float((z[np.arange(len(y)), y] - logsumexp(z, axis=1)).sum())

    def minus(beta: np.ndarray) -> float:
        return -log_likelihood(beta) + 0.5 * (beta - mu) @ A @ (beta - mu)

    def gradient(beta: np.ndarray) -> np.ndarray:
        left = hit - softmax(X @ beta, axis=1)
        return A @ (beta - mu) - np.einsum("ikp,ik->p", X, left)

    def hessian(beta: np.ndarray) -> np.ndarray:
        p = softmax(X @ beta, axis=1)
        mean = np.einsum("ik,ikp->ip", p, X)
        second = (X * p[:, :, None]).reshape(-1, len(beta)).T @ X.reshape(-1, len(beta))
        return A + second - mean.T @ mean  # the covariance of the features, item by item

    if len(y) == 0:
        return mu, A, 0.0
    mode = scipy.optimize.minimize(
        minus, mu, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-9}
    ).x
    assert np.abs(gradient(mode)).max() < 1e-5
    return mode, hessian(mode), log_likelihood(mode)
