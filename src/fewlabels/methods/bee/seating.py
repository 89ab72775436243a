"""Chinese restaurants: which domains, or which classifiers in which domains, share their rates.

Rates are integrated out: a group of units with counts x joins one with counts b with likelihood
B(a + b + x) / B(a + b), B a product over rows of multivariate beta functions. With `collapsed`
false the current rates phi of existing groups stand instead, and a new group draws its own at once
(Neal 2000, algorithm 2).

Source: Platanios, Dubey, Mitchell (2016), sections 4.2 and 4.3; Teh et al. (2006).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.methods.bee.compiled import compiled_part

LEAST = 1e-12
"""Rates and shares are clipped to it before logarithms."""

_STEPS, _FEW = 16.0, 40.0
"""Factors in a product that cannot overflow, and votes that are few."""


@compiled_part
def log_beta(base: Floats, x: Floats, prior: Floats) -> float:
    """Log B(prior + base + x) over all rows, all (Q, C)."""
    out = 0.0
    for q in range(base.shape[0]):
        total = 0.0
        for c in range(base.shape[1]):
            here = prior[q, c] + base[q, c] + x[q, c]
            total += here
            out += math.lgamma(here)
        out -= math.lgamma(total)
    return out


@compiled_part
def _rise(start: float, steps: float) -> float:
    """Log Gamma(start + steps) - log Gamma(start); few steps are a product of their numbers."""
    if steps > _STEPS:
        return math.lgamma(start + steps) - math.lgamma(start)
    product = 1.0
    for i in range(int(steps)):
        product *= start + i
    return math.log(product)


@compiled_part
def _gain(x: Floats, base: Floats, held: float, prior: Floats) -> float:
    """Log B(prior + base + x) / B(prior + base), all (Q, C); `held` is that of the denominator.

    Few votes change few terms, which are quick; with many it is as well to take all anew.
    """
    size = 0.0
    for q in range(x.shape[0]):
        for c in range(x.shape[1]):
            size += x[q, c]
    if size > _FEW:
        return log_beta(base, x, prior) - held
    out = 0.0
    for q in range(x.shape[0]):
        total = 0.0
        more = 0.0
        for c in range(x.shape[1]):
            total += prior[q, c] + base[q, c]
            if x[q, c] > 0:
                more += x[q, c]
                out += _rise(prior[q, c] + base[q, c], x[q, c])
        if more > 0:
            out -= _rise(total, more)
    return out


@compiled_part
def add(total: Floats, x: Floats, sign: float) -> None:
    """Add sign * x to `total`, both (Q, C)."""
    for q in range(x.shape[0]):
        for c in range(x.shape[1]):
            total[q, c] += sign * x[q, c]


@compiled_part
def fit_to(x: Floats, phi: Floats) -> float:
    """Log-likelihood of counts x (Q, C) under rates phi (Q, C)."""
    out = 0.0
    for q in range(x.shape[0]):
        for c in range(x.shape[1]):
            if x[q, c] > 0:
                out += x[q, c] * math.log(phi[q, c])
    return out


@compiled_part
def likelihood(
    x: Floats, base: Floats, held: float, phi: Floats, prior: Floats, collapsed: bool
) -> float:
    """Log-likelihood of counts x (Q, C) in a group with counts `base`, whose log B is `held`."""
    return _gain(x, base, held, prior) if collapsed else fit_to(x, phi)


@compiled_part
def _join(sums: Floats, held: Floats, a: int, x: Floats, prior: Floats) -> None:
    """Add counts x (Q, C) to a group's, whose log B is held."""
    held[a] += _gain(x, sums[a], held[a], prior)
    add(sums[a], x, 1.0)


