"""The tables and figures of a summary: settings side by side, one row or series per method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fewlabels.bench.comparisons import (
    CURVE,
    Cell,
    ResultTable,
    Setting,
    best,
    cells,
    natural,
    scale,
    spread,
)
from fewlabels.bench.protocol import FLOOR, LABELS, REFERENCE
from fewlabels.kernels.arrays import Floats

Table = dict[str, Any]
Column = tuple[str, Any, dict[str, Cell]]
"""What the columns of a table differ in, its value, and the cell of each method."""

_NO_RATIO = "there is no ratio to the error of labeled"


def tables(facts: ResultTable, kind: str) -> Iterator[Table]:
    """All tables of a kind; none where the results have nothing for it."""
    yield from _TABLES[kind](facts)


def _methods(facts: ResultTable, kind: str = "methods") -> Iterator[Table]:
    """One table per data set, level and metric; columns are numbers of labels."""
    for settings in facts.together(lambda s: s._replace(n_labeled=0), lambda s: not s.group):
        yield _table(kind, facts, settings, _side_by_side(facts, settings, "n_labeled"))


def _overview(facts: ResultTable) -> Iterator[Table]:
    """Mean ratio to Labeled over the data sets, where there are several."""
    for settings in facts.together(
        lambda s: s._replace(dataset="", n_labeled=0), lambda s: not s.group
    ):
        if len({s.dataset for s in settings}) < 2:
            continue
        columns: list[Column] = []
        for size in sorted({s.n_labeled for s in settings}):
            parts = [facts.cells[s] for s in settings if s.n_labeled == size]
            columns.append(("n_labeled", size, _mean_ratios(parts, "data set")))
        yield _table("overview", facts, settings, columns, dataset=None)


def _mean_ratios(parts: Sequence[dict[str, Cell]], over: str) -> dict[str, Cell]:
    """Mean ratio of every method over data sets, or groups and metrics.

    These are no sample of anything, so the least mean alone is marked.
    """
    column = {m: _mean_ratio(parts, m, over) for m in dict.fromkeys(m for p in parts for m in p)}
    entered = {m: c for m, c in column.items() if m != FLOOR and c["mean"] is not None}
    most = max((c["n_runs"] for c in entered.values()), default=0)
    if len(entered) > 1:
        full = [c for c in entered.values() if c["n_runs"] == most]
        min(full, key=lambda c: c["mean"])["best"] = True
    return column


def _mean_ratio(parts: Sequence[dict[str, Cell]], method: str, over: str) -> Cell:
    """Mean over the parts; reasons count those without a ratio."""
    found = [part.get(method, {"rmae": None, "reasons": {}}) for part in parts]
    reasons = Counter(
        reason for c in found if c["rmae"] is None for reason in c["reasons"] or [_NO_RATIO]
    )
    return {
        **spread(np.asarray([c["rmae"] for c in found if c["rmae"] is not None], dtype=float)),
        "n_of": len(parts),
        "over": over,
        "reasons": dict(sorted(reasons.items())),
        "best": False,
    }


def _classifiers(facts: ResultTable) -> Iterator[Table]:
    """One table per data set, level, metric and number of labels; columns are classifiers."""
    by_place: dict[Setting, list[Setting]] = {}
    for setting in facts.by_model:
        by_place.setdefault(setting._replace(model=""), []).append(setting)
    for place, members in by_place.items():
        columns: list[Column] = [
            ("model", s.model, cells(facts.by_model[s], None, scale(s.metric))) for s in members
        ]
        columns.append(("mean", "mean", facts.cells[place]))
        yield _table("classifiers", facts, members, columns, n_labeled=place.n_labeled)


def _groups(facts: ResultTable) -> Iterator[Table]:
    """One table per data set, level, grouping, metric and number of labels; columns are groups."""
    for settings in facts.together(
        lambda s: (s._replace(group=""), s.group.partition("=")[0]), lambda s: bool(s.group)
    ):
        columns: list[Column] = [
            ("group", s.group.partition("=")[2], facts.cells[s]) for s in settings
        ]
        columns.append(("mean", "mean", _mean_of_groups(facts, settings)))
        n_labeled, grouping = settings[0].n_labeled, settings[0].group.partition("=")[0]
        yield _table("groups", facts, settings, columns, n_labeled=n_labeled, grouping=grouping)


def _group_ratios(facts: ResultTable) -> Iterator[Table]:
    """Mean ratio to Labeled over metrics and groups (SSME, Table 2): a column per grouping."""
    for settings in facts.together(
        lambda s: s._replace(group="", metric=""), lambda s: bool(s.group)
    ):
        groupings = dict.fromkeys(s.group.partition("=")[0] for s in settings)
        columns: list[Column] = []
        for grouping in [*groupings, ""]:
            start = f"{grouping}=" if grouping else ""
            parts = [facts.cells[s] for s in settings if s.group.startswith(start)]
            head = ("grouping", grouping) if grouping else ("mean", "all")
            columns.append((*head, _mean_ratios(parts, "cell")))
        n_labeled = settings[0].n_labeled
        yield _table("group-ratios", facts, settings, columns, metric="", n_labeled=n_labeled)


def _mean_of_groups(facts: ResultTable, settings: Sequence[Setting]) -> dict[str, Cell]:
    """The mean of the groups' mean errors: small groups count like large ones."""
    methods = facts.in_order(m for s in settings for m in facts.cells[s])
    marks = best(_stacked(facts, settings, methods), methods)
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


