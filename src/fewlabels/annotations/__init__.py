"""Label histograms: losses against the label distribution, unbiased by few labels.

The room stands on `predictions`, `evaluation` and `checks`. Start with `losses.py`: `evaluate` for
predicted probabilities, `evaluate_statistic` for statistics of labels (`statistics`). Their sums
are in `label_histograms`; `assessment` makes them for all classifiers and groups, `diagrams` per
bin; `agreement` is of annotators among themselves.
"""

from fewlabels.annotations.agreement import Agreement, agreement
from fewlabels.annotations.assessment import Assessment, assess
from fewlabels.annotations.diagrams import disagreement_reliability, dispersion_map, reliability
from fewlabels.annotations.losses import METRICS, evaluate, evaluate_statistic
from fewlabels.annotations.statistics import (
    DISAGREEMENT,
    LabelStatistic,
    Statistic,
    majority_strength,
    statistic,
    unanimity,
)

__all__ = [
    "DISAGREEMENT",
    "METRICS",
    "Agreement",
    "Assessment",
    "LabelStatistic",
    "Statistic",
    "agreement",
    "assess",
    "disagreement_reliability",
    "dispersion_map",
    "evaluate",
    "evaluate_statistic",
    "majority_strength",
    "reliability",
    "statistic",
    "unanimity",
]
