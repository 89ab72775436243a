"""Chinese restaurants: which domains, or which classifiers in which domains, share their rates.

A customer (domain, or classifier in a domain) with counts x joins a group with counts b with
likelihood B(a + b + x) / B(a + b), the group's rates integrated out; a is the prior and B a product
of multivariate beta functions over rows. If `collapsed` is false, the likelihood is that of x under
the group's current rates phi, and a new group draws its rates at once (Neal 2000, algorithm 2).

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
from fewlabels.kernels.compiled import compiled_or, compiled_part

LEAST = 1e-12
"""Lower bound of rates and shares, so that logarithms are finite."""

_FEW = 16.0
"""Up to so many votes a ratio of gamma functions is a product, which cannot overflow."""


def _rates_by_arrays(concentration: Floats, rng: np.random.Generator) -> Floats:
    out: Floats = rng.standard_gamma(concentration)
    out /= np.maximum(out.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return np.maximum(out, LEAST, out=out)


@compiled_or(_rates_by_arrays)
def draw_rates(concentration: Floats, rng: np.random.Generator) -> Floats:
    """Rates phi (n, C), row by row from Dirichlet(concentration), the prior plus counts.

    phi_lj ~ Beta(a + M_lj, b + R_lj) of two columns, with the errors M_lj and non-errors R_lj of
    classifier j in cluster l (Platanios, Dubey, Mitchell, 2016, section 4.2).
    """
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
    """Index drawn with probability proportional to exp(log_weights), which are overwritten."""
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
    """Counts of customers and groups as W terms: each row of counts, followed by its total.

    log B is then one sum, of signs * log Gamma(terms).

    Customers: counts x (N, W), and `alone` (N,), the log-likelihood in a new group. Groups: `terms`
    (A, W) with the prior, `held` (A,), their log B, and `log_phi` (A, W), 0 for totals. `logs` are
    the logarithms of 0, 1, 2...; prior (W,) and signs (W,); `empty` is log B of the prior.
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
    """Log-likelihood of terms x (W,) in each of the first `size` groups, (size,)."""
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


# Plain loops: a compiler takes seconds for expressions of whole arrays, and what they would save
# without one is little beside the seating of the customers.


