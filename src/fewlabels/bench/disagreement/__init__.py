"""The benchmark of disagreement: how far from the label distribution, and what calibration mends.

Any file with p__ and h__ columns. What happens, in order:

1. `protocol`: what may be set, as a `fewlabels.bench.Protocol` (`n_labeled` are per item).
2. `data`: files become histogram worlds; items without a label, or without every classifier, go.
3. `trial`: what the cells of a run share: the two parts, the labels that are drawn, scaled
   probabilities and fitted concentrations.
4. `cells`: one method on one trial, every classifier of it; kept as `fewlabels.bench.parts`.
5. `runner`: all cells, resumed where they stopped, to the tidy rows of `fewlabels.bench.results`.
6. `summary`: tables and reliability diagrams as a plain dictionary, for `fewlabels.report`.

Traps: calibration maps see the drawn labels of the validation items alone, losses are those of
the test items with all their labels; a label that a posterior was given is taken out of the
histogram that judges it; draws of few labels are the first of the draws of more, so that numbers
of labels are compared on the same votes.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fewlabels.bench.disagreement.runner import run
    from fewlabels.bench.disagreement.summary import summarise

__all__ = ["run", "summarise"]

# Nothing is imported before it is asked for: listing the protocols needs no scikit-learn.
_LAZY = {
    "run": "fewlabels.bench.disagreement.runner",
    "summarise": "fewlabels.bench.disagreement.summary",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'fewlabels.bench.disagreement' has no attribute {name!r}")
