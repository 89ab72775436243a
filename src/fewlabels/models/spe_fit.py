"""Fits of every pair of families to one classifier's scores, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal, Protocol

import numpy as np
from scipy.special import expit, logit

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import map_blocks
from fewlabels.kernels.score_families import FAMILIES, Points, Truncation
from fewlabels.kernels.simplex import softmax
from fewlabels.models.spe_mixture import ClassDensity, ScoreData, ScoreMixture, ScoreScale
from fewlabels.models.spe_sampling import (
    Sampled,
    Sampler,
    Target,
    find_modes,
    importance_ladder,
    run_chains,
    unsampled,
)

Selection = Literal["evidence", "likelihood", "average"]

_LEAST_WEIGHT = 0.01
_WORTH_CHAINS = 0.05
"""Pairs of less weight than this keep their importance sample, trusted or not."""

_OUT_OF_REACH = 12.0
"""Pairs whose evidence, by Laplace's approximation, is smaller by e^12 are not sampled."""


@dataclass(frozen=True)
class PairOptions:
    """What of the method's hyperparameters concerns the fits; see `SPE`."""

    families: tuple[str, ...]
    components: int
    truncation: Truncation
    selection: Selection
    first: Sampler
    proposals: int
    n_draws: int


@dataclass(frozen=True, eq=False)
class PairFit:
    """One pair of families, positive class first, and its weight among the pairs."""

    families: tuple[str, str]
    found: Sampled
    weight: float

    @property
    def name(self) -> str:
        """Families of the positive and the negative class, "normal/gamma"."""
        return "/".join(self.families)


def fit_pairs(
    data: ScoreData, options: PairOptions, *, ordered: bool, rng: np.random.Generator
) -> list[PairFit]:
    """Fit every pair; those that the selection gives weight are sampled until it can be trusted."""
    names = list(product(options.families, options.families))
    seeds = rng.integers(2**63, size=(len(names), 2))

    def search(i: int) -> Sampled:
        one, zero = (
            ClassDensity(FAMILIES[name], options.components, options.truncation)
            for name in names[i]
        )
        target = Target(ScoreMixture(one, zero), data, ordered)
        return unsampled(target, find_modes(target))

    searched = list(map_blocks(search, range(len(names))))
    # A pair that cannot get any weight is not worth a sample.
    height = max(each.log_evidence for each in searched) - _OUT_OF_REACH
    likeliest = int(np.argmax([each.modes.log_likelihood for each in searched]))

    def sample(i: int) -> Sampled:
        each, own = searched[i], np.random.default_rng(int(seeds[i, 0]))
        if each.log_evidence < height and i != likeliest:
            return each
        return importance_ladder(each.target, each.modes, options.proposals, options.first, own)

    found = list(map_blocks(sample, range(len(names))))
    weights = _weights(found, options.selection)
    out = []
    for i, (pair, each) in enumerate(zip(names, found, strict=True)):
        if weights[i] >= _WORTH_CHAINS and not each.trusted:
            each = run_chains(each, np.random.default_rng(int(seeds[i, 1])))
        out.append(PairFit(pair, each, float(weights[i])))
    return out


def _weights(found: Sequence[Sampled], selection: Selection) -> Floats:
    """Weight of each pair, summing to 1."""
    if selection == "likelihood":
        best = int(np.argmax([f.modes.log_likelihood for f in found]))
        return np.eye(len(found))[best]
    evidence = np.array([f.log_evidence for f in found])
    if not np.isfinite(evidence).any():
        return np.eye(len(found))[int(np.argmax([f.modes.values[0] for f in found]))]
    if selection == "evidence":
        return np.eye(len(found))[int(np.argmax(evidence))]
    weights = softmax(evidence, axis=0)
    weights = np.where(weights < _LEAST_WEIGHT, 0.0, weights)
    return weights / weights.sum()


class OddsDraws(Protocol):
    """Draws of what turns one classifier's scores, in the units of the file, into log-odds."""

    @property
    def size(self) -> int:
        """How many draws there are, D."""

    @property
    def logit_prevalence(self) -> Floats:
        """Logit of the share of the positive class, (D,)."""

    def log_odds(self, scores: Floats, index: Ints) -> Floats:
        """Log-odds of the positive class, (n, D), of scores (n,) that are not missing."""

    def survival(self, thresholds: Floats, index: Ints) -> tuple[Floats, Floats]:
        """P(score >= threshold) in the positive and in the negative class, both (T, D)."""


