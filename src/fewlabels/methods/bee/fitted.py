"""What Gibbs sampling of votes leaves behind: draws, the labels of any items, diagnostics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fewlabels.errors import Status
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.blocks import index_blocks, map_blocks
from fewlabels.kernels.hmc import effective_size, split_r_hat
from fewlabels.kernels.simplex import logsumexp, softmax
from fewlabels.methods.base import FittedLabelModel
from fewlabels.methods.bee.constraints import Constraints
from fewlabels.methods.bee.table import (
    ALONE,
    DOMAINS,
    FRANCHISE,
    States,
    VoteData,
    VoteDraws,
    VoteTable,
)
from fewlabels.methods.votes.data import VoteRates, by_domain, domain_texts, domains_of
from fewlabels.methods.votes.warnings import INDEPENDENT, not_identified, straddling, told_wait
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

CONVERGED = 1.1
"""Largest split R-hat of a run whose chains agree."""

_FEWEST = 4
"""Draws of a chain whose halves can be compared."""

_CACHED = 2**23
_WIDTH = 2**22


@dataclass(frozen=True, eq=False)
class RateDraws:
    """T draws: rates (T, units, Q, C) and state shares (T, G, S).

    Draws go round the chains, so any number of the first ones mixes them.
    """

    rates: Floats
    shares: Floats
    n_classes: int

    @property
    def size(self) -> int:
        """Number of draws, T."""
        return len(self.rates)

    def log_joint(self, table: VoteTable, index: Ints, rows: Ints | None = None) -> Floats:
        """Log P(votes, state, evidence) of rows under some draws, (R, S, D)."""
        return table.log_joint(self.rates[index], self.shares[index], self.n_classes, rows)

    def chunks(self, table: VoteTable) -> list[Ints]:
        """Draws in chunks that fit in memory beside the rows."""
        width = max(_WIDTH // max(table.evidence.size, 1), 1)
        return index_blocks(self.size, min(width, 64))

    def marginals(self, table: VoteTable) -> Floats:
        """P(state) of every row, (R, S): the mean over the draws (Rao-Blackwell)."""
        total = np.zeros(table.evidence.shape)
        chunks = self.chunks(table)
        for part in map_blocks(
            lambda index: softmax(self.log_joint(table, index)).sum(axis=2), chunks
        ):
            total += part
        total /= self.size
        # Means of exact zeros and ones stay so; the rest may be off by rounding.
        total /= total.sum(axis=1, keepdims=True)
        return total

    def log_predictive(self, table: VoteTable) -> Floats:
        """Log of the mean over the draws of P(votes, evidence) of one item of each row, (R,)."""

        def part(index: Ints) -> Floats:
            return logsumexp(logsumexp(self.log_joint(table, index)), axis=1)

        parts = list(map_blocks(part, self.chunks(table)))
        out: Floats = logsumexp(np.stack(parts, axis=1), axis=1) - np.log(self.size)
        return out


@dataclass(frozen=True, eq=False)
class LabelDraws:
    """P(label) of items in each draw of the rates (`ParameterDraws`)."""

    draws: RateDraws
    data: VoteData

    @property
    def size(self) -> int:
        """Number of draws."""
        return self.draws.size

    @cached_property
    def _probabilities(self) -> Floats | None:
        table = self.data.table
        if table.evidence.size * self.size > _CACHED:
            return None
        parts = [softmax(self.draws.log_joint(table, index)) for index in self.draws.chunks(table)]
        return np.concatenate(parts, axis=2)

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label) of these items in these draws, (n, K, D)."""
        k = self.draws.n_classes
        if self._probabilities is not None:
            return self.data.labels(self._probabilities[:, :, index], rows, k)
        distinct, place = np.unique(self.data.of_item[rows], return_inverse=True)
        found = softmax(self.draws.log_joint(self.data.table, index, distinct))
        return self.data.labels_of(found[place], rows, k)


