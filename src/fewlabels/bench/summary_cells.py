"""What is said of a method in one setting: its error, beside Labeled's, and which is the best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from fewlabels.bench.effective_size import Curve
from fewlabels.bench.summary_errors import FLOOR, REFERENCE, Comparison
from fewlabels.kernels.arrays import Array, Floats
from fewlabels.kernels.interval_draws import ends

Cell = dict[str, Any]

RESAMPLES = 2000
LEVEL = 0.95
"""Confidence level of the bootstrap interval of a ratio."""

FEWEST_RUNS = 5
"""Of fewer runs a bootstrap has too few different resamples for an interval."""


def cells(compared: Comparison, curve: Curve | None, scale: float) -> dict[str, Cell]:
    """Method -> its cell; errors, bias and width are multiplied by `scale`.

    mean, sd (ddof 1) and se over the runs in which the error is known; bias, the mean signed
    error; rmae, the ratio of mean errors to Labeled's on the runs that both know, with a paired
    bootstrap interval over runs; ess, the effective size; coverage and width of intervals;
    seconds per run; n_runs of n_of; reasons, why runs are missing; best, whether no method is
    better by more than one paired standard error. Unknown numbers are None. The effective size of
    Labeled is its own number of labels: read from the curve it would be that and noise.
    """
    winners = best(compared.errors[:, None, :], compared.methods)
    reference = compared.of(REFERENCE)
    found = {}
    for k, method in enumerate(compared.methods):
        errors = compared.errors[k] * scale
        cell: Cell = {
            **spread(errors),
            "bias": _mean(compared.signed[k][~np.isnan(errors)] * scale),
            "n_of": len(compared.runs),
            "coverage": _mean(compared.covered[k]),
            "coverage_se": coverage_error(compared.covered[k], compared.n_classifiers),
            "width": _mean(compared.width[k] * scale),
            "seconds": _mean(compared.seconds[k]),
            "reasons": dict(sorted(compared.reasons[method].items())),
            "best": winners[k],
        }
        beside = None if reference is None else compared.errors[reference] * scale
        cell |= ratio(errors, beside)
        mean = cell["mean"]
        cell |= Curve.NOTHING if curve is None or mean is None else curve.size(mean / scale)
        if method == REFERENCE and cell["ess"] is not None:
            cell |= {**Curve.NOTHING, "ess": compared.setting.n_labeled}
        found[method] = cell
    return found


def spread(values: Floats) -> Cell:
    """Mean, sd (ddof 1) and standard error over the known values, and how many there are."""
    known = values[~np.isnan(values)]
    sd = float(np.std(known, ddof=1)) if len(known) > 1 else None
    se = None if sd is None else sd / math.sqrt(len(known))
    return {"mean": _mean(known), "sd": sd, "se": se, "n_runs": len(known)}


def coverage_error(covered: Floats, n_classifiers: int) -> float | None:
    """Standard error of a coverage, above nothing even where every interval covers, or none does.

    The larger of that over runs, to which the classifiers of a run are one observation, and that
    of Agresti and Coull (1998), sqrt(p (1 - p) / n) with two successes and two failures added to
    the runs x classifiers intervals.

    Parameters
    ----------
    covered
        (runs,) share of the classifiers whose interval covers; NaN where not known.
    n_classifiers
        How many classifiers each run has.
    """
    known = covered[~np.isnan(covered)]
    if not len(known):
        return None
    n = len(known) * n_classifiers + 4
    p = (float(known.sum()) * n_classifiers + 2) / n
    return max(math.sqrt(p * (1 - p) / n), spread(known)["se"] or 0.0)


def ratio(errors: Floats, reference: Floats | None) -> Cell:
    """Ratio of mean errors over the runs that both know, with a bootstrap interval of 5 or more."""
    nothing: Cell = {"rmae": None, "rmae_low": None, "rmae_high": None}
    if reference is None:
        return nothing
    both = ~np.isnan(errors) & ~np.isnan(reference)
    if not both.any() or reference[both].mean() == 0:
        return nothing
    found = nothing | {"rmae": float(errors[both].mean() / reference[both].mean())}
    n = int(np.count_nonzero(both))
    if n >= FEWEST_RUNS:
        above, below = (resamples(n) @ part[both] for part in (errors, reference))
        # A resample of runs in which Labeled happens to make no error has no ratio.
        ratios = above[below > 0] / below[below > 0]
        low, high = ends(ratios, LEVEL)
        found |= {"rmae_low": float(low), "rmae_high": float(high)}
    return found


@lru_cache(maxsize=8)
def resamples(n: int) -> Floats:
    """How often each of n runs is drawn, (RESAMPLES, n): the same for all, so pairs stay pairs."""
    return np.random.default_rng([RESAMPLES, n]).multinomial(n, np.full(n, 1 / n), RESAMPLES) / n


def difference(before: Floats, after: Floats) -> Cell:
    """Mean of the paired differences over the runs that both know."""
    return spread(after - before)


def best(errors: Floats, methods: Sequence[str]) -> list[bool]:
    """Which methods no other one beats by more than one paired standard error.

    Parameters
    ----------
    errors
        (methods, parts, runs), parts being groups whose mean is compared; NaN where not known.
    methods
        Their names; the floor takes no part, and one method alone is not the best of anything.

    The leader has the least mean error of those with the most known errors: a method that fails
    on hard runs must not win by it.
    """
    known = np.count_nonzero(~np.isnan(errors), axis=(1, 2))
    entered = [k for k, m in enumerate(methods) if m != FLOOR and known[k]]
    marks = [False] * len(methods)
    if len(entered) < 2:
        return marks
    means = {k: float(np.mean([_mean(part) or 0.0 for part in errors[k] if _any(part)]))
             for k in entered}  # fmt: skip
    most = max(known[k] for k in entered)
    leader = min((k for k in entered if known[k] == most), key=means.__getitem__)
    for k in entered:
        marks[k] = k == leader or _level(errors[k] - errors[leader])
    return marks


def _level(gaps: Floats) -> bool:
    """Whether the mean of paired gaps (parts, runs) is within one standard error of nothing."""
    runs = gaps[:, ~np.isnan(gaps).all(axis=0)]
    known = ~np.isnan(runs)
    if runs.shape[1] < 1:
        return False
    paired = np.where(known, runs, 0.0).sum(axis=0) / known.sum(axis=0)
    found = spread(paired)
    return bool(found["mean"] <= (found["se"] or 0.0))


def _any(part: Floats) -> bool:
    return not np.isnan(part).all()


def _mean(values: Array) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def merged_reasons(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Reasons of several columns; a run counts once per column."""
    merged: dict[str, int] = {}
    for part in parts:
        for reason, n in part.items():
            merged[reason] = merged.get(reason, 0) + n
    return dict(sorted(merged.items()))
