"""What a benchmark computes: facts of a data set, and cells, the least that is kept and resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fewlabels.errors import FewlabelsError, one_line
from fewlabels.kernels.arrays import Floats

Body = dict[str, Any]
"""What a cell found, as plain JSON values; see `body_of`."""

FAILED = "failed"


@dataclass(frozen=True)
class DatasetFacts:
    """What ran: sizes, classifiers and classes of a data set, and what to know of it.

    n_half is how many items a run draws from.
    """

    name: str
    n_items: int
    n_half: int
    models: tuple[str, ...]
    classes: tuple[Any, ...]
    groups: tuple[str, ...]
    notes: tuple[str, ...]
    file: str
    digest: str

    def plain(self) -> dict[str, Any]:
        """Every field as plain JSON values."""
        return {
            "name": self.name,
            "n_items": self.n_items,
            "n_half": self.n_half,
            "models": list(self.models),
            "classes": [c if isinstance(c, int | float) else str(c) for c in self.classes],
            "groups": list(self.groups),
            "notes": list(self.notes),
            "file": self.file,
            "digest": self.digest,
        }

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> DatasetFacts:
        """The inverse of `plain`."""
        lists = ("models", "classes", "groups", "notes")
        values: dict[str, Any] = {k: tuple(v) if k in lists else v for k, v in said.items()}
        return cls(**values)


class Cell(NamedTuple):
    """What is computed at once.

    kind is "estimates" (one method on one split), "truth" (the other half of a run), "curve" (all
    draws of one size of the labeled-only curve) or "traits" (of a data set). What does not apply
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


def body_of(
    models: Sequence[str] = (),
    metrics: Sequence[str] = (),
    groups: Sequence[str] = (),
    runs: Sequence[int] = (),
    estimates: Floats | None = None,
    *,
    low: Floats | None = None,
    high: Floats | None = None,
    status: Any = (),
    message: str = "",
    seconds: Sequence[float] = (),
    traits: Sequence[tuple[str, int, str, float]] = (),
) -> Body:
    """Axes, and values (runs, groups, M, metrics) as flat lists; NaN is None.

    A cell that gave nothing has no models, one run, a `status` and a `message`.
    """
    return {
        "models": list(models),
        "metrics": list(metrics),
        "groups": list(groups),
        "runs": list(runs),
        "estimate": _plain(estimates),
        "low": _plain(low),
        "high": _plain(high),
        "status": status if isinstance(status, str) else np.ravel(status).tolist(),
        "message": message,
        "seconds": list(seconds),
        "traits": [[*trait[:3], *(_plain(np.array([trait[3]])) or [])] for trait in traits],
    }


def failure(status: str, error: Exception, run: int) -> Body:
    """What a cell found that could not be computed."""
    said = str(error) if isinstance(error, FewlabelsError) else f"{type(error).__name__}: {error}"
    return body_of(runs=[run], status=str(status), message=one_line(said), seconds=[0.0])


def _plain(values: Floats | None) -> list[float | None] | None:
    if values is None:
        return None
    flat = np.ravel(values)
    known = np.isfinite(flat)
    return [v if k else None for v, k in zip(flat.tolist(), known.tolist(), strict=True)]
