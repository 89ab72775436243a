"""Agreement rates: how often two-class classifiers agree tells how often each one errs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse
from scipy.optimize import minimize

from fewlabels.checks.arguments import chosen_from, whole
from fewlabels.errors import Status, listed
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.simplex import CLIP
from fewlabels.kernels.votes import by_group, by_item
from fewlabels.methods.base import (
    FittedLabelModel,
    LabelModel,
    refuse_more_classes,
    with_hard_votes,
)
from fewlabels.methods.replicates import Refits
from fewlabels.methods.votes.data import (
    ItemPatterns,
    VoteRates,
    by_domain,
    domain_codes,
    domain_texts,
    domains_of,
    elected,
    not_identified,
    vote_totals,
)
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

MOST_FOR_ALL_SUBSETS = 6
"""Classifiers up to which all subsets are used unless told: 7 take .4 seconds a solution, 8 six."""

MOST_FOR_SUBSETS = 8
"""Classifiers up to which subsets of more than two can be asked for."""

_REFIT_SALT, _RATE_DRAWS = 0xA63EE, 400


@dataclass(frozen=True)
class AgreementRates(LabelModel):
    """Error rates of two-class classifiers from how often subsets of them agree.

    Labels are then P(y=1) = sum_j (1 - e_j) 1[vote_j = 1] / sum_j (1 - e_j); known ones stay, and
    say nothing of the error rates. Source: Platanios, Blum and Mitchell (2014), sections 3.1 and
    3.2; the labels as in Platanios, Dubey and Mitchell (2016).

    Parameters
    ----------
    solver
        "optimisation": joint error rates e_A of subsets of the classifiers that are nearest to
        independence, sum (e_A - prod e_i)^2, under the agreement rates that were observed.
        "closed-form": independent errors, e_i = (1 - sqrt(c_ij c_ik / c_jk)) / 2 with
        c = 2 agreement - 1, pooled over all j and k; e above 1/2 where a classifier disagrees
        with the others.
    order
        Size of the subsets that the optimisation uses at most; None: all of them for up to 6
        classifiers, pairs beyond. From 9 classifiers on it is pairs, weighed by their overlap.
    by_domain
        Whether every domain has error rates of its own.
    replicates
        Bootstrap refits for the parameters' uncertainty.
    """

    solver: Literal["optimisation", "closed-form"] = "optimisation"
    order: int | None = None
    by_domain: bool = False
    replicates: int = 50

    def __post_init__(self) -> None:
        chosen_from("solver", self.solver, ("optimisation", "closed-form"))
        if self.order is not None:
            whole("order", self.order)
        whole("replicates", self.replicates)

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Gather items of the same votes and solve for the error rates."""
        served = with_hard_votes(predictions, "agreement-rates")
        refuse_more_classes(served, "agreement-rates", "'dawid-skene'")
        domains = domains_of(served) if self.by_domain else (None,)
        domain = domain_codes(served, domains)
        items = ItemPatterns.of(served, domain)
        first, total = items.first, vote_totals(served)
        votes = served.vote_counts[first]
        # Mean vote of each classifier on each item, (U, M), -1 for class 0 and 1 for class 1. The
        # two have their entries in the same places: only zeros that are stored say "no vote won".
        signs = by_item(votes, np.tile([-1.0, 1.0], (len(items), 1)))
        signs.data /= by_item(votes, np.ones((len(items), 2))).data
        fitted = _FittedAgreement(
            model=self,
            models=served.models,
            domains=domains,
            rows=tuple(np.flatnonzero(domain[first] == d) for d in range(len(domains))),
            voted=by_item(votes.sign(), np.ones((len(items), 2))).sign(),
            signs=signs,
            items=items,
            average=total / total.sum(),
            informed=bool((served.evidence != 0).any()),
            doubts=not_identified(served, domain, domains),
            salt=int(rng.integers(2**63)),
        )
        _ = fitted.result
        return fitted


