"""Normal scores: values replaced by the normal quantiles of their ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from fewlabels.kernels.arrays import Floats

_MOST_KNOTS = 1024
_LEAST_SPREAD = 1e-9


@dataclass(frozen=True, eq=False)
class NormalScores:
    """Increasing knots and their normal scores, sd 1; values between knots lie between scores."""

    knots: Floats
    scores: Floats

    @staticmethod
    def of(values: Floats) -> NormalScores:
        """From the values that are there, (n,); equal values share their mean rank.

        Values that are all the same say nothing: their score is 0.
        """
        given = values[np.isfinite(values)]
        knots, count = np.unique(given, return_counts=True)
        if len(knots) < 2 or np.ptp(knots) < _LEAST_SPREAD:
            return NormalScores(np.zeros(1), np.zeros(1))
        rank = np.cumsum(count) - count / 2
        scores = ndtri(rank / len(given))
        scores -= np.average(scores, weights=count)
        scores /= np.sqrt(np.average(scores**2, weights=count))
        if len(knots) > _MOST_KNOTS:
            some = np.unique(np.linspace(0, len(knots) - 1, _MOST_KNOTS).astype(np.int64))
            knots, scores = knots[some], scores[some]
        return NormalScores(knots, scores)

    def __call__(self, values: Floats) -> Floats:
        """Scores of any values, (n,); NaN stays NaN."""
        out: Floats = np.interp(values, self.knots, self.scores)
        out[np.isnan(values)] = np.nan
        return out
