"""Know how good a classifier is when trusted labels are few, missing or disagreeing."""

# No `from __future__ import annotations` here: it would take the name of a subpackage.
import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# name -> module that holds it. Nothing is imported before it is asked for (PEP 562).
_LAZY = {
    "Diagnosis": "fewlabels.data.doctor.facts",
    "Estimates": "fewlabels.estimates",
    "FewlabelsError": "fewlabels.errors",
    "InputError": "fewlabels.errors",
    "MissingExtraError": "fewlabels.errors",
    "Predictions": "fewlabels.predictions",
    "Status": "fewlabels.errors",
    "UsageError": "fewlabels.errors",
    "anytime": "fewlabels.questions.anytime",
    "backtest": "fewlabels.questions.backtest",
    "calibration_curve": "fewlabels.questions.calibration_curve",
    "compare": "fewlabels.questions.compare",
    "curve": "fewlabels.questions.curve",
    "curves": "fewlabels.questions.curve",
    "diagnose": "fewlabels.data.doctor.diagnose",
    "estimate": "fewlabels.estimating",
    "estimate_files": "fewlabels.streaming.stream",
    "label": "fewlabels.labeling.notebook",
    "label_next": "fewlabels.questions.label_next",
    "monitor": "fewlabels.monitoring",
    "rank": "fewlabels.questions.rank",
    "read_predictions": "fewlabels.data.read",
    "score": "fewlabels.questions.score",
    "scorer": "fewlabels.integrations.scorer",
    "shift": "fewlabels.shifts.analysis",
    "source": "fewlabels.data.sources",
    "threshold": "fewlabels.questions.threshold",
}
_SUBPACKAGES = ("annotations", "calibration", "metrics", "models")

if TYPE_CHECKING:
    from fewlabels import annotations as annotations
    from fewlabels import calibration as calibration
    from fewlabels import metrics as metrics
    from fewlabels import models as models
    from fewlabels.data.doctor.diagnose import diagnose as diagnose
    from fewlabels.data.doctor.facts import Diagnosis as Diagnosis
    from fewlabels.data.read import read_predictions as read_predictions
    from fewlabels.data.sources import source as source
    from fewlabels.errors import FewlabelsError as FewlabelsError
    from fewlabels.errors import InputError as InputError
    from fewlabels.errors import MissingExtraError as MissingExtraError
    from fewlabels.errors import Status as Status
    from fewlabels.errors import UsageError as UsageError
    from fewlabels.estimates import Estimates as Estimates
    from fewlabels.estimating import estimate as estimate
    from fewlabels.integrations.scorer import scorer as scorer
    from fewlabels.labeling.notebook import label as label
    from fewlabels.monitoring import monitor as monitor
    from fewlabels.predictions import Predictions as Predictions
    from fewlabels.questions.anytime import anytime as anytime
    from fewlabels.questions.backtest import backtest as backtest
    from fewlabels.questions.calibration_curve import calibration_curve as calibration_curve
    from fewlabels.questions.compare import compare as compare
    from fewlabels.questions.curve import curve as curve
    from fewlabels.questions.curve import curves as curves
    from fewlabels.questions.label_next import label_next as label_next
    from fewlabels.questions.rank import rank as rank
    from fewlabels.questions.score import score as score
    from fewlabels.questions.threshold import threshold as threshold
    from fewlabels.shifts.analysis import shift as shift
    from fewlabels.streaming.stream import estimate_files as estimate_files

__all__ = sorted([*_LAZY, *_SUBPACKAGES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"fewlabels.{name}")
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'fewlabels' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
