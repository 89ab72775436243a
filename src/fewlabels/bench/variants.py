"""What a protocol varies: sharpness, drawn or expected labels, which and how many classifiers."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from fewlabels.bench.protocol import Protocol
from fewlabels.bench.seeds import generator
from fewlabels.errors import InputError
from fewlabels.evaluation.evaluator import Estimand
from fewlabels.kernels.arrays import Floats
from fewlabels.predictions import Predictions

JOIN = "+"
"""Between the names of the classifiers of a subset."""


def levels_of(protocol: Protocol, models: tuple[str, ...], dataset: str) -> tuple[str, ...]:
    """Levels for a data set of these classifiers; ("",) where nothing is varied.

    Raises
    ------
    InputError
        If the data set has too few classifiers for a subset.
    """
    if protocol.factor == "subset":
        return tuple(JOIN.join(s) for s in _subsets(protocol, models, dataset))
    return protocol.levels if protocol.factor else ("",)


def _subsets(protocol: Protocol, models: tuple[str, ...], dataset: str) -> list[tuple[str, ...]]:
    size = protocol.subset_size
    if len(models) < size:
        have = f"{len(models)} classifier{'' if len(models) == 1 else 's'}"
        raise InputError(
            f"has {have}, and subsets need {size}: give it more, or a protocol of your own another "
            "`subset_size`"
        )
    if comb(len(models), size) <= protocol.subsets:
        return list(combinations(models, size))
    rng = generator("subsets", protocol.seed, dataset, size)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < protocol.subsets:
        found[tuple(sorted(rng.choice(len(models), size, replace=False).tolist()))] = None
    return [tuple(models[j] for j in places) for places in sorted(found)]


def truth_level(factor: str, level: str) -> str:
    """Labels drawn or expected change no truth, and a subset's is part of the whole set's."""
    return "" if factor in ("labels", "subset") else level


def estimand_of(protocol: Protocol, level: str) -> Estimand:
    """The paper's metrics of drawn labels are those of these very items."""
    drawn = protocol.estimand == "sample" if protocol.factor != "labels" else level == "drawn"
    return "sample" if drawn else "population"


def varied(predictions: Predictions, factor: str, level: str) -> Predictions:
    """The predictions of a level."""
    if factor == "sharpness" and level:
        return _sharpened(predictions, float(level))
    if factor == "subset" and level:
        return predictions.select_models(level.split(JOIN))
    return predictions


def _sharpened(predictions: Predictions, exponent: float) -> Predictions:
    p = predictions.probabilities
    if p is None or exponent == 1:
        return predictions
    return Predictions(
        sharpen(p, exponent),
        predictions.labels,
        groups=predictions.groups,
        models=predictions.models,
        classes=predictions.classes,
        positive=predictions.positive,
    )


def sharpen(p: Floats, exponent: float) -> Floats:
    """p^a / sum p^a over the last axis (SSME, D.4); a below 1 makes probabilities duller."""
    raised = (p / p.max(axis=-1, keepdims=True)) ** exponent
    out: Floats = raised / np.sum(raised, axis=-1, keepdims=True)
    return out
