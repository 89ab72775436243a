"""Simulated votes with known truth that no prior of a model of votes has drawn.

Twelve kinds of votes that people have, to judge by; `votes_honest.py` reports on them and nothing
was set by them. Every draw is a new world: sizes, rates and who is linked with whom vary. A world
is drawn again where the mean error is .48 or more, under 60% of the voters beat chance (mean of the
classes), a class has fewer than 5 items or a voter too few votes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple

import numpy as np
from scipy.special import expit


class World(NamedTuple):
    """Votes (n, M), -1 missing; labels (n,); number of classes."""

    votes: np.ndarray
    labels: np.ndarray
    n_classes: int


FAMILIES: dict[str, Callable[[np.random.Generator], World]] = {}


def voter_errors(w):
    """(M,) share of each voter's votes that are wrong."""
    seen = w.votes >= 0
    return ((w.votes != w.labels[:, None]) & seen).sum(0) / np.maximum(seen.sum(0), 1)


def balanced_accuracy(w):
    """(M,) mean over the classes a voter met of its accuracy on that class."""
    acc = np.full((w.n_classes, w.votes.shape[1]), np.nan)
    for c in range(w.n_classes):
        v = w.votes[w.labels == c]
        s = (v >= 0).sum(0)
        acc[c] = np.where(s > 0, (v == c).sum(0) / np.maximum(s, 1), np.nan)
    return np.nanmean(acc, axis=0)


def _ok(w, min_votes):
    return (
        np.bincount(w.labels, minlength=w.n_classes).min() >= 5
        and (w.votes >= 0).sum(0).min() >= min_votes
        and voter_errors(w).mean() < 0.48
        and (balanced_accuracy(w) > 1 / w.n_classes).mean() >= 0.6
    )


def _family(min_votes=24):
    def deco(f):
        @wraps(f)
        def draw(rng, **kw):
            for _ in range(500):
                w = f(rng, **kw)
                w = World(np.asarray(w[0], dtype=int), np.asarray(w[1], dtype=int), int(w[2]))
                if _ok(w, min_votes):
                    return w
            raise RuntimeError(f"{f.__name__}: no acceptable world in 500 draws")

        FAMILIES[f.__name__] = draw
        return draw

    return deco


def _int(rng, lo, hi):
    return int(rng.integers(lo, hi + 1))


def _n(rng, lo, hi):
    """A size, log-uniform."""
    return round(np.exp(rng.uniform(np.log(lo), np.log(hi))))


def _labels(rng, n, K, conc=6.0):
    p = np.maximum(rng.dirichlet(np.full(K, conc)), 0.06)
    return rng.choice(K, n, p=p / p.sum())


def _wrong(rng, y, K, shape):
    """A uniformly drawn wrong class for every cell; y broadcasts to shape."""
    return (y + rng.integers(1, K, shape)) % K


def _emit(rng, y, K, err, u=None, wrong=None):
    """Votes: wrong where u < err (n, M).  y is (n,) or (n, M)."""
    y = np.broadcast_to(y[:, None] if y.ndim == 1 else y, err.shape)
    u = rng.random(err.shape) if u is None else u
    wrong = _wrong(rng, y, K, err.shape) if wrong is None else wrong
    return np.where(u < err, wrong, y)


def _drop(rng, votes, lo=0.0, hi=0.4):
    """Each voter skips a share of the items, completely at random."""
    return np.where(rng.random(votes.shape) < rng.uniform(lo, hi, votes.shape[1]), -1, votes)


@_family()
def rare_heuristics(rng):
    """Fraud rules on transactions.

    3-12% are fraud, and each rule misses many frauds but flags few honest ones. Some rules look
    at the same sign (e.g. amount), so they tend to miss the same frauds.
    """
    n, M = _n(rng, 800, 3000), _int(rng, 5, 16)
    y = (rng.random(n) < rng.uniform(0.03, 0.12)).astype(int)
    tpr, fpr = rng.uniform(0.3, 0.9, M), np.exp(rng.uniform(np.log(0.005), np.log(0.12), M))
    sign = rng.integers(0, _int(rng, 2, 4), M)  # which sign the rule looks at
    shows = np.where(rng.random((n, sign.max() + 1)) < 0.5, 1, -1)
    swing = rng.uniform(0, 0.8) * np.minimum(tpr, 1 - tpr)
    p = np.where(y[:, None] == 1, tpr + swing * shows[:, sign], fpr)
    return (rng.random((n, M)) < p).astype(int), y, 2


