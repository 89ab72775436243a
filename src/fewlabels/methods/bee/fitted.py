"""Results of Gibbs sampling of votes: draws, the labels of any items, diagnostics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtri

from fewlabels.errors import Status
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.blocks import index_blocks, map_blocks
from fewlabels.kernels.hmc import bulk_size, rank_r_hat, tail_size
from fewlabels.kernels.simplex import logsumexp, softmax
from fewlabels.methods.base import FittedLabelModel, gravest
from fewlabels.methods.bee.table import (
    ALONE,
    DOMAINS,
    FRANCHISE,
    Constraints,
    States,
    VoteData,
    VoteDraws,
)
from fewlabels.methods.replicates import in_turn
from fewlabels.methods.votes.data import (
    INDEPENDENT,
    VoteRates,
    by_domain,
    domain_texts,
    domains_of,
    not_identified,
    straddling,
    wait_notes,
)
from fewlabels.posterior import LabelPosterior, ParameterDraws
from fewlabels.predictions import Predictions

_LEAST = 100
"""Effective draws per chain that a run needs; half of those kept if these are fewer."""

_CHANCE = 0.01
"""Probability that the largest R-hat of chains that agree exceeds the limit."""

_JUDGED = 200
"""Error rates, and class shares, whose chains are compared: those of the most votes."""

_COUNTS = 0.1
"""Weight in a mixture from which a model's chains must agree."""

_FEWEST = 4
"""Draws of a chain whose halves can be compared."""

_CACHED = 2**23
_WIDTH = 2**22


