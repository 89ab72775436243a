"""Label models: one method, or one family of them, per file."""

from fewlabels.models.active_testing import ActiveTesting
from fewlabels.models.agreement_rates import AgreementRates
from fewlabels.models.autoeval import AutoEval
from fewlabels.models.base import FittedLabelModel, LabelModel
from fewlabels.models.bayesian_calibration import BayesianCalibration
from fewlabels.models.bee import (
    BEE,
    CBCC,
    CBEE,
    HCBEE,
    ConfusionBEE,
    ConfusionCBEE,
    ConfusionHCBEE,
)
from fewlabels.models.constraints import Constraints
from fewlabels.models.crowd_svm import CrowdSVM
from fewlabels.models.dawid_skene import DawidSkene
from fewlabels.models.ensemble import Ensemble
from fewlabels.models.ensembles import AgreementEnsemble, LearnedEnsemble, TemperedEnsemble
from fewlabels.models.label_distribution import LabelDistribution
from fewlabels.models.labeled import Labeled
from fewlabels.models.majority_vote import MajorityVote
from fewlabels.models.method import Method
from fewlabels.models.monotone_curves import MonotoneCurves
from fewlabels.models.pseudo_label import PseudoLabel
from fewlabels.models.registry import METHODS, resolve
from fewlabels.models.spe import SPE
from fewlabels.models.ssme_flow import SSMEFlow
from fewlabels.models.ssme_kde import SSMEKDE, SSMEKDEMarginal
from fewlabels.models.vote_selection import VoteSelection

__all__ = [
    "BEE",
    "CBCC",
    "CBEE",
    "HCBEE",
    "METHODS",
    "SPE",
    "SSMEKDE",
    "ActiveTesting",
    "AgreementEnsemble",
    "AgreementRates",
    "AutoEval",
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
