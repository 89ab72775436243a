"""Informants: P(class) from each classifier's probabilities, scores or votes.

A probability is taken as it is, a score through a rising map, a vote as P(class | vote). Maps and
P(class | vote) come from latent classes that explain the predictions of all classifiers, with known
labels fixed; ensembles recalibrate all of it by the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import expit, ndtri

from fewlabels.checks.class_words import have_order
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.simplex import (
    Pool,
    agreement_anchor,
    calibrated_pool,
    centred_logs,
    softmax,
)
from fewlabels.kernels.votes import Patterns, by_group, distinct_columns, patterns
from fewlabels.methods.per_model import score_of
from fewlabels.methods.votes.data import domains_of, item_domains
from fewlabels.predictions import Predictions

Kind = Literal["probability", "score", "vote"]
PoolMaker = Callable[[Floats], Pool]

_VOTER = 0.8
"""Probability that a voter is right, before any data."""

_SHRINKAGE = 0.8
"""Factor of log P(class | vote), as the same votes determined how often they are right."""

_RIDGE = 1e-3

_DOMAIN_ITEMS = 50

MOST_GRADES = 300
"""More classes are codes, whatever their names."""


class Inputs(NamedTuple):
    """What is said of n items, and how the latent classes take it.

    P(class | what classifier j says) (n, M, K), NaN where nothing; votes (n, M), -1 where none;
    all votes as `ballots`.
    """

    probabilities: Floats
    votes: Ints
    ranked: Ranked
    ballots: Ballots


@dataclass(frozen=True, eq=False)
class Informants:
    """The kinds of the classifiers, their maps, and the latent classes that nobody labeled.

    `normal` holds the normal scores of each classifier that ranks, by class; `slopes` (M, 2) the
    log odds a + b z of those that give scores; `tables` P(class | vote) of each classifier, none
    where all give probabilities. `ordered` says whether the classes are three numbers or more,
    which may be grades. `grades` (K,), where nobody gives more than votes, are classes that have an
    order, as numbers of sd 1 among the votes. `floors` (M,) are what a probability of exactly 0
    stands for.
    """

    models: tuple[str, ...]
    kinds: tuple[Kind, ...]
    normal: tuple[tuple[NormalScores, ...], ...]
    slopes: Floats
    tables: tuple[VoteTable, ...]
    latent: LatentClasses | None
    voted: VotedClasses | None

    floors: Floats
    every_kind: bool = True
    ordered: bool = False
    grades: Floats | None = None
    domains: tuple[str | None, ...] = (None,)

    @staticmethod
    def of(
        some: Predictions, *, every_kind: bool = True, pooled: PoolMaker = calibrated_pool
    ) -> Informants:
        """Learn maps and latent classes from the predictions and labels of items.

        Without `every_kind` only probabilities are used, as they are. `pooled` makes the pool.
        """
        k, m = some.n_classes, some.n_models
        nothing = np.zeros((m, 2))
        if not every_kind:
            alike: tuple[Kind, ...] = tuple("probability" for _ in range(m))
            return Informants(
                some.models, alike, (), nothing, (), None, None, np.zeros(m), every_kind=False
            )
        floors = _floors(some)
        kinds = _kinds(some)
        values = _values(some, kinds)
        normal = tuple(
            tuple(NormalScores.of(values[:, j, c]) for c in range(values.shape[2]))
            for j in range(m)
        )
        ranked = _ranked(some, kinds, normal, values)
        start = _start(some, kinds, ranked, floors, pooled)
        ranks = m > 1 and k <= MOST_CLASSES and any(kind != "vote" for kind in kinds)
        domains = domains_of(some)
        if some.n_items < _DOMAIN_ITEMS * len(domains):  # too few for matrices of their own
            domains = (None,)
        votes = _ballots(some, domains) if some.has_hard.any(axis=0).sum() > 1 else None
        slopes, tables = nothing, tuple[VoteTable, ...]()
        if set(kinds) != {"probability"}:
            r = start
            if ranks:
                r = softmax(LatentClasses.of(ranked, start, some.labels).index(ranked))
            elif votes is not None:
                r = softmax(VotedClasses.of(votes, start, some.labels).index(votes))
            r = _clamped(r, some.labels)
            tables = tuple(VoteTable.of(some.hard[:, j], r) for j in range(m))
            slopes = np.array(
                [
                    _line(ranked.scores[:, j, 0], r) if kind == "score" else (0.0, 0.0)
                    for j, kind in enumerate(kinds)
                ]
            )
        return Informants(
            some.models,
            kinds,
            normal,
            slopes,
            tables,
            LatentClasses.of(ranked, start) if ranks else None,
            None if votes is None else VotedClasses.of(votes, start),
            floors,
            domains=domains,
            ordered=k > 2 and all(isinstance(c, Number) for c in some.classes),
            grades=_grades(some) if set(kinds) == {"vote"} else None,
        )

    def said(
        self, predictions: Predictions, wanted: Collection[str] = ("rank", "votes"),
        labels: Ints | None = None,
    ) -> Inputs:  # fmt: skip
        """What these classifiers predict for any items, with what the indices `wanted` need of it.

        Normal scores and ballots not needed are empty: with many classes they cost most. Of grades
        P(class | vote) of an item does not rest on its own label (`labels`, (n,), -1 unknown): what
        does would count it twice, and seem to foresee it.
        """
        served = predictions.select_models(self.models)
        n, m, k = served.n_items, len(self.models), served.n_classes
        hard = served.hard
        out = np.full((n, m, k), np.nan)
        if served.probabilities is not None:
            out[:] = served.probabilities
        if not self.every_kind:
            votes = np.where(np.isnan(out[:, :, 0]), -1, np.argmax(np.nan_to_num(out), axis=2))
            nobody = Ranked(np.empty((n, m, 0)), np.empty((n, 0), dtype=np.int64))
            return Inputs(out, votes, nobody, _ballots(served, self.domains))
        ranked = Ranked(np.empty((n, m, 0)), hard)
        if "score" in self.kinds or not {"rank", "ranks", "latent", "reference"}.isdisjoint(wanted):
            ranked = _ranked(served, self.kinds, self.normal, _values(served, self.kinds))
        out = _floored(out, self.floors)
        for j, kind in enumerate(self.kinds):
            if kind == "vote":
                out[:, j] = np.nan
            if kind == "score" and k == 2:
                p = expit(self.slopes[j, 0] + self.slopes[j, 1] * ranked.scores[:, j, 0])
                out[:, j] = np.stack([1 - p, p], axis=1)
            silent = np.isnan(out[:, j, 0]) & (hard[:, j] >= 0)
            if silent.any():
                own = None if labels is None or self.grades is None else labels[silent]
                out[silent, j] = self.tables[j](hard[silent, j], own) if self.tables else 1 / k
        votes = hard.astype(np.int64)
        if (votes < 0).any():
            unvoted = (votes < 0) & ~np.isnan(out[:, :, 0])
            votes[unvoted] = np.argmax(np.nan_to_num(out[unvoted]), axis=1)
        ballots = _ballots(served, self.domains) if "votes" in wanted else _NO_BALLOTS
        return Inputs(out, votes, ranked, ballots)

    def latent_index(self, inputs: Inputs, name: str) -> Floats:
        """Centred logs of P(class) that no label taught, (n, K), by "latent" or by "votes"."""
        if name == "latent":
            assert self.latent is not None
            return self.latent.index(inputs.ranked)
        assert self.voted is not None
        return self.voted.index(inputs.ballots)


def _ballots(predictions: Predictions, domains: tuple[str | None, ...]) -> Ballots:
    """Votes of every domain by itself; one that was not there when fitted tells nothing."""
    place = {name: code for code, name in enumerate(domains)}
    codes = np.zeros(predictions.n_items, dtype=np.int64)
    if len(domains) > 1:
        codes[:] = [place.get(name, len(domains)) for name in item_domains(predictions)]
    return Ballots(
        by_group(predictions.vote_counts, codes, len(domains) + 1), codes, len(domains) + 1
    )


def _floors(predictions: Predictions) -> Floats:
    """What a probability of exactly 0 means, by classifier (M,): half the smallest positive one.

    Examples: .1 for none of five neighbours, .005 for two digits. The half is shared by the K - 1
    classes that can have it. The floor is 0 if no probability is exactly 0.
    """
    p = predictions.probabilities
    if p is None:
        return np.zeros(predictions.n_models)
    never = (p == 0).any(axis=(0, 2))
    least = np.where(p > 0, p, 1.0).min(axis=(0, 2), initial=1.0)
    out: Floats = np.where(never, np.minimum(least, 0.5) / 2 / (p.shape[2] - 1), 0.0)
    return out


def _floored(p: Floats, floors: Floats) -> Floats:
    """Probabilities (n, M, K) of which none is below its classifier's floor."""
    if not floors.any():
        return p
    raised = np.maximum(p, floors[:, None])
    out: Floats = raised / raised.sum(axis=2, keepdims=True)
    return out


