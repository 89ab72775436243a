"""Latent classes: what several classifiers say of an item, explained without any label.

Of two classes, classifiers that rank have normal scores with

    z_i | y  ~  N(mu_y, diag(psi) + lambda lambda')

(means by class, one factor that they share, as when some items are easy for all) and classifiers
that only vote have P(vote | y), independent given the class. More classes are each against the
rest, their responsibilities normalised in every step. All by EM, started from a pool. Source:
Dawid and Skene (1979) for votes; for the factor McLachlan and Peel (2000), section 8.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse

from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.simplex import softmax
from fewlabels.kernels.votes import by_group

STEPS, VOTE_STEPS = 8, 30
"""EM stops early where there are scores: later steps, with a factor, leave the classes for what
else the classifiers share (on made sets the index then ranks worse)."""

FACTOR_SHARE = 0.5
"""Share of the factor that is believed, for the same reason."""

SMOOTHING = 0.5
"""Pseudo-votes of each kind under each class."""

MOST_CLASSES = 12
"""Of more classes scores are not modelled, each against the rest: votes are."""

_LEAST_UNIQUE, _FACTOR_FROM, _MOST_LOG_ODDS = 0.1, 3, 12.0


class Ranked(NamedTuple):
    """What classifiers say: normal scores (n, M, C), NaN where none, and votes (n, M), -1 none.

    C is 1 of two classes (the last one's scores), else the number of classes. Votes are of the
    classifiers that only vote; others have none here.
    """

    scores: Floats
    votes: Array


class _Side(NamedTuple):
    """One class against the rest: means (2, M), uniqueness and loadings (M,), log P(vote | y)."""

    log_odds: float
    means: Floats
    unique: Floats
    loadings: Floats
    votes: Floats  # (M, 2 votes, 2 classes)


@dataclass(frozen=True, eq=False)
class LatentClasses:
    """The classes that explain scores and votes best, each against the rest."""

    sides: tuple[_Side, ...]

    @staticmethod
    def of(said: Ranked, start: Floats, known: Ints | None = None) -> LatentClasses:
        """Fit to items (n) from P(class) (n, K); labels (n,), -1 unknown, are kept where given."""
        r = _clamped(start, known)
        scores = np.nan_to_num(said.scores)
        given = (~np.isnan(said.scores)).astype(np.float64)
        sides: tuple[_Side, ...] = ()
        previous: list[_Side | None] = [None] * said.scores.shape[2]
        for _ in range(STEPS):
            k = _classes(r)
            sides = tuple(
                _maximise(
                    scores[:, :, c], given[:, :, c], said.votes, r[:, k[c]], k[c], previous[c]
                )
                for c in range(len(k))
            )
            previous = list(sides)
            r = _clamped(LatentClasses(sides).responsibilities(said), known)
        return LatentClasses(sides)

    def log_odds(self, said: Ranked) -> Floats:
        """Log odds of every class against the rest, (n, C), between -12 and 12."""
        scores = np.nan_to_num(said.scores)
        given = (~np.isnan(said.scores)).astype(np.float64)
        out = np.empty((len(scores), len(self.sides)))
        for c, side in enumerate(self.sides):
            k = 1 if len(self.sides) == 1 else c
            out[:, c] = _expect(side, scores[:, :, c], given[:, :, c], said.votes, k)
        return np.clip(out, -_MOST_LOG_ODDS, _MOST_LOG_ODDS)

    def responsibilities(self, said: Ranked) -> Floats:
        """P(class), (n, K)."""
        return softmax(self.index(said))

    def index(self, said: Ranked) -> Floats:
        """Centred logs of P(class), (n, K)."""
        h = self.log_odds(said)
        if h.shape[1] == 1:
            return np.hstack([-h / 2, h / 2])
        index: Floats = h - h.mean(axis=1, keepdims=True)
        return index


def _classes(r: Floats) -> list[int]:
    return [1] if r.shape[1] == 2 else list(range(r.shape[1]))


def _clamped(r: Floats, known: Ints | None) -> Floats:
    if known is not None:
        rows = np.flatnonzero(known >= 0)
        r = r.copy()
        r[rows] = np.eye(r.shape[1])[known[rows]]
    return r


def _maximise(
    z: Floats, given: Floats, votes: Array, r: Floats, k: int, previous: _Side | None
) -> _Side:
    both = np.stack([1 - r, r])  # (2, n)
    size = both @ given
    means = both @ z / np.maximum(size, 1e-9)
    # Residuals under either class, weighed by how likely it is: one matrix product for both.
    left = np.concatenate(
        [given * (z - m) * np.sqrt(w)[:, None] for m, w in zip(means, both, strict=True)]
    )
    together = np.maximum(given.T @ given, 1.0)
    covariance = left.T @ left / together
    variance = np.diag(covariance)
    loadings = np.zeros_like(variance)
    if (variance > 1e-9).sum() >= _FACTOR_FROM:
        unique = 0.5 * variance if previous is None else previous.unique
        values, vectors = np.linalg.eigh(covariance - np.diag(unique))
        loadings = np.sqrt(FACTOR_SHARE * max(values[-1], 0.0)) * vectors[:, -1]
    unique = np.maximum(variance - loadings**2, _LEAST_UNIQUE)
    rates = np.full((votes.shape[1], 2, 2), SMOOTHING)
    for j in np.flatnonzero((votes >= 0).any(axis=0)):
        rates[j, 0] += both[:, (votes[:, j] >= 0) & (votes[:, j] != k)].sum(axis=1)
        rates[j, 1] += both[:, votes[:, j] == k].sum(axis=1)
    rates = np.log(rates / rates.sum(axis=1, keepdims=True))
    share = (r.sum() + 0.5) / (len(r) + 1)
    return _Side(float(np.log(share / (1 - share))), means, unique, loadings, rates)


def _expect(side: _Side, z: Floats, given: Floats, votes: Array, k: int) -> Floats:
    # (diag(psi) + l l')^-1 by Sherman and Morrison, of the classifiers that say something.
    weight = given / side.unique
    scaled = weight * side.loadings
    total = 1 + (scaled * side.loadings).sum(axis=1)
    fit = np.empty((2, len(z)))
    for y in (0, 1):
        gap = z - side.means[y]
        fit[y] = (weight * gap**2).sum(axis=1) - (scaled * gap).sum(axis=1) ** 2 / total
    out: Floats = side.log_odds - 0.5 * (fit[1] - fit[0])
    gain = side.votes[:, :, 1] - side.votes[:, :, 0]  # (M, 2 votes)
    for j in np.flatnonzero((votes >= 0).any(axis=0)):
        out += np.where(votes[:, j] >= 0, gain[j][(votes[:, j] == k).astype(int)], 0.0)
    return out


# --- votes alone ----------------------------------------------------------------------------


class Ballots(NamedTuple):
    """Votes of n items, (n, D M K): each of D domains has columns of its own; and domains (n,)."""

    votes: scipy.sparse.csr_matrix
    domain: Ints
    n_domains: int

    @staticmethod
    def of(votes: scipy.sparse.csr_matrix, domain: Ints, n_domains: int) -> Ballots:
        """From votes (n, M K)."""
        return Ballots(by_group(votes, domain, n_domains), domain, n_domains)


@dataclass(frozen=True, eq=False)
class VotedClasses:
    """Confusion matrices of all that vote, by EM, in every domain by itself.

    log P(vote | class) (D M K, K), and log shares of the classes (D, K).
    """

    log_rates: Floats
    log_shares: Floats

    @staticmethod
    def of(ballots: Ballots, start: Floats, known: Ints | None = None) -> VotedClasses:
        """Fit from P(class) (n, K); labels (n,), -1 unknown, are kept where given."""
        r = _clamped(start, known)
        k = r.shape[1]
        by_vote = ballots.votes.T.tocsr()
        gather = np.eye(ballots.n_domains)[ballots.domain]  # (n, D)
        for _ in range(VOTE_STEPS):
            seen = (by_vote @ r).reshape(-1, k, k) + SMOOTHING * 2 / k
            rates = np.log(seen / seen.sum(axis=1, keepdims=True)).reshape(-1, k)
            shares = gather.T @ r + 0.5
            fitted = VotedClasses(rates, np.log(shares / shares.sum(axis=1, keepdims=True)))
            r = _clamped(softmax(fitted.index(ballots)), known)
        return fitted

    def index(self, ballots: Ballots) -> Floats:
        """Centred logs of P(class), (n, K)."""
        h = ballots.votes @ self.log_rates + self.log_shares[ballots.domain]
        # Below the likeliest class: about the mean, many votes would tie all classes that lead.
        h = np.maximum(h - h.max(axis=1, keepdims=True), -2 * _MOST_LOG_ODDS)
        index: Floats = h - h.mean(axis=1, keepdims=True)
        return index
