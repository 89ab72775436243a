"""Mean-field variational inference of votes: one deterministic fit instead of chains.

q(labels) q(shares) q(rates): the rows of every classifier's rates are Dirichlet, and so are the
class shares. Updates are those of EM with digamma(count) - digamma(total) for a log probability,
extrapolated as EM is; they increase the evidence lower bound. Source: Kim and Ghahramani (2012);
Bishop (2006), section 10.1.

The Dirichlet factors take the labels' expected counts as observed, so their spread lacks the
uncertainty of the labels. Each draw therefore starts from labels drawn from q and makes some Gibbs
sweeps. With F the share of the information that the labels lack and C the variance with all labels
known, s sweeps give C (1 + F + ... + F^s), of C / (1 - F).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import digamma, gammaln

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import report
from fewlabels.kernels.simplex import softmax
from fewlabels.methods.bee.table import VoteDraws, VotePrior, VoteTable, fit_rates_prior
from fewlabels.methods.em import EMResult, accelerated_em

SWEEPS = 2
"""Gibbs sweeps of a draw: see docs/votes.md for how often intervals hold after so many."""

ITERATIONS, TOLERANCE = 500, 1e-5

_TURNS = 6
"""Most fits if the prior of the rates is learned in alternation with them."""

_CELLS, _VISITS, _FEWEST, _MOST = 2**26, 1_000_000_000, 50, 200
"""Numbers, and votes, of all draws together, and how many draws there are at least and at most."""

_LEAST = 1e-30


class _Factors(NamedTuple):
    """Dirichlet counts of state shares (G, S, 1) and rates (units, Q, C, 1)."""

    shares: Floats
    cells: Floats


class VariationalFit(NamedTuple):
    """The fit: Dirichlet counts of shares (G, S) and rates (units, Q, C), q(state) of rows (R, S).

    And the result of the last EM steps.
    """

    shares: Floats
    cells: Floats
    states: Floats
    em: EMResult


def fit_variational(
    table: VoteTable, prior: VotePrior, n_units: int, *, learned: bool = False
) -> tuple[VariationalFit, VotePrior]:
    """Fit the factors to distinct rows of votes of classifiers that share no rates.

    The prior of the rates is as given or, if `learned`, fitted in alternation with them.
    """
    prior = prior._replace(rates=prior.rates.copy())
    model = _Model(table, prior, n_units)
    items = table.items[:, None].astype(np.float64)
    states = model.start()
    for turn in range(_TURNS if learned else 1):
        em = accelerated_em(
            model.expect, model.maximise, model.feasible, states,
            iterations=ITERATIONS, tolerance=TOLERANCE, counts=items,
        )  # fmt: skip
        factors, states = model.maximise(em.before), em.responsibilities
        if learned and turn < _TURNS - 1:
            before = prior.rates.copy()
            fit_rates_prior(prior.rates, _expected_logs(factors.cells[..., 0]))
            if (prior.rates == before).all():
                break
    shares, cells = (factor[..., 0] for factor in factors)
    return VariationalFit(shares, cells, states[..., 0], em), prior


class _Model:
    """The table as arrays, and the two halves of an update."""

    def __init__(self, table: VoteTable, prior: VotePrior, n_units: int) -> None:
        self.table, self.prior = table, prior
        n_rows, n_columns = prior.rates.shape
        self.one_rate = n_rows == 1
        self.size = (n_units, n_rows, n_columns)
        self.n_classes = max(int(table.row_of.max()) + 1, 2) if self.one_rate else n_columns
        self.arrays = table.arrays(n_units, self.n_classes, n_rows)
        rows = np.arange(len(table.items))
        groups = (len(prior.share), len(rows))
        self.of_group = scipy.sparse.csr_matrix((table.informs, (table.group, rows)), groups)

    def start(self) -> Floats:
        """Shares of the votes, (R, S, 1): of each state, the votes that agree with it."""
        _, n_rows, n_columns = self.size
        right = np.eye(n_columns)[[1] if self.one_rate else np.arange(n_rows) % n_columns]
        agree = np.tile(right.ravel(), self.size[0])[self.arrays.cell]
        share = np.asarray(self.arrays.votes @ agree) + 1 / agree.shape[1]
        logits = np.log(share) + np.log(self.prior.share)[self.table.group]
        out: Floats = softmax(logits + self.table.evidence)
        return out[:, :, None]

    def shares(self, labels: Floats | Ints) -> Floats:
        """Items of every state, of those that inform the shares, by group (G, S)."""
        out: Floats = self.of_group @ labels
        return out

    def maximise(self, states: Floats) -> _Factors:
        """The factors that q(state) (R, S, 1) gives."""
        labels = states[:, :, 0] * self.table.items[:, None]
        return _Factors(
            (self.prior.share + self.shares(labels))[..., None],
            (self.prior.rates + self.arrays.counts(labels, self.size))[..., None],
        )

    def feasible(self, factors: _Factors) -> _Factors:
        """Raise every factor to its prior."""
        return _Factors(
            np.maximum(factors.shares, self.prior.share[..., None]),
            np.maximum(factors.cells, self.prior.rates[..., None]),
        )

    def expect(self, factors: _Factors) -> tuple[Floats, Floats]:
        """q(state) of every row (R, S, 1), and the evidence lower bound (1,)."""
        shares, cells = factors.shares[..., 0], factors.cells[..., 0]
        of_shares, of_cells = _expected_logs(shares), _expected_logs(cells)
        logits = self.logits(of_cells, of_shares)
        top = logits.max(axis=1, keepdims=True)
        logits -= top
        np.exp(logits, out=logits)
        total = logits.sum(axis=1, keepdims=True)
        logits /= total
        bound = ((np.log(total) + top)[:, 0] * self.table.items).sum()
        bound -= _divergence(shares, np.broadcast_to(self.prior.share, shares.shape), of_shares)
        bound -= _divergence(cells, np.broadcast_to(self.prior.rates, cells.shape), of_cells)
        return logits[:, :, None], np.array([bound])

    def logits(self, logs: Floats, log_shares: Floats) -> Floats:
        """Log P(votes, state, evidence) (R, S) from logs of the rates and of the shares."""
        if self.one_rate and self.n_classes > 2:
            logs = logs - [np.log(self.n_classes - 1), 0.0]  # any other class, equally likely
        out = np.asarray(self.arrays.votes @ logs.ravel()[self.arrays.cell])
        out += log_shares[self.table.group]
        out += self.table.evidence
        return out


def n_draws(n_cells: int, n_votes: int, n_kept: int = _MOST) -> int:
    """Number of draws: 200, but fewer with many rates (memory) or votes (time).

    No more than chains would have kept, but at least 50.
    """
    most = min(_CELLS // max(n_cells, 1), _VISITS // max(n_votes, 1), n_kept)
    return int(np.clip(most, _FEWEST, _MOST))


def draw_variational(
    fit: VariationalFit,
    table: VoteTable,
    prior: VotePrior,
    size: int,
    rng: np.random.Generator,
    sweeps: int = SWEEPS,
) -> VoteDraws:
    """Draws of rates and shares around a fit, as those of one chain; 0 sweeps: of its factors."""
    model = _Model(table, prior, len(fit.cells))
    rates = np.empty((size, 1, *fit.cells.shape), dtype=np.float32)
    shares = np.empty((size, 1, *fit.shares.shape))
    for t in range(size):
        states, drawn, share = fit.states, _dirichlet(fit.cells, rng), _dirichlet(fit.shares, rng)
        for sweep in range(sweeps):
            if sweep:
                with np.errstate(divide="ignore"):
                    states = softmax(model.logits(np.log(drawn), np.log(share)))
            labels = model.arrays.drawn(states, table.items, rng)
            drawn = _dirichlet(prior.rates + model.arrays.counts(labels, model.size), rng)
            share = _dirichlet(prior.share + model.shares(labels), rng)
        rates[t, 0], shares[t, 0] = drawn, share
        report(t + 1, size)
    n = len(fit.cells)
    return VoteDraws(
        rates,
        shares,
        np.broadcast_to(np.arange(n), (size, 1, n)),
        np.ones((size, 1, 2)),
        independent=True,
    )


def _expected_logs(counts: Floats) -> Floats:
    """E log p under Dirichlet(counts), along the last axis."""
    out: Floats = digamma(counts) - digamma(counts.sum(axis=-1, keepdims=True))
    return out


def _divergence(counts: Floats, prior: Floats, logs: Floats) -> float:
    """KL(Dirichlet(counts) || Dirichlet(prior)), summed; `logs` are the expected ones of counts."""
    normaliser = gammaln(counts.sum(axis=-1)).sum() - gammaln(counts).sum()
    normaliser -= gammaln(prior.sum(axis=-1)).sum() - gammaln(prior).sum()
    return float(normaliser + ((counts - prior) * logs).sum())


def _dirichlet(counts: Floats, rng: np.random.Generator) -> Floats:
    """One draw along the last axis."""
    out = np.maximum(rng.standard_gamma(counts), _LEAST)
    out /= out.sum(axis=-1, keepdims=True)
    return np.maximum(out, _LEAST)