def _grades(predictions: Predictions) -> Floats | None:
    """Three classes or more that have an order, as numbers of sd 1 among the votes, (K,)."""
    if not 3 <= predictions.n_classes <= MOST_GRADES or not have_order(predictions.classes):
        return None
    hard, grades = predictions.hard, predictions.grades
    share = np.bincount(hard[hard >= 0], minlength=len(grades)) / max((hard >= 0).sum(), 1)
    spread = np.sqrt(share @ (grades - share @ grades) ** 2)
    scaled: Floats = grades / (spread if spread > 0 else np.ptp(grades))
    return scaled


def _kinds(predictions: Predictions) -> tuple[Kind, ...]:
    """A classifier whose probabilities are all 0 or 1 votes."""
    probable = np.asarray(predictions.has_probabilities.any(axis=0))
    scored = np.asarray(predictions.provides("ranking").any(axis=0))
    if predictions.probabilities is not None:
        p = predictions.probabilities
        verdicts = probable & (np.isnan(p) | (p == 0) | (p == 1)).all(axis=(0, 2))
        probable, scored = probable & ~verdicts, scored & ~verdicts
    two = predictions.n_classes == 2
    return tuple(
        "probability" if probable[j] else "score" if scored[j] and two else "vote"
        for j in range(predictions.n_models)
    )


