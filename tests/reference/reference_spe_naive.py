"""Score mixtures and monotone curves again: slow, plain, read from the papers and the reference.

Of the library nothing is used but the door, `fl.Predictions`. Scores are (n,), labels (n,) with -1
unknown; a mixture's parameters are u = (of the positives' family, of the negatives', logit of the
prevalence).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import expit, logit, logsumexp, ndtr, ndtri

import fewlabels as fl

# the families: (distribution, mass below zero is cut off), from unconstrained parameters u


def distribution(family: str, u: np.ndarray):
    """The scipy distribution before truncation; the columns of u (..., d) may be arrays."""
    a, b = u[..., 0], u[..., 1]
    match family:
        case "n":
            return stats.norm(a, np.exp(b))
        case "t":
            return stats.t(1 + np.exp(u[..., 2]), a, np.exp(b))
        case "g":
            mean, sd = np.exp(a), np.exp(b)
            return stats.gamma((mean / sd) ** 2, scale=sd**2 / mean)
        case "ln":
            return stats.lognorm(np.exp(b), scale=np.exp(a))
        case "g_r":
            return stats.gumbel_r(a, np.exp(b))
        case "g_l":
            return stats.gumbel_l(a, np.exp(b))
        case "gz":
            return stats.gompertz(np.exp(a), scale=np.exp(b))
        case "f_r":  # scipy's old name of Weibull-min
            return stats.weibull_min(np.exp(a), scale=np.exp(b))
        case "frechet":
            return stats.invweibull(np.exp(a), scale=np.exp(b))
    raise AssertionError(family)


DIMENSION = {"n": 2, "t": 3, "g": 2, "ln": 2, "g_r": 2, "g_l": 2, "gz": 2, "f_r": 2}
TRUNCATED = {"n", "t"}


def log_density(family: str, u: np.ndarray, s: np.ndarray) -> np.ndarray:
    """log p(s | u), (..., n) for u (..., d)."""
    d = distribution(family, np.asarray(u)[..., None, :])
    return d.logpdf(s) - (d.logsf(0.0) if family in TRUNCATED else 0.0)


def survival(family: str, u: np.ndarray, s: np.ndarray) -> np.ndarray:
    """P(score >= s | u), (..., n)."""
    d = distribution(family, np.asarray(u)[..., None, :])
    return d.sf(s) / (d.sf(0.0) if family in TRUNCATED else 1.0)


# Per coordinate: the prior, and whether it is on exp(u) (then with the Jacobian u), or 1 + exp(u).
_PLACE = (stats.norm(0.5, 0.5), "u")
_SCALE = (stats.gamma(2, scale=1 / 8), "exp")
PRIORS = {
    "n": (_PLACE, _SCALE),
    "t": (_PLACE, _SCALE, (stats.gamma(2, scale=10), "1+exp")),
    "g": ((stats.norm(0.5, 0.5), "exp"), _SCALE),
    "ln": ((stats.norm(-1, 1), "u"), (stats.gamma(2, scale=1 / 2), "exp")),
    "g_r": (_PLACE, _SCALE),
    "g_l": (_PLACE, _SCALE),
    "gz": ((stats.norm(-3, 4), "u"), _SCALE),
    "f_r": ((stats.gamma(2, scale=1 / 0.5), "exp"), (stats.gamma(2, scale=1 / 4), "exp")),
}


def log_prior(family: str, u: np.ndarray) -> np.ndarray:
    """Log prior of u itself, (...): the prior of each parameter times its Jacobian."""
    total = 0.0
    for c, (prior, of) in enumerate(PRIORS[family]):
        x = np.asarray(u)[..., c]
        if of == "u":
            total = total + prior.logpdf(x)
        else:
            total = total + prior.logpdf(np.exp(x) + (of == "1+exp")) + x
    return total


def draw_prior(family: str, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draws of u, (size, d); draws that the family cannot have are drawn again."""
    columns = []
    for prior, of in PRIORS[family]:
        x = prior.rvs(size, random_state=rng)
        low = {"u": -math.inf, "exp": 0.0, "1+exp": 1.0}[of]
        while (x <= low).any():
            x = np.where(x <= low, prior.rvs(size, random_state=rng), x)
        columns.append(x if of == "u" else np.log(x - low))
    return np.stack(columns, axis=-1)