@dataclass(frozen=True, eq=False)
class PairDraws:
    """Draws from the posterior of one pair of densities, or of several by their weights."""

    scale: ScoreScale
    mixtures: tuple[ScoreMixture, ...]
    thetas: tuple[Floats, ...]
    part: Ints
    place: Ints

    @classmethod
    def of(
        cls, pairs: Sequence[PairFit], scale: ScoreScale, size: int, rng: np.random.Generator
    ) -> PairDraws:
        """`size` draws, shared out by the weights of the pairs, in random order."""
        used = [p for p in pairs if p.weight > 0]
        edges = np.round(np.cumsum([p.weight for p in used]) * size).astype(int)
        counts = np.diff(np.r_[0, edges])
        thetas = tuple(p.found.draw(int(c), rng) for p, c in zip(used, counts, strict=True))
        part = np.repeat(np.arange(len(used)), counts)
        place = np.concatenate([np.arange(c) for c in counts])
        order = rng.permutation(size)
        mixtures = tuple(p.found.target.mixture for p in used)
        return cls(scale, mixtures, thetas, part[order], place[order])

    @property
    def size(self) -> int:
        """How many draws there are, D."""
        return len(self.part)

    @cached_property
    def logit_prevalence(self) -> Floats:
        """Logit of the share of the positive class, (D,)."""
        out = np.empty(self.size)
        for k, theta in enumerate(self.thetas):
            mine = self.part == k
            out[mine] = theta[self.place[mine], -1]
        return out

    def log_odds(self, scores: Floats, index: Ints) -> Floats:
        """Log-odds of the positive class, (n, D), of scores (n,) that are not missing."""
        points = Points(self.scale.unit(scores))
        out = np.empty((len(scores), len(index)))
        for mixture, theta, columns in self._parts(index):
            out[:, columns] = mixture.log_odds(points, theta)
        return out

    def survival(self, thresholds: Floats, index: Ints) -> tuple[Floats, Floats]:
        """P(score >= threshold) in the positive and in the negative class, both (T, D)."""
        x = self.scale.cut(thresholds)
        inside = np.isfinite(x)
        one = np.repeat(np.where(x < 0, 1.0, 0.0)[:, None], len(index), axis=1)
        zero = one.copy()
        for mixture, theta, columns in self._parts(index):
            rows = np.ix_(inside, columns)
            one[rows], zero[rows] = mixture.survival(x[inside], theta)
        return one, zero

    def _parts(self, index: Ints) -> list[tuple[ScoreMixture, Floats, Ints]]:
        """Mixture, parameters and columns of the draws that belong to each pair."""
        part, place = self.part[index], self.place[index]
        columns = [np.flatnonzero(part == k) for k in range(len(self.mixtures))]
        return [
            (mixture, theta[place[c]], c)
            for mixture, theta, c in zip(self.mixtures, self.thetas, columns, strict=True)
            if len(c)
        ]


@dataclass(frozen=True, eq=False)
class PrevalenceDraws:
    """Draws for scores that say nothing: every item has the prevalence of the draw."""

    scores: Floats
    logit_prevalence: Floats

    @classmethod
    def of(
        cls, scores: Floats, evidence: Floats, weight: Floats, size: int, rng: np.random.Generator
    ) -> PrevalenceDraws:
        """Posterior of the prevalence under a uniform prior, given evidence (n, 2), on a grid."""
        grid = (np.arange(2000) + 0.5) / 2000
        told = np.flatnonzero((evidence != 0).any(axis=1))
        first = evidence[told, 1, None] + np.log(grid)
        second = evidence[told, 0, None] + np.log1p(-grid)
        p = softmax(weight[told] @ np.logaddexp(first, second), axis=0)
        at = np.searchsorted(np.cumsum(p), (np.arange(size) + rng.random()) / size)
        drawn = grid[np.minimum(at, len(grid) - 1)] + (rng.random(size) - 0.5) / len(grid)
        return cls(scores, rng.permutation(logit(drawn)))

    @property
    def size(self) -> int:
        """How many draws there are, D."""
        return len(self.logit_prevalence)

    def log_odds(self, scores: Floats, index: Ints) -> Floats:
        """The prevalence's log-odds for every item, (n, D)."""
        return np.tile(self.logit_prevalence[index], (len(scores), 1))

    def survival(self, thresholds: Floats, index: Ints) -> tuple[Floats, Floats]:
        """Share of the scores that are at least the threshold, the same in both classes."""
        share = (self.scores >= thresholds[:, None]).mean(axis=1)
        one = np.repeat(share[:, None], len(index), axis=1)
        return one, one.copy()


def rates(draws: OddsDraws, thresholds: Floats, index: Ints) -> tuple[Floats, Floats, Floats]:
    """Prevalence (D,), recall (T, D) and false-positive rate (T, D); see `ScoreRates`."""
    one, zero = draws.survival(thresholds, index)
    return expit(draws.logit_prevalence[index]), one, zero