class _Solution(NamedTuple):
    """Error rates (D, M), subset values by domain for a warm start, and what went wrong.

    unidentified and clipped are (D, M), infeasible is (D,).
    """

    error: Floats
    subsets: tuple[Floats | None, ...]
    unidentified: Bools
    clipped: Bools
    infeasible: Bools


@dataclass(frozen=True, eq=False)
class _FittedAgreement(FittedLabelModel):
    model: AgreementRates
    models: tuple[str, ...]
    domains: tuple[str | None, ...]
    rows: tuple[Ints, ...]
    voted: scipy.sparse.csr_matrix
    signs: scipy.sparse.csr_matrix
    items: ItemPatterns
    average: Floats
    informed: bool
    doubts: tuple[str, ...]
    salt: int

    @property
    def order(self) -> int:
        """Size of the largest subsets in use."""
        m = len(self.models)
        requested = self.model.order or (m if m <= MOST_FOR_ALL_SUBSETS else 2)
        return min(requested, m if m <= MOST_FOR_SUBSETS else 2)

    @cached_property
    def result(self) -> _Solution:
        return self._solve(self.items.counts, None)

    @cached_property
    def refits(self) -> Floats:
        """Error rates (D, M, B) of bootstrap replicates: Exp(1) weights of the items."""
        counts = self.items.bootstrapped(self.model.replicates, self.salt ^ _REFIT_SALT)
        return np.stack([self._solve(c, self.result).error for c in counts.T], axis=2)

    @cached_property
    def dense(self) -> Array:
        """Votes (U, M) of few classifiers, -1 = missing, or as many for one class as the other."""
        sign = self.signs.toarray()
        return np.where(sign > 0, 1, np.where(sign < 0, 0, -1)).astype(np.int8)

    def _solve(self, counts: Floats, warm: _Solution | None) -> _Solution:
        """Error rates of every domain where `counts` (U,) items have each row of votes."""
        solutions = [
            self._solve_domain(rows, counts[rows], None if warm is None else warm.subsets[d])
            for d, rows in enumerate(self.rows)
        ]
        error, inside, *flags = zip(*solutions, strict=True)
        return _Solution(np.array(error), tuple(inside), *map(np.array, flags))

    def _solve_domain(
        self, rows: Ints, counts: Floats, warm: Floats | None
    ) -> tuple[Floats, Floats | None, Bools, Bools, bool]:
        pairs = agreement(self.signs[rows], self.voted[rows], counts)
        direct = closed_form(pairs)
        unidentified = ~direct.identified
        none = np.zeros_like(unidentified)
        if self.model.solver == "closed-form" or unidentified.all():
            return direct.error, None, unidentified, direct.clipped, False
        m, order = len(self.models), self.order
        if m > MOST_FOR_SUBSETS or order < 2:
            return rank_one(pairs, direct.error), None, unidentified, none, False
        joint = nearest_to_independence(
            agreement_rates(self.dense[rows], counts, order), m, order, warm
        )
        if not joint.converged:
            return rank_one(pairs, direct.error), None, unidentified, none, True
        meets_nobody = ~(pairs.overlap > 0).any(axis=1)
        error = np.where(meets_nobody, np.nan, joint.values[:m])
        return error, joint.values, unidentified, none, False

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        served = predictions.select_models(self.models)
        domain = domain_codes(served, self.domains)
        votes = by_group(served.vote_counts, domain, len(self.domains))
        error = self.result.error
        marginals = self.probabilities(votes, predictions.evidence, error[:, :, None])[:, :, 0]
        return LabelPosterior(
            marginals,
            Refits(self.model.replicates, self, votes, predictions.evidence),
            predictions.keys,
            salt=self.salt,
            value_from="marginals",
            vote_rates=_RefitRates(self, served, domain, marginals),
            status=Status.NOT_CONVERGED if self.result.infeasible.any() else Status.ASSUMPTION,
            warnings=self._warnings(),
            diagnostics={
                "error_rate": by_domain(error, self.domains, self.models),
                "subset_size": self.order if self.model.solver == "optimisation" else 2,
                "vote_patterns": len(self.items),
            },
        )

    def probabilities(
        self, votes: scipy.sparse.csr_matrix, evidence: Floats, error: Floats
    ) -> Floats:
        """P(label) (n, 2, B) under error rates (D, M, B)."""
        measured = ~np.isnan(error)
        # Whom nothing is known of votes like the mean of the others.
        mean = np.where(measured, error, 0.0).sum(axis=1) / np.maximum(measured.sum(axis=1), 1)
        weights = 1 - np.where(measured, error, mean[:, None])
        weights = weights.reshape(-1, error.shape[2])
        return elected(votes, evidence, weights, self.average, hard=False)

    def _warnings(self) -> tuple[str, ...]:
        warnings = [
            "assumption: classifiers err independently of each other, whatever the class, and most "
            "are right more often than not; labels do not change the error rates"
        ]
        result = self.result
        if self.informed and result.unidentified.any():
            warnings.append(
                f"assumption: {self._named(result.unidentified)}: no three classifiers vote on the "
                "same items two by two; the error rate is a guess from pairs, which the labels do "
                "not change"
            )
        if result.clipped.any():
            warnings.append(
                f"assumption: {self._named(result.clipped)}: no error rate explains the agreement "
                "with the others; the nearest one that is possible is given"
            )
        worse = np.nan_to_num(result.error) > 0.5 + 1e-9
        if worse.any():
            warnings.append(
                f"assumption: {self._named(worse)}: agreement with the others is rarer than by "
                "chance; the error rate comes out above one half"
            )
        if result.infeasible.any():
            warnings.append(
                "not-converged: no joint error rates give the agreement rates observed; error "
                "rates come from pairs instead"
            )
        # Whether the optimisation leaves out subsets that were not ruled out by the user.
        wanted = min(self.model.order or len(self.models), len(self.models))
        if self.model.solver == "optimisation" and self.order < wanted:
            warnings.append(
                f"assumption: subsets of two classifiers only, as there are {len(self.models)}: "
                "what more of them do together is left out"
            )
        return (*warnings, *self.doubts)

    def _named(self, marked: Bools) -> str:
        """Classifiers, and domains where there are any, that are marked (D, M)."""
        names, several = domain_texts(self.domains), len(self.domains) > 1
        return listed(
            f"{self.models[j]} in {names[d]}" if several else self.models[j]
            for d, j in np.argwhere(marked)
        )


