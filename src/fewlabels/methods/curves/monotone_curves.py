"""Monotone curves: P(label | score) from the labels alone, or averaged with densities of scores.

`MonotoneCurves` needs no density. `AveragedCurves` takes those of SPE for a second belief, and the
labels decide between the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from scipy.special import expit, ndtr

from fewlabels.checks.arguments import chosen_from, whole
from fewlabels.errors import UsageError
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.importance import Cloud, sequential_monte_carlo, standard_normal, systematic
from fewlabels.kernels.simplex import logsumexp, softmax
from fewlabels.kernels.votes import has_evidence
from fewlabels.methods.base import FittedLabelModel, LabelModel, status_of, with_scores
from fewlabels.methods.curves.ordered_rates import (
    DOUBTED,
    FLAT_WEIGHT,
    FREE_WEIGHT,
    PARAMETERS,
    PLAIN_WEIGHT,
    WEAK_WEIGHT,
    Component,
    Curve,
    Flat,
    ScoreCoordinates,
    ScoreScale,
    Step,
    learned,
    plain,
    pool,
    shape_statistics,
    weak,
)
from fewlabels.methods.group_curves import with_group_curves
from fewlabels.methods.per_model import fit_each, is_probability, margin, score_of
from fewlabels.posterior import LabelPosterior, mean_of_draws
from fewlabels.predictions import Predictions

if TYPE_CHECKING:  # slow to load, and the monotone curves do without
    from fewlabels.methods.spe.mixture import ScoreScale as UnitScale
    from fewlabels.methods.spe.spe import PairFit

PRIOR_SHARE = 0.05
"""Share of the draws with the components' prior weights, whatever the evidence."""

_FEW_MOVES = 0.02
_MOSTLY = 0.5


