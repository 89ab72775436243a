"""Label histograms: losses against the distribution of annotators' labels.

They are corrected for the bias that few labels per item cause. Start with `losses.py`: `evaluate`
for predicted probabilities, `evaluate_statistic` for statistics of labels (`statistics`).
`label_histograms` computes the sums they need; `assessment` has the losses of all classifiers and
groups, `diagrams` those per bin; `agreement` measures how far annotators agree with one another.

The room imports `checks`, `data`, `errors`, `estimates`, `evaluation`, `kernels`, `methods`,
`predictions` and `report`.
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
