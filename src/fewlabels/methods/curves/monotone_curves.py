"""Monotone curves: P(label | score) from the labels alone, without densities of the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from fewlabels.errors import Status, UsageError
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.simplex import logsumexp, softmax
from fewlabels.methods.base import FittedLabelModel, LabelModel, check_count
from fewlabels.methods.curves import smc
from fewlabels.methods.curves.ordered_rates import (
    PARAMETERS,
    Flat,
    Places,
    ScoreScale,
    Seen,
    Step,
    pool,
    shape_statistics,
)
from fewlabels.methods.curves.prior import (
    DOUBTED,
    FLAT_WEIGHT,
    FREE_WEIGHT,
    PLAIN_WEIGHT,
    WEAK_WEIGHT,
    Component,
    learned,
    plain,
    weak,
)
from fewlabels.methods.per_model import fit_each
from fewlabels.methods.scores import is_probability, margin, score_of, with_scores
from fewlabels.posterior import LabelPosterior, mean_of_draws
from fewlabels.predictions import Predictions

PRIOR_SHARE = 0.05
"""Share of the draws that keep the prior's weights of the components, whatever the evidence."""

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
        check_count("particles", self.particles)
        check_count("n_draws", self.n_draws)
        for name, value, choices in (
            ("prior", self.prior, ("learned", "plain")),
            ("zero", self.zero, ("auto", "natural", "unknown")),
        ):
            if value not in choices:
                raise UsageError(f"`{name}` must be one of {', '.join(choices)}; got {value!r}")

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Draw every classifier's curves.

        Raises
        ------
        InputError
            If no classifier gives probabilities or scores.
        """
        return fit_each(_OneClassifier(self), with_scores(predictions, "monotone-curves"), rng)


@dataclass(frozen=True)
class _OneClassifier(LabelModel):
    settings: MonotoneCurves

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        seed, salt = int(rng.integers(2**63)), int(rng.integers(2**63))
        evidence = predictions.evidence
        classes = [1] if predictions.n_classes == 2 else range(predictions.n_classes)
        # Every class draws alike, so that the answer does not depend on how classes are numbered.
        curves = tuple(
            _fit_class(self.settings, predictions, k, _against_rest(evidence, k), seed)
            for k in classes
        )
        known = bool((evidence != 0).any())
        return _FittedCurves(predictions.models, curves, known, salt)


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


class _Drawn(NamedTuple):
    """Draws of curves of one kind."""

    component: Component
    curve: Step | Flat
    weight: float
    cloud: smc.Cloud


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

    @cached_property
    def table(self) -> tuple[Floats, Floats]:
        """P(class) and P(rest) at the knots of the scale, each (G, D).

        Up to about 5,000 distinct scores each one is a knot; between knots curves are taken as
        straight lines.
        """
        places = self.scale.places(self.scale.knots)
        found = [drawn.curve.probabilities(places) for drawn in self.kinds]
        one, rest = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
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
            found = values[below[:, None], index]
            above = values[below[between, None] + 1, index]
            found[between] += share * (above - found[between])
            found[missing] = shared[index]
            out.append(found)
        return out[0], out[1]

    def mean(self, margins: Floats) -> Floats:
        """Mean over the draws of P(class) of margins (n,), NaN where missing."""
        at_knots = self.table[0].mean(axis=1)
        found = np.interp(margins, self.scale.knots, at_knots)
        return np.where(np.isnan(margins), self.shares[0].mean(), found)

    @cached_property
    def shares(self) -> tuple[Floats, Floats]:
        """Share of the class and of the rest among the items fitted to, per draw (D,).

        They stand in where an item has no score.
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
    seen = pool(scale.places(margins[there]), evidence[there])
    rng = np.random.default_rng(seed)
    kinds = _kinds(settings, scale, margins[there], probability=probability)
    clouds = [_sample(settings, kind, zero, seen, rng) for kind, zero in kinds]
    prior = np.array([kind.weight for kind, _ in kinds])
    evidences = np.array([cloud.log_evidence for cloud in clouds])
    weights = (1 - PRIOR_SHARE) * softmax(np.log(prior) + evidences, axis=0) + PRIOR_SHARE * prior
    counts = _apportion(weights, settings.n_draws, rng)
    drawn = tuple(
        _Drawn(kind, _curve(kind, cloud.points[_spread(count, rng, len(cloud.points))], zero),
               float(weight), cloud)
        for (kind, zero), cloud, count, weight in zip(kinds, clouds, counts, weights, strict=True)
    )  # fmt: skip
    return _ClassCurves(k, scale, drawn, rng.permutation(settings.n_draws))