def _values(predictions: Predictions, kinds: tuple[Kind, ...]) -> Floats:
    """What classifiers rank items by, (n, M, C): of two classes the last one's, else of each."""
    n, k = predictions.n_items, predictions.n_classes
    out = np.full((n, len(kinds), 1 if k == 2 else k), np.nan)
    for j, kind in enumerate(kinds):
        if kind == "probability":
            assert predictions.probabilities is not None
            logs = centred_logs(predictions.probabilities[:, [j]])[:, 0]
            out[:, j] = logs[:, 1:] if k == 2 else logs
        elif kind == "score":
            out[:, j, 0] = score_of(predictions, j)
    return out


def _ranked(
    predictions: Predictions, kinds: tuple[Kind, ...],
    normal: tuple[tuple[NormalScores, ...], ...], values: Floats,
) -> Ranked:  # fmt: skip
    scores = np.full(values.shape, np.nan)
    votes = np.full((len(values), len(kinds)), -1)
    for j, kind in enumerate(kinds):
        if kind == "vote":
            votes[:, j] = predictions.hard[:, j]
        else:
            for c, score in enumerate(normal[j]):
                scores[:, j, c] = score(values[:, j, c])
    return Ranked(scores, votes)


def _start(
    predictions: Predictions, kinds: tuple[Kind, ...], ranked: Ranked, floors: Floats,
    pooled: PoolMaker,
) -> Floats:  # fmt: skip
    """Initial P(class) of each item, (n, K): the pool, sharpened to the agreement of classifiers.

    A vote is right with probability .8. Scores are used only if there is nothing else, their normal
    scores as log odds, since they may also fall with the class.
    """
    scores_alone, k = set(kinds) == {"score"}, predictions.n_classes
    p = np.full((predictions.n_items, len(kinds), k), np.nan)
    for j, kind in enumerate(kinds):
        if kind == "probability":
            assert predictions.probabilities is not None
            p[:, j] = _floored(predictions.probabilities[:, [j]], floors[[j]])[:, 0]
        elif kind == "score" and scores_alone:
            odds = expit(ranked.scores[:, j, 0])
            p[:, j] = np.stack([1 - odds, odds], axis=1)
        elif kind == "vote":
            vote = predictions.hard[:, j]
            p[:, j] = _usual_voter(vote, k)
            p[vote < 0, j] = np.nan
    c = centred_logs(p)
    votes = np.where(np.isnan(p[:, :, 0]), -1, np.argmax(np.nan_to_num(p), axis=2))
    index, _ = pooled(c).features(c)
    return softmax(agreement_anchor(index, votes) * index)


