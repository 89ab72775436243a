"""Dawid-Skene: the classifiers' confusion matrices, or error rates, and the labels, by EM."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse
from scipy.optimize import linear_sum_assignment

from fewlabels.checks.arguments import chosen_from, not_negative, whole
from fewlabels.errors import Status, listed
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.simplex import softmax
from fewlabels.kernels.votes import by_group, has_evidence
from fewlabels.methods.base import FittedLabelModel, LabelModel, with_hard_votes
from fewlabels.methods.em import EMResult, accelerated_em, expectation_maximisation
from fewlabels.methods.votes.data import (
    INDEPENDENT,
    UNLABELED,
    ItemPatterns,
    by_domain,
    domain_codes,
    domains_of,
    elected,
    not_identified,
    vote_totals,
)
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

FLOOR = 1e-10
"""Least count, in items, of a vote under a class, and least class share: unseen votes are nearly
impossible, as in maximum likelihood, but have a logarithm."""

_REFIT_SALT, _MOST, _MANY = 0xDA51D, 2**20, 2**23

_LARGE, _ROUGHLY = 2**17, 10
"""Refits of more P(class) than this stop at so many times the tolerance: in a seventh of the steps
their error rates spread within 2% of what they do at the tolerance."""


@dataclass(frozen=True)
class DawidSkene(LabelModel):
    """P(votes | class) = prod_j P_j(vote_j | class), by EM.

    Known labels stay. Missing votes are skipped, repeated ones count. Source: Dawid and Skene
    (1979), equations 2.3 to 2.5; steps are extrapolated as in Varadhan and Roland (2008).

    Parameters
    ----------
    rates
        "confusion": all K x K probabilities of every classifier. "one": one error rate e per
        classifier, P(vote | class) = 1 - e if they are the same, else e / (K - 1).
    by_domain
        Whether every domain has rates and class shares of its own.
    start
        EM starts from the shares of the votes, or from "majority": the class of most votes gets
        all the probability (classes that tie share it).
    smoothing
        Votes added to every cell of the confusion matrices, and items to every class.
    iterations
        EM steps at most, extrapolated ones included.
    tolerance
        EM stops when class probabilities change by no more than this on average. 0 takes all
        steps, and extrapolates none.
    replicates
        Bootstrap refits for the parameters' uncertainty.
    """

    rates: Literal["confusion", "one"] = "confusion"
    by_domain: bool = False
    start: Literal["shares", "majority"] = "shares"
    smoothing: float = 0.0
    iterations: int = 100
    tolerance: float = 1e-5
    replicates: int = 20

    def __post_init__(self) -> None:
        chosen_from("rates", self.rates, ("confusion", "one"))
        chosen_from("start", self.start, ("shares", "majority"))
        whole("iterations", self.iterations)
        whole("replicates", self.replicates)
        not_negative("smoothing", self.smoothing)
        not_negative("tolerance", self.tolerance)

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Gather items of the same votes and run EM on these."""
        served = with_hard_votes(predictions, "dawid-skene")
        domains = domains_of(served) if self.by_domain else (None,)
        domain = domain_codes(served, domains)
        items, table = _Table.of(served, domain, len(domains), self)
        votes, total = served.vote_counts[items.first], vote_totals(served)
        equal, majority = np.ones((served.n_models, 1)), self.start == "majority"
        fitted = _FittedDawidSkene(
            model=self,
            models=served.models,
            domains=domains,
            classes=tuple(map(str, served.classes)),
            table=table,
            items=items,
            start=elected(votes, table.evidence, equal, total / total.sum(), hard=majority),
            n_informed=served.size_of(has_evidence(served.evidence)),
            doubts=not_identified(served, domain, domains),
            salt=int(rng.integers(2**63)),
        )
        _ = fitted.result
        return fitted


class _Rates(NamedTuple):
    """Class shares (D, K, B) and P(vote | class), (D, M, K votes, K classes, B)."""

    shares: Floats
    confusion: Floats


