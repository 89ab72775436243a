"""What a method serves, for tests that go over all of them."""

from __future__ import annotations

from fewlabels.metrics import resolve
from fewlabels.models import LabelModel, SSMEFlow, registry

# Contracts hold after any number of epochs; the paper's thousand would take hours here.
_QUICK = {"ssme-flow": SSMEFlow(hidden=16, flow_epochs=10, joint_epochs=20)}


def quick(method: str) -> LabelModel:
    """The method as it comes, or a quicker version of it."""
    return _QUICK.get(method) or registry.METHODS[method].make()


def n_classes_of(method: str) -> int:
    """Three classes, or the two that a method is for."""
    return 2 if "two classes" in registry.METHODS[method].needs else 3


def served(method: str, metrics: list[str]) -> list[str]:
    """Those of the metrics that the method defines."""
    everything = registry.METHODS[method].serves == "all metrics"
    return [m for m in metrics if everything or resolve(m)[m].per_item is not None]
