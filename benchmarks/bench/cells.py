"""What a benchmark computes: cells, the least that is kept and resumed, and facts of a data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

Body = dict[str, Any]
"""What a cell found: `rows` with the values of `ROW`, and `traits` (level, run, name, value).

`runs.run_jobs` puts its `seconds` beside them.
"""

ROW = ("run", "group", "model", "metric", "estimate", "low", "high", "status", "message")
FAILED = "failed"


@dataclass(frozen=True)
class DatasetFacts:
    """Sizes, classifiers and classes of a data set, and what to know of it.

    `n_half` is how many items a run draws from; `digest` is of all that results depend on.
    """

    name: str
    n_items: int
    n_half: int
    models: tuple[str, ...]
    classes: tuple[Any, ...]
    notes: tuple[str, ...]
    digest: str


class Cell(NamedTuple):
    """What is computed at once.

    kind is "estimates" (one method on one split), "truth" (the other half of a run), "curve" (all
    draws of one size of the labels-only curve) or "traits" (of a data set). What does not apply
    is "", 0, or -1 for the run.
    """

    kind: str
    dataset: str
    level: str = ""
    n_labeled: int = 0
    n_unlabeled: int = 0
    run: int = -1
    method: str = ""


Job = tuple[Cell, ...]
"""Cells that share a split, computed one after another by one worker."""


def failure(status: str, error: Exception, run: int) -> Body:
    """What a cell found that could not be computed: one row without a classifier."""
    kind = type(error)
    text = str(error) if kind.__module__.startswith("fewlabels") else f"{kind.__name__}: {error}"
    nan = float("nan")
    row = [run, "", "", "", nan, nan, nan, str(status), " ".join(text.split())[:300]]
    return {"rows": [row], "traits": []}