@dataclass(frozen=True, eq=False)
class RateDraws:
    """P(label) of items in T draws: rates (T, units, Q, C) and state shares (T, G, S).

    Draws alternate between chains, so that any first ones mix them (`ParameterDraws`).
    """

    rates: Floats
    shares: Floats
    n_classes: int
    data: VoteData

    @property
    def size(self) -> int:
        """Number of draws, T."""
        return len(self.rates)

    def log_joint(self, index: Ints, rows: Ints | None = None) -> Floats:
        """Log P(votes, state, evidence) of distinct rows under some draws, (R, S, D)."""
        rates, shares = self.rates[index], self.shares[index]
        return self.data.table.log_joint(rates, shares, self.n_classes, rows)

    @property
    def chunks(self) -> list[Ints]:
        """Draws in chunks that fit in memory beside the rows."""
        width = max(_WIDTH // max(self.data.table.evidence.size, 1), 1)
        return index_blocks(self.size, min(width, 64))

    def marginals(self) -> Floats:
        """P(label) of every item, (n, K): the mean over the draws (Rao-Blackwell)."""
        total = np.zeros(self.data.table.evidence.shape)
        for part in map_blocks(
            lambda index: softmax(self.log_joint(index)).sum(axis=2), self.chunks
        ):
            total += part
        total /= self.size
        # Means of exact zeros and ones stay so; the rest may be off by rounding.
        total /= total.sum(axis=1, keepdims=True)
        return self.data.labels(total, slice(None), self.n_classes)

    def log_predictive(self) -> Floats:
        """Log of the mean over the draws of P(votes, evidence) of every item, (n,)."""
        parts = map_blocks(
            lambda index: logsumexp(logsumexp(self.log_joint(index)), axis=1), self.chunks
        )
        mean = logsumexp(np.stack(list(parts), axis=1), axis=1) - np.log(self.size)
        return mean[self.data.of_item]

    @cached_property
    def _by_row(self) -> Floats | None:
        """P(state) of all distinct rows, where these are few."""
        if self.data.table.evidence.size * self.size > _CACHED:
            return None
        return np.concatenate([softmax(self.log_joint(index)) for index in self.chunks], axis=2)

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label) of these items in these draws, (n, K, D)."""
        if self._by_row is not None:
            return self.data.labels(self._by_row[:, :, index], rows, self.n_classes)
        distinct, place = np.unique(self.data.of_item[rows], return_inverse=True)
        by_row = softmax(self.log_joint(index, distinct))
        return self.data.labels_of(by_row[place], rows, self.n_classes)


class Mixing(NamedTuple):
    """Whether chains agree: largest R-hat and least effective draws, each with its limit."""

    r_hat: float
    bulk: float
    tail: float
    most_r_hat: float
    least: float

    @property
    def wants_more(self) -> bool:
        """Whether more sweeps may help: not if there are too few draws to tell."""
        return self.r_hat > self.most_r_hat or min(self.bulk, self.tail) < self.least

    @property
    def converged(self) -> bool:
        """Whether the chains agree, with at least half the required effective draws."""
        return self.r_hat <= self.most_r_hat and min(self.bulk, self.tail) >= self.least / 2

    @staticmethod
    def of(draws: VoteDraws, states: States, votes: Floats) -> Mixing:
        """Mixing of error rates and class shares; of many, those with the most votes (units,).

        The limit of R-hat depends on their number P. R-hat^2 of chains in m parts that agree is
        about 1 + chi^2(m - 1) / ((m - 1) e), with e effective draws per part, at least 50 (Vehtari
        et al. 2021); the limit is its quantile 1 - .01 / (2 P), since chance can exceed 1.01. A
        quarter of the effective draws is enough if hard items have rates of their own: the
        allowance there (`VoteSelection`) is larger than the error of the chains.
        """
        t, c = draws.rates.shape[:2]
        if draws.independent:
            return Mixing(1.0, float(t * c), float(t * c), 1.0, 0.0)
        if t < _FEWEST:
            return Mixing(*[float("nan")] * 5)
        values = _judged(draws, states, votes)
        parts, least = 2 * c, min(_LEAST * c, t * c / 2) / (4 if states.levels > 1 else 1)
        chi = chdtri(parts - 1, _CHANCE / (2 * values.shape[2])) / (parts - 1)
        return Mixing(
            float(rank_r_hat(values).max()),
            float(bulk_size(values).min()),
            float(tail_size(values).min()),
            float(np.sqrt(1 + chi * parts / least)),
            least,
        )


def _judged(draws: VoteDraws, states: States, votes: Floats) -> Floats:
    """Error rates and class shares of the units and domains with the most votes, (T, C, q)."""
    t, c, n_units = draws.rates.shape[:3]
    n_domains = len(states.group)
    units = np.sort(np.argsort(-votes, kind="stable")[:_JUDGED])
    by_domain = votes.reshape(n_domains, -1).sum(axis=1)
    domains = np.sort(np.argsort(-by_domain, kind="stable")[:_JUDGED])
    rates = draws.rates[:, :, units]
    k = int(states.class_of.max()) + 1
    shares = states.of_draws(draws.shares).reshape(t * c, *draws.shares.shape[2:])
    if rates.shape[3] > 1:
        every = draws.rates.reshape(t * c, *draws.rates.shape[2:])
        by_class = states.class_rates(every, shares)[:, units]
        rates = by_class.reshape(t, c, *by_class.shape[1:])
    shares = states.class_shares(shares, k).reshape(t, c, n_domains, -1)
    errors = rates[..., 0, 0]
    if rates.shape[3] > 1:
        of_unit = shares[:, :, units // (n_units // n_domains)]
        errors = 1 - np.einsum("tcuk,tcukk->tcu", of_unit, rates)
    return np.concatenate([errors, shares[:, :, domains, 1:].reshape(t, c, -1)], axis=2)


@dataclass(frozen=True, eq=False)
class FittedVoteModel(FittedLabelModel):
    """Draws of a model of votes, which apply to any items of the same domains.

    votes (units,) says how often a classifier votes in a domain of the items it was fitted on;
    counted (units,) how much one of its votes counts, where that is not 1 for all.
    """

    constraints: Constraints | None
    coupling: int
    models: tuple[str, ...]
    classes: tuple[str, ...]
    domains: tuple[str | None, ...]
    states: States
    draws: VoteDraws
    votes: Floats
    salt: int
    counted: Floats | None = None
    notes: tuple[str, ...] = ()

    def after(self, seconds: float) -> FittedVoteModel:
        """The same fit, with a note if these seconds were many because nothing was compiled."""
        from fewlabels.kernels.compiled import IS_COMPILED

        return self if IS_COMPILED else replace(self, notes=wait_notes(seconds))

    def pooled(self, predictions: Predictions) -> RateDraws:
        """Draws of all chains, alternating, with their posterior of these items."""
        d = self.draws
        size = d.rates.shape[0] * d.rates.shape[1]
        shares = self.states.of_draws(d.shares).reshape(size, *d.shares.shape[2:])
        rates = d.rates.reshape(size, *d.rates.shape[2:])
        data = VoteData.of(
            predictions, self.domains, self.states, self.constraints, counted=self.counted
        )
        return RateDraws(rates, shares, len(self.classes), data)

    def log_predictive(self, predictions: Predictions) -> Floats:
        """Log P(votes, evidence) of every item, the mean over the draws, (n,)."""
        return self.pooled(predictions.select_models(self.models)).log_predictive()

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """Labels, error rates and class shares of these items."""
        served = predictions.select_models(self.models)
        draws = self.pooled(served)
        data = draws.data
        # Fitted in the order of their names, shown in that of the items.
        names = dict.fromkeys((*domains_of(served), *self.domains))
        order = np.array([self.domains.index(name) for name in names if name in self.domains])
        by_class = self.states.class_rates(draws.rates, draws.shares)
        by_unit = by_class.reshape(draws.size, len(order), -1, *by_class.shape[2:])
        rates = VoteRates(
            served.models,
            tuple(self.domains[d] for d in order),
            # Rates of thousands of annotators are large: no copy for a single domain.
            by_unit if len(order) == 1 else by_unit[:, order],
            self.states.class_shares(draws.shares, draws.n_classes)[:, order],
            np.argsort(order)[data.domain],
            served,
        )
        voted = self.votes.reshape(len(self.domains), -1)[order] > 0
        mixing = self._mixing
        status = Status.ASSUMPTION if mixing.converged else Status.NOT_CONVERGED
        if predictions.labeled.all() and status is Status.ASSUMPTION:
            status = Status.OK  # there is nothing left to assume
        return LabelPosterior(
            draws.marginals(),
            draws,
            predictions.keys,
            salt=self.salt,
            vote_rates=rates,
            status=status,
            warnings=self._warnings(served, data, rates, voted),
            diagnostics=self._diagnostics(rates, data, voted)
            | ({} if self.coupling == ALONE else self._clusters(rates.domains, order)),
        )

    @cached_property
    def _mixing(self) -> Mixing:
        return Mixing.of(self.draws, self.states, self.votes)

    def _diagnostics(self, rates: VoteRates, data: VoteData, voted: Bools) -> dict[str, Any]:
        # Where nobody lends rates, those of a classifier that does not vote are its prior.
        shown = voted if self.coupling == ALONE else np.ones_like(voted)
        return {
            **mean_rates(rates, shown),
            "vote_patterns": len(data.table.items),
            "chains": self.draws.rates.shape[1],
            "r_hat": self._mixing.r_hat,
            "effective_draws": self._mixing.bulk,
            "effective_draws_tail": self._mixing.tail,
        }

    def _clusters(self, domains: Sequence[str | None], order: Ints) -> dict[str, Any]:
        """Which domains and classifiers share rates, if the model allows it."""
        atom = self.draws.atom.reshape(-1, len(self.domains), len(self.models))[:, order]
        alpha, gamma = self.draws.concentration.mean(axis=(0, 1)).tolist()
        return {
            "concentration": alpha,
            **({"top_concentration": gamma} if self.coupling == FRANCHISE else {}),
            **summary(atom, domains, self.models, by_domain=self.coupling == DOMAINS),
        }

    def _warnings(
        self, predictions: Predictions, data: VoteData, rates: VoteRates, voted: Bools
    ) -> tuple[str, ...]:
        warnings = list(not_identified(predictions, data.domain, self.domains))
        warnings += straddling(rates.error_rates, voted, rates.domains)
        if not predictions.labeled.all():
            warnings.append(INDEPENDENT)
        mixing = self._mixing
        parts = "the chains" if self.draws.rates.shape[1] > 1 else "the halves of the chain"
        if np.isnan(mixing.r_hat):
            warnings.append(
                f"not-converged: too few draws to tell whether {parts} agree; keep more"
            )
        elif not mixing.converged:
            warnings.append(
                f"not-converged: {parts} do not agree (R-hat {mixing.r_hat:.2f}, should be "
                f"below {mixing.most_r_hat:.2f}; worth {min(mixing.bulk, mixing.tail):.0f} "
                f"independent draws, should be {mixing.least / 2:.0f}); use more sweeps, or get "
                "labels"
            )
        return (*warnings, *self.notes)


# --- several models -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MixtureDraws:
    """P(label) of items, each draw by one of several models (`ParameterDraws`).

    part and place (T,): whose draw it is, and which of its draws.
    """

    parts: tuple[ParameterDraws, ...]
    part: Ints
    place: Ints

    @property
    def size(self) -> int:
        """Number of draws."""
        return len(self.part)

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label) of these items in these draws, (n, K, D)."""
        return in_turn(self.parts, self.part[index], self.place[index], rows)


