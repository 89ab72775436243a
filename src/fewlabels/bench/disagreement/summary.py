"""Tidy results to what the report shows: tables over the runs, and reliability diagrams."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import PurePath
from typing import Any

import numpy as np

from fewlabels import __version__
from fewlabels.bench.disagreement.protocol import BIN, NAME, ONE_NUMBER, OPTIONS, PROTOCOL
from fewlabels.bench.protocol import Protocol
from fewlabels.bench.results import DatasetFacts, Results
from fewlabels.bench.summary_errors import failures
from fewlabels.kernels.arrays import Array, Floats
from fewlabels.wording import one_line

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
_SIGNIFICANT = (
    1e-12  # Equal to the last bits but one: methods that leave probabilities as they are.
)


def summarise(results: Results) -> dict[str, Any]:
    """Everything that the report shows, as plain JSON values; unknown numbers are None.

    `tables` hold, by data set, labels per item and metric, one row per method and one cell per
    classifier: mean and standard deviation over the runs, and whether no other method is better.
    `figures` are reliability diagrams of the predicted disagreement, a panel per classifier.
    """
    protocol = results.protocol
    columns = {name: np.asarray(part) for name, part in results.columns.items()}
    return {
        "fewlabels": __version__,
        "protocol": protocol.plain(),
        "command": _command(results),
        "datasets": [d.plain() for d in results.datasets],
        "metrics": {},
        "methods": [
            *({"name": m, "floor": False} for m in protocol.methods),
            {"name": PERFECT, "floor": True},
        ],
        "reference": "raw",
        "tables": list(_tables(columns, protocol, results.datasets)),
        "figures": list(_figures(columns, protocol, results.datasets)),
        "failures": failures(columns),
        "skipped": list(results.skipped),
    }


def _tables(
    columns: Mapping[str, Array], protocol: Protocol, datasets: Sequence[DatasetFacts]
) -> Iterator[dict[str, Any]]:
    for dataset in datasets:
        own = columns["dataset"] == dataset.name
        for kind, metrics in SECTIONS.items():
            for size in protocol.n_labeled:
                for metric in metrics:
                    rows = own & (columns["n_labeled"] == size) & (columns["metric"] == metric)
                    rows &= columns["group"] == ""
                    table = _table(columns, rows, protocol.methods, metric, dataset)
                    if table["rows"]:
                        place = {"kind": kind, "dataset": dataset.name, "n_labeled": size}
                        yield place | {"metric": metric} | table


def _table(
    columns: Mapping[str, Array],
    rows: Array,
    methods: Sequence[str],
    metric: str,
    dataset: DatasetFacts,
) -> dict[str, Any]:
    """Rows of methods that have the metric, cells of classifiers and of what is made of them."""
    there = set(columns["model"][rows].tolist())
    others = sorted(there - set(dataset.models), reverse=True)
    models = [m for m in dataset.models if m in there] + others
    values: dict[str, list[Floats]] = {}
    for method in methods:
        of_method = rows & (columns["method"] == method)
        found = [columns["estimate"][of_method & (columns["model"] == m)] for m in models]
        if any(len(v) for v in found):
            values[method] = found
    best = _best(values, metric)
    return {
        "models": models,
        "larger_is_better": metric in _LARGER,
        "rows": [
            {
                "method": method,
                "cells": [_cell(v) | {"best": b} for v, b in zip(found, best[method], strict=True)],
            }
            for method, found in values.items()
        ],
    }


def _cell(values: Floats) -> dict[str, Any]:
    known = values[np.isfinite(values)]
    complete = len(known) and len(known) == len(values)
    return {
        "mean": float(known.mean()) if complete else None,
        "sd": float(known.std(ddof=1)) if complete and len(known) > 1 else None,
        "n_runs": len(known),
    }


def _best(values: Mapping[str, list[Floats]], metric: str) -> dict[str, list[bool]]:
    """Whether the mean of a method is the best of its column; where two have one at least.

    One number for all items has no calibration error to speak of, and takes no part in that.
    """
    sign = -1.0 if metric in _LARGER else 1.0
    table = np.array([[_cell(v)["mean"] for v in found] for found in values.values()], dtype=float)
    table = np.where(np.isfinite(table), sign * table, np.inf)
    if metric == "CE_disagreement":
        table[[k for k, method in enumerate(values) if method == ONE_NUMBER]] = np.inf
    if not table.size:
        return {}
    contested = np.isfinite(table).sum(axis=0) > 1
    least = table.min(axis=0)
    with np.errstate(invalid="ignore"):
        best = contested & np.isfinite(table) & (table <= least + _SIGNIFICANT)
    return dict(zip(values, best.tolist(), strict=True))


# --- figures --------------------------------------------------------------------------------------


def _figures(
    columns: Mapping[str, Array], protocol: Protocol, datasets: Sequence[DatasetFacts]
) -> Iterator[dict[str, Any]]:
    drawn = [m for m in _DRAWN if m in protocol.methods] or list(protocol.methods[:4])
    binned = np.char.startswith(columns["group"].astype(str), f"{BIN}=")
    for dataset in datasets:
        for size in protocol.n_labeled:
            rows = binned & (columns["dataset"] == dataset.name) & (columns["n_labeled"] == size)
            panels = [
                {"metric": model, "level": "", "series": series, "marks": []}
                for model in dataset.models
                if (series := _series(columns, rows & (columns["model"] == model), drawn))
            ]
            if panels:
                yield {
                    "kind": "reliability", "dataset": dataset.name, "level": "",
                    "n_labeled": size, "n_unlabeled": None, "factor": "", "levels": None,
                    "x": "predicted_disagreement", "panels": panels,
                }  # fmt: skip


def _series(
    columns: Mapping[str, Array], rows: Array, methods: Sequence[str]
) -> list[dict[str, Any]]:
    by_method = {m: _points(columns, rows & (columns["method"] == m)) for m in methods}
    found = [{"method": method, "points": points} for method, points in by_method.items() if points]
    if found:
        farthest = max(p["x"] for points in by_method.values() for p in points)
        line = [{"x": v, "y": v, "se": None} for v in (0.0, farthest)]
        found.append({"method": PERFECT, "points": line})
    return found


def _points(columns: Mapping[str, Array], rows: Array) -> list[dict[str, Any]]:
    """Mean predicted and observed disagreement of each bin over the runs, weighted by its share.

    The standard error is that over the runs.
    """
    points = []
    for group in dict.fromkeys(columns["group"][rows].tolist()):
        x, y, share = (
            columns["estimate"][rows & (columns["group"] == group) & (columns["metric"] == metric)]
            for metric in ("predicted_disagreement", "observed_disagreement", "share")
        )
        if not len(x) or len(x) != len(y) or not np.isfinite([*x, *y]).all():
            continue
        weight = share / share.sum()
        runs = len(x)
        se = float(y.std(ddof=1) / np.sqrt(runs)) if runs > 1 else None
        points.append({"x": float(weight @ x), "y": float(weight @ y), "se": se})
    return sorted(points, key=lambda p: p["x"])


# --- the command ----------------------------------------------------------------------------------


def _command(results: Results) -> str:
    """The command that asks for this again, without the folders of the machine that ran it."""
    words = ["fewlabels", "benchmark", NAME]
    for dataset in results.datasets:
        words += ["--data", PurePath(dataset.file).name]
    spelled = {field: option for option, field in OPTIONS.items()}
    for field in (f.name for f in fields(Protocol) if f.name in spelled):
        now = getattr(results.protocol, field)
        if now != getattr(PROTOCOL, field):
            written = ",".join(map(str, now)) if isinstance(now, tuple) else str(now)
            words += [f"--{spelled[field].replace('_', '-')}", written]
    return one_line(shlex.join(words))
