"""Averaged curves: monotone curves and the densities of SPE as two beliefs about one classifier."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import expit, ndtr

from fewlabels.checks.arguments import whole
from fewlabels.errors import UsageError
from fewlabels.kernels.arrays import Floats
from fewlabels.methods.curves.monotone_curves import Kind, MonotoneCurves
from fewlabels.methods.curves.ordered_rates import ScoreCoordinates, ScoreScale
from fewlabels.methods.spe.families import Points
from fewlabels.methods.spe.mixture import ScoreScale as UnitScale
from fewlabels.methods.spe.spe import SPE, PairFit, ScoredItems, fit_pairs
from fewlabels.predictions import Predictions

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
            _Densities.of(pair, self.densities, scored.scale, scale)
            for pair in pairs
            if pair.weight > 0
        ]


@dataclass(frozen=True, eq=False)
class _Densities:
    """A pair of densities as a kind of curve: parameters theta, given the scores alone."""

    pair: PairFit
    name: str
    weight: float
    unit: UnitScale
    scale: ScoreScale

    @staticmethod
    def of(pair: PairFit, share: float, unit: UnitScale, scale: ScoreScale) -> _Densities:
        return _Densities(pair, f"densities {pair.name}", share * pair.weight, unit, scale)

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
        # Ranks lead back to scores; standardised scores are cut off.
        scale = self.kind.scale
        margins = np.interp(ndtr(places.z), scale.ranks, scale.knots)
        points = Points(self.kind.unit.unit_of_margins(margins))
        z = self.kind.pair.estimate.target.mixture.log_odds(points, self.theta)
        np.clip(z, -_MOST_LOG_ODDS, _MOST_LOG_ODDS, out=z)
        return expit(z), expit(-z)