def _line(z: Floats, r: Floats) -> tuple[float, float]:
    """Log odds a + b z of the last class that responsibilities (n, 2) make likeliest."""
    scored = ~np.isnan(z)
    x = np.stack([np.ones(scored.sum()), z[scored]], axis=1)
    target, beta = r[scored, 1], np.zeros(2)
    for _ in range(25):
        p = expit(x @ beta)
        slope = x.T @ (target - p) - _RIDGE * beta
        curvature = (x * (p * (1 - p))[:, None]).T @ x + _RIDGE * np.eye(2)
        step = np.linalg.solve(curvature, slope)
        beta = beta + np.clip(step, -2, 2)
    return float(beta[0]), float(beta[1])


def _usual_voter(votes: Array, k: int) -> Floats:
    """P(class | vote) before anything is known of the voter, (n, K)."""
    return np.where(votes[:, None] == np.arange(k), _VOTER, (1 - _VOTER) / (k - 1))


class VoteTable(NamedTuple):
    """P(class | vote) of one classifier: rows (V, K) of the votes (V,) that occur, ascending.

    They are made from counts `seen` (V, K). Any other vote is taken as a usual voter's.
    """

    votes: Ints
    rows: Floats
    seen: Floats

    @staticmethod
    def of(votes: Array, r: Floats) -> VoteTable:
        """From votes (n,), -1 none, and responsibilities (n, K)."""
        voted = votes >= 0
        each, first, which = np.unique(votes[voted], return_index=True, return_inverse=True)
        sums = Patterns(first, which).sums(r[voted])
        seen = _usual_voter(each, r.shape[1]) + sums
        return VoteTable(each, _shrunk(seen), seen)

    def __call__(self, votes: Array, labels: Ints | None = None) -> Floats:
        """P(class | vote) of votes (n,), (n, K); of items with `labels` (n,) without these."""
        out, seen = np.empty((len(votes), self.rows.shape[1])), np.isin(votes, self.votes)
        out[seen] = self.rows[np.searchsorted(self.votes, votes[seen])]
        out[~seen] = _shrunk(_usual_voter(votes[~seen], out.shape[1]))
        if labels is not None:
            known = np.flatnonzero(seen & (labels >= 0))
            others = self.seen[np.searchsorted(self.votes, votes[known])]
            others[np.arange(len(known)), labels[known]] -= 1.0
            out[known] = _shrunk(np.maximum(others, _usual_voter(votes[known], out.shape[1])))
        return out


def _shrunk(seen: Floats) -> Floats:
    """Shares of what is seen, (V, K), by the share of their logs that is taken."""
    shares = np.exp(_SHRINKAGE * np.log(seen / seen.sum(axis=1, keepdims=True)))
    out: Floats = shares / shares.sum(axis=1, keepdims=True)
    return out


# --- rank-normal scores -----------------------------------------------------------------------


_MOST_KNOTS = 1024
_LEAST_SPREAD = 1e-9


@dataclass(frozen=True, eq=False)
class NormalScores:
    """Increasing knots and their normal scores, sd 1; values between knots lie between scores."""

    knots: Floats
    scores: Floats

    @staticmethod
    def of(values: Floats) -> NormalScores:
        """From the values that are there, (n,); equal values share their mean rank.

        Values that are all the same say nothing: their score is 0.
        """
        finite = values[np.isfinite(values)]
        knots, count = np.unique(finite, return_counts=True)
        if len(knots) < 2 or np.ptp(knots) < _LEAST_SPREAD:
            return NormalScores(np.zeros(1), np.zeros(1))
        rank = np.cumsum(count) - count / 2
        scores = ndtri(rank / len(finite))
        scores -= np.average(scores, weights=count)
        scores /= np.sqrt(np.average(scores**2, weights=count))
        if len(knots) > _MOST_KNOTS:
            some = np.unique(np.linspace(0, len(knots) - 1, _MOST_KNOTS).astype(np.int64))
            knots, scores = knots[some], scores[some]
        return NormalScores(knots, scores)

    def __call__(self, values: Floats) -> Floats:
        """Scores of any values, (n,); NaN stays NaN."""
        out: Floats = np.interp(values, self.knots, self.scores)
        out[np.isnan(values)] = np.nan
        return out