@_family()
def difficulty_shapes(rng, kind=None):
    """Items differ in how hard they are, not in the probit way.

    'beta' = U-shaped or skewed Beta difficulty with a few trick items; 't' = heavy-tailed
    clarity with logistic noise; 'topics' = two or three topics, each voter expert in one of
    them. kind=None draws one.
    """
    kind = kind or rng.choice(["beta", "t", "topics"])
    n, M = _n(rng, 250, 2500), _int(rng, 4, 20)
    y = (rng.random(n) < rng.uniform(0.3, 0.7)).astype(int)
    if kind == "beta":
        d = rng.beta(rng.uniform(0.4, 1.5), rng.uniform(0.8, 2.5), n)
        err = rng.uniform(0.5, 0.65) * d[:, None] ** rng.uniform(0.6, 3, M)
    elif kind == "t":
        clarity = rng.uniform(0.8, 1.8) + rng.uniform(0.5, 1.0) * rng.standard_t(
            rng.uniform(2, 5), n
        )
        err = expit(-clarity[:, None] * rng.uniform(0.7, 2.5, M) + rng.normal(0, 0.2, M))
    else:
        T = _int(rng, 2, 3)
        topic = rng.choice(T, n, p=rng.dirichlet(np.full(T, 8.0)))
        e = rng.uniform(0.2, 0.42, (T, M))
        e[rng.integers(0, T, M), np.arange(M)] = rng.uniform(0.03, 0.15, M)
        err = e[topic]
    return _drop(rng, _emit(rng, y, 2, err), 0, 0.2), y, 2


