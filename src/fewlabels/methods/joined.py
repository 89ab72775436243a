"""Posteriors of some of the items each, as one of all: tasks that were fitted apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.importance import kept_places
from fewlabels.methods.base import FittedLabelModel, gravest
from fewlabels.posterior import Allowance, LabelPosterior, ParameterDraws
from fewlabels.predictions import Predictions


@dataclass(frozen=True, eq=False)
class JoinedPosteriors(FittedLabelModel):
    """Posteriors of the rows (n_t,) of every part t of the same items, which they are all of.

    `models` are the classifiers of each part, which may be some of all.

    Draw d of all is draw d of every part: row weights, which belong to items, are those of one
    bootstrap, and parameters are independent, as the parts' labels are given the scores.
    """

    parts: Sequence[LabelPosterior]
    rows: Sequence[Ints]
    models: Sequence[tuple[str, ...]]

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """Posterior over the labels of these items, which are those that were fitted."""
        several = any(part.per_model or part.shares for part in self.parts)
        each = [self._of(predictions, who) for who in predictions.models * several]
        return replace(self._of(predictions, None), per_model=tuple(each))

    def _of(self, predictions: Predictions, who: str | None) -> LabelPosterior:
        """The posterior by which a classifier is judged; None: of all."""
        parts, values, intervals = list(self.parts), [], []
        if who is not None:
            both = zip(self.parts, self.models, strict=True)
            parts = [part.of(m.index(who)) if who in m else part for part, m in both]
        for part in parts:
            shares = (None, None) if who is None else part.shares.get(who, (None, None))
            values.append(_chosen(part.value_draws, shares[0]))
            intervals.append(_chosen(part.interval_draws, shares[1]))

        def probabilities() -> Floats:
            out = np.empty((predictions.n_items, predictions.n_classes))
            for part, rows in zip(parts, self.rows, strict=True):
                out[rows] = part.probabilities
            return out

        return LabelPosterior(
            probabilities,
            _JoinedDraws.of(values, self.rows, predictions),
            predictions.keys,
            salt=self.parts[0].salt,
            interval_parameters=_JoinedDraws.of(intervals, self.rows, predictions),
            inflation=max(part.inflation for part in parts),
            allowance=Allowance(*map(max, zip(*(part.allowance for part in parts), strict=True))),
            status=gravest(part.status for part in parts),
        )


def _chosen(draws: ParameterDraws, weights: Floats | None) -> ParameterDraws:
    """The draws, each as often as it weighs; most keep their places."""
    return draws if weights is None else _Chosen(draws, kept_places(weights))


@dataclass(frozen=True, eq=False)
class _Chosen:
    draws: ParameterDraws
    places: Ints

    @property
    def size(self) -> int:
        return len(self.places)

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        return self.draws.block(self.places[index], rows)


@dataclass(frozen=True, eq=False)
class _JoinedDraws:
    """Parameter draws of parts; an item is of the part `code` (n,), in the `place` (n,) there."""

    parts: Sequence[ParameterDraws]
    code: Ints
    place: Ints
    n_classes: int

    @staticmethod
    def of(
        parts: Sequence[ParameterDraws], rows: Sequence[Ints], predictions: Predictions
    ) -> _JoinedDraws:
        code, place = np.zeros((2, predictions.n_items), dtype=np.int64)
        for t, own in enumerate(rows):
            code[own], place[own] = t, np.arange(len(own))
        return _JoinedDraws(parts, code, place, predictions.n_classes)

    @property
    def size(self) -> int:
        return max(part.size for part in self.parts)

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        code, place = self.code[rows], self.place[rows]
        out = np.empty((len(code), self.n_classes, len(index)))
        for t, part in enumerate(self.parts):
            there = np.flatnonzero(code == t)
            # Of no items too: what every block needs is then made (`first_block`).
            if len(there) or not len(code):
                out[there] = part.block(index % part.size, place[there])
        return out


@dataclass(frozen=True, eq=False)
class Salted(FittedLabelModel):
    """A fitted model that draws with a salt which others have too, so that draws are paired."""

    fitted: FittedLabelModel
    salt: int

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """The posterior of the fitted model."""
        own = self.fitted.posterior(predictions)
        each = (None if p is None else replace(p, salt=self.salt) for p in own.per_model)
        return replace(own, salt=self.salt, per_model=tuple(each))
