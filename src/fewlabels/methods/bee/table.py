"""Votes as the Gibbs samplers see them: distinct rows with counts, and the priors.

A *unit* is one classifier in one domain, number d M + j. A *state* of a row is what its labels may
be: a class, or, where logic ties the labels of several domains, a class in each of them; states
(S) map to the classes (K) of every domain by `class_of` (S, D).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Bools, Floats, Ints

ALONE, DOMAINS, FRANCHISE, TABLES = 0, 1, 2, 3
"""Who may share rates: nobody; domains; units, over all domains; units within a domain."""


class Rules(NamedTuple):
    """How to sweep.

    coupling is one of the four above; `collapsed` integrates rates out of the coupling step,
    `collapsed_labels` out of the labels too; learned concentrations have a Gamma(1, 1) prior.
    """

    coupling: int
    flip: bool
    collapsed: bool
    collapsed_labels: bool
    learn_alpha: bool
    learn_gamma: bool


class VoteTable(NamedTuple):
    """Distinct rows of votes.

    start (R + 1,) delimits the entries of each row; entry -> unit, vote and how many times; row ->
    number of its items, group whose state shares it has, and log-likelihood evidence (R, S) of what
    is known of its label. `informs` (R,) is 1 where the row counts for the state shares, else 0;
    `free` (G,) says that nothing is known of any label in the group. class_of is (S, D).
    """

    start: Ints
    unit: Ints
    vote: Ints
    times: Floats
    items: Ints
    group: Ints
    evidence: Floats
    informs: Floats
    free: Bools
    class_of: Ints


class VotePrior(NamedTuple):
    """Dirichlet priors: state shares (G, S), rates (Q, C).

    One rate per unit: Q = 1, C = 2, errors first. A confusion matrix per unit: Q = C = K, a row
    per true class.
    """

    share: Floats
    rates: Floats


class VoteState(NamedTuple):
    """Everything that a chain remembers; arrays are changed in place.

    labels (R, S) items of a row in each state; shares (G, S); cells (units, Q, C) counts of votes
    under the labels; atom (units,): whose rates a unit has; phi (units, Q, C) rates by atom;
    log_rates (units, K, K) log P(vote | class); concentration (2,) alpha and gamma.
    cluster (D,) of the domains; table (D, M) of a unit; dish (D, M) of a table, -1 = empty.
    """

    labels: Ints
    shares: Floats
    cells: Floats
    atom: Ints
    phi: Floats
    log_rates: Floats
    concentration: Floats
    cluster: Ints
    table: Ints
    dish: Ints


@dataclass(frozen=True)
class Schedule:
    """Sweeps before the first draw, sweeps after it, sweeps per kept draw, and chains."""

    burn_in: int
    sweeps: int
    thin: int
    chains: int


@dataclass(frozen=True, eq=False)
class VoteDraws:
    """Kept draws, chain by chain: T draws of each of C chains.

    rates (T, C, units, Q, C'), shares (T, C, G, S), atom (T, C, units): equal where units share
    their rates, concentration (T, C, 2).
    """

    rates: Floats
    shares: Floats
    atom: Ints
    concentration: Floats


def log_rates(rates: Floats, n_classes: int) -> Floats:
    """Log P(vote | class), (..., K classes, K votes), of rates (..., Q, C); see `VotePrior`."""
    if rates.shape[-2] > 1:
        out: Floats = np.log(rates)
        return out
    wrong = np.log(rates[..., 0, 0] / (n_classes - 1))
    shape = (*rates.shape[:-2], n_classes, n_classes)
    out = np.broadcast_to(wrong[..., None, None], shape).copy()
    out[..., np.arange(n_classes), np.arange(n_classes)] = np.log(rates[..., 0, 1])[..., None]
    return out
