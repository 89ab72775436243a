"""Tidy results to the plain dictionary that reports render: tables and figures of the papers."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from fewlabels import __version__
from fewlabels.bench.comparisons import LEVEL, RESAMPLES, ResultTable, failures, rank, scale
from fewlabels.bench.folder import MANIFEST
from fewlabels.bench.protocol import (
    FLOOR,
    HISTOGRAM_OPTIONS,
    HISTOGRAMS,
    REFERENCE,
    Protocol,
    load,
    names,
)
from fewlabels.bench.tables import figures, tables
from fewlabels.errors import UsageError, one_line, unknown
from fewlabels.methods.settings import canonical
from fewlabels.metrics.registry import ALIASES, METRICS

if TYPE_CHECKING:
    from fewlabels.bench.results import Results

TABLES = ("methods", "classifiers", "groups", "levels", "effective-sizes", "correlation")
"""What `tables` of a protocol may name; several data sets get an overview besides."""

FIGURES = (
    "error-by-labels",
    "error-by-accuracy",
    "error-by-calibration",
    "error-by-level",
    "labeled-curve",
    "error-by-correlation",
)
"""What `figures` of a protocol may name.

The traits that they are drawn over are "mean_accuracy", "mean_ece" and "error_correlation", of a
level and a run or (run -1) of a whole level. The table of pairs shows each trait of a level
"A+B" that names two classifiers of the data set.
"""

_TRENDS = frozenset({"error-by-accuracy", "error-by-calibration", "error-by-correlation"})


def summarise(results: Results) -> dict[str, Any]:
    """Everything that the report of a benchmark shows, as plain JSON values.

    Errors are averaged over the classifiers within a run, then over runs; they are in percentage
    points for metrics between 0 and 1 (`metrics[name]["unit"]`). A run in which the error of some
    classifier is unknown counts as missing, with the reason. `cells` holds one entry per data
    set, level, n_labeled, n_unlabeled, metric, group and method; `tables` lay the same cells out
    as rows of methods, and `figures` are panels of series. Unknown numbers are None.

    The order of the rows of the results does not matter.

    Raises
    ------
    UsageError
        If the protocol asks for a table or figure that there is not.
    """
    protocol = results.protocol
    if protocol.design == HISTOGRAMS:
        from fewlabels.bench.disagreement import summarise as of_histograms

        return of_histograms(results)
    check_shown(protocol)
    columns = {name: np.asarray(part) for name, part in results.columns.items()}
    facts = ResultTable(
        columns,
        {name: np.asarray(part) for name, part in results.traits.items()},
        [*(m for m in protocol.methods if m != FLOOR), FLOOR],
        list(protocol.metrics),
        [dataset.name for dataset in results.datasets],
    )
    methods = facts.in_order(m for by_method in facts.cells.values() for m in by_method)
    metrics = sorted({s.metric for s in facts.compared}, key=lambda m: rank(m, protocol.metrics))
    curve_runs = [int(n) for curve in facts.curves.values() for n in curve.runs]
    return described(results) | {
        "metrics": {metric: _metric(metric) for metric in metrics},
        "datasets": [
            d.plain()
            | {"prevalence": facts.traits_of.get((d.name, "prevalence"), {}).get(("", -1))}
            for d in results.datasets
        ],
        "methods": [{"name": m, "floor": m == FLOOR} for m in methods],
        "reference": REFERENCE,
        "level": LEVEL,
        "resamples": RESAMPLES,
        "runs": max((len(c.runs) for c in facts.compared.values()), default=0),
        "glance": _glance(facts, methods),
        "cells": [
            {k: v for k, v in setting._asdict().items() if k != "model"} | {"method": m} | by[m]
            for setting, by in facts.cells.items()
            for m in facts.in_order(by)
        ],
        "tables": list(_tables(facts, protocol.tables, protocol.figures)),
        "figures": [f for kind in protocol.figures for f in figures(facts, kind)],
        # Fewest and most samples behind a point of the curves; empty without a curve.
        "curve_runs": [min(curve_runs), max(curve_runs)] if curve_runs else [],
    }


def described(results: Results) -> dict[str, Any]:
    """What the summaries of all protocols have: what ran, how to ask for it again, what failed."""
    return {
        "fewlabels": __version__,
        "protocol": results.protocol.plain(),
        "command": command(results),
        "datasets": [d.plain() for d in results.datasets],
        "failures": failures(results.columns),
        "skipped": list(results.skipped),
    }


def check_shown(protocol: Protocol) -> None:
    """Refuse tables and figures that there are not.

    Raises
    ------
    UsageError
        Naming the first of them.
    """
    shown = (("table", protocol.tables, TABLES), ("figure", protocol.figures, FIGURES))
    for kind, asked, known in shown:
        for name in asked:
            if name not in known:
                raise UsageError(unknown(kind, name, known))


def _tables(
    facts: ResultTable, wanted: Sequence[str], drawn: Sequence[str]
) -> Iterator[dict[str, Any]]:
    last = "methods" if "methods" in wanted else next(iter(wanted), "")
    for kind in wanted:
        if kind == "methods":
            yield from tables(facts, "overview")
        if kind == "groups":
            yield from tables(facts, "group-ratios")
        yield from tables(facts, kind)
        if kind == last:
            yield from tables(facts, "intervals")
    if "correlation" not in wanted and _TRENDS & set(drawn):
        yield from tables(facts, "associations")


def _glance(facts: ResultTable, methods: Sequence[str]) -> list[dict[str, Any]]:
    """Each method over all columns: how often no other is better, and the mean ratio to Labeled.

    n_contested of the n_columns are those in which at least two methods have a value: in the
    others nobody is best. Ratios are averaged as logarithms, so that halving and doubling cancel;
    n_ratios says over how many columns.
    """
    found = []
    contested = sum(any(c["best"] for c in by.values()) for by in facts.cells.values())
    for method in methods:
        parts = [by_method[method] for by_method in facts.cells.values() if method in by_method]
        ratios = [p["rmae"] for p in parts if p["rmae"] is not None and p["rmae"] > 0]
        seconds = [p["seconds"] for p in parts if p["seconds"] is not None]
        found.append(
            {
                "method": method,
                "floor": method == FLOOR,
                "n_best": sum(p["best"] for p in parts),
                "n_contested": contested,
                "n_columns": len(facts.cells),
                "n_known": sum(p["mean"] is not None for p in parts),
                "rmae": math.exp(np.mean(np.log(ratios))) if ratios else None,
                "n_ratios": len(ratios),
                "seconds": float(np.mean(seconds)) if seconds else None,
            }
        )
    return found


def _metric(name: str) -> dict[str, Any]:
    known = METRICS.get(ALIASES.get(name, name))
    return {
        "description": known.description if known else "",
        "direction": known.direction if known else 0,
        "unit": "points" if scale(name) != 1 else "",
    }


# --- the command ------------------------------------------------------------------------------

_FIELDS = (
    "runs", "methods", "metrics", "n_labeled", "n_unlabeled", "sampler", "seed", "estimand",
    "confidence_level", "levels", "curve_runs", "by", "slice_by", "train_rows", "truth_rows",
)  # fmt: skip
"""Fields of a protocol that have an option of their own, in the order of the command's help."""

