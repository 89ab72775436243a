"""The tables of a summary: settings side by side, one row per method, the floor last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fewlabels.bench.summary_cells import (
    Cell,
    best,
    cells,
    difference,
    merged_reasons,
    spread,
)
from fewlabels.bench.summary_errors import FLOOR, REFERENCE, Comparison, Setting
from fewlabels.bench.summary_facts import Facts, natural, scale
from fewlabels.bench.summary_trends import associations, pairs_of_classifiers

Table = dict[str, Any]

_NO_RATIO = "there is no ratio to the error of labeled"


def tables(facts: Facts, kind: str) -> Iterator[Table]:
    """All tables of a kind; none where the results have nothing for it."""
    yield from _KINDS[kind](facts)


def _methods(facts: Facts, kind: str = "methods") -> Iterator[Table]:
    """One table per data set, level and metric; columns are numbers of labels."""
    for settings in facts.together(lambda s: s._replace(n_labeled=0), lambda s: not s.group):
        columns = [{"what": "n_labeled", "value": s.n_labeled} for s in settings]
        yield _table(kind, facts, settings, columns, [facts.cells[s] for s in settings])


def _overview(facts: Facts) -> Iterator[Table]:
    """Mean ratio to Labeled over the data sets, where there are several."""
    for settings in facts.together(
        lambda s: s._replace(dataset="", n_labeled=0), lambda s: not s.group
    ):
        sizes = sorted({s.n_labeled for s in settings})
        by_size = [[facts.cells[s] for s in settings if s.n_labeled == n] for n in sizes]
        if len({s.dataset for s in settings}) < 2:
            continue
        columns = [{"what": "n_labeled", "value": n} for n in sizes]
        found = [{m: _mean_ratio(part, m) for m in _names(part)} for part in by_size]
        for column in found:
            _mark_least(column)
        yield _table("overview", facts, settings, columns, found) | {"dataset": None}


def _names(parts: Sequence[dict[str, Cell]]) -> list[str]:
    return list(dict.fromkeys(m for part in parts for m in part))


def _mean_ratio(parts: Sequence[dict[str, Cell]], method: str) -> Cell:
    """Mean over the data sets; reasons count those without a ratio."""
    ratios = [part[method]["rmae"] if method in part else None for part in parts]
    why = [
        dict.fromkeys(part[method]["reasons"] if method in part else (), 1) or {_NO_RATIO: 1}
        for part, found in zip(parts, ratios, strict=True)
        if found is None
    ]
    return {
        **spread(np.asarray([r for r in ratios if r is not None], dtype=float)),
        "n_of": len(parts),
        "over": "data set",
        "reasons": merged_reasons(why),
        "best": False,
    }


def _mark_least(column: dict[str, Cell]) -> None:
    """Data sets are no sample of anything, so the least mean alone is marked."""
    entered = {m: c for m, c in column.items() if m != FLOOR and c["mean"] is not None}
    most = max((c["n_runs"] for c in entered.values()), default=0)
    full = {m: c["mean"] for m, c in entered.items() if c["n_runs"] == most}
    if len(entered) > 1:
        column[min(full, key=lambda m: full[m])]["best"] = True


def _classifiers(facts: Facts) -> Iterator[Table]:
    """One table per data set, level, metric and number of labels; columns are classifiers."""
    by_place: dict[Setting, list[Setting]] = {}
    for setting in facts.by_model:
        by_place.setdefault(setting._replace(model=""), []).append(setting)
    for place, members in by_place.items():
        columns = [{"what": "model", "value": s.model} for s in members]
        found = [cells(facts.by_model[s], None, scale(s.metric)) for s in members]
        mean = {"what": "mean", "value": "mean"}
        table = _table(
            "classifiers", facts, members, [*columns, mean], [*found, facts.cells[place]]
        )
        yield table | {"n_labeled": place.n_labeled}


def _groups(facts: Facts) -> Iterator[Table]:
    """One table per data set, level, grouping, metric and number of labels; columns are groups."""
    for settings in facts.together(
        lambda s: (s._replace(group=""), s.group.partition("=")[0]), lambda s: bool(s.group)
    ):
        grouping = settings[0].group.partition("=")[0]
        columns = [{"what": "group", "value": s.group.partition("=")[2]} for s in settings]
        found = [facts.cells[s] for s in settings]
        mean = {"what": "mean", "value": "mean"}
        table = _table(
            "groups", facts, settings, [*columns, mean], [*found, _mean_of_groups(facts, settings)]
        )
        yield table | {"n_labeled": settings[0].n_labeled, "grouping": grouping}


def _mean_of_groups(facts: Facts, settings: Sequence[Setting]) -> dict[str, Cell]:
    """The mean of the groups' mean errors: small groups count like large ones."""
    methods = facts.in_order(m for s in settings for m in facts.cells[s])
    marks = best(_stacked([facts.compared[s] for s in settings], methods), methods)
    found: dict[str, Cell] = {}
    for method, mark in zip(methods, marks, strict=True):
        parts = [facts.cells[s].get(method) for s in settings]
        known = [p["mean"] for p in parts if p is not None and p["mean"] is not None]
        complete = len(known) == len(settings)
        found[method] = {
            "mean": float(np.mean(known)) if complete else None,
            "sd": None,
            "se": None,
            "n_runs": max((p["n_runs"] for p in parts if p), default=0) if complete else 0,
            "n_of": max((p["n_of"] for p in parts if p), default=0),
            "reasons": {} if complete else {"a group has no error": 1},
            "best": mark and complete,
        }
    if sum(cell["mean"] is not None for m, cell in found.items() if m != FLOOR) < 2:
        found = {m: cell | {"best": False} for m, cell in found.items()}
    labeled = found.get(REFERENCE, {}).get("mean")
    for cell in found.values():
        known_both = labeled and cell["mean"] is not None
        cell["rmae"] = cell["mean"] / labeled if known_both else None
    return found