@_family()
def overlapping_models(rng):
    """Classifiers of which some were trained on overlapping data.

    Groups of two or three share part of their mistakes (also the same wrong class); the other
    models are independent. Two to four classes.
    """
    n, M, K = _n(rng, 300, 3000), _int(rng, 6, 15), rng.choice([2, 2, 3, 4])
    y = _labels(rng, n, K)
    err = np.clip(rng.uniform(0.07, 0.35, M) + rng.normal(0, 0.05, (K, M)), 0.02, 0.5)[y]
    u, wrong = rng.random((n, M)), _wrong(rng, y[:, None], K, (n, M))
    order, at = rng.permutation(M), 0
    for _ in range(_int(rng, 1, max(1, M // 5))):  # at least two stay independent
        g = order[at : at + _int(rng, 2, 3)]
        at += len(g)
        same = rng.random(n) < rng.uniform(0.2, 0.5)  # items the group treats as one model
        u[np.ix_(same, g)] = u[same][:, g[:1]]
        wrong[np.ix_(same, g)] = wrong[same][:, g[:1]]
    return _emit(rng, y, K, err, u, wrong), y, K


@_family()
def llm_judges(rng):
    """LLM judges say which of two answers is better.

    On the close pairs most of them lean to the first answer shown (position) or to the longer
    one (verbosity), whatever is true. One to three judges (another vendor, humans) do not lean.
    """
    n, M = _n(rng, 200, 2000), _int(rng, 5, 14)
    y = (rng.random(n) < rng.uniform(0.4, 0.6)).astype(int)
    close = rng.random(n) < rng.uniform(0.12, 0.35)
    if rng.random() < 0.5:
        favoured = np.zeros(n, int)  # position
    else:
        favoured = np.where(rng.random(n) < rng.uniform(0.45, 0.6), y, 1 - y)  # verbosity
    lean = rng.uniform(0.25, 0.75, M)
    lean[rng.permutation(M)[: _int(rng, 1, 3)]] = 0
    votes = _emit(rng, y, 2, np.where(close[:, None], 1.3, 1.0) * rng.uniform(0.05, 0.28, M))
    leans = close[:, None] & (rng.random((n, M)) < lean)
    return _drop(rng, np.where(leans, favoured[:, None], votes), 0, 0.1), y, 2


@_family()
def ordinal_graders(rng):
    """Graders give 3 to 5 ordered grades (essay marks, severity).

    Each reads the true quality with own noise and an own lenient or strict shift, so neighbours
    are confused.
    """
    n, M, K = _n(rng, 200, 2000), _int(rng, 3, 15), _int(rng, 3, 5)
    q = rng.normal(size=n) if rng.random() < 0.5 else (rng.gamma(3.0, size=n) - 3) / np.sqrt(3)
    cuts = np.quantile(q, np.cumsum(np.maximum(rng.dirichlet(np.full(K, 8.0)), 0.05))[:-1] * 0.98)
    y = np.searchsorted(cuts, q)
    noise = rng.uniform(0.15, 0.7, M) * 4 / (K + 1)
    read = q[:, None] * rng.uniform(0.85, 1.1, M) + rng.normal(0, 0.25, M)
    read = read + noise * rng.normal(size=(n, M))
    return _drop(rng, np.searchsorted(cuts, read), 0, 0.5), y, K


@_family(min_votes=8)
def crowd_workers(rng):
    """A crowdsourcing job.

    3 to 7 votes per item from a pool of workers with very unequal activity; some spam (always
    one class, or at random), at most two answer adversely.
    """
    n, v, K = _n(rng, 300, 1500), _int(rng, 3, 7), rng.choice([2, 2, 3, 4])
    M = _int(rng, 15, max(15, min(60, n * v // 35)))
    y = _labels(rng, n, K)
    C = np.empty((M, K, K))  # worker, truth, vote
    for j in range(M):
        for c in range(K):
            C[j, c] = rng.dirichlet(np.full(K, 1.5))
            C[j, c, c] = 0
            C[j, c] *= (1 - (acc := rng.beta(9, 2.2))) / C[j, c].sum()
            C[j, c, c] = acc
    bad = rng.permutation(M)[: round(rng.uniform(0.05, 0.22) * M)]
    for j in bad:
        C[j] = np.eye(K)[rng.integers(K)] if rng.random() < 0.5 else 1 / K
    for j in rng.permutation(np.setdiff1d(np.arange(M), bad))[: _int(rng, 0, 2)]:
        C[j] = np.roll(C[j], 1, axis=1)  # adversary: shifts the answers
    cum = np.cumsum(C, axis=2)[:, y, :-1].transpose(1, 0, 2)  # (n, M, K - 1)
    full = (rng.random((n, M, 1)) > cum).sum(2)
    key = rng.gumbel(size=(n, M)) + rng.normal(0, 0.8, M)
    took = key >= np.sort(key, axis=1)[:, [-v]]
    return np.where(took, full, -1), y, K


@_family()
def abstain_unsure(rng):
    """Voters speak only where they feel sure.

    Each sees the item's evidence through own noise and shift and abstains on its least clear
    items (20-75%), so votes are missing not at random and the murky items get few votes, some
    of them none.
    """
    n, M = _n(rng, 300, 3000), _int(rng, 5, 20)
    y = (rng.random(n) < rng.uniform(0.2, 0.6)).astype(int)
    x = (2 * y - 1) * rng.gamma(rng.uniform(1.0, 2.5), 1.0, n)
    s = x[:, None] * rng.uniform(0.4, 1.2, M) + rng.logistic(0, 1, (n, M)) + rng.normal(0, 0.35, M)
    quiet = rng.uniform(0.2, 0.75, M)
    tau = np.array([np.quantile(np.abs(s[:, j]), quiet[j]) for j in range(M)])
    return np.where(np.abs(s) > tau, (s > 0).astype(int), -1), y, 2


@_family()
def drifting_voters(rng):
    """Items come in a fixed order of time.

    Voters join at different times and learn (error falls fast, then levels out), some tire
    instead (error climbs). The share of the classes may drift too.
    """
    n, M, K = _n(rng, 300, 3000), _int(rng, 4, 15), rng.choice([2, 2, 3])
    t = np.arange(n)[:, None] / n
    p = rng.uniform(0.3, 0.6) + rng.choice([0, 1]) * rng.uniform(-0.2, 0.2) * (t[:, 0] - 0.5)
    y = np.where(rng.random(n) < p, 0, rng.integers(1, K, n))
    join = np.where(rng.random(M) < 0.4, rng.uniform(0, 0.5, M), 0.0)
    age = np.maximum(t - join, 0)
    first, last = rng.uniform(0.3, 0.48, M), rng.uniform(0.04, 0.2, M)
    learn = last + (first - last) * np.exp(-age / rng.uniform(0.05, 0.6, M))
    tire = last + (rng.uniform(0.25, 0.4, M) - last) * age ** rng.uniform(1, 2, M)
    err = np.where(rng.random(M) < rng.uniform(0, 0.35), tire, learn)
    return _drop(rng, np.where(t < join, -1, _emit(rng, y, K, err)), 0, 0.15), y, K


@_family()
def two_communities(rng):
    """Annotators from two communities.

    On 8-25% of the items of one class (e.g. reclaimed slang) the smaller community follows
    another convention. The truth is the larger one's convention. Two or three classes.
    """
    n, M, K = _n(rng, 250, 2500), _int(rng, 7, 30), rng.choice([2, 2, 3])
    y = _labels(rng, n, K)
    src, dst = rng.permutation(K)[:2]
    gray = (y == src) & (rng.random(n) < rng.uniform(0.08, 0.25))
    minor = np.zeros(M, bool)
    minor[rng.permutation(M)[: max(2, int(rng.uniform(0.2, 0.42) * M))]] = True
    target = np.where(gray[:, None] & minor, dst, y[:, None])
    err = np.clip(rng.uniform(0.04, 0.28, M) + rng.normal(0, 0.04, (K, M)), 0.01, 0.45)[y]
    return _drop(rng, _emit(rng, target, K, err), 0, 0.6), y, K


@_family()
def near_perfect(rng):
    """Very good voters, errors .5-3% (lab assays, mature models, double data entry).

    In half of the worlds 10-60% of the errors fall on a hard tenth of the items. Two to five
    classes.
    """
    n, M, K = _n(rng, 800, 3000), _int(rng, 3, 9), _int(rng, 2, 5)
    y = _labels(rng, n, K)
    e = np.exp(rng.uniform(np.log(0.005), np.log(0.03), M))
    share = rng.choice([0.0, rng.uniform(0.1, 0.6)])
    hard = rng.random(n) < 0.1
    # a share up to .1 means no extra difficulty
    lift = np.where(hard, max(share, 0.1) / 0.1, (1 - max(share, 0.1)) / 0.9)
    return _emit(rng, y, K, lift[:, None] * e), y, K


@_family()
def few_items_many_readers(rng):
    """A reader study.

    60-120 cases, 20-60 readers who read (nearly) all; readers differ in skill and in where they
    put the cut-off, and cases differ a little in how typical they are (some studies: not at
    all).
    """
    n, M = _int(rng, 60, 120), _int(rng, 20, 60)
    y = (rng.random(n) < rng.uniform(0.3, 0.6)).astype(int)
    typical = rng.choice([0.0, rng.uniform(0.3, 1.0)]) * rng.normal(size=n)
    skill = rng.uniform(0.4, 2.2, M)
    logit = (2 * y - 1)[:, None] * skill + typical[:, None] + rng.normal(0, 0.5, M)
    return _drop(rng, (rng.random((n, M)) < expit(logit)).astype(int), 0, 0.1), y, 2


@_family()
def one_excellent(rng):
    """One senior expert (error 1-5%) among 3 to 12 weak voters (error about 25-45%).

    Often on only a part of the items; with three classes 8 points more, each leaning to some class;
    errors are independent. Two or three classes.
    """
    n, M, K = _n(rng, 400, 3000), _int(rng, 4, 13), rng.choice([2, 2, 3])
    y = _labels(rng, n, K)
    err = np.clip(
        rng.uniform(0.28, 0.43, M) + 0.08 * (K - 2) + rng.normal(0, 0.06, (K, M)), 0.15, 0.6
    )
    best = rng.integers(M)
    err[:, best] = rng.uniform(0.01, 0.05)
    votes = _emit(rng, y, K, err[y])
    votes[rng.random(n) < rng.choice([0.0, rng.uniform(0.2, 0.7)]), best] = -1
    return votes, y, K