# --- a latent class, from agreement alone -----------------------------------------------------
#
# What several classifiers say of an item, explained without any label. Of two classes,
# classifiers that rank have normal scores with
#
#     z_i | y  ~  N(mu_y, diag(psi) + lambda lambda')
#
# (means by class, one factor that they share, as when some items are easy for all) and
# classifiers that only vote have P(vote | y), independent given the class. More classes are each
# against the rest, their responsibilities normalised in every step. All by EM, started from a
# pool. Source: Dawid and Skene (1979) for votes; for the factor McLachlan and Peel (2000),
# section 8.2.


STEPS, VOTE_STEPS = 8, 30
"""EM stops early where there are scores: later steps, with a factor, leave the classes for what
else the classifiers share (on made sets the index then ranks worse)."""

FACTOR_SHARE = 0.5
"""Share of the factor that is used, for the same reason."""

SMOOTHING = 0.5
"""Pseudo-votes of each kind under each class."""

MOST_CLASSES = 12
"""With more classes, scores are not modelled (each class against the rest), only votes."""

MOST_PAIRS = 500
"""Up to so many classifiers, the covariance of all pairs is kept."""

_LEAST_UNIQUE, _FACTOR_FROM, _MOST_LOG_ODDS = 0.1, 3, 12.0


class Ranked(NamedTuple):
    """What classifiers say: normal scores (n, M, C), NaN where none, and votes (n, M), -1 none.

    C is 1 of two classes (the last one's scores), else the number of classes. Votes are of the
    classifiers that only vote; others have none here.
    """

    scores: Floats
    votes: Array

    def planes(self) -> tuple[Floats, Floats]:
        """By class, (C, n, M): scores, 0 where none are; and 1 where some are, else 0."""
        scores = np.ascontiguousarray(self.scores.transpose(2, 0, 1))
        absent = np.isnan(scores)
        return np.where(absent, 0.0, scores), (~absent).astype(np.float64)


class _Side(NamedTuple):
    """One class against the rest: means (2, M), uniqueness and loadings (M,)."""

    log_odds: float
    means: Floats
    unique: Floats
    loadings: Floats


@dataclass(frozen=True, eq=False)
class LatentClasses:
    """The classes that explain scores best, each against the rest, and votes, by `rates`.

    These are log P(vote | class), (M, K votes, K): one for or against each class counts K times.
    """

    sides: tuple[_Side, ...]
    rates: Floats

    @staticmethod
    def of(ranked: Ranked, start: Floats, labels: Ints | None = None) -> LatentClasses:
        """Fit to items (n) from P(class) (n, K); labels (n,), -1 unknown, are kept where given."""
        r = _clamped(start, labels)
        scores, present = ranked.planes()
        each = [1] if r.shape[1] == 2 else range(r.shape[1])
        previous: Sequence[_Side | None] = [None] * len(each)
        m, k = len(ranked.votes.T), len(r.T)
        for _ in range(STEPS):
            planes = zip(scores, present, each, previous, strict=True)
            sides = tuple(_maximise(z, there, r[:, c], side) for z, there, c, side in planes)
            seen = np.full((m, k, k), SMOOTHING)
            for j in np.flatnonzero((ranked.votes >= 0).any(axis=0)):
                seen[j] += (ranked.votes[:, [j]] == np.arange(k)).T.astype(np.float64) @ r
            fitted = LatentClasses(sides, np.log(seen / seen.sum(axis=1, keepdims=True)))
            r, previous = _clamped(softmax(fitted.index(ranked)), labels), sides
        return fitted

    def index(self, ranked: Ranked) -> Floats:
        """Centred logs of P(class), (n, K), from log odds of every class between -12 and 12."""
        scores, present = ranked.planes()
        h = np.empty((len(ranked.votes), len(self.sides)))
        for c, side in enumerate(self.sides):
            h[:, c] = _expect(side, scores[c], present[c])
        said = self.rates - self.rates.mean(axis=2, keepdims=True)
        said = said if len(self.sides) > 1 else 2 * said[:, :, 1:]  # log odds of the second
        for j in np.flatnonzero((ranked.votes >= 0).any(axis=0)):
            h += np.where(ranked.votes[:, [j]] >= 0, said[j, ranked.votes[:, j]], 0.0)
        h = np.clip(h, -_MOST_LOG_ODDS, _MOST_LOG_ODDS)
        if h.shape[1] == 1:
            return np.hstack([-h / 2, h / 2])
        index: Floats = h - h.mean(axis=1, keepdims=True)
        return index


