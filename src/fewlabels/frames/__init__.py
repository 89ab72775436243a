"""Files and frames to `Predictions`, and what is wrong with them."""

from fewlabels.frames.doctor import Diagnosis, Finding, diagnose
from fewlabels.frames.native import frame_kind
from fewlabels.frames.options import parse_model_option, parse_model_options
from fewlabels.frames.read import column_names, read_predictions

__all__ = [
    "Diagnosis",
    "Finding",
    "column_names",
    "diagnose",
    "frame_kind",
    "parse_model_option",
    "parse_model_options",
    "read_predictions",
]