@compiled_part
def _leave(sums: Floats, held: Floats, a: int, x: Floats, prior: Floats) -> None:
    """Take counts x (Q, C) away from a group's."""
    add(sums[a], x, -1.0)
    size = 0.0
    for q in range(x.shape[0]):
        for c in range(x.shape[1]):
            size += x[q, c]
    if size > _FEW:
        held[a] = log_beta(sums[a], np.zeros(prior.shape), prior)
    else:
        held[a] -= _gain(x, sums[a], held[a], prior)


@compiled_part
def draw_rates(counts: Floats, prior: Floats, out: Floats, rng: np.random.Generator) -> None:
    """Rates (Q, C) from Dirichlet(prior + counts) row by row, into `out`."""
    for q in range(counts.shape[0]):
        total = 0.0
        for c in range(counts.shape[1]):
            out[q, c] = rng.standard_gamma(prior[q, c] + counts[q, c])
            total += out[q, c]
        for c in range(counts.shape[1]):
            out[q, c] = max(out[q, c] / total if total > 0 else 0.0, LEAST)


@compiled_part
def pick(log_weights: Floats, size: int, rng: np.random.Generator) -> int:
    """One of the first `size` places, with probability proportional to exp(log_weights)."""
    top = -math.inf
    for k in range(size):
        top = max(top, log_weights[k])
    total = 0.0
    for k in range(size):
        log_weights[k] = math.exp(log_weights[k] - top)
        total += log_weights[k]
    left = rng.random() * total
    for k in range(size - 1):
        left -= log_weights[k]
        if left < 0:
            return k
    for k in range(size - 1, -1, -1):
        if log_weights[k] > 0:
            return k
    return size - 1


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
    """One pass of Gibbs over the clusters (D,) of the domains, whose units have counts `cells`."""
    n_domains = len(cluster)
    n_models = len(atom) // n_domains
    size = np.zeros(n_domains)
    sums = np.zeros(cells.shape)
    for d in range(n_domains):
        size[cluster[d]] += 1
        for j in range(n_models):
            add(sums[cluster[d] * n_models + j], cells[d * n_models + j], 1.0)
    nothing = np.zeros(prior.shape)
    empty = log_beta(nothing, nothing, prior)
    held = np.zeros(len(sums))
    for a in range(len(sums)):
        held[a] = log_beta(sums[a], nothing, prior)
    weights = np.empty(n_domains + 1)
    place = np.empty(n_domains + 1, dtype=np.int64)
    for d in range(n_domains):
        old = cluster[d]
        size[old] -= 1
        for j in range(n_models):
            _leave(sums, held, old * n_models + j, cells[d * n_models + j], prior)
        open_ = 0
        fresh = -1
        for k in range(n_domains):
            if size[k] == 0:
                # Its old place first: an empty cluster's rates are forgotten either way.
                if fresh < 0:
                    fresh = k
                continue
            weights[open_] = math.log(size[k])
            for j in range(n_models):
                a = k * n_models + j
                x = cells[d * n_models + j]
                weights[open_] += likelihood(x, sums[a], held[a], phi[a], prior, collapsed)
            place[open_] = k
            open_ += 1
        if fresh >= 0:
            weights[open_] = math.log(concentration[0])
            for j in range(n_models):
                weights[open_] += _gain(cells[d * n_models + j], nothing, empty, prior)
            place[open_] = fresh
            open_ += 1
        new = place[pick(weights, open_, rng)]
        if new == fresh and not collapsed:
            for j in range(n_models):
                draw_rates(cells[d * n_models + j], prior, phi[new * n_models + j], rng)
        cluster[d] = new
        size[new] += 1
        for j in range(n_models):
            _join(sums, held, new * n_models + j, cells[d * n_models + j], prior)
            atom[d * n_models + j] = new * n_models + j


class _Seats(NamedTuple):
    """Who sits where in a franchise, kept up to date while customers move.

    customers (D, M) at every table; serving (A,) tables per dish; sums (A, Q, C) counts and held
    (A,) log B of every dish; ends (1 + D,): all dishes, and all tables of a restaurant, have
    smaller numbers; options, weights, places, like (A + 1,) are scratch paper.
    """

    customers: Floats
    serving: Floats
    sums: Floats
    held: Floats
    ends: Ints
    options: Floats
    weights: Floats
    places: Ints
    dishes: Ints
    like: Floats