# the mixture of two classes


def unit_interval(s: np.ndarray) -> np.ndarray:
    """Section 5, normalisation: the smallest score becomes 1/(2n), the largest 1."""
    epsilon = 1 / (2 * len(s))
    return epsilon + (1 - epsilon) * (s - s.min()) / (s.max() - s.min())


@dataclass(frozen=True)
class Mixture:
    """Two families, the positives' first."""

    positive: str
    negative: str

    def split(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        u = np.asarray(u)
        d = DIMENSION[self.positive]
        return u[..., :d], u[..., d:-1], u[..., -1]

    def joint(self, u: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log P(y = 1, s) and log P(y = 0, s), each (..., n)."""
        u1, u0, rate = self.split(u)
        log_pi, log_rest = -np.logaddexp(0, -rate), -np.logaddexp(0, rate)
        return (
            log_pi[..., None] + log_density(self.positive, u1, s),
            log_rest[..., None] + log_density(self.negative, u0, s),
        )

    def log_likelihood(self, u: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
        one, none = self.joint(u, s)
        return np.where(y == 1, one, np.where(y == 0, none, np.logaddexp(one, none))).sum(axis=-1)

    def log_prior(self, u: np.ndarray) -> np.ndarray:
        """Prevalence uniform on (0, 1): its logit has the logistic density."""
        u1, u0, rate = self.split(u)
        return (
            log_prior(self.positive, u1)
            + log_prior(self.negative, u0)
            - np.logaddexp(0, rate)
            - np.logaddexp(0, -rate)
        )

    def gamma(self, u: np.ndarray, s: np.ndarray) -> np.ndarray:
        """P(y = 1 | s, u), (..., n)."""
        one, none = self.joint(u, s)
        return expit(one - none)

    def population(self, u: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Precision, recall and false-positive rate at the thresholds s, each (..., n)."""
        u1, u0, rate = self.split(u)
        pi = expit(rate)[..., None]
        recall, fpr = survival(self.positive, u1, s), survival(self.negative, u0, s)
        return pi * recall / (pi * recall + (1 - pi) * fpr), recall, fpr

    def draw_prior(self, size: int, rng: np.random.Generator) -> np.ndarray:
        return np.column_stack(
            [
                draw_prior(self.positive, size, rng),
                draw_prior(self.negative, size, rng),
                logit(rng.uniform(size=size)),
            ]
        )

    def sample(self, u: np.ndarray, n: int, rng: np.random.Generator):
        """Scores in the unit interval's neighbourhood and their labels."""
        u1, u0, rate = self.split(u)
        y = (rng.random(n) < expit(rate)).astype(int)
        s = np.empty(n)
        for k, (family, part) in enumerate(((self.negative, u0), (self.positive, u1))):
            d = distribution(family, part)
            tail = d.sf(0.0) if family in TRUNCATED else 1.0
            s[y == k] = d.isf(rng.uniform(0, tail, size=(y == k).sum()))
        return s, y


def adaptive_importance(
    log_target: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    rng: np.random.Generator,
    size: int = 20_000,
    rounds: int = 5,
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Draws (size, d), their weights (sum 1), the effective sample size and the log evidence.

    From `start` (draws over all that the target may hold) on, the proposal is a multivariate t
    with 5 degrees of freedom on the weighted moments, of twice the variance.
    """
    keep = 2000
    lw = log_target(start)
    # Flattened at first, so that a handful of points does not make the moments.
    flat = lw - lw.max()
    points, weights = start, np.exp(flat * min(1.0, 8 / max(-np.sort(flat)[-keep], 1e-9)))
    weights /= weights.sum()
    for _ in range(rounds):
        mean = weights @ points
        covariance = 2.0 * (points - mean).T @ ((points - mean) * weights[:, None])
        proposal = stats.multivariate_t(mean, covariance, df=5, seed=rng)
        points = proposal.rvs(size)
        lw = log_target(points) - proposal.logpdf(points)
        lw = np.where(np.isfinite(lw), lw, -np.inf)
        weights = np.exp(lw - logsumexp(lw))
    return points, weights, 1 / np.square(weights).sum(), float(logsumexp(lw) - math.log(size))


# section 5b: four monotone curves and the prior of each


@dataclass(frozen=True)
class Features:
    """Standardised score x, normal score z, and where the score's natural zero lies on each."""

    x: np.ndarray
    z: np.ndarray
    x_zero: float | None
    z_zero: float | None

    def __getitem__(self, rows) -> Features:
        return Features(self.x[rows], self.z[rows], self.x_zero, self.z_zero)


def midrank(s: np.ndarray) -> np.ndarray:
    """The mean position, from 1, of every score among all; equal scores share it."""
    return np.array([(s < v).sum() + ((s == v).sum() + 1) / 2 for v in s])


def features(s: np.ndarray, *, probability: bool, zero: bool = True) -> Features:
    m = logit(np.clip(s, 1e-5, 1 - 1e-5)) if probability else np.asarray(s, dtype=float)
    n, mean, sd = len(m), m.mean(), m.std()
    return Features(
        np.clip((m - mean) / sd, -4, 4),
        ndtri((midrank(m) - 0.5) / n),
        float(np.clip(-mean / sd, -3, 3)) if zero else None,
        float(ndtri(((m < 0).sum() + 0.5) / (n + 1))) if zero else None,
    )


CURVES = ("line", "kink", "lapse", "flat")
PRIOR_OF_CURVE = (0.40, 0.29, 0.29, 0.02)
PARAMETERS = {"line": 2, "kink": 4, "lapse": 6, "flat": 1}


def monotone(curve: str, u: np.ndarray, f: Features) -> np.ndarray:
    """P(y = 1 | s), (S, n), for standard normal u (S, d): section 5b, word for word."""
    u1 = u[:, [0]]
    if curve == "flat":
        return np.repeat(expit(-1 + 1.5 * u1), len(f.x), axis=1)
    b = np.exp(1.5 + 1.1 * u[:, [1]])
    if curve == "line":
        c = 0.8 + u1 if f.x_zero is None else f.x_zero + 0.25 * np.sinh(1.2 * u1)
        return expit(b * (f.x - c))
    w, e = ndtr(0.7 + u[:, [2]]), 0.7 * u[:, [3]]
    m = w * f.x + (1 - w) * f.z
    if f.x_zero is None:
        c = 0.8 + u1
    else:
        c = w * f.x_zero + (1 - w) * f.z_zero + 0.25 * np.sinh(1.2 * u1)
    h = expit(b * np.where(m > c, np.exp(e), np.exp(-e)) * (m - c))
    if curve == "kink":
        return h
    l0, l1 = expit(-6 + 1.5 * u[:, [4]]), expit(-3.7 + 1.5 * u[:, [5]])
    return l0 + (1 - l0 - l1) * h


@dataclass(frozen=True)
class MonotonePosterior:
    """Section 5b by weighing particles of the prior; one row of `h` per draw of the average."""

    h: np.ndarray
    labels: np.ndarray
    share: dict[str, float]
    effective: float
    curve: np.ndarray

    @property
    def marginals(self) -> np.ndarray:
        known = self.labels >= 0
        return np.where(known, self.labels, self.h.mean(axis=0))

    def draws(self, rng: np.random.Generator) -> np.ndarray:
        """Labels, (R, n): known ones stay."""
        y = (rng.random(self.h.shape) < self.h).astype(int)
        return np.where(self.labels >= 0, self.labels, y)


def monotone_posterior(
    f: Features, labels: np.ndarray, rng: np.random.Generator, particles: int = 100_000,
    draws: int = 4000,
) -> MonotonePosterior:  # fmt: skip
    known = labels >= 0
    evidence, chosen, effective = [], [], []
    for curve in CURVES:
        u = rng.normal(size=(particles, PARAMETERS[curve]))
        h = monotone(curve, u, f[known])
        likelihood = np.where(labels[known] == 1, h, 1 - h)
        lw = np.log(np.maximum(likelihood, 1e-300)).sum(axis=1)
        evidence.append(logsumexp(lw) - math.log(particles))
        weight = np.exp(lw - logsumexp(lw))
        effective.append(1 / np.square(weight).sum())
        chosen.append(u[rng.choice(particles, draws, p=weight)])
    prior = np.array(PRIOR_OF_CURVE)
    posterior = prior * np.exp(np.array(evidence) - max(evidence))
    share = 0.95 * posterior / posterior.sum() + 0.05 * prior
    counts = rng.multinomial(draws, share)
    h = [monotone(k, u[:c], f) for k, u, c in zip(CURVES, chosen, counts, strict=True)]
    return MonotonePosterior(
        np.concatenate(h),
        labels,
        dict(zip(CURVES, share, strict=True)),
        min(e for e, w in zip(effective, share, strict=True) if w > 0.05),
        np.repeat(CURVES, counts),
    )


def draw_monotone_world(f: Features, rng: np.random.Generator) -> np.ndarray:
    """A curve from the prior of section 5b, and a label of every item from the curve."""
    curve = rng.choice(CURVES, p=PRIOR_OF_CURVE)
    h = monotone(curve, rng.normal(size=(1, PARAMETERS[curve])), f)[0]
    return (rng.random(len(h)) < h).astype(int)


def answer_or_one_line(call: Callable[[], Any]) -> Any:
    """What the call answers, or None where it refuses with one line that says something."""
    try:
        return call()
    except fl.FewlabelsError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) > 20
    return None


# curves and thresholds of drawn labels


GRID = (np.arange(100) + 0.5) / 100


def cuts(s: np.ndarray) -> np.ndarray:
    """Thresholds that make a difference, the strictest first."""
    return np.unique(s)[::-1]


def counts_at(s: np.ndarray, y: np.ndarray, threshold: float) -> tuple[int, int, int, int]:
    """True positives, false positives, positives, negatives where score >= threshold is called."""
    said = s >= threshold
    return int((y[said] == 1).sum()), int((y[said] == 0).sum()), int((y == 1).sum()), int(
        (y == 0).sum()
    )  # fmt: skip


def precision_at_recall(s: np.ndarray, y: np.ndarray, recalls: np.ndarray) -> np.ndarray:
    """Precision at the strictest cut whose recall is at least r; NaN without positives."""
    if not (y == 1).any():
        return np.full(len(recalls), np.nan)
    said = (s >= cuts(s)[:, None]).astype(int)
    tp = said @ (y == 1)
    first = [np.flatnonzero(tp >= r * tp[-1] - 1e-9)[0] for r in recalls]
    return (tp / said.sum(axis=1))[first]


def threshold_at_recall(s: np.ndarray, y: np.ndarray, recalls: np.ndarray) -> np.ndarray:
    table = [(t, *counts_at(s, y, t)) for t in cuts(s)]
    return np.array([next(t for t, tp, _, p, _ in table if tp >= r * p - 1e-9) for r in recalls])


def share(part: np.ndarray, of: np.ndarray) -> np.ndarray:
    """A part of a whole; NaN of nothing."""
    part, of = np.broadcast_arrays(np.asarray(part, dtype=float), of)
    return np.divide(part, of, out=np.full(part.shape, np.nan), where=of > 0)


RATES: dict[str, Callable[..., np.ndarray]] = {
    "precision": lambda tp, fp, p, n: share(tp, tp + fp),
    "recall": lambda tp, fp, p, n: share(tp, p),
    "specificity": lambda tp, fp, p, n: share(n - fp, n),
    "fpr": lambda tp, fp, p, n: share(fp, n),
    "f1": lambda tp, fp, p, n: share(2 * tp, tp + fp + p),
    "accuracy": lambda tp, fp, p, n: share(tp + n - fp, p + n),
    "predicted_positive_rate": lambda tp, fp, p, n: share(tp + fp, p + n),
}


def probability_met(
    s: np.ndarray, draws: np.ndarray, thresholds: np.ndarray, least: dict[str, float],
    most: dict[str, float] | None = None,
) -> np.ndarray:  # fmt: skip
    """Share of the draws (R, n) of the labels that meet every condition, at each threshold.

    An undefined rate meets none.
    """
    said = (s >= thresholds[:, None]).astype(int)
    tp, p = said @ draws.T, draws.sum(axis=1)
    counts = tp, said.sum(axis=1)[:, None] - tp, p, len(s) - p
    met = np.ones(tp.shape, dtype=bool)
    for name, level in least.items():
        met &= RATES[name](*counts) >= level
    for name, level in (most or {}).items():
        met &= RATES[name](*counts) <= level
    return met.mean(axis=1)
