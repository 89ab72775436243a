"""Method: what a label model is called, and what people should know before they use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from fewlabels.models.base import LabelModel


@dataclass(frozen=True)
class Method:
    """A method's name, how to make it, and what people should know before they use it.

    `exempt` maps a property that the contract tests hold every method to ("items",
    "classes", "simplex", "clamped") to the reason why this one lacks it; `diagnostics` says in
    words what its diagnostics mean. `serves` says whether metrics that are not means over items
    are defined; `learns_from`, what of a classifier it uses; `needs`, without what of the data
    there is nothing to be had but an error. `chosen_by_score` says whether the items to label may
    be picked by their scores instead of at random, and why; `counts_rows`, whether it counts how
    many items a row stands for (`Predictions.multiplicity`). `streams` says what becomes of rows
    that do not fit into memory: the fitted model applies to any "rows", or all comes from the
    labeled ones and a "sample" of the others. `guarded` says whether answers move to what labels
    say where these speak against them (`evaluation/guard.py`): so it is for what "auto" chooses; a
    paper's method keeps its own.
    """

    name: str
    make: Callable[[], LabelModel]
    summary: str
    how: str
    assumes: tuple[str, ...]
    fails_when: tuple[str, ...]
    source: str
    diagnostics: Mapping[str, str] = field(default_factory=dict)
    serves: Literal["all metrics", "means"] = "all metrics"
    learns_from: Literal["probabilities", "hard predictions", "scores", "everything"] = (
        "probabilities"
    )
    needs: frozenset[Literal["labels", "two classes"]] = frozenset()
    chosen_by_score: str = "no: it takes the labeled items for a random sample"
    counts_rows: bool = False
    streams: Literal["rows", "sample"] = "rows"
    guarded: bool = False
    exempt: Mapping[str, str] = field(default_factory=dict)
