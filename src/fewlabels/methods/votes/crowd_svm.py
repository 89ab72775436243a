"""CrowdSVM: votes weighted so that the label wins by a margin, with confusion matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from fewlabels.checks.arguments import chosen_from, positive, whole
from fewlabels.errors import Status
from fewlabels.kernels.arrays import Bools, Floats, Ints, UInts
from fewlabels.kernels.counter_based import some_items
from fewlabels.kernels.simplex import CLIP, logsumexp, softmax
from fewlabels.kernels.votes import by_class, class_votes, most_voted
from fewlabels.methods.base import FittedLabelModel, LabelModel, with_evidence, with_hard_votes
from fewlabels.methods.replicates import Refits
from fewlabels.methods.votes.data import (
    INDEPENDENT,
    UNLABELED,
    ItemPatterns,
    elected,
    not_identified,
)
from fewlabels.posterior import LabelPosterior, ParameterDraws
from fewlabels.predictions import Predictions

COSTS = tuple(2.0**power for power in range(-8, 1))
MARGINS = (1.0, 3.0, 5.0)
"""Values from which c and l are chosen."""

_CHOICE_VOTES, _CHOICE_DRAWS, _ROUNDS = 2**15, 20, 50
_REFIT_SALT, _CHOICE_SALT = 0xC50D, 0xC50E


@dataclass(frozen=True)
class CrowdSVM(LabelModel):
    """Weights of the classifiers by which labels win with a margin, and confusion matrices.

    P(votes, labels) is that of Dawid and Skene with equal class shares and Dirichlet priors,
    times exp(-2 c (l - lead of the label's score over its rivals')_+) per item. Source: Tian and
    Zhu (2015): Gibbs-CrowdSVM (section 4), and max-margin majority voting (M3V, section 3) for the
    gradient descent. For two classes the sampler's labels are tested against exact
    enumeration; for more it holds each item's best rival while weights are drawn, which is near.
    The paper's choice of c and l "by likelihood" is read as the likelihood of the votes, labels
    summed out, at the mean confusion matrices.

    Parameters
    ----------
    solver
        "gibbs", or "gradient-descent": hard labels of M3V, found in turns with the weights from
        the majority vote on; no confusion matrices.
    cost
        c, what a missed margin costs; None: chosen from 2^-8 to 1 by likelihood.
    margin
        l, in votes; None: chosen from 1, 3 and 5 by likelihood.
    weight_variance
        v, prior variance of the classifiers' weights; gradient descent has 1.
    confusion_prior
        alpha, Dirichlet prior of each row of the confusion matrices.
    class_shares
        "equal": every class is as likely beforehand as any other (the paper). Where one is rare,
        items that voters disagree on then go to it: 15% of NELL's labels are wrong for that.
        "learned": class shares are drawn with the rest, under a uniform Dirichlet prior.
    burn_in, draws
        Sweeps that are dropped, and kept (the paper, as far as it is known here: 10 and 50).
    replicates
        Bootstrap refits of gradient descent for the parameters' uncertainty.
    """

    solver: Literal["gibbs", "gradient-descent"] = "gibbs"
    cost: float | None = None
    margin: float | None = None
    weight_variance: float = 1.0
    confusion_prior: float = 1.0
    class_shares: Literal["equal", "learned"] = "equal"
    burn_in: int = 10
    draws: int = 200
    replicates: int = 20

    def __post_init__(self) -> None:
        chosen_from("solver", self.solver, ("gibbs", "gradient-descent"))
        chosen_from("class_shares", self.class_shares, ("equal", "learned"))
        for name in ("cost", "margin"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        positive("weight_variance", self.weight_variance)
        positive("confusion_prior", self.confusion_prior)
        for name in ("burn_in", "draws", "replicates"):
            whole(name, getattr(self, name))

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Choose c and l, then sample, or descend."""
        served = with_hard_votes(predictions, "crowd-svm")
        # The sampler draws item by item, in an order that belongs to the items.
        order = np.argsort(served.keys)
        votes, evidence = served.vote_counts[order], served.evidence[order]
        times = None if served.multiplicity is None else served.multiplicity[order]
        salt, seed = (int(s) for s in rng.integers(2**63, size=2))
        penalty = self._choose(*_first(votes, evidence, times, served.keys[order]), seed)
        everywhere = np.zeros(served.n_items, dtype=np.int64)
        doubts = not_identified(served, everywhere, (None,))
        informed = INDEPENDENT if (evidence != 0).any() else UNLABELED
        learned = (self, served.models, penalty, salt, (informed, *doubts))
        if self.solver == "gradient-descent":
            items = ItemPatterns.of(served)
            first = items.first
            descended = _Descent(served.vote_counts[first], served.evidence[first], penalty)
            fitted = _FittedDescent(*learned, descended, items)
            _ = fitted.eta
            return fitted
        rng = np.random.default_rng(seed)
        states = self._sample(Ballots.of(votes, evidence, times), penalty, rng, self.draws)
        eta = np.stack([s.eta for s in states], axis=1)
        confusion = np.stack([s.log_confusion for s in states], axis=3)
        shares = np.stack([s.log_shares for s in states], axis=1)
        return _FittedGibbs(*learned, eta, confusion, shares)

    def _sample(
        self, ballots: Ballots, penalty: Penalty, rng: np.random.Generator, draws: int
    ) -> list[State]:
        """States of a chain that starts from the majority vote, after its burn-in."""
        prior = Prior(self.weight_variance, self.confusion_prior, self.class_shares == "learned")
        evidence, eta = ballots.evidence, np.ones(ballots.ballots.shape[1])
        k = evidence.shape[1]
        total = class_votes(ballots.votes, k, ballots.times)
        average = total / max(total.sum(), 1.0)
        majority = elected(ballots.votes, evidence, eta[:, None], average, hard=True)[:, :, 0]
        labels = ballots.draw(majority, rng)
        state = State(labels, eta, np.zeros((len(eta), k, k)), np.zeros(k))
        states = []
        for step in range(self.burn_in + draws):
            state = sweep(ballots, state, penalty, prior, rng)
            if step >= self.burn_in:
                states.append(state)
        return states

    def _choose(
        self, votes: scipy.sparse.csr_matrix, evidence: Floats, times: Floats | None, seed: int
    ) -> Penalty:
        """Cost and margin with the largest likelihood of the votes."""
        costs = COSTS if self.cost is None else (self.cost,)
        margins = MARGINS if self.margin is None else (self.margin,)
        choices = [Penalty(c, margin) for margin, c in product(margins, costs)]
        if len(choices) == 1:
            return choices[0]
        ballots = Ballots.of(votes, evidence, times)
        descent = self.solver == "gradient-descent"
        times = np.ones(len(evidence)) if ballots.times is None else ballots.times

        def likelihood(penalty: Penalty) -> float:
            if descent:
                solver = _Descent(votes, evidence, penalty)
                labels, _ = solver.labels(solver.solve(times, solver.start))
                one_hot = np.eye(evidence.shape[1])[labels] * times[:, None]
                seen = ballots.counts(one_hot) + self.confusion_prior
                mean = seen / seen.sum(axis=1, keepdims=True)
                return vote_likelihood(votes, mean, evidence, ballots.times)
            rng, draws = np.random.default_rng(seed), min(self.draws, _CHOICE_DRAWS)
            states = self._sample(ballots, penalty, rng, draws)
            mean = np.mean([np.exp(s.log_confusion) for s in states], axis=0)
            shares = np.log(np.mean([np.exp(s.log_shares) for s in states], axis=0))
            informed = evidence + shares - logsumexp(shares, axis=0) + np.log(len(shares))
            return vote_likelihood(votes, mean, informed, ballots.times)

        return choices[int(np.argmax([likelihood(penalty) for penalty in choices]))]


