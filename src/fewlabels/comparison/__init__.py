"""Comparing classifiers: who is ahead, who cannot be told apart, how many labels would settle it.

Arrays in, numbers out. Everything is computed from draws of one metric that are paired over the
classifiers: in draw d all of them are judged by the same labels, parameters and row weights, so
what they share cancels in a difference.
"""

from fewlabels.comparison.compare import Comparison, Pair, Standing, compare
from fewlabels.comparison.discrepancy import Residuals, with_discrepancy
from fewlabels.comparison.groups import GroupGap, group_gap
from fewlabels.comparison.intervals import Difference, paired_interval
from fewlabels.comparison.labels import LabelsNeeded, labels_needed
from fewlabels.comparison.ranks import probability_best
from fewlabels.comparison.together import PairErrors, Rate, Together

__all__ = [
    "Comparison",
    "Difference",
    "GroupGap",
    "LabelsNeeded",
    "Pair",
    "PairErrors",
    "Rate",
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