def mixture(parts: Sequence[LabelPosterior], weights: Floats, salt: int) -> LabelPosterior:
    """The posterior of a mixture of models of votes, fitted to the same items.

    As many draws as a model has, of each its share; the status is the gravest of those that weigh
    a tenth or more.
    """
    if len(parts) == 1:
        return parts[0]
    size = min(part.parameters.size for part in parts)
    ends = np.floor(np.cumsum(weights) * size + 0.5).astype(np.int64)
    whose = np.searchsorted(ends, np.arange(size), side="right").clip(max=len(parts) - 1)
    rng = np.random.default_rng(salt)
    whose = rng.permutation(whose)
    place = rng.integers(0, [part.parameters.size for part in parts], (size, len(parts)))
    place = place[np.arange(size), whose]
    every = [part.vote_rates for part in parts if isinstance(part.vote_rates, VoteRates)]
    picked = [np.flatnonzero(whose == m) for m in range(len(parts))]
    order = np.argsort(np.concatenate(picked))
    heavy = [part for w, part in zip(weights, parts, strict=True) if w >= _COUNTS]
    pairs = list(zip(every, picked, strict=True))
    rates = np.concatenate([each.confusion[place[columns]] for each, columns in pairs])
    shares = np.concatenate([each.shares[place[columns]] for each, columns in pairs])
    return replace(
        parts[0],
        given=sum(w * part.probabilities for w, part in zip(weights, parts, strict=True)),
        parameters=MixtureDraws(tuple(part.parameters for part in parts), whose, place),
        salt=salt,
        vote_rates=replace(every[0], rates=rates[order], shares=shares[order]),
        status=gravest(part.status for part in heavy),
    )