@compiled_part
def _number_anew(table: Ints, dish: Ints, phi: Floats, ends: Ints) -> None:
    """Number tables and dishes without gaps, so that few are looked at."""
    n_domains, n_models = table.shape
    taken = np.full(len(phi), -1)
    for d in range(n_domains):
        for j in range(n_models):
            taken[dish[d, table[d, j]]] = 0
    ends[0] = 0
    for k in range(len(phi)):
        if taken[k] == 0:
            taken[k] = ends[0]
            phi[ends[0]] = phi[k]
            ends[0] += 1
    for d in range(n_domains):
        seat = np.full(n_models, -1)
        for j in range(n_models):
            seat[table[d, j]] = 0
        ends[1 + d] = 0
        for t in range(n_models):
            if seat[t] == 0:
                seat[t] = ends[1 + d]
                dish[d, ends[1 + d]] = taken[dish[d, t]]
                ends[1 + d] += 1
        for j in range(n_models):
            table[d, j] = seat[table[d, j]]
        for t in range(ends[1 + d], n_models):
            dish[d, t] = -1


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
    n_units = n_domains * n_models
    seats = _Seats(
        np.zeros((n_domains, n_models)),
        np.zeros(n_units),
        np.zeros(cells.shape),
        np.zeros(n_units),
        np.zeros(1 + n_domains, dtype=np.int64),
        np.empty(n_units + 1),
        np.empty(n_units + 1),
        np.empty(n_units + 1, dtype=np.int64),
        np.empty(n_units + 1, dtype=np.int64),
        np.empty(n_units + 1),
    )
    _number_anew(table, dish, phi, seats.ends)
    for d in range(n_domains):
        for j in range(n_models):
            seats.customers[d, table[d, j]] += 1
            add(seats.sums[dish[d, table[d, j]]], cells[d * n_models + j], 1.0)
        for t in range(seats.ends[1 + d]):
            seats.serving[dish[d, t]] += 1
    nothing = np.zeros(prior.shape)
    empty = log_beta(nothing, nothing, prior)
    for k in range(n_units):
        seats.held[k] = log_beta(seats.sums[k], nothing, prior) if k < seats.ends[0] else empty
    for d in range(n_domains):
        for j in range(n_models):
            x = cells[d * n_models + j]
            alone = _gain(x, nothing, empty, prior)
            _seat(
                x, alone, d, j, seats, prior, phi, table, dish, concentration, shared, collapsed,
                rng,
            )  # fmt: skip
        if shared:
            for t in range(seats.ends[1 + d]):
                if seats.customers[d, t] > 0:
                    _serve(
                        cells,
                        d,
                        t,
                        seats,
                        prior,
                        phi,
                        table,
                        dish,
                        concentration,
                        collapsed,
                        rng,
                    )
    for d in range(n_domains):
        for j in range(n_models):
            atom[d * n_models + j] = dish[d, table[d, j]]


@compiled_part
def _weigh_dishes(
    x: Floats,
    alone: float,
    seats: _Seats,
    prior: Floats,
    phi: Floats,
    gamma: float,
    shared: bool,
    collapsed: bool,
) -> int:
    """Write the dishes that a new table may get, and their log-weights; how many there are.

    The last one is a new dish, under which counts x have log-likelihood `alone`.
    """
    size = 0
    fresh = seats.ends[0]
    for k in range(seats.ends[0]):
        if seats.serving[k] == 0:
            fresh = min(fresh, k)
        elif shared:
            seats.like[k] = likelihood(x, seats.sums[k], seats.held[k], phi[k], prior, collapsed)
            seats.weights[size] = math.log(seats.serving[k]) + seats.like[k]
            seats.dishes[size] = k
            size += 1
    seats.weights[size] = (math.log(gamma) if shared else 0.0) + alone
    seats.dishes[size] = fresh
    return size + 1