@dataclass(frozen=True, eq=False)
class FittedVoteModel(FittedLabelModel):
    """Draws of a model of votes, which apply to any items of the same domains.

    voted (units,) says which classifier votes in which domain of the items it was fitted on.
    """

    constraints: Constraints | None
    coupling: int
    models: tuple[str, ...]
    classes: tuple[str, ...]
    domains: tuple[str | None, ...]
    states: States
    draws: VoteDraws
    voted: Bools
    salt: int
    notes: tuple[str, ...] = ()

    def after(self, seconds: float) -> FittedVoteModel:
        """The same, with a note if these seconds were many for want of a compiler."""
        from fewlabels.methods.bee.compiled import IS_COMPILED

        return self if IS_COMPILED else replace(self, notes=told_wait(seconds))

    def pooled(self) -> RateDraws:
        """Draws of all chains, in turns."""
        d = self.draws
        size = d.rates.shape[0] * d.rates.shape[1]
        shares = d.shares.reshape(size, *d.shares.shape[2:]) * (self.states.weights > 0)
        shares /= shares.sum(axis=2, keepdims=True)
        return RateDraws(d.rates.reshape(size, *d.rates.shape[2:]), shares, len(self.classes))

    def _data(self, predictions: Predictions) -> VoteData:
        return VoteData.of(predictions, self.domains, self.states, self.constraints)

    def log_predictive(self, predictions: Predictions) -> Floats:
        """Log P(votes, evidence) of every item, the mean over the draws, (n,)."""
        data = self._data(predictions.select_models(self.models))
        return self.pooled().log_predictive(data.table)[data.of_item]

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """Labels, error rates and class shares of these items."""
        served = predictions.select_models(self.models)
        data = self._data(served)
        draws = self.pooled()
        # Fitted in the order of their names, shown in that of the items.
        names = dict.fromkeys((*domains_of(served), *self.domains))
        order = np.array([self.domains.index(name) for name in names if name in self.domains])
        by_unit = draws.rates.reshape(draws.size, len(order), -1, *draws.rates.shape[2:])
        rates = VoteRates(
            served.models,
            tuple(self.domains[d] for d in order),
            # Rates of thousands of annotators are large: no copy for a single domain.
            by_unit if len(order) == 1 else by_unit[:, order],
            self.states.class_shares(draws.shares, draws.n_classes)[:, order],
            np.argsort(order)[data.domain],
            served,
        )
        voted = self.voted.reshape(len(self.domains), -1)[order]
        r_hat, effective = self._mixing(rates)
        status = Status.ASSUMPTION if r_hat <= CONVERGED else Status.NOT_CONVERGED
        if predictions.labeled.all() and status is Status.ASSUMPTION:
            status = Status.OK  # there is nothing left to assume
        return LabelPosterior(
            data.labels(draws.marginals(data.table), slice(None), draws.n_classes),
            LabelDraws(draws, data),
            predictions.keys,
            salt=self.salt,
            value_from="draws",
            vote_rates=rates,
            status=status,
            warnings=self._warnings(served, data, rates, voted, r_hat),
            diagnostics=self._diagnostics(rates, data, voted, r_hat, effective)
            | self._clusters(rates.domains, order),
        )

    def _mixing(self, rates: VoteRates) -> tuple[float, float]:
        """Largest R-hat and least effective number of draws of error rates and class shares."""
        t, c = self.draws.rates.shape[:2]
        values = np.concatenate(
            [rates.error_rates.reshape(t, c, -1), rates.shares.reshape(t, c, -1)], axis=2
        )
        if t < _FEWEST:
            return float("nan"), float("nan")
        return float(split_r_hat(values).max()), float(effective_size(values).min())

    def _diagnostics(
        self, rates: VoteRates, data: VoteData, voted: Bools, r_hat: float, effective: float
    ) -> dict[str, Any]:
        mean, share = rates.error_rates.mean(axis=0), rates.shares.mean(axis=0)
        if self.coupling == ALONE:
            # Where nobody lends rates, those of a classifier that does not vote are its prior.
            mean = np.where(voted, mean, np.nan)
        return {
            "error_rate": by_domain(mean, rates.domains, self.models),
            "class_share": by_domain(share, rates.domains, self.classes),
            "vote_patterns": len(data.table.items),
            "chains": self.draws.rates.shape[1],
            "r_hat": r_hat,
            "effective_draws": effective,
        }

    def _clusters(self, domains: Sequence[str | None], order: Ints) -> dict[str, Any]:
        """Who shares rates with whom, where the model lets them."""
        coupling = self.coupling
        if coupling == ALONE:
            return {}
        atom = self.draws.atom.reshape(-1, len(self.domains), len(self.models))[:, order]
        alpha, gamma = self.draws.concentration.mean(axis=(0, 1)).tolist()
        return {
            "concentration": alpha,
            **({"top_concentration": gamma} if coupling == FRANCHISE else {}),
            **summary(atom, domains, self.models, by_domain=coupling == DOMAINS),
        }

    def _warnings(
        self,
        predictions: Predictions,
        data: VoteData,
        rates: VoteRates,
        voted: Bools,
        r_hat: float,
    ) -> tuple[str, ...]:
        said = list(not_identified(predictions, data.domain, self.domains))
        doubt = straddling(rates.error_rates, voted, rates.domains)
        if doubt:
            said.append(doubt)
        if not predictions.labeled.all():
            said.append(INDEPENDENT)
        if np.isnan(r_hat):
            said.append("not-converged: too few draws to tell whether the chains agree; keep more")
        elif r_hat > CONVERGED:
            said.append(
                f"not-converged: the chains do not agree (R-hat {r_hat:.2f}, should be below "
                f"{CONVERGED}); use more sweeps, or get labels"
            )
        return (*said, *self.notes)


# --- who shares rates with whom ---------------------------------------------------------------


_MOST_NAMES = 200
"""Beyond so many names a matrix of their similarities helps nobody."""


def summary(
    atom: Ints, domains: Sequence[str | None], models: Sequence[str], *, by_domain: bool
) -> dict[str, Any]:
    """Similarities and the most probable partition.

    Parameters
    ----------
    atom
        Places (T, D, M): classifiers in domains that have the same one share their rates.
    by_domain
        Whether domains share the rates of all their classifiers, or single classifiers do.
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