def _stacked(facts: ResultTable, settings: Sequence[Setting], methods: Sequence[str]) -> Floats:
    """Errors (methods, settings, runs) over the union of the runs; NaN where not known."""
    parts = [facts.compared[s] for s in settings]
    runs = np.unique(np.concatenate([part.runs for part in parts]))
    stacked = np.full((len(methods), len(parts), len(runs)), np.nan)
    for j, part in enumerate(parts):
        rows = np.asarray([methods.index(m) for m in part.methods])
        stacked[rows[:, None], j, np.searchsorted(runs, part.runs)] = part.errors
    return stacked


def _levels(facts: ResultTable) -> Iterator[Table]:
    """Levels side by side; of two, or of labels, also the paired difference of the first two."""
    for settings in facts.together(
        lambda s: s._replace(level=""), lambda s: bool(s.factor) and not s.group
    ):
        settings = sorted(settings, key=lambda s: _place_of_level(s))
        columns = _side_by_side(facts, settings, "level")
        if len(settings) == 2 or (len(settings) > 2 and settings[0].factor == "labels"):
            methods = facts.in_order(m for s in settings for m in facts.cells[s])
            errors = _stacked(facts, settings, methods) * scale(settings[0].metric)
            plain = {"signed": True, "n_of": errors.shape[2], "reasons": {}, "best": False}
            paired = {m: spread(e[1] - e[0]) | plain for m, e in zip(methods, errors, strict=True)}
            columns.append(("difference", "difference", paired))
        n_labeled = settings[0].n_labeled
        yield _table("levels", facts, settings, columns, n_labeled=n_labeled, level="")


def _place_of_level(setting: Setting) -> tuple[Any, ...]:
    """Numbers by their size, what labels are as `LABELS` has it."""
    named = setting.factor == "labels" and setting.level in LABELS
    return (LABELS.index(setting.level),) if named else natural(setting.level)


def _effective_sizes(facts: ResultTable) -> Iterator[Table]:
    """Effective sizes, and the curve that they are read from."""
    for table in _methods(facts, "effective-sizes"):
        curve = facts.curves.get((table["dataset"], table["metric"], ""))
        if curve is not None:
            yield table | {"curve": curve.points(scale(table["metric"]))}


def _intervals(facts: ResultTable) -> Iterator[Table]:
    """Coverage and width, where a confidence level was asked for; levels are side by side."""
    for settings in facts.together(
        lambda s: s._replace(level="") if s.factor else s._replace(n_labeled=0),
        lambda s: not s.group and s.factor != "subset",
    ):
        levels = bool(settings[0].factor)
        columns = _side_by_side(facts, settings, "level" if levels else "n_labeled")
        if any(c["coverage"] is not None for _, _, part in columns for c in part.values()):
            place = {"n_labeled": settings[0].n_labeled, "level": ""} if levels else {}
            yield _table("intervals", facts, settings, columns, **place)