def _clamped(r: Floats, labels: Ints | None) -> Floats:
    if labels is not None:
        rows = np.flatnonzero(labels >= 0)
        r = r.copy()
        r[rows] = 0.0
        r[rows, labels[rows]] = 1.0
    return r


def _maximise(z: Floats, present: Floats, r: Floats, previous: _Side | None) -> _Side:
    both = np.stack([1 - r, r])  # (2, n)
    size = both @ present
    means = both @ z / np.maximum(size, 1e-9)
    # Residuals under either class, weighed by how likely it is: one matrix product for both.
    left = np.concatenate(
        [present * (z - m) * np.sqrt(w)[:, None] for m, w in zip(means, both, strict=True)]
    )
    if z.shape[1] <= MOST_PAIRS:
        together = np.maximum(present.T @ present, 1.0)
        covariance = left.T @ left / together
        variance = np.diag(covariance)
    else:
        # Not the matrix of all pairs: two who speak of n_a and n_b items are taken to meet on
        # sqrt(n_a n_b), which is exact where all speak of the same.
        left /= np.sqrt(np.maximum(present.sum(axis=0), 1.0))
        variance = (left**2).sum(axis=0)
    loadings = np.zeros_like(variance)
    if (variance > 1e-9).sum() >= _FACTOR_FROM:
        unique = 0.5 * variance if previous is None else previous.unique
        if z.shape[1] <= MOST_PAIRS:
            values, vectors = np.linalg.eigh(covariance - np.diag(unique))
        else:
            from scipy.sparse.linalg import LinearOperator, eigsh  # slow to load, and few need it

            operator = LinearOperator(
                (len(unique), len(unique)),
                matvec=lambda v: left.T @ (left @ v) - unique * v,
                dtype=np.float64,
            )
            values, vectors = eigsh(operator, k=1, which="LA", v0=np.ones(len(unique)))
        loadings = np.sqrt(FACTOR_SHARE * max(values[-1], 0.0)) * vectors[:, -1]
    unique = np.maximum(variance - loadings**2, _LEAST_UNIQUE)
    share = (r.sum() + 0.5) / (len(r) + 1)
    return _Side(float(np.log(share / (1 - share))), means, unique, loadings)


def _expect(side: _Side, z: Floats, present: Floats) -> Floats:
    # (diag(psi) + l l')^-1 by Sherman and Morrison, of the classifiers that say something.
    # The squares of z are in both classes' fit, and left out: products with vectors do the rest.
    means, lead = side.means / side.unique, side.loadings / side.unique
    across, *both = (z @ np.column_stack([lead, *means])).T
    sums = present @ np.column_stack(
        [side.loadings * lead, *side.means * means, *side.means * lead]
    )
    total, shift = 1 + sums[:, 0], sums[:, 3:].T
    fit = [sums[:, 1 + y] - 2 * both[y] - (across - shift[y]) ** 2 / total for y in (0, 1)]
    out: Floats = side.log_odds - 0.5 * (fit[1] - fit[0])
    return out


# --- votes alone ----------------------------------------------------------------------------


class Ballots(NamedTuple):
    """Votes of n items, (n, D M K): each of D domains has columns of its own; and domains (n,)."""

    votes: scipy.sparse.csr_matrix
    domain: Ints
    n_domains: int


