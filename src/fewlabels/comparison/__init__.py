"""Comparing classifiers: who is ahead, who cannot be told apart, how many labels would settle it.

Arrays in, numbers out. Everything is computed from draws of one metric that are paired over the
classifiers: in draw d all of them are judged by the same labels, parameters and row weights, so
what they share cancels in a difference.
"""

from fewlabels.comparison.compare import (
    Comparison,
    LabelsNeeded,
    Pair,
    PairErrors,
    Standing,
    Together,
    compare,
    labels_needed,
)
from fewlabels.comparison.discrepancy import Residuals, with_discrepancy
from fewlabels.comparison.draws import (
    GroupGap,
    group_gap,
    paired_interval,
    probability_best,
)

__all__ = [
    "Comparison",
    "GroupGap",
    "LabelsNeeded",
    "Pair",
    "PairErrors",
    "Residuals",
    "Standing",
    "Together",
    "compare",
    "group_gap",
    "labels_needed",
    "paired_interval",
    "probability_best",
    "with_discrepancy",
]