@dataclass(frozen=True, eq=False)
class _RefitRates:
    """Error rates around those of all items (`fewlabels.posterior.VoteRates`).

    Normal with the covariance of the refits: these are too few for the tails of an interval.
    """

    fitted: _FittedAgreement
    predictions: Predictions
    domain: Ints
    marginals: Floats

    @property
    def models(self) -> tuple[str, ...]:
        return self.fitted.models

    @property
    def place(self) -> Mapping[str, int]:
        return self.predictions.place

    @property
    def domains(self) -> tuple[str | None, ...]:
        return self.fitted.domains

    @property
    def size(self) -> int:
        return _RATE_DRAWS

    @property
    def one_rate(self) -> bool:
        """True: agreement tells no class from the other."""
        return True

    @property
    def error_rates(self) -> Floats:
        return self._rates.error_rates

    @property
    def confusion(self) -> Floats:
        return self._rates.confusion

    def covers(self, rows: Ints, j: int) -> bool:
        """False too where the refits say nothing: the label posterior has to do.

        That is where a classifier meets nobody or never disagrees.
        """
        vary = self.fitted.refits[np.unique(self.domain[rows]), j].std(axis=1) > 0
        return bool(vary.all()) and self._rates.covers(rows, j)

    def joint(self, rows: Ints, j: int, draws: slice = slice(None)) -> Floats:
        return self._rates.joint(rows, j, draws)

    @cached_property
    def _rates(self) -> VoteRates:
        refits = self.fitted.refits
        spread = (refits - refits.mean(axis=2, keepdims=True)) / np.sqrt(
            max(refits.shape[2] - 1, 1)
        )
        noise = np.random.default_rng(self.fitted.salt).standard_normal(
            (self.size, refits.shape[2])
        )
        noise -= noise.mean(axis=0)
        drawn = self.fitted.result.error + np.einsum("dmb,tb->tdm", spread, noise)
        error = np.clip(drawn, CLIP, 1 - CLIP)
        d = len(self.domains)
        weights = self.marginals * self.predictions.times[:, None]
        total = np.stack([np.bincount(self.domain, p, d) for p in weights.T], axis=1)
        shares = total / np.maximum(total.sum(axis=1, keepdims=True), 1)
        return VoteRates(
            models=self.models,
            domains=self.domains,
            rates=np.stack([error, 1 - error], axis=-1)[:, :, :, None],
            shares=np.broadcast_to(shares, (self.size, *shares.shape)),
            domain=self.domain,
            predictions=self.predictions,
        )