def _first(
    votes: scipy.sparse.csr_matrix, evidence: Floats, times: Floats | None, keys: UInts
) -> tuple[scipy.sparse.csr_matrix, Floats, Floats | None]:
    """The first items, in the order of their keys, that have 32,768 votes."""
    if times is None:
        enough = int(np.searchsorted(votes.indptr, _CHOICE_VOTES))
        return votes[:enough], evidence[:enough], None
    each = np.diff(votes.indptr) @ times / times.sum()
    times = some_items(times, keys, int(np.ceil(_CHOICE_VOTES / max(each, 1e-9))), _CHOICE_SALT)
    rows = np.flatnonzero(times)
    return votes[rows], evidence[rows], times[rows]


@dataclass(frozen=True, eq=False)
class _FittedCrowd(FittedLabelModel):
    """Common part of the results of both solvers."""

    model: CrowdSVM
    models: tuple[str, ...]
    penalty: Penalty
    salt: int
    warnings: tuple[str, ...]

    def _posterior(
        self, predictions: Predictions, p: Floats | None, draws: ParameterDraws, eta: Floats
    ) -> LabelPosterior:
        """P(label) (n, K), or None for the mean of the draws, by weights eta (M,)."""
        return LabelPosterior(
            p,
            draws,
            predictions.keys,
            salt=self.salt,
            value_from="draws" if p is None else "marginals",
            status=Status.ASSUMPTION,
            warnings=self.warnings,
            diagnostics={
                "weights": dict(zip(self.models, eta.tolist(), strict=True)),
                "cost": self.penalty.cost,
                "margin": self.penalty.margin,
            },
        )


