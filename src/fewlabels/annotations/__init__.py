"""Label histograms: losses against the label distribution, unbiased by few labels."""

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
