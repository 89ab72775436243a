"""Label models: one method per file."""

from fewlabels.models.base import FittedLabelModel, LabelModel
from fewlabels.models.ensemble import Ensemble
from fewlabels.models.labeled import Labeled
from fewlabels.models.method import Method
from fewlabels.models.registry import METHODS, resolve
from fewlabels.models.ssme_kde import SSMEKDE
from fewlabels.models.tempered_ensemble import TemperedEnsemble

__all__ = [
    "METHODS",
    "SSMEKDE",
    "Ensemble",
    "FittedLabelModel",
    "LabelModel",
    "Labeled",
    "Method",
    "TemperedEnsemble",
    "resolve",
]