def mean_rates(rates: VoteRates, shown: Bools) -> dict[str, Any]:
    """Mean error rates (D, M), those `shown`, and class shares, as they go into a result."""
    error = np.where(shown, rates.error_rates.mean(axis=0), np.nan)
    classes = tuple(map(str, rates.predictions.classes))
    return {
        "error_rate": by_domain(error, rates.domains, rates.models),
        "class_share": by_domain(rates.shares.mean(axis=0), rates.domains, classes),
    }


# --- who shares rates with whom ---------------------------------------------------------------


_MOST_NAMES = 200
"""With more names, a matrix of their similarities is of no use."""


def summary(
    atom: Ints, domains: Sequence[str | None], models: Sequence[str], *, by_domain: bool
) -> dict[str, Any]:
    """Similarities and the most probable partition, by atoms (T, D, M), which are shared rates.

    `by_domain`: domains share the rates of all their classifiers, else single classifiers do.
    """
    names = domain_texts(domains)
    out: dict[str, Any] = {"clusters": float(np.mean([len(np.unique(draw)) for draw in atom]))}
    if by_domain:
        units = atom[:, :, 0]
        out["clusters"] = float(np.mean([len(np.unique(draw)) for draw in units]))
    if 1 < len(names) <= _MOST_NAMES:
        out["domain_similarity"] = _similarity(atom).tolist()
    if not by_domain and 1 < len(models) <= _MOST_NAMES:
        out["classifier_similarity"] = _similarity(atom.transpose(0, 2, 1)).tolist()
    if by_domain:
        members = names
    else:
        units = atom.reshape(len(atom), -1)
        several = len(names) > 1
        members = [f"{d}/{m}" if several else m for d in names for m in models]
    if len(members) <= _MOST_NAMES:
        blocks, share = _most_probable(units)
        out["partition"] = [[members[u] for u in np.flatnonzero(blocks == b)]
                            for b in dict.fromkeys(blocks.tolist())]  # fmt: skip
        out["partition_probability"] = share
    return out


def _similarity(atom: Ints) -> Floats:
    """Posterior probability of sharing rates between rows of (T, rows, columns), over columns."""
    rows = atom.shape[1]
    total = np.zeros((rows, rows))
    for draw in atom:
        total += (draw[:, None, :] == draw[None, :, :]).mean(axis=2)
    total /= len(atom)
    return total


def _most_probable(units: Ints) -> tuple[Ints, float]:
    """The partition that most draws (T, units) have, and how many; of equals the most central.

    Central: the least sum of squares from the posterior similarities (Dahl 2006).
    """
    named = []
    for draw in units:
        first: dict[int, int] = {}  # by first appearance, so that equal partitions look equal
        named.append(tuple(first.setdefault(place, len(first)) for place in draw.tolist()))
    count = Counter(named)
    most = max(count.values())
    best = [partition for partition, times in count.items() if times == most]
    if len(best) > 1:
        similar = _similarity(units[:, :, None])
        loss = [float((((np.array(p)[:, None] == np.array(p)) - similar) ** 2).sum()) for p in best]
        best = [best[int(np.argmin(loss))]]
    return np.array(best[0]), most / len(units)
