"""How errors go with traits of the data: binned means, rank correlations, pairs of classifiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fewlabels.bench.summary_cells import Cell, spread
from fewlabels.bench.summary_errors import Comparison, Setting
from fewlabels.bench.summary_facts import Facts, scale
from fewlabels.kernels.arrays import Floats

BINS = 8
"""At most so many points of a trend; each holds about as many runs."""

_FULL = 5
"""Points that a bin should hold, or its mean is all noise."""

_FEWEST = 3
"""Fewer points have no rank correlation worth the name."""


def trend(facts: Facts, settings: Sequence[Setting], trait: str) -> list[dict[str, Any]]:
    """A series per method: mean error by bins of the trait, and their rank correlation.

    Where the trait belongs to a whole level, a point is the mean over the level's runs.
    """
    x, errors = _points(facts, settings, trait)
    edges = _edges(x)
    found = []
    for method in facts.in_order(errors):
        y = errors[method] * scale(settings[0].metric)
        points = list(_binned(x, y, edges))
        if points:
            found.append(
                {
                    "method": method,
                    "points": points,
                    "rank_correlation": rank_correlation(x, y),
                    "n": int(np.count_nonzero(~np.isnan(y))),
                }
            )
    return found


def associations(
    facts: Facts,
) -> Iterator[tuple[list[Setting], list[dict[str, Any]], list[dict[str, Cell]]]]:
    """Settings of one table, the traits that vary there, and a column each.

    Subsets of classifiers are one table; what else a protocol varies would be confounded.

    The mean of a cell is the rank correlation of the error with the trait, over n_runs points.
    """
    for settings in facts.together(
        lambda s: s._replace(level="") if s.factor == "subset" else s, lambda s: not s.group
    ):
        columns, found = [], []
        for trait in _names(facts, settings[0].dataset):
            x, points = _points(facts, settings, trait)
            cells = {m: _association(x, y) for m, y in points.items()}
            if any(cell["mean"] is not None for cell in cells.values()):
                columns.append({"what": "trait", "value": trait})
                found.append(cells)
        if columns:
            yield settings, columns, found


def _association(x: Floats, y: Floats) -> Cell:
    known = int(np.count_nonzero(~np.isnan(y)))
    value = rank_correlation(x, y)
    return {"mean": value, "n_runs": known, "n_of": len(x), "reasons": {}, "best": False}


def pairs_of_classifiers(facts: Facts) -> Iterator[dict[str, Any]]:
    """One matrix per data set and trait that is known of pairs: those whose level is "A+B"."""
    for dataset in facts.datasets:
        models = sorted({s.model for s in facts.by_model if s.dataset == dataset})
        for trait in _names(facts, dataset):
            values = facts.traits_of[dataset, trait]
            matrix = [[_pair(values, a, b) for b in models] for a in models]
            if any(v is not None for row in matrix for v in row):
                yield {
                    "kind": "pairs",
                    "dataset": dataset,
                    "trait": trait,
                    "models": models,
                    "values": matrix,
                }


def _pair(values: dict[tuple[str, int], float], a: str, b: str) -> float | None:
    if a == b:
        return None
    return values.get((f"{a}+{b}", -1), values.get((f"{b}+{a}", -1)))


def _names(facts: Facts, dataset: str) -> list[str]:
    return sorted(name for found, name in facts.traits_of if found == dataset)


def _points(
    facts: Facts, settings: Sequence[Setting], trait: str
) -> tuple[Floats, dict[str, Floats]]:
    """The trait (points,) and each method's error there, NaN where not known."""
    values = facts.traits_of.get((settings[0].dataset, trait), {})
    methods = list(dict.fromkeys(m for s in settings for m in facts.compared[s].methods))
    parts = [_of_setting(values, facts.compared[s], s.level, methods) for s in settings]
    x = np.concatenate([part[0] for part in parts])
    y = np.concatenate([part[1] for part in parts], axis=1)
    return x, dict(zip(methods, y, strict=True))


def _of_setting(
    values: dict[tuple[str, int], float], compared: Comparison, level: str, methods: Sequence[str]
) -> tuple[Floats, Floats]:
    rows = [compared.of(m) for m in methods]
    lost = np.full(len(compared.runs), np.nan)
    errors = np.stack([lost if row is None else compared.errors[row] for row in rows])
    by_run = np.asarray([_value(values, level, int(run)) for run in compared.runs])
    known = ~np.isnan(by_run)
    if known.any():
        return by_run[known], errors[:, known]
    if (level, -1) in values:
        means = [spread(part)["mean"] for part in errors]
        column = np.asarray([np.nan if m is None else m for m in means])
        return np.asarray([values[level, -1]]), column[:, None]
    return np.empty(0), np.empty((len(methods), 0))


def _value(values: dict[tuple[str, int], float], level: str, run: int) -> float:
    return values.get((level, run), values.get(("", run), np.nan))


def _edges(x: Floats) -> Floats:
    """Upper ends of the bins, the last one left out: quantiles, or between few distinct values."""
    distinct = np.unique(x)
    if len(distinct) <= BINS:
        return (distinct[1:] + distinct[:-1]) / 2
    bins = min(BINS, max(2, len(x) // _FULL))
    return np.unique(np.quantile(x, np.arange(1, bins) / bins))


def _binned(x: Floats, y: Floats, edges: Floats) -> Iterator[dict[str, Any]]:
    place = np.searchsorted(edges, x, side="right")
    for k in range(len(edges) + 1):
        inside = (place == k) & ~np.isnan(y)
        if inside.any():
            found = spread(y[inside])
            yield {
                "x": float(x[inside].mean()),
                "y": found["mean"],
                "se": found["se"],
                "n": found["n_runs"],
            }


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