def _correlation(facts: ResultTable) -> Iterator[Table]:
    """How alike the classifiers are, and how the methods' errors go with it.

    One matrix per data set and trait that is known of pairs, those whose level is "A+B".
    """
    for dataset in facts.datasets:
        models = sorted({s.model for s in facts.by_model if s.dataset == dataset})
        for trait in _traits(facts, dataset):
            of = facts.traits_of[dataset, trait]
            matrix = [
                [
                    None if a == b else of.get((f"{a}+{b}", -1), of.get((f"{b}+{a}", -1)))
                    for b in models
                ]
                for a in models
            ]
            if any(v is not None for row in matrix for v in row):
                place = {"kind": "pairs", "dataset": dataset, "trait": trait}
                yield place | {"models": models, "values": matrix}
    yield from _associations(facts)


def _associations(facts: ResultTable) -> Iterator[Table]:
    """Rank correlation of each method's error with each trait that varies, one table per setting.

    Subsets of classifiers are one table; what else a protocol varies would be confounded. The
    mean of a cell is the rank correlation, over n_runs points.
    """
    for settings in facts.together(
        lambda s: s._replace(level="") if s.factor == "subset" else s, lambda s: not s.group
    ):
        first, columns = settings[0], list[Column]()
        for trait in _traits(facts, first.dataset):
            x, errors = _points(facts, settings, trait)
            column: dict[str, Cell] = {
                method: {
                    "mean": rank_correlation(x, y),
                    "n_runs": int(np.count_nonzero(~np.isnan(y))),
                    "n_of": len(x),
                    "reasons": {},
                    "best": False,
                }
                for method, y in errors.items()
            }
            if any(cell["mean"] is not None for cell in column.values()):
                columns.append(("trait", trait, column))
        if columns:
            level = "" if first.factor == "subset" else first.level
            place = {"n_labeled": first.n_labeled, "level": level}
            yield _table("associations", facts, settings, columns, **place)


def _side_by_side(facts: ResultTable, settings: Sequence[Setting], what: str) -> list[Column]:
    return [(what, getattr(s, what), facts.cells[s]) for s in settings]


def _table(
    kind: str,
    facts: ResultTable,
    settings: Sequence[Setting],
    columns: Sequence[Column],
    **place: Any,
) -> Table:
    """Rows of methods over columns of cells; None where a method has no cell."""
    first = settings[0]
    methods = facts.in_order(m for _, _, part in columns for m in part)
    return {
        "kind": kind,
        "dataset": first.dataset,
        "factor": first.factor,
        "level": first.level,
        "metric": first.metric,
        "n_labeled": None,
        "n_unlabeled": first.n_unlabeled,
        "columns": [{"what": what, "value": value} for what, value, _ in columns],
        "rows": [
            {"method": m, "floor": m == FLOOR, "cells": [part.get(m) for _, _, part in columns]}
            for m in methods
        ],
    } | place


_TABLES: Mapping[str, Callable[[ResultTable], Iterator[Table]]] = {
    "overview": _overview,
    "methods": _methods,
    "intervals": _intervals,
    "classifiers": _classifiers,
    "group-ratios": _group_ratios,
    "groups": _groups,
    "levels": _levels,
    "effective-sizes": _effective_sizes,
    "correlation": _correlation,
    "associations": _associations,
}


# --- figures -----------------------------------------------------------------------------------


def figures(facts: ResultTable, kind: str) -> Iterator[Table]:
    """All figures of a kind, as panels of series; none where the results have nothing for it."""
    yield from _FIGURES[kind](facts)


def _by_labels(facts: ResultTable) -> Iterator[Table]:
    """Error against the number of labels; one panel per metric."""
    for settings in facts.together(
        lambda s: s._replace(metric="", n_labeled=0), lambda s: not s.group
    ):
        if len({s.n_labeled for s in settings}) > 1:
            panels = [_means(facts, part, "n_labeled") for part in _by_metric(settings)]
            yield _figure("error-by-labels", settings, "n_labeled", panels)


