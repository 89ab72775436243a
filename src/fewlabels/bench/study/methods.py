"""The label model that a name stands for on a set: none is judged on what it was learned from."""

from __future__ import annotations

from typing import Any

from fewlabels.bench import methods
from fewlabels.bench.study.protocol import DEFAULT
from fewlabels.models.base import LabelModel
from fewlabels.models.registry import METHODS, resolve
from fewlabels.predictions import Predictions

LEARNED = "learned-ensemble"
"""The method with a prior that is learned on made sets."""


def method_for(name: str, family: str, predictions: Predictions) -> LabelModel:
    """The label model of a method (`auto` included) on a set of a family, "" for a real one.

    A method with a learned prior gets the one that was learned without the set's family.

    Raises
    ------
    UsageError
        If there is no such method.
    """
    if name != DEFAULT and "[" in name:
        return methods.make(name)
    resolved, model = resolve(name, predictions)
    if family and resolved == LEARNED:
        make: Any = METHODS[LEARNED].make
        without: LabelModel = make(left_out=family)
        return without
    return model
