"""Draws of error rates and class shares, and P(label) of items under each of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.blocks import index_blocks, map_blocks
from fewlabels.kernels.simplex import logsumexp, softmax
from fewlabels.methods.bee.table import VoteTable, log_rates
from fewlabels.methods.votes.data import States, VoteData, votes_given
from fewlabels.predictions import Predictions

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

    def log_joint(self, table: VoteTable, index: Ints, rows: Ints | slice) -> Floats:
        """Log P(votes, state, evidence) of some rows under some draws, (R, S, D)."""
        k, (n_states, n_domains) = self.n_classes, table.class_of.shape
        n_units = self.rates.shape[1]
        entries = scipy.sparse.csr_matrix(
            (table.times, table.unit * k + table.vote, table.start),
            shape=(len(table.items), n_units * k),
        )[rows]
        logs = log_rates(self.rates[index], k)  # (D, units, classes, votes)
        domain = np.arange(n_units) // (n_units // n_domains)
        by_state = logs[:, np.arange(n_units)[:, None], table.class_of[:, domain].T]
        weights = by_state.transpose(1, 3, 2, 0).reshape(n_units * k, -1)
        out: Floats = (entries @ weights).reshape(-1, n_states, len(index))
        with np.errstate(divide="ignore"):  # a state that a group does not have has no share
            log_shares = np.log(self.shares[index])
        out += log_shares[:, table.group[rows]].transpose(1, 2, 0)
        out += table.evidence[rows][:, :, None]
        return out

    def chunks(self, table: VoteTable) -> list[Ints]:
        """Draws in chunks that fit in memory beside the rows."""
        width = max(_WIDTH // max(table.evidence.size, 1), 1)
        return index_blocks(self.size, min(width, 64))

    def marginals(self, table: VoteTable) -> Floats:
        """P(state) of every row, (R, S): the mean over the draws (Rao-Blackwell)."""
        total = np.zeros(table.evidence.shape)
        everything = slice(0, len(table.items))
        chunks = self.chunks(table)
        for part in map_blocks(
            lambda index: softmax(self.log_joint(table, index, everything)).sum(axis=2), chunks
        ):
            total += part
        total /= self.size
        # Means of exact zeros and ones stay so; the rest may be off by rounding.
        total /= total.sum(axis=1, keepdims=True)
        return total

    def log_predictive(self, table: VoteTable) -> Floats:
        """Log of the mean over the draws of P(votes, evidence) of one item of each row, (R,)."""
        everything = slice(0, len(table.items))

        def part(index: Ints) -> Floats:
            return logsumexp(logsumexp(self.log_joint(table, index, everything)), axis=1)

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
        everything = slice(0, len(table.items))
        parts = [
            softmax(self.draws.log_joint(table, index, everything))
            for index in self.draws.chunks(table)
        ]
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
class VoteRates:
    """Error rates, confusion matrices and class shares of the population, draw by draw.

    Attributes
    ----------
    models, domains
        Names; a single domain None where the data have none.
    shares
        Class shares of the domains, (T, D, K).
    n_votes
        Items that every classifier votes on in every domain, (D, M).
    """

    models: tuple[str, ...]
    domains: tuple[str | None, ...]
    rates: Floats
    shares: Floats
    n_votes: Ints
    domain: Ints
    predictions: Predictions

    @staticmethod
    def of(
        predictions: Predictions,
        domains: tuple[str | None, ...],
        order: Ints,
        draws: RateDraws,
        states: States,
        data: VoteData,
    ) -> VoteRates:
        """Rates of the classifiers on these items, the domains in that order."""
        size, (d, m) = draws.size, (len(domains), predictions.n_models)
        weighty = np.flatnonzero(predictions.weight > 0)
        domain = np.argsort(order)[data.domain]
        rates = draws.rates.reshape(size, d, m, *draws.rates.shape[2:])
        return VoteRates(
            predictions.models,
            tuple(domains[d] for d in order),
            # Rates of thousands of annotators are large: no copy for a single domain.
            rates if d == 1 else rates[:, order],
            states.class_shares(draws.shares, draws.n_classes)[:, order],
            votes_given(predictions, domain, d, weighty),
            domain,
            predictions,
        )

    @property
    def size(self) -> int:
        """Number of draws, T."""
        return len(self.shares)

    @property
    def one_rate(self) -> bool:
        """Whether a classifier errs equally often in every class: it then has no more than that."""
        return self.rates.shape[-2] == 1

    @cached_property
    def confusion(self) -> Floats:
        """P(vote | class), (T, D, M, K classes, K votes)."""
        return np.exp(log_rates(self.rates, self.shares.shape[2]))

    @cached_property
    def error_rates(self) -> Floats:
        """Error rate of every classifier in every domain, (T, D, M)."""
        if self.one_rate:
            return self.rates[..., 0, 0]
        right = np.einsum("...kk->...k", self.rates)
        out: Floats = 1 - np.einsum("tdmk,tdk->tdm", right, self.shares)
        return out

    def covers(self, rows: Ints, j: int) -> bool:
        """Whether these items are all that classifier j votes on in the domains they are of.

        And weigh the same there: the rates are those of items as they come.
        """
        times = self.predictions.times[rows]
        count = np.bincount(self.domain[rows], times, minlength=len(self.domains))
        here = count > 0
        return bool((self._even[here] & (count == self.n_votes[:, j])[here]).all())

    @cached_property
    def _even(self) -> Bools:
        """Domains (D,) whose items all weigh the same, or nothing."""
        weight = self.predictions.weight
        out = np.ones(len(self.domains), dtype=bool)
        for d in range(len(out)):
            some = weight[(self.domain == d) & (weight > 0)]
            out[d] = not some.size or np.ptp(some) == 0
        return out

    def joint(self, rows: Ints, j: int) -> Floats:
        """P(vote, label) of classifier j, (K votes, K classes, T), where these items come from."""
        mass = self.predictions.weight[rows] * self.predictions.times[rows]
        weight = np.bincount(self.domain[rows], weights=mass, minlength=len(self.domains))
        here = np.flatnonzero(weight)
        share = weight[here] / weight[here].sum()
        rates = np.exp(log_rates(self.rates[:, here, j], self.shares.shape[2]))
        out = np.einsum("d,tdk,tdkv->vkt", share, self.shares[:, here], rates)
        return np.ascontiguousarray(out)  # sums over it do not hang on how the draws lie