@compiled_part
def _with_totals(counts: Floats, size: int) -> Floats:
    """Counts (n, Q, C) as terms of `size` customers or groups, (size, W)."""
    n, q, c = counts.shape
    out = np.zeros((n * q, c + 1))
    for r in range(n * q):
        for k in range(c):
            out[r, k] = counts[r // q, r % q, k]
            out[r, c] += out[r, k]
    return out.reshape(size, n * q * (c + 1) // size)


@compiled_part
def _add(terms: Floats, row: int, x: Floats, sign: float) -> None:
    """Add terms x (W,), times `sign`, to a row of `terms`."""
    for w in range(len(x)):
        terms[row, w] += sign * x[w]


@compiled_part
def _ledger(
    cells: Floats, prior: Floats, phi: Floats, group: Ints, size: int, collapsed: bool
) -> Ledger:
    """The ledger of N customers in `size` groups, which `group` (N,) names.

    `cells` are the counts of the units, several of which make a customer; prior (n, Q, C) is that
    of a customer of n units.
    """
    n, c = len(group), prior.shape[2]
    x, base = _with_totals(cells, n), _with_totals(prior, 1)[0]
    signs = np.ones(len(base))
    for w in range(c, len(base), c + 1):
        signs[w] = -1.0
    terms, alone = np.zeros((size, len(base))), np.zeros((n + 1, len(base)))
    for a in range(size):
        _add(terms, a, base, 1.0)
    for i in range(n):
        _add(terms, group[i], x[i], 1.0)
        _add(alone, i, x[i], 1.0)
    for i in range(n + 1):
        _add(alone, i, base, 1.0)
    log_phi = np.zeros((size, 0))
    if not collapsed:
        log_phi = _with_totals(phi, size)
        for a in range(size):
            for w in range(len(base)):
                # Rates of groups that nobody is in may still be zero.
                log_phi[a, w] = math.log(max(log_phi[a, w], LEAST)) if signs[w] > 0 else 0.0
    logs = np.empty(n + 1)
    logs[0] = -np.inf
    for i in range(1, n + 1):
        logs[i] = math.log(i)
    held, apart = log_beta(terms, signs), log_beta(alone, signs)
    empty = apart[n]
    for i in range(n):
        apart[i] -= empty
    return Ledger(x, apart[:n], terms, held, log_phi, logs, base, signs, empty)


@compiled_part
def _move(ledger: Ledger, group: int, x: Floats, sign: float) -> None:
    """Add terms x (W,) to a group (sign 1), or take them away (-1)."""
    _add(ledger.terms, group, x, sign)
    ledger.held[group] = log_beta(ledger.terms[group : group + 1], ledger.signs)[0]


@compiled_part
def _draw_anew(
    ledger: Ledger, group: int, x: Floats, phi: Floats, rng: np.random.Generator
) -> None:
    """Draw the rates of a new group with terms x (W,), its rows of phi (A, rows, C)."""
    _, n_rows, c = phi.shape
    concentration = np.empty((n_rows, c))
    for q in range(n_rows):
        for k in range(c):
            w = q * (c + 1) + k
            concentration[q, k] = x[w] + ledger.prior[w]
    rates = draw_rates(concentration, rng)
    for q in range(n_rows):
        for k in range(c):
            phi[group, q, k] = rates[q, k]
            ledger.log_phi[group, q * (c + 1) + k] = math.log(rates[q, k])


@compiled_part
def count_distinct(places: Ints, size: int) -> int:
    """Number of different values among `places` (n,), all below `size`."""
    seen = np.zeros(size, dtype=np.int64)
    for place in places:
        seen[place] = 1
    return int(seen.sum())


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
    """One Gibbs pass over the clusters (D,) of the domains, whose units have counts `cells`.

    With rates integrated out and up to a constant, for a cluster l of n_l others, and for a new
    one:

        log P(z_d = l | rest) = log n_l
            + sum_j [log B(a + M_lj + m_dj, b + R_lj + r_dj) - log B(a + M_lj, b + R_lj)],
        log P(z_d new | rest) = log alpha + sum_j [log B(a + m_dj, b + r_dj) - log B(a, b)].

    Here m_dj, r_dj are errors and non-errors of classifier j in domain d, and M_lj, R_lj their sums
    over cluster l without d (Platanios, Dubey, Mitchell, 2016, section 4.2). If `collapsed` is
    false, the likelihood of a cluster is phi_lj^m_dj (1 - phi_lj)^r_dj, that of a new one as above.
    """
    n_domains = len(cluster)
    n_models = len(atom) // n_domains
    priors = np.empty((n_models, prior.shape[0], prior.shape[1]))
    for j in range(n_models):
        priors[j] = prior
    ledger = _ledger(cells, priors, phi, cluster, n_domains, collapsed)
    blocks = phi.reshape(n_domains, n_models * phi.shape[1], phi.shape[2])
    size = np.zeros(n_domains, dtype=np.int64)
    for d in range(n_domains):
        size[cluster[d]] += 1
    weights = np.empty(n_domains + 1)
    for d in range(n_domains):
        x = ledger.x[d]
        size[cluster[d]] -= 1
        _move(ledger, cluster[d], x, -1.0)
        like = likelihood(ledger, x, n_domains, collapsed)
        for other in range(n_domains):
            weights[other] = ledger.logs[size[other]] + like[other]
        weights[n_domains] = math.log(concentration[0]) + ledger.alone[d]
        new = pick(weights, rng)
        if new == n_domains:
            new = int(np.argmin(size))  # the first that is empty
            if not collapsed:
                _draw_anew(ledger, new, x, blocks, rng)
        cluster[d] = new
        size[new] += 1
        _move(ledger, new, x, 1.0)
        for j in range(n_models):
            atom[d * n_models + j] = new * n_models + j


class _Seats(NamedTuple):
    """Tables and dishes of a franchise, kept up to date while customers move.

    `table` (D, M) of each customer and `dish` (D, M) of each table are those of `VoteState`.
    `customers` (D, M) counts those at each table, `serving` (A,) the tables of each dish. All
    dishes have numbers below ends[0], all tables of restaurant d below ends[1 + d].
    """

    table: Ints
    dish: Ints
    customers: Ints
    serving: Ints
    ends: Ints


@compiled_part
def _number_anew(table: Ints, dish: Ints, phi: Floats) -> _Seats:
    """Renumber tables and dishes without gaps, so that loops over them are short."""
    n_domains, n_models = table.shape
    customers = np.zeros((n_domains, n_models), dtype=np.int64)
    serving = np.zeros(len(phi), dtype=np.int64)
    ends = np.zeros(1 + n_domains, dtype=np.int64)
    number = np.empty(n_models, dtype=np.int64)
    for d in range(n_domains):
        for j in range(n_models):
            customers[d, table[d, j]] += 1
        for t in range(n_models):
            if customers[d, t] > 0:
                # Never a later place: what stands there has been moved already.
                new = ends[1 + d]
                number[t], ends[1 + d] = new, new + 1
                customers[d, new], dish[d, new] = customers[d, t], dish[d, t]
                serving[dish[d, new]] += 1
        for t in range(ends[1 + d], n_models):
            customers[d, t], dish[d, t] = 0, -1
        for j in range(n_models):
            table[d, j] = number[table[d, j]]
    name = np.empty(len(phi), dtype=np.int64)
    for a in range(len(phi)):
        if serving[a] > 0:
            new = ends[0]
            name[a], ends[0] = new, new + 1
            phi[new], serving[new] = phi[a], serving[a]
    for a in range(ends[0], len(phi)):
        serving[a] = 0
    for d in range(n_domains):
        for t in range(ends[1 + d]):
            dish[d, t] = name[dish[d, t]]
    return _Seats(table, dish, customers, serving, ends)


@compiled_part
def _eat(atom: Ints, seats: _Seats, d: int) -> None:
    """Set the atoms of restaurant d: each unit has the rates of its table's dish."""
    n_models = seats.table.shape[1]
    for j in range(n_models):
        atom[d * n_models + j] = seats.dish[d, seats.table[d, j]]


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
    """One pass of the Chinese restaurant franchise over tables (D, M) of units and their dishes.

    Every domain is a restaurant with its classifiers as customers. A customer with counts x takes
    table t with weight n_dt p(x | its dish), or a new one with weight alpha sum_k w_k p(x | k);
    then each table of counts x gets dish k with weight w_k p(x | k). A dish has w_k = tables that
    serve it, a new one gamma; in a new table's weight they are divided by their sum (section 4.3).
    If `shared` is false, no tables share a dish: a restaurant process per domain (cBCC).
    """
    n_domains, n_models = table.shape
    seats = _number_anew(table, dish, phi)
    for d in range(n_domains):
        _eat(atom, seats, d)
    priors = np.empty((1, prior.shape[0], prior.shape[1]))
    priors[0] = prior
    ledger = _ledger(cells, priors, phi, atom, len(atom), collapsed)
    for d in range(n_domains):
        for j in range(n_models):
            _seat(d, j, seats, ledger, phi, concentration, shared, collapsed, rng)
        if shared:
            for t in range(seats.ends[1 + d]):
                if seats.customers[d, t] > 0:
                    _serve(d, t, seats, ledger, phi, concentration, collapsed, rng)
    for d in range(n_domains):
        _eat(atom, seats, d)


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
    """Draw a table for customer j of restaurant d; a new table gets a dish."""
    u, old = d * seats.table.shape[1] + j, seats.table[d, j]
    x, customers, dish = ledger.x[u], seats.customers[d], seats.dish[d]
    customers[old] -= 1
    _move(ledger, dish[old], x, -1.0)
    if customers[old] == 0:
        seats.serving[dish[old]] -= 1
        dish[old] = -1
    like = likelihood(ledger, x, seats.ends[0], collapsed)
    dishes = _weigh_dishes(like, ledger.alone[u], seats, ledger, concentration[1], shared)
    top, total, tables_in_all = dishes.max(), 0.0, 0
    for a in range(len(dishes)):
        total += math.exp(dishes[a] - top)
        tables_in_all += seats.serving[a] if a < len(like) else 0
    anew = math.log(concentration[0]) + top + math.log(total)
    if shared:
        anew -= math.log(tables_in_all + concentration[1])
    size = seats.ends[1 + d]
    tables = np.empty(size + 1)
    for t in range(size):
        tables[t] = ledger.logs[customers[t]] + like[max(dish[t], 0)]
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
    """Log-weights (dishes + 1,) of the dishes for a table, the last one for a new dish.

    `like` are its log-likelihoods under the present dishes, `alone` that under a new one.
    """
    out = np.full(len(like) + 1, -np.inf)
    if shared:
        for a in range(len(like)):
            out[a] = ledger.logs[seats.serving[a]] + like[a]
    out[len(like)] = alone + (math.log(gamma) if shared else 0.0)
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
    """Draw a dish for a table with terms x (W,); a new dish gets rates."""
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
    """Draw the dish of table t of restaurant d, with all its customers."""
    n_models = seats.table.shape[1]
    all_of_them = np.zeros((2, len(ledger.prior)))
    for j in range(n_models):
        if seats.table[d, j] == t:
            _add(all_of_them, 0, ledger.x[d * n_models + j], 1.0)
    x = all_of_them[0]
    _add(all_of_them, 1, x, 1.0)
    _add(all_of_them, 1, ledger.prior, 1.0)
    old = seats.dish[d, t]
    seats.serving[old] -= 1
    _move(ledger, old, x, -1.0)
    alone = log_beta(all_of_them[1:], ledger.signs)[0] - ledger.empty
    like = likelihood(ledger, x, seats.ends[0], collapsed)
    weights = _weigh_dishes(like, alone, seats, ledger, concentration[1], True)
    new = _dish(weights, x, seats, ledger, phi, collapsed, rng)
    seats.dish[d, t] = new
    _move(ledger, new, x, 1.0)


@compiled_part
def draw_concentration(
    current: float, sizes: Ints, n_tables: int, shape: float, rate: float, rng: np.random.Generator
) -> float:
    """Draw the concentration, with prior Gamma(shape, rate), of restaurants.

    `sizes` are their numbers of customers, `n_tables` their tables in all. Source: Escobar, West
    (1995); for several restaurants Teh et al. (2006), appendix A.
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