@dataclass(frozen=True, eq=False)
class _FittedGibbs(_FittedCrowd):
    """Weights (M, T), log confusion (M, K votes, K classes, T), log shares (K, T) of the sweeps."""

    eta: Floats
    log_confusion: Floats
    log_shares: Floats

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        votes = predictions.select_models(self.models).vote_counts
        draws = _GibbsDraws(self, votes, predictions.evidence)
        return self._posterior(predictions, None, draws, self.eta.mean(axis=1))


@dataclass(frozen=True, eq=False)
class _GibbsDraws:
    fitted: _FittedGibbs
    votes: scipy.sparse.csr_matrix
    evidence: Floats

    @property
    def size(self) -> int:
        return self.fitted.eta.shape[1]

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        votes, evidence = self.votes[rows], self.evidence[rows]
        k, d = evidence.shape[1], len(index)
        scores = (by_class(votes, k) @ self.fitted.eta[:, index]).reshape(-1, k, d)
        confusion = self.fitted.log_confusion[..., index].reshape(-1, k, d)
        logits = label_logits(votes, confusion, scores, self.fitted.penalty)
        logits += evidence[:, :, None] + self.fitted.log_shares[:, index]
        return softmax(logits, out=logits)


class _Descent:
    """Labels and weights in alternation, on rows of votes (U, M K) with evidence (U, K)."""

    def __init__(self, votes: scipy.sparse.csr_matrix, evidence: Floats, penalty: Penalty) -> None:
        self.penalty = penalty
        self.ballots = Ballots.of(votes, evidence)
        self.known = np.where(evidence == -np.inf, -np.inf, 0.0)
        self.start = np.ones(self.ballots.ballots.shape[1])

    def labels(self, eta: Floats) -> tuple[Ints, Bools]:
        """The class of the largest score, (U,), and whether no other has it."""
        scores = self.ballots.scores(eta)
        scores += self.known
        return scores.argmax(axis=1), lead(scores).max(axis=1) > 1e-9

    def solve(self, weights: Floats, start: Floats) -> Floats:
        """Weights (M,) of the classifiers for row weights (U,), until no label changes.

        Rows whose classes tie have no label yet, and are left out.
        """
        eta, (labels, is_labeled) = start, self.labels(start)
        for _ in range(_ROUNDS):
            eta = maximum_margin(self.ballots, labels, weights * is_labeled, self.penalty, eta)
            before, (labels, is_labeled) = np.where(is_labeled, labels, -1), self.labels(eta)
            if (before == np.where(is_labeled, labels, -1)).all():
                break
        return eta


