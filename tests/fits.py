"""Fits that many tests ask for, made once."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

import fewlabels as fl

Fit = Callable[[fl.Predictions, np.random.Generator], Any]

_FITTED: dict[Any, tuple[Any, dict[str, Any]]] = {}


def remembered(fit: Fit, *model: Any) -> Fit:
    """The fit of a model, made once for the same items and the same state of the generator."""

    def fit_once(predictions: fl.Predictions, rng: np.random.Generator) -> Any:
        given = pickle.dumps([getattr(predictions, field.name) for field in fields(predictions)])
        key = *model, given, pickle.dumps(rng.bit_generator.state)
        if key not in _FITTED:
            _FITTED[key] = fit(predictions, rng), rng.bit_generator.state
        fitted, rng.bit_generator.state = _FITTED[key]
        return fitted

    return fit_once
