"""Methods that look at one classifier at a time: one posterior per classifier, and their mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewlabels.errors import Status, listed
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.methods.base import FittedLabelModel, LabelModel
from fewlabels.posterior import LabelPosterior, ParameterDraws
from fewlabels.predictions import Predictions

_WORST_FIRST = (Status.NOT_CONVERGED, Status.ASSUMPTION, Status.OK)


def fit_each(model: LabelModel, served: Predictions, rng: np.random.Generator) -> FittedLabelModel:
    """Fit a label model to every classifier by itself.

    All get the same randomness, so that classifiers that say the same get the same answer, and
    differences between classifiers are of what they say.
    """
    seed = int(rng.integers(2**63))
    fitted = {
        name: model.fit(served.select_models([name]), np.random.default_rng(seed))
        for name in served.models
    }
    return _FittedEach(fitted)


@dataclass(frozen=True, eq=False)
class _FittedEach(FittedLabelModel):
    fitted: Mapping[str, FittedLabelModel]

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        parts = {
            name: fitted.posterior(predictions.select_models([name]))
            for name, fitted in self.fitted.items()
        }
        return averaged(parts, predictions)


def averaged(parts: Mapping[str, LabelPosterior], predictions: Predictions) -> LabelPosterior:
    """Mean of the posteriors of several classifiers, each of which keeps its own as `per_model`.

    The mean answers for what is not asked of one classifier: an item's label, class balance, and
    classifiers without a posterior of their own. All share one salt, so that draws stay paired:
    an item weighs the same, in a draw, for every classifier.
    """
    salt = next(iter(parts.values())).salt
    parts = {name: replace(part, salt=salt) for name, part in parts.items()}
    every = list(parts.values())
    return LabelPosterior(
        lambda: np.mean([part.probabilities for part in every], axis=0),
        _Mixed([part.parameters for part in every]),
        predictions.keys,
        salt=salt,
        value_from=every[0].value_from,
        per_model=tuple(parts.get(name) for name in predictions.models),
        status=next(s for s in _WORST_FIRST if any(p.status is s for p in every)),
        warnings=_warnings(parts),
        diagnostics=_diagnostics(parts),
    )


def _warnings(parts: Mapping[str, LabelPosterior]) -> tuple[str, ...]:
    """Every warning once, with the classifiers that it is about unless it is about all."""
    about: dict[str, list[str]] = {}
    for name, part in parts.items():
        for warning in part.warnings:
            about.setdefault(warning, []).append(name)
    return tuple(
        warning if len(names) == len(parts) else f"{warning} ({listed(names, 5)})"
        for warning, names in about.items()
    )


def _diagnostics(parts: Mapping[str, LabelPosterior]) -> dict[str, Any]:
    """Diagnostic -> classifier -> value."""
    names = dict.fromkeys(key for part in parts.values() for key in part.diagnostics)
    return {
        key: {name: p.diagnostics[key] for name, p in parts.items() if key in p.diagnostics}
        for key in names
    }


@dataclass(frozen=True, eq=False)
class _Mixed:
    """Parameter draws of the mean: draw d averages draw d of every classifier."""

    parts: Sequence[ParameterDraws]

    @property
    def size(self) -> int:
        return max(part.size for part in self.parts)

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        blocks = (part.block(index % part.size, rows) for part in self.parts)
        total = next(blocks)
        for block in blocks:
            total += block
        total /= len(self.parts)
        return total