@dataclass(frozen=True)
class MonotoneCurves(LabelModel):
    """P(y=1|s) rises with the score: curves of several kinds, averaged by their evidence.

    A curve is a logistic step with a slope above and one below its centre and with lapses at both
    ends, on the standardised score mixed with the normal quantile of its rank; or flat. Draws of
    its parameters are taken by sequential Monte Carlo under priors that were learned from the
    classifiers of many data sets. Only labeled items inform the curves; unlabeled ones say where
    scores lie. With K > 2 classes every class has a curve against the rest, on the logit of its
    probability, and draws are normalised over the classes.

    Parameters
    ----------
    prior
        "learned", or "plain": line, kink and lapse under unit normal priors.
    zero
        Whether the score's natural zero (margin 0, probability 1/2) says where the step is:
        "natural", "unknown", or "auto", which doubts it a little where scores lie on both sides
        of it, and does not believe it elsewhere.
    particles
        Particles per kind of curve.
    n_draws
        Draws of curves.
    """

    prior: Literal["learned", "plain"] = "learned"
    zero: Literal["auto", "natural", "unknown"] = "auto"
    particles: int = 500
    n_draws: int = 400

    def __post_init__(self) -> None:
        whole("particles", self.particles)
        whole("n_draws", self.n_draws)
        chosen_from("prior", self.prior, ("learned", "plain"))
        chosen_from("zero", self.zero, ("auto", "natural", "unknown"))

    @property
    def grouped(self) -> bool:
        """Yes: `methods.group_curves`."""
        return True

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Draw every classifier's curves."""
        return fit_each(self._fit_one, with_scores(predictions, self._name), rng)

    _name: ClassVar[str] = "monotone-curves"

    def other_kinds(
        self, predictions: Predictions, scale: ScoreScale, rng: np.random.Generator
    ) -> list[Kind]:
        """Other kinds of curve than monotone ones, for two classes; these share what they leave."""
        return []

    def _fit_one(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """The curves of one classifier, and what groups have of their own."""
        seed, salt = int(rng.integers(2**63)), int(rng.integers(2**63))
        evidence = predictions.evidence
        classes = [1] if predictions.n_classes == 2 else range(predictions.n_classes)
        # Every class draws alike, so that the answer does not depend on how classes are numbered.
        curves = tuple(
            _fit_class(self, predictions, k, _against_rest(evidence, k), seed) for k in classes
        )
        informed = bool((evidence != 0).any())
        fitted = _FittedCurves(predictions.models, curves, informed, salt)
        return with_group_curves(fitted, predictions, rng)


def _against_rest(evidence: Floats, k: int) -> Floats:
    """Evidence of class k and of the other classes together, (n, 2)."""
    rest = np.delete(evidence, k, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        others = np.where(
            np.isneginf(rest).all(axis=1), -np.inf, logsumexp(rest) - np.log(rest.shape[1])
        )
    both = np.column_stack([others, evidence[:, k]])
    # A class known to be another: what is known of the rest is certain.
    both[np.isneginf(evidence[:, k]), 0] = 0.0
    return both


class Kind(Protocol):
    """A kind of curve, and the prior of its parameters."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def weight(self) -> float:
        """Its prior weight among the kinds."""

    def start(self, size: int, rng: np.random.Generator) -> Floats:
        """Draws of the parameters from their prior, (size, p)."""

    def log_prior(self, points: Floats) -> Floats:
        """Log prior density of parameters (D, p), but for a constant."""

    def curve(self, points: Floats) -> Curve:
        """The curves of parameters (D, p)."""


@dataclass(frozen=True)
class _Shape:
    """Steps or flat curves, with where they take the score's zero to be if anywhere."""

    component: Component
    zero: ScoreCoordinates | None
    share: float

    @property
    def name(self) -> str:
        return self.component.name

    @property
    def weight(self) -> float:
        return self.share * self.component.weight

    def start(self, size: int, rng: np.random.Generator) -> Floats:
        return rng.standard_normal((size, self.component.root.shape[1]))

    def log_prior(self, points: Floats) -> Floats:
        return standard_normal(points)

    def curve(self, points: Floats) -> Step | Flat:
        u = self.component.mean + points @ self.component.root.T
        return Step.of(u, self.zero) if u.shape[1] == len(PARAMETERS) else Flat.of(u)


class _Drawn(NamedTuple):
    """Draws of curves of one kind."""

    kind: Kind
    curve: Curve
    weight: float
    cloud: Cloud


@dataclass(frozen=True, eq=False)
class _ClassCurves:
    """Curves of one class against the rest."""

    k: int
    scale: ScoreScale
    kinds: tuple[_Drawn, ...]
    order: Ints

    @property
    def size(self) -> int:
        return len(self.order)

    @property
    def log_evidence(self) -> float:
        """Log of the sum over kinds of prior weight times evidence: P(labels | scores)."""
        parts = [np.log(d.kind.weight) + d.cloud.log_evidence for d in self.kinds]
        return float(np.logaddexp.reduce(parts))

    @property
    def flat_weight(self) -> float:
        """Weight of curves that are the same whatever the score, among those that only rise."""
        rising = [drawn for drawn in self.kinds if isinstance(drawn.curve, Flat | Step)]
        flat = sum(drawn.weight for drawn in rising if isinstance(drawn.curve, Flat))
        return flat / sum(drawn.weight for drawn in rising)

    @cached_property
    def table(self) -> tuple[Floats, Floats]:
        """P(class) and P(rest) at the knots of the scale, each (G, D).

        Up to about 5,000 distinct scores each one is a knot; between knots curves are taken as
        straight lines.
        """
        places = self.scale.places(self.scale.knots)
        both = [drawn.curve.probabilities(places) for drawn in self.kinds]
        one, rest = (np.concatenate(parts, axis=1) for parts in zip(*both, strict=True))
        return one[:, self.order], rest[:, self.order]

    def probabilities(self, margins: Floats, index: Ints) -> tuple[Floats, Floats]:
        """P(class) and P(rest) of margins (n,), NaN where missing, each (n, D)."""
        knots = self.scale.knots
        missing = np.isnan(margins)
        place = np.interp(np.where(missing, knots[0], margins), knots, np.arange(len(knots)))
        below = place.astype(np.int64)
        between = np.flatnonzero(place != below)
        share = (place - below)[between, None]
        out = []
        for values, shared in zip(self.table, self.shares, strict=True):
            p = values[below[:, None], index]
            above = values[below[between, None] + 1, index]
            p[between] += share * (above - p[between])
            p[missing] = shared[index]
            out.append(p)
        return out[0], out[1]

    def mean(self, margins: Floats) -> Floats:
        """Mean over the draws of P(class) of margins (n,), NaN where missing."""
        at_knots = self.table[0].mean(axis=1)
        p = np.interp(margins, self.scale.knots, at_knots)
        return np.where(np.isnan(margins), self.shares[0].mean(), p)

    @cached_property
    def shares(self) -> tuple[Floats, Floats]:
        """Shares of the class and of the rest among the fitted items, per draw (D,).

        They replace P(class) of items without a score.
        """
        middles = (self.scale.ranks[1:] + self.scale.ranks[:-1]) / 2
        weight = np.diff(np.concatenate([[0.0], middles, [1.0]]))
        one, rest = (weight @ values for values in self.table)
        return one, rest


def _fit_class(
    settings: MonotoneCurves, predictions: Predictions, k: int, evidence: Floats, seed: int
) -> _ClassCurves:
    probability = is_probability(predictions, 0)
    margins = margin(score_of(predictions, 0, k), probability=probability)
    there = ~np.isnan(margins)
    scale = ScoreScale.of(margins[there])
    seen = pool(scale.places(margins[there]), evidence[there], predictions.information[there])
    rng = np.random.default_rng(seed)
    more = settings.other_kinds(predictions, scale, rng) if predictions.n_classes == 2 else []
    rest = 1 - sum(kind.weight for kind in more)
    shapes = _kinds(settings, scale, margins[there], probability=probability)
    kinds: list[Kind] = [_Shape(kind, zero, rest) for kind, zero in shapes]
    kinds += more
    clouds = [
        sequential_monte_carlo(
            lambda points, kind=kind: seen.log_likelihood(kind.curve(points)),  # type: ignore[misc]
            kind.start(settings.particles, rng),
            rng,
            log_prior=kind.log_prior,
        )
        for kind in kinds
    ]
    prior = np.array([kind.weight for kind in kinds])
    evidences = np.array([cloud.log_evidence for cloud in clouds])
    weights = (1 - PRIOR_SHARE) * softmax(np.log(prior) + evidences, axis=0) + PRIOR_SHARE * prior
    counts = np.bincount(systematic(weights, settings.n_draws, rng), minlength=len(weights))
    drawn = []
    for kind, cloud, count, weight in zip(kinds, clouds, counts, weights, strict=True):
        # Each particle comes up equally often as far as that goes.
        order = rng.permutation(len(cloud.points))
        points = cloud.points[order[np.arange(count) % len(order)]]
        drawn.append(_Drawn(kind, kind.curve(points), float(weight), cloud))
    return _ClassCurves(k, scale, tuple(drawn), rng.permutation(settings.n_draws))


def _kinds(
    settings: MonotoneCurves, scale: ScoreScale, margins: Floats, *, probability: bool
) -> list[tuple[Component, ScoreCoordinates | None]]:
    """The kinds of curve, with where each takes zero to be if anywhere; weights sum to 1."""
    flat = Component("flat", FLAT_WEIGHT, np.zeros(1), np.eye(1))
    if scale.sd == 0:
        return [(flat._replace(weight=1.0), scale.zero)]
    belief = float(settings.zero == "natural")
    if settings.zero == "auto" and scale.knots[0] < 0 < scale.knots[-1]:
        belief = 1.0 if settings.prior == "plain" else 1 - FREE_WEIGHT
    likely = scale.zero if belief > 0 else None
    if settings.prior == "plain":
        return [(kind, likely) for kind in plain(1 - FLAT_WEIGHT)] + [(flat, scale.zero)]
    rest = 1 - FLAT_WEIGHT - WEAK_WEIGHT
    by_hand = PLAIN_WEIGHT * max(belief, 1 - belief)
    out = [(kind, likely) for kind in plain(by_hand * rest, DOUBTED)]
    statistics = shape_statistics(margins, scale)
    for zero, place in ((True, scale.zero), (False, None)):
        share = (belief if zero else 1 - belief) - (by_hand if place is likely else 0.0)
        if share > 0:
            kinds = learned(statistics, share * rest, probability=probability, zero=zero)
            out += [(kind, place) for kind in kinds]
    return [*out, (weak(WEAK_WEIGHT), None), (flat, scale.zero)]


@dataclass(frozen=True, eq=False)
class _FittedCurves(FittedLabelModel):
    """Curves of one classifier, a set for each class that has one."""

    models: tuple[str, ...]
    curves: tuple[_ClassCurves, ...]
    informed: bool
    salt: int

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """P(label) of any items by their scores."""
        served = predictions.select_models(self.models)
        probability = is_probability(served, 0)
        margins = [
            margin(score_of(served, 0, curve.k), probability=probability) for curve in self.curves
        ]
        parameters = _CurveDraws(self.curves, np.stack(margins, axis=1), predictions.evidence)
        return LabelPosterior(
            parameters.mean,
            parameters,
            predictions.keys,
            salt=self.salt,
            status=status_of(self._warnings()),
            warnings=self._warnings(),
            diagnostics=self._diagnostics(),
        )

    def _warnings(self) -> tuple[str, ...]:
        warnings = []
        if not self.informed:
            warnings.append(
                "assumption: no labels; the curve is the one that classifiers with such scores had "
                "on other data sets, which is little more than a guess"
            )
        drawn = [drawn for curve in self.curves for drawn in curve.kinds]
        if any(d.cloud.acceptance < _FEW_MOVES and d.weight > PRIOR_SHARE for d in drawn):
            warnings.append(
                "not-converged: the sampler of the curves hardly moves; use more particles"
            )
        if any(curve.scale.sd == 0 for curve in self.curves):
            warnings.append("all scores are equal, so they say nothing of the label")
        elif self.informed and any(curve.flat_weight > _MOSTLY for curve in self.curves):
            warnings.append(
                "assumption: by the labels, the scores hardly tell the classes apart (or in "
                "reverse); check that larger means more positive"
            )
        return tuple(warnings)

    def _diagnostics(self) -> dict[str, Any]:
        weights = [{d.kind.name: round(d.weight, 4) for d in c.kinds} for c in self.curves]
        evidence = [curve.log_evidence for curve in self.curves]
        one = len(self.curves) == 1
        drawn = [d for c in self.curves for d in c.kinds]
        return {
            "curve_weights": weights[0] if one else weights,
            "log_evidence": evidence[0] if one else evidence,
            "stages": max(d.cloud.stages for d in drawn),
            "acceptance": min(d.cloud.acceptance for d in drawn),
        }


@dataclass(frozen=True, eq=False)
class _CurveDraws:
    """P(label | draw) of items: curves at their margins (n, C), with what is known of each item."""

    curves: tuple[_ClassCurves, ...]
    margins: Floats
    evidence: Floats

    @property
    def size(self) -> int:
        return self.curves[0].size

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        margins, evidence = self.margins[rows], self.evidence[rows]
        out = np.empty((len(margins), evidence.shape[1], len(index)))
        for column, curve in enumerate(self.curves):
            one, rest = curve.probabilities(margins[:, column], index)
            out[:, curve.k] = one
            if len(self.curves) == 1:
                out[:, 1 - curve.k] = rest
        informed = np.flatnonzero(has_evidence(evidence))
        if len(informed):
            logs = evidence[informed]
            out[informed] *= np.exp(logs - logs.max(axis=1, keepdims=True))[:, :, None]
        if len(self.curves) > 1 or len(informed):
            out /= out.sum(axis=1, keepdims=True)
        return out

    def mean(self) -> Floats:
        if len(self.curves) > 1:
            return mean_of_draws(self, len(self.evidence))
        # Straight lines between knots: their mean is the line between the means.
        out = np.empty(self.evidence.shape)
        curve = self.curves[0]
        out[:, curve.k] = curve.mean(self.margins[:, 0])
        out[:, 1 - curve.k] = 1 - out[:, curve.k]
        rows = np.flatnonzero(has_evidence(self.evidence))
        informed = _CurveDraws(self.curves, self.margins[rows], self.evidence[rows])
        out[rows] = mean_of_draws(informed, len(rows))
        return out


# --- densities of the scores beside the curves --------------------------------------------------


_MOST_LOG_ODDS = 700.0
"""e^-700 is about the smallest number there is."""


@dataclass(frozen=True)
class AveragedCurves(MonotoneCurves):
    """Monotone curves, or two densities of the scores: what the labels favour, averaged.

    A pair of densities p_1, p_0 (SPE) is a kind of curve beside the monotone ones:

        P(y=1 | s, theta) = pi p_1(s) / (pi p_1(s) + (1 - pi) p_0(s)).

    Its prior is what all scores, without a label, say of theta, positive items having the higher
    mean score: a narrow one. The evidence of either belief is then of the same thing, the labels
    given the scores. With more than two classes there are monotone curves alone.

    Parameters
    ----------
    prior, zero, particles, n_draws
        As in `MonotoneCurves`.
    densities
        Prior probability of the densities together, below 1.
    scores_worth
        As many scores as all of them count at most in that prior: no density is quite right, and
        from 10^6 scores a wrong one would be certain (a coarsened posterior; Miller, Dunson 2019).
    """

    densities: float = 0.5
    scores_worth: int = 300

    _name: ClassVar[str] = "averaged-curves"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("scores_worth", self.scores_worth)
        if not 0 <= self.densities < 1:
            raise UsageError(f"`densities` must be at least 0 and below 1; got {self.densities!r}")

    def other_kinds(
        self, predictions: Predictions, scale: ScoreScale, rng: np.random.Generator
    ) -> list[Kind]:
        """Pairs of families, by the evidence of the scores alone."""
        from fewlabels.methods.spe.spe import SPE, ScoredItems, fit_pairs

        if self.densities == 0:
            return []
        settings = SPE(selection="average")
        scored = ScoredItems.of(predictions, settings.scale)
        if scored.scale is None:
            return []
        worth = min(1.0, self.scores_worth / len(scored.rows))
        # Rounded: samplers would take the unit of the weights, in their last digits, elsewhere.
        weight = worth * np.round(scored.weight / scored.weight.mean(), 9)
        unlabeled = replace(scored, weight=weight).data(np.zeros_like(scored.evidence))
        pairs = fit_pairs(unlabeled, settings, ordered=True, rng=rng)
        return [
            _Densities(pair, self.densities, scored.scale, scale)
            for pair in pairs
            if pair.weight > 0
        ]


@dataclass(frozen=True, eq=False)
class _Densities:
    """A pair of densities as a kind of curve: parameters theta, given the scores alone."""

    pair: PairFit
    share: float
    unit: UnitScale
    scale: ScoreScale

    @property
    def name(self) -> str:
        return f"densities {self.pair.name}"

    @property
    def weight(self) -> float:
        return self.share * self.pair.weight

    def start(self, size: int, rng: np.random.Generator) -> Floats:
        return self.pair.estimate.draw(size, rng)

    def log_prior(self, points: Floats) -> Floats:
        return self.pair.estimate.target.log_density(points)

    def curve(self, points: Floats) -> _DensityCurve:
        return _DensityCurve(self, points)


@dataclass(frozen=True, eq=False)
class _DensityCurve:
    """P(y=1 | place) by Bayes' rule from densities with parameters theta (D, q)."""

    kind: _Densities
    theta: Floats

    def probabilities(self, places: ScoreCoordinates) -> tuple[Floats, Floats]:
        """P(y=1) and P(y=0), each (n, D)."""
        from fewlabels.methods.spe.families import Points

        # Ranks lead back to scores; standardised scores are cut off.
        scale = self.kind.scale
        margins = np.interp(ndtr(places.z), scale.ranks, scale.knots)
        points = Points(self.kind.unit.unit_of_margins(margins))
        z = self.kind.pair.estimate.target.mixture.log_odds(points, self.theta)
        np.clip(z, -_MOST_LOG_ODDS, _MOST_LOG_ODDS, out=z)
        return expit(z), expit(-z)
