"""Know how good a classifier is when trusted labels are few, missing or disagreeing."""

# No `from __future__ import annotations` here: it would take the name of a subpackage.
import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# name -> module that holds it. Nothing is imported before it is asked for (PEP 562).
_LAZY = {
    "Diagnosis": "fewlabels.frames",
    "Estimates": "fewlabels.estimates",
    "FewlabelsError": "fewlabels.errors",
    "InputError": "fewlabels.errors",
    "MissingExtraError": "fewlabels.errors",
    "Predictions": "fewlabels.predictions",
    "Status": "fewlabels.errors",
    "UsageError": "fewlabels.errors",
    "compare": "fewlabels.comparisons",
    "curve": "fewlabels.operating.curve",
    "curves": "fewlabels.operating.curve",
    "diagnose": "fewlabels.frames",
    "estimate": "fewlabels.estimating",
    "estimate_files": "fewlabels.engine.stream",
    "label_next": "fewlabels.operating.label_next",
    "read_predictions": "fewlabels.frames",
    "shift": "fewlabels.shifts.analysis",
    "threshold": "fewlabels.operating.threshold",
}
_SUBPACKAGES = ("annotations", "bench", "calibration", "metrics", "models")

if TYPE_CHECKING:
    from fewlabels import annotations as annotations
    from fewlabels import bench as bench
    from fewlabels import calibration as calibration
    from fewlabels import metrics as metrics
    from fewlabels import models as models
    from fewlabels.comparisons import compare
    from fewlabels.engine.stream import estimate_files
    from fewlabels.errors import FewlabelsError, InputError, MissingExtraError, Status, UsageError
    from fewlabels.estimates import Estimates
    from fewlabels.estimating import estimate
    from fewlabels.frames import Diagnosis, diagnose, read_predictions
    from fewlabels.operating.curve import curve, curves
    from fewlabels.operating.label_next import label_next
    from fewlabels.operating.threshold import threshold
    from fewlabels.predictions import Predictions
    from fewlabels.shifts.analysis import shift

__all__ = [
    "Diagnosis",
    "Estimates",
    "FewlabelsError",
    "InputError",
    "MissingExtraError",
    "Predictions",
    "Status",
    "UsageError",
    "__version__",
    "annotations",
    "bench",
    "calibration",
    "compare",
    "curve",
    "curves",
    "diagnose",
    "estimate",
    "estimate_files",
    "label_next",
    "metrics",
    "models",
    "read_predictions",
    "shift",
    "threshold",
]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"fewlabels.{name}")
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'fewlabels' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
