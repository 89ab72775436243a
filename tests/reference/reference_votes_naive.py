"""Error rates from votes again: slow, plain, per item, and read from the papers and derivations.

A world has D domains, N classifiers and K classes. What a classifier does in a domain is an array
theta (R, C) whose rows are distributions: one row (error, right) for the symmetric models, K rows
of a confusion matrix P(vote | class) for the others. A model of votes says which cells (domain,
classifier) share their theta:

- "bee": none; "cbee": whole domains, by a Chinese restaurant process (CRP) over the domains;
- "cbcc": classifiers within a domain, by a CRP in each;
- "hcbee": a Chinese restaurant franchise over all cells.

Everything here is one of two things: an exact sum over all labelings and all groupings of the
cells (tiny worlds), or a per-item Gibbs sampler (small ones).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

KINDS = ("bee", "cbee", "cbcc", "hcbee")


@dataclass(frozen=True)
class Prior:
    """Hyperparameters under the names of the papers; `kind` says which cells share their rates."""

    kind: str = "bee"
    confusion: bool = False
    K: int = 2
    alpha: float = 1.0
    gamma: float = 1.0
    error: tuple[float, float] = (1.0, 10.0)
    class_prior: float = 1.0

    @property
    def rates(self) -> np.ndarray:
        """Dirichlet parameters of theta's rows, (R, C)."""
        wrong, right = self.error
        if not self.confusion:
            return np.array([[wrong, right]])
        eye = np.eye(self.K)
        return right * eye + wrong / (self.K - 1) * (1 - eye)


def log_votes(theta: np.ndarray, prior: Prior) -> np.ndarray:
    """log P(vote | class) of theta (..., R, C), shape (..., K classes, K votes)."""
    if prior.confusion:
        return np.log(np.clip(theta, 1e-300, None))
    wrong, right = theta[..., 0, 0, None, None], theta[..., 0, 1, None, None]
    eye = np.eye(prior.K)
    return np.log(np.clip(eye * right + (1 - eye) * wrong / (prior.K - 1), 1e-300, None))


def error_rates(theta: np.ndarray, shares: np.ndarray, prior: Prior) -> np.ndarray:
    """Error rate (..., D, N) of theta (..., D, N, R, C) under class shares (..., D, K)."""
    if not prior.confusion:
        return theta[..., 0, 0]
    right = np.einsum("...djkk,...dk->...dj", theta, shares)
    return 1 - right


def vote_counts(
    votes: np.ndarray, labels: np.ndarray, domain: np.ndarray, D: int, prior: Prior
) -> np.ndarray:
    """What theta is learned from, (D, N, R, C), when every item has a label."""
    R, C = prior.rates.shape
    out = np.zeros((D, votes.shape[1], R, C))
    for i, (row, label) in enumerate(zip(votes, labels, strict=True)):
        for j, vote in enumerate(row):
            if vote < 0:
                continue
            if prior.confusion:
                out[domain[i], j, label, vote] += 1
            else:
                out[domain[i], j, 0, int(vote == label)] += 1
    return out


def log_beta(a: np.ndarray) -> float:
    """Sum over rows of the log of the multivariate beta function."""
    return sum(map(math.lgamma, a.ravel())) - sum(map(math.lgamma, a.sum(axis=-1).ravel()))


def log_predictive(counts: np.ndarray, known: np.ndarray, prior: Prior) -> float:
    """log f(counts): further votes of a theta that explains the votes `known`, (R, C) each."""
    a = prior.rates + known
    return log_beta(a + counts) - log_beta(a)


