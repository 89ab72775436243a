"""What a method serves, for tests that go over all of them."""

from __future__ import annotations

import copy
from dataclasses import replace

from fewlabels.methods import registry
from fewlabels.methods.bee.bee import VoteModel
from fewlabels.metrics import resolve
from fewlabels.models import (
    BEE,
    SPE,
    ConfusionBEE,
    CrowdSVM,
    LabelModel,
    MonotoneCurves,
    SSMEFlow,
    VoteSelection,
)
from fits import remembered

# Contracts hold after any number of epochs; the paper's thousand would take hours here.
# Choosing c and l of crowd-svm takes 27 chains.
_QUICK = {
    "crowd-svm": CrowdSVM(cost=0.125, margin=1.0),
    "monotone-curves": MonotoneCurves(particles=200),
    "spe": SPE(families="normal", proposals=1000),
    "ssme-flow": SSMEFlow(hidden=16, flow_epochs=10, joint_epochs=20),
}


_FEW_SWEEPS = {"burn_in": 100, "sweeps": 1600, "thin": 4, "chains": 2}


def fresh(method: str) -> LabelModel:
    """The method as it comes, or a quicker version of it."""
    model = _QUICK.get(method) or registry.METHODS[method].make()
    if isinstance(model, VoteModel):
        return replace(model, **_FEW_SWEEPS)
    if isinstance(model, VoteSelection):
        few = tuple(replace(m, **_FEW_SWEEPS) for m in (BEE(), ConfusionBEE()))
        return replace(model, candidates=few)
    return model


def quick(method: str) -> LabelModel:
    """The same, which many tests ask about the same items and which is fitted to these once."""
    model = fresh(method)
    remembering = copy.copy(model)
    object.__setattr__(remembering, "fit", remembered(model.fit, method))
    return remembering


def n_classes_of(method: str) -> int:
    """Three classes, or the two that a method is for."""
    return 2 if "two classes" in registry.METHODS[method].needs else 3


def served(method: str, metrics: list[str]) -> list[str]:
    """Those of the metrics that the method defines."""
    everything = registry.METHODS[method].serves == "all metrics"
    return [m for m in metrics if everything or resolve(m)[m].per_item is not None]
