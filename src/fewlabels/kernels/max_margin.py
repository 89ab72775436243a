"""Max-margin majority voting and its Gibbs sampler (Tian and Zhu 2015).

Votes are two views of the same counts: `votes` (n, M K), column j K + l for classifier j voting for
class l, and `ballots` (n K, M), row i K + l for item i. A classifier's weight is eta_j; class d of
item i scores a_i(d) = sum_j eta_j ballots[i K + d, j]. With labels y the margin by which rival d
falls short is zeta_id = l 1[d != y_i] - (a_i(y_i) - a_i(d)).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.simplex import logsumexp, softmax
from fewlabels.kernels.votes import by_class

NEVER = 1e-10
"""|zeta| at least: the inverse Gaussian's mean is its reciprocal."""

_SMOOTHING = 0.01
"""Width of the smooth maximum, in margins: the loss is too large by its log K-fold at most."""


class Penalty(NamedTuple):
    """c, how much a missed margin costs, and l, the margin."""

    cost: float
    margin: float


class Prior(NamedTuple):
    """Variance v of the classifiers' weights, alpha of the rows of the confusion matrices."""

    variance: float
    confusion: float


class Ballots(NamedTuple):
    """Votes in both views, the transposes that the updates need, and evidence (n, K).

    `times` (n,), where given, says how many items each row stands for. Labels are then counts
    (n, K) of these, else classes (n,).
    """

    votes: scipy.sparse.csr_matrix
    by_vote: scipy.sparse.csr_matrix
    ballots: scipy.sparse.csr_matrix
    evidence: Floats
    times: Floats | None = None

    @staticmethod
    def of(
        votes: scipy.sparse.csr_matrix, evidence: Floats, times: Floats | None = None
    ) -> Ballots:
        """Both views of counts (n, M K)."""
        ballots = by_class(votes, evidence.shape[1])
        return Ballots(votes, votes.T.tocsr(), ballots, evidence, times)

    def scores(self, eta: Floats) -> Floats:
        """Scores a (n, K) under weights (M,), or (n, K, D) under (M, D)."""
        return np.asarray((self.ballots @ eta).reshape(*self.evidence.shape, *eta.shape[1:]))

    def counts(self, labels: Ints | Floats) -> Floats:
        """Votes by true class, (M, K votes, K classes)."""
        k = self.evidence.shape[1]
        said: Floats = self.by_vote @ (labels if labels.ndim > 1 else np.eye(k)[labels])
        return said.reshape(-1, k, k)

    def draw(self, p: Floats, rng: np.random.Generator) -> Ints:
        """Labels from P(class), (n, K)."""
        if self.times is None:
            return draw_classes(p, rng)
        return rng.multinomial(np.rint(self.times).astype(np.int64), p)


class State(NamedTuple):
    """Labels (n,) or (n, K), weights eta (M,), and log P(vote | class) (M, K votes, K classes)."""

    labels: Ints
    eta: Floats
    log_confusion: Floats


def lead(scores: Floats) -> Floats:
    """Lead of each score over the best of the other classes, (n, K, ...)."""
    ordered = np.partition(scores, -2, axis=1)
    best, second = ordered[:, -1:], ordered[:, -2:-1]
    # Where two classes share the top, each has the other for its rival. Scores of classes that are
    # ruled out are -inf: no difference of two of these is formed.
    return np.asarray(scores - np.where(scores == best, second, best))


def label_logits(
    votes: scipy.sparse.csr_matrix, log_confusion: Floats, scores: Floats, penalty: Penalty
) -> Floats:
    """Log of P(y = d | ...) up to a constant, (n, K, D), confusion (M K, K, D), scores (n, K, D).

    prod_j P(vote_j | d) exp(-2 c (zeta_d)_+): the auxiliary variable is integrated out.
    """
    k, d = log_confusion.shape[1:]
    logits: Floats = (votes @ log_confusion.reshape(-1, k * d)).reshape(-1, k, d)
    logits -= 2 * penalty.cost * np.maximum(penalty.margin - lead(scores), 0.0)
    return logits


def sweep(
    ballots: Ballots, state: State, penalty: Penalty, prior: Prior, rng: np.random.Generator
) -> State:
    """One sweep: confusion matrices, auxiliary variables, weights, labels."""
    gamma = rng.standard_gamma(ballots.counts(state.labels) + prior.confusion)
    # Gamma variables of small shape underflow; a probability of 0 would rule a vote out for good.
    gamma = np.maximum(gamma, np.finfo(float).tiny)
    log_confusion = np.log(gamma / gamma.sum(axis=1, keepdims=True))
    eta = _weights(ballots, state, penalty, prior.variance, rng)
    k = ballots.evidence.shape[1]
    logits = label_logits(
        ballots.votes, log_confusion.reshape(-1, k, 1), ballots.scores(eta)[:, :, None], penalty
    )[:, :, 0]
    labels = ballots.draw(softmax(logits + ballots.evidence), rng)
    return State(labels, eta, log_confusion)


