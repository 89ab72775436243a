"""Worlds of votes whose truth is known, the NELL data, the paper's baselines, comparisons."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from reference_votes_naive import (
    Exact,
    Prior,
    dirichlet,
    draw_grouping,
    error_rates,
    exact_posterior,
    log_votes,
    tally,
)
from scipy.special import logsumexp

import fewlabels as fl


@dataclass(frozen=True, eq=False)
class VoteWorld:
    """Votes (n, N), -1 missing; domain (n,) from 0; and the truth that made them."""

    votes: np.ndarray
    domain: np.ndarray
    truth: np.ndarray
    error: np.ndarray  # (D, N)
    shares: np.ndarray  # (D, K)
    theta: np.ndarray  # (D, N, R, C)
    groups: np.ndarray  # (D, N)
    labels: np.ndarray  # (n,), -1 hidden

    def predictions(self, **options: Any) -> fl.Predictions:
        names = [f"c{j}" for j in range(self.votes.shape[1])]
        options = {"classes": tuple(range(self.shares.shape[1])), "models": names} | options
        options = {"domain": [f"d{d:04d}" for d in self.domain]} | options
        return fl.Predictions(votes=self.votes, labels=self.labels, **options)

    def show(self, n: int) -> VoteWorld:
        """The same world with the labels of the first n items known."""
        labels = np.where(np.arange(len(self.truth)) < n, self.truth, -1)
        return VoteWorld(**(vars(self) | {"labels": labels}))


def world_of(
    theta: np.ndarray,
    shares: np.ndarray,
    S: int,
    prior: Prior,
    rng: np.random.Generator,
    missing: float = 0.0,
    groups: np.ndarray | None = None,
) -> VoteWorld:
    """S items in each domain: their labels, and the votes on them."""
    D, N = theta.shape[:2]
    K = shares.shape[1]
    domain = np.repeat(np.arange(D), S)
    truth = (shares[domain].cumsum(axis=1) < rng.random((D * S, 1))).sum(axis=1)
    truth = np.minimum(truth, K - 1)
    said = np.exp(log_votes(theta, prior))[domain, :, truth]  # (n, N, K votes)
    votes = (said.cumsum(axis=2) < rng.random((D * S, N, 1))).sum(axis=2)
    votes = np.where(rng.random((D * S, N)) < missing, -1, np.minimum(votes, K - 1))
    error = error_rates(theta, shares, prior)
    if groups is None:
        groups = np.arange(D * N).reshape(D, N)
    return VoteWorld(votes, domain, truth, error, shares, theta, groups, np.full(D * S, -1))


def prior_world(
    prior: Prior, D: int, N: int, S: int, rng: np.random.Generator, missing: float = 0.0
) -> VoteWorld:
    """A world drawn from the model's own prior."""
    groups = draw_grouping(prior, D, N, rng)
    atoms = dirichlet(np.broadcast_to(prior.rates, (groups.max() + 1, *prior.rates.shape)), rng)
    shares = dirichlet(np.full((D, prior.K), prior.class_prior), rng)
    return world_of(atoms[groups], shares, S, prior, rng, missing, groups)


def symmetric_world(
    error: Any, S: int, rng: np.random.Generator, shares: Any = None, missing: float = 0.0
) -> VoteWorld:
    """Two classes and given error rates, (N,) or (D, N); P(class 1) is .5 unless given, (D,)."""
    e = np.atleast_2d(np.asarray(error, float))
    p = np.full(len(e), 0.5) if shares is None else np.asarray(shares, float)
    theta = np.stack([e, 1 - e], axis=-1)[:, :, None, :]
    return world_of(theta, np.stack([1 - p, p], axis=1), S, Prior(), rng, missing)


PROFILES = np.array(
    [[0.05, 0.1, 0.2, 0.3, 0.4], [0.3, 0.3, 0.1, 0.1, 0.2], [0.4, 0.2, 0.3, 0.05, 0.1]]
)