def _stacked(parts: Sequence[Comparison], methods: Sequence[str]) -> np.ndarray[Any, Any]:
    """Errors (methods, parts, runs) over the union of the runs; NaN where not known."""
    runs = np.unique(np.concatenate([part.runs for part in parts]))
    stacked = np.full((len(methods), len(parts), len(runs)), np.nan)
    for j, part in enumerate(parts):
        at = np.searchsorted(runs, part.runs)
        for k, method in enumerate(methods):
            row = part.of(method)
            if row is not None:
                stacked[k, j, at] = part.errors[row]
    return stacked


def _levels(facts: Facts) -> Iterator[Table]:
    """Levels side by side; of two levels also the paired difference."""
    for settings in facts.together(
        lambda s: s._replace(level=""), lambda s: bool(s.factor) and not s.group
    ):
        settings = sorted(settings, key=lambda s: natural(s.level))
        columns = [{"what": "level", "value": s.level} for s in settings]
        found = [facts.cells[s] for s in settings]
        if len(settings) == 2:
            columns.append({"what": "difference", "value": "difference"})
            found.append(_differences(facts, settings))
        table = _table("levels", facts, settings, columns, found)
        yield table | {"n_labeled": settings[0].n_labeled, "level": ""}


def _differences(facts: Facts, settings: Sequence[Setting]) -> dict[str, Cell]:
    """Second level minus first, run by run."""
    methods = facts.in_order(m for s in settings for m in facts.cells[s])
    errors = _stacked([facts.compared[s] for s in settings], methods) * scale(settings[0].metric)
    return {
        method: {
            **difference(errors[k, 0], errors[k, 1]),
            "signed": True,
            "n_of": errors.shape[2],
            "reasons": {},
            "best": False,
        }
        for k, method in enumerate(methods)
    }


def _effective_sizes(facts: Facts) -> Iterator[Table]:
    """Effective sizes, and the curve that they are read from."""
    for table in _methods(facts, "effective-sizes"):
        curve = facts.curves.get((table["dataset"], table["metric"], ""))
        if curve is not None:
            yield table | {"curve": curve.points(scale(table["metric"]))}


def _intervals(facts: Facts) -> Iterator[Table]:
    """Coverage and width, where a confidence level was asked for; levels are side by side."""
    for settings in facts.together(
        lambda s: s._replace(level="") if s.factor else s._replace(n_labeled=0),
        lambda s: not s.group and s.factor != "subset",
    ):
        what = "level" if settings[0].factor else "n_labeled"
        columns = [{"what": what, "value": getattr(s, what)} for s in settings]
        found = [facts.cells[s] for s in settings]
        if any(c["coverage"] is not None for part in found for c in part.values()):
            table = _table("intervals", facts, settings, columns, found)
            if what == "level":
                table |= {"n_labeled": settings[0].n_labeled, "level": ""}
            yield table


def _correlation(facts: Facts) -> Iterator[Table]:
    """How alike the classifiers are, and how the methods' errors go with it."""
    yield from pairs_of_classifiers(facts)
    yield from _associations(facts)


def _associations(facts: Facts) -> Iterator[Table]:
    """Rank correlation of each method's error with each trait, one table per setting."""
    for settings, columns, found in associations(facts):
        table = _table("associations", facts, settings, columns, found)
        level = "" if settings[0].factor == "subset" else settings[0].level
        yield table | {"n_labeled": settings[0].n_labeled, "level": level}


def _table(
    kind: str,
    facts: Facts,
    settings: Sequence[Setting],
    columns: Sequence[dict[str, Any]],
    found: Sequence[dict[str, Cell]],
) -> Table:
    """Rows of methods over columns of cells; None where a method has no cell."""
    first = settings[0]
    methods = facts.in_order(m for part in found for m in part)
    return {
        "kind": kind,
        "dataset": first.dataset,
        "factor": first.factor,
        "level": first.level,
        "metric": first.metric,
        "n_labeled": None,
        "n_unlabeled": first.n_unlabeled,
        "columns": list(columns),
        "rows": [
            {"method": m, "floor": m == FLOOR, "cells": [part.get(m) for part in found]}
            for m in methods
        ],
    }


_KINDS: dict[str, Callable[[Facts], Iterator[Table]]] = {
    "overview": _overview,
    "methods": _methods,
    "intervals": _intervals,
    "classifiers": _classifiers,
    "groups": _groups,
    "levels": _levels,
    "effective-sizes": _effective_sizes,
    "correlation": _correlation,
    "associations": _associations,
}