@compiled_part
def _seat(
    x: Floats,
    alone: float,
    d: int,
    j: int,
    seats: _Seats,
    prior: Floats,
    phi: Floats,
    table: Ints,
    dish: Ints,
    concentration: Floats,
    shared: bool,
    collapsed: bool,
    rng: np.random.Generator,
) -> None:
    """Give customer j of restaurant d, whose counts are x, a table; a new one gets a dish."""
    old = table[d, j]
    seats.customers[d, old] -= 1
    _leave(seats.sums, seats.held, dish[d, old], x, prior)
    if seats.customers[d, old] == 0:
        seats.serving[dish[d, old]] -= 1
        dish[d, old] = -1
    n_dishes = _weigh_dishes(x, alone, seats, prior, phi, concentration[1], shared, collapsed)
    top = -math.inf
    for k in range(n_dishes):
        top = max(top, seats.weights[k])
    total = 0.0
    for k in range(n_dishes):
        total += math.exp(seats.weights[k] - top)
    anew = math.log(concentration[0]) + top + math.log(total)
    if shared:
        tables = 0.0
        for k in range(seats.ends[0]):
            tables += seats.serving[k]
        anew -= math.log(tables + concentration[1])
    size = 0
    empty = seats.ends[1 + d]
    for t in range(seats.ends[1 + d]):
        if seats.customers[d, t] == 0:
            empty = min(empty, t)
            continue
        k = dish[d, t]
        seats.options[size] = math.log(seats.customers[d, t])
        if shared:
            seats.options[size] += seats.like[k]
        else:
            own = likelihood(x, seats.sums[k], seats.held[k], phi[k], prior, collapsed)
            seats.options[size] += own
        seats.places[size] = t
        size += 1
    # A restaurant has as many tables as customers, so a customer who stands up leaves one empty.
    seats.options[size] = anew
    seats.places[size] = empty
    new = seats.places[pick(seats.options, size + 1, rng)]
    if new == empty:
        k = seats.dishes[pick(seats.weights, n_dishes, rng)]
        if seats.serving[k] == 0 and not collapsed:
            draw_rates(x, prior, phi[k], rng)
        dish[d, new] = k
        seats.serving[k] += 1
        seats.ends[0] = max(seats.ends[0], k + 1)
        seats.ends[1 + d] = max(seats.ends[1 + d], new + 1)
    table[d, j] = new
    seats.customers[d, new] += 1
    _join(seats.sums, seats.held, dish[d, new], x, prior)


@compiled_part
def _serve(
    cells: Floats,
    d: int,
    t: int,
    seats: _Seats,
    prior: Floats,
    phi: Floats,
    table: Ints,
    dish: Ints,
    concentration: Floats,
    collapsed: bool,
    rng: np.random.Generator,
) -> None:
    """Give table t of restaurant d, with all its customers, a dish."""
    n_models = table.shape[1]
    x = np.zeros(prior.shape)
    for j in range(n_models):
        if table[d, j] == t:
            add(x, cells[d * n_models + j], 1.0)
    old = dish[d, t]
    seats.serving[old] -= 1
    _leave(seats.sums, seats.held, old, x, prior)
    nothing = np.zeros(prior.shape)
    alone = _gain(x, nothing, log_beta(nothing, nothing, prior), prior)
    n_dishes = _weigh_dishes(x, alone, seats, prior, phi, concentration[1], True, collapsed)
    new = seats.dishes[pick(seats.weights, n_dishes, rng)]
    if seats.serving[new] == 0 and not collapsed:
        draw_rates(x, prior, phi[new], rng)
    dish[d, t] = new
    seats.serving[new] += 1
    seats.ends[0] = max(seats.ends[0], new + 1)
    _join(seats.sums, seats.held, new, x, prior)


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