def _weights(
    ballots: Ballots, state: State, penalty: Penalty, variance: float, rng: np.random.Generator
) -> Floats:
    """Draw eta | lambda, labels, where lambda | eta, labels is drawn first.

    exp(-2 c (zeta)_+) = int (2 pi lambda)^-1/2 exp(-(lambda + c zeta)^2 / (2 lambda)) d lambda, so
    1 / lambda is inverse Gaussian with mean 1 / (c |zeta|) and shape 1, and eta is normal. As in
    the paper the best rival is held while eta is drawn: for two classes there is but one, and the
    sampler is exact; for more it is near.

    Items of one row and label have the same zeta. The sum of 1 / lambda over m of them is inverse
    Gaussian with m times the mean and shape m^2, that is m^2 times one of mean / m and shape 1.
    """
    k = ballots.evidence.shape[1]
    rows, labels, m = _cells(state.labels)
    others = ballots.scores(state.eta)[rows]
    place = np.arange(len(rows))
    own = others[place, labels]
    others[place, labels] = -np.inf
    rival = others.argmax(axis=1)
    zeta = penalty.margin - (own - others[place, rival])
    c = penalty.cost
    mean = 1 / (c * np.maximum(np.abs(zeta), NEVER))
    precision = m**2 * inverse_gaussian(mean / m, rng)
    gap = ballots.ballots[rows * k + labels] - ballots.ballots[rows * k + rival]
    scaled = gap.copy()
    scaled.data *= np.repeat(precision, np.diff(gap.indptr))
    system = c**2 * (gap.T @ scaled).toarray()
    system[np.diag_indices_from(system)] += 1 / variance
    root = cholesky(system, lower=True)
    mean = cho_solve((root, True), c * (gap.T @ (m + c * penalty.margin * precision)))
    noise = solve_triangular(root, rng.standard_normal(len(mean)), lower=True, trans="T")
    return np.asarray(mean + noise)


def _cells(labels: Ints) -> tuple[Ints, Ints, Floats]:
    """Row and label of the items that share both, and how many they are."""
    if labels.ndim == 1:
        return np.arange(len(labels)), labels, np.ones(len(labels))
    row, label = np.nonzero(labels)
    return row, label, labels[row, label].astype(np.float64)


def inverse_gaussian(mean: Floats, rng: np.random.Generator) -> Floats:
    """Inverse Gaussian variables of shape 1, (n,), stable for means up to 1e10.

    Source: Michael, Schucany and Haas (1976), the smaller root as a quotient.
    """
    q = mean * rng.standard_normal(len(mean)) ** 2 / 2
    root = mean / (1 + q + np.sqrt(q * (q + 2)))
    other = rng.random(len(mean)) * (mean + root) > mean
    return np.where(other, mean**2 / root, root)


def draw_classes(p: Floats, rng: np.random.Generator) -> Ints:
    """One class for each row of P(class), (n, K) -> (n,)."""
    total = np.cumsum(p, axis=1)
    u = rng.random(len(p)) * total[:, -1]
    return np.asarray((u[:, None] >= total[:, :-1]).sum(axis=1), dtype=np.int64)


def vote_likelihood(
    votes: scipy.sparse.csr_matrix, confusion: Floats, evidence: Floats, times: Floats | None = None
) -> float:
    """Log of P(votes, evidence) under confusion (M, K votes, K classes) and equal class shares.

    Of so many items of each row (n,), or of one.
    """
    k = evidence.shape[1]
    logits = votes @ np.log(confusion).reshape(-1, k) + evidence
    each = logsumexp(logits) - np.log(k)
    return float((each if times is None else each * times).sum())


def maximum_margin(
    ballots: Ballots, labels: Ints, weights: Floats, penalty: Penalty, start: Floats
) -> Floats:
    """Weights that minimise |eta|^2 / 2 + c sum_i w_i max_d (zeta_id)_+ for labels (n,).

    By gradient descent (L-BFGS) with log-sum-exp for the maximum; zeta of the label itself is 0.
    """
    n, k = ballots.evidence.shape
    one_hot = np.eye(k)[labels]
    width = _SMOOTHING * penalty.margin
    columns = ballots.ballots.T.tocsr()

    def loss(eta: Floats) -> tuple[float, Floats]:
        scores = ballots.scores(eta)
        own = scores[np.arange(n), labels]
        zeta = (penalty.margin * (1 - one_hot) - own[:, None] + scores) / width
        value = width * float(weights @ logsumexp(zeta))
        pull = (softmax(zeta) - one_hot) * weights[:, None]
        slope = eta + penalty.cost * (columns @ pull.ravel())
        return float(eta @ eta) / 2 + penalty.cost * value, slope

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return np.asarray(found.x)
