"""Averaged curves: monotone curves and densities of the scores as two beliefs that labels weigh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit, logit

from fewlabels.checks.arguments import whole
from fewlabels.errors import UsageError
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.methods.base import FittedLabelModel, LabelModel, status_of, with_scores
from fewlabels.methods.curves.monotone_curves import FittedCurves, MonotoneCurves
from fewlabels.methods.per_model import ScoreDraws, fit_each
from fewlabels.methods.scores import score_of
from fewlabels.methods.spe.spe import SPE, FittedDensities
from fewlabels.posterior import LabelPosterior, ParameterDraws, mean_of_draws
from fewlabels.predictions import Predictions

DOUBT = 0.05
"""Share of the draws that keep the prior's weights of the two, whatever the evidence."""


@dataclass(frozen=True)
class AveragedCurves(LabelModel):
    """P(y | score) by monotone curves and by densities, weighed by how well they predict labels.

    A belief weighs its prior share times the probability that it gave the labels before they were
    seen: curves P(labels | scores), densities p(labels, scores) / p(scores), where p is the
    integral over their parameters. So the fit of the densities to the scores themselves, which is
    good or bad wherever scores lie, is no evidence; what they say of the labels is. With more than
    two classes it is `MonotoneCurves` alone.

    Parameters
    ----------
    share
        Prior share of the densities.
    most_scores
        Scores that the densities are fitted to, labeled ones first: of more, they learn little.
    n_draws
        Draws of both together.
    curves, densities
        The two beliefs.
    """

    share: float = 0.5
    most_scores: int = 4_000
    n_draws: int = 400
    curves: MonotoneCurves = field(default_factory=MonotoneCurves)
    densities: SPE = field(default_factory=lambda: SPE(selection="average"))

    def __post_init__(self) -> None:
        whole("most_scores", self.most_scores)
        whole("n_draws", self.n_draws)
        if not 0 < self.share < 1:
            raise UsageError(f"`share` must be between 0 and 1; got {self.share!r}")

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Fit both to every classifier, by itself.

        Raises
        ------
        InputError
            If no classifier gives probabilities or scores.
        """
        if predictions.n_classes > 2:
            return self.curves.fit(predictions, rng)
        return fit_each(self._fit_one, with_scores(predictions, "averaged-curves"), rng)

    def _fit_one(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        seeds = rng.integers(2**63, size=3)
        own, theirs, shared = (np.random.default_rng(int(seed)) for seed in seeds)
        curves = self.curves.fit_one(predictions, own)
        found = self.densities.densities(_some(predictions, self.most_scores), theirs)
        weight = 0.0
        if found is not None and found.trusted:
            odds = logit(self.share) + found.log_predictive - curves.log_evidence
            weight = (1 - DOUBT) * float(expit(odds)) + DOUBT * self.share
        size = round(weight * self.n_draws)
        draws = None if found is None or not size else found.draws(size, theirs)
        part = np.repeat([0, 1], [self.n_draws - size, size])
        place = np.concatenate(
            [np.arange(self.n_draws - size) % self.curves.n_draws, np.arange(size)]
        )
        order = shared.permutation(self.n_draws)
        return _FittedAverage(curves, draws, weight, found, part[order], place[order])


def _some(predictions: Predictions, most: int) -> Predictions:
    """All labeled items and, by their keys, as many others as `most` leaves room for."""
    if predictions.n_items <= most:
        return predictions
    told = (predictions.evidence != 0).any(axis=1)
    order = np.lexsort((predictions.keys, ~told))
    return predictions.take(np.sort(order[: max(most, int(told.sum()))]))


@dataclass(frozen=True, eq=False)
class _FittedAverage(FittedLabelModel):
    curves: FittedCurves
    draws: Any
    weight: float
    densities: FittedDensities | None
    part: Ints
    place: Ints

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        by_curves = self.curves.posterior(predictions)
        parts: list[ParameterDraws] = [by_curves.parameters]
        if self.draws is not None:
            scores = score_of(predictions.select_models(self.curves.models), 0)
            parts.append(ScoreDraws(self.draws, scores, predictions.evidence))
        share = float((self.part == 1).mean())
        n = predictions.n_items

        def mean() -> Floats:
            out = (1 - share) * by_curves.probabilities
            return out + share * mean_of_draws(parts[1], n) if share else out

        weights = {"monotone-curves": 1 - self.weight, "spe": self.weight}
        facts = {} if self.densities is None else {"families": self.densities.names}
        warnings = by_curves.warnings
        return LabelPosterior(
            mean,
            Alternatives(parts, self.part, self.place),
            predictions.keys,
            salt=by_curves.salt,
            status=status_of(warnings),
            warnings=warnings,
            diagnostics={"weights": weights, **facts, **by_curves.diagnostics},
        )


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Draws of several models: draw d is draw `place[d]` of model `part[d]`."""

    parts: Sequence[ParameterDraws]
    part: Ints
    place: Ints

    @property
    def size(self) -> int:
        """How many draws there are."""
        return len(self.part)

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label | draw) of these items, (n, K, D)."""
        part, place = self.part[index], self.place[index]
        columns = [np.flatnonzero(part == k) for k in range(len(self.parts))]
        if len(columns[0]) == len(index):
            return self.parts[0].block(place, rows)
        blocks = [own.block(place[c], rows) for own, c in zip(self.parts, columns, strict=True)]
        out = np.empty((*blocks[0].shape[:2], len(index)))
        for block, c in zip(blocks, columns, strict=True):
            out[:, :, c] = block
        return out