@dataclass(frozen=True, eq=False)
class _FittedDescent(_FittedCrowd):
    descent: _Descent
    items: ItemPatterns

    @cached_property
    def eta(self) -> Floats:
        """The classifiers' weights, (M,)."""
        return self.descent.solve(self.items.counts, self.descent.start)

    @cached_property
    def refits(self) -> Floats:
        """Weights (M, B) of bootstrap replicates: Exp(1) weights of the items."""
        counts = self.items.bootstrapped(self.model.replicates, self.salt ^ _REFIT_SALT)
        return np.stack([self.descent.solve(c, self.eta) for c in counts.T], axis=1)

    def probabilities(
        self, votes: scipy.sparse.csr_matrix, evidence: Floats, eta: Floats
    ) -> Floats:
        """P(label) (n, K, D): all of it on the class of the largest score, weights (M, D)."""
        k = evidence.shape[1]
        scores = (by_class(votes, k) @ eta).reshape(len(evidence), k, eta.shape[1])
        return with_evidence(most_voted(scores), evidence, floor=CLIP)

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        votes = predictions.select_models(self.models).vote_counts
        p = self.probabilities(votes, predictions.evidence, self.eta[:, None])[:, :, 0]
        draws = Refits(self.model.replicates, self, votes, predictions.evidence)
        return self._posterior(predictions, p, draws, self.eta)


# --- Gibbs sweeps and margins -----------------------------------------------------------------
#
# Votes are two views of the same counts: `votes` (n, M K), column j K + l for classifier j voting
# for class l, and `ballots` (n K, M), row i K + l for item i. A classifier's weight is eta_j;
# class d of item i scores a_i(d) = sum_j eta_j ballots[i K + d, j]. With labels y the margin by
# which rival d falls short is zeta_id = l 1[d != y_i] - (a_i(y_i) - a_i(d)). Source: Tian and Zhu
# (2015).


NEVER = 1e-10
"""|zeta| at least: the inverse Gaussian's mean is its reciprocal."""

_SMOOTHING = 0.01
"""Width of the smooth maximum, in margins: the loss is too large by its log K-fold at most."""


class Penalty(NamedTuple):
    """c, how much a missed margin costs, and l, the margin."""

    cost: float
    margin: float


class Prior(NamedTuple):
    """Variance v of the weights, alpha of the confusion matrices, whether shares are drawn."""

    variance: float
    confusion: float
    shares: bool = False


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
        counts: Floats = self.by_vote @ (labels if labels.ndim > 1 else np.eye(k)[labels])
        return counts.reshape(-1, k, k)

    def draw(self, p: Floats, rng: np.random.Generator) -> Ints:
        """Labels from P(class), (n, K)."""
        if self.times is not None:
            return rng.multinomial(np.rint(self.times).astype(np.int64), p)
        total = np.cumsum(p, axis=1)
        u = rng.random(len(p)) * total[:, -1]
        return np.asarray((u[:, None] >= total[:, :-1]).sum(axis=1), dtype=np.int64)


class State(NamedTuple):
    """Labels (n,) or (n, K), weights eta (M,), log P(vote | class) (M, K votes, K classes).

    `log_shares` (K,) are those of the classes, up to a constant.
    """

    labels: Ints
    eta: Floats
    log_confusion: Floats
    log_shares: Floats


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
    log_shares = np.zeros(k)
    if prior.shares:
        one_hot = state.labels if state.labels.ndim > 1 else np.eye(k)[state.labels]
        log_shares = np.log(np.maximum(rng.dirichlet(1 + one_hot.sum(axis=0)), CLIP))
    labels = ballots.draw(softmax(logits + ballots.evidence + log_shares), rng)
    return State(labels, eta, log_confusion, log_shares)


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

    optimum = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return np.asarray(optimum.x)
