"""A cell of the study: some runs of one method on one set, as means over the classifiers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fewlabels as fl
from bench.experiment import shown
from bench.splits import generator, seed_of
from study.sets import MADE, METRICS, REAL, StudySet, load
from study.statistics import interval_score

DEFAULT, REFERENCE, PUBLISHED = "auto", "labeled", "ssme-kde"
"""The method that is judged, the labels alone, and the published method that it must beat."""

METHODS = (DEFAULT, REFERENCE, PUBLISHED, "tempered-ensemble")
LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Probabilities that intervals are meant to hold the truth with."""

FIGURES = (
    "error", "bias", "failed",
    *(f"{what}_{level:g}" for what in ("coverage", "width", "score") for level in LEVELS),
)  # fmt: skip
PLACE = ["set", "n_labeled", "n_unlabeled"]
N_LABELED, UNLABELED = (0, 5, 10, 20, 50, 100), 1000
RUNS, BLOCK = 200, 5

Cell = dict[str, Any]


def cells(
    sets: Sequence[str], methods: Sequence[str], n_labeled: Sequence[int], n_unlabeled: int,
    runs: int, seed: int,
) -> Iterator[Cell]:  # fmt: skip
    """Block after block of runs: a stop at any time leaves all sets with about equally many."""
    for start, name, n, method in product(range(0, runs, BLOCK), sets, n_labeled, methods):
        yield {
            "set": name, "n_labeled": n, "n_unlabeled": n_unlabeled, "method": method,
            "start": start, "stop": min(start + BLOCK, runs), "seed": seed,
        }  # fmt: skip


def run_cell(cell: Cell, data: Path) -> Cell:
    """The facts of the set and, of every run, `FIGURES`, seconds, and why there is no answer."""
    chosen = load(cell["set"], data)
    runs = [_one(chosen, cell, run) for run in range(cell["start"], cell["stop"])]
    return {"facts": chosen.facts(), "runs": runs}


def unlabeled_of(n_unlabeled: int, n_items: int) -> int:
    """At most half of the items, so that there is something to draw."""
    return min(n_unlabeled, n_items // 2)


def items_of(
    chosen: StudySet, n_labeled: int, n_unlabeled: int, run: int, seed: int
) -> tuple[fl.Predictions, np.ndarray]:
    """Items of a run with all labels, the same for every method, and which have one.

    Both are drawn at random: no class is forced to have a label.
    """
    rng = generator("items", seed, chosen.name, n_labeled, n_unlabeled, run)
    n = n_labeled + n_unlabeled
    rows = rng.choice(chosen.predictions.n_items, n, replace=False)
    return chosen.predictions.take(rows), np.arange(n) < n_labeled


def method_for(name: str, family: str, items: fl.Predictions) -> fl.models.LabelModel:
    """The label model of a name; its learned prior is the one without the set's family."""
    model = fl.models.resolve(name, items)[1]
    if family and isinstance(model, fl.models.LearnedEnsemble):
        return replace(model, left_out=family)
    return model


def _one(chosen: StudySet, cell: Cell, run: int) -> dict[str, Any]:
    n_unlabeled = unlabeled_of(cell["n_unlabeled"], chosen.predictions.n_items)
    items, labeled = items_of(chosen, cell["n_labeled"], n_unlabeled, run, cell["seed"])
    # Methods share it: what is alike in two of them is drawn alike, and falls out of the pair.
    seed = seed_of("fit", cell["seed"], chosen.name, cell["n_labeled"], n_unlabeled, run)
    started, message = time.perf_counter(), ""
    ask = partial(fl.estimate, metrics=list(METRICS), confidence_level=max(LEVELS))
    try:
        asked = shown(method_for(cell["method"], chosen.family, items), items, labeled)
        values = figures(ask(*asked, random_state=seed, workers=1), chosen.truth)
    except MemoryError:
        raise
    except Exception as error:  # a study outlives a method's failure and records it
        kind = "" if isinstance(error, fl.FewlabelsError) else f"{type(error).__name__}: "
        message = " ".join(f"{kind}{error}".split())
        values = np.full((len(FIGURES), len(METRICS)), np.nan)
        values[FIGURES.index("failed")] = 1.0
    return {
        "run": run, "seconds": None if message else time.perf_counter() - started,
        "message": message,
        # Seven digits are more than runs can tell.
        "values": [[float(f"{v:.7g}") if np.isfinite(v) else None for v in row] for row in values],
    }  # fmt: skip


def figures(found: fl.Estimates, truth: np.ndarray) -> np.ndarray:
    """What `FIGURES` names, (figures, metrics), as means over the classifiers.

    Error is that of the value, absolute; bias is with its sign; failed the share of classifiers
    without a value or interval, which take no part in the others. A classifier whose metric is
    undefined on all items (`truth`, (M, metrics)) takes no part in any.
    """
    shape = (len(found.models), len(METRICS))
    value = np.array([r.value for r in found.rows]).reshape(shape)
    tails = [(1 + side * level) / 2 for side in (-1, 1) for level in LEVELS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where a metric has no draws: NaN
        ends = [np.nanquantile(found.draws[metric, None], tails, axis=0) for metric in METRICS]
    bounds = zip(*(m.bounds for m in fl.metrics.resolve(list(METRICS)).values()), strict=True)
    low, high = np.stack(ends, axis=2).clip(*bounds).reshape(2, len(LEVELS), *shape)
    low, high = np.minimum(low, value), np.maximum(high, value)
    defined = np.isfinite(truth)
    good = defined & np.isfinite([value, *low, *high]).all(axis=0)
    each = {
        "error": (np.abs(value - truth), good), "bias": (value - truth, good),
        "failed": (1.0 - good, defined),
    }  # fmt: skip
    for k, level in enumerate(LEVELS):
        held = (low[k] <= truth) & (truth <= high[k])
        each[f"coverage_{level:g}"] = held, good
        each[f"width_{level:g}"] = high[k] - low[k], good
        each[f"score_{level:g}"] = interval_score(low[k], high[k], truth, level), good
    out = []
    for values, rows in (each[name] for name in FIGURES):
        count, total = rows.sum(axis=0), np.where(rows, values, 0.0).sum(axis=0)
        out.append(np.where(count > 0, total / np.maximum(count, 1), np.nan))
    return np.array(out)


def table(lines: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A row per set, sizes, method, run and metric, in the order of the sets and sizes."""
    order = {name: k for k, name in enumerate([*REAL, *MADE])}
    runs = pd.DataFrame([
        {**{name: line[name] for name in ("set", "n_labeled", "method")}, "run": one["run"],
         "n_unlabeled": unlabeled_of(line["n_unlabeled"], line["facts"]["n_items"]),
         "family": line["facts"]["family"], "seconds": one["seconds"],
         "message": one["message"], "values": one["values"]}
        for line in lines for one in line["runs"]
    ])  # fmt: skip
    # Of a block that was made longer the last line counts.
    runs = runs.drop_duplicates([*PLACE, "method", "run"], keep="last")
    runs = runs.assign(order=runs["set"].map(lambda name: order.get(name, len(order))))
    runs = runs.sort_values(["order", *PLACE, "run"], kind="stable")
    values = np.array(runs.pop("values").tolist(), dtype=float)  # (runs, figures, metrics)
    rows = runs.drop(columns="order").iloc[np.repeat(np.arange(len(runs)), len(METRICS))]
    rows = rows.reset_index(drop=True).assign(metric=np.tile(METRICS, len(runs)))
    long = pd.DataFrame(values.transpose(0, 2, 1).reshape(-1, len(FIGURES)), columns=FIGURES)
    return pd.concat([rows, long], axis=1)
