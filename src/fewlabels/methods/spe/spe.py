"""SPE: semisupervised performance evaluation, a mixture of two densities of one score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import expit, logit

from fewlabels.checks.arguments import whole
from fewlabels.errors import UsageError, unknown
from fewlabels.kernels.arrays import Floats, Ints, UInts
from fewlabels.kernels.blocks import map_blocks
from fewlabels.kernels.importance import systematic
from fewlabels.kernels.simplex import softmax
from fewlabels.kernels.votes import has_evidence
from fewlabels.methods.base import (
    FittedLabelModel,
    LabelModel,
    refuse_more_classes,
    status_of,
    with_scores,
)
from fewlabels.methods.per_model import ScoreDraws, fit_each, is_probability, score_of
from fewlabels.methods.spe.check import Fit, check_fit, gap_in_words
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
"""Pairs that no sampler could be relied on for may have this weight together."""


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
        Draws of each importance sample.
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
        object.__setattr__(self, "families", _families(self.families))
        for name in ("components", "proposals", "n_draws"):
            whole(name, getattr(self, name))
        for name in ("prevalence_prior", "location_prior", "spread_prior"):
            pair = getattr(self, name)
            given = () if pair is None else pair
            # Only a location may be 0 or less.
            if len(given) not in (0, 2) or any(
                not np.isfinite(v) or (v <= 0 and (k or name != "location_prior"))
                for k, v in enumerate(given)
            ):
                raise UsageError(f"`{name}` must be two numbers, above 0; got {pair!r}")
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise UsageError(f"`{name}` must be one of {', '.join(choices)}; got {value!r}")

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Fit every classifier that gives probabilities or scores, by itself.

        Raises
        ------
        InputError
            If no classifier gives any, or there are more than two classes.
        """
        refuse_more_classes(predictions, "spe", "'monotone-curves' or 'tempered-ensemble'")
        return fit_each(self._fit_one, with_scores(predictions, "spe"), rng)

    def _fit_one(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """The densities of one classifier's scores."""
        salt = int(rng.integers(2**63))
        scored = ScoredItems.of(predictions, self.scale)
        every, rows, scale = scored.every, scored.rows, scored.scale
        evidence, weight, keys = scored.evidence, scored.weight, scored.keys
        no_class = lacks_a_class(evidence)
        if scale is None:
            draws = PrevalenceDraws.of(every[rows], evidence, weight, self.n_draws, rng)
            return _FittedSPE(predictions.models, draws, salt, bool(no_class.all()))
        data = scored.data(evidence)
        pairs = fit_pairs(data, self, ordered=bool(no_class.any()), rng=rng)
        found = PairDraws.of(pairs, scale, self.n_draws, rng)
        best = max(pairs, key=lambda pair: pair.weight)
        labeled = rows[np.argsort(keys, kind="stable")]
        labeled = labeled[predictions.labels[labeled] >= 0]
        odds = found.log_odds(every[labeled], np.arange(found.size))
        target = best.found.target
        fit = check_fit(
            target.mixture, best.found.modes.points[0], data, odds,
            predictions.labels[labeled], rng,
        )  # fmt: skip
        return _FittedSPE(predictions.models, found, salt, bool(no_class.all()), tuple(pairs), fit)


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
        found = ScoreScale.of(every[rows], logit=logit) if len(rows) >= _FEWEST else None
        if found is not None and not found.low < found.high:
            found = None
        evidence, keys = predictions.evidence[rows], predictions.keys[rows]
        weight = predictions.weight * predictions.information
        return ScoredItems(every, rows, evidence, weight[rows], keys, found)

    def data(self, evidence: Floats) -> ScoreData:
        """The scores on the unit interval, with this evidence (n, 2)."""
        assert self.scale is not None
        return score_data(self.scale.unit(self.every[self.rows]), evidence, self.weight, self.keys)


_CHOICES = {
    "selection": get_args(Selection),
    "scale": ("logit", "probability"),
    "truncation": get_args(Truncation),
    "sampler": ("diagonal", "full"),
}


def _families(names: Any) -> tuple[str, ...]:
    """Long names of families, each once."""
    given = (names,) if isinstance(names, str) else tuple(names)
    if not given:
        raise UsageError("`families` is empty; name at least one, such as 'normal'")
    for name in given:
        if name not in FAMILIES and name not in SHORT_NAMES:
            raise UsageError(unknown("family", name, [*FAMILIES, *SHORT_NAMES]))
    return tuple(dict.fromkeys(SHORT_NAMES.get(name, name) for name in given))


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
            value_from="draws",
            score_rates=self.draws,
            status=status_of(warnings),
            warnings=warnings,
            diagnostics=self._diagnostics(),
        )

    def _warnings(self) -> tuple[str, ...]:
        said = []
        if self.unlabeled:
            said.append(
                "assumption: no labels; the estimates rest on the densities' shapes and on the "
                "positive class having the higher scores"
            )
        if not self.pairs:
            said.append(
                "assumption: all scores are equal, or there are fewer than 3; they say nothing of "
                "the labels, and every item gets the prevalence"
            )
        if self.fit is not None and self.fit.alarming:
            scale = self.draws.scale if isinstance(self.draws, PairDraws) else None
            at = scale.score(self.fit.at) if scale is not None else np.nan
            said.append(
                "assumption: the scores do not follow the fitted densities, so intervals are "
                f"too narrow: {gap_in_words(self.fit, at)}; method 'monotone-curves' does "
                "without densities"
            )
        if sum(pair.weight for pair in self.pairs if not pair.found.trusted) > _MOST_DOUBT:
            said.append(
                "not-converged: no sampler of the densities' parameters could be relied on "
                "(importance weights with Pareto k above .7, and chains that disagree)"
            )
        return tuple(said)

    def _diagnostics(self) -> dict[str, Any]:
        out: dict[str, Any] = {"prevalence": float(expit(self.draws.logit_prevalence).mean())}
        if not self.pairs:
            return out
        best = max(self.pairs, key=lambda pair: pair.weight)
        found, fit = best.found, self.fit
        out |= {
            "families": best.name,
            "sampler": found.sampler,
            "pareto_k": found.sample.pareto_k,
            "effective_sample_size": found.sample.effective_size,
            "pairs": {pair.name: pair.facts() for pair in self.pairs},
        }
        if found.r_hat is not None:
            out["r_hat"] = found.r_hat
        if fit is not None:
            out |= {"fit_scores": fit.scores, "fit_labels": fit.labels, "distance": fit.distance}
        return out


