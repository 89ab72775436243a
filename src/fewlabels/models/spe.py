"""SPE: semisupervised performance evaluation, a mixture of two densities of one score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import expit

from fewlabels.errors import Status, UsageError
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.score_families import FAMILIES, SHORT_NAMES, Truncation
from fewlabels.kernels.simplex import two_classes
from fewlabels.models.base import (
    FittedLabelModel,
    LabelModel,
    check_count,
    with_probabilities,
)
from fewlabels.models.method import Method
from fewlabels.models.per_model import fit_each
from fewlabels.models.scores import is_probability, score_of, with_scores
from fewlabels.models.spe_check import Fit, check_fit, gap_in_words
from fewlabels.models.spe_classes import ManyClasses
from fewlabels.models.spe_fit import (
    OddsDraws,
    PairDraws,
    PairFit,
    PairOptions,
    PrevalenceDraws,
    Selection,
    fit_pairs,
    rates,
)
from fewlabels.models.spe_mixture import ScoreScale, lacks_a_class, score_data
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.wording import unknown

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

    With more than two classes, log-ratios of the probabilities have a normal density per class
    (`components` of them); then only `components` and `n_draws` count. See `ManyClasses`.

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
    sampler: Literal["diagonal", "full"] = "diagonal"
    proposals: int = 2000
    n_draws: int = 400

    def __post_init__(self) -> None:
        object.__setattr__(self, "families", _families(self.families))
        for name in ("components", "proposals", "n_draws"):
            check_count(name, getattr(self, name))
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise UsageError(f"`{name}` must be one of {', '.join(choices)}; got {value!r}")

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Fit every classifier that gives probabilities or scores, by itself.

        Raises
        ------
        InputError
            If no classifier gives any; with more than two classes, any probabilities.
        """
        if predictions.n_classes > 2:
            served, _ = with_probabilities(predictions, "spe")
            return fit_each(ManyClasses(self.components, self.n_draws), served, rng)
        return fit_each(_TwoDensities(self), with_scores(predictions, "spe"), rng)


_CHOICES = {
    "selection": get_args(Selection),
    "scale": ("logit", "probability"),
    "truncation": get_args(Truncation),
    "sampler": ("diagonal", "full"),
}


def _families(names: Any) -> tuple[str, ...]:
    """Long names of families, each once.

    Raises
    ------
    UsageError
        If a name is unknown, or there is none.
    """
    given = (names,) if isinstance(names, str) else tuple(names)
    if not given:
        raise UsageError("`families` is empty; name at least one, such as 'normal'")
    for name in given:
        if name not in FAMILIES and name not in SHORT_NAMES:
            raise UsageError(unknown("family", name, [*FAMILIES, *SHORT_NAMES]))
    return tuple(dict.fromkeys(SHORT_NAMES.get(name, name) for name in given))


@dataclass(frozen=True)
class _TwoDensities(LabelModel):
    """The densities of one classifier's scores."""

    settings: SPE

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        settings, salt = self.settings, int(rng.integers(2**63))
        every = score_of(predictions, 0)
        # Items of no weight are no part of the sample, and must not set its range either.
        rows = np.flatnonzero(~np.isnan(every) & (predictions.weight > 0))
        scores, evidence = every[rows], predictions.evidence[rows]
        weight, keys = predictions.weight[rows], predictions.keys[rows]
        logit = is_probability(predictions, 0) and settings.scale == "logit"
        scale = ScoreScale.of(scores, logit=logit) if len(rows) else None
        no_class = lacks_a_class(evidence)
        if scale is None or len(rows) < _FEWEST or not scale.low < scale.high:
            draws = PrevalenceDraws.of(scores, evidence, weight, settings.n_draws, rng)
            return _FittedSPE(predictions.models, draws, salt, bool(no_class.all()))
        data = score_data(scale.unit(scores), evidence, weight, keys)
        options = PairOptions(
            settings.families, settings.components, settings.truncation, settings.selection,
            settings.sampler, settings.proposals, settings.n_draws,
        )  # fmt: skip
        pairs = fit_pairs(data, options, ordered=bool(no_class.any()), rng=rng)
        found = PairDraws.of(pairs, scale, settings.n_draws, rng)
        best = max(pairs, key=lambda pair: pair.weight)
        labeled = rows[np.argsort(keys, kind="stable")]
        labeled = labeled[predictions.labels[labeled] >= 0]
        odds = found.log_odds(every[labeled], np.arange(found.size))
        target = best.found.target
        fit = check_fit(
            target.mixture, best.found.modes.points[0], data, odds,
            predictions.labels[labeled].astype(float), rng,
        )  # fmt: skip
        return _FittedSPE(predictions.models, found, salt, bool(no_class.all()), tuple(pairs), fit)


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
        parameters = _ScoreDraws(self.draws, score_of(served, 0), predictions.evidence)
        status, warnings = self._verdict()
        return LabelPosterior(
            None,
            parameters,
            predictions.keys,
            salt=self.salt,
            value_from="draws",
            score_rates=_Rates(self.draws),
            status=status,
            warnings=warnings,
            diagnostics=self._diagnostics(),
        )

    def _verdict(self) -> tuple[Status, tuple[str, ...]]:
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
                "assumption: the scores do not follow the fitted densities, so that intervals "
                f"promise too much: {gap_in_words(self.fit, at)}; method 'monotone-curves' does "
                "without densities"
            )
        if sum(pair.weight for pair in self.pairs if not pair.found.trusted) > _MOST_DOUBT:
            said.append(
                "not-converged: no sampler of the densities' parameters could be relied on "
                "(importance weights with Pareto k above .7, and chains that disagree)"
            )
            return Status.NOT_CONVERGED, tuple(said)
        return (Status.ASSUMPTION if said else Status.OK), tuple(said)

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
            "pairs": {pair.name: _facts(pair) for pair in self.pairs},
        }
        if found.r_hat is not None:
            out["r_hat"] = found.r_hat
        if fit is not None:
            out |= {"fit_scores": fit.scores, "fit_labels": fit.labels, "distance": fit.distance}
        return out


