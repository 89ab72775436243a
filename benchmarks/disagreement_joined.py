"""`estimate` where annotators differ: against the distribution of their labels, which is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fewlabels as fl
from bench.splits import generator
from disagreement_data import CIFAR, MNIST, SEED, Floats, truth, world
from parts import Part, Plan, Record, Some, crossed
from runs import averaged, grouped, plus_minus, where

RUNS, ITEMS, LEVEL = 25, 2000, 0.9
METRICS = ("accuracy", "brier", "ece")
SOME = {"50 x 5, 30 x 1": (50, 5, 30), "200 x 3": (200, 3, 0), "30 x 10": (30, 10, 0)}
"""Items with several labels, how many, and items with one."""

WAYS = {
    "auto": ("auto", "distribution"),
    "labeled": ("labeled", "distribution"),
    "auto, one class per item": ("auto", "class"),
    "labeled, majority of the labels": ("labeled", "majority"),
}


def _run(data: Path, dataset: str, some: str, run: int) -> list[Record]:
    own = world(data, dataset)
    p = own.probabilities
    q = truth(data) if dataset == MNIST else own.histogram
    q = q / q.sum(axis=1, keepdims=True)
    rng = generator("joined", SEED, dataset, some, run)
    rows = rng.choice(len(q), ITEMS, replace=False)
    several, labels, single = SOME[some]
    size = np.zeros(ITEMS, dtype=int)
    size[:several], size[several : several + single] = labels, 1
    histogram = rng.multinomial(size, q[rows])
    true = {j: _losses(q, p[:, j]) for j in range(p.shape[1])}
    found = []
    for way, (method, against) in WAYS.items():
        given: dict[str, Any] = {"histogram": histogram}
        if against == "majority":
            given = {"labels": np.where(size > 0, histogram.argmax(axis=1), -1)}
        estimates = fl.estimate(
            fl.Predictions(p[rows], models=own.facts.models, **given), method, METRICS,
            confidence_level=LEVEL, against="auto" if against == "majority" else against,
        )  # fmt: skip
        for row in estimates.rows:
            wanted = true[own.facts.models.index(row.model)][row.metric]
            found.append({
                "dataset": dataset, "some": some, "run": run, "way": way, "metric": row.metric,
                "model": row.model, "error": row.value - wanted,
                "holds": row.low <= wanted <= row.high, "width": row.high - row.low,
            })  # fmt: skip
    return found


def _losses(q: Floats, p: Floats) -> dict[str, float]:
    """Accuracy, Brier score and ECE of the top label against the distributions Q of all items."""
    top = p.argmax(axis=1)
    hit, sure = q[np.arange(len(q)), top], p.max(axis=1)
    own = np.digitize(sure, np.linspace(0, 1, 16)[1:-1])
    gaps = [abs((hit - sure)[own == b].sum()) for b in range(15)]
    brier = ((p - q) ** 2).sum(axis=1).mean() + 1 - (q**2).sum(axis=1).mean()
    return {"accuracy": float(hit.mean()), "brier": float(brier), "ece": sum(gaps) / len(q)}


def _blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    def error(own: pd.DataFrame) -> str:
        return plus_minus(own["error"].abs().groupby(own["run"]).mean(), 4)

    figures = {"error": error, "bias": averaged("error", 4), "holds": averaged("holds", 2),
               "width": averaged("width")}  # fmt: skip
    columns = {
        f"{metric}: {name}": where("metric", metric, say)
        for metric in METRICS
        for name, say in figures.items()
    }
    head = ["data", "items x labels", "judged by"]
    return {"joined": grouped(records, ["dataset", "some", "way"], columns, head)}


JOINED = Part(
    crossed(dataset=Some((CIFAR, MNIST), -1), some=tuple(SOME), run=Some(range(RUNS))),
    _run,
    _blocks,
    f"{RUNS} runs of {ITEMS:,} items, seed {SEED}; {LEVEL:.0%} intervals; mean over classifiers, ± "
    "the standard error over runs",
)
