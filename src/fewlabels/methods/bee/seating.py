"""Chinese restaurants: which domains, or which classifiers in which domains, share their rates.

Rates are integrated out: a customer with counts x joins a group with counts b with likelihood
B(a + b + x) / B(a + b), B a product over rows of multivariate beta functions. With `collapsed`
false the current rates phi of existing groups stand instead, and a new group draws its own at once
(Neal 2000, algorithm 2).

Source: Platanios, Dubey, Mitchell (2016), sections 4.2 and 4.3; Teh et al. (2006).
"""

from __future__ import annotations

import bisect
import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.methods.bee.compiled import compiled_or, compiled_part

LEAST = 1e-12
"""Rates and shares are clipped to it before logarithms."""

_FEW = 16.0
"""Votes up to which a ratio of gamma functions is a product; that of so many cannot overflow."""


def _rates_by_arrays(concentration: Floats, rng: np.random.Generator) -> Floats:
    out: Floats = rng.standard_gamma(concentration)
    out /= np.maximum(out.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return np.maximum(out, LEAST, out=out)


@compiled_or(_rates_by_arrays)
def draw_rates(concentration: Floats, rng: np.random.Generator) -> Floats:
    """Rates from Dirichlet(concentration) row by row, (n, C)."""
    out: Floats = np.empty(concentration.shape)
    for q in range(len(out)):
        total = 0.0
        for c in range(out.shape[1]):
            out[q, c] = rng.standard_gamma(concentration[q, c])
            total += out[q, c]
        for c in range(out.shape[1]):
            out[q, c] = max(out[q, c] / total if total > 0 else 0.0, LEAST)
    return out


def _pick_of_few(log_weights: Floats, rng: np.random.Generator) -> int:
    weights = log_weights.tolist()
    top = max(weights)
    total = list(itertools.accumulate(math.exp(weight - top) for weight in weights))
    # Below the total, whatever rounding does.
    return bisect.bisect_right(total, rng.random() * (total[-1] * (1 - 2.0**-52)))


@compiled_or(_pick_of_few)
def pick(log_weights: Floats, rng: np.random.Generator) -> int:
    """One place, with probability proportional to exp(log_weights), which are overwritten."""
    top = log_weights.max()
    total = 0.0
    for k in range(len(log_weights)):
        log_weights[k] = math.exp(log_weights[k] - top)
        total += log_weights[k]
    left = rng.random() * total
    last = 0
    for k in range(len(log_weights)):
        if log_weights[k] > 0:
            last = k
        left -= log_weights[k]
        if left < 0:
            break
    return last


class Ledger(NamedTuple):
    """Counts of customers and groups, in terms: every row of counts with its total behind it.

    log B is then one sum over the W terms, sum of signs * log Gamma(terms).

    x (N, W) of every customer and alone (N,), its log-likelihood in a new group; terms (A, W) of
    every group, prior included, and held (A,), their log B; log_phi (A, W), 0 for totals; logs of
    0, 1, 2...; prior (W,), signs (W,) and empty, log B of the prior alone.
    """

    x: Floats
    alone: Floats
    terms: Floats
    held: Floats
    log_phi: Floats
    logs: Floats
    prior: Floats
    signs: Floats
    empty: float


def _log_beta_by_arrays(terms: Floats, signs: Floats) -> Floats:
    out: Floats = gammaln(terms) @ signs
    return out


@compiled_or(_log_beta_by_arrays)
def log_beta(terms: Floats, signs: Floats) -> Floats:
    """Log B of every row of terms (n, W), (n,)."""
    out = np.zeros(len(terms))
    for a in range(len(terms)):
        for w in range(len(signs)):
            out[a] += signs[w] * math.lgamma(terms[a, w])
    return out


def _likelihood_by_arrays(ledger: Ledger, x: Floats, size: int, collapsed: bool) -> Floats:
    out: Floats
    if collapsed:
        out = gammaln(ledger.terms[:size] + x) @ ledger.signs
        out -= ledger.held[:size]
    else:
        out = ledger.log_phi[:size] @ x
    return out


@compiled_or(_likelihood_by_arrays)
def likelihood(ledger: Ledger, x: Floats, size: int, collapsed: bool) -> Floats:
    """Log-likelihood of terms x (W,) in each of the first groups, (size,)."""
    out = np.zeros(size)
    few = x.max() <= _FEW
    for a in range(size):
        for w in range(len(x)):
            if not collapsed:
                out[a] += ledger.log_phi[a, w] * x[w]
            elif not few:
                out[a] += ledger.signs[w] * math.lgamma(ledger.terms[a, w] + x[w])
            elif x[w] > 0:
                # Gamma(t + x) / Gamma(t) = t (t + 1) ... (t + x - 1)
                product = 1.0
                for i in range(int(x[w])):
                    product *= ledger.terms[a, w] + i
                out[a] += ledger.signs[w] * math.log(product)
        if collapsed and not few:
            out[a] -= ledger.held[a]
    return out


@compiled_part
def _with_totals(counts: Floats, size: int) -> Floats:
    """Counts (..., Q, C) as terms of so many customers or groups, (size, W)."""
    rows, c = counts.reshape(-1, counts.shape[-1]), counts.shape[-1]
    out = np.empty((len(rows), c + 1))
    out[:, :c] = rows
    out[:, c] = rows.sum(axis=1)
    return out.reshape(size, -1)


@compiled_part
def _ledger(
    cells: Floats, prior: Floats, phi: Floats, group: Ints, size: int, collapsed: bool
) -> Ledger:
    """Counts `cells` of the units, several of which are a customer, in their groups (N,).

    prior (..., Q, C) is a customer's; there are `size` groups.
    """
    x, base = _with_totals(cells, len(group)), _with_totals(prior, 1)
    signs = np.ones((base.size // (prior.shape[-1] + 1), prior.shape[-1] + 1))
    signs[:, -1] = -1.0
    signs = signs.reshape(-1)
    terms = np.empty((size, base.size))
    terms[:] = base
    for n in range(len(group)):
        terms[group[n]] += x[n]
    log_phi = np.zeros((size, 0))
    if not collapsed:
        # Rates of groups that nobody is in may still be zero.
        log_phi = _with_totals(np.log(np.maximum(phi, LEAST)), size)
        log_phi *= signs > 0
    logs = np.empty(len(group) + 1)
    logs[0] = -np.inf
    logs[1:] = np.log(np.arange(1, len(group) + 1))
    empty = log_beta(base, signs)[0]
    alone = log_beta(x + base, signs) - empty
    return Ledger(x, alone, terms, log_beta(terms, signs), log_phi, logs, base[0], signs, empty)


@compiled_part
def _move(ledger: Ledger, group: int, x: Floats, sign: float) -> None:
    """Add terms x (W,) to those of a group, or take them away."""
    ledger.terms[group] += sign * x
    ledger.held[group] = log_beta(ledger.terms[group : group + 1], ledger.signs)[0]


@compiled_part
def _draw_anew(
    ledger: Ledger, group: int, x: Floats, phi: Floats, rng: np.random.Generator
) -> None:
    """Rates of a new group with terms x (W,): its rows of phi (A, rows, C)."""
    c = phi.shape[2]
    concentration = (x + ledger.prior).reshape(-1, c + 1)[:, :c]
    rates = draw_rates(concentration, rng)
    phi[group] = rates
    ledger.log_phi[group].reshape(-1, c + 1)[:, :c] = np.log(rates)


@compiled_part
def seat_domains(
    cells: Floats,
    prior: Floats,
    phi: Floats,
    atom: Ints,
    cluster: Ints,
    concentration: Floats,
    collapsed: bool,
    rng: np.random.Generator,
) -> None:
    """One pass of Gibbs over the clusters (D,) of the domains, whose units have counts `cells`.

    A customer is a domain with the counts of all its classifiers.
    """
    n_domains = len(cluster)
    n_models = len(atom) // n_domains
    own = np.empty((n_models, prior.shape[0], prior.shape[1]))
    own[:] = prior
    ledger = _ledger(cells, own, phi, cluster, n_domains, collapsed)
    blocks = phi.reshape(n_domains, -1, phi.shape[2])
    size = np.bincount(cluster, minlength=n_domains)
    weights = np.empty(n_domains + 1)
    for d in range(n_domains):
        x = ledger.x[d]
        size[cluster[d]] -= 1
        _move(ledger, cluster[d], x, -1.0)
        weights[:-1] = ledger.logs[size] + likelihood(ledger, x, n_domains, collapsed)
        weights[-1] = math.log(concentration[0]) + ledger.alone[d]
        new = pick(weights, rng)
        if new == n_domains:
            new = int(np.argmin(size))  # the first that is empty
            if not collapsed:
                _draw_anew(ledger, new, x, blocks, rng)
        cluster[d] = new
        size[new] += 1
        _move(ledger, new, x, 1.0)
        atom[d * n_models : (d + 1) * n_models] = np.arange(new * n_models, (new + 1) * n_models)


class _Seats(NamedTuple):
    """Who sits where in a franchise, kept up to date while customers move.

    table (D, M) of a customer and dish (D, M) of a table, as in `VoteState`; customers (D, M) at
    every table; serving (A,) tables per dish; ends (1 + D,): all dishes, and all tables of a
    restaurant, have smaller numbers.
    """

    table: Ints
    dish: Ints
    customers: Ints
    serving: Ints
    ends: Ints


@compiled_part
def _number_anew(table: Ints, dish: Ints, phi: Floats) -> _Seats:
    """Number tables and dishes without gaps, so that few are looked at."""
    n_domains, n_models = table.shape
    customers = np.zeros(table.shape, dtype=np.int64)
    serving = np.zeros(len(phi), dtype=np.int64)
    ends = np.zeros(1 + n_domains, dtype=np.int64)
    for d in range(n_domains):
        seated = np.bincount(table[d], minlength=n_models)
        used = np.flatnonzero(seated)
        ends[1 + d] = len(used)
        table[d] = (np.cumsum((seated > 0).astype(np.int64)) - 1)[table[d]]
        customers[d, : len(used)] = seated[used]
        dish[d, : len(used)] = dish[d][used]
        dish[d, len(used) :] = -1
        serving[: len(phi)] += np.bincount(dish[d, : len(used)], minlength=len(phi))
    eaten = np.flatnonzero(serving)
    number = np.cumsum((serving > 0).astype(np.int64)) - 1
    ends[0] = len(eaten)
    phi[: len(eaten)] = phi[eaten]
    serving[: len(eaten)] = serving[eaten]
    serving[len(eaten) :] = 0
    for d in range(n_domains):
        dish[d, : ends[1 + d]] = number[dish[d, : ends[1 + d]]]
    return _Seats(table, dish, customers, serving, ends)


@compiled_part
def seat_classifiers(
    cells: Floats,
    prior: Floats,
    phi: Floats,
    atom: Ints,
    table: Ints,
    dish: Ints,
    concentration: Floats,
    shared: bool,
    collapsed: bool,
    rng: np.random.Generator,
) -> None:
    """One pass of the Chinese restaurant franchise: tables (D, M) of the units, dishes of tables.

    Every domain is a restaurant, its classifiers the customers. With `shared` false tables never
    share a dish, which leaves a restaurant process per domain (cBCC).
    """
    n_domains, n_models = table.shape
    seats = _number_anew(table, dish, phi)
    for d in range(n_domains):
        atom[d * n_models : (d + 1) * n_models] = dish[d][table[d]]
    ledger = _ledger(cells, prior, phi, atom, len(atom), collapsed)
    for d in range(n_domains):
        for j in range(n_models):
            _seat(d, j, seats, ledger, phi, concentration, shared, collapsed, rng)
        if shared:
            for t in range(seats.ends[1 + d]):
                if seats.customers[d, t] > 0:
                    _serve(d, t, seats, ledger, phi, concentration, collapsed, rng)
    for d in range(n_domains):
        atom[d * n_models : (d + 1) * n_models] = dish[d][table[d]]


@compiled_part
def _seat(
    d: int,
    j: int,
    seats: _Seats,
    ledger: Ledger,
    phi: Floats,
    concentration: Floats,
    shared: bool,
    collapsed: bool,
    rng: np.random.Generator,
) -> None:
    """Give customer j of restaurant d a table; a new one gets a dish."""
    u, old = d * seats.table.shape[1] + j, seats.table[d, j]
    x, customers, dish = ledger.x[u], seats.customers[d], seats.dish[d]
    customers[old] -= 1
    _move(ledger, dish[old], x, -1.0)
    if customers[old] == 0:
        seats.serving[dish[old]] -= 1
        dish[old] = -1
    like = likelihood(ledger, x, seats.ends[0], collapsed)
    dishes = _weigh_dishes(like, ledger.alone[u], seats, ledger, concentration[1], shared)
    top = dishes.max()
    anew = math.log(concentration[0]) + top + math.log(np.exp(dishes - top).sum())
    if shared:
        anew -= math.log(seats.serving.sum() + concentration[1])
    size = seats.ends[1 + d]
    tables = np.empty(size + 1)
    tables[:size] = ledger.logs[customers[:size]] + like[dish[:size]]
    tables[size] = anew
    new = pick(tables, rng)
    if new == size:
        # A restaurant has as many tables as customers, so who stands up leaves one empty.
        new = int(np.argmin(customers))
        seats.ends[1 + d] = max(size, new + 1)
        dish[new] = _dish(dishes, x, seats, ledger, phi, collapsed, rng)
    seats.table[d, j] = new
    customers[new] += 1
    _move(ledger, dish[new], x, 1.0)


@compiled_part
def _weigh_dishes(
    like: Floats, alone: float, seats: _Seats, ledger: Ledger, gamma: float, shared: bool
) -> Floats:
    """Log-weights of the dishes that a new table may get, under which it has likelihood `like`.

    The last one is a new dish.
    """
    out = np.empty(len(like) + 1)
    out[:-1] = -np.inf
    if shared:
        out[:-1] = ledger.logs[seats.serving[: len(like)]] + like
    out[-1] = alone + (math.log(gamma) if shared else 0.0)
    return out


@compiled_part
def _dish(
    log_weights: Floats,
    x: Floats,
    seats: _Seats,
    ledger: Ledger,
    phi: Floats,
    collapsed: bool,
    rng: np.random.Generator,
) -> int:
    """Draw a dish for a table with terms x (W,); a new one gets rates."""
    out = pick(log_weights, rng)
    if out == len(log_weights) - 1:
        out = int(np.argmin(seats.serving))  # the first that nobody eats
        seats.ends[0] = max(seats.ends[0], out + 1)
        if not collapsed:
            _draw_anew(ledger, out, x, phi, rng)
    seats.serving[out] += 1
    return out


@compiled_part
def _serve(
    d: int,
    t: int,
    seats: _Seats,
    ledger: Ledger,
    phi: Floats,
    concentration: Floats,
    collapsed: bool,
    rng: np.random.Generator,
) -> None:
    """Give table t of restaurant d, with all its customers, a dish."""
    x = np.zeros(len(ledger.prior))
    for j in np.flatnonzero(seats.table[d] == t):
        x += ledger.x[d * seats.table.shape[1] + j]
    old = seats.dish[d, t]
    seats.serving[old] -= 1
    _move(ledger, old, x, -1.0)
    alone = log_beta((x + ledger.prior).reshape(1, -1), ledger.signs)[0] - ledger.empty
    like = likelihood(ledger, x, seats.ends[0], collapsed)
    weights = _weigh_dishes(like, alone, seats, ledger, concentration[1], True)
    new = _dish(weights, x, seats, ledger, phi, collapsed, rng)
    seats.dish[d, t] = new
    _move(ledger, new, x, 1.0)


@compiled_part
def draw_concentration(
    current: float, sizes: Ints, n_tables: int, shape: float, rate: float, rng: np.random.Generator
) -> float:
    """Concentration of restaurants of `sizes` customers with `n_tables` in all, prior Gamma.

    Source: Escobar, West (1995); for several restaurants Teh et al. (2006), appendix A.
    """
    for n in sizes:
        if n == 0:
            continue
        # w ~ Beta(current + 1, n) as a ratio of gammas.
        one = rng.standard_gamma(current + 1.0)
        other = rng.standard_gamma(float(n))
        rate -= math.log(max(one / (one + other), 1e-300))
        if rng.random() * (n + current) < n:
            shape -= 1.0
    return max(rng.standard_gamma(shape + n_tables) / rate, 1e-8)
