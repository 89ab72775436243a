"""Made-up results of a benchmark, a row at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bench.protocol import Protocol
from bench.results import COLUMNS, TRAITS, Results
from bench.world import DatasetFacts

METHODS = ("labeled", "ensemble", "ssme-kde")
FLOOR = "all-labels-known"
Row = dict[str, Any]


def row(method: str, run: int, error: float, **changes: Any) -> Row:
    """One estimate, `error` above a truth of .5; 20 labels unless said otherwise."""
    plain = {
        "dataset": "d", "factor": "", "level": "", "method": method, "n_labeled": 20,
        "n_unlabeled": 1000, "run": run, "model": "m", "metric": "accuracy", "group": "",
        "low": np.nan, "high": np.nan, "truth": 0.5, "status": "ok", "message": "", "seconds": 0.25,
    }  # fmt: skip
    found = plain | changes
    return {"estimate": found["truth"] + error} | found


def failed(method: str, run: int, message: str, status: str = "failed", **changes: Any) -> Row:
    nothing = {"model": "", "metric": "", "truth": np.nan, "status": status, "message": message}
    return row(method, run, np.nan, **nothing, **changes)


def on_the_curve(dataset: str = "d") -> list[Row]:
    """Errors of 40, 20 and 10 points at 10, 20 and 40 labels."""
    return [
        row("labeled", r, sign * 4 / n, factor="curve", n_labeled=n, n_unlabeled=0, dataset=dataset)
        for n in (10, 20, 40)
        for r, sign in enumerate((1, -1))
    ]


def results(rows: Sequence[Row], traits: Iterable[tuple[Any, ...]] = (), **changes: Any) -> Results:
    options: dict[str, Any] = {
        "name": "p", "title": "A protocol", "methods": METHODS, "metrics": ("accuracy",),
        "n_labeled": (20,), "n_unlabeled": (1000,), "runs": 3,
    }  # fmt: skip
    names = dict.fromkeys(r["dataset"] for r in rows)
    models = tuple(sorted({r["model"] for r in rows} - {""}))
    return Results(
        Protocol(**(options | changes)),
        tuple(DatasetFacts(name, 500, 250, models, ("0", "1"), ("a note",), "0") for name in names),
        pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS),
        pd.DataFrame(list(traits), columns=list(TRAITS)).astype(TRAITS),
        ("x.csv: no column of predictions",),
    )