_NO_BALLOTS = Ballots(scipy.sparse.csr_matrix((0, 0)), np.empty(0, dtype=np.int64), 1)


@dataclass(frozen=True, eq=False)
class VotedClasses:
    """Confusion matrices of all that vote, by EM, in every domain by itself.

    Votes that nobody casts are alike, and so are, in every step, classes that have the same
    P(class) of every item at the start. So log P(vote | class) (V + D M, C) is of the V columns of
    the ballots that occur, and one more for each voter of a domain, that stands for its others;
    of C classes that differ, each of which stands for `sizes` (C,); log shares of them are (D, C).
    """

    columns: Ints
    classes: Patterns
    sizes: Floats
    log_rates: Floats
    log_shares: Floats

    @staticmethod
    def of(ballots: Ballots, start: Floats, known: Ints | None = None) -> VotedClasses:
        """Fit from P(class) (n, K); labels (n,), -1 unknown, are kept where given."""
        n, k = start.shape
        # Items of the same votes, domain and label are one row, that counts as often.
        labels = np.full(n, -1) if known is None else known
        alike = patterns(ballots.votes, labels[:, None].astype(float), ballots.domain)
        some = Ballots(ballots.votes[alike.first], ballots.domain[alike.first], ballots.n_domains)
        labels, times = labels[alike.first], alike.sums(np.ones((n, 1)))
        r = alike.sums(_clamped(start, known))
        classes = distinct_columns(r)
        sizes = classes.sums(np.ones((k, 1)))[:, 0]
        r, labels = r[:, classes.first], np.append(classes.of_item, -1)[labels]
        columns, voters = np.unique(some.votes.indices), some.votes.shape[1] // k
        # By row of rates: whose it is, and how many votes it stands for.
        whose = np.append(columns // k, np.arange(voters))
        others = k - np.bincount(whose[: len(columns)], minlength=voters)
        each = np.append(np.ones(len(columns)), others)
        rows = np.arange(len(whose))
        by_voter = scipy.sparse.csr_matrix((each, (whose, rows)), (voters, len(rows)))
        fitted = VotedClasses(columns, classes, sizes, np.empty((0, 0)), np.empty((0, 0)))
        by_vote = fitted._by_row(some).T.tocsr()
        gather = np.eye(some.n_domains)[some.domain]  # (n, D)
        for _ in range(VOTE_STEPS):
            seen = by_vote @ r + SMOOTHING * 2 / k
            shares = gather.T @ r + 0.5
            fitted = VotedClasses(
                columns,
                classes,
                sizes,
                np.log(seen / (by_voter @ seen)[whose]),
                np.log(shares / (shares * sizes).sum(axis=1, keepdims=True)),
            )
            h = fitted._of_distinct(some) + np.log(sizes)
            r = times * _clamped(softmax(h) / sizes, labels)
        return fitted

    def index(self, ballots: Ballots) -> Floats:
        """Centred logs of P(class), (n, K)."""
        return self._of_distinct(ballots)[:, self.classes.of_item]

    def _of_distinct(self, ballots: Ballots) -> Floats:
        """The index of classes that differ, (n, C)."""
        h = self._by_row(ballots) @ self.log_rates + self.log_shares[ballots.domain]
        # Below the likeliest class: about the mean, many votes would tie all classes that lead.
        h = np.maximum(h - h.max(axis=1, keepdims=True), -2 * _MOST_LOG_ODDS)
        index: Floats = h - (h * self.sizes).sum(axis=1, keepdims=True) / self.sizes.sum()
        return index

    def _by_row(self, ballots: Ballots) -> scipy.sparse.csr_matrix:
        """Votes (n, V + D M) by the rows of the rates."""
        votes, k = ballots.votes, len(self.classes.of_item)
        place = np.searchsorted(self.columns, votes.indices)
        seen = np.append(self.columns, -1)[place] == votes.indices
        row = np.where(seen, place, len(self.columns) + votes.indices // k)
        shape = (votes.shape[0], len(self.columns) + votes.shape[1] // k)
        return scipy.sparse.csr_matrix((votes.data, row, votes.indptr), shape)