def _kinds(
    settings: MonotoneCurves, scale: ScoreScale, margins: Floats, *, probability: bool
) -> list[tuple[Component, Places | None]]:
    """The kinds of curve, with where each takes zero to be if anywhere; weights sum to 1."""
    flat = Component("flat", FLAT_WEIGHT, np.zeros(1), np.eye(1))
    if scale.sd == 0:
        return [(flat._replace(weight=1.0), scale.zero)]
    belief = _belief_in_zero(settings, scale)
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


def _belief_in_zero(settings: MonotoneCurves, scale: ScoreScale) -> float:
    if settings.zero != "auto":
        return float(settings.zero == "natural")
    if not scale.knots[0] < 0 < scale.knots[-1]:
        return 0.0
    return 1.0 if settings.prior == "plain" else 1 - FREE_WEIGHT


def _sample(
    settings: MonotoneCurves,
    kind: Component,
    zero: Places | None,
    seen: Seen,
    rng: np.random.Generator,
) -> smc.Cloud:
    return smc.sample(
        lambda points: seen.log_likelihood(_curve(kind, points, zero)),
        kind.root.shape[1],
        rng,
        particles=settings.particles,
    )


def _curve(kind: Component, points: Floats, zero: Places | None) -> Step | Flat:
    u = kind.mean + points @ kind.root.T
    return Step.of(u, zero) if u.shape[1] == len(PARAMETERS) else Flat.of(u)


def _apportion(weights: Floats, size: int, rng: np.random.Generator) -> Ints:
    """How many of `size` draws each weight gets, as nearly as whole numbers allow."""
    places = (np.arange(size) + rng.random()) / size
    chosen = np.searchsorted(np.cumsum(weights) / weights.sum(), places)
    return np.bincount(np.minimum(chosen, len(weights) - 1), minlength=len(weights))


def _spread(count: int, rng: np.random.Generator, size: int) -> Ints:
    """`count` of the particles; each comes up equally often as far as that goes."""
    order = rng.permutation(size)
    return order[np.arange(count) % size]


@dataclass(frozen=True, eq=False)
class _FittedCurves(FittedLabelModel):
    models: tuple[str, ...]
    curves: tuple[_ClassCurves, ...]
    informed: bool
    salt: int

    def posterior(self, predictions: Predictions) -> LabelPosterior:
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
            status=self._status(),
            warnings=self._warnings(),
            diagnostics=self._diagnostics(),
        )

    @property
    def _stuck(self) -> bool:
        return any(
            drawn.cloud.acceptance < _FEW_MOVES and drawn.weight > PRIOR_SHARE
            for curve in self.curves
            for drawn in curve.kinds
        )

    def _status(self) -> Status:
        if self._stuck:
            return Status.NOT_CONVERGED
        return Status.OK if self.informed else Status.ASSUMPTION

    def _warnings(self) -> tuple[str, ...]:
        said = []
        if not self.informed:
            said.append(
                "assumption: no labels; the curve is the one that classifiers with such scores had "
                "on other data sets, which is little more than a guess"
            )
        if self._stuck:
            said.append("not-converged: the sampler of the curves hardly moves; use more particles")
        if any(curve.scale.sd == 0 for curve in self.curves):
            said.append("all scores are equal, so they say nothing of the label")
        elif self.informed and any(_flat_weight(curve) > _MOSTLY for curve in self.curves):
            said.append(
                "assumption: by the labels, the scores hardly tell the classes apart (or in "
                "reverse); check that larger means more positive"
            )
        return tuple(said)

    def _diagnostics(self) -> dict[str, Any]:
        single = len(self.curves) == 1
        return {
            "curve_weights": _first_or_all(
                [{d.component.name: round(d.weight, 4) for d in c.kinds} for c in self.curves],
                single,
            ),
            "log_evidence": _first_or_all([_log_evidence(c) for c in self.curves], single),
            "stages": max(d.cloud.stages for c in self.curves for d in c.kinds),
            "acceptance": min(d.cloud.acceptance for c in self.curves for d in c.kinds),
        }


def _first_or_all(values: Sequence[Any], single: bool) -> Any:
    return values[0] if single else list(values)


def _flat_weight(curve: _ClassCurves) -> float:
    return sum(d.weight for d in curve.kinds if isinstance(d.curve, Flat))


def _log_evidence(curve: _ClassCurves) -> float:
    terms = [np.log(d.component.weight) + d.cloud.log_evidence for d in curve.kinds]
    return float(np.logaddexp.reduce(terms))


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
        informed = np.flatnonzero((evidence != 0).any(axis=1))
        if len(informed):
            known = evidence[informed]
            out[informed] *= np.exp(known - known.max(axis=1, keepdims=True))[:, :, None]
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
        rows = np.flatnonzero((self.evidence != 0).any(axis=1))
        informed = _CurveDraws(self.curves, self.margins[rows], self.evidence[rows])
        out[rows] = mean_of_draws(informed, len(rows))
        return out