# --- joint error rates of subsets -------------------------------------------------------------
#
# The e_A, the probability that all of the classifiers in A err, that come nearest to independence
# and give the agreement rates that were observed. Source: Platanios, Blum and Mitchell (2014),
# section 3.


START = 0.25


class JointErrors(NamedTuple):
    """e_A of every subset (S,), singles first, and whether the solver found a feasible minimum."""

    values: Floats
    converged: bool


@cache
def subsets(m: int, order: int) -> tuple[tuple[int, ...], ...]:
    """Subsets of m classifiers of 1 to `order` members, smaller ones first."""
    return tuple(a for size in range(1, order + 1) for a in combinations(range(m), size))


def agreement_rates(votes: Array, weights: Floats, order: int) -> Floats:
    """How often all of each even subset agree, (E,): votes (n, M) of 0 and 1, -1 = missing.

    Over the items where all of the subset vote; NaN where there are none. The rates of odd subsets
    follow from those of the even ones.
    """
    out = []
    for a in _even(votes.shape[1], order):
        part = votes[:, a]
        all_vote = (part >= 0).all(axis=1)
        agree = all_vote & (part == part[:, :1]).all(axis=1)
        total = weights[all_vote].sum()
        out.append(weights[agree].sum() / total if total > 0 else np.nan)
    return np.array(out)


def _even(m: int, order: int) -> list[tuple[int, ...]]:
    return [a for a in subsets(m, order) if len(a) % 2 == 0]


@cache
def _equalities(m: int, order: int) -> tuple[Floats, Floats]:
    """Matrix (E, S) and constants (E,): matrix @ e + constants are the agreement rates.

    a_A = P(none errs) + P(all err), the first by inclusion and exclusion.
    """
    place = {a: s for s, a in enumerate(subsets(m, order))}
    even = _even(m, order)
    matrix = np.zeros((len(even), len(place)))
    for row, a in enumerate(even):
        for size in range(1, len(a)):
            for part in combinations(a, size):
                matrix[row, place[part]] = (-1.0) ** size
        matrix[row, place[a]] = 2.0
    return matrix, np.ones(len(even))


@cache
def _inclusions(m: int, order: int) -> scipy.sparse.csr_matrix:
    """Rows (I, S) that are not negative: e_{A without i} - e_A."""
    place = {a: s for s, a in enumerate(subsets(m, order))}
    rows = [
        (place[a[:i] + a[i + 1 :]], s)
        for a, s in place.items()
        if len(a) > 1
        for i in range(len(a))
    ]
    larger, smaller = np.array(rows).T
    at = np.arange(len(rows))
    return scipy.sparse.csr_matrix(
        (np.r_[np.ones(len(rows)), -np.ones(len(rows))], (np.r_[at, at], np.r_[larger, smaller])),
        shape=(len(rows), len(place)),
    )


