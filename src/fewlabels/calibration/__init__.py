"""Calibration on labels or label histograms: scaling, alpha-calibration, ensembles, saved models.

Start with `scaling.py`. `inputs` checks arguments and gives arrays; `scaling` and `alpha` are
scikit-learn estimators around their likelihoods; ensembles are plain functions of an array
(S, n, K): S members, n items, K classes (in `alpha`); `saved` writes fitted estimators as JSON.
`recalibration` fits, checks and applies them to classifiers of a file. Modules are imported on
first use, as scikit-learn is slow to load.

The room imports `annotations`, `checks`, `data`, `errors`, `kernels`, `predictions` and `report`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_LAZY = {
    "AlphaCalibration": "alpha",
    "MatrixScaling": "scaling",
    "TemperatureScaling": "scaling",
    "VectorScaling": "scaling",
    "ensemble_disagreement": "alpha",
    "ensemble_mean": "alpha",
    "ensemble_posterior": "alpha",
    "from_dict": "saved",
    "load": "saved",
    "save": "saved",
    "to_dict": "saved",
}

if TYPE_CHECKING:
    from fewlabels.calibration.alpha import AlphaCalibration as AlphaCalibration
    from fewlabels.calibration.alpha import ensemble_disagreement as ensemble_disagreement
    from fewlabels.calibration.alpha import ensemble_mean as ensemble_mean
    from fewlabels.calibration.alpha import ensemble_posterior as ensemble_posterior
    from fewlabels.calibration.saved import from_dict as from_dict
    from fewlabels.calibration.saved import load as load
    from fewlabels.calibration.saved import save as save
    from fewlabels.calibration.saved import to_dict as to_dict
    from fewlabels.calibration.scaling import MatrixScaling as MatrixScaling
    from fewlabels.calibration.scaling import TemperatureScaling as TemperatureScaling
    from fewlabels.calibration.scaling import VectorScaling as VectorScaling

__all__ = sorted(_LAZY)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(f"fewlabels.calibration.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'fewlabels.calibration' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
