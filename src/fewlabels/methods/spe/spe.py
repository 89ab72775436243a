"""SPE: semisupervised performance evaluation, a mixture of two densities of one score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import chdtrc, expit, logit

from fewlabels.checks.arguments import chosen_from, whole
from fewlabels.errors import UsageError, unknown
from fewlabels.kernels.arrays import Floats, Ints, UInts
from fewlabels.kernels.blocks import map_blocks
from fewlabels.kernels.importance import systematic
from fewlabels.kernels.simplex import softmax, two_classes
from fewlabels.kernels.votes import has_evidence
from fewlabels.methods.base import (
    FittedLabelModel,
    LabelModel,
    refuse_more_classes,
    status_of,
    with_scores,
)
from fewlabels.methods.per_model import ScoreDraws, fit_each, is_probability, score_of
from fewlabels.methods.spe.families import FAMILIES, SHORT_NAMES, Points, Truncation
from fewlabels.methods.spe.mixture import (
    ClassDensity,
    ScoreData,
    ScoreMixture,
    ScoreScale,
    lacks_a_class,
    score_data,
)
from fewlabels.methods.spe.sampling import (
    Sampled,
    Target,
    find_modes,
    importance_ladder,
    run_chains,
    unsampled,
)
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

Selection = Literal["evidence", "likelihood", "average"]

_FEWEST = 3
_MOST_DOUBT = 0.1
"""Largest total weight of pairs without a reliable sample."""


@dataclass(frozen=True)
class SPE(LabelModel):
    """Scores of one classifier as a mixture of two densities, one per class, with few labels.

    Source: Welinder, Welling, Perona (2013), Semisupervised classifier evaluation and
    recalibration. The posterior of the densities' parameters and of the prevalence, given all
    scores and the labels there are, is drawn by importance sampling; every draw gives each item a
    probability, and the population its recall and false-positive rate at any threshold.

    Parameters
    ----------
    families
        Families that each class's density may be of; all pairs are fitted. "normal" (the paper's
        n), "student-t" (t), "gamma" (g), "log-normal" (ln), "gumbel-right" (g-r), "gumbel-left"
        (g-l), "gompertz" (gz), "weibull-min" (f-r), "frechet".
    selection
        What becomes of the pairs: "likelihood" takes the one of the highest maximised likelihood
        (the paper), "evidence" the one of the highest marginal likelihood, "average" all by their
        marginal likelihood.
    components
        Members of the family that each class's density mixes (the paper: 1).
    scale
        Probabilities enter as their logits ("logit"), or as they are ("probability"). Scores that
        are not probabilities enter as they are.
    truncation
        Densities end at the smallest score ("left": families on the whole line but Gumbel's), or
        all at the smallest and at the largest ("unit").
    prevalence_prior
        Beta prior of the share of positive items.
    location_prior, spread_prior
        Mean and standard deviation of the normal prior of a class's mean (gamma) or location, and
        shape and rate of the gamma prior of its standard deviation or scale, both where the
        smallest score is 0 and the largest 1 (.5, .5 and 2, 8). Log-normal, Gompertz, Weibull and
        Frechet densities keep their own.
    sampler
        The proposal that comes first: "diagonal" (the paper) or "full". Where its weights cannot
        be trusted, others follow: full covariance, a mixture over modes, Hamiltonian Monte Carlo.
    proposals
        Draws of each importance sample; the paper's number is not known.
    n_draws
        Parameter draws that are kept.
    """

    families: tuple[str, ...] = ("normal", "gamma")
    selection: Selection = "likelihood"
    components: int = 1
    scale: Literal["logit", "probability"] = "logit"
    truncation: Truncation = "left"
    prevalence_prior: tuple[float, float] = (1.0, 1.0)
    location_prior: tuple[float, float] | None = None
    spread_prior: tuple[float, float] | None = None
    sampler: Literal["diagonal", "full"] = "diagonal"
    proposals: int = 2000
    n_draws: int = 400

    def __post_init__(self) -> None:
        names = (self.families,) if isinstance(self.families, str) else tuple(self.families)
        if not names:
            raise UsageError("`families` is empty; name at least one, such as 'normal'")
        for name in names:
            if name not in FAMILIES and name not in SHORT_NAMES:
                raise UsageError(unknown("family", name, [*FAMILIES, *SHORT_NAMES]))
        # Long names, each once.
        families = tuple(dict.fromkeys(SHORT_NAMES.get(name, name) for name in names))
        object.__setattr__(self, "families", families)
        for name in ("components", "proposals", "n_draws"):
            whole(name, getattr(self, name))
        for name in ("prevalence_prior", "location_prior", "spread_prior"):
            pair = getattr(self, name)
            values = () if pair is None else pair
            # Only a location may be 0 or less.
            if len(values) not in (0, 2) or any(
                not np.isfinite(v) or (v <= 0 and (k or name != "location_prior"))
                for k, v in enumerate(values)
            ):
                raise UsageError(f"`{name}` must be two numbers, above 0; got {pair!r}")
        chosen_from("selection", self.selection, get_args(Selection))
        chosen_from("scale", self.scale, ("logit", "probability"))
        chosen_from("truncation", self.truncation, get_args(Truncation))
        chosen_from("sampler", self.sampler, ("diagonal", "full"))

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Fit every classifier that gives probabilities or scores, by itself."""
        refuse_more_classes(predictions, "spe", "'monotone-curves' or 'tempered-ensemble'")
        return fit_each(self._fit_one, with_scores(predictions, "spe"), rng)

    def _fit_one(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """The densities of one classifier's scores."""
        salt = int(rng.integers(2**63))
        scored = ScoredItems.of(predictions, self.scale)
        no_class = lacks_a_class(scored.evidence)
        if scored.scale is None:
            flat = _PrevalenceDraws.of(scored, self.n_draws, rng)
            return _FittedSPE(predictions.models, flat, salt, bool(no_class.all()))
        data = scored.data(scored.evidence)
        pairs = fit_pairs(data, self, ordered=bool(no_class.any()), rng=rng)
        draws = _PairDraws.of(pairs, scored.scale, self.n_draws, rng)
        labeled = scored.rows[np.argsort(scored.keys, kind="stable")]
        labeled = labeled[predictions.labels[labeled] >= 0]
        odds = draws.log_odds(scored.every[labeled], np.arange(draws.size))
        best = max(pairs, key=lambda pair: pair.weight).estimate
        mixture, mode = best.target.mixture, best.modes.points[0]
        fit = check_fit(mixture, mode, data, odds, predictions.labels[labeled], rng)
        return _FittedSPE(predictions.models, draws, salt, bool(no_class.all()), tuple(pairs), fit)


@dataclass(frozen=True, eq=False)
class ScoredItems:
    """The scores (n,) of one classifier, and of the `rows` with one what is known of each.

    `scale` is None where they say nothing: all are equal, or there are too few.
    """

    every: Floats
    rows: Ints
    evidence: Floats
    weight: Floats
    keys: UInts
    scale: ScoreScale | None

    @staticmethod
    def of(predictions: Predictions, scale: str) -> ScoredItems:
        """Those of the first classifier; `scale` as in `SPE`."""
        every = score_of(predictions, 0)
        # Items of no weight are no part of the sample, and must not set its range either.
        rows = np.flatnonzero(~np.isnan(every) & (predictions.weight > 0))
        logit = is_probability(predictions, 0) and scale == "logit"
        unit = ScoreScale.of(every[rows], logit=logit) if len(rows) >= _FEWEST else None
        if unit is not None and not unit.low < unit.high:
            unit = None
        evidence, keys = predictions.evidence[rows], predictions.keys[rows]
        weight = predictions.weight * predictions.information
        return ScoredItems(every, rows, evidence, weight[rows], keys, unit)

    def data(self, evidence: Floats) -> ScoreData:
        """The scores on the unit interval, with this evidence (n, 2)."""
        assert self.scale is not None
        return score_data(self.scale.unit(self.every[self.rows]), evidence, self.weight, self.keys)


@dataclass(frozen=True, eq=False)
class _FittedSPE(FittedLabelModel):
    models: tuple[str, ...]
    draws: OddsDraws
    salt: int
    unlabeled: bool
    pairs: tuple[PairFit, ...] = ()
    fit: Fit | None = None

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        served = predictions.select_models(self.models)
        parameters = ScoreDraws(self.draws, score_of(served, 0), predictions.evidence)
        warnings = self._warnings()
        return LabelPosterior(
            None,
            parameters,
            predictions.keys,
            salt=self.salt,
            score_rates=self.draws,
            status=status_of(warnings),
            warnings=warnings,
            diagnostics=self._diagnostics(),
        )

    def _warnings(self) -> tuple[str, ...]:
        warnings = []
        if self.unlabeled:
            warnings.append(
                "assumption: no labels; the estimates rest on the densities' shapes and on the "
                "positive class having the higher scores"
            )
        if not self.pairs:
            warnings.append(
                "assumption: all scores are equal, or there are fewer than 3; they say nothing of "
                "the labels, and every item gets the prevalence"
            )
        if self.fit is not None and self.fit.alarming:
            scale = self.draws.scale if isinstance(self.draws, _PairDraws) else None
            at = scale.score(self.fit.at) if scale is not None else np.nan
            warnings.append(
                "assumption: the scores do not follow the fitted densities, so intervals are "
                f"too narrow: {self.fit.gap(at)}; method 'monotone-curves' does "
                "without densities"
            )
        if sum(pair.weight for pair in self.pairs if not pair.estimate.trusted) > _MOST_DOUBT:
            warnings.append(
                "not-converged: no sampler of the densities' parameters could be relied on "
                "(importance weights with Pareto k above .7, and chains that disagree)"
            )
        return tuple(warnings)

    def _diagnostics(self) -> dict[str, Any]:
        out: dict[str, Any] = {"prevalence": float(expit(self.draws.logit_prevalence).mean())}
        if not self.pairs:
            return out
        best = max(self.pairs, key=lambda pair: pair.weight)
        estimate, fit = best.estimate, self.fit
        out |= {
            "families": best.name,
            "sampler": estimate.sampler,
            "pareto_k": estimate.sample.pareto_k,
            "effective_sample_size": estimate.sample.effective_size,
            "pairs": {
                pair.name: {
                    "log_likelihood": pair.estimate.modes.log_likelihood,
                    "log_evidence": pair.estimate.log_evidence,
                    "weight": pair.weight,
                    "sampler": pair.estimate.sampler,
                    "pareto_k": dict(pair.estimate.pareto_k),
                }
                for pair in self.pairs
            },
        }
        if estimate.r_hat is not None:
            out["r_hat"] = estimate.r_hat
        if fit is not None:
            out |= {"fit_scores": fit.scores, "fit_labels": fit.labels, "distance": fit.distance}
        return out


# --- pairs of families, and draws of what turns scores into odds ------------------------------


_LEAST_WEIGHT = 0.01
_WORTH_CHAINS = 0.05
"""Pairs of less weight keep their importance sample, reliable or not."""

_OUT_OF_REACH = 12.0
"""Pairs whose evidence, by Laplace's approximation, is smaller by e^12 are not sampled."""


@dataclass(frozen=True, eq=False)
class PairFit:
    """One pair of families, positive class first, and its weight among the pairs."""

    families: tuple[str, str]
    estimate: Sampled
    weight: float

    @property
    def name(self) -> str:
        """Families of the positive and the negative class, "normal/gamma"."""
        return "/".join(self.families)


def fit_pairs(
    data: ScoreData, settings: SPE, *, ordered: bool, rng: np.random.Generator
) -> list[PairFit]:
    """Fit every pair; those that the selection gives weight are sampled until it can be trusted."""
    names = list(product(settings.families, settings.families))
    seeds = rng.integers(2**63, size=(len(names), 2))

    def search(i: int) -> Sampled:
        one, zero = (
            ClassDensity(
                FAMILIES[name],
                settings.components,
                settings.truncation,
                FAMILIES[name].prior_with(settings.location_prior, settings.spread_prior),
            )
            for name in names[i]
        )
        target = Target(ScoreMixture(one, zero, settings.prevalence_prior), data, ordered)
        return unsampled(target, find_modes(target))

    searched = list(map_blocks(search, range(len(names))))
    # A pair that cannot get any weight is not worth a sample.
    height = max(each.log_evidence for each in searched) - _OUT_OF_REACH
    likeliest = int(np.argmax([each.modes.log_likelihood for each in searched]))

    def sample(i: int) -> Sampled:
        each, rng = searched[i], np.random.default_rng(int(seeds[i, 0]))
        if each.log_evidence < height and i != likeliest:
            return each
        return importance_ladder(each.target, each.modes, settings.proposals, settings.sampler, rng)

    estimates = list(map_blocks(sample, range(len(names))))
    weights = _weights(estimates, settings.selection)
    out = []
    for i, (pair, each) in enumerate(zip(names, estimates, strict=True)):
        if weights[i] >= _WORTH_CHAINS and not each.trusted:
            each = run_chains(each, np.random.default_rng(int(seeds[i, 1])))
        out.append(PairFit(pair, each, float(weights[i])))
    return out


def _weights(estimates: Sequence[Sampled], selection: Selection) -> Floats:
    """Weight of each pair, summing to 1."""
    criterion = np.array([e.log_evidence for e in estimates])
    if selection == "likelihood":
        criterion = np.array([e.modes.log_likelihood for e in estimates])
    elif not np.isfinite(criterion).any():
        criterion = np.array([e.modes.values[0] for e in estimates])
    elif selection == "average":
        weights = softmax(criterion, axis=0)
        weights = np.where(weights < _LEAST_WEIGHT, 0.0, weights)
        return weights / weights.sum()
    return np.eye(len(estimates))[int(np.argmax(criterion))]


class OddsDraws(ABC):
    """Draws of what turns one classifier's scores, in the units of the file, into log-odds.

    They are the population's rates as well (`fewlabels.posterior.ScoreRates`).
    """

    logit_prevalence: Floats
    """Logit of the share of the positive class, (D,)."""

    @property
    def size(self) -> int:
        """How many draws there are, D."""
        return len(self.logit_prevalence)

    @abstractmethod
    def log_odds(self, scores: Floats, index: Ints) -> Floats:
        """Log-odds of the positive class, (n, D), of scores (n,) that are not missing."""

    @abstractmethod
    def survival(self, thresholds: Floats, index: Ints) -> tuple[Floats, Floats]:
        """P(score >= threshold) in the positive and in the negative class, both (T, D)."""

    def rates(self, thresholds: Floats, index: Ints) -> tuple[Floats, Floats, Floats]:
        """Prevalence (D,), recall (T, D) and false-positive rate (T, D)."""
        return expit(self.logit_prevalence[index]), *self.survival(thresholds, index)


@dataclass(frozen=True, eq=False)
class _PairDraws(OddsDraws):
    """Draws from the posterior of one pair of densities, or of several by their weights."""

    scale: ScoreScale
    mixtures: tuple[ScoreMixture, ...]
    thetas: tuple[Floats, ...]
    part: Ints
    place: Ints
    logit_prevalence: Floats

    @classmethod
    def of(
        cls, pairs: Sequence[PairFit], scale: ScoreScale, size: int, rng: np.random.Generator
    ) -> _PairDraws:
        """`size` draws, shared out by the weights of the pairs, in random order."""
        used = [p for p in pairs if p.weight > 0]
        edges = np.round(np.cumsum([p.weight for p in used]) * size).astype(int)
        counts = np.diff(np.r_[0, edges])
        thetas = tuple(p.estimate.draw(int(c), rng) for p, c in zip(used, counts, strict=True))
        part = np.repeat(np.arange(len(used)), counts)
        place = np.concatenate([np.arange(c) for c in counts])
        order = rng.permutation(size)
        mixtures = tuple(p.estimate.target.mixture for p in used)
        prevalence = np.concatenate([theta[:, -1] for theta in thetas])[order]
        return cls(scale, mixtures, thetas, part[order], place[order], prevalence)

    def log_odds(self, scores: Floats, index: Ints) -> Floats:
        points = Points(self.scale.unit(scores))
        out = np.empty((len(scores), len(index)))
        for mixture, theta, columns in self._parts(index):
            out[:, columns] = mixture.log_odds(points, theta)
        return out

    def survival(self, thresholds: Floats, index: Ints) -> tuple[Floats, Floats]:
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
class _PrevalenceDraws(OddsDraws):
    """Draws for scores that say nothing: every item has the prevalence of the draw."""

    scores: Floats
    logit_prevalence: Floats

    @classmethod
    def of(cls, scored: ScoredItems, size: int, rng: np.random.Generator) -> _PrevalenceDraws:
        """Posterior of the prevalence under a uniform prior, given the evidence, on a grid."""
        grid = (np.arange(2000) + 0.5) / 2000
        informed = np.flatnonzero(has_evidence(scored.evidence))
        evidence = scored.evidence[informed]
        both = np.logaddexp(evidence[:, 1:] + np.log(grid), evidence[:, :1] + np.log1p(-grid))
        p = softmax(scored.weight[informed] @ both, axis=0)
        drawn = grid[systematic(p, size, rng)] + (rng.random(size) - 0.5) / len(grid)
        return cls(scored.every[scored.rows], rng.permutation(logit(drawn)))

    def log_odds(self, scores: Floats, index: Ints) -> Floats:
        return np.tile(self.logit_prevalence[index], (len(scores), 1))

    def survival(self, thresholds: Floats, index: Ints) -> tuple[Floats, Floats]:
        """Share of the scores that are at least the threshold, the same in both classes."""
        share = (self.scores >= thresholds[:, None]).mean(axis=1)
        one = np.repeat(share[:, None], len(index), axis=1)
        return one, one.copy()


# --- whether scores and labels look as the densities say ----------------------------------------

LEVEL = 0.05
"""Share of data sets that follow the model in which the check objects nevertheless."""

_ORDER = 6
_SIMULATIONS = 4000
_STEP = 1e-4
_QUANTILES = 1000
_LEAST_LEFT = 0.02


@dataclass(frozen=True)
class Fit:
    """Two p-values, and what the discrepancies look like.

    `scores` is of Neyman's smooth test of all scores against the mixture, `labels` of the labels
    against P(positive | score) as it is without the label in question; 1 where there is nothing
    to test. The largest gap between the distribution functions is `distance`, at score `at` (on
    the fit's own scale), where the model puts the share `expected` below and the items `observed`.
    """

    scores: float
    labels: float
    distance: float
    at: float
    expected: float
    observed: float

    @property
    def alarming(self) -> bool:
        """Whether either test objects, at half the level each."""
        return min(self.scores, self.labels) < LEVEL / 2

    def gap(self, score: float) -> str:
        """The discrepancy, in words; `score` is where it is largest, in file units."""
        parts = []
        if self.scores < LEVEL / 2:
            parts.append(
                f"{self.observed:.1%} of the scores are below {score:.4g}, and the densities say "
                f"{self.expected:.1%} (p = {max(self.scores, 1e-4):.2g})"
            )
        if self.labels < LEVEL / 2:
            parts.append(
                "the labels contradict the probabilities that the densities give their items "
                f"(p = {max(self.labels, 1e-4):.2g})"
            )
        return "; ".join(parts)


def check_fit(
    mixture: ScoreMixture,
    mode: Floats,
    data: ScoreData,
    labeled_odds: Floats,
    labels: Ints,
    rng: np.random.Generator,
) -> Fit:
    """Test the mixture at its mode (q,), and the labels (L,) by log-odds (L, D) of the draws."""
    points, weight = _together(data)
    model = _distribution(mixture, mode[None], points)[:, 0]
    # The middle of each step, so that neither side of it counts as a gap.
    seen = (np.cumsum(weight) - weight / 2) / weight.sum()
    worst = int(np.argmax(np.abs(model - seen)))
    return Fit(
        smooth_test(mixture, mode, data),
        surprise_of_labels(two_classes(expit(labeled_odds)), labels, rng),
        float(abs(model[worst] - seen[worst])),
        float(points.x[worst]),
        float(model[worst]),
        float(seen[worst]),
    )


def _together(data: ScoreData) -> tuple[Points, Floats]:
    """All scores and their weights, by ascending score."""
    x = np.concatenate([data.positive.x, data.negative.x, data.open.x])
    weight = np.concatenate([data.positive_weight, data.negative_weight, data.open_weight])
    order = np.argsort(x, kind="stable")
    return Points(x[order]), weight[order]


def _distribution(mixture: ScoreMixture, theta: Floats, points: Points) -> Floats:
    """P(score <= x) in the mixture, (n, D)."""
    one, zero = mixture.survival(points.x, theta)
    share = expit(theta[:, -1])
    return 1 - share * one - (1 - share) * zero


def smooth_test(mixture: ScoreMixture, mode: Floats, data: ScoreData) -> float:
    """P-value of Neyman's smooth test of all scores against the mixture with fitted parameters.

    The means of the first Legendre polynomials h of F(x) have covariance (I - B J^-1 B') / n:
    fitting takes up what of h moves with the parameters, B = E[h d log f / d theta], and J is the
    information about them in an item, of its label where that is known, and of the prior.
    Expectations are under the model: estimates from the sample make such tests object too often.
    Source: Rayner, Thas, Best (2009), Smooth Tests of Goodness of Fit, chapters 4 and 6.
    """
    points, weight = _together(data)
    n = weight.sum() ** 2 / (weight**2).sum()
    order = int(min(_ORDER, n // 25))
    if order < 1:
        return 1.0
    u = np.clip(_distribution(mixture, mode[None], points)[:, 0], 0, 1)
    mean = (weight / weight.sum()) @ _legendre(u, order)
    nodes = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    h = _legendre(nodes, order)
    # Scores at these quantiles of the mixture, by interpolation of its distribution.
    grid = np.concatenate([np.geomspace(1e-8, 1e-3, 64), np.linspace(1e-3, 3, 6000)[1:]])
    below = np.maximum.accumulate(_distribution(mixture, mode[None], Points(grid))[:, 0])
    at = Points(np.interp(nodes, below, grid))
    # Derivatives by the parameters: of each item's log-likelihood, and of the prior's slope.
    q = len(mode)
    ends = np.concatenate([mode + _STEP * np.eye(q), mode - _STEP * np.eye(q)])

    def item_scores(odds: float) -> Floats:
        each = mixture.item_log_likelihood(at, ends, np.full(_QUANTILES, odds))
        return (each[:, :q] - each[:, q:]) / (2 * _STEP)

    marginal, one, zero = (item_scores(odds) for odds in (0.0, np.inf, -np.inf))
    slopes = mixture.log_prior(ends)[1]
    hessian = -(slopes[:q] - slopes[q:]) / (2 * _STEP)
    values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    of_prior = (vectors * np.maximum(values, 0)) @ vectors.T
    labeled = (data.positive_weight.sum() + data.negative_weight.sum()) / data.total
    share = expit(mixture.log_odds(at, mode[None]))
    information = (1 - labeled) * marginal.T @ marginal
    information += labeled * ((one * share).T @ one + (zero * (1 - share)).T @ zero)
    information = information / _QUANTILES + of_prior / n
    cross = h.T @ marginal / _QUANTILES
    taken = cross @ np.linalg.lstsq(information, cross.T, rcond=1e-12)[0]
    values, vectors = np.linalg.eigh(np.eye(order) - (taken + taken.T) / 2)
    # What the parameters take up whole is no evidence, and must not be divided by.
    left = values > _LEAST_LEFT
    if not left.any():
        return 1.0
    statistic = n * ((vectors[:, left].T @ mean) ** 2 / values[left]).sum()
    return float(chdtrc(int(left.sum()), statistic))


def _legendre(u: Floats, order: int) -> Floats:
    """Legendre polynomials of degree 1 .. order, orthonormal on [0, 1], (n, order)."""
    columns: Floats = np.polynomial.legendre.legvander(2 * u - 1, order)[:, 1:].astype(np.float64)
    return columns * np.sqrt(2 * np.arange(1, order + 1) + 1)


def surprise_of_labels(p: Floats, labels: Ints, rng: np.random.Generator) -> float:
    """P-value of the labels (L,), each predicted from the other labels and all scores; 1 of none.

    Given draws of P(class) (L, K, D), the draws without item i's own label weigh as 1 / p of that
    label, so that its probability is a harmonic mean. What is tested is the sum of the logarithms,
    against labels drawn from these predictions.
    """
    rows, sharp = np.arange(len(labels)), np.clip(p, 1e-12, 1.0)
    weights = 1 / sharp[rows, labels]
    predicted = (sharp * weights[:, None, :]).mean(axis=2)
    predicted /= predicted.sum(axis=1, keepdims=True)
    cost = -np.log(np.maximum(predicted, 1e-12))
    surprise = cost[rows, labels].sum()
    total = np.zeros(_SIMULATIONS)
    for q, each in zip(np.cumsum(predicted, axis=1), cost, strict=True):
        drawn = np.searchsorted(q[:-1], rng.random(_SIMULATIONS), side="right")
        total += each[drawn]
    return float((1 + (total >= surprise - 1e-9).sum()) / (1 + _SIMULATIONS))
