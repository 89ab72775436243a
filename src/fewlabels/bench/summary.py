"""Tidy results to the plain dictionary that reports render: tables and figures of the papers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fewlabels import __version__
from fewlabels.bench.summary_cells import LEVEL, RESAMPLES
from fewlabels.bench.summary_command import command
from fewlabels.bench.summary_errors import FLOOR, REFERENCE, failures
from fewlabels.bench.summary_facts import Facts, scale
from fewlabels.bench.summary_figures import figures
from fewlabels.bench.summary_tables import tables
from fewlabels.errors import UsageError, unknown
from fewlabels.metrics.registry import ALIASES, METRICS

if TYPE_CHECKING:
    from fewlabels.bench.results import DatasetFacts, Results

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
    _check(protocol.tables, TABLES, "table")
    _check(protocol.figures, FIGURES, "figure")
    columns = {name: np.asarray(part) for name, part in results.columns.items()}
    facts = Facts(
        columns,
        {name: np.asarray(part) for name, part in results.traits.items()},
        [*(m for m in protocol.methods if m != FLOOR), FLOOR],
        list(protocol.metrics),
        [dataset.name for dataset in results.datasets],
    )
    laid_out = list(_tables(facts, protocol.tables, protocol.figures))
    return {
        "fewlabels": __version__,
        "protocol": _plain(protocol.plain()),
        "command": command(results),
        "datasets": [_dataset(dataset, facts) for dataset in results.datasets],
        "metrics": {metric: _metric(metric) for metric in _metrics(facts)},
        "methods": [{"name": m, "floor": m == FLOOR} for m in _methods(facts)],
        "reference": REFERENCE,
        "level": LEVEL,
        "resamples": RESAMPLES,
        "runs": max((len(c.runs) for c in facts.compared.values()), default=0),
        "glance": _glance(facts),
        "cells": list(_cells(facts)),
        "tables": laid_out,
        "figures": [f for kind in protocol.figures for f in figures(facts, kind)],
        "curve_runs": _curve_runs(facts),
        "failures": failures(columns),
        "skipped": [str(line) for line in results.skipped],
    }


def _check(asked: Sequence[str], known: Sequence[str], kind: str) -> None:
    for name in asked:
        if name not in known:
            raise UsageError(unknown(kind, name, known))


def _tables(facts: Facts, wanted: Sequence[str], drawn: Sequence[str]) -> Iterator[dict[str, Any]]:
    last = "methods" if "methods" in wanted else next(iter(wanted), "")
    for kind in wanted:
        if kind == "methods":
            yield from tables(facts, "overview")
        yield from tables(facts, kind)
        if kind == last:
            yield from tables(facts, "intervals")
    if "correlation" not in wanted and _TRENDS & set(drawn):
        yield from tables(facts, "associations")


def _cells(facts: Facts) -> Iterator[dict[str, Any]]:
    for setting, by_method in facts.cells.items():
        place = {k: v for k, v in setting._asdict().items() if k != "model"}
        for method in facts.in_order(by_method):
            yield place | {"method": method} | by_method[method]


def _glance(facts: Facts) -> list[dict[str, Any]]:
    """Each method over all columns: how often no other is better, and the mean ratio to Labeled.

    n_contested of the n_columns are those in which at least two methods have a value: in the
    others nobody is best. Ratios are averaged as logarithms, so that halving and doubling cancel;
    n_ratios says over how many columns.
    """
    found = []
    contested = sum(any(c["best"] for c in by.values()) for by in facts.cells.values())
    for method in _methods(facts):
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


def _methods(facts: Facts) -> list[str]:
    return facts.in_order(m for by_method in facts.cells.values() for m in by_method)


def _metrics(facts: Facts) -> list[str]:
    present = {s.metric for s in facts.compared}
    known = [m for m in facts.metrics if m in present]
    return known + sorted(present - set(known))


def _metric(name: str) -> dict[str, Any]:
    known = METRICS.get(ALIASES.get(name, name))
    return {
        "description": known.description if known else "",
        "direction": known.direction if known else 0,
        "unit": "points" if scale(name) != 1 else "",
    }


def _curve_runs(facts: Facts) -> list[int]:
    """Fewest and most samples behind a point of the curves; empty without a curve."""
    runs = [int(n) for curve in facts.curves.values() for n in curve.runs]
    return [min(runs), max(runs)] if runs else []


def _dataset(dataset: DatasetFacts, facts: Facts) -> dict[str, Any]:
    values = facts.traits_of.get((dataset.name, "prevalence"), {})
    plain: dict[str, Any] = _plain(dataset.plain())
    return plain | {"prevalence": values.get(("", -1))}


def _plain(value: Any) -> Any:
    """JSON's own types; what has none is written out."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [_plain(v) for v in value]
    return str(value)
