"""Tidy results to what the report shows: tables over the runs, and reliability diagrams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from fewlabels import __version__
from fewlabels.bench.disagreement.protocol import (
    BIN,
    BINS,
    ONE_NUMBER,
    PROTOCOL,
    RELIABILITY,
)
from fewlabels.bench.protocol import Protocol
from fewlabels.bench.results import DatasetFacts, Results
from fewlabels.bench.summary_cells import spread
from fewlabels.bench.summary_command import command
from fewlabels.bench.summary_errors import failures
from fewlabels.kernels.arrays import Array

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "losses": ("L", "EL", "CL", "CE", "accuracy"),
    "disagreement": ("L_disagreement", "CE_disagreement"),
    "updates": ("prior_EL", "posterior_EL"),
}
"""Kind of table -> its metrics, in their order."""

PERFECT = "perfect calibration"
_DRAWN = ("raw", "temperature", "raw+alpha-constant", "temperature+alpha-features")
"""Methods of the diagrams; where one has not run, the others are drawn."""

_LARGER = ("accuracy",)
_SIGNIFICANT = 1e-12
"""Equal to the last bits but one: methods that leave probabilities as they are."""

_OPTIONS = {
    "methods": "methods", "n_labeled": "labels_per_item", "runs": "runs", "seed": "seed",
}  # fmt: skip
_SHOWN = ("dataset", "n_labeled", "metric", "group")
_Values = dict[tuple[Any, ...], dict[tuple[str, str], list[float]]]
"""What `_SHOWN` names -> method and classifier -> estimate of every run."""


def summarise(results: Results) -> dict[str, Any]:
    """Everything that the report shows, as plain JSON values; unknown numbers are None.

    `tables` hold, by data set, labels per item and metric, one row per method and one cell per
    classifier: mean and standard deviation over the runs, and whether no other method is better.
    `figures` are reliability diagrams of the predicted disagreement, a panel per classifier.
    """
    protocol = results.protocol
    columns = results.columns
    values = _grouped(columns)
    return {
        "fewlabels": __version__,
        "protocol": protocol.plain(),
        "command": command(results, PROTOCOL, _OPTIONS, getattr),
        "datasets": [d.plain() for d in results.datasets],
        "metrics": {},
        "methods": [
            *({"name": m, "floor": False} for m in protocol.methods),
            {"name": PERFECT, "floor": True},
        ],
        "reference": "raw",
        "tables": list(_tables(values, protocol, results.datasets)),
        "figures": list(_figures(values, protocol, results.datasets)),
        "failures": failures(columns),
        "skipped": list(results.skipped),
    }


def _grouped(columns: Mapping[str, Array]) -> _Values:
    """Estimates of the runs by what a table or a bin shows, and by its row and column."""
    found: _Values = defaultdict(lambda: defaultdict(list))
    names = (*_SHOWN, "method", "model", "estimate")
    for *shown, method, model, estimate in zip(*(columns[n] for n in names), strict=True):
        found[tuple(shown)][method, model].append(estimate)
    return found


def _tables(
    values: _Values, protocol: Protocol, datasets: Sequence[DatasetFacts]
) -> Iterator[dict[str, Any]]:
    for dataset, (kind, metrics), size in product(datasets, SECTIONS.items(), protocol.n_labeled):
        for metric in metrics:
            own = values.get((dataset.name, size, metric, ""))
            if own:
                place = {"kind": kind, "dataset": dataset.name, "n_labeled": size}
                yield place | {"metric": metric} | _table(own, protocol.methods, metric, dataset)


def _table(
    own: Mapping[tuple[str, str], list[float]],
    methods: Sequence[str],
    metric: str,
    dataset: DatasetFacts,
) -> dict[str, Any]:
    """Rows of methods that have the metric, cells of classifiers and of what is made of them."""
    there = {model for _, model in own}
    others = sorted(there - set(dataset.models), reverse=True)
    models = [m for m in dataset.models if m in there] + others
    methods = [method for method in methods if any(method == known for known, _ in own)]
    cells = [[_cell(own.get((method, m), [])) for m in models] for method in methods]
    best = _best(cells, methods, metric)
    return {
        "models": models,
        "larger_is_better": metric in _LARGER,
        "rows": [
            {"method": method, "cells": [c | {"best": b} for c, b in zip(row, marks, strict=True)]}
            for method, row, marks in zip(methods, cells, best, strict=True)
        ],
    }


def _cell(values: Sequence[float]) -> dict[str, Any]:
    """Mean and sd (ddof 1) over the runs, where none of them lacks a value."""
    found = spread(np.asarray(values, dtype=float))
    if found["n_runs"] < len(values):
        found |= {"mean": None, "sd": None}
    return {name: found[name] for name in ("mean", "sd", "n_runs")}


def _best(
    cells: Sequence[Sequence[Mapping[str, Any]]], methods: Sequence[str], metric: str
) -> list[list[bool]]:
    """Whether the mean of a method is the best of its column; where two have one at least.

    One number for all items has no calibration error to speak of, and takes no part in that.
    """
    sign = -1.0 if metric in _LARGER else 1.0
    table = np.array([[cell["mean"] for cell in row] for row in cells], dtype=float)
    table = np.where(np.isfinite(table), sign * table, np.inf)
    if metric == "CE_disagreement":
        table[[method == ONE_NUMBER for method in methods]] = np.inf
    contested = np.isfinite(table).sum(axis=0) > 1
    best: list[list[bool]] = (
        contested & np.isfinite(table) & (table <= table.min(axis=0) + _SIGNIFICANT)
    ).tolist()
    return best


# --- figures --------------------------------------------------------------------------------------


def _figures(
    values: _Values, protocol: Protocol, datasets: Sequence[DatasetFacts]
) -> Iterator[dict[str, Any]]:
    drawn = [m for m in _DRAWN if m in protocol.methods] or list(protocol.methods[:4])
    for dataset, size in product(datasets, protocol.n_labeled):
        panels = [
            {"metric": model, "level": "", "series": series, "marks": []}
            for model in dataset.models
            if (series := _series(values, (dataset.name, size), model, drawn))
        ]
        if panels:
            yield {
                "kind": "reliability", "dataset": dataset.name, "level": "", "n_labeled": size,
                "n_unlabeled": None, "factor": "", "levels": None,
                "x": "predicted_disagreement", "panels": panels,
            }  # fmt: skip


def _series(
    values: _Values, place: tuple[str, int], model: str, methods: Sequence[str]
) -> list[dict[str, Any]]:
    by_method = {m: _points(values, place, (m, model)) for m in methods}
    found = [{"method": method, "points": points} for method, points in by_method.items() if points]
    if found:
        farthest = max(p["x"] for points in by_method.values() for p in points)
        line = [{"x": v, "y": v, "se": None} for v in (0.0, farthest)]
        found.append({"method": PERFECT, "points": line})
    return found


def _points(values: _Values, place: tuple[str, int], cell: tuple[str, str]) -> list[dict[str, Any]]:
    """Mean predicted and observed disagreement of each bin over the runs, weighted by its share.

    The standard error is that over the runs.
    """
    points = []
    for group in (f"{BIN}={k + 1}" for k in range(BINS)):
        x, y, share = (
            np.asarray(values.get((*place, metric, group), {}).get(cell, []), dtype=float)
            for metric in RELIABILITY
        )
        if not len(x) or len(x) != len(y) or not np.isfinite([*x, *y]).all():
            continue
        weight = share / share.sum()
        points.append({"x": float(weight @ x), "y": float(weight @ y), "se": spread(y)["se"]})
    return sorted(points, key=lambda p: p["x"])
