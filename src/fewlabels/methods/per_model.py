"""Methods for one classifier at a time: a posterior per classifier, and their mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.special import expit, logit

from fewlabels.errors import listed
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.simplex import two_classes
from fewlabels.methods.base import FittedLabelModel, gravest
from fewlabels.posterior import LabelPosterior, ParameterDraws
from fewlabels.predictions import Predictions


def fit_each(
    fit: Callable[[Predictions, np.random.Generator], FittedLabelModel],
    served: Predictions,
    rng: np.random.Generator,
) -> FittedLabelModel:
    """Fit to every classifier separately.

    All have the same random numbers, so that equal predictions give equal results, and differences
    between classifiers come from their predictions.
    """
    seed = int(rng.integers(2**63))
    fitted = {
        name: fit(served.select_models([name]), np.random.default_rng(seed))
        for name in served.models
    }
    return _FittedEach(fitted)


@dataclass(frozen=True, eq=False)
class _FittedEach(FittedLabelModel):
    fitted: Mapping[str, FittedLabelModel]

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """Mean of the posteriors of all classifiers, with each one's own as `per_model`.

        The mean is used for what does not concern one classifier (an item's label, class balance),
        and for classifiers without a posterior of their own. All share one salt, so that draws stay
        paired: in a draw, an item has the same weight for every classifier.
        """
        parts = {
            name: fitted.posterior(predictions.select_models([name]))
            for name, fitted in self.fitted.items()
        }
        salt = next(iter(parts.values())).salt
        # Every warning once, with the classifiers that it is about unless it is about all.
        about: dict[str, list[str]] = {}
        for name, part in parts.items():
            for warning in part.warnings:
                about.setdefault(warning, []).append(name)
        diagnostics = dict.fromkeys(key for part in parts.values() for key in part.diagnostics)
        parts = {name: replace(part, salt=salt) for name, part in parts.items()}
        every = list(parts.values())
        return LabelPosterior(
            lambda: np.mean([part.probabilities for part in every], axis=0),
            _Mixed([part.parameters for part in every]),
            predictions.keys,
            salt=salt,
            value_from=every[0].value_from,
            per_model=tuple(parts.get(name) for name in predictions.models),
            status=gravest(part.status for part in every),
            warnings=tuple(
                warning if len(names) == len(parts) else f"{warning} ({listed(names, 5)})"
                for warning, names in about.items()
            ),
            diagnostics={
                key: {name: p.diagnostics[key] for name, p in parts.items() if key in p.diagnostics}
                for key in diagnostics
            },
        )


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


class OddsOfScores(Protocol):
    """Parameter draws of what turns one classifier's scores into log-odds of the second class."""

    @property
    def size(self) -> int:
        """How many draws there are, D."""

    @property
    def logit_prevalence(self) -> Floats:
        """Log-odds of an item without a score, (D,)."""

    def log_odds(self, scores: Floats, index: Ints) -> Floats:
        """Log-odds of scores (n,) that are not missing, a new array (n, D)."""


@dataclass(frozen=True, eq=False)
class ScoreDraws:
    """P(label | score, evidence) of two classes: scores (n,), NaN if missing, evidence (n, 2)."""

    draws: OddsOfScores
    scores: Floats
    evidence: Floats

    @property
    def size(self) -> int:
        """How many draws there are."""
        return self.draws.size

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label | draw) of these items, (n, 2, D)."""
        scores, evidence = self.scores[rows], self.evidence[rows]
        missing = np.isnan(scores)
        if missing.any():
            z = np.empty((len(scores), len(index)))
            z[~missing] = self.draws.log_odds(scores[~missing], index)
            z[missing] = self.draws.logit_prevalence[index]
        else:
            z = self.draws.log_odds(scores, index)
        # A known label is evidence without end, whose probability is exactly 0 or 1.
        z += (evidence[:, 1] - evidence[:, 0])[:, None]
        return two_classes(expit(z, out=z))


# Scores: the one number by which a classifier ranks items, in the units of the file.

CLIP = 1e-5
"""Probabilities are clipped to [1e-5, 1 - 1e-5] before they become logits."""


def is_probability(predictions: Predictions, j: int) -> bool:
    """Whether classifier j is ranked by its probabilities, which come before its scores."""
    return bool(predictions.has_probabilities[:, j].any())


def score_of(predictions: Predictions, j: int, positive: int = 1) -> Floats:
    """What classifier j ranks items by, in the units of the file, (n,); NaN where missing.

    P(class `positive`) if the classifier gives probabilities, else its score, with the sign changed
    if it is larger for the other class.
    """
    if predictions.probabilities is not None and is_probability(predictions, j):
        return predictions.probabilities[:, j, positive]
    if predictions.scores is None:
        return np.full(predictions.n_items, np.nan)
    scores = predictions.scores[:, j]
    return scores if predictions.classes[positive] == predictions.positive else -scores


def margin(scores: Floats, *, probability: bool) -> Floats:
    """Scores on the whole real line: logits of probabilities, other scores as they are."""
    if not probability:
        return scores
    out: Floats = logit(np.clip(scores, CLIP, 1 - CLIP))
    return out