def dirichlet(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One distribution per row of a (..., C); exact for parameters far below 1."""
    # Gamma(a) = Gamma(a + 1) u^(1/a), in logs: a direct gamma variate underflows for tiny a.
    log_g = np.log(rng.standard_gamma(a + 1)) + np.log(rng.random(a.shape)) / a
    return np.exp(log_g - np.logaddexp.reduce(log_g, axis=-1, keepdims=True))


# groupings of the cells: the prior, drawn and enumerated


def draw_crp(n: int, concentration: float, rng: np.random.Generator) -> list[int]:
    """Table of each of n customers."""
    seats: list[int] = []
    for _ in range(n):
        size = np.array([*np.bincount(seats), concentration], float) if seats else np.ones(1)
        seats.append(int(rng.choice(len(size), p=size / size.sum())))
    return seats


def draw_grouping(prior: Prior, D: int, N: int, rng: np.random.Generator) -> np.ndarray:
    """Which theta each cell has, (D, N)."""
    if prior.kind == "bee":
        return np.arange(D * N).reshape(D, N)
    if prior.kind == "cbee":
        return np.array(draw_crp(D, prior.alpha, rng))[:, None] * N + np.arange(N)
    seats = [draw_crp(N, prior.alpha, rng) for _ in range(D)]
    if prior.kind == "cbcc":
        return np.array(seats) + N * np.arange(D)[:, None]
    tables = [max(s) + 1 for s in seats]
    dish = draw_crp(sum(tables), prior.gamma, rng)
    first = np.cumsum([0, *tables])
    return np.array([[dish[first[d] + t] for t in seats[d]] for d in range(D)])


def set_partitions(n: int) -> Iterator[tuple[int, ...]]:
    """All partitions of n things, each as the group of every thing, numbered as they appear."""
    if n == 0:
        yield ()
        return
    for smaller in set_partitions(n - 1):
        for group in range(max(smaller, default=-1) + 2):
            yield (*smaller, group)


def log_crp(groups: tuple[int, ...], concentration: float) -> float:
    """log P(partition) under a Chinese restaurant process."""
    sizes = np.bincount(groups)
    new = len(sizes) * math.log(concentration) + float(gammaln(sizes).sum())
    return new + float(gammaln(concentration) - gammaln(concentration + len(groups)))


def groupings(prior: Prior, D: int, N: int) -> dict[tuple[int, ...], float]:
    """log P of every grouping of the D N cells (row by row) that the model allows."""
    out: dict[tuple[int, ...], list[float]] = {}

    def add(cells: list[int], log_p: float) -> None:
        seen: dict[int, int] = {}
        key = tuple(seen.setdefault(c, len(seen)) for c in cells)
        out.setdefault(key, []).append(log_p)

    if prior.kind == "bee":
        add(list(range(D * N)), 0.0)
    elif prior.kind == "cbee":
        for z in set_partitions(D):
            add([z[d] * N + j for d in range(D) for j in range(N)], log_crp(z, prior.alpha))
    else:
        for seats in itertools.product(set_partitions(N), repeat=D):
            log_p = sum(log_crp(s, prior.alpha) for s in seats)
            first = np.cumsum([0, *(max(s) + 1 for s in seats)])
            table = [int(first[d] + t) for d in range(D) for t in seats[d]]
            if prior.kind == "cbcc":
                add(table, log_p)
                continue
            for dish in set_partitions(int(first[-1])):
                add([dish[t] for t in table], log_p + log_crp(dish, prior.gamma))
    return {key: float(np.logaddexp.reduce(log_p)) for key, log_p in out.items()}


# the exact posterior of a tiny world


@dataclass(frozen=True, eq=False)
class Exact:
    """Posterior means, and P(two cells share their theta | votes)."""

    theta: np.ndarray  # (D, N, R, C)
    error: np.ndarray  # (D, N)
    error_sd: np.ndarray | None  # (D, N), symmetric models
    shares: np.ndarray  # (D, K)
    marginals: np.ndarray  # (n, K)
    together: np.ndarray  # (D N, D N)
    n_groups: float
    log_evidence: float


def exact_posterior(
    votes: np.ndarray,
    labels: np.ndarray,
    domain: np.ndarray,
    prior: Prior,
    labeled_at_random: bool = True,
) -> Exact:
    """Sum over every completion of the labels and every grouping of the cells."""
    N, D, K = votes.shape[1], int(domain.max()) + 1, prior.K
    hidden = np.flatnonzero(labels < 0)
    counted = np.flatnonzero((labels < 0) | labeled_at_random)
    complete, counts, shares, base = [], [], [], []
    for guess in itertools.product(range(K), repeat=len(hidden)):
        y = labels.copy()
        y[hidden] = guess
        c = vote_counts(votes, y, domain, D, prior)
        s = np.full((D, K), prior.class_prior)
        for i in counted:
            s[domain[i], y[i]] += 1
        log_p = log_beta(s) - D * log_beta(np.full(K, prior.class_prior))
        if not prior.confusion:
            # Which of the K - 1 wrong classes was named.
            log_p -= c[..., 0, 0].sum() * math.log(K - 1)
        complete.append(np.eye(K)[y])
        counts.append(c.reshape(D * N, *c.shape[2:]))
        shares.append(s / s.sum(axis=1, keepdims=True))
        base.append(log_p)
    counts, shares, complete = map(np.array, (counts, shares, complete))

    keys, log_prior = zip(*groupings(prior, D, N).items(), strict=True)
    log_w = np.empty((len(keys), len(base)))
    for g, key in enumerate(keys):
        sums = _group_sums(counts, key)
        a = prior.rates + sums
        per_row = gammaln(a).sum(axis=-1) - gammaln(a.sum(axis=-1))
        log_w[g] = log_prior[g] + np.array(base) + per_row.sum(axis=(1, 2))
        log_w[g] -= (max(key) + 1) * log_beta(prior.rates)
    evidence = float(np.logaddexp.reduce(log_w, axis=None))
    w = np.exp(log_w - evidence)

    theta, error, square = 0.0, 0.0, 0.0
    together = np.zeros((D * N, D * N))
    for g, key in enumerate(keys):
        a = (prior.rates + _group_sums(counts, key))[:, list(key)]
        total = a.sum(axis=-1, keepdims=True)
        mean = a / total
        theta = theta + np.einsum("l,l...->...", w[g], mean)
        e = error_rates(mean.reshape(-1, D, N, *prior.rates.shape), shares, prior)
        error = error + np.einsum("l,ldj->dj", w[g], e)
        second = (a * (a + 1) / (total * (total + 1)))[:, :, 0, 0].reshape(-1, D, N)
        square = square + np.einsum("l,ldj->dj", w[g], second)
        together += w[g].sum() * np.equal.outer(key, key)
    return Exact(
        theta.reshape(D, N, *prior.rates.shape),
        error,
        None if prior.confusion else np.sqrt(square - error**2),
        np.einsum("gl,ldk->dk", w, shares),
        np.einsum("gl,lnk->nk", w, complete),
        together,
        sum(w[g].sum() * (max(key) + 1) for g, key in enumerate(keys)),
        evidence,
    )


def _group_sums(counts: np.ndarray, key: tuple[int, ...]) -> np.ndarray:
    """Counts (L, cells, R, C) summed over the cells of each group, (L, groups, R, C)."""
    member = np.equal.outer(range(max(key) + 1), key).astype(float)
    return np.einsum("gc,lcrs->lgrs", member, counts)


# per-item Gibbs samplers


@dataclass(frozen=True, eq=False)
class Draws:
    theta: np.ndarray  # (T, D, N, R, C)
    error: np.ndarray  # (T, D, N)
    shares: np.ndarray  # (T, D, K)
    groups: np.ndarray  # (T, D, N)
    marginals: np.ndarray  # (n, K)
    by_sweep: np.ndarray  # (T, n, K)


def gibbs(
    votes: np.ndarray,
    labels: np.ndarray,
    domain: np.ndarray,
    prior: Prior,
    sweeps: int,
    burn_in: int,
    rng: np.random.Generator,
) -> Draws:
    """One chain from the majority vote: groups, theta, shares, then the label of every item."""
    D, K = int(domain.max()) + 1, prior.K
    hidden = labels < 0
    y = np.where(hidden, majority(votes, K, rng), labels)
    cells = _Cells(prior, D, votes.shape[1])
    item, given = np.arange(len(votes)), votes >= 0
    count = _counter(votes, domain, D, prior)
    kept = []
    for sweep in range(burn_in + sweeps):
        theta = cells.sweep(count(y), rng)
        n_class = np.bincount(domain * K + y, minlength=D * K).reshape(D, K)
        shares = dirichlet(prior.class_prior + n_class, rng)
        said = log_votes(theta, prior)[domain]  # (n, N, K, K)
        per_vote = said[item[:, None], np.arange(votes.shape[1]), :, np.maximum(votes, 0)]
        logit = np.log(shares[domain]) + np.where(given[:, :, None], per_vote, 0).sum(axis=1)
        q = np.exp(logit - np.logaddexp.reduce(logit, axis=1, keepdims=True))
        q[~hidden] = np.eye(K)[labels[~hidden]]
        y = np.minimum((q.cumsum(axis=1) < rng.random((len(q), 1))).sum(axis=1), K - 1)
        y = np.where(hidden, y, labels)
        if sweep >= burn_in:
            kept.append((theta, error_rates(theta, shares, prior), shares, cells.groups(), q))
    theta, error, shares, groups, q = (np.array(a) for a in zip(*kept, strict=True))
    return Draws(theta, error, shares, groups, q.mean(axis=0), q)


def _counter(votes: np.ndarray, domain: np.ndarray, D: int, prior: Prior) -> Callable:
    """`vote_counts` as a function of the labels, with what stays the same done once."""
    shape = (D, votes.shape[1], *prior.rates.shape)
    i, j = np.nonzero(votes >= 0)
    cell, vote = domain[i] * shape[1] + j, votes[i, j]

    def count(labels: np.ndarray) -> np.ndarray:
        y = labels[i]
        place = y * prior.K + vote if prior.confusion else (vote == y).astype(int)
        size = math.prod(shape[2:])
        return np.bincount(cell * size + place, minlength=math.prod(shape)).reshape(shape)

    return count


class _Cells:
    """Tables (per cell) and dishes (per table), and one Gibbs sweep over them, one by one.

    "cbee" is Neal's (2000) Algorithm 2 over domains; "hcbee" the collapsed franchise, whose sums
    are formed anew before every move; "cbcc" the same where no dish is ever shared.
    """

    def __init__(self, prior: Prior, D: int, N: int) -> None:
        self.prior, self.D, self.N = prior, D, N
        self.z = list(range(D))
        self.phi: dict[int, np.ndarray | None] = dict.fromkeys(range(D))
        self.table = {(d, j): (d, j) for d in range(D) for j in range(N)}  # cell -> (d, name)
        self.dish = {t: i for i, t in enumerate(self.table.values())}  # table -> dish
        self.fresh = D * N

    def sweep(self, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        rates, theta = self.prior.rates, np.empty(counts.shape)
        if self.prior.kind == "bee":
            return dirichlet(rates + counts, rng)
        if self.prior.kind == "cbee":
            self._domains(counts, rng)
            for c in sorted(set(self.z)):
                mine = [d for d in range(self.D) if self.z[d] == c]
                self.phi[c] = dirichlet(rates + counts[mine].sum(axis=0), rng)
                theta[mine] = self.phi[c]
            return theta
        for cell in self.table:
            self._move_cell(cell, counts, rng)
        if self.prior.kind == "hcbee":
            for t in list(self.dish):
                self._move_table(t, counts, rng)
        for k in dict.fromkeys(self.dish.values()):
            mine = [c for c, t in self.table.items() if self.dish[t] == k]
            drawn = dirichlet(rates + sum(counts[c] for c in mine), rng)
            for c in mine:
                theta[c] = drawn
        return theta

    def groups(self) -> np.ndarray:
        if self.prior.kind == "bee":
            return np.arange(self.D * self.N).reshape(self.D, self.N)
        if self.prior.kind == "cbee":
            return np.array(self.z)[:, None] * self.N + np.arange(self.N)
        cells = [[self.dish[self.table[d, j]] for j in range(self.N)] for d in range(self.D)]
        return np.array(cells)

    def _domains(self, counts: np.ndarray, rng: np.random.Generator) -> None:
        for d in range(self.D):
            others = self.z[:d] + self.z[d + 1 :]
            names = sorted(set(others))
            score = []
            for c in names:
                if self.phi[c] is None:
                    self.phi[c] = dirichlet(self.prior.rates + counts[c], rng)
                log_phi = np.log(np.clip(self.phi[c], 1e-300, None))
                score.append(math.log(others.count(c)) + float((counts[d] * log_phi).sum()))
            new = sum(log_predictive(n, 0 * n, self.prior) for n in counts[d])
            score.append(math.log(self.prior.alpha) + new)
            pick = _choose(score, rng)
            if pick < len(names):
                self.z[d] = names[pick]
            else:
                self.z[d] = next(c for c in range(self.D) if c not in names)
                self.phi[self.z[d]] = dirichlet(self.prior.rates + counts[d], rng)

    def _dishes(self, counts: np.ndarray, without: set) -> tuple[list, list, list]:
        """Dishes in use, how many tables serve each, and the votes each explains."""
        tables: dict[int, set] = {}
        votes: dict[int, np.ndarray] = {}
        for cell, t in self.table.items():
            if cell not in without:
                k = self.dish[t]
                tables.setdefault(k, set()).add(t)
                votes[k] = votes.get(k, 0) + counts[cell]
        names = list(tables)
        return names, [len(tables[k]) for k in names], [votes[k] for k in names]

    def _dish_scores(self, moved: np.ndarray, names: list, m: list, votes: list) -> list[float]:
        score = [
            math.log(m[i]) + log_predictive(moved, votes[i], self.prior) for i in range(len(names))
        ]
        new = math.log(self.prior.gamma) + log_predictive(moved, 0 * moved, self.prior)
        return [*score, new]

    def _move_cell(self, cell: tuple, counts: np.ndarray, rng: np.random.Generator) -> None:
        names, m, votes = self._dishes(counts, {cell})
        mine = counts[cell]
        here: dict[tuple, int] = {}
        for c, t in self.table.items():
            if c[0] == cell[0] and c != cell:
                here[t] = here.get(t, 0) + 1
        f = {k: log_predictive(mine, v, self.prior) for k, v in zip(names, votes, strict=True)}
        score = [math.log(size) + f[self.dish[t]] for t, size in here.items()]
        if self.prior.kind == "cbcc":
            to_dish = [log_predictive(mine, 0 * mine, self.prior)]
            names, total = [], 0.0
        else:
            to_dish = self._dish_scores(mine, names, m, votes)
            total = math.log(sum(m) + self.prior.gamma)
        score.append(math.log(self.prior.alpha) + float(np.logaddexp.reduce(to_dish)) - total)
        pick = _choose(score, rng)
        if pick < len(here):
            self.table[cell] = list(here)[pick]
        else:
            self.fresh += 1
            self.table[cell] = (cell[0], ("new", self.fresh))
            dish = _choose(to_dish, rng)
            self.dish[self.table[cell]] = names[dish] if dish < len(names) else self.fresh
        self.dish = {t: self.dish[t] for t in dict.fromkeys(self.table.values())}

    def _move_table(self, t: tuple, counts: np.ndarray, rng: np.random.Generator) -> None:
        seated = {c for c, at in self.table.items() if at == t}
        names, m, votes = self._dishes(counts, seated)
        moved = sum(counts[c] for c in seated)
        pick = _choose(self._dish_scores(moved, names, m, votes), rng)
        self.fresh += 1
        self.dish[t] = names[pick] if pick < len(names) else self.fresh


def _choose(log_p: list[float], rng: np.random.Generator) -> int:
    p = np.exp(np.array(log_p) - max(log_p))
    return int(rng.choice(len(p), p=p / p.sum()))


# the start: majority vote


def majority(votes: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
    """The class of most votes; ties at random."""
    n = tally(votes, K)
    return (n + rng.random(n.shape) / 2).argmax(axis=1)


def tally(votes: np.ndarray, K: int) -> np.ndarray:
    """Votes for each class, (n, K)."""
    return np.stack([(votes == k).sum(axis=1) for k in range(K)], axis=1).astype(float)