# --- pairs of families, and draws of what turns scores into odds ------------------------------


_LEAST_WEIGHT = 0.01
_WORTH_CHAINS = 0.05
"""Pairs of less weight than this keep their importance sample, trusted or not."""

_OUT_OF_REACH = 12.0
"""Pairs whose evidence, by Laplace's approximation, is smaller by e^12 are not sampled."""


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

    def facts(self) -> dict[str, Any]:
        """What is reported of it: both criteria, and how it was sampled."""
        return {
            "log_likelihood": self.found.modes.log_likelihood,
            "log_evidence": self.found.log_evidence,
            "weight": self.weight,
            "sampler": self.found.sampler,
            "pareto_k": dict(self.found.pareto_k),
        }


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
        each, own = searched[i], np.random.default_rng(int(seeds[i, 0]))
        if each.log_evidence < height and i != likeliest:
            return each
        return importance_ladder(each.target, each.modes, settings.proposals, settings.sampler, own)

    found = list(map_blocks(sample, range(len(names))))
    weights = _weights(found, settings.selection)
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
class PairDraws(OddsDraws):
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
        prevalence = np.concatenate([theta[:, -1] for theta in thetas])[order]
        return cls(scale, mixtures, thetas, part[order], place[order], prevalence)

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
class PrevalenceDraws(OddsDraws):
    """Draws for scores that say nothing: every item has the prevalence of the draw."""

    scores: Floats
    logit_prevalence: Floats

    @classmethod
    def of(
        cls, scores: Floats, evidence: Floats, weight: Floats, size: int, rng: np.random.Generator
    ) -> PrevalenceDraws:
        """Posterior of the prevalence under a uniform prior, given evidence (n, 2), on a grid."""
        grid = (np.arange(2000) + 0.5) / 2000
        told = np.flatnonzero(has_evidence(evidence))
        first = evidence[told, 1, None] + np.log(grid)
        second = evidence[told, 0, None] + np.log1p(-grid)
        p = softmax(weight[told] @ np.logaddexp(first, second), axis=0)
        drawn = grid[systematic(p, size, rng)] + (rng.random(size) - 0.5) / len(grid)
        return cls(scores, rng.permutation(logit(drawn)))

    def log_odds(self, scores: Floats, index: Ints) -> Floats:
        """The prevalence's log-odds for every item, (n, D)."""
        return np.tile(self.logit_prevalence[index], (len(scores), 1))

    def survival(self, thresholds: Floats, index: Ints) -> tuple[Floats, Floats]:
        """Share of the scores that are at least the threshold, the same in both classes."""
        share = (self.scores >= thresholds[:, None]).mean(axis=1)
        one = np.repeat(share[:, None], len(index), axis=1)
        return one, one.copy()
