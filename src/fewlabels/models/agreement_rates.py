"""Agreement rates: how often two-class classifiers agree tells how often each one errs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse

from fewlabels.errors import InputError, Status
from fewlabels.kernels.agreement import agreement, closed_form, rank_one
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.joint_errors import (
    agreement_rates,
    nearest_to_independence,
)
from fewlabels.kernels.simplex import CLIP
from fewlabels.kernels.votes import by_group, by_item, vote_shares
from fewlabels.models.base import FittedLabelModel, LabelModel, check_count, with_hard_votes
from fewlabels.models.checks import check_choice
from fewlabels.models.ensemble import with_evidence
from fewlabels.models.method import Method
from fewlabels.models.replicates import Refits
from fewlabels.models.vote_data import (
    ItemPatterns,
    by_domain,
    domain_codes,
    domain_texts,
    domains_of,
    vote_totals,
    votes_given,
)
from fewlabels.models.vote_rates import VoteRates
from fewlabels.models.vote_warnings import not_identified
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.wording import listed

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
        check_choice("solver", self.solver, ("optimisation", "closed-form"))
        if self.order is not None:
            check_count("order", self.order)
        check_count("replicates", self.replicates)

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Gather items of the same votes and solve for the error rates.

        Raises
        ------
        InputError
            If there are more than two classes, or no hard predictions.
        """
        served, _ = with_hard_votes(predictions, "agreement-rates")
        if served.n_classes != 2:
            raise InputError(
                "method 'agreement-rates' is for two classes, and these predictions have "
                f"{served.n_classes}; use method 'dawid-skene'"
            )
        domains = domains_of(served) if self.by_domain else (None,)
        domain = domain_codes(served, domains)
        items = ItemPatterns.of(served, domain)
        first, total = items.first, vote_totals(served)
        votes = served.vote_counts[first]
        fitted = _FittedAgreement(
            model=self,
            models=served.models,
            domains=domains,
            rows=tuple(np.flatnonzero(domain[first] == d) for d in range(len(domains))),
            voted=by_item(votes.sign(), np.ones((len(items), 2))).sign(),
            signs=_signs(votes),
            items=items,
            average=total / total.sum(),
            informed=bool((served.evidence != 0).any()),
            doubts=not_identified(served, domain, domains),
            salt=int(rng.integers(2**63)),
        )
        _ = fitted.result
        return fitted


def _signs(votes: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """Mean vote of each classifier on each item, (U, M), -1 for class 0 and 1 for class 1."""
    u = votes.shape[0]
    total = by_item(votes, np.ones((u, 2)))
    signs = by_item(votes, np.tile([-1.0, 1.0], (u, 1)))
    # The two have their entries in the same places: only zeros that are stored say "no vote won".
    signs.data /= total.data
    return signs


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
        asked = self.model.order or (m if m <= MOST_FOR_ALL_SUBSETS else 2)
        return min(asked, m if m <= MOST_FOR_SUBSETS else 2)

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
        found = [
            self._solve_domain(rows, counts[rows], None if warm is None else warm.subsets[d])
            for d, rows in enumerate(self.rows)
        ]
        error, inside, *flags = zip(*found, strict=True)
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
        found = nearest_to_independence(
            agreement_rates(self.dense[rows], counts, order), m, order, warm
        )
        if not found.converged:
            return rank_one(pairs, direct.error), None, unidentified, none, True
        meets_nobody = ~(pairs.overlap > 0).any(axis=1)
        error = np.where(meets_nobody, np.nan, found.values[:m])
        return error, found.values, unidentified, none, False

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
        known = ~np.isnan(error)
        # Whom nothing is known of votes like the mean of the others.
        mean = np.where(known, error, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        weights = 1 - np.where(known, error, mean[:, None])
        shares = vote_shares(votes, weights.reshape(-1, error.shape[2]), self.average)
        return with_evidence(shares, evidence, floor=CLIP)

    def _warnings(self) -> tuple[str, ...]:
        said = [
            "assumption: classifiers err independently of each other, whatever the class, and most "
            "are right more often than not; labels do not change the error rates"
        ]
        found = self.result
        if self.informed and found.unidentified.any():
            said.append(
                f"assumption: {self._named(found.unidentified)}: no three classifiers vote on the "
                "same items two by two; the error rate is a guess from pairs, which the labels do "
                "not change"
            )
        if found.clipped.any():
            said.append(
                f"assumption: {self._named(found.clipped)}: no error rate explains the agreement "
                "with the others; the nearest one that is possible is given"
            )
        worse = np.nan_to_num(found.error) > 0.5 + 1e-9
        if worse.any():
            said.append(
                f"assumption: {self._named(worse)}: agreement with the others is rarer than by "
                "chance; the error rate comes out above one half"
            )
        if found.infeasible.any():
            said.append(
                "not-converged: no joint error rates give the agreement rates observed; error "
                "rates come from pairs instead"
            )
        if self._cut:
            said.append(
                f"assumption: subsets of two classifiers only, as there are {len(self.models)}: "
                "what more of them do together is left out"
            )
        return (*said, *self.doubts)

    @property
    def _cut(self) -> bool:
        """Whether the optimisation leaves out subsets that were not ruled out by the user."""
        wanted = self.model.order or len(self.models)
        return self.model.solver == "optimisation" and self.order < min(wanted, len(self.models))

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
        told = self.fitted.refits[np.unique(self.domain[rows]), j].std(axis=1) > 0
        return bool(told.all()) and self._rates.covers(rows, j)

    def joint(self, rows: Ints, j: int) -> Floats:
        return self._rates.joint(rows, j)

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
        d, weighty = len(self.domains), np.flatnonzero(self.predictions.weight > 0)
        weights = self.marginals * self.predictions.times[:, None]
        total = np.stack([np.bincount(self.domain, p, d) for p in weights.T], axis=1)
        shares = total / np.maximum(total.sum(axis=1, keepdims=True), 1)
        return VoteRates(
            models=self.models,
            domains=self.domains,
            rates=np.stack([error, 1 - error], axis=-1)[:, :, :, None],
            shares=np.broadcast_to(shares, (self.size, *shares.shape)),
            n_votes=votes_given(self.predictions, self.domain, d, weighty),
            domain=self.domain,
            predictions=self.predictions,
        )


METHOD = Method(
    "agreement-rates",
    AgreementRates,
    "error rates from how often the classifiers agree",
    "How often classifiers agree tells how often each one errs, if they err independently of each "
    "other. Error rates that come nearest to this and give the agreement observed are found; every "
    "item's label is then the classifiers' votes, weighted by how often each is right. Known "
    "labels stay, but do not change the error rates.",
    (
        "classifiers err independently of each other, and as often on one class as on the other",
        "most classifiers are right more often than not",
    ),
    (
        "classifiers make the same mistakes: their agreement then looks like accuracy",
        "there are fewer than three classifiers that vote on the same items",
        "labels are wanted as probabilities: shares of votes are not calibrated",
    ),
    "Platanios, Blum and Mitchell (2014)",
    diagnostics={
        "error_rate": "how often each classifier errs",
        "subset_size": "classifiers in the largest subsets whose agreement was used",
        "vote_patterns": "distinct combinations of votes and labels",
    },
    learns_from="hard predictions",
    counts_rows=True,
    needs=frozenset({"two classes"}),
)
