"""The label model that a name stands for on a set: none is judged on what it was learned from."""

from __future__ import annotations

from dataclasses import replace

from fewlabels.methods.base import LabelModel
from fewlabels.methods.ensembles.ensembles import LearnedEnsemble
from fewlabels.methods.registry import resolve
from fewlabels.methods.settings import make
from fewlabels.predictions import Predictions
from study.protocol import DEFAULT


def method_for(name: str, family: str, predictions: Predictions) -> LabelModel:
    """The label model of a method (`auto` included) on a set of a family, "" for a real one.

    A method with a learned prior, whatever its settings, gets the one that was learned without
    the set's family.

    Raises
    ------
    UsageError
        If there is no such method, or no prior without this family.
    """
    bracketed = name != DEFAULT and "[" in name
    model = make(name) if bracketed else resolve(name, predictions)[1]
    if family and isinstance(model, LearnedEnsemble):
        return replace(model, left_out=family)
    return model
