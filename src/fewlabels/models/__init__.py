"""Label models: one method per file."""

from fewlabels.models.active_testing import ActiveTesting
from fewlabels.models.autoeval import AutoEval
from fewlabels.models.base import FittedLabelModel, LabelModel
from fewlabels.models.ensemble import Ensemble
from fewlabels.models.labeled import Labeled
from fewlabels.models.method import Method
from fewlabels.models.registry import METHODS, resolve
from fewlabels.models.ssme_kde import SSMEKDE
from fewlabels.models.ssme_kde_marginal import SSMEKDEMarginal
from fewlabels.models.tempered_ensemble import TemperedEnsemble

__all__ = [
    "METHODS",
    "SSMEKDE",
    "ActiveTesting",
    "AutoEval",
    "Ensemble",
    "FittedLabelModel",
    "LabelModel",
    "Labeled",
    "Method",
    "SSMEKDEMarginal",
    "TemperedEnsemble",
    "resolve",
]