@dataclass(frozen=True, eq=False)
class _Table:
    """Distinct rows of votes, evidence and domain, and the two steps of EM on them.

    Every domain has its own columns in `votes`, so that one product serves all of them.
    """

    votes: scipy.sparse.csr_matrix
    evidence: Floats
    domain: Ints
    by_domain: scipy.sparse.csr_matrix
    one_rate: bool
    smoothing: float

    @staticmethod
    def of(
        predictions: Predictions, domain: Ints, n_domains: int, model: DawidSkene
    ) -> tuple[ItemPatterns, _Table]:
        """The distinct rows, and where each item is among them."""
        items = ItemPatterns.of(predictions, domain)
        first, u = items.first, len(items)
        domain, evidence = domain[first], predictions.evidence[first]
        votes = by_group(predictions.vote_counts[first], domain, n_domains)
        gather = scipy.sparse.csr_matrix((np.ones(u), (domain, np.arange(u))), (n_domains, u))
        one_rate = model.rates == "one"
        return items, _Table(votes, evidence, domain, gather, one_rate, model.smoothing)

    @cached_property
    def by_vote(self) -> scipy.sparse.csr_matrix:
        """The same, a row for every vote that a classifier may give."""
        return self.votes.T.tocsr()

    @property
    def width(self) -> int:
        """How many runs fit in memory side by side."""
        return max(_MOST // self.evidence.size, 1)

    def maximise(self, responsibilities: Floats, counts: Floats) -> _Rates:
        """Rates that the responsibilities (U, K, B) of `counts` (U, B) items each give."""
        u, k, b = responsibilities.shape
        d = self.by_domain.shape[0]
        weights = (responsibilities * counts[:, None, :]).reshape(u, k * b)
        shares = (self.by_domain @ weights).reshape(d, k, b) + self.smoothing
        shares /= (self.by_domain @ counts)[:, None] + k * self.smoothing
        seen = (self.by_vote @ weights).reshape(d, -1, k, k, b)
        seen += self.smoothing
        if self.one_rate:
            seen = _one_rate(seen)
        np.maximum(seen, FLOOR, out=seen)
        seen /= seen.sum(axis=2, keepdims=True)
        return _Rates(np.maximum(shares, FLOOR), seen)

    def expect(self, rates: _Rates) -> Floats:
        """P(class | votes, evidence), (U, K, B)."""
        logits = self._logits(rates, np.log(rates.confusion))
        return softmax(logits, out=logits)

    def likelihood(self, rates: _Rates, counts: Floats) -> tuple[Floats, Floats]:
        """As `expect`, and what EM makes larger: log P(votes, evidence) and the prior, (B,)."""
        logs = np.log(rates.confusion)
        logits = self._logits(rates, logs)
        top = logits.max(axis=1, keepdims=True)
        logits -= top
        np.exp(logits, out=logits)
        total = logits.sum(axis=1, keepdims=True)
        logits /= total
        np.log(total, out=total)
        total += top
        likely = np.einsum("ukb,ub->b", total, counts)
        if self.smoothing:
            prior = logs.sum(axis=(0, 1, 2, 3)) + np.log(rates.shares).sum(axis=(0, 1))
            likely += self.smoothing * prior
        return logits, likely

    def _logits(self, rates: _Rates, logs: Floats) -> Floats:
        """Log P(votes, class, evidence), (U, K, B)."""
        k, b = rates.shares.shape[1:]
        logits: Floats = (self.votes @ logs.reshape(-1, k * b)).reshape(-1, k, b)
        logits += np.log(rates.shares)[self.domain]
        logits += self.evidence[:, :, None]
        return logits


def _normalised(rates: _Rates) -> _Rates:
    """The same with shares, and the votes under every class, that sum to 1."""
    return _Rates(
        rates.shares / rates.shares.sum(axis=1, keepdims=True),
        rates.confusion / rates.confusion.sum(axis=2, keepdims=True),
    )


def _one_rate(seen: Floats) -> Floats:
    """Votes by class (D, M, K, K, B), right and wrong ones spread evenly over their cells."""
    k = seen.shape[2]
    right = np.einsum("dmkkb->dmb", seen)
    wrong = seen.sum(axis=(2, 3)) - right
    same = np.eye(k)[None, None, :, :, None]
    rate = np.maximum(wrong, FLOOR)[:, :, None, None] / (k - 1)
    return np.asarray(same * right[:, :, None, None] + (1 - same) * rate)


@dataclass(frozen=True, eq=False)
class _FittedDawidSkene(FittedLabelModel):
    model: DawidSkene
    models: tuple[str, ...]
    domains: tuple[str | None, ...]
    classes: tuple[str, ...]
    table: _Table
    items: ItemPatterns
    start: Floats
    n_informed: int
    doubts: tuple[str, ...]
    salt: int

    @cached_property
    def counts(self) -> Floats:
        """Items of each distinct row, (U, 1)."""
        return self.items.counts[:, None]

    @cached_property
    def result(self) -> EMResult:
        return self._run(self.start, self.counts, self.model.tolerance)

    @cached_property
    def rates(self) -> _Rates:
        """What EM's last step rests on, B = 1."""
        return self.table.maximise(self.result.before, self.counts)

    @cached_property
    def refits(self) -> _Rates:
        """As `rates`, of bootstrap replicates: Exp(1) weights of the items.

        They start where EM ended: other maxima of the likelihood are classes that trade names.
        """
        counts = self.items.bootstrapped(self.model.replicates, self.salt ^ _REFIT_SALT)
        enough = self.model.tolerance * (_ROUGHLY if self.start.size > _LARGE else 1)
        out = _Rates(*(np.empty((*of_one.shape[:-1], counts.shape[1])) for of_one in self.rates))
        # EM holds a few arrays of all patterns, which are as many as the items in the worst case.
        for part in spans(counts.shape[1], self.table.width):
            result = self._run(self.result.responsibilities, counts[:, part], enough)
            some = self.table.maximise(result.before, counts[:, part])
            for all_of, of_part in zip(out, some, strict=True):
                all_of[..., part] = of_part
        return out

    def _run(self, start: Floats, counts: Floats, tolerance: float) -> EMResult:
        table, first = self.table, np.repeat(start, counts.shape[1], axis=2)
        iterations = self.model.iterations
        if not tolerance:
            return expectation_maximisation(
                lambda w: table.expect(table.maximise(w, counts)),
                first, iterations=iterations, counts=counts,
            )  # fmt: skip
        return accelerated_em(
            lambda rates: table.likelihood(rates, counts),
            lambda w: table.maximise(w, counts),
            _normalised,
            first, iterations=iterations, tolerance=tolerance, counts=counts,
        )  # fmt: skip

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        served = predictions.select_models(self.models)
        domain = domain_codes(served, self.domains)
        items, table = _Table.of(served, domain, len(self.domains), self.model)
        return LabelPosterior(
            table.expect(self.rates)[items.of_item, :, 0],
            _Refits(self, table, items),
            predictions.keys,
            salt=self.salt,
            value_from="marginals",
            status=Status.ASSUMPTION if self.result.converged else Status.NOT_CONVERGED,
            warnings=self._warnings(self._swapped()),
            diagnostics={
                "error_rate": by_domain(self._error_rates(), self.domains, self.models),
                "class_share": by_domain(self.rates.shares[:, :, 0], self.domains, self.classes),
                "iterations": self.result.iterations,
                "last_change": self.result.change,
                "vote_patterns": len(self.items),
            },
        )

    def _error_rates(self) -> Floats:
        """How often each classifier errs, (D, M); NaN where it does not vote in a domain."""
        right = np.einsum("djkkb,dkb->dj", self.rates.confusion, self.rates.shares)
        right /= self.rates.shares.sum(axis=(1, 2))[:, None]
        votes = np.asarray(self.table.votes.sum(axis=0)).reshape(*right.shape, -1).sum(axis=2)
        return np.where(votes > 0, 1 - right, np.nan)

    def _swapped(self) -> list[str]:
        """Classes that the classifiers together call by another's name, in some domain.

        The likelihood is the same when classes trade names; only the start and the labels say
        which is which.
        """
        traded: dict[str, None] = {}
        n = self.table.by_domain @ self.counts
        for d, share in enumerate(self.rates.shares[:, :, 0]):
            present = np.flatnonzero(share * n[d] >= 1)
            called = self.rates.confusion[d, :, :, :, 0].mean(axis=0)[np.ix_(present, present)]
            vote, true = linear_sum_assignment(called, maximize=True)
            if called[vote, true].sum() > np.trace(called) + 1e-9:
                traded |= {self.classes[present[k]]: None for k in vote[vote != true]}
        return list(traded)

    def _warnings(self, swapped: list[str]) -> tuple[str, ...]:
        warnings = [INDEPENDENT if self.n_informed else UNLABELED]
        if swapped:
            warnings.append(
                f"assumption: items of {listed(swapped)} are mostly called otherwise by the "
                "classifiers; these classes may have traded names"
            )
        if not self.result.converged:
            warnings.append(
                f"not-converged: after {self.result.iterations} iterations the posteriors still "
                f"change by {self.result.change:.2g} on average"
            )
        return (*warnings, *self.doubts)


@dataclass(frozen=True, eq=False)
class _Refits:
    """Bootstrap refits as parameter draws, run when the first interval is asked for."""

    fitted: _FittedDawidSkene
    table: _Table
    items: ItemPatterns

    @property
    def size(self) -> int:
        return self.fitted.model.replicates

    @cached_property
    def probabilities(self) -> Floats:
        """P(class) of every distinct row, refit by refit: (B, U, K)."""
        rates, (u, k) = self.fitted.refits, self.table.evidence.shape
        # Labels are drawn from them: where they are many, six digits do.
        kind = np.float64 if self.size * u * k <= _MANY else np.float32
        out = np.empty((self.size, u, k), dtype=kind)
        for part in spans(self.size, self.table.width):
            some = _Rates(*(of_all[..., part] for of_all in rates))
            out[part] = self.table.expect(some).transpose(2, 0, 1)
        return out

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        place = self.items.of_item[rows]
        out = np.empty((len(index), len(place), self.probabilities.shape[2]))
        for draw, refit in enumerate(index):
            out[draw] = self.probabilities[refit].take(place, axis=0)
        return out.transpose(1, 2, 0)