def setting(name: str, rng: np.random.Generator) -> VoteWorld:
    """The acceptance settings of section 4."""
    if name == "S1":
        return prior_world(Prior("cbee"), 20, 5, 20, rng)
    if name == "S2":
        return prior_world(Prior("hcbee"), 10, 8, 20, rng)
    D, S = {"S3": (15, 30), "S4": (6, 2000)}[name]
    profile = PROFILES[np.arange(D) % 3]
    return symmetric_world(profile, S, rng, rng.uniform(0.3, 0.7, D))


@dataclass(frozen=True, eq=False)
class Nell:
    """Thresholded outputs, labels and the paper's target error rates: over all labeled rows."""

    votes: np.ndarray  # (n, 4)
    domain: np.ndarray  # (n,)
    truth: np.ndarray  # (n,)
    target: np.ndarray  # (15, 4)

    models = ("ADJ", "CMC", "CPL", "VERB")
    thresholds = (0.05, 0.05, 0.1, 0.05)

    @staticmethod
    def read(folder: Path) -> Nell:
        import pandas as pd

        frame = pd.read_parquet(folder / "nell" / "data.parquet")
        p = np.stack([frame[f"p__{m}__1"] for m in Nell.models], axis=1)
        votes = (p >= Nell.thresholds).astype(int)
        domain = pd.factorize(frame["domain"])[0]
        truth = frame["label"].to_numpy().astype(int)
        wrong = votes != truth[:, None]
        target = np.stack([wrong[domain == d].mean(axis=0) for d in range(domain.max() + 1)])
        return Nell(votes, domain, truth, target)

    def sample(self, share: float, rng: np.random.Generator) -> Nell:
        """That share of every domain's rows; the target stays that of all rows."""
        rows = []
        for d in range(len(self.target)):
            mine = np.flatnonzero(self.domain == d)
            rows.append(np.sort(rng.permutation(mine)[: round(share * len(mine))]))
        r = np.concatenate(rows)
        return Nell(self.votes[r], self.domain[r], self.truth[r], self.target)

    def predictions(self) -> fl.Predictions:
        domain = [f"d{d:04d}" for d in self.domain]
        return fl.Predictions(votes=self.votes, domain=domain, models=self.models, classes=(0, 1))

    def errors(self, error: np.ndarray, q: np.ndarray) -> tuple[float, float]:
        """MSE of error rates (15, 4), and error of the hard labels; ties are class 1 (makina)."""
        wrong = (q[:, 1] >= 0.5) != self.truth
        by_domain = [wrong[self.domain == d].mean() for d in range(len(self.target))]
        return float(((error - self.target) ** 2).mean()), float(np.mean(by_domain))


# asking the library, and comparing within Monte Carlo error

NAMES = {
    (False, "bee"): "BEE",
    (False, "cbee"): "CBEE",
    (False, "cbcc"): "CBCC",
    (False, "hcbee"): "HCBEE",
    (True, "bee"): "ConfusionBEE",
    (True, "cbee"): "ConfusionCBEE",
    (True, "hcbee"): "ConfusionHCBEE",
}


def model(prior: Prior, **options) -> fl.models.LabelModel:
    """The library's model of these hyperparameters."""
    options = {"burn_in": 200, "sweeps": 500, "thin": 1, "chains": 4} | options
    if prior.kind != "bee":
        options = {"concentration": prior.alpha} | options
    if prior.kind == "hcbee":
        options = {"top_concentration": prior.gamma} | options
    if prior.kind in ("cbcc", "hcbee"):  # the posterior itself, which way round it is included
        options = {"orient": False} | options
    make = getattr(fl.models, NAMES[prior.confusion, prior.kind])
    return make(error_prior=prior.error, class_prior=prior.class_prior, **options)


def infer(prior: Prior, world: VoteWorld, seed: int = 0, **options):
    return model(prior, **options).infer(world.predictions(), np.random.default_rng(seed))