_HISTOGRAM_FIELDS = ("methods", "n_labeled", "runs", "seed")


def command(results: Results) -> str:
    """`fewlabels benchmark NAME --data ...` with the options in which the run left its protocol.

    Files and folders are named without the folders that they are in. Of a protocol that does not
    come with the package only the name and the data are known.
    """
    protocol = results.protocol
    try:
        text = (results.folder / MANIFEST).read_bytes() if results.folder is not None else b"{}"
        manifest = json.loads(text)
    except (OSError, ValueError):
        manifest = {}
    manifest = manifest if isinstance(manifest, dict) else {}
    shipped = load(protocol.name) if protocol.name in names() else None
    words = ["fewlabels", "benchmark", protocol.name if shipped else f"{protocol.name}.toml"]
    for place in manifest.get("data") or [d.file for d in results.datasets]:
        words += ["--data", PurePath(str(place)).name]
    if shipped:
        words += _changes(shipped, protocol)
    words += _reading(manifest.get("reading") or {})
    return one_line(shlex.join(words))


def _changes(shipped: Protocol, ran: Protocol) -> Iterator[str]:
    histograms = ran.design == HISTOGRAMS
    options = {field: option for option, field in HISTOGRAM_OPTIONS.items() if histograms}
    for field in _HISTOGRAM_FIELDS if histograms else _FIELDS:
        before, now = getattr(shipped, field), getattr(ran, field)
        if field == "methods" and not histograms:
            # As it runs: with the labels alone, and without the floor.
            before = tuple(map(canonical, before))
            now = tuple(m for m in now if m != FLOOR)
            now = now if REFERENCE in now else (REFERENCE, *now)
        elif field == "levels" and ran.factor == "subset":
            continue  # they are made
        elif field == "estimand" and ran.confidence_level is not None and ran.factor != "labels":
            before = None  # a confidence level brings an estimand of its own unless one is named
        if now != before and now is not None:
            yield from (f"--{options.get(field, field).replace('_', '-')}", _written(now))
    for column, edges in ran.bins.items():
        if shipped.bins.get(column) != edges:
            yield from ("--bins", f"{column}={_written(edges)}")


def _reading(said: Mapping[str, Any]) -> Iterator[str]:
    for field in ("models", "exclude_models"):
        if said.get(field):
            yield from (f"--{field.replace('_', '-')}", _written(said[field]))
    for column, value in (said.get("where") or {}).items():
        yield from ("--where", f"{column}={value}")
    for field, value in (said.get("columns") or {}).items():
        if field == "models":
            for model, columns in value.items():
                yield from ("--model", f"{model}={_written(columns)}")
        else:
            written = PurePath(value).name if field == "columns" else _written(value)
            yield from (f"--{field}", written)


def _written(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