def _by_level(facts: ResultTable) -> Iterator[Table]:
    """Error against what the protocol varies."""
    for settings in facts.together(
        lambda s: s._replace(metric="", level=""), lambda s: bool(s.factor) and not s.group
    ):
        levels = sorted({s.level for s in settings}, key=natural)
        if len(levels) > 1:
            first = settings[0]
            panels = [_means(facts, part, "level") for part in _by_metric(settings)]
            place = {"level": "", "levels": levels, "n_labeled": first.n_labeled}
            yield _figure("error-by-level", settings, first.factor, panels, **place)


def _by_trait(facts: ResultTable, kind: str, trait: str, *, pooled: bool) -> Iterator[Table]:
    """Error against a trait: of each set of classifiers, or (pooled) of each level."""
    for settings in facts.together(
        lambda s: s._replace(metric="", level=""), lambda s: not s.group
    ):
        parts = [
            part
            for metric in _by_metric(settings)
            for part in ([metric] if pooled else [[s] for s in metric])
        ]
        panels = [
            _panel(part[0].metric, _trend(facts, part, trait), "" if pooled else part[0].level)
            for part in parts
        ]
        if any(panel["series"] for panel in panels):
            place = {"level": "", "n_labeled": settings[0].n_labeled}
            yield _figure(kind, settings, trait, panels, **place)


def _labeled_curve(facts: ResultTable) -> Iterator[Table]:
    """The labeled-only curve, and where the methods stand on it at the fewest labels."""
    for dataset in facts.datasets:
        found = [s for s in facts.compared if s.dataset == dataset and not s.group]
        panels = []
        fewest = min((s.n_labeled for s in found if facts.curve(s)), default=None)
        for metric in facts.metrics:
            curve = facts.curves.get((dataset, metric, ""))
            if curve is None:
                continue
            here = [s for s in found if s.metric == metric and s.n_labeled == fewest
                    and s.factor == "" and facts.curve(s)]  # fmt: skip
            at = facts.cells[here[0]] if here else {}
            marks = [
                {"method": m, "floor": m == FLOOR, "y": c["mean"], "x": c["ess"],
                 "bound": c["ess_bound"]}
                for m in facts.in_order(at)
                if (c := at[m])["ess"] is not None and m != REFERENCE
            ]  # fmt: skip
            points = [p for p in curve.points(scale(metric)) if p["y"] is not None]
            series = {"method": REFERENCE, "floor": False, "points": points}
            panels.append(_panel(metric, [series], marks=marks))
        if panels:
            place = Setting(dataset, CURVE, "", 0, 0, "")
            yield _figure("labeled-curve", [place], "n_labeled", panels, n_labeled=fewest)


def _means(facts: ResultTable, settings: Sequence[Setting], x: str) -> Table:
    """Mean error and standard error of every method over the settings of one metric."""
    series = []
    for method in facts.in_order(m for s in settings for m in facts.cells[s]):
        parts = [(s, facts.cells[s].get(method)) for s in settings]
        points = [
            {"x": getattr(s, x), "y": c["mean"], "se": c["se"], "n": c["n_runs"]}
            for s, c in parts
            if c is not None and c["mean"] is not None
        ]
        if points:
            series.append({"method": method, "floor": method == FLOOR, "points": points})
    return _panel(settings[0].metric, series)


def _panel(
    metric: str, series: Sequence[Table], level: str = "", marks: Sequence[Table] = ()
) -> Table:
    return {"metric": metric, "level": level, "series": list(series), "marks": list(marks)}


def _by_metric(settings: Sequence[Setting]) -> list[list[Setting]]:
    parts: dict[str, list[Setting]] = {}
    for setting in settings:
        parts.setdefault(setting.metric, []).append(setting)
    return list(parts.values())


def _figure(
    kind: str, settings: Sequence[Setting], x: str, panels: Sequence[Table], **place: Any
) -> Table:
    first = settings[0]
    return {
        "kind": kind,
        "dataset": first.dataset,
        "factor": "" if first.factor == CURVE else first.factor,
        "level": first.level,
        "n_labeled": None,
        "n_unlabeled": first.n_unlabeled,
        "x": x,
        "panels": [panel for panel in panels if panel["series"]],
    } | place


