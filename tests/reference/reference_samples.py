"""Curves and thresholds of these very items and at 90%, as the golden values have them."""

from __future__ import annotations

from functools import partial

import fewlabels as fl

OF_THESE = {"confidence_level": 0.9, "estimand": "sample"}
sample_curve = partial(fl.curve, **OF_THESE)
sample_curves = partial(fl.curves, **OF_THESE)
sample_threshold = partial(fl.threshold, **OF_THESE)