def _dependence(e: Floats, member: Bools) -> tuple[float, Floats]:
    """Sum over subsets A of two and more of (e_A - prod e_i)^2, and its gradient."""
    m = member.shape[1]
    factors = np.where(member, e[:m], 1.0)
    gap = e - factors.prod(axis=1)
    gap[:m] = 0.0
    # The product without classifier i, from both ends: some e_i may be 0.
    left = np.cumprod(np.c_[np.ones(len(e)), factors[:, :-1]], axis=1)
    right = np.cumprod(np.c_[np.ones(len(e)), factors[:, :0:-1]], axis=1)[:, ::-1]
    slope = 2 * gap
    slope[:m] = -2 * (gap[:, None] * left * right * member).sum(axis=0)
    return float((gap**2).sum()), slope


def nearest_to_independence(
    rates: Floats, m: int, order: int, start: Floats | None = None
) -> JointErrors:
    """Minimise sum (e_A - prod_{i in A} e_i)^2 under the agreement rates (E,), NaN = not observed.

    Constraints: a_A of every even subset, e_A <= e_{A without i}, 0 <= e <= 1/2. Solver: sequential
    least-squares programming; 2^M variables, so for few classifiers.
    """
    # Which classifier is in which subset, (S, M).
    member = np.array([[i in a for i in range(m)] for a in subsets(m, order)])
    matrix, constant = _equalities(m, order)
    seen = ~np.isnan(rates)
    equal, target = matrix[seen], (rates - constant)[seen]
    inside = _inclusions(m, order).toarray()
    scale = 100.0  # the loss is of the order 1e-3: the solver stops at absolute changes

    def loss(e: Floats) -> tuple[float, Floats]:
        value, slope = _dependence(e, member)
        return scale * value, scale * slope

    optimum = minimize(
        loss,
        np.full(len(member), START) if start is None else start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 0.5)] * len(member),
        constraints=[
            {"type": "eq", "fun": lambda e: equal @ e - target, "jac": lambda _: equal},
            {"type": "ineq", "fun": lambda e: inside @ e, "jac": lambda _: inside},
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    feasible = bool(seen.any()) and float(np.abs(equal @ optimum.x - target).max()) < 1e-6
    return JointErrors(optimum.x, feasible and bool(optimum.success))


# --- error rates from the agreement of pairs --------------------------------------------------
#
# With c_ij = 2 P(i and j agree) - 1 and u_i = 1 - 2 e_i, classifiers that err independently of
# each other have c_ij = u_i u_j, whatever the class shares: a matrix of rank one, but for its
# diagonal. Source: Platanios et al. (2014).


class Agreement(NamedTuple):
    """Weighted overlap (M, M) of each two classifiers, and c (M, M), 0 where they never meet.

    Diagonals are 0: a classifier's agreement with itself says nothing.
    """

    c: Floats
    overlap: Floats


class ErrorRates(NamedTuple):
    """Error rates (M,), NaN without any overlap; where three classifiers overlap; what was clipped.

    `clipped` marks classifiers whose agreement rates no error rate in [0, 1] explains.
    """

    error: Floats
    identified: Bools
    clipped: Bools


def agreement(
    signs: scipy.sparse.csr_matrix, voted: scipy.sparse.csr_matrix, weights: Floats
) -> Agreement:
    """Pairs on the items where both vote: signs (n, M) in [-1, 1], voted (n, M), weights (n,).

    A sign is the mean of a classifier's votes on an item, -1 for class 0 and 1 for class 1.
    """
    scale = scipy.sparse.diags_array(weights)
    total = (signs.T @ (scale @ signs)).toarray()
    overlap = (voted.T @ (scale @ voted)).toarray()
    np.fill_diagonal(overlap, 0.0)
    c = np.divide(total, overlap, out=np.zeros_like(total), where=overlap > 0)
    return Agreement(c, overlap)


def closed_form(pairs: Agreement) -> ErrorRates:
    """Error rates from triples: u_i^2 = c_ij c_ik / c_jk, so e_i = (1 - sqrt(...)) / 2.

    Several triples give one ratio of sums, in which a triple is weighted by the product of its
    three overlaps, so that c_jk near 0 does no harm. The sign of u_i says whether classifier i is
    more often right than wrong; assuming that most are selects the solution among its mirror
    images. The others are flipped first, or positive and negative c would cancel in the sums.
    """
    w = pairs.overlap / max(pairs.overlap.max(initial=0.0), 1e-300)
    signs = _signs(pairs.c * w)
    a = pairs.c * w * np.outer(signs, signs)
    above, below = ((a @ w) * a).sum(axis=1), ((w @ a) * w).sum(axis=1)
    identified = ((w @ w) * w).sum(axis=1) > 0
    solved = identified & (below > 0)
    square = np.divide(above, below, out=np.zeros_like(above), where=solved)
    clipped = identified & (~solved | (square < 0) | (square > 1 + 1e-9))
    u = _from_pairs(a, w, np.sqrt(np.clip(square, 0.0, 1.0)), identified) * signs
    return ErrorRates((1 - u) / 2, identified, clipped)


def _signs(a: Floats) -> Floats:
    """Signs (M,) of the rank-one factor of a (M, M), nearly all positive.

    Greedy ascent of s' a s from ones: the classifier that agrees least with the others is flipped,
    until none disagrees. (The leading eigenvector concentrates on a corner of sparse votes, and its
    signs elsewhere are noise.)
    """
    signs = np.ones(len(a))
    total = a.sum(axis=1)
    while len(a):
        worst = int(np.argmin(signs * total))
        if signs[worst] * total[worst] >= 0:
            break
        total -= 2 * signs[worst] * a[:, worst]
        signs[worst] *= -1
    return signs


def _from_pairs(a: Floats, w: Floats, u: Floats, identified: Bools) -> Floats:
    """Fill in u (M,) of classifiers without a triple; NaN without any overlap.

    A pair with a known classifier gives u_i by least squares. Without one, both classifiers of a
    pair are taken to be equally good.
    """
    out = np.where(identified, u, np.nan)
    solved = identified.copy()
    while solved.any():
        square = w[:, solved] @ np.where(solved, out, 0.0)[solved] ** 2
        new = ~solved & (square > 0)
        if not new.any():
            break
        out[new] = np.clip((a[:, solved] @ out[solved])[new] / square[new], -1.0, 1.0)
        solved |= new
    total = w.sum(axis=1)
    rest = ~solved & (total > 0)
    out[rest] = np.sqrt(np.clip(a.sum(axis=1)[rest] / total[rest], 0.0, 1.0))
    return out


def rank_one(pairs: Agreement, start: Floats) -> Floats:
    """Error rates (M,) that minimise the sum over pairs of n_ij (c_ij - u_i u_j)^2, n_ij overlaps.

    With equal overlaps this is the optimisation over all subsets of at most two classifiers, as
    e_ij - e_i e_j = (c_ij - u_i u_j) / 4.
    """
    w = pairs.overlap / max(pairs.overlap.sum(), 1e-300)

    def loss(u: Floats) -> tuple[float, Floats]:
        gap = w * (pairs.c - np.outer(u, u))
        return float((gap * (pairs.c - np.outer(u, u))).sum()), -4 * gap @ u

    u = 1 - 2 * np.where(np.isnan(start), 0.25, start)
    optimum = minimize(loss, u, jac=True, method="L-BFGS-B", bounds=[(-1.0, 1.0)] * len(u),
                     options={"ftol": 1e-15, "gtol": 1e-10})  # fmt: skip
    return np.where(w.any(axis=1), (1 - optimum.x) / 2, np.nan)
