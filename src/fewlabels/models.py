"""Label models: one method, or one family of them, per file."""

from fewlabels.methods.base import FittedLabelModel, LabelModel
from fewlabels.methods.baselines.active_testing import ActiveSurrogate, ActiveTesting
from fewlabels.methods.baselines.autoeval import AutoEval
from fewlabels.methods.baselines.bayesian_calibration import BayesianCalibration
from fewlabels.methods.baselines.plain import Ensemble, Labeled, MajorityVote, PseudoLabel
from fewlabels.methods.bee.bee import (
    BEE,
    CBCC,
    CBEE,
    HCBEE,
    ConfusionBEE,
    ConfusionCBEE,
    ConfusionHCBEE,
)
from fewlabels.methods.bee.selection import VoteSelection
from fewlabels.methods.bee.table import Constraints
from fewlabels.methods.curves.monotone_curves import AveragedCurves, MonotoneCurves
from fewlabels.methods.ensembles.ensembles import (
    AgreementEnsemble,
    LearnedEnsemble,
    TemperedEnsemble,
)
from fewlabels.methods.label_distribution import LabelDistribution
from fewlabels.methods.registry import METHODS, Method, resolve
from fewlabels.methods.spe.spe import SPE
from fewlabels.methods.ssme.flow import SSMEFlow
from fewlabels.methods.ssme.kde import SSMEKDE, SSMEKDEMarginal
from fewlabels.methods.votes.agreement_rates import AgreementRates
from fewlabels.methods.votes.crowd_svm import CrowdSVM
from fewlabels.methods.votes.dawid_skene import DawidSkene

__all__ = [
    "BEE",
    "CBCC",
    "CBEE",
    "HCBEE",
    "METHODS",
    "SPE",
    "SSMEKDE",
    "ActiveSurrogate",
    "ActiveTesting",
    "AgreementEnsemble",
    "AgreementRates",
    "AutoEval",
    "AveragedCurves",
    "BayesianCalibration",
    "ConfusionBEE",
    "ConfusionCBEE",
    "ConfusionHCBEE",
    "Constraints",
    "CrowdSVM",
    "DawidSkene",
    "Ensemble",
    "FittedLabelModel",
    "LabelDistribution",
    "LabelModel",
    "Labeled",
    "LearnedEnsemble",
    "MajorityVote",
    "Method",
    "MonotoneCurves",
    "PseudoLabel",
    "SSMEFlow",
    "SSMEKDEMarginal",
    "TemperedEnsemble",
    "VoteSelection",
    "resolve",
]