def exact(prior: Prior, world: VoteWorld, **options) -> Exact:
    return exact_posterior(world.votes, world.labels, world.domain, prior, **options)


def batch_error(draws: np.ndarray, batches: int = 40) -> np.ndarray:
    """Standard error of the mean of correlated draws (T, ...), by batch means."""
    n = len(draws) // batches * batches
    means = draws[:n].reshape(batches, -1, *draws.shape[1:]).mean(axis=1)
    return means.std(axis=0, ddof=1) / math.sqrt(batches)


def agree(draws: np.ndarray, wanted: np.ndarray, limit: float = 5.0, extra=0.0) -> None:
    """The mean of draws (T, ...) is `wanted` within Monte Carlo error."""
    error = np.sqrt(batch_error(draws) ** 2 + np.asarray(extra) ** 2) + 1e-4
    z = (draws.mean(axis=0) - wanted) / error
    assert np.abs(z).max() < limit, (np.abs(z).max(), draws.mean(axis=0), wanted)


def label_draws(posterior) -> np.ndarray:
    """P(label) under every parameter draw, (T, n, K)."""
    return np.concatenate([q for _, q in posterior.soft_draws(posterior.parameters.size, 0)])


def together(rates) -> np.ndarray:
    """Whether two cells have the same theta, draw by draw: (T, D M, D M)."""
    T, D, M, K, _ = rates.confusion.shape
    flat = rates.confusion.reshape(T, D * M, K * K)
    return (flat[:, :, None] == flat[:, None]).all(axis=-1).astype(float)


# majority vote, Dawid-Skene with one or two rates, agreement rates


def majority_shares(votes: np.ndarray, K: int) -> np.ndarray:
    """All probability on the class of most votes, (n, K); classes that tie share it."""
    n = tally(votes, K)
    best = n == n.max(axis=1, keepdims=True)
    return best / best.sum(axis=1, keepdims=True)


def errors_against(votes: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Error rate (N,) of each classifier where labels have distribution q (n, K)."""
    out = []
    for vote in votes.T:
        seen = vote >= 0
        out.append(1 - q[seen, vote[seen]].mean())
    return np.array(out)


def dawid_skene(
    votes: np.ndarray, K: int = 2, one_rate: bool = False, smoothing: float = 0.01
) -> tuple[np.ndarray, np.ndarray]:
    """Error rates (N,) and P(label) (n, K): EM from majority vote until q changes by < 1e-9."""
    q = majority_shares(votes, K)
    seen = np.array([[vote == f for f in range(K)] for vote in votes.T], float)  # (N, K, n)
    for _ in range(2000):
        counts = np.einsum("jfi,ik->jkf", seen, q) + smoothing
        right, total = np.einsum("jkk->j", counts), counts.sum(axis=(1, 2))
        theta = counts / counts.sum(axis=2, keepdims=True)
        if one_rate:
            e = ((total - right) / total)[:, None, None]
            theta = np.eye(K) * (1 - e) + (1 - np.eye(K)) * e / (K - 1)
        share = (q.sum(axis=0) + smoothing) / (len(q) + K * smoothing)
        logit = np.log(share) + np.einsum("jfi,jkf->ik", seen, np.log(theta))
        new = np.exp(logit - logsumexp(logit, axis=1, keepdims=True))
        done, q = np.abs(new - q).max() < 1e-9, new
        if done:
            break
    return 1 - np.einsum("jkk,k->j", theta, share), q


def agreement_errors(a: np.ndarray) -> np.ndarray:
    """Error rates of three independent classifiers from how often each two agree, (3, 3)."""
    c = 2 * a - 1
    other = [(1, 2), (0, 2), (0, 1)]
    return np.array(
        [(1 - math.sqrt(c[i, j] * c[i, k] / c[j, k])) / 2 for i, (j, k) in enumerate(other)]
    )