def _facts(pair: PairFit) -> dict[str, Any]:
    """What is reported of one pair: both criteria, and how it was sampled."""
    return {
        "log_likelihood": pair.found.modes.log_likelihood,
        "log_evidence": pair.found.log_evidence,
        "weight": pair.weight,
        "sampler": pair.found.sampler,
        "pareto_k": dict(pair.found.pareto_k),
    }


@dataclass(frozen=True, eq=False)
class _Rates:
    draws: OddsDraws

    def rates(self, thresholds: Floats, index: Ints) -> tuple[Floats, Floats, Floats]:
        """Prevalence (D,), recall (T, D) and false-positive rate (T, D) of parameter draws."""
        return rates(self.draws, thresholds, index)


@dataclass(frozen=True, eq=False)
class _ScoreDraws:
    draws: OddsDraws
    scores: Floats
    evidence: Floats

    @property
    def size(self) -> int:
        return self.draws.size

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label | s, evidence), (n, 2, D); an item without a score has the prevalence."""
        scores, evidence = self.scores[rows], self.evidence[rows]
        missing = np.isnan(scores)
        z = np.empty((len(scores), len(index)))
        z[~missing] = self.draws.log_odds(scores[~missing], index)
        z[missing] = self.draws.logit_prevalence[index]
        # A known label is evidence without end, whose probability is exactly 0 or 1.
        z += (evidence[:, 1] - evidence[:, 0])[:, None]
        return two_classes(expit(z, out=z))


METHOD = Method(
    "spe",
    SPE,
    "a mixture of two densities of each classifier's score (the SPE paper)",
    "The scores of one classifier are a mixture of two densities, one per class. All scores and "
    "the labels there are say what the densities and the prevalence may be; each draw of them "
    "gives every item a probability, and every threshold a recall and a precision. Every "
    "classifier is judged by its own densities, without the others.",
    (
        "the scores of each class follow one of the families of densities",
        "labeled items are a random sample of all items",
        "without labels of both classes: positive items have the higher scores",
    ),
    (
        "the scores of a class are of another shape: intervals are then too narrow, on real data "
        "often by half (monotone-curves does without densities)",
        "labels were picked by the score",
    ),
    "Welinder, Welling, Perona, Semisupervised Classifier Evaluation and Recalibration (2013)",
    diagnostics={
        "prevalence": "share of the positive class, by the model",
        "families": "families of the positive and of the negative class with the most weight",
        "sampler": "how their parameters were drawn: diagonal (the paper), full, mixture, hmc; "
        "laplace: not at all, as the pair is out of reach",
        "pareto_k": "tail of the importance weights (above .7: not to be relied on)",
        "effective_sample_size": "how many independent draws the importance sample is worth",
        "r_hat": "disagreement of the Markov chains (1 = none)",
        "fit_scores": "p-value of the scores against the fitted densities",
        "fit_labels": "p-value of the labels against the fitted densities",
        "distance": "largest gap between the scores' distribution function and the model's",
        "pairs": "likelihood, evidence and weight of every pair of families",
    },
    learns_from="scores",
    chosen_by_score="only where its densities fit: all items are in the likelihood, labeled or "
    "not, so picking by the score does a right model no harm, and makes a wrong one worse",
    exempt={
        "classes": "densities end at the smallest score, so that scores turned round are another "
        "model",
    },
)