_FIGURES: Mapping[str, Callable[[ResultTable], Iterator[Table]]] = {
    "error-by-labels": _by_labels,
    "error-by-level": _by_level,
    "labeled-curve": _labeled_curve,
} | {
    kind: partial(_by_trait, kind=kind, trait=trait, pooled=pooled)
    for kind, trait, pooled in (
        ("error-by-accuracy", "mean_accuracy", False),
        ("error-by-calibration", "mean_ece", False),
        ("error-by-correlation", "error_correlation", True),
    )
}


# --- how errors go with traits ------------------------------------------------------------------

BINS = 8
"""At most so many points of a trend; each holds about as many runs."""

_FULL = 5
"""Points that a bin should hold, or its mean is all noise."""

_FEWEST = 3
"""Fewer points have no rank correlation worth the name."""


def _trend(facts: ResultTable, settings: Sequence[Setting], trait: str) -> list[dict[str, Any]]:
    """A series per method: mean error by bins of the trait, and their rank correlation.

    Where the trait belongs to a whole level, a point is the mean over the level's runs. Bins end
    at quantiles, or between the values where these are few.
    """
    x, errors = _points(facts, settings, trait)
    edges = np.unique(x)
    if len(edges) <= BINS:
        edges = (edges[1:] + edges[:-1]) / 2
    else:
        bins = min(BINS, max(2, len(x) // _FULL))
        edges = np.unique(np.quantile(x, np.arange(1, bins) / bins))
    place = np.searchsorted(edges, x, side="right")
    found = []
    for method in facts.in_order(errors):
        y = errors[method] * scale(settings[0].metric)
        points = []
        for k in range(len(edges) + 1):
            inside = (place == k) & ~np.isnan(y)
            if inside.any():
                here = spread(y[inside])
                at = {"x": float(x[inside].mean()), "y": here["mean"]}
                points.append(at | {"se": here["se"], "n": here["n_runs"]})
        if points:
            found.append(
                {
                    "method": method,
                    "floor": method == FLOOR,
                    "points": points,
                    "rank_correlation": rank_correlation(x, y),
                    "n": int(np.count_nonzero(~np.isnan(y))),
                }
            )
    return found


def _traits(facts: ResultTable, dataset: str) -> list[str]:
    return sorted(name for found, name in facts.traits_of if found == dataset)


def _points(
    facts: ResultTable, settings: Sequence[Setting], trait: str
) -> tuple[Floats, dict[str, Floats]]:
    """The trait (points,) and each method's error there, NaN where not known."""
    values = facts.traits_of.get((settings[0].dataset, trait), {})
    methods = list(dict.fromkeys(m for s in settings for m in facts.compared[s].methods))
    xs, ys = [np.empty(0)], [np.empty((len(methods), 0))]
    for setting in settings:
        level, runs = setting.level, facts.compared[setting].runs.tolist()
        errors = _stacked(facts, [setting], methods)[:, 0]
        x = np.asarray([values.get((level, r), values.get(("", r), np.nan)) for r in runs])
        known = ~np.isnan(x)
        if known.any():
            xs.append(x[known])
            ys.append(errors[:, known])
        elif (level, -1) in values:
            means = [spread(part)["mean"] for part in errors]
            xs.append(np.asarray([values[level, -1]]))
            ys.append(np.asarray(means, dtype=float)[:, None])
    return np.concatenate(xs), dict(zip(methods, np.concatenate(ys, axis=1), strict=True))


def rank_correlation(x: Floats, y: Floats) -> float | None:
    """Spearman's coefficient over the points where both are known; None where it has no meaning."""
    from scipy.stats import rankdata

    both = ~np.isnan(x) & ~np.isnan(y)
    if np.count_nonzero(both) < _FEWEST:
        return None
    ranks = [rankdata(part[both]) for part in (x, y)]
    if any(np.ptp(r) == 0 for r in ranks):
        return None
    return float(np.clip(np.corrcoef(*ranks)[0, 1], -1, 1))
